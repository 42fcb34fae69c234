// What a client does with sessions of a real host.

import { readFileSync, statSync, writeFileSync } from "node:fs";
import { expect, expectTypeOf, it } from "vitest";
import { gather, HoldfastError, type SessionView } from "../src/node.js";
import { Home, PATIENCE_MS, until } from "./home.js";

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

async function failure(promise: Promise<unknown>): Promise<HoldfastError> {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(HoldfastError);
  return error as HoldfastError;
}

it("a client of the local host starts the host, makes its actor's key, and is known by it", async () => {
  const home = Home.make();
  const client = await home.client();
  expect((await client.status()).running).toBe(0);
  expect(statSync(home.join("actors/agent.node.key")).mode & 0o777).toBe(0o600);
  const key = JSON.parse(readFileSync(home.join("actors/agent.node.pub"), "utf8")) as { id: string };
  const actors = await client.actors();
  expect(actors.map(({ actor }) => actor)).toContainEqual({ id: key.id, handle: "agent:node" });
  // The program reads the same files.
  expect(await home.holdfast("whoami")).toContain("agent:node");
});

it("a client of the local host does not start a host where it shall not", async () => {
  const home = Home.make();
  const error = await failure(home.client({ start: false, retry: { forMs: 10 } }));
  expect(error.code).toBe("disconnected");
  expect(error.message).toContain("no host is running");
});

it("a client of the local host knows each operation's parameters and answers by its name", async () => {
  const client = await Home.make().client();
  expectTypeOf(client.call("session.list", { all: true })).resolves.toEqualTypeOf<SessionView[]>();
  expect(await client.call("session.list")).toEqual([]);
  // @ts-expect-error: there is no such parameter
  expect((await failure(client.call("session.list", { al: true }))).code).toBe("bad_request");
  // @ts-expect-error: there is no such operation
  expect((await failure(client.call("session.fly"))).code).toBe("unknown_operation");
  // @ts-expect-error: without bytes there is nothing to type
  expect((await failure(client.call("session.send", { session: "x", stream: 1, seq: 1 }))).code).toBe("not_found");
  const error = await failure(client.session("nobody"));
  expect([error.code, error.message.includes("nobody"), error.hint !== ""]).toEqual(["not_found", true, true]);
});

it("a client of the local host gives up when it is told to", async () => {
  const client = await Home.make().client();
  const session = await client.open({ command: ["cat"] });
  const stopped = new Error("enough");
  const controller = new AbortController();
  const waiting = session.waitFor("exit", { signal: controller.signal });
  controller.abort(stopped);
  await expect(waiting).rejects.toBe(stopped);
  expect((await failure(session.waitFor("exit", { timeoutMs: 20 }))).code).toBe("timeout");
});

it("a session runs commands, each once per key", async () => {
  const client = await Home.make().client();
  const session = await client.open({ name: "work" });
  expect((await client.sessions()).map(({ name }) => name)).toEqual(["work"]);
  const run = await session.run("echo once >> times; cat times; false", { key: "k" });
  expect([run.exit_code, run.output, run.existing]).toEqual([1, "once\n", false]);
  const again = await session.run("echo once >> times; cat times; false", { key: "k" });
  expect([again.id, again.output, again.existing]).toEqual([run.id, "once\n", true]);
  expect((await failure(session.run("true", { key: "k" }))).code).toBe("key_conflict");
});

it("open gives the live session of a name, and starts one where there is none", async () => {
  const home = Home.make();
  const [client, other] = await Promise.all([home.client(), home.client()]);
  const sessions = await Promise.all([client.open({ name: "work" }), other.open({ name: "work" }), client.open({ name: "work" })]);
  expect(new Set(sessions.map(({ id }) => id)).size).toBe(1);
  expect((await failure(client.open({ name: "work", existing: false }))).code).toBe("name_taken");
  await sessions[0]?.end({ graceMs: 0 });
  expect((await client.open({ name: "work" })).id).not.toBe(sessions[0]?.id);
});

it("a run has a directory, variables and input of its own where they are given", async () => {
  const client = await Home.make().client();
  const session = await client.open();
  const text = "it's \\ two\nlines";
  const own = { cwd: "/usr", env: { GREETING: text, HOME: null }, stdin: `${text}\n` };
  const { output } = await session.run(`pwd; printf "%s|%s\\n" "$GREETING" "\${HOME-none}"; cat`, own);
  expect(output).toBe(`/usr\n${text}|none\n${text}\n`);
  expect((await session.run(`echo "\${GREETING-none}"; [ "$PWD" = /usr ]`)).output).toBe("none\n");
  const alone = await client.run(["cat", "-"], { stdin: text, cwd: "/usr", timeoutMs: PATIENCE_MS });
  expect([alone.exit_code, alone.output]).toEqual([0, text]);
  expect((await client.run("pwd; exit 3", { cwd: "/usr" })).exit_code).toBe(3);
});

