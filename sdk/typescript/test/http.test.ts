// The host's own HTTP server, with a token of its own making.

import { expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { connect as connectInBrowser } from "../src/index.js";
import { connect, gather, HoldfastError, type Client } from "../src/node.js";
import type { WebSocketLike } from "../src/websocket.js";
import { Home, until } from "./home.js";

interface Listening {
  home: Home;
  url: string;
  token: string;
  remote: Client;
}

async function listening(): Promise<Listening> {
  const home = Home.make();
  const { http: url } = JSON.parse(await home.holdfast("host", "start", "--http", "127.0.0.1:0", "--json")) as { http: string };
  const token = (await home.holdfast("token", "new")).trim();
  const remote = await connect(url, { token });
  onTestFinished(() => remote.close());
  return { home, url, token, remote };
}

it("a token is an actor: what it starts and types over HTTP is that actor's", async () => {
  const { home, remote } = await listening();
  // What it does not say the host fills in.
  const session = await remote.open({ name: "far", command: 'echo "$FROM"; exec cat', env: { FROM: "afar" } });
  await session.waitFor({ text: "afar" });
  await session.send("over there\r");
  await session.waitFor({ text: /^over there$/m });
  expect((await session.turn.get()).holder?.actor.handle).toBe("agent:node");
  const local = await (await home.client()).session("far");
  expect(Buffer.from(await local.read())).toEqual(Buffer.from(await session.read()));
});

it("a browser's way to bring a token works, and a wrong token is refused", async () => {
  const { url, token } = await listening();
  const webSocket = (url: string, subprotocols: string[]) => new WebSocket(url, subprotocols) as unknown as WebSocketLike;
  const client = connectInBrowser(url, { token, webSocket });
  onTestFinished(() => client.close());
  expect(await client.call("session.list")).toEqual([]);
  const refused = await connect(url, { token: `${token}x` }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(HoldfastError);
  expect((refused as HoldfastError).code).toBe("unidentified");
});

it("a terminal over HTTP goes on by itself where the host was killed and started again", async () => {
  const { home, url, remote } = await listening();
  const local = await home.client();
  const opened = await local.open({ command: "stty raw -echo; echo ready; exec head -c 600" });
  await opened.waitFor({ text: "ready" });
  const terminal = (await remote.session(opened.id)).attach({ size: "80x24" });
  onTestFinished(() => terminal.close());
  let shown = "";
  const states: string[] = [];
  terminal.on("output", ({ bytes }) => void (shown += Buffer.from(bytes).toString()));
  terminal.on("state", ({ state }) => void states.push(state));
  await terminal.ready;
  for (let n = 0; n < 300; n++) {
    if (n === 100) {
      await home.killHost(local);
      // The port was the kernel's to choose; the same one is asked for again.
      await home.holdfast("host", "start", "--http", new URL(url).host);
    }
    expect(await terminal.type(String(n % 10).repeat(2))).toBe(true);
  }
  await terminal.over;
  const wanted = Array.from({ length: 300 }, (_, n) => String(n % 10).repeat(2)).join("");
  expect(shown).toBe(wanted);
  await until("a reconnect", () => states.includes("reconnecting"));
  expect(Buffer.from(await gather(opened.output({ from: 0 }))).toString()).toContain(wanted);
});
