// One session: what people and programs do with it.

import { Attachment, type AttachOptions } from "./attach.js";
import type { Answer, CallOptions, Client, WatchEvent } from "./client.js";
import { withOwn, type Own } from "./command.js";
import { HoldfastError, isBroken } from "./errors.js";
import { Files } from "./files.js";
import { newRunId } from "./ids.js";
import { hasTwoForms, keyText } from "./keys.js";
import { chunks, gather, type Chunk } from "./output.js";
import { PlainText } from "./plain.js";
import { askHumans, type AskOptions } from "./question.js";
import { deadlineOf, remaining, Run, WAIT_MS, type WaitOptions } from "./run.js";
import { orAbort, pause } from "./signals.js";
import { Turn } from "./turn.js";
import { Typist, type TypeOptions } from "./typist.js";
import type {
  Contract,
  Detect,
  GraphParams,
  NewParams,
  QuestionView,
  ReadParams,
  RunAnswer,
  RunStartParams,
  ScreenAnswer,
  SendAnswer,
  SessionView,
  StateView,
  WaitAnswer,
} from "./types.js";

/** What to start. A command as one text is given to `sh -c`; without a command it is the user's shell. */
export interface OpenOptions extends CallOptions, Partial<Omit<NewParams, "command" | "env">> {
  command?: string | string[];
  /** Variables besides those of the client, or of the host where the client is elsewhere; `null` leaves one of ours out. */
  env?: Record<string, string | null> | string[];
  /** `false`: fails with `name_taken` where a live session has the name. */
  existing?: boolean;
}

/**
 * How a command is run. With `cwd`, `env` or `stdin` it runs in a child of the shell, and the shell's own directory and variables stay
 * as they are; people see them in the terminal.
 */
export interface RunOptions extends CallOptions, Own {
  /** The same key runs once, even across crashes. Keys are each actor's own. */
  key?: string;
  /** The key is everybody's: whoever uses it with the same command finds the same run. */
  shared?: boolean;
  /** How to detect its end in a shell without integration. */
  detect?: Detect;
  /** Why it is run, in a sentence: for policies, and for the human who may be asked. */
  intent?: string;
  /** What it promises: its effects are measured and held against it. */
  contract?: Contract;
}

/** How long its end is waited for, and who hears of its output meanwhile. */
export interface RunAndWaitOptions extends WaitOptions {
  /** Gets what is printed, as it comes. */
  onOutput?: (text: string) => void;
}

/** What to wait for. */
export type Awaited =
  | "exit"
  | "idle"
  | "waiting"
  | { port: number }
  /** A text on the screen, or in the output from `from` on. */
  | { text: string | RegExp; from?: number }
  | { state: StateView["state"] };

/** What came: which of them is there follows from what was waited for. */
export interface Came {
  /** How the command ended, where it did. */
  exit?: WaitAnswer["exit"];
  state?: StateView;
  /** The process that listens on the port. */
  listener?: WaitAnswer["listener"];
  /** The text that fits. */
  text?: string;
}

const encoder = new TextEncoder();

/** A keeper is reached within some milliseconds. */
const UNREACHED_MS = 20;

/** The state a word of `session.wait` stands for, and the other way round. */
const UNTIL: Partial<Record<StateView["state"], "idle" | "waiting" | "exit">> = {
  idle_prompt: "idle",
  waiting: "waiting",
  ended: "exit",
};

export class Session {
  /** Its id, for all time. */
  readonly id: string;
  /** As it was when it was last asked for. */
  view: SessionView;
  /** The turn: who may type. */
  readonly turn: Turn;
  /** Files of its working tree. */
  readonly files: Files;
  readonly client: Client;
  private readonly typist: Typist;

  constructor(client: Client, view: SessionView) {
    this.client = client;
    this.view = view;
    this.id = view.id;
    this.turn = new Turn(client, view.id);
    this.files = new Files(client, view.id);
    this.typist = new Typist(view.id, async () => ({ connection: await client.link.connection(), params: {} }));
  }

  /** Its name when it was last asked for. */
  get name(): string {
    return this.view.name;
  }

  /** Gets its current state. */
  async get(options: CallOptions = {}): Promise<SessionView> {
    this.view = await this.client.call("session.get", { session: this.id }, options);
    return this.view;
  }

