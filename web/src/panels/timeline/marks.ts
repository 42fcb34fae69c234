// Commands as an integrated shell marks them in its output: where each was typed, began and ended, and with what status.
//
// Any program can print such marks: they are shown, and nothing is decided by them.

import type { Kept } from "./replay.js";

export interface Marked {
  /** Where the shell began to read its line. */
  prompt: number;
  /** Where its output begins, and ends; none: not yet. */
  start: number;
  end?: number;
  status?: number;
}

const ESC = 0x1b;
const OPENING = new TextEncoder().encode("\x1b]133;");
/** Marks are short; a longer one is no mark of ours. */
const MARK_BYTES_MAX = 200;

/** All that the kept output tells of, oldest first. */
export function markedCommands(kept: Kept): Marked[] {
  const found: Marked[] = [];
  let prompt: number | undefined;
  let open: Marked | undefined;
  for (const { at, kind, rest } of marks(kept)) {
    if (kind === "B") prompt = at;
    // A command may say twice where it begins.
    else if (kind === "C" && prompt !== undefined) {
      open = { prompt, start: at };
      found.push(open);
      prompt = undefined;
    } else if (kind === "D" && open) {
      open.end = at;
      const status = Number(rest.split(";")[0]);
      if (Number.isInteger(status)) open.status = status;
      open = undefined;
    }
  }
  return found;
}

/** The command whose line was typed where the output stood at an offset. */
export function commandAt(commands: readonly Marked[], offset: number): Marked | undefined {
  return commands.find(({ prompt, start }) => prompt <= offset && offset <= start);
}

interface Mark {
  at: number;
  kind: string;
  rest: string;
}

function* marks(kept: Kept): Generator<Mark> {
  let left = new Uint8Array();
  for (const { from, bytes } of kept.pieces) {
    // A mark may stand across two pieces.
    const all = new Uint8Array(left.length + bytes.length);
    all.set(left);
    all.set(bytes, left.length);
    const first = from - left.length;
    let at = all.indexOf(ESC);
    left = new Uint8Array();
    for (; at >= 0; at = all.indexOf(ESC, at + 1)) {
      const end = endOf(all, at);
      if (end === undefined) {
        left = all.slice(at);
        break;
      }
      const text = String.fromCharCode(...all.subarray(at + OPENING.length, end));
      // Others print such marks, too; those of ours say so.
      if (end > at && /;hf\b/.test(text)) yield { at: first + at, kind: text.slice(0, 1), rest: text.slice(2) };
    }
  }
}

/** Where a mark that begins here ends; where none begins, here; nothing where that cannot be said yet. */
function endOf(all: Uint8Array, at: number): number | undefined {
  for (let index = 0; index < MARK_BYTES_MAX; index += 1) {
    const byte = all[at + index];
    if (byte === undefined) return undefined;
    if (index < OPENING.length ? byte !== OPENING[index] : byte === ESC) return index < OPENING.length ? at : at + index;
    if (index >= OPENING.length && byte === 0x07) return at + index;
  }
  return at;
}
