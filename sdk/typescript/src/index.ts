/**
 * Sessions of a Holdfast host, from browsers and everything that has a WebSocket. `@holdfast/client/node` has this and the way
 * over a unix socket.
 */

import { Client, type ClientOptions } from "./client.js";
import { HoldfastError } from "./errors.js";
import { webSocketDialer, type Token, type WebSocketMaker } from "./websocket.js";

export { Attachment } from "./attach.js";
export type { AttachEvents, AttachOptions } from "./attach.js";
export { Client } from "./client.js";
export type { Answer, CallOptions, ClientOptions, OperationName, Params, RunNewOptions, WatchEvent } from "./client.js";
export type { Own } from "./command.js";
export { HoldfastError, isBroken } from "./errors.js";
export type { ErrorCode } from "./errors.js";
export { Files } from "./files.js";
export type { FileEvent, ReadFileOptions, WriteOptions } from "./files.js";
export { decodeFrame, encodeFrame, encodeStreamFrame, FrameReader } from "./frame.js";
export type { Frame } from "./frame.js";
export { newKey, newRunId, newStream } from "./ids.js";
export { keyText } from "./keys.js";
export type { Retry } from "./link.js";
export { gather } from "./output.js";
export type { Chunk } from "./output.js";
export { pageKey, showPage } from "./page.js";
export type { Challenge } from "./page.js";
export { portDialer } from "./port.js";
export type { PortLike } from "./port.js";
export { plainText } from "./plain.js";
export type { AskOptions } from "./question.js";
export { Run } from "./run.js";
export type { WaitOptions } from "./run.js";
export { Session } from "./session.js";
export type { Awaited, Came, OpenOptions, RunAndWaitOptions, RunOptions } from "./session.js";
export type { Dialer, Proven, Prover, Receiver, Transport } from "./transport.js";
export { Turn } from "./turn.js";
export type { TypeOptions } from "./typist.js";
export type * from "./types.js";
export { OPERATION_NAMES } from "./types.js";
export type { WebSocketLike, WebSocketMaker } from "./websocket.js";

/** How to reach a host over a WebSocket. */
export interface ConnectOptions extends ClientOptions {
  /** Identifies the actor. Without it the browser's cookie does. */
  token?: Token;
  /** Makes a WebSocket where there is no global one. */
  webSocket?: WebSocketMaker;
}

/** A client of the host at an address like `http://127.0.0.1:7433`. It connects when something is asked, or by `connect()`. */
export function connect(url: string, options: ConnectOptions = {}): Client {
  const { token, webSocket = globalWebSocket, ...rest } = options;
  return new Client(webSocketDialer(url, token, webSocket), rest);
}

const globalWebSocket: WebSocketMaker = (url, subprotocols) => {
  if (typeof WebSocket === "undefined") {
    throw new HoldfastError("bad_request", "this runtime has no WebSocket", {
      hint: "in Node import `connect` from `@holdfast/client/node`, and install `ws`",
    });
  }
  return new WebSocket(url, subprotocols) as unknown as ReturnType<WebSocketMaker>;
};
