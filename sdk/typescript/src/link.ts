// A way to a host that mends itself: one connection at a time, opened again when it broke.
//
// What is repeated after a broken connection is the caller's to say: only it knows whether doing it twice is doing it once.

import { Connection, type Answered } from "./connection.js";
import { HoldfastError, disconnected, isBroken } from "./errors.js";
import { Backoff, orAbort, pause } from "./signals.js";
import type { Dialer } from "./transport.js";

/** How a broken connection is dealt with. */
export interface Retry {
  /** A call gives up when no host answered for this long. */
  forMs: number;
  /** Longest pause between two attempts. */
  maxDelayMs: number;
}

/** A host reads every session's files before it answers, on a machine that may be busy. */
export const RETRY: Retry = { forMs: 30_000, maxDelayMs: 2_000 };

/** What a request is sent with. */
export interface Sending {
  bytes: Uint8Array;
  /** It may be sent again where its answer was lost. */
  repeat: boolean;
  signal?: AbortSignal | undefined;
}

type Told = (method: string, params: unknown) => void;

export class Link {
  /** Hears the host's events. */
  told: Told = () => {};
  /** Hears that a connection is there. */
  connected: (connection: Connection) => void = () => {};
  /** Hears that one broke. */
  broke: () => void = () => {};

  private current: Connection | undefined;
  private opening: Promise<Connection> | undefined;
  private readonly closing = new AbortController();
  readonly dialer: Dialer;
  private readonly program: string;
  readonly retry: Retry;

  constructor(dialer: Dialer, program: string, retry: Retry) {
    this.dialer = dialer;
    this.program = program;
    this.retry = retry;
  }

  /** Another way to the same host. */
  fork(): Link {
    return new Link(this.dialer, this.program, this.retry);
  }

  get isClosed(): boolean {
    return this.closing.signal.aborted;
  }

  /** The connection, opened where there is none. */
  async connection(signal?: AbortSignal): Promise<Connection> {
    if (this.current && !this.current.over) return this.current;
    if (this.isClosed) throw this.closing.signal.reason;
    signal?.throwIfAborted();
    this.opening ??= this.open().finally(() => (this.opening = undefined));
    return orAbort(this.opening, signal);
  }

  /** Asks, and waits for the answer, whatever happens to the connection if the request may be repeated. */
  async call(method: string, params: unknown, sending: Sending): Promise<Answered> {
    const { bytes, repeat, signal } = sending;
    for (;;) {
      const connection = await this.connection(signal);
      try {
        return await orAbort(connection.request(method, params, bytes), signal);
      } catch (error) {
        if (!isBroken(error)) throw error;
        if (this.isClosed) throw this.closing.signal.reason;
        if (!repeat) {
          const message = `the connection broke before the host answered ${method}: it may have been performed`;
          throw new HoldfastError("disconnected", message, { hint: "check before you try again", cause: error });
        }
      }
    }
  }

  /** Lets go of the connection, and opens another when something is asked: a network may change without a word. */
  drop(): void {
    this.current?.close();
  }

  /** Ends it; what is under way fails. */
  close(): void {
    this.closing.abort(disconnected("the client was closed"));
    this.current?.close();
  }

  private async open(): Promise<Connection> {
    const signal = this.closing.signal;
    const backoff = new Backoff(50, this.retry.maxDelayMs);
    const deadline = Date.now() + this.retry.forMs;
    for (;;) {
      try {
        const told: Told = (method, params) => this.told(method, params);
        const connection = await Connection.open(this.dialer, this.program, told, signal);
        if (signal.aborted) {
          connection.close();
          throw signal.reason;
        }
        this.current = connection;
        void connection.ended.then(() => {
          if (!signal.aborted) this.broke();
        });
        this.connected(connection);
        return connection;
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        const delay = backoff.delay();
        if (!isBroken(error) || Date.now() + delay > deadline) throw error;
        await pause(delay, signal);
      }
    }
  }
}
