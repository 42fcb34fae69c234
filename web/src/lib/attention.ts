// That somebody waits shows in the tab: its title, its icon, and, where it was asked for, a notification.

import { effect, signal } from "@preact/signals";
import type { ApprovalView, QuestionView } from "@holdfast/client";
import { approvals, find, isAsked, loaded, questions, sessions, waiting, type LiveSession } from "./store.js";
import { flowQuestions, flowsWaiting, type FlowQuestion } from "./flows.js";
import { askShell, phone } from "./phone.js";
import { flowPath, go, route, sessionPath } from "./route.js";
import { tell } from "../ui/told.js";
import { shownLine } from "./text.js";

const STORED = "holdfast.notify";

/** A frame without an origin is allowed none. */
export const mayNotify = typeof Notification !== "undefined" && !phone;

/** Notifications are wanted, and allowed. */
export const notifies = signal(
  mayNotify && Notification.permission === "granted" && localStorage.getItem(STORED) === "yes",
);

/** Asks the browser for leave. Only on a click: a page that asks by itself is refused for good. */
export async function toggleNotifications(): Promise<void> {
  const allowed = async () => mayNotify && (await Notification.requestPermission()) === "granted";
  const wanted = !notifies.value && (await allowed());
  if (!wanted && !notifies.value) tell("This browser does not allow notifications here.", "bad", "allow them for this page in the browser's settings; the page must use https or come from this machine");
  notifies.value = wanted;
  localStorage.setItem(STORED, wanted ? "yes" : "no");
}

/** Keeps title and icon as they should be. */
export function start(): void {
  effect(() => {
    const count = waiting.value + flowsWaiting.value;
    const page = route.value.view === "page" && route.value.item ? `${shownLine(route.value.item)} · ` : "";
    const here = page || route.value.view !== "session" ? page : `${shownLine(find(route.value.name)?.name ?? route.value.name)} · `;
    document.title = `${count > 0 ? `(${count}) ` : ""}${here}Holdfast`;
    askShell({ title: document.title });
    const icon = document.getElementById("favicon") as HTMLLinkElement | null;
    const href = count > 0 ? "/icon-waits.svg" : "/icon.svg";
    if (icon && icon.getAttribute("href") !== href) icon.href = href;
  });
  if (phone) return;
  notifyOfNews();
  followClicks();
}

function notifyOfNews(): void {
  const told = new Set<string>();
  /** Sessions that were there when the page was opened, until it is known what they do. */
  let before: Set<string> | undefined;
  effect(() => {
    if (!loaded.value) return;
    const isFirst = before === undefined;
    before ??= new Set(sessions.value.map(({ id }) => id));
    const news = [...questions.value.map(askedNews), ...approvals.value.map(heldNews), ...sessions.value.flatMap(waitingNews), ...flowQuestions.value.map(flowNews)];
    const keys = new Set(news.map(({ key }) => key));
    for (const one of news) {
      if (told.has(one.key)) continue;
      told.add(one.key);
      // What waited when the page was opened is on the page.
      if (!isFirst && !(one.of && before.has(one.of))) notify(one);
    }
    for (const key of told) if (!keys.has(key)) told.delete(key);
    for (const live of sessions.value) if (live.doing.value) before.delete(live.id);
  });
}

function askedNews({ id, name, by, text }: QuestionView): News {
  return { key: id, session: name, title: `${by.handle} asks in ${name}`, body: text };
}

function heldNews({ id, name, by, command, act }: ApprovalView): News {
  return { key: id, session: name ?? "", title: `${by.handle} needs approval${name ? ` in ${name}` : ""}`, body: command || act };
}

function flowNews({ flow, wait }: FlowQuestion): News {
  return { key: `flow ${flow.id} ${flow.generation ?? 1} ${wait.n}`, session: "", path: flowPath(flow.id), title: `${flow.id} asks`, body: wait.question ?? wait.name };
}

function waitingNews({ id, name, doing }: LiveSession): News[] {
  if (!doing.value || !isAsked(doing.value)) return [];
  const { since_ms, prompt = "" } = doing.value;
  return [{ key: `${id} ${since_ms}`, of: id, session: name, title: `${name} waits for input`, body: prompt }];
}

interface News {
  key: string;
  /** The session whose state it is. */
  of?: string;
  session: string;
  /** Where it leads, if not to the session. */
  path?: string;
  title: string;
  body: string;
}

/** By the worker: phones allow it only there, and a click finds the page again though its tab has been put to sleep. */
function notify({ key, session, path, title, body }: News): void {
  if (!notifies.value || document.visibilityState === "visible") return;
  const data = { path: path ?? sessionPath(session) };
  void navigator.serviceWorker?.ready.then((worker) =>
    worker.showNotification(shownLine(title), { body: shownLine(body).slice(0, 200), tag: key, icon: "/icon-192.png", data }),
  );
}

/** A notification was clicked: the worker says where it leads. */
function followClicks(): void {
  navigator.serviceWorker?.addEventListener("message", ({ data }: MessageEvent<{ path?: unknown }>) => {
    if (typeof data.path === "string") go(data.path);
  });
}
