// Frames: a kind and a payload, as in spec/protocol.md. On a byte stream each is preceded by its length.

import { HoldfastError } from "./errors.js";

const KIND_JSON = 1;
const KIND_JSON_BYTES = 2;

/** Largest frame a host sends: a repaint with a hundred thousand lines of history. */
export const FRAME_BYTES_MAX = 64 * 1024 * 1024;

/** A frame's content. */
export interface Frame {
  /** The JSON text, as UTF-8. */
  json: Uint8Array;
  /** Bytes that belong to it. */
  bytes: Uint8Array;
}

export const NO_BYTES = new Uint8Array(0);

function malformed(what: string): HoldfastError {
  return new HoldfastError("protocol", what);
}

/** A frame as a carrier that keeps message boundaries sends it: kind and payload. */
export function encodeFrame({ json, bytes }: Frame): Uint8Array {
  return encode(json, bytes, 0);
}

/** A frame as it goes over a byte stream: its length first. */
export function encodeStreamFrame({ json, bytes }: Frame): Uint8Array {
  const out = encode(json, bytes, 4);
  new DataView(out.buffer).setUint32(0, out.length - 4, true);
  return out;
}

function encode(json: Uint8Array, bytes: Uint8Array, room: number): Uint8Array {
  const withBytes = bytes.length > 0;
  const start = room + (withBytes ? 5 : 1);
  const out = new Uint8Array(start + json.length + bytes.length);
  out[room] = withBytes ? KIND_JSON_BYTES : KIND_JSON;
  if (withBytes) new DataView(out.buffer).setUint32(room + 1, json.length, true);
  out.set(json, start);
  out.set(bytes, start + json.length);
  return out;
}

/** Reads kind and payload. */
export function decodeFrame(content: Uint8Array): Frame {
  const kind = content[0];
  if (kind === KIND_JSON) return { json: content.subarray(1), bytes: NO_BYTES };
  if (kind === undefined) throw malformed("an empty frame");
  if (kind !== KIND_JSON_BYTES) throw malformed(`unknown frame kind ${kind}`);
  if (content.length < 5) throw malformed("malformed frame");
  const count = new DataView(content.buffer, content.byteOffset, content.byteLength).getUint32(1, true);
  if (5 + count > content.length) throw malformed("malformed frame");
  return { json: content.subarray(5, 5 + count), bytes: content.subarray(5 + count) };
}

/** Cuts a byte stream into frames. */
export class FrameReader {
  private readonly parts: Uint8Array[] = [];
  private length = 0;
  private readonly max: number;

  constructor(max: number = FRAME_BYTES_MAX) {
    this.max = max;
  }

  /** Takes what arrived, and gives the contents of the frames that are whole by now. */
  push(bytes: Uint8Array): Uint8Array[] {
    if (bytes.length > 0) {
      this.parts.push(bytes);
      this.length += bytes.length;
    }
    const whole: Uint8Array[] = [];
    for (;;) {
      if (this.length < 4) return whole;
      const front = this.front(Math.min(5, this.length));
      const length = new DataView(front.buffer, front.byteOffset, 4).getUint32(0, true);
      if (length > this.max) throw malformed(`a frame of ${length} bytes is over the limit of ${this.max}`);
      if (length === 0) throw malformed("an empty frame");
      // The kind is judged as soon as it is there: garbage is noticed before its "length" has arrived.
      const kind = front[4];
      if (kind !== undefined && kind !== KIND_JSON && kind !== KIND_JSON_BYTES) {
        throw malformed(`unknown frame kind ${kind}`);
      }
      if (this.length < 4 + length) return whole;
      whole.push(this.take(4 + length).subarray(4));
    }
  }

  /** The first bytes, in one piece. A large frame is joined once, not with every part of it. */
  private front(count: number): Uint8Array {
    const first = this.parts[0] as Uint8Array;
    if (first.length >= count) return first;
    const out = new Uint8Array(count);
    let filled = 0;
    for (const part of this.parts) {
      const some = part.subarray(0, count - filled);
      out.set(some, filled);
      filled += some.length;
      if (filled === count) break;
    }
    return out;
  }

  private take(count: number): Uint8Array {
    const out = new Uint8Array(count);
    let filled = 0;
    while (filled < count) {
      const part = this.parts[0] as Uint8Array;
      const some = part.subarray(0, count - filled);
      out.set(some, filled);
      filled += some.length;
      if (some.length === part.length) this.parts.shift();
      else this.parts[0] = part.subarray(some.length);
    }
    this.length -= count;
    return out;
  }
}
