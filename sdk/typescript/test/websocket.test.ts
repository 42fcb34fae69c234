// The same client over a WebSocket, and connections that break at the worst moment.

import { readFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { connect as connectInBrowser } from "../src/index.js";
import { connect, gather, HoldfastError, Identity, type Client, type ConnectOptions } from "../src/node.js";
import { socketUrl, type WebSocketLike } from "../src/websocket.js";
import { bridge, type Bridge } from "./bridge.js";
import { Home, until } from "./home.js";

const TOKEN = "tok_0123456789";

async function bridged(): Promise<{ home: Home; local: Client; bridge: Bridge; remote: (options?: ConnectOptions) => Promise<Client> }> {
  const home = Home.make();
  const local = await home.client();
  const identity = await Identity.ofHandle({ state: home.dir, run: home.join("run") }, "agent:node");
  const made = await bridge(home.join("run/host.sock"), identity, TOKEN);
  const remote = async (options: ConnectOptions = {}) => {
    const client = await connect(made.url, { token: TOKEN, ...options });
    onTestFinished(() => client.close());
    return client;
  };
  return { home, local, bridge: made, remote };
}

it("finds the WebSocket from an address as people write it", () => {
  expect(socketUrl("http://127.0.0.1:7433")).toBe("ws://127.0.0.1:7433/v1/connect");
  expect(socketUrl("https://host.example/")).toBe("wss://host.example/v1/connect");
  expect(socketUrl("https://host.example/behind/")).toBe("wss://host.example/behind/v1/connect");
  expect(socketUrl("http://127.0.0.1:7433/v1")).toBe("ws://127.0.0.1:7433/v1/connect");
  expect(() => socketUrl("file:///x")).toThrow(/invalid address/);
});

describe("over a WebSocket", () => {
  it("runs, reads and types as over the unix socket", async () => {
    const { local, remote, bridge } = await bridged();
    const client = await remote();
    const session = await local.open({ name: "work" });
    const same = await client.session("work");
    expect((await same.run("echo over the wire")).output).toBe("over the wire\n");
    await same.send("echo typed\r");
    await same.waitFor({ text: /^typed$/m });
    expect(Buffer.from(await session.read())).toEqual(Buffer.from(await same.read()));
    expect(bridge.greetings[0]).toEqual({ subprotocols: ["holdfast.v1"], authorization: `Bearer ${TOKEN}` });
    expect(bridge.asked[0]).toBe("hello");
    expect(bridge.asked).not.toContain("identify");
  });

  it("brings the token as a subprotocol where no header can be set", async () => {
    const { bridge } = await bridged();
    const webSocket = (url: string, subprotocols: string[]) => new WebSocket(url, subprotocols) as unknown as WebSocketLike;
    const client = connectInBrowser(bridge.url, { token: TOKEN, webSocket });
    onTestFinished(() => client.close());
    expect((await client.connect()).version).toBe(1);
    const subprotocols = ["holdfast.v1", `holdfast.token.${TOKEN}`];
    expect(bridge.greetings[0]).toEqual({ subprotocols, authorization: undefined });
  });

  it("does not try again where the token is refused", async () => {
    const { remote } = await bridged();
    const error = await remote({ token: "tok_wrong" }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(HoldfastError);
    expect((error as HoldfastError).code).toBe("unidentified");
  });

  it("goes on with output where a broken connection left it", async () => {
    const { local, remote, bridge } = await bridged();
    const opened = await local.open({ command: "stty -onlcr; for i in 1 2 3 4 5; do read go; seq $i 3 9000; done" });
    const session = await (await remote()).session(opened.id);
    const all = gather(session.output({ from: 0 }));
    for (let i = 0; i < 5; i++) {
      await opened.waitFor("waiting");
      await opened.send("\r");
      bridge.cutAll();
    }
    const got = Buffer.from(await all).toString();
    expect(got).toBe(Buffer.from(await opened.read()).toString());
    expect(got.length).toBeGreaterThan(50_000);
    expect(bridge.greetings.length).toBeGreaterThan(1);
  });
});

describe("over a slow line", () => {
  it("types without waiting for each answer, and in order", async () => {
    const { home, local, remote, bridge } = await bridged();
    const keys = Array.from({ length: 40 }, (_, n) => `<${n}>`);
    const opened = await local.open({ command: `stty raw -echo; echo ready; exec head -c ${keys.join("").length} > got` });
    await opened.waitFor({ text: "ready" });
    const session = await (await remote()).session(opened.id);
    bridge.held = [];
    const sending = Promise.all(keys.map((key) => session.send(key)));
    const asked = () => bridge.asked.filter((method) => method === "session.send").length;
    await until("several messages to be under way", () => asked() >= 10);
    expect(asked()).toBeLessThan(keys.length);
    bridge.release();
    await sending;
    await opened.waitFor("exit");
    expect(readFileSync(home.join("got"), "utf8")).toBe(keys.join(""));
    expect(asked()).toBe(keys.length);
  });

  it("is pushed output, and asks for none of it", async () => {
    const { local, remote, bridge } = await bridged();
    const opened = await local.open({ command: "stty -onlcr; for i in 1 2 3 4 5 6 7 8; do read go; seq 1 9000; done" });
    const session = await (await remote()).session(opened.id);
    const all = gather(session.output({ from: 0 }));
    for (let i = 0; i < 8; i++) {
      await opened.waitFor("waiting");
      await opened.send("\r");
    }
    const got = Buffer.from(await all).toString();
    expect(got).toBe(Buffer.from(await opened.read()).toString());
    const asked = (wanted: string) => bridge.asked.filter((method) => method === wanted).length;
    expect([asked("session.read"), asked("session.follow")]).toEqual([0, 1]);
    // Half a window at a time.
    expect(asked("session.credit")).toBeLessThanOrEqual(Math.ceil(got.length / (128 * 1024)));
  });
});

describe("where the answer is lost", () => {
  it("types once", async () => {
    const { home, local, remote, bridge } = await bridged();
    const opened = await local.open({ command: "stty raw -echo; echo ready; exec head -c 10006 > got" });
    await opened.waitFor({ text: "ready" });
    const session = await (await remote()).session(opened.id);
    bridge.cutAfter = "session.send";
    await session.send("abc");
    bridge.cutAfter = "session.send";
    await session.send("x".repeat(10_000));
    await session.send("def");
    await opened.waitFor("exit");
    expect(readFileSync(home.join("got"), "utf8")).toBe(`abc${"x".repeat(10_000)}def`);
    expect(bridge.asked.filter((method) => method === "session.send").length).toBe(5);
  });

  it("notices a network that swallows everything, and types once all the same", async () => {
    const { home, local, remote, bridge } = await bridged();
    const opened = await local.open({ command: "stty raw -echo; echo ready; exec head -c 6 > got" });
    await opened.waitFor({ text: "ready" });
    const session = await (await remote()).session(opened.id);
    bridge.swallowAfter = "session.send";
    await session.send("abc");
    await session.send("def");
    await opened.waitFor("exit");
    expect(readFileSync(home.join("got"), "utf8")).toBe("abcdef");
    expect(bridge.asked.filter((method) => ["session.send", "host.status"].includes(method)).slice(0, 3)).toEqual([
      "session.send",
      "host.status",
      "session.send",
    ]);
  });

  it("starts a run once", async () => {
    const { home, local, remote, bridge } = await bridged();
    const opened = await local.open();
    const session = await (await remote()).session(opened.id);
    bridge.cutAfter = "run.start";
    expect((await session.run("echo once >> times")).exit_code).toBe(0);
    expect(readFileSync(home.join("times"), "utf8")).toBe("once\n");
    expect(bridge.asked.filter((method) => method === "run.start").length).toBe(2);
  });

  it("does not repeat an act, and says that nobody knows", async () => {
    const { local, remote, bridge } = await bridged();
    const opened = await local.open({ name: "before", command: ["cat"] });
    const session = await (await remote()).session(opened.id);
    bridge.cutAfter = "session.rename";
    const error = await session.rename("after").catch((error: unknown) => error as HoldfastError);
    expect(error).toBeInstanceOf(HoldfastError);
    expect((error as HoldfastError).code).toBe("disconnected");
    expect((error as HoldfastError).message).toContain("it may have been performed");
    expect(bridge.asked.filter((method) => method === "session.rename").length).toBe(1);
    // It can be looked at, with the same client.
    await until("the new name", async () => (await session.get()).name === "after");
  });
});
