// All sessions of the host, what needs this person first.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { SecretCard, waitsForSecret } from "../ask/SecretCard.js";
import { standing } from "../session/standing.js";
import { ApprovalCard } from "../ask/ApprovalCard.js";
import { QuestionCard } from "../ask/QuestionCard.js";
import { notifies, toggleNotifications } from "../lib/attention.js";
import { mayStart } from "../lib/guest.js";
import { leave, login, myActor } from "../lib/login.js";
import { askShell, phone } from "../lib/phone.js";
import { approvals, followTails, link, loaded, questions, sessions, type LiveSession } from "../lib/store.js";
import { commandLine } from "../lib/text.js";
import { chooseTheme, theme, THEMES } from "../lib/theme.js";
import { flowQuestions, flows, needOf } from "../lib/flows.js";
import { FlowAsk } from "../ask/FlowAsk.js";
import { FlowRow } from "../flows/Row.js";
import { pages } from "../panels/index.js";
import { follow } from "../lib/route.js";
import { ActorChip } from "../ui/Actor.js";
import { Icon, Mark } from "../ui/icons.js";
import { Line } from "../ui/Text.js";
import { Card } from "./Card.js";
import { NewSession } from "./NewSession.js";
import { grouped, inOrder, Order } from "./order.js";

const search = signal("");

/** After Home has shown itself and its cards. */
const TERMINAL_AFTER_MS = 800;
/** Flows that are listed beside the sessions. */
const FLOWS_SHOWN = 6;

