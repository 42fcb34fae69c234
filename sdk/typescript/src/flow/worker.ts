// A worker: asks the flow service for flows to decide about, and answers with commands. It may die at any time.

import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { join } from "node:path";
import { disconnected, HoldfastError } from "../errors.js";
import { homeFrom, homeUnder, type Home } from "../node/home.js";
import { Identity } from "../node/identity.js";
import { mustBeOurs } from "../node/trust.js";
import { open } from "../node/unix.js";
import { pause } from "../signals.js";
import { type HistoryEvent } from "./book.js";
import { FLOWS, Replay, type Decision, type Flow } from "./replay.js";
import { load, Shelf, Unloadable } from "./shelf.js";

const VERSION = 1;
/** Flows whose functions are kept where they are: for these the service sends only what is new. */
const HELD_MAX = 1_000;
const WAIT_MS = 300_000;
/** How long a worker that the service started waits for something to do before it ends. */
const KEPT_WAIT_MS = 60_000;
const READY_MS = 15_000;
const START_AGAIN_MS = 500;
/** How soon a service that went away is looked for again. */
const BREAK_MS = 50;

/** The flow service refuses. */
export class Trouble extends Error {
  override readonly name = "Trouble";
  /** For programs; never renamed. */
  readonly code: string;
  /** What to do about it; may be empty. */
  readonly hint: string;

  constructor(error: { code?: string; message?: string; hint?: string }) {
    super(error.message ?? "");
    this.code = error.code ?? "internal";
    this.hint = error.hint ?? "";
  }
}

/** Whose flows, and where. */
export interface WorkerOptions {
  /** Functions by name; otherwise those that `flow(…)` was given. */
  flows?: ReadonlyMap<string, Flow>;
  /** Who decides: only flows that this actor started. */
  actor?: string;
  /** The directory of the home; otherwise HOLDFAST_HOME, or the XDG directories. */
  home?: string;
  /** The program that starts a service where none runs; otherwise HOLDFAST_BIN, or `holdfast`. */
  program?: string;
  /** The file that the functions come from: the service keeps it, and flows that began with an older one go on with that. */
  file?: string;
  /** Hears what the worker has to say. */
  log?: (text: string) => void;
  /** The environment that all of this is looked up in. */
  env?: NodeJS.ProcessEnv;
}

interface Task {
  flow: string;
  name: string;
  code?: string;
  at: number;
  from: number;
  history: HistoryEvent[];
}

/** What stays of a flow between two tasks. */
interface Held {
  replay: Replay;
  code: string;
}

/** What the service gives to a worker that it starts: it decides about the flows of one actor and one file. */
interface Ticket {
  actor: string;
  ticket: string;
}

/** A connection to the flow service that has proven who speaks. */
class Connection {
  readonly #socket: Socket;
  readonly #lines: AsyncIterator<string>;
  #next = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    // What breaks ends the lines; nobody else hears of it.
    socket.on("error", () => {});
    this.#lines = lines(socket);
  }

  static async over(socket: Socket, who: Identity | Ticket): Promise<Connection> {
    const connection = new Connection(socket);
    const hello = await connection.#line();
    if (hello["flows"] !== VERSION) {
      connection.close();
      throw new HoldfastError("protocol", `the flow service speaks version ${hello["flows"]}, this client version ${VERSION}`);
    }
    const isOurs = "ticket" in who;
    connection.#say(isOurs ? { actor: { id: "00".repeat(32), handle: who.actor }, ticket: who.ticket } : who.identify(String(hello["challenge"]), "flows"));
    return connection;
  }

  #say(what: object): void {
    this.#socket.write(`${JSON.stringify(what)}\n`);
  }

  async #line(): Promise<Record<string, unknown>> {
    const line = await this.#lines.next();
    if (line.done) throw disconnected("the flow service went away");
    return JSON.parse(line.value) as Record<string, unknown>;
  }

  /** Asks and waits for the answer. */
  async ask<T>(what: string, params: object): Promise<T> {
    const id = ++this.#next;
    this.#say({ id, do: what, ...params });
    for (;;) {
      const answer = await this.#line();
      if (answer["id"] !== id && answer["id"] !== 0) continue;
      if (answer["error"]) throw new Trouble(answer["error"]);
      if (answer["id"] === id) return answer["ok"] as T;
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** What a line feed ends. Readers that know other ends of lines too would cut a text that has one inside. */
async function* lines(socket: Socket): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  try {
    for await (const bytes of socket as AsyncIterable<Buffer>) {
      let from = 0;
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
        yield Buffer.concat([...parts, bytes.subarray(from, end)]).toString();
        parts = [];
        from = end + 1;
      }
      parts.push(bytes.subarray(from));
    }
  } catch {
    // A connection that broke has ended.
  }
}