  /** Runs a command in its shell, and waits for the end. Several at once run one after the other. */
  async run(command: string, options: RunOptions & RunAndWaitOptions = {}): Promise<RunAnswer> {
    const { timeoutMs, onOutput, ...how } = options;
    const deadline = deadlineOf(timeoutMs);
    return this.inLine(deadline, how.signal, async () => {
      const wait_ms = onOutput ? 0 : Math.ceil(Math.min(deadline - Date.now(), WAIT_MS));
      const run = await this.enter(command, how, Math.max(wait_ms, 0), deadline);
      return run.told({ ...(how.signal ? { signal: how.signal } : {}), ...(onOutput ? { onOutput } : {}) }, deadline);
    });
  }

  /** Runs a command in its shell, and does not wait for the end. A shell that still reads its own files is waited for. */
  async start(command: string, options: RunOptions = {}): Promise<Run> {
    const forever = deadlineOf(undefined);
    return this.inLine(forever, options.signal, () => this.enter(command, options, 0, forever));
  }

  /** Runs of one client in one session wait for each other, in order. */
  private inLine<T>(deadline: number, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    return this.client.lines.next(this.id, work, deadline, signal);
  }

  private async enter(command: string, options: RunOptions, wait_ms: number, deadline: number): Promise<Run> {
    const { signal, cwd, env, stdin, ...how } = options;
    const call = signal ? { signal } : {};
    const own: Own = { ...(cwd === undefined ? {} : { cwd }), ...(env ? { env } : {}), ...(stdin === undefined ? {} : { stdin }) };
    // Drawn here: after a lost answer the same run is asked for, not another one.
    const params: RunStartParams = { session: this.id, run: newRunId(), command: withOwn(command, own), wait_ms, ...how };
    for (;;) {
      try {
        return new Run(this.client, await this.client.call("run.start", params, call));
      } catch (error) {
        if (!isStarting(error) || Date.now() >= deadline) throw error;
      }
      const timeout_ms = Math.ceil(Math.max(Math.min(deadline - Date.now(), WAIT_MS), 0));
      await this.client.call("session.wait", { session: this.id, until: "idle", timeout_ms }, call);
    }
  }

  /** Types text or bytes, exactly once. */
  send(input: string | Uint8Array, options: TypeOptions = {}): Promise<SendAnswer> {
    return this.typist.send(typeof input === "string" ? encoder.encode(input) : input, options);
  }

  /** Presses keys by their names: `session.keys("C-c")`, `session.keys("Up", "Enter")`. */
  async keys(...names: string[]): Promise<SendAnswer> {
    let texts = names.map((name) => keyText(name));
    if (texts.some(hasTwoForms)) {
      const { application_cursor: application = false } = await this.screen();
      texts = names.map((name) => keyText(name, application));
    }
    return this.send(texts.join(""));
  }

  /** Get the screen as text. */
  screen(options: CallOptions & { ansi?: boolean; history?: number } = {}): Promise<ScreenAnswer> {
    const { signal, ...how } = options;
    return this.client.call("session.screen", { session: this.id, ...how }, signal ? { signal } : {});
  }

  /**
   * Output from an offset on (from the oldest that is kept, where none is given), each byte once and in order, or a gap. Goes on
   * across broken connections until the session ends; with `follow: false` until what is there was given, in pieces of at most `max` bytes.
   */
  output(options: CallOptions & { from?: number; follow?: boolean; max?: number } = {}): AsyncGenerator<Chunk, void, void> {
    const { from: start, follow = true, max, signal } = options;
    if (follow) return this.follow(start, signal);
    let head = Number.POSITIVE_INFINITY;
    return chunks(
      start,
      async (from) => {
        const params = { session: this.id, ...(from === undefined ? {} : { from }), ...(max === undefined ? {} : { max }) };
        const answer = await this.readOnce(params, signal);
        head = Math.min(head, answer.head);
        return answer;
      },
      (piece) => piece.end || piece.to >= head,
    );
  }

  /** Output as the host pushes it, over whatever connection there is. */
  private async *follow(from: number | undefined, signal?: AbortSignal): AsyncGenerator<Chunk, void, void> {
    let at = from;
    for (;;) {
      const output = (await this.client.link.connection(signal)).follow(this.id, at);
      try {
        for (let isOver = false; !isOver; ) {
          await orAbort(output.ready(), signal);
          const { gap, from: offset, to, bytes, end } = output.take();
          at = to;
          if (gap) yield { gap };
          if (bytes.length > 0) yield { offset, bytes };
          output.done(bytes.length);
          isOver = end;
        }
      } catch (error) {
        if (!isBroken(error)) throw error;
        continue;
      } finally {
        output.stop();
      }
      // A host that has not reached the session's keeper yet takes it for ended.
      if ((await this.get(signal ? { signal } : {})).life !== "running") return;
      await pause(UNREACHED_MS, signal);
    }
  }

