// One connection to a host: requests out, answers and events in. It ends once, and is never mended: see link.ts.

import { HoldfastError, disconnected } from "./errors.js";
import { Follow, WINDOW_BYTES, type Pushed } from "./follow.js";
import { decodeFrame, NO_BYTES } from "./frame.js";
import { LATE_MS, Pulse } from "./pulse.js";
import { orAbort } from "./signals.js";
import type { Dialer, Transport } from "./transport.js";
import type { Fault, HelloAnswer, OutputEvent } from "./types.js";

/** The protocol versions this client speaks. */
const VERSIONS = [1];

/** A host that accepts and says nothing is stopped or stuck: report that instead of waiting. */
const HELLO_WAIT_MS = 15_000;

/** How long nothing may be heard while output is followed before the host is asked whether it is there. */
const QUIET_MS = 20_000;

/** An answer and the bytes that came with it. */
export interface Answered {
  result: unknown;
  bytes: Uint8Array;
}

interface Waiting {
  /** When it should be answered. */
  due: number;
  resolve(answered: Answered): void;
  reject(error: unknown): void;
}

type Message = {
  jsonrpc?: unknown;
  id?: number;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { message?: string; data?: Fault };
};

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** A connection that has said hello. */
export class Connection {
  /** What the host said of itself. */
  hello: HelloAnswer = { version: 0, program: "", challenge: "" };
  /** Why it is over; none: it is not. */
  over: HoldfastError | undefined;
  /** Ends when the connection does. */
  readonly ended: Promise<void>;

  private transport: Transport | undefined;
  private readonly waiting = new Map<number, Waiting>();
  private nextId = 1;
  private readonly follows = new Map<number, Follow>();
  private nextFollow = 1;
  private end!: () => void;
  private readonly told: (method: string, params: unknown) => void;
  private heardAt = Date.now();
  /** On a network alone: between two processes of one machine nothing is swallowed. */
  private pulse: Pulse | undefined;

  private constructor(told: (method: string, params: unknown) => void) {
    this.told = told;
    this.ended = new Promise((resolve) => (this.end = resolve));
  }

  /** Connects, says hello and who speaks. `told` hears the host's events. */
  static async open(
    dialer: Dialer,
    program: string,
    told: (method: string, params: unknown) => void,
    signal: AbortSignal,
  ): Promise<Connection> {
    const connection = new Connection(told);
    const receiver = {
      frame: (content: Uint8Array) => connection.receive(content),
      closed: (why: unknown) => connection.fail(disconnected(`the connection to ${dialer.where} broke`, why)),
    };
    connection.transport = await dialer.dial(receiver, signal);
    if (connection.transport.isNetwork) connection.pulse = connection.makePulse(dialer.where);
    const silent = setTimeout(() => {
      connection.fail(disconnected(`the host at ${dialer.where} does not answer; its process may be stopped or stuck`));
    }, HELLO_WAIT_MS);
    try {
      const hello = connection.request("hello", { versions: VERSIONS, program }, NO_BYTES);
      connection.hello = (await orAbort(hello, signal)).result as HelloAnswer;
      const prover = connection.transport.prover ?? dialer.prover;
      if (prover) {
        const proof = await orAbort(Promise.resolve(prover.identify(connection.hello.challenge)), signal);
        await orAbort(connection.request("identify", proof, NO_BYTES), signal);
      }
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    } finally {
      clearTimeout(silent);
    }
  }

