// The recorded histories that workers of all languages replay alike: spec/vectors/flows.json.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { Failed, Replay, type Context, type Decision, type Flow, type HistoryEvent } from "../src/flow.js";

interface Story {
  claim: string;
  flow: string;
  turns: Array<{ events: HistoryEvent[]; answer: Decision }>;
}

const { stories } = JSON.parse(readFileSync(new URL("../../../spec/vectors/flows.json", import.meta.url), "utf8")) as { stories: Story[] };

async function pizza(ctx: Context, kind: string): Promise<string> {
  const order = await ctx.run("Take", `take ${ctx.quote(kind)}`, { retries: 2, backoff: "1s", undo: "untake {{ output }}" });
  const bake = ctx.run("Bake", `bake ${ctx.quote(order)}`, { session: "kitchen", timeout: "1m" });
  await ctx.all(bake, ctx.sleep("5s"));
  const manager = ctx.signal<string>("manager", { timeout: "1d" });
  const first = await ctx.race(manager, ctx.ask("Deliver?", { options: ["yes", "no"], expires: "7d" }));
  return `${order} ${first.result()}`;
}

async function both(ctx: Context): Promise<string> {
  try {
    await ctx.all(ctx.run("Left", "left"), ctx.run("Right", "right"));
  } catch (error) {
    if (error instanceof Failed) return error.message;
    throw error;
  }
  return "fine";
}

async function peeks(ctx: Context): Promise<string> {
  const a = ctx.run("A", "a");
  await ctx.run("B", "b");
  return await ctx.run("Then", a.done ? "both" : "only b");
}

async function saga(ctx: Context): Promise<string> {
  await ctx.compensate("Door", "close door", { session: "hall" });
  const picked = await ctx.step("pick", async () => 7);
  return await ctx.run("Fail", `exit ${picked}`, { onLost: "fail" });
}

async function versioned(ctx: Context): Promise<number> {
  const version = ctx.version("oven", 2);
  await ctx.run("Bake", "bake");
  return version;
}

async function expires(ctx: Context): Promise<string> {
  try {
    return await ctx.ask("Deliver?", { expires: 1_000 });
  } catch (error) {
    return (error as Failed).message;
  }
}

async function ships(ctx: Context): Promise<string> {
  await ctx.wait("web", { port: 3000 }, { timeout: "1m", name: "Up" });
  const status = await ctx.wait("build");
  if (!(await ctx.approve("Ship it?", { expires: "7d" }))) throw new Failed("refused");
  return `${status} ${await ctx.agent("work", "fix the tests", { timeout: "1h" })}`;
}

async function noon(ctx: Context): Promise<void> {
  await ctx.until(new Date(1_800_000_000_000), "Noon");
}

async function family(ctx: Context, kind: string): Promise<string> {
  const first = await ctx.child<{ loaves: number }>("Bake", { kind });
  try {
    await ctx.all(ctx.child("Bake", [], { name: "Second" }), ctx.child("Rest"));
  } catch (error) {
    return `${first.loaves} ${(error as Failed).message}`;
  }
  return "fine";
}

async function loops(ctx: Context, count: number): Promise<number> {
  await ctx.sleep("1s");
  return count < 3 ? await ctx.continueAsNew(count + 1) : count;
}

async function other(ctx: Context): Promise<string> {
  return await ctx.run("Take", "take something else");
}

async function shorter(): Promise<void> {}

const FLOWS: Record<string, Flow> = { pizza: pizza as Flow, both, peeks, saga, versioned, expires, ships, noon, family: family as Flow, loops: loops as Flow, other, shorter };

it.each(stories)("$claim", async ({ flow, turns }) => {
  const run = FLOWS[flow];
  if (!run) throw new Error(`no function ${flow}`);
  const held = new Replay("F-1", run);
  const known: HistoryEvent[] = [];
  for (const { events, answer } of turns) {
    known.push(...events);
    held.feed(events);
    expect(JSON.parse(JSON.stringify(await held.decide()))).toEqual(answer);
    // From its beginning, with everything at once.
    const anew = new Replay("F-1", run);
    anew.feed(known);
    expect(JSON.parse(JSON.stringify(await anew.decide()))).toEqual(answer);
  }
});
