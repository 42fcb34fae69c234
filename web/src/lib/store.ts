// Every session of the host as it is now. One connection watches; views read signals and never ask for themselves what is here.

import { computed, effect, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import {
  connect,
  HoldfastError,
  Session,
  type Client,
  type ApprovalView,
  type QuestionView,
  type SessionEvent,
  type SessionView,
  type StateView,
  type WatchEvent,
} from "@holdfast/client";
import { plain } from "./ink.js";
import { look, myActor, pass, unknown } from "./login.js";
import { phoneClient } from "./phone.js";

/** What a session does: the part of a state that is shown. */
export type Doing = Pick<StateView, "since_ms"> & { state: StateView["state"]; prompt?: string; kind?: string; by?: string };

/** A port that is open. */
export interface Port {
  socket: string;
  /** `stream` is TCP. */
  kind: string;
  port: number;
  address: string;
  argv: string[];
  by?: string;
}

/** One session, live. */
export class LiveSession {
  readonly id: string;
  readonly view: Signal<SessionView>;
  readonly doing = signal<Doing | undefined>(undefined);
  readonly ports = signal<Port[]>([]);
  /** The last lines of its output, with their colours. */
  readonly tail = signal<string[]>([]);
  /** Its open questions, oldest first. */
  readonly questions: ReadonlySignal<QuestionView[]>;
  /** Its acts that wait for approval, oldest first. */
  readonly approvals: ReadonlySignal<ApprovalView[]>;
  /** How much it needs this person: 0 is most. */
  readonly need: ReadonlySignal<Need>;
  /** To act on it. */
  readonly session: Session;

  constructor(client: Client, view: SessionView) {
    this.id = view.id;
    this.view = signal(view);
    this.session = new Session(client, view);
    this.questions = computed(() => questions.value.filter((question) => question.session === this.id));
    this.approvals = computed(() => approvals.value.filter((approval) => approval.session === this.id));
    this.need = computed(() => need(this));
  }

  get name(): string {
    return this.view.value.name;
  }
}

export type Need = "question" | "waiting" | "turn" | "none" | "ended";
const NEEDS: Need[] = ["question", "waiting", "turn", "none", "ended"];

function need(live: LiveSession): Need {
  const { life, turn } = live.view.value;
  if (life !== "running") return "ended";
  if (live.questions.value.length + live.approvals.value.length > 0) return "question";
  if (isAsked(live.doing.value)) return "waiting";
  if (turn.queue?.length && turn.holder?.actor.id === myActor()?.id) return "turn";
  return "none";
}

/** A program waits for an answer to something: one that only reads, as `cat` does, asks nobody. */
export function isAsked(doing: Doing | undefined): boolean {
  return doing?.state === "waiting" && (doing.kind === "password" || (doing.prompt ?? "") !== "");
}

/** The client of this page's host. It gives up nothing: a page waits until its host is there again. */
export const client: Client =
  phoneClient ??
  connect(location.origin, {
    name: "holdfast-web",
    token: pass,
    retry: { forMs: Number.POSITIVE_INFINITY, maxDelayMs: 2_000 },
  });

const all = signal<ReadonlyMap<string, LiveSession>>(new Map());
export const questions = signal<QuestionView[]>([]);
/** Acts that wait for approval, oldest first. */
export const approvals = signal<ApprovalView[]>([]);
/** Whether the host is reached. */
export const link = signal<"connecting" | "connected" | "reconnecting">("connecting");
/** The first list is there. */
export const loaded = signal(false);

/** All sessions: what needs this person first, then the newest. */
export const sessions = computed(() =>
  [...all.value.values()].sort(
    (a, b) => NEEDS.indexOf(a.need.value) - NEEDS.indexOf(b.need.value) || b.view.value.created_ms - a.view.value.created_ms,
  ),
);

/** A session by its name or id; of two with one name the one that lives. */
export function find(name: string): LiveSession | undefined {
  const named = sessions.value.filter((live) => live.id === name || live.name === name);
  return named.find((live) => live.view.value.life === "running") ?? named[0];
}

/** How many sessions wait for this person, or have asked something. */
export const waiting = computed(() => sessions.value.filter((live) => ["question", "waiting", "turn"].includes(live.need.value)).length);

/** Hears every event as it comes. */
export const heard = new Set<(event: SessionEvent) => void>();

/** Takes in what an act answered, without waiting for the event that tells of it. */
export function take(view: SessionView): LiveSession {
  const known = all.value.get(view.id);
  if (known) {
    known.view.value = view;
    return known;
  }
  const live = new LiveSession(client, view);
  all.value = new Map(all.value).set(view.id, live);
  return live;
}

/** Watches until the page is left. */
export function start(): void {
  client.link.connected = () => (link.value = "connected");
  client.link.broke = () => {
    link.value = "reconnecting";
    // A browser does not say why a socket was refused: perhaps the cookie is no longer good.
    void look();
    // There may be no pending request: reconnect all the same.
    void client.connect().catch(() => undefined);
  };
  for (const event of ["online", "offline", "focus"]) addEventListener(event, () => void probe());
  document.addEventListener("visibilitychange", () => void probe());
  void watch();
}

/** What else has a connection, to be opened anew with this one. */
export const connections = new Set<{ reconnect(): void }>([client]);
/** An answer that takes longer does not come: phones sleep, and their sockets are gone without a word. */
const PROBE_MS = 3_000;

/** Asks the host something small; where no answer comes, every connection is opened anew. */
async function probe(): Promise<void> {
  if (document.visibilityState === "hidden" || link.value !== "connected") return;
  try {
    await client.status({ signal: AbortSignal.timeout(PROBE_MS) });
  } catch {
    for (const connection of connections) connection.reconnect();
  }
}

async function watch(): Promise<void> {
  for (;;) {
    try {
      // Watching begins before the list is read, so that no change is missed.
      const events = client.events();
      const first = events.next();
      first.catch(() => undefined);
      await Promise.all([list(), ask()]);
      loaded.value = true;
      for (let next = await first; !next.done; next = await events.next()) await happened(next.value);
    } catch (error) {
      if (client.link.isClosed) return;
      if (error instanceof HoldfastError && error.code === "unidentified") return unknown();
      console.error(error);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

async function list(): Promise<void> {
  const views = await client.call("session.list", { all: true });
  const known = all.value;
  const next = new Map<string, LiveSession>();
  for (const view of views) {
    const live = known.get(view.id) ?? new LiveSession(client, view);
    live.view.value = view;
    next.set(view.id, live);
  }
  all.value = next;
}

/** Reads the open questions, and acts that wait for approval. */
export async function ask(): Promise<void> {
  // A host of an earlier version has none.
  approvals.value = (await client.call("approval.list", {}).catch(() => [])).filter((approval) => approval.state === "open");
  questions.value = (await client.questions()).filter((question) => question.state === "open");
}

async function happened(event: WatchEvent): Promise<void> {
  if (event.event === "lost") {
    await Promise.all([list(), ask()]);
    return;
  }
  const live = all.value.get(event.session);
  if (!live) {
    await list();
    if (!all.value.has(event.session)) return;
    return happened(event);
  }
  if (event.event === "asked" || event.event === "answered" || event.event === "question_closed") await ask();
  else if (event.event === "held" || event.event === "held_closed") await ask();
  else if (event.event === "state") live.doing.value = doing(event);
  else if (event.event === "listen") addPort(live, event);
  else if (event.event === "not_listening") live.ports.value = live.ports.value.filter((port) => port.socket !== event.socket);
  else refresh(live);
  // What its processes did before was another life.
  if (event.event === "recovered") live.doing.value = undefined;
  for (const hear of heard) hear(event);
}

function doing(event: Doing): Doing {
  const { state, since_ms, prompt, kind, by } = event;
  return { state, since_ms, ...(prompt === undefined ? {} : { prompt }), ...(kind ? { kind } : {}), ...(by ? { by } : {}) };
}

function addPort(live: LiveSession, event: SessionEvent & { event: "listen" }): void {
  const { socket, kind, port, address, argv, by } = event;
  const others = live.ports.value.filter((one) => one.socket !== socket);
  live.ports.value = [...others, { socket, kind, port, address, argv, ...(by ? { by } : {}) }].sort((a, b) => a.port - b.port);
}

const refreshing = new Set<string>();

/** Reads a session anew; events that come close together do so once. */
export function refresh(live: LiveSession): void {
  if (refreshing.has(live.id)) return;
  refreshing.add(live.id);
  setTimeout(() => {
    refreshing.delete(live.id);
    client.call("session.get", { session: live.id }).then(
      (view) => (live.view.value = view),
      (error: unknown) => {
        if (error instanceof HoldfastError && error.code === "not_found") void list();
      },
    );
  }, 20);
}

/** Lines kept of each session's output, and how often they are looked at: a glance, not a terminal. */
const TAIL_LINES = 6;
const TAIL_EVERY_MS = 1_500;

/** Keeps the last lines of every live session new, while somebody looks; what is given back stops that. */
export function followTails(): () => void {
  const seen = new Map<string, number>();
  let isOver = false;
  let isBegun = false;
  const once = async () => {
    if (document.visibilityState === "hidden" || link.value !== "connected") return;
    const views = await client.call("session.list", { all: true });
    await Promise.all(
      views.map(async (view) => {
        const live = take(view);
        if (seen.get(view.id) === view.head || (view.life !== "running" && live.tail.value.length > 0)) return;
        const { rows, history } = await client.call("session.screen", { session: view.id, history: TAIL_LINES, ansi: true });
        seen.set(view.id, view.head);
        live.tail.value = lastLines([...history, ...rows]);
      }),
    );
  };
  const again = async () => {
    await once().catch(() => undefined);
    if (!isOver) setTimeout(again, TAIL_EVERY_MS);
  };
  const begun = effect(() => {
    if (link.value !== "connected" || isBegun) return;
    isBegun = true;
    void again();
  });
  return () => {
    isOver = true;
    begun();
  };
}

function lastLines(lines: string[]): string[] {
  const last = lines.findLastIndex((line) => plain(line).trim() !== "");
  return lines.slice(Math.max(0, last + 1 - TAIL_LINES), last + 1);
}
