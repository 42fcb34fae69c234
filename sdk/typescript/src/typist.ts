// Typing exactly once: a stream of our own, and a number that grows with each message.
//
// One message is under way at a time, so that none overtakes another. After a broken connection the same bytes go under the same
// number again; the keeper remembers what it wrote. After a refusal the numbers start again: which were used is unknown.

import { newStream } from "./ids.js";
import type { SendAnswer, SendParams } from "./types.js";

/** Bytes that one number of a stream stands for. */
const PIECE_BYTES = 4096;

/** Well below what a host accepts in one frame. */
const MESSAGE_BYTES_MAX = 1024 * 1024;

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

type Send = (params: SendParams, bytes: Uint8Array, signal?: AbortSignal) => Promise<SendAnswer>;

export class Typist {
  private stream = newStream();
  private seq = 1;
  private last: Promise<unknown> = Promise.resolve();
  private readonly session: string;
  private readonly sendOne: Send;

  constructor(session: string, send: Send) {
    this.session = session;
    this.sendOne = send;
  }

  /** Types bytes behind everything that was given before. */
  send(bytes: Uint8Array, options: TypeOptions = {}): Promise<SendAnswer> {
    const sent = this.last.then(() => this.sendAll(bytes, options));
    this.last = sent.catch(() => {});
    return sent;
  }

  private async sendAll(bytes: Uint8Array, options: TypeOptions): Promise<SendAnswer> {
    let fence = options.fence;
    for (let from = 0; ; from += MESSAGE_BYTES_MAX) {
      const piece = bytes.subarray(from, from + MESSAGE_BYTES_MAX);
      const answer = await this.sendMessage(piece, { ...options, ...(fence === undefined ? {} : { fence }) });
      if (from + MESSAGE_BYTES_MAX >= bytes.length) return answer;
      // All of it in one turn: what somebody wrote in between must not stand in the middle.
      fence = answer.fence;
    }
  }

  private async sendMessage(bytes: Uint8Array, options: TypeOptions): Promise<SendAnswer> {
    const { signal, ...how } = options;
    const params: SendParams = { session: this.session, stream: this.stream, seq: this.seq, ...how };
    try {
      const answer = await this.sendOne(params, bytes, signal);
      this.seq += Math.max(1, Math.ceil(bytes.length / PIECE_BYTES));
      return answer;
    } catch (error) {
      this.stream = newStream();
      this.seq = 1;
      throw error;
    }
  }
}
