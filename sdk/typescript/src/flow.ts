/**
 * Durable flows: ordinary async functions whose every step survives crashes.
 *
 * ```ts
 * import { flow, Failed, type Context } from "@holdfast/client/flow";
 *
 * flow(async function PizzaOrder(ctx: Context, pizza: string) {
 *   const order = await ctx.run("TakeOrder", `./take-order ${ctx.quote(pizza)}`, { undo: "./cancel-order {{ output }}" });
 *   await ctx.sleep("5d");
 *   if ((await ctx.ask("Deliver?", { options: ["yes", "no"] })) !== "yes") throw new Failed("refused");
 *   return await ctx.run("Deliver", `./deliver ${ctx.quote(order)}`);
 * });
 * ```
 *
 * `holdfast flow worker FILE.mjs` decides about such flows, `holdfast flow start PizzaOrder margherita` starts one. The function is run
 * again from its beginning whenever something new is known; what it already asked for is answered from the history. So nothing but
 * `ctx` may be awaited in it, and time, chance and the environment come from `ctx` too.
 */

export { Failed } from "./flow/book.js";
export type { Command, HistoryEvent } from "./flow/book.js";
export { Context, Step } from "./flow/context.js";
export type { AgentOptions, Duration, First, RunOptions, WaitFor } from "./flow/context.js";
export { lint } from "./flow/lint.js";
export type { Finding } from "./flow/lint.js";
export { main } from "./flow/main.js";
export { flow, FLOWS, Replay } from "./flow/replay.js";
export type { Decision, Flow } from "./flow/replay.js";
export { testHistories, Trouble, Worker } from "./flow/worker.js";
export type { WorkerOptions } from "./flow/worker.js";
