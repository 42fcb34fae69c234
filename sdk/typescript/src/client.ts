// A client of one host: every operation by its name, and objects for what people think in.

import { HoldfastError } from "./errors.js";
import { NO_BYTES } from "./frame.js";
import { newRunId } from "./ids.js";
import { quoted, withOwn } from "./command.js";
import { Lines } from "./lines.js";
import { Link, RETRY, type Retry } from "./link.js";
import { Session, type OpenOptions, type RunAndWaitOptions, newParams } from "./session.js";
import { deadlineOf, Run, WAIT_MS } from "./run.js";
import type { Dialer } from "./transport.js";
import {
  GIVES_BYTES,
  type GivesBytes,
  type NewParams,
  type Operations,
  type QuestionView,
  type RunAnswer,
  type SendsBytes,
  type SessionEvent,
} from "./types.js";

/** The name of an operation. */
export type OperationName = keyof Operations;
/** What it is asked with. */
export type Params<O extends OperationName> = Operations[O]["params"];
/** What it answers, with the bytes that came along. */
export type Answer<O extends OperationName> = O extends GivesBytes
  ? Operations[O]["answer"] & { bytes: Uint8Array }
  : Operations[O]["answer"];

/** How something is asked. */
export interface CallOptions {
  /** Cancels the call. The host may still perform the request. */
  signal?: AbortSignal;
}

type WithBytes<O extends OperationName> = O extends SendsBytes ? CallOptions & { bytes: Uint8Array } : CallOptions;

/** Parameters may be left out where none is required; bytes may not where they are what it is about. */
export type CallArguments<O extends OperationName> = O extends SendsBytes
  ? [params: Params<O>, options: WithBytes<O>]
  : Record<string, never> extends Params<O>
    ? [params?: Params<O>, options?: CallOptions]
    : [params: Params<O>, options?: CallOptions];

/** How a client behaves. */
export interface ClientOptions {
  /** What it calls itself in the host's log. */
  name?: string;
  /** How a broken connection is dealt with. */
  retry?: Partial<Retry>;
}

/** How a command is run in a session of its own: a text by the shell of the host's user, words as they are. */
export interface RunNewOptions extends CallOptions, Pick<OpenOptions, "name" | "cwd" | "env" | "size"> {
  /** The same key runs once, even across crashes. Keys are each actor's own. */
  key?: string;
  /** The key is everybody's. */
  shared?: boolean;
  /** A text that it reads in place of the terminal. */
  stdin?: string;
  /** What it writes to its standard error is not in its output, but in `stderr` of the answer. */
  separateStderr?: boolean;
  /** The session stays listed when it has ended. */
  keep?: boolean;
  /** Another machine, by the name that `holdfast hosts` has for it: see `Client.at`. */
  host?: string;
}

/** An event, or the number of events that were dropped. */
export type WatchEvent = SessionEvent | { event: "lost"; lost: number };

/**
 * What may be asked again when an answer was lost: it only looks, or is done once by its own number (`session.send` by stream and
 * seq, `run.start` and `question.ask` by the id or key they draw). Everything else fails with `disconnected`, and its caller looks what became of it.
 */
const REPEATABLE = new Set<string>([
  "hello",
  "actor.list",
  "actor.me",
  "actor.record",
  "approval.get",
  "approval.list",
  "flow.get",
  "flow.list",
  "checkpoint.check",
  "checkpoint.list",
  "device.list",
  "files.changes",
  "files.diff",
  "files.list",
  "files.read",
  "files.upload",
  "fork.diff",
  "grant.list",
  "graph.get",
  "graph.ports",
  "graph.watch",
  "host.metrics",
  "host.status",
  "invite.list",
  "page.get",
  "policy.get",
  "policy.may",
  "question.get",
  "question.list",
  "relay.list",
  "run.get",
  "run.list",
  "run.output",
  "run.trace",
  "session.cost",
  "session.env",
  "session.get",
  "session.handover",
  "session.journal",
  "session.list",
  "session.read",
  "session.screen",
  "session.send",
  "session.state",
  "session.wait",
  "session.watch",
  "token.list",
  "turn.get",
]);

function mayRepeat(method: string, params: unknown): boolean {
  if (method === "run.start") return typeof (params as { run?: unknown }).run === "string";
  if (method === "question.ask") return typeof (params as { key?: unknown }).key === "string";
  return REPEATABLE.has(method);
}

/** Whether the host is asked to wait before it answers. */
function waits(params: { wait_ms?: number; timeout_ms?: number | null }): boolean {
  return (params.wait_ms ?? 0) > 0 || params.timeout_ms !== undefined;
}