it("runs that are asked for at once run one after the other, and tell what they print", async () => {
  const client = await Home.make().client();
  const session = await client.open();
  const same = await client.session(session.id);
  const heard: string[] = [];
  const runs = [1, 2, 3, 4].map((n) =>
    (n % 2 ? session : same).run(`echo begin ${n} >> all; echo said ${n}; echo end ${n} >> all`, { onOutput: (text) => heard.push(text) }),
  );
  expect((await Promise.all(runs)).map(({ output }) => output)).toEqual([1, 2, 3, 4].map((n) => `said ${n}\n`));
  expect(heard.join("")).toBe([1, 2, 3, 4].map((n) => `said ${n}\r\n`).join(""));
  expect((await session.run("cat all")).output).toBe([1, 2, 3, 4].map((n) => `begin ${n}\nend ${n}\n`).join(""));
  const long = await session.start("read line");
  expect((await failure(session.run("true"))).code).toBe("shell_busy");
  await long.cancel();
});

it("a run that is followed before its shell has started it begins with its output, also under the next host", async () => {
  const home = Home.make();
  const client = await home.client();
  const session = await client.open();
  // Held up between the echo and the shell's word that the command starts.
  await session.run("mkfifo gate; PS0='$(<gate)'");
  const run = await session.start("echo one; echo two");
  await session.waitFor({ text: "echo one; echo two" });
  const followed = (async () => {
    const parts = [];
    for await (const { bytes } of run) parts.push(bytes ? text(bytes) : "gap");
    return parts.join("");
  })();
  expect([(await run.get()).state, text(await run.output())]).toEqual(["starting", ""]);
  await home.killHost(client);
  expect((await run.get()).state).toBe("starting");
  writeFileSync(home.join("gate"), "");
  expect(await followed).toBe("one\r\ntwo\r\n");
});

it("a key is its actor's own unless it is shared", async () => {
  const home = Home.make();
  const [one, other] = await Promise.all([home.client(), home.client({ actor: "agent:bot" })]);
  const session = await one.open({ name: "work" });
  const its = await other.session("work");
  await session.run("true", { key: "own" });
  expect((await failure(other.getRun("own"))).code).toBe("no_such_run");
  const first = await session.run("false", { key: "k", shared: true });
  const second = await its.run("false", { key: "k", shared: true });
  expect([second.id, second.existing, (await other.getRun("k")).id]).toEqual([first.id, true, first.id]);
});

it("a session has runs that are waited for, read and cancelled", async () => {
  const client = await Home.make().client();
  const session = await client.open();
  const run = await session.start("seq 1 50000; read line");
  await session.waitFor({ text: /^50000$/m });
  // bash takes an interrupt while it waits for seq, which ends by itself, as none of its own.
  await session.waitFor("waiting");
  expect(run.isOver).toBe(false);
  const busy = await failure(session.run("true"));
  expect([busy.code, (busy.details as { run: string }).run]).toEqual(["shell_busy", run.id]);
  expect((await failure(run.wait({ timeoutMs: 20 }))).code).toBe("timeout");
  expect((await run.cancel()).state).toBe("cancelled");
  expect((await run.wait()).state).toBe("cancelled");
  const output = text(await run.output());
  expect(output).toContain("\n49999\r\n50000\r\n");
  expect(await client.getRun(run.id)).toMatchObject({ id: run.id });
  const followed = await session.start("for i in 1 2 3; do echo $i; sleep 0.05; done");
  expect(text(await gather(followed.follow()))).toBe("1\r\n2\r\n3\r\n");
});

