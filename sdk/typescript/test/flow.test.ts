// Flows without a service: what replays alike, what blocks, and what the lint finds.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { Failed, flow, FLOWS, lint, Replay, type Context, type Flow, type HistoryEvent } from "../src/flow.js";
import { milliseconds } from "../src/flow/context.js";

const STARTED: HistoryEvent = { event: "started", input: "margherita" };
const asked = (n: number, name: string): HistoryEvent => ({ event: "asked", n, command: { do: "run", name, command: name } });
const done = (n: number, output = ""): HistoryEvent => ({ event: "done", n, ok: true, value: { output } });

async function decide(run: Flow, ...history: HistoryEvent[]) {
  const replay = new Replay("F-1", run);
  replay.feed([STARTED, ...history]);
  return replay.decide();
}

const words = (decision: Awaited<ReturnType<typeof decide>>) => ("blocked" in decision ? decision.blocked : decision.commands.map(([n, { name }]) => `${n} ${name}`));

it("nothing but ctx can be awaited", async () => {
  const blocked = await decide(async () => {
    await sleep(1);
  });
  expect(blocked).toEqual({ blocked: "a flow awaits only what ctx gives; put everything else into ctx.step" });
  let go = () => {};
  const strays = new Replay("F-1", async (ctx: Context) => {
    const other = new Promise<void>((resolve) => (go = resolve)).then(() => ctx.run("Stray", "stray"));
    await ctx.all(ctx.run("A", "a"), other);
  });
  strays.feed([STARTED]);
  expect(words(await strays.decide())).toEqual(["0 A"]);
  go();
  await sleep(0);
  expect(words(await strays.decide())).toContain("Stray was asked for while the flow waited");
});

it("an error is no failure: the flow is blocked, whatever it catches", async () => {
  const throws = (ctx: Context) => ctx.step("Broken", () => JSON.parse("{"));
  expect(words(await decide(throws as Flow))).toMatch(/^Broken: SyntaxError/);
  const catches = async (ctx: Context) => {
    try {
      await ctx.run("B", "B");
    } catch {
      return "caught";
    }
  };
  expect(words(await decide(catches as Flow, asked(0, "A")))).toMatch(/^step 1: the history has .*"A".*, the code asks for .*"B"/);
  expect(words(await decide(async () => () => 1))).toBe("what the flow returns is not JSON: TypeError: a function is not JSON");
  expect(await decide(async () => Promise.reject(new Failed("refused")))).toEqual({ commands: [[0, { do: "end", ok: false, value: "refused" }]] });
});

it("branches that run at once ask in the same order in each replay", async () => {
  const branch = async (ctx: Context, name: string) => {
    await ctx.step(`${name} first`, async () => sleep(name === "A" ? 20 : 1).then(() => name));
    await ctx.run(name, name);
    return ctx.run(`${name} last`, `${name} last`);
  };
  const branches = async (ctx: Context) => Promise.all([branch(ctx, "A"), branch(ctx, "B")]);
  // B's step is ready long before A's.
  const first = await decide(branches as Flow);
  expect(words(first)).toEqual(["0 A first", "1 B first", "2 A", "3 B"]);
  const history = "commands" in first ? first.commands.flatMap(([n, command]) => [{ event: "asked", n, command }, ...(command.do === "step" ? [{ event: "done", n, ok: true, value: null }] : [])]) : [];
  expect(words(await decide(branches as Flow, ...(history as HistoryEvent[]), done(3), done(2)))).toEqual(["4 B last", "5 A last"]);
  expect(words(await decide(branches as Flow, ...(history as HistoryEvent[]), done(2), done(3)))).toEqual(["4 A last", "5 B last"]);
});

it("recorded values stay the same", async () => {
  const chancy = async (ctx: Context) => [await ctx.uuid(), await ctx.now(), await ctx.random()];
  const first = await decide(chancy);
  if ("blocked" in first) throw new Error(first.blocked);
  const history = first.commands.slice(0, 3).flatMap(([n, command]) => {
    const { value, ...bare } = command;
    return [{ event: "asked", n, command: bare }, { event: "done", n, ok: true, value }];
  });
  expect(await decide(chancy, ...history)).toEqual({ commands: [first.commands[3]] });
});

it("a flow has a name", () => {
  flow(async function Named() {});
  flow("Called", async () => {});
  expect([...FLOWS.keys()]).toEqual(["Named", "Called"]);
  expect(() => flow(async () => {})).toThrow("a flow needs a name");
});

it("durations are a number and a unit, or milliseconds", () => {
  expect([milliseconds("5s"), milliseconds("1.5h"), milliseconds(2)]).toEqual([5_000, 5_400_000, 2]);
  expect(() => milliseconds("5 parsecs")).toThrow("invalid duration");
});

const SOURCE = `
import { flow } from "@holdfast/client/flow";
const helper = () => Date.now(); // not a flow's
/* flow( Date.now() ) */
const half = 1 / 2, text = "flow(Math.random())";
flow(async function Order(ctx, pizza) {
  if (Math.random() < 0.5) await new Promise((done) => setTimeout(done, 1));
  const page = await ctx.step("read", async () => (await fetch("x")).text());
  const told = \`Date.now() \${Date.now()} \${pizza.replace(/Math.random/, "new Date()")}\`;
  return process.env.HOME + new Date(); // Date.now()
});
`;

it("the lint names line and remedy, and reads no comments, texts and steps", () => {
  expect(lint(SOURCE).map(({ line, call, instead }) => `${line} ${call}: ${instead}`)).toEqual([
    "7 Math.random: ctx.random()",
    "7 setTimeout: ctx.sleep()",
    "9 Date.now: ctx.now()",
    "10 new Date(): new Date(await ctx.now())",
    "10 process.env: ctx.step()",
  ]);
});