export class Client {
  /** The way to the host. */
  readonly link: Link;
  /** Another one, for what waits: a connection has a bound of open questions, and typing must not wait behind that. */
  private readonly waiting: Link;
  /** What a session starts with where nothing is said; a local client gives its directory and environment. */
  defaults: () => Partial<NewParams> = () => ({});
  /** Who runs something in which session. */
  readonly lines = new Lines();
  /** How another machine is reached from here; none: not from here. */
  reach: ((host: string) => Promise<Client>) | undefined;
  private readonly far = new Map<string, Promise<Client>>();

  constructor(dialer: Dialer, options: ClientOptions = {}) {
    this.link = new Link(dialer, options.name ?? "@holdfast/client", { ...RETRY, ...options.retry });
    this.waiting = this.link.fork();
  }

  /** Asks for an operation. */
  async call<O extends OperationName>(operation: O, ...args: CallArguments<O>): Promise<Answer<O>> {
    const [params, options] = args as [Params<O> | undefined, (CallOptions & { bytes?: Uint8Array }) | undefined];
    return (await this.raw(operation, params ?? {}, options)) as Answer<O>;
  }

  /** Asks for an operation by its name, also one that this client's types do not know. */
  async raw(operation: string, params: object, options: CallOptions & { bytes?: Uint8Array } = {}): Promise<unknown> {
    return ask(waits(params) ? this.waiting : this.link, operation, params, options);
  }

  /** Lists the sessions you may observe; can include ended ones. */
  async sessions(options: CallOptions & { all?: boolean } = {}): Promise<Session[]> {
    const { all = false, ...call } = options;
    const views = await this.call("session.list", { all }, call);
    return views.map((view) => new Session(this, view));
  }

  /** Gets one session by name, id, or prefix of its id. */
  async session(session: string, options: CallOptions = {}): Promise<Session> {
    return new Session(this, await this.call("session.get", { session }, options));
  }

  /** Gives the live session of this name, or starts one: a shell, unless a command is given. */
  async open(options: OpenOptions = {}): Promise<Session> {
    const { signal, ...wanted } = options;
    const call = signal ? { signal } : {};
    const params = newParams(this.defaults(), wanted);
    const { name } = wanted;
    if (name === undefined || name === null || wanted.existing === false) return new Session(this, await this.call("session.new", params, call));
    for (let tries = 0; ; tries++) {
      const found = await this.session(name, call).catch(unless("not_found"));
      if (found?.view.life === "running") return found;
      // Somebody else was faster, or we were and the answer was lost: then it is there.
      const made = await this.call("session.new", params, call).catch(unless("name_taken", "disconnected"));
      if (made) return new Session(this, made);
      if (tries === OPEN_TRIES) throw new HoldfastError("disconnected", `session ${name} could not be opened`);
    }
  }

  /** Starts a command in a session made for it, and does not wait for its end. */
  async start(command: string | string[], options: RunNewOptions = {}): Promise<Run> {
    const { signal, key, shared, stdin, separateStderr, keep, host, ...wanted } = options;
    if (host !== undefined) {
      const { host: _, ...there } = options;
      return (await this.at(host)).start(command, there);
    }
    const text = stdin === undefined ? command : withOwn(asText(command), { stdin });
    const { command: _, ...defaults } = this.defaults();
    const isText = typeof text === "string";
    const params = {
      new: newParams(defaults, isText ? wanted : { ...wanted, command: text }),
      ...(isText ? { command: text } : {}),
      ...(key === undefined ? {} : { key }),
      ...(shared ? { shared } : {}),
      ...(keep ? { keep } : {}),
      ...(separateStderr ? { separate_stderr: true } : {}),
      run: newRunId(),
    };
    return new Run(this, await this.call("run.start", params, signal ? { signal } : {}));
  }

  /** Runs a command in a session made for it, and waits for its end. */
  async run(command: string | string[], options: RunNewOptions & RunAndWaitOptions = {}): Promise<RunAnswer> {
    const { timeoutMs, onOutput, ...how } = options;
    const deadline = deadlineOf(timeoutMs);
    const run = await this.start(command, how);
    return run.told({ ...(how.signal ? { signal: how.signal } : {}), ...(onOutput ? { onOutput } : {}) }, deadline);
  }

