// What actors sign, byte for byte as spec/protocol.md has it. Knows no key.

import type { Actor } from "./types.js";

const encoder = new TextEncoder();

/** Bytes from hexadecimal digits. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** Hexadecimal digits of bytes. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Pieces as one. */
export function join(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** A domain and fields, each with its length in front. */
export function fields(domain: string, ...all: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const withLength = (field: Uint8Array) => {
    const length = new Uint8Array(4);
    new DataView(length.buffer).setUint32(0, field.length, true);
    return [length, field];
  };
  return join(encoder.encode(`${domain}\0`), ...all.flatMap(withLength));
}

/** What an actor signs to prove on a connection that it is itself. `binding` is the connection's: a channel's hash, or its word. */
export function connectBytes(challenge: string, binding: Uint8Array, actor: Actor): Uint8Array<ArrayBuffer> {
  return fields("holdfast connect v1", fromHex(challenge), binding, fromHex(actor.id), encoder.encode(actor.handle));
}