/** Connects to the flow service, and starts it where it does not run. */
async function connect(options: WorkerOptions): Promise<Connection> {
  const env = options.env ?? process.env;
  const home = options.home === undefined ? homeFrom(env) : homeUnder(options.home);
  mustBeOurs(home.state);
  mustBeOurs(home.run);
  const who = await Identity.ofHandle(home, options.actor ?? (env["HOLDFAST_ACTOR"] || "agent:node"));
  const deadline = Date.now() + READY_MS;
  for (let startAt = 0; ; await pause(20)) {
    const socket = await open(join(home.run, "flows.sock"));
    if (!(socket instanceof Error)) {
      try {
        return await Connection.over(socket, who);
      } catch (error) {
        if (!(error instanceof HoldfastError && error.code === "disconnected")) throw error;
      }
    }
    if (Date.now() > deadline) {
      throw new HoldfastError("unreachable", `the flow service does not answer; its log is ${join(home.state, "flows.log")}`);
    }
    if (Date.now() >= startAt) {
      await start(options, env, home);
      startAt = Date.now() + START_AGAIN_MS;
    }
  }
}

function start(options: WorkerOptions, env: NodeJS.ProcessEnv, home: Home): Promise<void> {
  const program = options.program ?? (env["HOLDFAST_BIN"] || "holdfast");
  const own = options.home === undefined ? env : { ...env, HOLDFAST_HOME: home.state };
  return new Promise((resolve, reject) => {
    const child = spawn(program, ["flow", "spawn"], { env: own, stdio: "ignore" });
    child.once("exit", () => resolve());
    child.once("error", (error) => {
      const hint = "is `holdfast` installed? name it in HOLDFAST_BIN";
      reject(new HoldfastError("cannot_start", `cannot start the flow service from ${program}: ${error.message}`, { hint }));
    });
  });
}

/** Replays the recorded histories of these flows against their code: each flow's id, and what would block it. */
export async function testHistories(options: WorkerOptions = {}): Promise<Array<[flow: string, blocked: string | undefined]>> {
  const flows = options.flows ?? FLOWS;
  const connection = await connect(options);
  try {
    const found: Array<[string, string | undefined]> = [];
    for (const view of await connection.ask<Array<{ id: string; name: string }>>("list", { all: true })) {
      const run = flows.get(view.name);
      if (!run) continue;
      const replay = new Replay(view.id, run);
      replay.feed((await connection.ask<Task>("get", { flow: view.id })).history);
      const decision = await replay.decide();
      found.push([view.id, "blocked" in decision ? decision.blocked : undefined]);
    }
    return found;
  } finally {
    connection.close();
  }
}

