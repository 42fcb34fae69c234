// A way to a host: through whichever of its relays answers first, in a channel that ends at the host.
//
// Browsers do not say why a WebSocket was refused, so the relay is asked once more in words: it may know where the host is.

import { HoldfastError, disconnected } from "../errors.js";
import { fromHex } from "../proof.js";
import { orAbort, pause } from "../signals.js";
import type { WebSocketLike, WebSocketMaker } from "../websocket.js";
import type { Channel } from "./frames.js";
import { isRelay } from "./invite.js";
import type { DeviceKey } from "./keys.js";
import { begin, Unproven, type Invited, type Welcome } from "./noise.js";

/** How long a relay has before the next one is tried beside it. */
const NEXT_MS = 300;
/** How long a relay, and the host behind it, may take. */
const ANSWER_MS = 15_000;

/** Where a host is, and who asks for it. */
export interface Way {
  /** The host's key: hexadecimal digits. */
  host: string;
  relays: readonly string[];
  device: DeviceKey;
  webSocket: WebSocketMaker;
}

/** A channel, and the socket that carries it. What the socket heard since is in `early`. */
export interface Reached {
  channel: Channel;
  socket: WebSocketLike;
  welcome: Welcome & { known: true };
  relay: string;
  /** Takes the messages and the end, those that came already first. */
  hear(heard: (message: Uint8Array<ArrayBuffer>) => void, ended: (why: string) => void): void;
}

/** Reaches the host. Of several failures the most telling is thrown. */
export async function reach(way: Way, invited: Invited | undefined, signal: AbortSignal): Promise<Reached> {
  const trying = new AbortController();
  const both = AbortSignal.any([signal, trying.signal]);
  let worst: unknown;
  const attempt = async (relay: string, after: number) => {
    if (after > 0) await Promise.race([pause(after, both), failed.promise]);
    return through(way, relay, invited, both);
  };
  // A relay that fails lets the next one begin at once.
  let failed = later<void>();
  const tries = way.relays.map((relay, at) =>
    attempt(relay, at * NEXT_MS).catch((error: unknown) => {
      if (weight(error) >= weight(worst)) worst = error;
      failed.resolve();
      failed = later();
      throw error;
    }),
  );
  try {
    const reached = await Promise.any(tries);
    // Another one may be up at the same moment.
    for (const one of tries) void one.then((other) => other !== reached && other.socket.close(), () => undefined);
    return reached;
  } catch {
    signal.throwIfAborted();
    throw worst ?? new HoldfastError("unreachable", "no relay is known for this host");
  } finally {
    trying.abort();
  }
}

/** A promise, and what settles it. */
function later<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (why: unknown) => void } {
  let [resolve, reject]: [(value: T) => void, (why: unknown) => void] = [() => undefined, () => undefined];
  const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}

function weight(error: unknown): number {
  if (!(error instanceof HoldfastError)) return error === undefined ? 0 : 1;
  return error.code === "unidentified" ? 4 : error.details === "unproven" ? 3 : 2;
}

async function through(way: Way, relay: string, invited: Invited | undefined, signal: AbortSignal): Promise<Reached> {
  try {
    return await once(way, relay, invited, signal);
  } catch (error) {
    if (!(error instanceof NotOpened)) throw error;
    signal.throwIfAborted();
    const other = await elsewhere(relay, way.host, signal);
    if (other === undefined) throw error;
    // Once: relays that send a client around in a circle do not keep it.
    return once(way, other, invited, signal);
  }
}

/** The relay did not let us through to the host. */
class NotOpened extends HoldfastError {}

async function once(way: Way, relay: string, invited: Invited | undefined, signal: AbortSignal): Promise<Reached> {
  const begun = await begin(fromHex(way.host), way.device, invited);
  const socket = way.webSocket(`${relay.replace(/^http/, "ws")}/c/${way.host}`, []);
  socket.binaryType = "arraybuffer";
  const end = later<never>();
  end.promise.catch(() => undefined);
  const answer = later<Uint8Array<ArrayBuffer>>();
  let isOpen = false;
  let isOver: string | undefined;
  const waiting: Uint8Array<ArrayBuffer>[] = [];
  let heard = (message: Uint8Array<ArrayBuffer>): void => void waiting.push(message);
  let ended = (why: string): void => void (isOver = why);
  const stop = () => {
    socket.close();
    end.reject(signal.reason);
  };
  signal.addEventListener("abort", stop, { once: true });
  const late = setTimeout(() => {
    end.reject(disconnected(`${relay} does not answer`));
    socket.close();
  }, ANSWER_MS);
  socket.addEventListener("open", () => {
    isOpen = true;
    socket.send(begun.first);
  });
  let isFirst = true;
  socket.addEventListener("message", ({ data }) => {
    if (!(data instanceof ArrayBuffer)) return socket.close();
    const bytes = new Uint8Array(data);
    if (isFirst) answer.resolve(bytes);
    else heard(bytes);
    isFirst = false;
  });
  // The error event says nothing that the close event does not.
  socket.addEventListener("error", () => undefined);
  socket.addEventListener("close", ({ code, reason }) => {
    const why = reason || `closed with ${code}`;
    if (!isOpen) end.reject(new NotOpened("disconnected", `the host is not connected to ${relay}, or ${relay} cannot be reached`));
    else end.reject(disconnected(`the host did not answer through ${relay}`, why));
    ended(why);
  });
  try {
    const { channel, welcome } = await begun.finish(await Promise.race([answer.promise, end.promise]));
    if (!welcome.known) throw new HoldfastError("unidentified", "the host does not know this device", { hint: "ask for a new invite" });
    return {
      channel,
      socket,
      welcome,
      relay,
      hear: (now, over) => {
        for (const message of waiting.splice(0)) now(message);
        heard = now;
        if (isOver !== undefined) over(isOver);
        ended = over;
      },
    };
  } catch (error) {
    socket.close();
    if (!(error instanceof Unproven)) throw error;
    const message = `whatever answers at ${relay} did not prove the host's key`;
    throw new HoldfastError("disconnected", message, { hint: "nothing was sent to it", details: "unproven", cause: error });
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", stop);
  }
}

/** Which other relay has the host, where this one knows it. From one with TLS only to one with TLS. */
async function elsewhere(relay: string, host: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const asked = fetch(`${relay}/c/${host}`, { cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer", signal });
    const answer = await orAbort(asked, signal);
    const { elsewhere: other } = (await answer.json()) as { elsewhere?: unknown };
    const isOne = typeof other === "string" && isRelay(other) && other !== relay;
    return isOne && (other.startsWith("https:") || relay.startsWith("http:")) ? other : undefined;
  } catch {
    return undefined;
  }
}