  /** Reads once. A host that has not reached the session's keeper yet takes it for ended: that is asked about, and waited for. */
  private async readOnce(params: ReadParams, signal?: AbortSignal): Promise<Answer<"session.read">> {
    const call = signal ? { signal } : {};
    const answer = await this.client.call("session.read", params, call);
    if (!answer.end || (await this.get(call)).life !== "running") return answer;
    await pause(UNREACHED_MS, signal);
    return { ...answer, end: false };
  }

  /** The output that is kept, from an offset on, as it is now. */
  read(options: CallOptions & { from?: number } = {}): Promise<Uint8Array> {
    return gather(this.output({ ...options, follow: false }));
  }

  /** The last lines of the screen and of what scrolled off it, as text. */
  async tail(lines = 20, options: CallOptions = {}): Promise<string> {
    const { rows, history } = await this.screen({ ...options, history: lines });
    const all = [...history, ...rows];
    while (all.length > 0 && all.at(-1)?.trim() === "") all.pop();
    return all.slice(-lines).join("\n");
  }

  /** Gets what it is doing. */
  state(options: CallOptions = {}): Promise<StateView> {
    return this.client.call("session.state", { session: this.id }, options);
  }

  /** Waits for an event. Fails with `timeout`, or with `ended` if the session ends first. */
  async waitFor(what: Awaited, options: WaitOptions = {}): Promise<Came> {
    const { timeoutMs, signal } = options;
    const deadline = deadlineOf(timeoutMs);
    if (typeof what === "object" && "text" in what) return this.waitForText(what.text, what.from, deadline, signal);
    if (typeof what === "object" && "state" in what && UNTIL[what.state] === undefined) {
      return this.waitForState(what.state, deadline, signal);
    }
    const until = typeof what === "object" && "state" in what ? (UNTIL[what.state] ?? "exit") : what;
    for (;;) {
      const timeout_ms = Math.ceil(remaining(deadline, said(what)));
      const call = signal ? { signal } : {};
      const { exit, state, listener } = await this.client.call("session.wait", { session: this.id, until, timeout_ms }, call);
      const came: Came = { ...(exit ? { exit } : {}), ...(state ? { state } : {}), ...(listener ? { listener } : {}) };
      if (until === "exit" ? exit : typeof until === "object" ? listener : state) return came;
      if (exit) throw ended(this.name, said(what), exit);
    }
  }

  private async waitForState(state: StateView["state"], deadline: number, signal?: AbortSignal): Promise<Came> {
    let after: number | undefined;
    for (;;) {
      const now = await this.state(signal ? { signal } : {});
      if (now.state === state) return { state: now };
      if (now.state === "ended") throw ended(this.name, said({ state }), now.exit);
      // Something has happened, or a while has passed: it is looked at again.
      const wait_ms = Math.ceil(Math.min(remaining(deadline, said({ state })), 1_000));
      const params = { session: this.id, wait_ms, ...(after === undefined ? {} : { after }) };
      after = (await this.client.call("session.watch", params, signal ? { signal } : {})).to;
    }
  }

