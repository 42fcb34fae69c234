// The host is killed in the middle of things. Nothing is lost, nothing comes twice.

import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { gather } from "../src/node.js";
import { Home, until } from "./home.js";

/** Prints numbered lines, and pauses so that several hosts live while it does. */
const LINES = 6_000;
const PRINTS = `stty -onlcr; i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo "line $i of many, some of them are long"; [ $((i % 50)) = 0 ] && sleep 0.01; done`;
const PRINTED = Array.from({ length: LINES }, (_, n) => `line ${n + 1} of many, some of them are long\n`).join("");

/** Numbers that look random and are the same each time. */
function* numbers(seed: number): Generator<number, never, void> {
  let state = seed;
  for (;;) {
    state = (state * 1103515245 + 12345) % 2147483648;
    yield state;
  }
}

it("streams output byte by byte across hosts that are killed", async () => {
  const home = Home.make();
  const [reader, killer] = await Promise.all([home.client(), home.client()]);
  const session = await reader.open({ command: PRINTS });
  const parts: Uint8Array[] = [];
  let at = 0;
  let killed = 0;
  for await (const chunk of session.output({ from: 0 })) {
    expect(chunk.gap).toBeUndefined();
    if (!chunk.bytes) continue;
    expect(chunk.offset).toBe(at);
    at += chunk.bytes.length;
    parts.push(chunk.bytes);
    if (killed < 4 && at > ((killed + 1) * PRINTED.length) / 6) {
      killed += 1;
      await home.killHost(killer);
    }
  }
  expect(killed).toBe(4);
  expect(Buffer.concat(parts).toString()).toBe(PRINTED);
});

it("types byte by byte across hosts that are killed", async () => {
  const home = Home.make();
  const [typer, killer] = await Promise.all([home.client(), home.client()]);
  const random = numbers(7);
  const messages = Array.from({ length: 400 }, (_, n) => {
    const length = n % 40 === 0 ? 4096 + (random.next().value % 9000) : 1 + (random.next().value % 30);
    return Array.from({ length }, () => String.fromCharCode(97 + (random.next().value % 26))).join("");
  });
  const wanted = messages.join("");
  const session = await typer.open({ command: `stty raw -echo; echo ready; exec head -c ${wanted.length} > got` });
  await session.waitFor({ text: "ready" });
  let done = 0;
  const sending = messages.map((message) => session.send(message).then(() => (done += 1)));
  for (const share of [0.2, 0.4, 0.6, 0.8]) {
    await until(`${share} of what is typed`, () => done > share * messages.length);
    await home.killHost(killer);
  }
  await Promise.all(sending);
  await session.waitFor("exit");
  expect(readFileSync(home.join("got"), "utf8")).toBe(wanted);
});

it("shows and types through an attached terminal across hosts that are killed", async () => {
  const home = Home.make();
  const [client, killer] = await Promise.all([home.client(), home.client()]);
  const random = numbers(11);
  const messages = Array.from({ length: 300 }, () => `${random.next().value}`);
  const wanted = messages.join("");
  const session = await client.open({ command: `stty raw -echo; echo ready; head -c ${wanted.length} | tee got` });
  await session.waitFor({ text: "ready" });
  const terminal = session.attach({ size: "80x24" });
  const states: string[] = [];
  const parts: Uint8Array[] = [];
  let paints = 0;
  let painted = 0;
  terminal.on("state", ({ state }) => states.push(state));
  terminal.on("paint", ({ offset }) => {
    paints += 1;
    painted = offset;
  });
  terminal.on("output", ({ offset, bytes }) => {
    expect(offset).toBe(painted + parts.reduce((sum, part) => sum + part.length, 0));
    parts.push(bytes);
  });
  const ended = new Promise((resolve) => terminal.on("detached", resolve));
  await terminal.ready;
  let done = 0;
  const typing = (async () => {
    // One behind the other: all at once would go in one message.
    for (const message of messages) done += Number(await terminal.type(message));
  })();
  for (const share of [0.2, 0.5, 0.8]) {
    await until(`${share} of what is typed`, () => done > share * messages.length);
    await home.killHost(killer);
  }
  await typing;
  expect(done).toBe(messages.length);
  expect(await ended).toEqual({ why: "ended", exit: { code: 0 } });
  expect(readFileSync(home.join("got"), "utf8")).toBe(wanted);
  expect(Buffer.concat(parts).toString()).toBe(wanted);
  expect(paints).toBe(1);
  expect(states).toEqual(expect.arrayContaining(["connected", "reconnecting", "connected", "reconnecting"]));
});

it("does a run once although its host is killed before it answers", async () => {
  const home = Home.make();
  const client = await home.client();
  const session = await client.open();
  await session.waitFor("idle");
  const running = session.run("echo once >> count; read line; echo got $line");
  await until("the run's beginning", () => existsSync(home.join("count")));
  await home.killHost(await home.client());
  await session.send("on\r");
  expect(await running).toMatchObject({ state: "ended", exit_code: 0 });
  expect(readFileSync(home.join("count"), "utf8")).toBe("once\n");
});

it("goes on watching when another host is there", async () => {
  const home = Home.make();
  const [watcher, other] = await Promise.all([home.client(), home.client()]);
  await other.open({ name: "before", command: ["cat"] });
  const names: string[] = [];
  const watching = (async () => {
    for await (const event of watcher.events()) {
      if (event.event === "lost") continue;
      names.push(event.name);
      if (event.name === "after") return;
    }
  })();
  await until("a first event", () => names.length > 0);
  await home.killHost(other);
  await until("the watcher to be there again", async () => (await other.status()).pid);
  // Until the watcher has asked the new host, events of it are kept for it all the same.
  const after = await other.open({ name: "after", command: ["cat"] });
  await watching;
  expect(names.at(-1)).toBe("after");
  expect((await after.get()).life).toBe("running");
});

it("gives all of an ended session's output from a host that never saw it live", async () => {
  const home = Home.make();
  const client = await home.client();
  const session = await client.open({ command: "stty -onlcr; echo told" });
  await session.waitFor("exit");
  await home.killHost(client);
  expect(Buffer.from(await gather(session.output({ from: 0 }))).toString()).toBe("told\n");
});
