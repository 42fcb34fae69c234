// A WebSocket server in front of a host's unix socket, for what only a server can do: refuse, cut, and look at what passes.

import { connect } from "node:net";
import { onTestFinished } from "vitest";
import { WebSocketServer } from "ws";
import { FrameReader } from "../src/frame.js";
import type { Identity } from "../src/node/identity.js";

export interface Bridge {
  url: string;
  /** Subprotocols and the authorisation that clients came with. */
  greetings: { subprotocols: string[]; authorization: string | undefined }[];
  /** Methods that were asked for. */
  asked: string[];
  /** Cuts the connection once, when this operation was forwarded and before it is answered. */
  cutAfter: string | undefined;
  /** Swallows all answers of the connections there are once this operation was forwarded, and breaks none. */
  swallowAfter: string | undefined;
  /** Answers and events are kept back here while there is a list. */
  held: (() => void)[] | undefined;
  /** Passes them on, and what comes. */
  release(): void;
  /** Ends all connections now. */
  cutAll(): void;
}

/** The token says who speaks: the bridge answers the host's challenge in the client's place. */
export async function bridge(socket: string, identity: Identity, token: string): Promise<Bridge> {
  const server = new WebSocketServer({
    port: 0,
    host: "127.0.0.1",
    path: "/v1/connect",
    handleProtocols: () => "holdfast.v1",
    verifyClient: ({ req }: { req: { headers: Record<string, string | string[] | undefined> } }, done: (ok: boolean, code?: number) => void) => {
      const { authorization, "sec-websocket-protocol": subprotocols } = req.headers;
      const ok = authorization === `Bearer ${token}` || String(subprotocols).includes(`holdfast.token.${token}`);
      done(ok, 401);
    },
  });
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const made: Bridge = {
    url: `http://127.0.0.1:${address.port}`,
    greetings: [],
    asked: [],
    cutAfter: undefined,
    swallowAfter: undefined,
    held: undefined,
    release: () => {
      made.held?.splice(0).forEach((pass) => pass());
      made.held = undefined;
    },
    cutAll: () => server.clients.forEach((client) => client.terminate()),
  };
  server.on("connection", (client, request) => {
    const subprotocols = String(request.headers["sec-websocket-protocol"]).split(/, */);
    made.greetings.push({ subprotocols, authorization: request.headers.authorization });
    const host = connect(socket);
    const reader = new FrameReader();
    let isCut = false;
    let identified = false;
    const frame = (content: Uint8Array) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(content.length);
      host.write(Buffer.concat([length, content]));
    };
    host.on("data", (bytes) => {
      for (const content of reader.push(bytes)) {
        if (isCut) continue;
        const text = Buffer.from(content).toString();
        const challenge = identified ? undefined : /"challenge":"([0-9a-f]{64})"/.exec(text)?.[1];
        if (challenge !== undefined) {
          identified = true;
          const params = identity.identify(challenge);
          frame(Buffer.from(`\x01${JSON.stringify({ jsonrpc: "2.0", id: 9_007_199_254_740_991, method: "identify", params })}`));
        }
        if (text.includes("9007199254740991")) continue;
        if (made.held) made.held.push(() => client.send(content));
        else client.send(content);
      }
    });
    host.on("error", () => client.terminate());
    host.on("close", () => client.terminate());
    client.on("message", (message: Buffer) => {
      const method = /"method":"([a-z.]+)"/.exec(message.toString("latin1"))?.[1] ?? "";
      made.asked.push(method);
      frame(message);
      if (method === made.swallowAfter) {
        made.swallowAfter = undefined;
        isCut = true;
      }
      if (method === made.cutAfter) {
        made.cutAfter = undefined;
        isCut = true;
        // The host has it; whoever waits for the answer waits in vain.
        client.close();
      }
    });
    client.on("close", () => host.end());
  });
  onTestFinished(() => {
    made.cutAll();
    return new Promise((resolve) => server.close(() => resolve()));
  });
  return made;
}

