// The bytes on the wire, against the vectors that every client replays.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readMessage } from "../src/connection.js";
import { decodeFrame, encodeFrame, encodeStreamFrame, FrameReader } from "../src/frame.js";
import { challengeBytes, Identity } from "../src/node/identity.js";

function vectors(name: string) {
  return JSON.parse(readFileSync(new URL(`../../../spec/vectors/${name}.json`, import.meta.url), "utf8"));
}

const hex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("frames", () => {
  const frames = vectors("frames") as { name: string; hex: string; kind: number; message: object; bytes: string }[];

  it("reads every frame of the vectors as the message it is", () => {
    expect(frames.length).toBeGreaterThan(50);
    for (const vector of frames) {
      const [content, ...more] = new FrameReader().push(hex(vector.hex));
      expect(more, vector.name).toEqual([]);
      const frame = decodeFrame(content as Uint8Array);
      expect(content?.[0], vector.name).toBe(vector.kind);
      expect(readMessage(frame.json), vector.name).toEqual(vector.message);
      expect(text(frame.bytes), vector.name).toBe(vector.bytes);
    }
  });

  it("writes every frame of the vectors byte for byte from its parts", () => {
    for (const vector of frames) {
      const frame = decodeFrame(hex(vector.hex).subarray(4));
      expect(text(encodeStreamFrame(frame)), vector.name).toBe(vector.hex);
      expect(text(encodeFrame(frame)), vector.name).toBe(vector.hex.slice(8));
    }
  });

  it("reads the same frames however the stream is cut", () => {
    const all = Buffer.concat(frames.map((vector) => hex(vector.hex)));
    const whole = new FrameReader().push(new Uint8Array(all)).map(text);
    expect(whole.length).toBe(frames.length);
    for (const size of [1, 3, 4, 5, 7, 1000]) {
      const reader = new FrameReader();
      const read: string[] = [];
      for (let at = 0; at < all.length; at += size) {
        read.push(...reader.push(new Uint8Array(all.subarray(at, at + size))).map(text));
      }
      expect(read, `in pieces of ${size}`).toEqual(whole);
    }
  });

  const refused = vectors("refused") as {
    frame_bytes_max: number;
    incomplete: { name: string; hex: string }[];
    refused: { name: string; hex: string; why: string; message: string }[];
  };

  it("waits for what is incomplete", () => {
    for (const vector of refused.incomplete) {
      expect(new FrameReader(refused.frame_bytes_max).push(hex(vector.hex)), vector.name).toEqual([]);
    }
  });

  it("refuses what is no frame or no message", () => {
    for (const vector of refused.refused) {
      const read = () => {
        for (const content of new FrameReader(refused.frame_bytes_max).push(hex(vector.hex))) {
          readMessage(decodeFrame(content).json);
        }
      };
      expect(read, vector.name).toThrow();
    }
  });
});

describe("proofs", () => {
  it("signs a connection's challenge as the vectors do", () => {
    const proofs = vectors("proofs");
    const identity = new Identity(proofs.actor.handle, hex(proofs.secret));
    expect(identity.actor).toEqual(proofs.actor);
    const { challenge, binding, bytes, signature } = proofs.identify;
    expect(text(challengeBytes(challenge, binding, proofs.actor))).toBe(bytes);
    expect(identity.identify(challenge).signature).toBe(signature);
  });

  it("signs acts as the vectors do", () => {
    const proofs = vectors("proofs");
    const identity = new Identity(proofs.actor.handle, hex(proofs.secret));
    expect(proofs.acts.length).toBeGreaterThan(2);
    for (const { session, ask, nonce, signature } of proofs.acts) {
      expect(identity.prove(session, ask, hex(nonce)), ask).toEqual({ nonce, signature });
    }
  });
});
