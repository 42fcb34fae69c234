// What a flow can do. Each call asks for a numbered step; the same code asks for the same steps each time.

import { randomUUID } from "node:crypto";
import { quoted } from "../command.js";
import { Book, Failed, inJson } from "./book.js";

/** `"5d"`, or milliseconds. */
export type Duration = string | number;

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

export function milliseconds(duration: Duration): number {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/.exec(String(duration));
  const ms = typeof duration === "number" ? duration : Number(found?.[1]) * (UNITS[found?.[2] ?? ""] ?? NaN);
  if (!(ms >= 0)) throw new RangeError(`invalid duration ${JSON.stringify(duration)}; expected a number and ms, s, m, h, d or w, for example "5d"`);
  return Math.trunc(ms);
}

/** How coding agents are given a task that they do without asking, to its end. */
const AGENTS: Record<string, string> = { claude: "claude -p", codex: "codex exec", gemini: "gemini -p", opencode: "opencode run" };

const orNone = (duration: Duration | undefined) => (duration === undefined ? undefined : milliseconds(duration));

/** How a command is run. */
export interface RunOptions {
  /** The session whose shell runs it; none: a new one for this run. */
  session?: string;
  /** How often it is tried again after a failure. */
  retries?: number;
  /** The pause before the first retry; it doubles with each. */
  backoff?: Duration;
  /** It is interrupted after this long, which is a failure. */
  timeout?: Duration;
  /** The command that undoes it if the flow fails later; `{{ output }}` in it is this step's output. */
  undo?: string;
  /** What happens if nobody can know what became of it: a human decides, it runs again, or it has failed. */
  onLost?: "ask" | "again" | "fail";
}

/** How a coding agent is run. */
export interface AgentOptions extends Pick<RunOptions, "timeout" | "undo" | "onLost"> {
  /** `claude`, `codex`, `gemini`, `opencode`, or the beginning of a command that takes the task as its last word. */
  agent?: string;
  name?: string;
}

/** What is waited for in a session: its command's end, an empty prompt, a program that waits for input, or a port. */
export type WaitFor = "exit" | "idle" | "waiting" | { port: number };

/** Something that was asked for. Awaiting it gives what came of it; several can be open at once. */
export class Step<T> implements PromiseLike<T> {
  readonly name: string;
  readonly #book: Book;
  readonly #n: number;
  readonly #convert: (value: unknown) => T;

  /** Only `ctx` makes steps. */
  constructor(book: Book, n: number, name: string, convert: (value: unknown) => T) {
    this.name = name;
    this.#book = book;
    this.#n = n;
    this.#convert = convert;
  }

  /** Its number in the flow, from 0. */
  get n(): number {
    return this.#n;
  }

  /** Whether its outcome is known. */
  get done(): boolean {
    return this.#book.outcomes.has(this.#n);
  }

  /** Whether it is known that it failed. */
  get failed(): boolean {
    return this.#book.outcomes.get(this.#n)?.ok === false;
  }

  /** What came of it; throws `Failed` where it failed. */
  result(): T {
    const outcome = this.#book.outcomes.get(this.#n);
    if (!outcome) throw new Error(`${this.name} is not done yet; await it first`);
    if (!outcome.ok) throw new Failed(`${this.name}: ${why(outcome.value)}`, outcome.value);
    return this.#convert(outcome.value);
  }