  /**
   * A client of another machine, by the name that `holdfast hosts` has for it. It is closed with this one. You are another actor there,
   * whose name the journal has.
   */
  at(host: string): Promise<Client> {
    const known = this.far.get(host);
    if (known) return known;
    if (!this.reach) {
      const hint = "machines are known to a host of this machine: connect() of @holdfast/client/node, without an address";
      return Promise.reject(new HoldfastError("bad_request", `cannot reach ${host} from here`, { hint }));
    }
    const reached = this.reach(host);
    this.far.set(host, reached);
    // The next one tries again.
    reached.catch(() => this.far.delete(host));
    return reached;
  }

  /** A run by its id, or by its key. */
  async getRun(run: string, options: CallOptions = {}): Promise<Run> {
    return new Run(this, await this.call("run.get", { run }, options));
  }

  /** Lists the runs of all sessions you may observe. */
  runs(options: CallOptions & { session?: string } = {}) {
    const { session, ...call } = options;
    return this.call("run.list", session === undefined ? {} : { session }, call);
  }

  /** Yields events of all sessions you may observe, or of one, starting with what each is doing. Ends when it is aborted. */
  async *events(options: CallOptions & { session?: string; after?: number } = {}): AsyncGenerator<WatchEvent, void, void> {
    const { session, signal } = options;
    let after = options.after;
    for (;;) {
      const params = { wait_ms: WAIT_MS, ...(session === undefined ? {} : { session }), ...(after === undefined ? {} : { after }) };
      const answer = await this.call("session.watch", params, signal ? { signal } : {});
      if (answer.lost) yield { event: "lost", lost: answer.lost };
      for (const event of answer.events) yield event;
      after = answer.to;
    }
  }

  /** Lists listening ports of all sessions, or of one. */
  ports(options: CallOptions & { session?: string } = {}) {
    const { session, ...call } = options;
    return this.call("graph.ports", session === undefined ? {} : { session }, call);
  }

  /** Actors the host knows. */
  actors(options: CallOptions = {}) {
    return this.call("actor.list", {}, options);
  }

  /** Get the host's version and status. */
  status(options: CallOptions = {}) {
    return this.call("host.status", {}, options);
  }

  /** Lists open questions of all sessions you may observe, or of one; can include closed ones. */
  questions(options: CallOptions & { session?: string; all?: boolean } = {}): Promise<QuestionView[]> {
    const { signal, ...params } = options;
    return this.call("question.list", params, signal ? { signal } : {});
  }

  /** Answers a question as it was read, by a text or by the number of an option. Only a human can. */
  answer(question: Pick<QuestionView, "id" | "hash">, answer: string | number, options: CallOptions = {}): Promise<QuestionView> {
    const read = { question: question.id, seen: question.hash };
    const params = typeof answer === "string" ? { ...read, text: answer } : { ...read, option: answer };
    return this.call("question.answer", params, options);
  }

  /** Connects now and returns the host's greeting. Calls connect by themselves. */
  async connect(options: CallOptions = {}) {
    return (await this.link.connection(options.signal)).hello;
  }

  /** Opens another connection, for a network that changed silently. Repeats requests that may be repeated. */
  reconnect(): void {
    this.link.drop();
    this.waiting.drop();
  }

  /** Closes the connection. Sessions keep running; pending calls fail. */
  close(): void {
    for (const far of this.far.values()) void far.then((client) => client.close(), () => undefined);
    this.far.clear();
    this.link.close();
    this.waiting.close();
    this.onClose?.();
  }

  /** Lets go of what the way to the host needs besides. */
  onClose: (() => void) | undefined;

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}

/** How often a session of a name is looked for and made: each time somebody else was faster. */
const OPEN_TRIES = 5;

/** Takes failures of these kinds for nothing found. */
function unless(...codes: string[]): (error: unknown) => undefined {
  return (error) => {
    if (!(error instanceof HoldfastError) || !codes.includes(error.code)) throw error;
    return undefined;
  };
}

function asText(command: string | string[]): string {
  return typeof command === "string" ? command : command.map(quoted).join(" ");
}

/** Asks over a link; an object that came with bytes has them as `bytes`. */
export async function ask(
  link: Link,
  operation: string,
  params: object,
  options: CallOptions & { bytes?: Uint8Array } = {},
): Promise<unknown> {
  const { bytes = NO_BYTES, signal } = options;
  const answered = await link.call(operation, params, { bytes, signal, repeat: mayRepeat(operation, params) });
  const { result } = answered;
  if ((GIVES_BYTES as readonly string[]).includes(operation)) {
    if (result === null || typeof result !== "object") {
      throw new HoldfastError("protocol", `the answer to ${operation} is not an object`);
    }
    return { ...result, bytes: answered.bytes };
  }
  return result;
}
