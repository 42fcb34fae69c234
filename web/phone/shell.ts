// The shell: what a browser gets from a relay. It reads an invite, enrols this browser at the host, fetches the host's page through the sealed
// channel, checks it against the host's key, and runs it in a frame. Nothing of a session passes by it unsealed to anybody else.

import { accept, checkPage, fetchPage, HoldfastError, newDeviceKey, readInvite, type Invite, type SignedPage, type Way } from "@holdfast/client/channel";
import { run, type Running } from "./inside.js";
import { forgetHost, hosts, keepHost, keepPage, page as keptPage, type Host } from "./kept.js";
import { hide, show } from "./view.js";

const PROGRAM = "holdfast-phone";
/** How long a host may take before the page that is kept is opened without it. */
const FRESH_MS = 5_000;
/** Between two tries to reach a host that was never reached. */
const AGAIN_MS = 2_000;
/** Digits of a host's key in the address: enough to tell one's own hosts apart. */
const SHORT = 12;
const NAME = /^[a-z0-9._-]{1,32}$/;

let running: { host: Host; page: Running } | undefined;
/** What is under way ends when something else begins. */
let turn = new AbortController();

/** Begins something else. */
function begin(): AbortSignal {
  turn.abort();
  running?.page.end();
  running = undefined;
  turn = new AbortController();
  return turn.signal;
}

/** What the address asks for. An invite must not stay in it, in the history or in a screenshot. */
async function start(): Promise<void> {
  const asked = location.hash.slice(1);
  if (asked.startsWith("/") || asked === "") return resume(asked);
  history.replaceState(null, "", "/i");
  if (!isSecureContext || !crypto.subtle) {
    return show({ title: "This browser cannot open the invite", words: ["The relay must be reached by https."] });
  }
  try {
    await invited(readInvite(asked));
  } catch (error) {
    show({ title: "This link does not work", wrong: said(error), buttons: [{ text: "Back", run: () => void resume("") }] });
  }
}

/** A host that is known: the one that the address names, or the only one, or the person's choice. */
async function resume(asked: string): Promise<void> {
  begin();
  const all = await hosts();
  const [, short = "", path = "/"] = /^\/([0-9a-f]+)(\/.*)?$/.exec(asked) ?? [];
  const named = short.length >= SHORT ? all.find(({ key }) => key.startsWith(short)) : undefined;
  const only = named ?? (asked === "" && all.length === 1 ? all[0] : undefined);
  if (only) return open(only, named ? path : "/");
  choose(all);
}

function choose(all: Host[], wrong?: string): void {
  const pasted = (text: string) => {
    try {
      void invited(readInvite(text));
    } catch (error) {
      choose(all, said(error));
    }
  };
  history.replaceState(null, "", "/i");
  show({
    title: all.length > 0 ? "Your machines" : "Open an invite",
    words: all.length > 0 ? [] : ["On the machine you want to reach, run `holdfast invite --host-wide`. Open the link that it prints, or paste it here."],
    ...(wrong ? { wrong } : {}),
    input: { label: "Invite link", value: "", placeholder: "https://…/i#…" },
    buttons: [
      { text: "Open the link", run: pasted },
      ...all.map((host) => ({ text: `${host.name || host.key.slice(0, SHORT)}${host.session ? `: ${host.session}` : ""}`, run: () => void open(host, "/") })),
    ],
  });
}

/** Asks before anything happens: a link that somebody else sent must not enrol this browser by itself. */
async function invited(invite: Invite, wrong?: string, called = localStorage.getItem("holdfast.name") ?? "phone"): Promise<void> {
  begin();
  const known = (await hosts()).find(({ key }) => key === invite.host);
  const machine = invite.name || "a machine";
  const take = (name: string) => {
    const fits = name.trim().toLowerCase().replaceAll(" ", "-");
    if (!NAME.test(fits)) return void invited(invite, "Use up to 32 letters, digits, dots, - or _ for the name.", name);
    localStorage.setItem("holdfast.name", fits);
    void enrol(invite, known, fits);
  };
  show({
    title: `${machine} invites this browser`,
    words: [
      `Its key begins with ${invite.host.slice(0, 16)}. What you type there runs on that machine, and others there see the name you choose.`,
    ],
    ...(wrong ? { wrong } : {}),
    input: { label: "Name of this device", value: called },
    buttons: [
      { text: `Open ${machine}`, run: take },
      ...(known ? [{ text: `Go on as ${known.handle}`, run: () => void open(known, "/") }] : []),
    ],
  });
}

