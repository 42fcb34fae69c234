// A session's terminal to look at: all of it, as large as its place allows. It types nothing and keeps no lines above the screen.

import { effect } from "@preact/signals";
import type { Terminal } from "@xterm/xterm";
import type { Attachment } from "@holdfast/client";
import "@xterm/xterm/css/xterm.css";
import { connections, type LiveSession } from "../lib/store.js";
import { isDark } from "../lib/theme.js";
import { quietTerminal, resizeTo, write } from "../panels/timeline/replay.js";
import { family, font } from "../session/font.js";
import { cellOf } from "../session/internals.js";
import { allowStyles } from "../session/styles.js";
import { DARK, LIGHT } from "../session/themes.js";

/** Text smaller than this is a pattern, larger than this is no overview. */
const SIZE_MIN = 4;
const SIZE_MAX = 15;
/** The padding of its place. */
const AROUND = { width: 16, height: 12 };

export class Tile {
  private readonly term: Terminal;
  private readonly attachment: Attachment;
  private readonly place: HTMLElement;
  private readonly closing = new AbortController();
  private isOpen = false;

  constructor(live: LiveSession, place: HTMLElement) {
    allowStyles();
    const { size } = live.view.value;
    this.place = place;
    this.term = quietTerminal(size, { scrollback: 0, cursorBlink: false, fontFamily: family(font.value), fontSize: SIZE_MAX, lineHeight: 1.15 });
    this.closing.signal.addEventListener(
      "abort",
      effect(() => {
        this.term.options.theme = isDark.value ? DARK : LIGHT;
        this.term.options.minimumContrastRatio = isDark.value ? 1 : 4.5;
      }),
    );
    this.attachment = live.session.attach({ size, readOnly: true, tty: "web, watching" });
    connections.add(this.attachment);
    this.attachment.on("paint", async ({ bytes, size: painted }) => {
      this.term.reset();
      resizeTo(this.term, painted);
      await write(this.term, bytes);
      this.open();
      this.fit();
    });
    this.attachment.on("output", ({ bytes }) => write(this.term, bytes));
    const resized = new ResizeObserver(() => this.fit());
    resized.observe(place);
    this.closing.signal.addEventListener("abort", () => resized.disconnect());
  }

  close(): void {
    this.closing.abort();
    connections.delete(this.attachment);
    void this.attachment.close();
    this.term.dispose();
    this.place.replaceChildren();
  }

  private open(): void {
    if (this.isOpen || this.closing.signal.aborted) return;
    this.isOpen = true;
    this.term.open(this.place);
    // Nothing is typed here: the keyboard goes past it.
    if (this.term.textarea) this.term.textarea.disabled = true;
  }

  private fit(): void {
    if (!this.isOpen) return;
    const { width, height } = cellOf(this.term);
    const { clientWidth, clientHeight } = this.place;
    const now = this.term.options.fontSize ?? SIZE_MAX;
    const fitting = now * Math.min((clientWidth - AROUND.width) / (width * this.term.cols), (clientHeight - AROUND.height) / (height * this.term.rows));
    // In halves: a hundredth of a pixel more or less would be measured, and changed, for ever.
    const next = Math.min(SIZE_MAX, Math.max(SIZE_MIN, Math.floor(fitting * 2) / 2));
    if (next !== now && Number.isFinite(next)) this.term.options.fontSize = next;
  }
}