  private async waitForText(pattern: string | RegExp, from: number | undefined, deadline: number, signal?: AbortSignal): Promise<Came> {
    const call = signal ? { signal } : {};
    const fits = (text: string) => {
      if (typeof pattern === "string") return text.includes(pattern) ? pattern : undefined;
      return new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, "")).exec(text)?.[0];
    };
    const plain = new PlainText();
    let at = from;
    for (;;) {
      // The screen has what was drawn in pieces; the output what scrolled away since.
      if (from === undefined) {
        const screen = await this.screen(call);
        const text = fits(screen.rows.map((row) => row.trimEnd()).join("\n"));
        if (text !== undefined) return { text };
        at ??= screen.offset;
      }
      const wait_ms = Math.ceil(remaining(deadline, said({ text: pattern })));
      const piece = await this.readOnce({ session: this.id, from: at ?? 0, wait_ms }, signal);
      if (piece.gap) plain.cut();
      at = piece.to;
      const text = fits(plain.push(piece.bytes));
      if (text !== undefined) return { text };
      if (piece.end) throw ended(this.name, said({ text: pattern }));
    }
  }

  /** Attaches a terminal. */
  attach(options: AttachOptions): Attachment {
    return new Attachment(this.client.link.fork(), this.id, options);
  }

  /** Its events. */
  events(options: CallOptions & { after?: number } = {}): AsyncGenerator<WatchEvent, void, void> {
    return this.client.events({ ...options, session: this.id });
  }

  /** Gets its processes, their files and sockets, and the act that started each. */
  graph(params: Omit<GraphParams, "session"> = {}, options: CallOptions = {}) {
    return this.client.call("graph.get", { ...params, session: this.id }, options);
  }

  /** Lists its listening ports. */
  ports(options: CallOptions = {}) {
    return this.client.call("graph.ports", { session: this.id }, options);
  }

  /** Gets the names in its shell, and who changed them. */
  env(options: CallOptions & { all?: boolean } = {}) {
    const { signal, ...how } = options;
    return this.client.call("session.env", { session: this.id, ...how }, signal ? { signal } : {});
  }

  /** Its runs. */
  runs(options: CallOptions = {}) {
    return this.client.runs({ ...options, session: this.id });
  }

  /** Asks its humans a question and waits until it is answered or closed. */
  ask(text: string, options: AskOptions = {}): Promise<QuestionView> {
    return askHumans(this.client, this.id, text, options);
  }

  /** Sends a signal by its number: to the foreground group, or to another target. */
  signal(number: number, target: "foreground" | "command" | "tree" = "foreground", options: CallOptions = {}) {
    const targets = { foreground: 0, command: 1, tree: 2 };
    return this.client.call("session.signal", { session: this.id, number, target: targets[target] }, options);
  }

  /** Resizes its terminal, `80x24`. */
  resize(size: string, options: CallOptions = {}) {
    return this.client.call("session.resize", { session: this.id, size }, options);
  }

  /** Renames it. */
  async rename(name: string, options: CallOptions = {}): Promise<SessionView> {
    this.view = await this.client.call("session.rename", { session: this.id, name }, options);
    return this.view;
  }

  /** Keeps it from being reaped, for `forMs` or until further notice; with `off` no longer. */
  async keep(options: CallOptions & { forMs?: number; off?: boolean } = {}): Promise<SessionView> {
    const { forMs: for_ms = null, off = false, signal } = options;
    this.view = await this.client.call("session.keep", { session: this.id, for_ms, off }, signal ? { signal } : {});
    return this.view;
  }

  /** Ends the session and its whole process tree: SIGHUP, then SIGKILL after a grace period. */
  async end(options: CallOptions & { graceMs?: number } = {}): Promise<SessionView> {
    const { graceMs: grace_ms = 5_000, signal } = options;
    this.view = await this.client.call("session.end", { session: this.id, grace_ms }, signal ? { signal } : {});
    return this.view;
  }

  /** Gives a lost session another life; with `run` its command is run again. False: it was running already. */
  async recover(options: CallOptions & { run?: boolean } = {}): Promise<boolean> {
    const { run = false, signal } = options;
    const answer = await this.client.call("session.recover", { session: this.id, run }, signal ? { signal } : {});
    this.view = answer.session;
    return answer.began;
  }
}

/** Whether nothing was run because the shell still reads its own files. */
function isStarting(error: unknown): boolean {
  if (!(error instanceof HoldfastError) || error.code !== "shell_busy") return false;
  return (error.details as { starting?: boolean } | undefined)?.starting === true;
}

function said(what: Awaited): string {
  if (typeof what === "string") return what === "exit" ? "its end" : `the state ${what}`;
  if ("port" in what) return `a listener at port ${what.port}`;
  if ("text" in what) return `the text ${String(what.text)}`;
  return `the state ${what.state}`;
}

function ended(name: string, what: string, exit?: unknown): HoldfastError {
  return new HoldfastError("ended", `session ${name} ended while waiting for ${what}`, { details: { exit } });
}

/** What a session is started with: what was asked for on top of what the client has. What neither says the host fills in. */
export function newParams(defaults: Partial<NewParams>, wanted: Omit<OpenOptions, "signal">): NewParams {
  const { command, env, existing: _, ...rest } = wanted;
  const params: NewParams = { ...defaults, ...rest };
  if (command !== undefined) params.command = typeof command === "string" ? ["/bin/sh", "-c", command] : command;
  if (Array.isArray(env)) params.env = env;
  else if (env) {
    const given = Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== null);
    const pairs = given.map(([key, value]) => `${key}=${value}`);
    const isOurs = (pair: string) => !Object.hasOwn(env, pair.slice(0, pair.indexOf("=")));
    if (defaults.env) params.env = [...defaults.env.filter(isOurs), ...pairs];
    else params.env_add = pairs;
  }
  return params;
}
