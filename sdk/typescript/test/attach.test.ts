// A terminal attached through the host alone.

import { expect, it } from "vitest";
import { Client, type AttachEvents, type Attachment, type Session } from "../src/node.js";
import { Home, until } from "./home.js";

/** A terminal that remembers what it was given. */
class Terminal {
  readonly events: [keyof AttachEvents, unknown][] = [];
  /** What is on it since it was painted last. */
  shown = "";
  size = "";
  paints: AttachEvents["paint"][] = [];
  private readonly decoder = new TextDecoder();

  constructor(readonly attachment: Attachment) {
    const names = ["gap", "writes", "notice", "ring", "size", "state", "refused", "detached"] as const;
    for (const name of names) attachment.on(name, (value) => void this.events.push([name, value]));
    attachment.on("paint", (paint) => {
      this.paints.push(paint);
      this.size = paint.size;
      this.shown = this.decoder.decode(paint.bytes);
    });
    attachment.on("output", ({ bytes }) => void (this.shown += this.decoder.decode(bytes)));
  }

  told<E extends keyof AttachEvents>(name: E): AttachEvents[E][] {
    return this.events.filter(([event]) => event === name).map(([, value]) => value as AttachEvents[E]);
  }

  async shows(text: string): Promise<void> {
    await until(`${JSON.stringify(text)} on the terminal`, () => this.shown.includes(text));
  }
}

async function attached(session: Session, size = "80x24", more = {}): Promise<Terminal> {
  const terminal = new Terminal(session.attach({ size, ...more }));
  await terminal.attachment.ready;
  return terminal;
}

async function opened(home: Home, command: string | string[], more = {}): Promise<{ client: Client; session: Session }> {
  const client = await home.client();
  return { client, session: await client.open({ command, ...more }) };
}

it("an attached terminal is painted, shows output and types", async () => {
  const { session } = await opened(Home.make(), "echo before; exec cat -v");
  await session.waitFor({ text: "before" });
  const terminal = await attached(session, "80x24", { tty: "browser" });
  expect(terminal.paints.map(({ why, size }) => `${why} ${size}`)).toEqual(["attached 80x24"]);
  expect(terminal.shown).toContain("before");
  expect((await session.get()).clients).toMatchObject([{ tty: "browser", size: "80x24", read_only: false }]);
  expect(await terminal.attachment.type("héllo\r")).toBe(true);
  await terminal.shows("hM-CM-)llo");
  expect(terminal.attachment.writes).toBe(true);
  expect(terminal.told("writes").at(-1)).toMatchObject({ writes: true });
  await terminal.attachment.close();
  expect(terminal.told("detached")).toEqual([{ why: "closed" }]);
  await until("nobody attached", async () => (await session.get()).clients.length === 0);
  expect((await session.turn.get()).holder).toBeUndefined();
});

it("an attached terminal that shall fit sizes the session where it is alone, and is painted in that size", async () => {
  const { session } = await opened(Home.make(), "trap 'stty size' WINCH; while :; do read line; done");
  const terminal = await attached(session, "100x30", { fit: true });
  await terminal.attachment.type("x");
  expect([terminal.size, (await session.get()).size]).toEqual(["100x30", "100x30"]);
  terminal.attachment.resize({ cols: 70, rows: 20 });
  await terminal.shows("20 70");
  await until("a paint", () => terminal.size === "70x20");
  expect(terminal.told("size")).toEqual([{ size: "70x20" }]);
  await terminal.attachment.close();
});

it("an attached terminal takes the size of whoever writes", async () => {
  const home = Home.make();
  const { session } = await opened(home, "trap 'stty size' WINCH; while :; do read line && echo got $line; done");
  const first = await attached(session, "100x30", { fit: true });
  await first.attachment.type("one\r");
  await first.shows("got one");
  const second = await attached(session, "60x20", { fit: true });
  expect(second.size, "painted in the session's size, not in its own").toBe("100x30");
  await second.attachment.type("two\r");
  await second.shows("got two");
  await until("both to have the second's size", () => first.size === "60x20" && second.size === "60x20");
  await Promise.all([first.attachment.close(), second.attachment.close()]);
});