/** Decides about flows of its own actor. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #flows: ReadonlyMap<string, Flow>;
  readonly #shelf: Shelf;

  constructor(options: WorkerOptions = {}) {
    this.#options = options;
    this.#flows = options.flows ?? FLOWS;
    this.#shelf = new Shelf(this.#flows, options.file);
  }

  #log(text: string): void {
    this.#options.log?.(text);
  }

  /** Works until the process ends; a service that dies is found again. */
  async run(): Promise<never> {
    for (;;) {
      const connection = await connect(this.#options);
      try {
        await this.#serve(connection);
      } catch (error) {
        if (!(error instanceof HoldfastError && error.code === "disconnected") && !(error instanceof SyntaxError)) throw error;
        this.#log("the flow service went away; looking for it again");
        await pause(BREAK_MS);
      } finally {
        connection.close();
      }
    }
  }

  /** Works with a file that the service keeps, as long as there is something to do: the service started us, and gave us a ticket. */
  static async kept(options: WorkerOptions & { file: string }, code: string): Promise<void> {
    const env = options.env ?? process.env;
    const home = homeFrom(env);
    const socket = await open(join(home.run, "flows.sock"));
    if (socket instanceof Error) throw new HoldfastError("unreachable", `the flow service does not answer: ${socket.message}`);
    const ticket = { actor: env["HOLDFAST_FLOW_ACTOR"] ?? "", ticket: env["HOLDFAST_FLOW_TICKET"] ?? "" };
    delete env["HOLDFAST_FLOW_TICKET"];
    const connection = await Connection.over(socket, ticket);
    try {
      const flows = await load(connection, options.file, code);
      options.log?.(`worker for ${[...flows.keys()].sort().join(", ")}, with the file ${code.slice(0, 12)}`);
      const worker = new Worker({ ...options, flows });
      worker.#shelf.isKept(code);
      await worker.#serve(connection, KEPT_WAIT_MS);
    } catch (error) {
      // Where the service goes away, the next one starts another worker.
      if (!(error instanceof HoldfastError && error.code === "disconnected")) throw error;
    } finally {
      connection.close();
    }
  }

  /** With a time, only as long as there is something to do within it. */
  async #serve(connection: Connection, onlyMs = 0): Promise<void> {
    // In the order of their last use.
    const held = new Map<string, Held>();
    const own = await this.#shelf.register(connection);
    const ours = own === "" ? {} : { code: own };
    const asked = { names: [...this.#flows.keys()].sort(), max: 32, wait_ms: onlyMs || WAIT_MS, ...ours };
    for (;;) {
      const tasks = await connection.ask<Task[]>("tasks", asked);
      if (onlyMs > 0 && tasks.length === 0) return;
      for (const task of tasks) {
        const code = task.code || own;
        const before = held.get(task.flow);
        held.delete(task.flow);
        let replay: Replay | undefined;
        let decision: Decision;
        try {
          replay = await this.#take(connection, task, code, before?.code === code ? before.replay : undefined);
          decision = await replay.decide();
        } catch (error) {
          if (!(error instanceof Unloadable)) throw error;
          decision = { blocked: error.message };
        }
        if ("blocked" in decision) this.#log(`${task.flow} is blocked: ${decision.blocked}`);
        try {
          await connection.ask("turn", { flow: task.flow, at: task.at, ...decision, ...(code === "" ? {} : { code }) });
        } catch (error) {
          if (!(error instanceof Trouble)) throw error;
          // Somebody else was faster, or it has ended: whatever is next comes as a task.
          this.#log(`${task.flow}: ${error.message}`);
          continue;
        }
        if (!replay || "blocked" in decision || decision.commands.some(([, command]) => ["end", "continue"].includes(command.do))) continue;
        held.set(task.flow, { replay, code });
        const [oldest] = held.keys();
        if (held.size > HELD_MAX && oldest !== undefined) held.delete(oldest);
      }
    }
  }

  /** The flow's function where it was, or anew, with everything that this task knows. */
  async #take(connection: Connection, task: Task, code: string, held: Replay | undefined): Promise<Replay> {
    if (held && task.from > 0) {
      held.feed(task.history);
      return held;
    }
    const run = await this.#shelf.run(connection, task.name, code);
    const replay = new Replay(task.flow, run);
    // Held no longer: all of its history again, as far as this task knows it.
    const known = task.from > 0 ? (await connection.ask<Task>("get", { flow: task.flow })).history.slice(0, task.at) : task.history;
    replay.feed(known);
    return replay;
  }
}
