// A connection through another window: the page runs in a frame that reaches nothing, and the window around it has keys and channels.
// What passes between them is version 1 of spec/phone.md; each side may be of another version of Holdfast than the other.

import { HoldfastError, disconnected, type ErrorCode } from "./errors.js";
import { decodeFrame, encodeFrame } from "./frame.js";
import type { Dialer, Receiver, Transport } from "./transport.js";
import type { Actor } from "./types.js";

/** Of a MessagePort what is used here. */
export interface PortLike {
  postMessage(message: unknown, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent) => void) | null;
  close(): void;
}

/** What the page says on the port of a connection. */
type FromPage = { send: Uint8Array } | { challenge: string } | { close: true };
/** What it hears there. */
type ToPage =
  | { opened: true }
  | { failed: { code: ErrorCode; message: string; hint: string } }
  | { frame: Uint8Array }
  | { signed: { actor: Actor; signature: string } }
  | { closed: string };

/** The page's half: each connection gets a port of its own from `open`. */
export function portDialer(where: string, open: () => PortLike): Dialer {
  return { where, dial: (receiver, signal) => dial(open(), where, receiver, signal) };
}

function dial(port: PortLike, where: string, receiver: Receiver, signal: AbortSignal): Promise<Transport> {
  return new Promise((resolve, reject) => {
    const say = (message: FromPage) => port.postMessage(message);
    const stop = () => {
      say({ close: true });
      port.close();
      reject(signal.reason);
    };
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    let signed: ((proof: { actor: Actor; signature: string }) => void) | undefined;
    const transport: Transport = {
      isNetwork: true,
      send: (json, bytes) => say({ send: encodeFrame({ json, bytes }) }),
      close: () => say({ close: true }),
      prover: {
        identify: (challenge) =>
          new Promise((resolve) => {
            signed = resolve;
            say({ challenge });
          }),
      },
    };
    let isOpen = false;
    port.onmessage = ({ data }: MessageEvent<ToPage>) => {
      if ("frame" in data) return receiver.frame(data.frame);
      if ("signed" in data) return signed?.(data.signed);
      signal.removeEventListener("abort", stop);
      if ("opened" in data) {
        isOpen = true;
        return resolve(transport);
      }
      port.close();
      if ("failed" in data) reject(new HoldfastError(data.failed.code, data.failed.message, { hint: data.failed.hint }));
      else if (isOpen) receiver.closed(data.closed);
      else reject(disconnected(`no way to ${where}: ${data.closed}`));
    };
  });
}

/** The other half: serves a page's connection by a dialer of this window, until one of the two ends. Then `over` is called. What is given back ends it:
 * a page that is gone says nothing. */
export function servePort(port: PortLike, dialer: Dialer, over: () => void = () => undefined): () => void {
  const say = (message: ToPage) => port.postMessage(message);
  const ending = new AbortController();
  let transport: Transport | undefined;
  const end = () => {
    ending.abort(disconnected("the page closed it"));
    transport?.close();
  };
  const receiver: Receiver = {
    frame: (content) => say({ frame: content }),
    closed: (why) => {
      say({ closed: String(why) });
      port.close();
      over();
    },
  };
  port.onmessage = ({ data }: MessageEvent<FromPage>) => {
    if ("close" in data) {
      end();
    } else if ("challenge" in data) {
      void Promise.resolve(transport?.prover?.identify(String(data.challenge))).then((proof) => proof && say({ signed: proof }));
    } else if (data.send instanceof Uint8Array) {
      const { json, bytes } = decodeFrame(data.send);
      transport?.send(json, bytes);
    }
  };
  dialer.dial(receiver, ending.signal).then(
    (opened) => {
      transport = opened;
      if (ending.signal.aborted) opened.close();
      else say({ opened: true });
    },
    (error: unknown) => {
      const { code = "disconnected", hint = "" } = error instanceof HoldfastError ? error : {};
      const message = error instanceof Error ? error.message : String(error);
      say({ failed: { code, message, hint } });
      port.close();
      over();
    },
  );
  return end;
}
