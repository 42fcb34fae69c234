// Typing exactly once and in order: a stream of our own, and a number that grows with each message.
//
// Several messages are under way at a time; the host types them in the order they came, and where it refuses one, it refuses those
// behind it too. After a broken connection everything that was not answered goes again, in order and under the same numbers; the
// keeper remembers what it wrote. After a refusal what waits is refused as well, and the numbers begin anew: nobody knows what was
// used up.

import type { Connection } from "./connection.js";
import { isBroken } from "./errors.js";
import { newStream } from "./ids.js";
import type { SendAnswer, SendParams } from "./types.js";

/** Bytes that one number of a stream stands for. */
const PIECE_BYTES = 4096;

/** Well below what a host accepts in one frame. */
const MESSAGE_BYTES_MAX = 1024 * 1024;

/** Messages under way: a key each tenth of a second over a line that takes a second, and a part of what a host takes at once. */
const UNDER_WAY_MAX = 16;
/** And their bytes: a paste does not fill the line for whatever else is asked. */
const UNDER_WAY_BYTES_MAX = 256 * 1024;

/** How something is typed. */
export interface TypeOptions {
  /** The fence the writer believes in: under another one nothing is typed. */
  fence?: number;
  /** It is a secret: typed only while the terminal does not show what is typed. */
  secret?: boolean;
  /** Type the secret although the terminal may show it. */
  force?: boolean;
  signal?: AbortSignal;
}

/** Where messages go: a connection, and what it wants to be told with each. */
export interface Way {
  connection: Connection;
  params: Pick<SendParams, "client">;
}

interface Item {
  bytes: Uint8Array;
  how: Omit<TypeOptions, "signal">;
  seq: number;
  /** It belongs to the one before it: typed in the same turn, under its fence. */
  isRest: boolean;
  /** The connection it was sent over. */
  on?: Connection | undefined;
  resolve(answer: SendAnswer): void;
  reject(error: unknown): void;
}

export class Typist {
  private stream = newStream();
  private seq = 1;
  /** What was not answered, in order. */
  private items: Item[] = [];
  private isSending = false;
  private wake = () => {};
  private readonly session: string;
  private readonly way: () => Promise<Way>;

  /** `way` gives the way there is, and waits for one where there is none. */
  constructor(session: string, way: () => Promise<Way>) {
    this.session = session;
    this.way = way;
  }

  /** Types bytes behind everything that was given before. */
  send(bytes: Uint8Array, options: TypeOptions = {}): Promise<SendAnswer> {
    const { signal, ...how } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const items: Item[] = [];
    let last!: Promise<SendAnswer>;
    for (let from = 0; from === 0 || from < bytes.length; from += MESSAGE_BYTES_MAX) {
      const piece = bytes.subarray(from, from + MESSAGE_BYTES_MAX);
      last = new Promise((resolve, reject) => items.push({ bytes: piece, how, seq: this.seq, isRest: from > 0, resolve, reject }));
      last.catch(() => {});
      this.seq += Math.max(1, Math.ceil(piece.length / PIECE_BYTES));
    }
    this.items.push(...items);
    if (signal) last = this.orGivenUp(last, items, signal);
    void this.sendAll();
    this.wake();
    return last;
  }

  /** Nothing more is typed: what waits fails. */
  fail(error: unknown): void {
    this.stream = newStream();
    this.seq = 1;
    for (const item of this.items.splice(0)) item.reject(error);
    this.wake();
  }

  /** Who gives up does not wait; what was not sent yet is not typed. */
  private orGivenUp(last: Promise<SendAnswer>, items: Item[], signal: AbortSignal): Promise<SendAnswer> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        // Its numbers are used up: those behind it have theirs.
        if (items.every(({ on }) => on === undefined)) this.items = this.items.filter((item) => !items.includes(item));
        reject(signal.reason);
      };
      signal.addEventListener("abort", stop, { once: true });
      last.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
    });
  }

  private async sendAll(): Promise<void> {
    if (this.isSending) return;
    this.isSending = true;
    while (this.items.length > 0) {
      const woken = new Promise<void>((resolve) => (this.wake = resolve));
      try {
        this.sendOver(await this.way());
        await woken;
      } catch (error) {
        this.fail(error);
      }
    }
    this.isSending = false;
  }

  /** Sends what may be under way and is not, over this connection. */
  private sendOver({ connection, params }: Way): void {
    let bytes = 0;
    for (const [n, item] of this.items.entries()) {
      bytes += item.bytes.length;
      if (n > 0 && (n >= UNDER_WAY_MAX || bytes > UNDER_WAY_BYTES_MAX || item.isRest)) return;
      if (item.on === connection) continue;
      item.on = connection;
      const { session, stream } = this;
      const sent = { session, stream, seq: item.seq, in_order: true, ...item.how, ...params } satisfies SendParams;
      connection.request("session.send", sent, item.bytes).then(
        ({ result }) => this.typed(item, result as SendAnswer),
        (error) => (isBroken(error) ? this.wake() : this.refused(item, error)),
      );
    }
  }

  private typed(item: Item, answer: SendAnswer): void {
    const at = this.items.indexOf(item);
    if (at < 0) return;
    const next = this.items[at + 1];
    // All of it in one turn: what somebody wrote in between must not stand in the middle.
    if (next?.isRest) next.how = { ...next.how, fence: answer.fence };
    this.items.splice(at, 1);
    item.resolve(answer);
    this.wake();
  }

  private refused(item: Item, error: unknown): void {
    if (this.items.includes(item)) this.fail(error);
  }
}