it("a session types, presses keys and shows its screen", async () => {
  const client = await Home.make().client();
  const session = await client.open({ command: ["cat", "-v"], size: "60x10" });
  await session.send("grüße\r");
  await session.waitFor({ text: /^grM-/m });
  await session.keys("Up", "Enter");
  await session.waitFor({ text: /^\^\[\[A$/m });
  const screen = await session.screen();
  expect([screen.size, screen.rows[0]]).toEqual(["60x10", "grüße"]);
  await session.keys("C-d");
  expect(await session.waitFor("exit")).toEqual({ exit: { code: 0 } });
  expect((await session.get()).life).toBe("ended");
});

it("a session gives its output by offset until its end", async () => {
  const client = await Home.make().client();
  const session = await client.open({ command: "stty -onlcr; read go; seq 1 20000" });
  const all = gather(session.output());
  await session.waitFor("waiting");
  const before = text(await session.read());
  await session.send("\r");
  const wanted = Array.from({ length: 20000 }, (_, n) => `${n + 1}\n`).join("");
  const got = text(await all);
  expect(got.endsWith(wanted)).toBe(true);
  expect(text(await gather(session.output({ from: before.length })))).toBe(got.slice(before.length));
});

it("a session tells what is gone of its output as a gap", async () => {
  const client = await Home.make().client();
  const session = await client.open({ command: "seq 1 200000", ring_bytes: 256 * 1024 });
  await session.waitFor("exit");
  const chunks = [];
  for await (const chunk of session.output({ from: 0 })) chunks.push(chunk);
  const [gap, first] = chunks;
  expect(gap?.gap?.from).toBe(0);
  expect(first?.bytes && first.offset).toBe(gap?.gap?.to);
  expect(chunks.filter((chunk) => chunk.gap).length).toBe(1);
});

it("a session is waited for by port, text and state", async () => {
  const client = await Home.make().client();
  const session = await client.open();
  const serve = "import socket; s=socket.create_server(('127.0.0.1', 0)); print('port', s.getsockname()[1], flush=True); input('more? ')";
  await session.start(`python3 -c "${serve}"`);
  const { text: shown } = await session.waitFor({ text: /^port (\d+)/m });
  const port = Number(shown?.split(" ")[1]);
  const { listener } = await session.waitFor({ port });
  expect(listener?.address).toBe(`127.0.0.1:${port}`);
  expect((await session.ports()).map(({ address }) => address)).toEqual([`127.0.0.1:${port}`]);
  expect((await session.waitFor({ state: "waiting" })).state).toMatchObject({ state: "waiting", prompt: "more?" });
  expect((await session.graph()).processes.length).toBeGreaterThan(1);
  await session.send("\r");
  await session.waitFor("idle");
  await session.start("tail -f /dev/null");
  expect((await session.waitFor({ state: "blocked_elsewhere" })).state?.state).toBe("blocked_elsewhere");
  await session.end({ graceMs: 0 });
  expect((await failure(session.waitFor({ text: "never" }))).code).toBe("ended");
});

it("a session has one writer at a time, and a turn that is handed over", async () => {
  const home = Home.make();
  const [ann, bot] = await Promise.all([home.client(), home.client({ actor: "agent:bot" })]);
  const session = await ann.open({ command: ["cat"] });
  await session.send("mine\r");
  const other = await bot.session(session.id);
  const refused = await failure(other.send("no"));
  expect([refused.code, JSON.stringify(refused.details).includes("agent:node")]).toEqual(["turn_held", true]);
  expect((await other.turn.request()).before).toBe(0);
  expect((await session.turn.get()).queue).toEqual(["agent:bot"]);
  await session.turn.give("agent:bot");
  expect((await other.turn.get()).holder?.actor.handle).toBe("agent:bot");
  await other.send("yours\r");
  await other.turn.release();
  expect((await session.turn.take()).turn.holder?.actor.handle).toBe("agent:node");
});

it("a session tells what happens in it", async () => {
  const client = await Home.make().client();
  const controller = new AbortController();
  const seen: string[] = [];
  let begun!: () => void;
  const beginning = new Promise<void>((resolve) => (begun = resolve));
  const first = await client.open({ name: "first", command: ["cat"] });
  const watching = (async () => {
    for await (const event of client.events({ signal: controller.signal })) {
      if (event.event === "lost") continue;
      seen.push(`${event.name} ${event.event}`);
      begun();
      if (event.event === "exit" && event.name === "second") return;
    }
  })();
  await beginning;
  const second = await client.open({ name: "second", command: ["true"] });
  await second.waitFor("exit");
  await watching;
  expect(seen[0]).toBe("first state");
  expect(seen).toEqual(expect.arrayContaining(["second started", "second exit"]));
  await first.end({ graceMs: 0 });
});

it("a session that many wait for answers who does not wait", async () => {
  const client = await Home.make().client();
  const session = await client.open({ command: ["cat"] });
  const waiting = Array.from({ length: 80 }, () => session.waitFor("exit"));
  // More than a connection may have open at the host.
  const signal = AbortSignal.timeout(PATIENCE_MS / 2);
  expect((await client.status({ signal })).running).toBe(1);
  await session.send("\x04", { signal });
  expect((await Promise.all(waiting)).every(({ exit }) => exit !== undefined)).toBe(true);
});

it("a session asks its humans, and only they answer", async () => {
  const home = Home.make();
  const [agent, ann] = await Promise.all([home.client(), home.human("ann")]);
  const session = await agent.open({ name: "deploy", command: ["cat"] });
  const asking = session.ask("ship it?", { options: ["yes", "no"] });
  const question = await until("the question", async () => (await ann.questions())[0]);
  expect([question.text, question.name, question.by.handle]).toEqual(["ship it?", "deploy", "agent:node"]);
  expect((await failure(agent.answer(question, "yes"))).code).toBe("denied");
  await ann.answer(question, 1);
  expect(await asking).toMatchObject({ state: "answered", answer: { text: "no", by: { handle: "human:ann" } } });
  expect((await failure(session.ask("anybody?", { timeoutMs: 20 }))).code).toBe("timeout");
  expect((await agent.questions()).map(({ text }) => text)).toEqual(["anybody?"]);
});

it("a session takes a client's variables, and those it is given", async () => {
  const client = await Home.make().client();
  const session = await client.open({ command: "env", env: { EXTRA: "a=b", LANG: null } });
  await session.waitFor("exit");
  const lines = text(await session.read()).split("\r\n");
  expect(lines).toContain("EXTRA=a=b");
  expect(lines).toContain("TERM=xterm-256color");
  expect(lines.filter((line) => /^LANG=|^HOLDFAST_ACTOR=./.test(line))).toEqual([]);
});