export function Home() {
  const [isNew, setIsNew] = useState(false);
  useEffect(() => followTails(), []);
  useEffect(() => {
    // The terminal's code, while nothing else is to do: the first session then opens at once.
    const timer = setTimeout(() => void import("../session/screen.js"), TERMINAL_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  const wanted = search.value.trim().toLowerCase();
  const fitting = sessions.value.filter((live) => fits(live, wanted));
  // Where this person can type now.
  const secrets = sessions.value.filter((live) => waitsForSecret(live) && ["free", "mine"].includes(standing(live.view.value, myActor()).is) && canType());
  const needing = fitting.filter((live) => ["question", "waiting", "turn"].includes(live.need.value));
  const living = fitting.filter((live) => live.need.value === "none");
  const ended = fitting.filter((live) => live.need.value === "ended");
  return (
    <div class="home">
      <Bar onNew={() => setIsNew(true)} />
      <main>
        <h1 class="visually-hidden">Sessions</h1>
        {link.value === "reconnecting" && (
          <p class="banner" role="status">
            Reconnecting to the host. Your sessions keep running.
          </p>
        )}
        {approvals.value.length + questions.value.length + secrets.length + flowQuestions.value.length > 0 && (
          <section aria-label="Questions" class="questions">
            {secrets.map((live) => (
              <SecretCard key={live.id} live={live} where />
            ))}
            {approvals.value.map((approval) => (
              <ApprovalCard key={approval.id} approval={approval} where />
            ))}
            {questions.value.map((question) => (
              <QuestionCard key={question.id} question={question} where />
            ))}
            {flowQuestions.value.map(({ flow, wait }) => (
              <FlowAsk key={`${flow.id} ${wait.n}`} flow={flow} wait={wait} where />
            ))}
          </section>
        )}
        <Group title="Needs you" all={needing} />
        {grouped(living).map(({ title, all }, at) => (
          <Group key={title} title={title} all={all} end={at === 0 && <Order />} />
        ))}
        {wanted === "" && <OpenFlows />}
        <Group title="Ended" all={inOrder(ended)} />
        {loaded.value && fitting.length === 0 && <Nothing wanted={wanted} onNew={() => setIsNew(true)} />}
      </main>
      {isNew && <NewSession onClose={() => setIsNew(false)} />}
    </div>
  );
}

/** Flows that are under way, beside the sessions. */
function OpenFlows() {
  const open = flows.value.filter((flow) => needOf(flow) !== "ended");
  if (open.length === 0) return null;
  return (
    <section class="group" aria-label="Flows">
      <div class="group-top">
        <h2>
          Flows <span class="count">{open.length}</span>
        </h2>
        <a href="/flows" onClick={follow}>
          All flows
        </a>
      </div>
      <div class="flow-rows">
        {open.slice(0, FLOWS_SHOWN).map((flow) => (
          <FlowRow key={flow.id} flow={flow} />
        ))}
      </div>
    </section>
  );
}

function fits(live: LiveSession, wanted: string): boolean {
  if (wanted === "") return true;
  const { name, command, cwd, title, turn, clients } = live.view.value;
  const actors = [turn.holder?.actor.handle ?? "", ...clients.map(({ actor }) => actor?.handle ?? "")];
  const ports = live.ports.value.map(({ port }) => `:${port}`);
  return [name, commandLine(command), cwd, title ?? "", ...actors, ...ports].some((text) => text.toLowerCase().includes(wanted));
}

function Group({ title, all, end }: { title: string; all: LiveSession[]; end?: ComponentChildren }) {
  if (all.length === 0) return null;
  return (
    <section class="group" aria-label={title}>
      <div class="group-top">
        <h2>
          <Line text={title} /> <span class="count">{all.length}</span>
        </h2>
        {end}
      </div>
      <div class="cards">
        {all.map((live) => (
          <Card key={live.id} live={live} />
        ))}
      </div>
    </section>
  );
}

/** Whether this login may type at all; what a session allows is told when it is tried. */
function canType(): boolean {
  const can = login.value.state === "in" ? login.value.me.token?.can : "";
  return (myActor()?.handle.startsWith("human:") ?? false) && (can === undefined || can === null || can.split(/[ ,]+/).includes("type"));
}

function canStart(): boolean {
  return login.value.state === "in" && mayStart(login.value.me);
}

function Nothing({ wanted, onNew }: { wanted: string; onNew: () => void }) {
  if (wanted !== "") {
    return (
      <div class="empty">
        <p class="muted">
          No session fits “<Line text={wanted} />”.
        </p>
      </div>
    );
  }
  return (
    <div class="empty">
      <p class="muted">No sessions yet.</p>
      {canStart() && (
        <button type="button" class="primary" onClick={onNew}>
          Start one
        </button>
      )}
    </div>
  );
}

function Bar({ onNew }: { onNew: () => void }) {
  const me = myActor();
  return (
    <header class="bar">
      <a class="brand" href="/" onClick={follow} aria-label="Holdfast, all sessions">
        <Mark size={26} />
        <span>Holdfast</span>
      </a>
      <label class="search">
        <Icon name="search" size={16} />
        <span class="visually-hidden">Search sessions</span>
        <input type="search" placeholder="Search" value={search.value} onInput={(event) => (search.value = event.currentTarget.value)} />
      </label>
      <nav class="bar-end">
        {pages.map((page) => (
          <a key={page.id} class="button quiet page-link" href={`/${page.id}`} title={page.title} onClick={follow}>
            <Icon name={page.icon} size={16} />
            <span>{page.title}</span>
          </a>
        ))}
        {!phone && (
          <button
            type="button"
            class="quiet icon-only"
            aria-pressed={notifies.value}
            aria-label="Notify me when a session waits"
            title={notifies.value ? "Notifications are on" : "Notify me when a session waits"}
            onClick={() => void toggleNotifications()}
          >
            <Icon name={notifies.value ? "bell" : "bellOff"} />
          </button>
        )}
        {me && (
          <details class="menu">
            <summary aria-label={`You are ${me.handle}`}>
              <ActorChip handle={me.handle} />
            </summary>
            <div class="menu-list">
              {THEMES.map((one) => (
                <button key={one} type="button" aria-pressed={theme.value === one} onClick={() => chooseTheme(one)}>
                  Theme: {one}
                </button>
              ))}
              {phone && (
                <button type="button" onClick={() => askShell({ hosts: true })}>
                  Other machines
                </button>
              )}
              <button type="button" onClick={() => void leave()}>
                {phone ? "Forget this machine" : "Sign out"}
              </button>
            </div>
          </details>
        )}
        {canStart() && (
          <button type="button" class="primary new" aria-label="New session" onClick={onNew}>
            <Icon name="plus" size={16} />
            <span>New session</span>
          </button>
        )}
      </nav>
    </header>
  );
}