  /** Sends a request; the promise is its answer. Fails at once, with nothing sent, where the connection is over. */
  request(method: string, params: unknown, bytes: Uint8Array): Promise<Answered> {
    if (this.over || !this.transport) return Promise.reject(this.over ?? disconnected("not connected"));
    const id = this.nextId++;
    const json = encoder.encode(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return new Promise((resolve, reject) => {
      const due = Date.now() + waitOf(params) + LATE_MS;
      this.waiting.set(id, { due, resolve, reject });
      this.pulse?.expect(due);
      this.transport?.hold?.(true);
      try {
        this.transport?.send(json, bytes);
      } catch (error) {
        this.fail(disconnected("the connection broke while something was sent", error));
      }
    });
  }

  /** Follows a session's output from an offset on. It ends with the connection. */
  follow(session: string, from?: number): Follow {
    const follow = new Follow(this.nextFollow++, {
      credit: (number, bytes) => void this.request("session.credit", { follow: number, bytes }, NO_BYTES).catch(() => {}),
      unfollow: (number) => {
        this.follows.delete(number);
        this.request("session.unfollow", { follow: number }, NO_BYTES).catch(() => {});
      },
    });
    this.follows.set(follow.number, follow);
    const params = { session, follow: follow.number, credit: WINDOW_BYTES, ...(from === undefined ? {} : { from }) };
    this.request("session.follow", params, NO_BYTES).catch((error) => this.unfollowed(follow, error));
    this.pulse?.expect(Date.now() + QUIET_MS);
    return follow;
  }

  private unfollowed(follow: Follow, why: unknown): void {
    this.follows.delete(follow.number);
    follow.fail(why);
    this.hold();
  }

  /** A process that waits for nothing may end by itself. */
  private hold(): void {
    this.transport?.hold?.(this.waiting.size > 0 || this.follows.size > 0);
  }

  /** Ends it. */
  close(): void {
    this.fail(disconnected("the connection was closed"));
  }

  private makePulse(where: string): Pulse {
    const due = () => {
      const all = [...this.waiting.values()].map(({ due }) => due);
      if (this.follows.size > 0) all.push(this.heardAt + QUIET_MS);
      return all.length === 0 ? undefined : Math.min(...all);
    };
    const ask = () => void this.request("host.status", {}, NO_BYTES).catch(() => {});
    return new Pulse(due, ask, () => this.fail(disconnected(`the host at ${where} does not respond`)));
  }

  private receive(content: Uint8Array): void {
    if (this.over) return;
    this.heardAt = Date.now();
    this.pulse?.heard();
    try {
      const frame = decodeFrame(content);
      this.take(readMessage(frame.json), frame.bytes);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.fail(new HoldfastError("protocol", `cannot read the host's answer: ${message}`, { cause: error }));
    }
  }

  private take(message: Message, bytes: Uint8Array): void {
    if (message.method === "output" && message.id === undefined) {
      this.pushed({ ...(message.params as OutputEvent), bytes });
      return;
    }
    if (message.method !== undefined && message.id === undefined) {
      this.told(message.method, message.params);
      return;
    }
    const waiting = message.id === undefined ? undefined : this.waiting.get(message.id);
    if (message.id === undefined || !waiting) return;
    this.waiting.delete(message.id);
    this.hold();
    if (message.error) {
      const fault = message.error.data;
      waiting.reject(fault ? HoldfastError.from(fault) : new HoldfastError("internal", message.error.message ?? ""));
    } else {
      waiting.resolve({ result: message.result ?? null, bytes });
    }
  }

  private pushed(piece: Pushed): void {
    const follow = this.follows.get(piece.follow);
    if (piece.end || piece.fault) this.follows.delete(piece.follow);
    follow?.push(piece);
    this.hold();
  }

  private fail(why: HoldfastError): void {
    if (this.over) return;
    this.over = why;
    this.pulse?.stop();
    this.transport?.close();
    for (const waiting of this.waiting.values()) waiting.reject(why);
    this.waiting.clear();
    for (const follow of this.follows.values()) follow.fail(why);
    this.follows.clear();
    this.end();
  }
}

/** How long a request lets the host wait before it answers. */
function waitOf(params: unknown): number {
  const wait = (params as { wait_ms?: unknown } | null)?.wait_ms;
  return typeof wait === "number" ? wait : 0;
}

/** A JSON-RPC message, of whatever kind. */
export function readMessage(json: Uint8Array): Message {
  const message = JSON.parse(decoder.decode(json)) as Message | null;
  if (message === null || typeof message !== "object" || message.jsonrpc !== "2.0") {
    throw new HoldfastError("protocol", 'not a JSON-RPC message: jsonrpc must be "2.0"');
  }
  const { id, method, result, error } = message;
  const isId = typeof id === "number" && Number.isInteger(id) && id >= 0;
  const isRequest = typeof method === "string" && (id === undefined || isId) && result === undefined && !error;
  const isAnswer = method === undefined && isId && !(result !== undefined && result !== null && error);
  if (!isRequest && !isAnswer) throw new HoldfastError("protocol", "expected a request, an answer or an event");
  return message;
}
