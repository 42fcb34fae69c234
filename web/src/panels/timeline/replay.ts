// The output the ring still holds, replayed: for a picture of the past, and to find where in the scrollback an offset stands.

import { Terminal, type ITerminalOptions, type IMarker } from "@xterm/xterm";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { client, type LiveSession } from "../../lib/store.js";
import { sizeOf } from "../../lib/text.js";

interface Piece {
  from: number;
  bytes: Uint8Array;
  size: string;
}

/** Rings are 1 MiB unless somebody says otherwise; of a large one the end is taken. */
const BYTES_MAX = 8 * 1024 * 1024;
const READ_BYTES = 256 * 1024;
const HISTORY_LINES = 10_000;
/** Lines after which an index takes a new hold of the buffer, well before the old one scrolls out. */
const ANCHOR_LINES = 2_000;

/** Output without a hole, from the oldest byte that is kept. */
export class Kept {
  readonly pieces: Piece[] = [];
  oldest = 0;
  head = 0;

  /** Reads what has come since. Where the ring has left a hole everything before it is dropped. */
  async read(live: LiveSession): Promise<void> {
    for (;;) {
      const isFirst = this.pieces.length === 0;
      const answer = await client.call("session.read", { session: live.id, max: READ_BYTES, ...(isFirst ? {} : { from: this.head }) });
      if (isFirst || answer.gap || answer.from !== this.head) {
        this.pieces.splice(0);
        this.oldest = answer.from;
      }
      if (answer.bytes.length > 0) this.pieces.push({ from: answer.from, bytes: answer.bytes, size: answer.size ?? live.view.value.size });
      this.head = answer.to;
      while (this.pieces.length > 1 && this.head - this.oldest > BYTES_MAX) {
        this.pieces.shift();
        this.oldest = this.pieces[0]?.from ?? this.head;
      }
      if (answer.bytes.length === 0 || answer.to >= answer.head) return;
    }
  }

  /** What lies between two offsets, with the size it was written at. */
  *between(from: number, to: number): Generator<Piece> {
    for (const piece of this.pieces) {
      const [start, end] = [Math.max(from, piece.from), Math.min(to, piece.from + piece.bytes.length)];
      if (start < end) yield { from: start, size: piece.size, bytes: piece.bytes.subarray(start - piece.from, end - piece.from) };
    }
  }
}

/** A terminal for what is past: it answers nothing and opens no links. */
export function quietTerminal(size: string, options: ITerminalOptions = {}): Terminal {
  const term = new Terminal({
    ...sizeOf(size),
    allowProposedApi: true,
    disableStdin: true,
    scrollback: HISTORY_LINES,
    linkHandler: { activate: () => undefined },
    ...options,
  });
  term.loadAddon(new Unicode11Addon());
  term.unicode.activeVersion = "11";
  return term;
}

export function resizeTo(term: Terminal, size: string): void {
  const { cols, rows } = sizeOf(size);
  if (term.cols !== cols || term.rows !== rows) term.resize(cols, rows);
}

export function write(term: Terminal, bytes: Uint8Array): Promise<void> {
  return new Promise((done) => term.write(bytes, done));
}

/** Where each line of the scrollback comes from: for every line the offset of its last byte, counted from the end of the output. */
export class LineIndex {
  /** Ascending; `line` counts from the first line that was replayed. */
  private lines: { line: number; end: number }[] = [];
  private last = 0;
  private texts: Terminal | undefined;
  private anchor: { marker: IMarker; line: number } | undefined;
  head = 0;

  /** Replays everything that is kept. */
  async build(kept: Kept): Promise<void> {
    this.texts?.dispose();
    const term = quietTerminal(kept.pieces[0]?.size ?? "80x24");
    this.texts = term;
    this.lines = [];
    this.hold(term, 0);
    for (const piece of kept.between(kept.oldest, kept.head)) {
      resizeTo(term, piece.size);
      let start = 0;
      for (let at = 0; at < piece.bytes.length; at += 1) {
        if (piece.bytes[at] !== 0x0a) continue;
        // Before the line end: the cursor still stands in the line.
        const end = piece.from + at;
        term.write(piece.bytes.subarray(start, at), () => this.note(term, end));
        start = at;
      }
      const end = piece.from + piece.bytes.length;
      await new Promise<void>((done) =>
        term.write(piece.bytes.subarray(start), () => {
          this.note(term, end);
          done();
        }),
      );
    }
    this.last = this.here(term);
    this.head = kept.head;
  }

  /** How many lines above the end of the output the byte at an offset stands, and the line's text. */
  locate(offset: number): { up: number; text: string } | undefined {
    const found = this.lines.find(({ end }) => end > offset) ?? this.lines.at(-1);
    if (!found || !this.texts) return undefined;
    return { up: this.last - found.line, text: this.textAt(found.line) };
  }

  /** The offset of the last byte of a line so far above the end. */
  offsetAt(up: number): { offset: number; text: string } | undefined {
    const wanted = this.last - up;
    const found = this.lines.findLast(({ line }) => line <= wanted);
    return found && { offset: found.end, text: this.textAt(found.line) };
  }

  close(): void {
    this.texts?.dispose();
    this.texts = undefined;
  }

  private hold(term: Terminal, line: number): void {
    this.anchor?.marker.dispose();
    const marker = term.registerMarker(0);
    this.anchor = marker ? { marker, line } : undefined;
  }

  /** The number of the line the cursor stands in. */
  private here(term: Terminal): number {
    const { baseY, cursorY } = term.buffer.active;
    return (this.anchor?.line ?? 0) + baseY + cursorY - (this.anchor?.marker.line ?? 0);
  }

  private note(term: Terminal, end: number): void {
    if (term.buffer.active.type !== "normal") return;
    if (!this.anchor || this.anchor.marker.isDisposed || this.anchor.marker.line < 0) {
      // The scrollback was cleared: what stood in it stands nowhere.
      this.lines = [];
      this.hold(term, 0);
    }
    const line = this.here(term);
    while (this.lines.length > 0 && (this.lines.at(-1)?.line ?? 0) >= line) this.lines.pop();
    this.lines.push({ line, end });
    if (line - (this.anchor?.line ?? 0) > ANCHOR_LINES) this.hold(term, line);
  }

  private textAt(line: number): string {
    const term = this.texts;
    if (!term) return "";
    const { baseY, cursorY } = term.buffer.active;
    return term.buffer.active.getLine(baseY + cursorY - (this.last - line))?.translateToString(true) ?? "";
  }
}
