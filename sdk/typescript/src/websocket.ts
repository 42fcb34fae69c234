// Frames over a WebSocket: each binary message is one, without a length before it.
//
// Who speaks is said by a token, as a subprotocol where headers cannot be set (browsers), or by a cookie that the browser sends by
// itself.

import { HoldfastError, disconnected } from "./errors.js";
import { encodeFrame } from "./frame.js";
import type { Dialer, Receiver, Transport } from "./transport.js";

const SUBPROTOCOL = "holdfast.v1";
/** The subprotocol that has the token behind it. */
export const TOKEN_SUBPROTOCOL = "holdfast.token.";

/** How long a network may take to let us through. Left to themselves browsers try for minutes, also when it is there again. */
const DIAL_WAIT_MS = 10_000;

/** Of a WebSocket what is used here; the browser's, Node's and that of `ws` have it. */
export interface WebSocketLike {
  binaryType: string;
  send(data: Uint8Array): void;
  close(): void;
  addEventListener(type: "open" | "error" | "close", listener: (event: { code?: number; reason?: string; message?: string }) => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
}

export type WebSocketMaker = (url: string, subprotocols: string[]) => WebSocketLike;

/** What says who speaks; a function is asked at each connection. */
export type Token = string | (() => string | undefined | Promise<string | undefined>);

/** The address of a host's WebSocket from that of its HTTP server. */
export function socketUrl(url: string): string {
  const parsed = new URL(url);
  if (!["http:", "https:", "ws:", "wss:"].includes(parsed.protocol)) {
    throw new HoldfastError("bad_request", `invalid address of a host: ${url}`, { hint: "expected an address like http://127.0.0.1:7433" });
  }
  parsed.protocol = parsed.protocol.replace("http", "ws");
  parsed.pathname = `${parsed.pathname.replace(/\/+$/, "").replace(/\/v1(\/connect)?$/, "")}/v1/connect`;
  parsed.hash = "";
  return parsed.href;
}

/** Opens WebSockets to a host. */
export function webSocketDialer(url: string, token: Token | undefined, make: WebSocketMaker): Dialer {
  const address = socketUrl(url);
  return {
    where: url,
    dial: async (receiver, signal) => {
      const shown = typeof token === "function" ? await token() : token;
      const subprotocols = shown === undefined ? [SUBPROTOCOL] : [SUBPROTOCOL, TOKEN_SUBPROTOCOL + shown];
      return dial(address, subprotocols, make, receiver, signal);
    },
  };
}

function dial(
  address: string,
  subprotocols: string[],
  make: WebSocketMaker,
  receiver: Receiver,
  signal: AbortSignal,
): Promise<Transport> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const socket = make(address, subprotocols);
    socket.binaryType = "arraybuffer";
    let isOpen = false;
    let why: unknown;
    const stop = () => {
      socket.close();
      reject(signal.reason);
    };
    signal.addEventListener("abort", stop, { once: true });
    const late = setTimeout(() => {
      reject(disconnected(`no host answers at ${address} within ${DIAL_WAIT_MS / 1000} s`));
      socket.close();
    }, DIAL_WAIT_MS);
    socket.addEventListener("open", () => {
      isOpen = true;
      clearTimeout(late);
      signal.removeEventListener("abort", stop);
      resolve({
        isNetwork: true,
        send: (json, bytes) => socket.send(encodeFrame({ json, bytes })),
        close: () => socket.close(),
      });
    });
    socket.addEventListener("message", (event) => {
      if (event.data instanceof ArrayBuffer) receiver.frame(new Uint8Array(event.data));
      // A host sends no text messages.
      else socket.close();
    });
    socket.addEventListener("error", (event) => {
      why = event.message ?? why;
    });
    socket.addEventListener("close", (event) => {
      clearTimeout(late);
      signal.removeEventListener("abort", stop);
      const told = event.reason || why || `closed with ${event.code}`;
      if (isOpen) receiver.closed(told);
      else reject(refused(address, why) ?? disconnected(`no host answers at ${address}: ${String(told)}`, why));
    });
  });
}

/** A server that answers with a status has decided: asking again gives the same. Browsers do not tell. */
function refused(address: string, why: unknown): HoldfastError | undefined {
  const status = /server response: (\d{3})/.exec(String(why))?.[1];
  if (status === "401" || status === "403") {
    return new HoldfastError("unidentified", `the host at ${address} does not accept this token`, {
      hint: "`holdfast token new` makes one",
    });
  }
  return undefined;
}