it("an attached terminal is painted again where output is gone", async () => {
  const { session } = await opened(Home.make(), "read go; seq 1 400000; echo; echo the end; read go", { ring_bytes: 128 * 1024 });
  const terminal = new Terminal(session.attach({ size: "80x24" }));
  // A terminal that is slow with its first piece of output is lapped meanwhile.
  let slow = true;
  terminal.attachment.on("output", async () => {
    if (!slow) return;
    slow = false;
    await session.waitFor({ text: "the end" });
  });
  await terminal.attachment.ready;
  await terminal.attachment.type("\r");
  await terminal.shows("the end");
  expect(terminal.told("gap").length).toBeGreaterThan(0);
  expect(terminal.paints.map(({ why }) => why)).toContain("gap");
  await terminal.attachment.close();
});

it("an attached terminal hears of the turn, and what it types while somebody else has it is refused", async () => {
  const home = Home.make();
  const { session } = await opened(home, ["cat"]);
  const terminal = await attached(session);
  const bot = await (await home.client({ actor: "agent:bot" })).session(session.id);
  await bot.send("mine\r");
  await terminal.shows("mine");
  expect(await terminal.attachment.type("not now")).toBe(false);
  expect(terminal.told("refused").map(({ code }) => code)).toEqual(["turn_held"]);
  await session.turn.request({ through: terminal.attachment });
  await bot.turn.release();
  await until("the turn", () => terminal.attachment.writes);
  expect(terminal.told("notice")).toContainEqual({ kind: "turn", holder: "agent:bot" });
  expect(await terminal.attachment.type("now\r")).toBe(true);
  await terminal.shows("now");
  await terminal.attachment.close();
});

it("an attached terminal is told to let go, and lets go", async () => {
  const { client, session } = await opened(Home.make(), ["cat"]);
  const terminal = await attached(session);
  await client.call("session.detach", { session: session.id, clients: [terminal.attachment.client as number] });
  await terminal.attachment.over;
  expect(terminal.told("detached")).toEqual([{ why: "detached" }]);
  expect(await terminal.attachment.type("nothing")).toBe(false);
});

it("an attached terminal is over when the session is, and does not begin where there is none", async () => {
  const { session } = await opened(Home.make(), "read go; exit 3");
  const terminal = await attached(session);
  await terminal.attachment.type("\r");
  await terminal.attachment.over;
  expect(terminal.told("detached")).toEqual([{ why: "ended", exit: { code: 3 } }]);
  const late = new Terminal(session.attach({ size: "80x24" }));
  await expect(late.attachment.ready).rejects.toMatchObject({ code: "ended" });
});

it("an attached terminal leaves queries to the host, which answers each once", async () => {
  const home = Home.make();
  // Asks where the cursor is, and tells what it heard within a while.
  const asks = `stty raw -echo; while read -r -n 1 go; do printf 'ask\\033[6n'; heard=; while read -r -t 0.3 -n 1 c; do heard="$heard$c"; done; printf '\\r\\nheard[%s]\\r\\n' "$(printf %s "$heard" | tr -d '\\033')"; done`;
  const { session } = await opened(home, ["/bin/bash", "-c", asks]);
  const terminal = await attached(session);
  await terminal.attachment.type("g");
  await until("an answer", () => /heard\[\[\d+;\d+R\]/.test(terminal.shown));
  expect(terminal.shown).toContain("ask");
  expect(terminal.shown, "it never sees the query").not.toContain("\x1b[6n");
  terminal.shown = "";
  await terminal.attachment.type("g");
  await until("another answer", () => /heard\[\[\d+;\d+R\]/.test(terminal.shown));
  // Nothing that was answered before is answered again when it has gone.
  await terminal.attachment.close();
  const before = (await session.get()).head;
  await session.send("g");
  const { text } = await session.waitFor({ text: /heard\[[^\]]*\]/, from: before });
  expect(text).toMatch(/^heard\[\[\d+;\d+R\]$/);
});

it("an attached terminal only shows where it shall only show", async () => {
  const { session } = await opened(Home.make(), ["cat"]);
  const terminal = await attached(session, "80x24", { readOnly: true });
  expect(await terminal.attachment.type("no")).toBe(false);
  await session.send("yes\r");
  await terminal.shows("yes");
  await terminal.attachment.close();
});