async function enrol(invite: Invite, known: Host | undefined, name: string): Promise<void> {
  const signal = begin();
  show({ title: "Opening the invite…", isBusy: true });
  const again = { text: "Try again", run: () => void enrol(invite, known, name) };
  try {
    const device = known?.device ?? (await newDeviceKey());
    const way = wayOf({ key: invite.host, relays: invite.relays, device });
    const { actor, relays, session } = await accept(way, invite, known?.handle ?? `human:${name}`, PROGRAM, signal);
    const host: Host = {
      key: invite.host,
      name: invite.name,
      relays: [...new Set([...invite.relays, ...relays])],
      device,
      handle: actor.handle,
      ...(session ? { session } : {}),
      usedMs: Date.now(),
      stored: known?.stored ?? {},
    };
    await keepHost(host);
    await open(host, session ? `/s/${encodeURIComponent(session)}` : "/");
  } catch (error) {
    if (signal.aborted) return;
    const isOver = error instanceof HoldfastError && ["invite_over", "no_such_invite"].includes(error.code);
    const title = isOver ? "This invite no longer works" : "The invite could not be opened";
    const words = isOver ? ["Ask the person who sent it for a new one."] : ["The machine may be off, or the invite may be too old for it to remember."];
    const buttons = [...(isOver ? [] : [again]), ...(known ? [{ text: `Go on as ${known.handle}`, run: () => void open(known, "/") }] : [])];
    show({ title, words, wrong: said(error), buttons });
  }
}

function wayOf({ key, relays, device }: Pick<Host, "key" | "relays" | "device">): Way {
  return { host: key, relays, device, webSocket: (url, subprotocols) => new WebSocket(url, subprotocols) as unknown as ReturnType<Way["webSocket"]> };
}

/** Opens a host's page: as the host has it now, or as it was kept where the host is not reached. */
async function open(host: Host, path: string): Promise<void> {
  const signal = begin();
  const machine = host.name || "the machine";
  show({ title: `Connecting to ${machine}…`, isBusy: true });
  const way = wayOf(host);
  for (;;) {
    try {
      const page = await fresh(host, way, signal);
      if (!signal.aborted) await enter(host, page, way, path);
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof HoldfastError && error.code === "unidentified") return shut(host, machine);
      show({
        title: `Cannot reach ${machine}`,
        words: ["Your sessions keep running. This page keeps trying to connect."],
        wrong: said(error),
        buttons: [{ text: "Other machines", run: () => void hosts().then((all) => (begin(), choose(all))) }],
        isBusy: true,
      });
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      if (signal.aborted) return;
    }
  }
}

function shut(host: Host, machine: string): void {
  const forget = () => void forgetHost(host.key).then(() => resume(""));
  show({
    title: `${machine} no longer lets this browser in`,
    words: ["Its access has ended, or was revoked. Ask for a new invite."],
    buttons: [{ text: "Forget this machine", run: forget }],
  });
}

/** The host's page, checked by its key: kept from the last time, or fetched. */
async function fresh(host: Host, way: Way, signal: AbortSignal): Promise<SignedPage> {
  const kept = await keptPage(host.key).then((page) => page && checkPage(host.key, page)).catch(() => undefined);
  const late = AbortSignal.timeout(kept ? FRESH_MS : 60_000);
  try {
    const page = await fetchPage(way, PROGRAM, kept, AbortSignal.any([signal, late]));
    if (page !== kept) await keepPage(host.key, page);
    return page;
  } catch (error) {
    // Whom the host does not know shall not see what it once showed.
    const isShut = error instanceof HoldfastError && error.code === "unidentified";
    if (!kept || isShut || signal.aborted) throw error;
    return kept;
  }
}

async function enter(host: Host, page: SignedPage, way: Way, path: string): Promise<void> {
  host.usedMs = Date.now();
  await keepHost(host);
  const address = (path: string) => `/i#/${host.key.slice(0, SHORT)}${path}`;
  history.replaceState(null, "", address(path));
  const asks = {
    path: (path: string, how: "push" | "replace") => history[how === "push" ? "pushState" : "replaceState"](null, "", address(path)),
    leave: () => void forgetHost(host.key).then(() => resume("")),
    hosts: () => void hosts().then((all) => (begin(), choose(all))),
  };
  const started = await run(host, page, way, path, asks);
  hide();
  running = { host, page: started };
}

/** The browser's own way through what was shown. */
function moved(): void {
  const [, short = "", path = "/"] = /^#\/([0-9a-f]+)(\/.*)?$/.exec(location.hash) ?? [];
  if (running && short.length >= SHORT && running.host.key.startsWith(short)) running.page.go(path);
  else void start();
}

function said(error: unknown): string {
  if (!(error instanceof HoldfastError)) return error instanceof Error ? error.message : String(error);
  return error.message;
}

addEventListener("popstate", moved);
void start();
// The shell stays as it is while its relay is away.
navigator.serviceWorker?.register("/i/sw.js", { scope: "/i" }).catch(() => undefined);
