// The protocol through sealed channels: what a Link dials, and how an invite is accepted.

import { Connection } from "../connection.js";
import { HoldfastError } from "../errors.js";
import { encodeStreamFrame, FrameReader, NO_BYTES } from "../frame.js";
import { connectBytes, toHex } from "../proof.js";
import type { Dialer, Prover, Receiver, Transport } from "../transport.js";
import type { Actor, InviteAcceptAnswer } from "../types.js";
import { Kind } from "./frames.js";
import type { Invite } from "./invite.js";
import type { DeviceKey } from "./keys.js";
import { reach, type Reached, type Way } from "./reach.js";

/** After so much silence of ours we say that we are there. */
const ALIVE_MS = 5_000;
/** After so much silence of the host the path is dead. */
const SILENT_MS = 15_000;
/** Bytes sealed at once: a key typed behind a flood does not wait long. */
const PIECE_BYTES = 32 * 1024;

/** Opens channels to a host that knows this device. */
export function relayDialer(way: Way): Dialer {
  return {
    where: way.relays[0] ?? way.host,
    dial: async (receiver, signal) => {
      const reached = await reach(way, undefined, signal);
      const handle = reached.welcome.handle ?? "";
      return carry(reached, receiver, proverOf(way.device, handle, reached.channel.binding));
    },
  };
}

/** Accepts an invite: the device's key is enrolled at the host, under this handle or one like it. */
export async function accept(way: Way, invite: Invite, handle: string, program: string, signal: AbortSignal): Promise<InviteAcceptAnswer> {
  let prover: Prover | undefined;
  const dialer: Dialer = {
    where: way.relays[0] ?? way.host,
    dial: async (receiver, signal) => {
      const reached = await reach(way, invite, signal);
      prover = proverOf(way.device, handle, reached.channel.binding);
      return carry(reached, receiver);
    },
  };
  const connection = await Connection.open(dialer, program, () => undefined, signal);
  try {
    const proof = await prover?.identify(connection.hello.challenge);
    const answer = (await connection.request("invite.accept", proof, NO_BYTES)).result as InviteAcceptAnswer;
    if (answer.actor.id !== way.device.id) throw new HoldfastError("protocol", "the host answered for another device");
    return answer;
  } finally {
    connection.close();
  }
}

/** Proves a device on one channel, and on no other. */
function proverOf(device: DeviceKey, handle: string, binding: Uint8Array): Prover {
  const actor: Actor = { id: device.id, handle };
  return {
    identify: async (challenge) => {
      const signature = await crypto.subtle.sign("Ed25519", device.sign, connectBytes(challenge, binding, actor));
      return { actor, signature: toHex(new Uint8Array(signature)) };
    },
  };
}

/** Frames through a channel, until one end is over. */
function carry({ channel, socket, hear }: Reached, receiver: Receiver, prover?: Prover): Transport {
  const reader = new FrameReader();
  let isOver = false;
  let sentAt = Date.now();
  let heardAt = Date.now();
  let sealing = Promise.resolve();
  let opening = Promise.resolve();
  const over = (why: unknown) => {
    if (isOver) return;
    isOver = true;
    clearInterval(timer);
    socket.close();
    receiver.closed(why);
  };
  /** In order: each waits for the one before. */
  const seal = (kind: Kind, body: Uint8Array) => {
    sentAt = Date.now();
    sealing = sealing.then(async () => {
      if (isOver) return;
      try {
        for (const message of await channel.seal(kind, body)) socket.send(message);
      } catch (error) {
        over(error);
      }
    });
  };
  const open = async (message: Uint8Array<ArrayBuffer>) => {
    if (isOver) return;
    try {
      const { kind, body } = await channel.open(message);
      if (kind === Kind.data && !isOver) for (const frame of reader.push(body)) receiver.frame(frame);
      if (kind === Kind.end) over("the host closed the connection");
    } catch (error) {
      over(error);
    }
  };
  const timer = setInterval(() => {
    const now = Date.now();
    if (now - heardAt >= SILENT_MS) over(`nothing was heard for ${SILENT_MS / 1000} seconds`);
    else if (now - sentAt >= ALIVE_MS) seal(Kind.alive, NO_BYTES);
  }, 1_000);
  if (typeof timer === "object") (timer as { unref?(): void }).unref?.();
  hear((message) => {
    heardAt = Date.now();
    opening = opening.then(() => open(message));
  }, over);
  return {
    isNetwork: true,
    ...(prover ? { prover } : {}),
    send: (json, bytes) => {
      const frame = encodeStreamFrame({ json, bytes });
      for (let at = 0; at < frame.length; at += PIECE_BYTES) seal(Kind.data, frame.subarray(at, at + PIECE_BYTES));
    },
    close: () => {
      seal(Kind.end, NO_BYTES);
      void sealing.then(() => over("closed"));
    },
  };
}
