// Output by offset: every byte once and in order, or a gap that says which ones are gone.

import type { Gap } from "./types.js";

/** A piece of output, or what is no longer kept of it. */
export type Chunk = { offset: number; bytes: Uint8Array; gap?: undefined } | { gap: Gap; bytes?: undefined };

/** A piece of output or a gap, and what follows. */
export interface Piece {
  gap?: Gap | null;
  from: number;
  to: number;
  end: boolean;
  bytes: Uint8Array;
}

/** Reads pieces one behind the other. `read` gives what lies at an offset, and waits for it if it wants to. */
export async function* chunks(
  from: number | undefined,
  read: (from: number | undefined) => Promise<Piece>,
  isOver: (piece: Piece) => boolean = (piece) => piece.end,
): AsyncGenerator<Chunk, void, void> {
  let at = from;
  for (;;) {
    const piece = await read(at);
    if (piece.gap) yield { gap: piece.gap };
    if (piece.bytes.length > 0) yield { offset: piece.from, bytes: piece.bytes };
    at = piece.to;
    if (isOver(piece)) return;
  }
}

/** The bytes of some output in one piece. Where something is gone, what comes behind it follows. */
export async function gather(all: AsyncIterable<Chunk>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const { bytes } of all) {
    if (!bytes) continue;
    parts.push(bytes);
    length += bytes.length;
  }
  const out = new Uint8Array(length);
  let filled = 0;
  for (const part of parts) {
    out.set(part, filled);
    filled += part.length;
  }
  return out;
}