  then<A = T, B = never>(then?: ((value: T) => A | PromiseLike<A>) | null, caught?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<A | B> {
    const known = new Promise<void>((resolve) => this.#book.when([this.#n], resolve));
    return known.then(() => this.result()).then(then, caught);
  }
}

/** The first of several steps. */
export interface First<T> {
  /** Its place among them. */
  index: number;
  step: Step<T>;
  /** What came of it; throws `Failed` where it failed. */
  result(): T;
}

function why(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  const { expired, why, exit_code, state } = value as Record<string, unknown>;
  if (why) return String(why);
  if (expired) return "nobody answered in time";
  return typeof exit_code === "number" ? `exit ${exit_code}` : String(state ?? "failed");
}

const output = (value: unknown) => String((value as { output?: string } | null)?.output ?? "").replace(/[\r\n]+$/, "");
const nothing = () => undefined;

/** What a flow can do. */
export class Context {
  /** The flow's id. */
  readonly id: string;
  readonly #book: Book;

  /** Only a worker makes one. */
  constructor(id: string, book: Book) {
    this.id = id;
    this.#book = book;
  }

  #ask<T>(command: { do: string; name: string } & Record<string, unknown>, convert: (value: unknown) => T, local?: () => unknown): Step<T> {
    return new Step(this.#book, this.#book.ask(command, local), command.name, convert);
  }

  /** Runs a command in a session's shell, or in a new session, once; gives its output. It has failed unless it ends with status 0. */
  run(name: string, command: string, options: RunOptions = {}): Step<string> {
    const { session, retries = 0, backoff = 0, timeout, undo, onLost = "ask" } = options;
    const times = { backoff_ms: milliseconds(backoff), timeout_ms: orNone(timeout) };
    return this.#ask({ do: "run", name, command, session, retries, ...times, undo, on_lost: onLost }, output);
  }

  /** Gives a coding agent a task, in a session's shell or in a new session, and waits for its end; gives what it printed. */
  agent(session: string | undefined, task: string, options: AgentOptions = {}): Step<string> {
    const { agent = "claude", name = "Agent", ...run } = options;
    return this.run(name, `${AGENTS[agent] ?? agent} ${quoted(task)}`, { ...run, ...(session === undefined ? {} : { session }) });
  }

  /**
   * Waits for something in a session; gives the status of its command where that ended. Has failed if it does not come in time, or the
   * session ends first.
   */
  wait(session: string, until: WaitFor = "exit", options: { timeout?: Duration; name?: string } = {}): Step<number | undefined> {
    const { timeout, name = "Wait" } = options;
    const status = (value: unknown) => (value as { exit_code?: number } | null)?.exit_code;
    return this.#ask({ do: "wait", name, session, until, timeout_ms: orNone(timeout) }, status);
  }

  /** Waits for so much elapsed time, whatever dies meanwhile. Setting the clock does not change it. */
  sleep(duration: Duration, name = "Timer"): Step<void> {
    return this.#ask({ do: "sleep", name, ms: milliseconds(duration) }, nothing);
  }

  /** Waits for a moment of the wall clock: a date, or milliseconds since the epoch. */
  until(moment: Date | number, name = "Timer"): Step<void> {
    const at = Math.trunc(Number(moment));
    if (!(at >= 0)) throw new RangeError("invalid moment; expected a Date, or milliseconds since the epoch");
    return this.#ask({ do: "until", name, at_ms: at }, nothing);
  }

  /** Asks the humans (`holdfast flow answer`); has failed if nobody answers before it expires. */
  ask<O extends string = string>(text: string, options: { options?: readonly O[]; expires?: Duration; name?: string } = {}): Step<O> {
    const { options: choices = [], expires, name = "Ask" } = options;
    return this.#ask({ do: "ask", name, text, options: [...choices], expires_ms: orNone(expires) }, (value) => (value as { answer: O }).answer);
  }

  /** Asks the humans for a yes: whether somebody approved. Has failed if nobody answers before it expires. */
  approve(text: string, options: { expires?: Duration; name?: string } = {}): Step<boolean> {
    const { expires, name = "Approve" } = options;
    const asked = { do: "ask", name, text, options: ["approve", "deny"], expires_ms: orNone(expires) };
    return this.#ask(asked, (value) => (value as { answer: string }).answer === "approve");
  }

  /** Waits for a signal; one that came early is there already. */
  signal<T = unknown>(name: string, options: { timeout?: Duration } = {}): Step<T> {
    return this.#ask({ do: "signal", name, timeout_ms: orNone(options.timeout) }, (value) => value as T);
  }

  /**
   * Starts another flow and waits for its end; gives what it gave. Has failed if that flow fails or is cancelled. It acts as the actor of
   * this one, and is cancelled with it.
   */
  child<T = unknown>(flow: string, input?: unknown, options: { name?: string } = {}): Step<T> {
    const given = input === undefined || input === null ? undefined : inJson(input);
    return this.#ask({ do: "child", name: options.name ?? flow, flow, input: given }, (value) => value as T);
  }

  /**
   * Ends this history and begins a new one under the same id, with this input: for flows that go on for ever. Write
   * `return ctx.continueAsNew(input)`; nothing behind it runs. Signals that no step has taken come along. What was done so far counts as
   * done: it is not undone later.
   */
  continueAsNew(input?: unknown): Promise<never> {
    this.#book.continueAsNew(input === undefined ? null : inJson(input));
    return new Promise<never>(() => {});
  }

  /** Calls a function here, async or not, and records what it gave (as JSON). It may run twice if the worker dies meanwhile. */
  step<T>(name: string, local: () => T | PromiseLike<T>): Step<T> {
    return this.#ask({ do: "step", name }, (value) => value as T, local);
  }

  /** Milliseconds since the epoch, the same in each replay. */
  now(): Step<number> {
    return this.step("now", () => Date.now());
  }

  /** A number from 0 up to 1, the same in each replay. */
  random(): Step<number> {
    return this.step("random", () => Math.random());
  }

  /** A random UUID, the same in each replay. */
  uuid(): Step<string> {
    return this.step("uuid", () => randomUUID());
  }

  /** Registers a command that runs if the flow fails or is cancelled later; the last one first. */
  compensate(name: string, command: string, options: { session?: string } = {}): Step<void> {
    return this.#ask({ do: "undo", name, command, session: options.session }, nothing);
  }

  /** A marker for changed code: 0 for flows that passed here before the change, else `latest` as it was then. */
  version(name: string, latest = 1): number {
    const marker = `version ${name}`;
    const was = this.#book.asked.get(this.#book.next);
    if (was && !(was.do === "step" && was.name === marker)) return 0;
    return this.#book.mark(marker, latest);
  }

  /** What came of each, once all are done; throws as soon as one has failed. */
  all<T extends readonly PromiseLike<unknown>[]>(...steps: T): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
    return Promise.all(steps);
  }

  /** The step that was done first. */
  async race<T>(...steps: Step<T>[]): Promise<First<T>> {
    const numbers = steps.map((step) => step.n);
    await new Promise<void>((resolve) => this.#book.when(numbers, resolve));
    const order = (n: number) => this.#book.outcomes.get(n)?.order ?? Infinity;
    const index = numbers.reduce((first, n, at) => (order(n) < order(numbers[first] ?? n) ? at : first), 0);
    const step = steps[index] as Step<T>;
    return { index, step, result: () => step.result() };
  }

  /** A text as one word of the shell. */
  quote(text: string): string {
    return quoted(text);
  }
}
