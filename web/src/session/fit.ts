// The session takes this window's size.
//
// Only what somebody does here gives it: Fit is chosen, this terminal begins to write, the window or the font changes, keys are typed
// after another window gave the session another size. What others make of the size is not answered by itself: two windows would
// resize one session for ever.

import { refresh, type LiveSession } from "../lib/store.js";
import type { Attachment } from "@holdfast/client";

/** The sheet's padding, and the terminal's own scroll bar. */
const AROUND = { width: 16 + 12, height: 16 };
const COLS_MIN = 20;
const ROWS_MIN = 5;
/** A window that is being dragged is asked about once it rests. */
const REST_MS = 120;
/** Typing asks for a size again only so often, where the session does not take it. */
const AGAIN_MS = 2_000;

interface Holder {
  live: LiveSession;
  attachment: Attachment;
  /** What the terminal has to itself, with what is docked beside it: that comes and goes, and resizes nothing. */
  box: HTMLElement;
  cell: () => { width: number; height: number };
  /** Whether keys are typed here by right. */
  isMine: () => boolean;
}

export class Fit {
  private isOn = false;
  private askedAt = 0;
  private room = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly holder: Holder;

  constructor(holder: Holder, signal: AbortSignal) {
    this.holder = holder;
    holder.attachment.on("writes", ({ writes }) => writes && this.now());
    const resized = new ResizeObserver(() => this.roomChanged());
    resized.observe(holder.box);
    signal.addEventListener("abort", () => {
      resized.disconnect();
      clearTimeout(this.timer);
    });
  }

  set(isOn: boolean): void {
    if (isOn === this.isOn) return;
    this.isOn = isOn;
    if (this.holder.attachment.writes) this.now();
  }

  /** The terminal is there, and can be measured. */
  opened(): void {
    this.room = this.measured();
    if (this.holder.attachment.writes) this.now();
  }

  /** Somebody types here. */
  typed(): void {
    if (Date.now() - this.askedAt > AGAIN_MS) this.now();
  }

  /** Gives the session the size this window has room for, where that is another. */
  now(): void {
    const { live, attachment, box, cell, isMine } = this.holder;
    if (!this.isOn || this.room === "" || !(attachment.writes || isMine())) return;
    const { width, height } = cell();
    const cols = Math.max(COLS_MIN, Math.floor((box.clientWidth - AROUND.width) / width));
    const rows = Math.max(ROWS_MIN, Math.floor((box.clientHeight - AROUND.height) / height));
    const size = `${cols}x${rows}`;
    if (size === attachment.sessionSize) return;
    this.askedAt = Date.now();
    // A terminal in a page says no size by itself; it is given one as an act, in the turn. Then the attachment looks.
    live.session.resize(size).then(
      () => {
        attachment.resize(size);
        refresh(live);
      },
      () => undefined,
    );
  }

  private roomChanged(): void {
    if (this.room === "" || this.room === this.measured()) return;
    this.room = this.measured();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), REST_MS);
  }

  private measured(): string {
    return `${this.holder.box.clientWidth} ${this.holder.box.clientHeight}`;
  }
}
