// Output that a host pushes: as much as was granted, and no more.
//
// What came is granted again once somebody has dealt with it, so a slow reader holds nobody up and fills no memory: the host goes
// on without it, and tells what was missed as a gap.

import { HoldfastError } from "./errors.js";
import type { OutputEvent } from "./types.js";

/** Bytes that may be on their way: enough for a fast line around the world to be full, and a moment's work for a terminal. */
export const WINDOW_BYTES = 256 * 1024;

/** A piece of output, with its bytes. */
export type Pushed = OutputEvent & { bytes: Uint8Array };

/** How more is granted, and how it ends. */
interface Way {
  credit(follow: number, bytes: number): void;
  unfollow(follow: number): void;
}

export class Follow {
  readonly number: number;
  private readonly way: Way;
  private readonly pieces: Pushed[] = [];
  private owed = 0;
  private failure: unknown;
  private isOver = false;
  private wake = () => {};

  constructor(number: number, way: Way) {
    this.number = number;
    this.way = way;
  }

  /** Done when there is something to take; fails where nothing will come any more. */
  async ready(): Promise<void> {
    while (this.pieces.length === 0) {
      if (this.failure !== undefined) throw this.failure;
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  /** The next piece; only when it is ready. */
  take(): Pushed {
    const piece = this.pieces.shift();
    if (!piece) throw new HoldfastError("protocol", "there is no output to take");
    return piece;
  }

  /** So many bytes were dealt with: as many more may come. */
  done(bytes: number): void {
    this.owed += bytes;
    if (this.isOver || this.owed < WINDOW_BYTES / 2) return;
    this.way.credit(this.number, this.owed);
    this.owed = 0;
  }

  /** No more is wanted. */
  stop(): void {
    if (!this.isOver) this.way.unfollow(this.number);
    this.isOver = true;
  }

  /** The host pushed a piece. */
  push(piece: Pushed): void {
    if (piece.fault) return this.fail(HoldfastError.from(piece.fault));
    this.isOver ||= piece.end;
    this.pieces.push(piece);
    this.wake();
  }

  /** Nothing more will come. What came before is still there. */
  fail(why: unknown): void {
    this.isOver = true;
    this.failure ??= why;
    this.wake();
  }
}
