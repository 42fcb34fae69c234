// Workers against the real flow service: killed in the middle, a flow goes on with the next one.

import { execFile, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { Home, program, until } from "./home.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const example = fileURLToPath(new URL("../../../examples/pizza-order.mjs", import.meta.url));
const run = promisify(execFile);

const SAGA = `
import { Failed, flow } from "@holdfast/client/flow";
flow(async function Saga(ctx, ledger) {
  const effect = (what, rest = "true") => \`echo \${ctx.id} \${what} >> \${ctx.quote(ledger)}; \${rest}\`;
  await ctx.run("Take", effect("take"), { undo: effect("untake") });
  await ctx.all(ctx.run("Bake", effect("bake", "sleep 0.2")), ctx.run("Box", effect("box")));
  await ctx.sleep("0.2s");
  const manager = ctx.signal("manager");
  const first = await ctx.race(manager, ctx.sleep("1h", "Late"));
  if (first.step !== manager || first.result() !== "yes") throw new Failed("refused");
  return "delivered";
});
`;

const CHANGING = `
import { flow } from "@holdfast/client/flow";
flow(async function Changing(ctx) {
  await ctx.run("A", "echo a");
  await ctx.signal("go");
  return "done \\u2028";
});
`;

const FAMILY = `
import { flow } from "@holdfast/client/flow";
flow(async function Bakery(ctx, round) {
  const loaf = await ctx.child("Loaf", { round });
  const order = await ctx.signal("order");
  if (order !== "last") return ctx.continueAsNew(round + 1);
  return \`\${loaf} \${order}\`;
});
flow(async function Loaf(ctx, { round }) {
  return await ctx.run("Bake", \`echo \${ctx.id} >> ledger; echo loaf \${round}\`);
});
`;

interface View {
  status: string;
  generation?: number;
  value?: unknown;
  why?: string;
}

/** A home with workers. */
class Workshop {
  readonly home = Home.make();
  readonly env: NodeJS.ProcessEnv = { ...this.home.env, HOLDFAST_ACTOR: "agent:node", HOLDFAST_NODE: process.execPath };

  constructor() {
    expect(existsSync(`${root}/dist/flow.js`), "run `npm run build` first").toBe(true);
    mkdirSync(this.home.join("node_modules/@holdfast"), { recursive: true });
    symlinkSync(root, this.home.join("node_modules/@holdfast/client"));
  }

  holdfast = (...words: string[]) => this.home.holdfast(...words);

  write(name: string, text: string): string {
    writeFileSync(this.home.join(name), text);
    return this.home.join(name);
  }

  work(file: string, env: NodeJS.ProcessEnv = {}): ChildProcess {
    const worker = spawn(program(), ["flow", "worker", file], { env: { ...this.env, ...env }, cwd: this.home.dir, stdio: "ignore" });
    onTestFinished(() => void worker.kill("SIGKILL"));
    return worker;
  }

  async kill(worker: ChildProcess): Promise<void> {
    const gone = new Promise((resolve) => worker.once("exit", resolve));
    worker.kill("SIGKILL");
    await gone;
  }

  async until(flow: string, wanted: (view: View) => boolean): Promise<View> {
    const look = async () => JSON.parse(await this.holdfast("--json", "flow", "show", flow)) as View;
    return until(`${flow} to get so far`, async () => look().then((view) => (wanted(view) ? view : undefined)));
  }

  untilStatus(flow: string, status: string): Promise<View> {
    return this.until(flow, (view) => view.status === status);
  }

  async test(file: string): Promise<{ code: number; stdout: string }> {
    const tested = run(program(), ["flow", "test", file], { env: this.env, cwd: this.home.dir });
    return tested.then(
      ({ stdout }) => ({ code: 0, stdout }),
      (error: { code: number; stdout: string }) => ({ code: error.code, stdout: error.stdout }),
    );
  }
}

it("the pizza order prints its history, whatever worker decides", async () => {
  const shop = new Workshop();
  const file = shop.write("pizza-order.mjs", readFileSync(example, "utf8"));
  await shop.holdfast("flow", "start", "PizzaOrder", "margherita", "--id", "PizzaOrder-128");
  const first = shop.work(file);
  await shop.untilStatus("PizzaOrder-128", "WAITING_FOR(PreparePizza)");
  await shop.kill(first);
  shop.work(file);
  await shop.untilStatus("PizzaOrder-128", "COMPLETED");
  expect((await shop.holdfast("flow", "history", "PizzaOrder-128")).trim().split("\n")).toEqual([
    "1. TakeOrder → ORDER-MARGHERITA",
    "2. PreparePizza → PIZZA-ORDER-MARGHERITA",
    "3. Timer → 5s elapsed",
    "4. DeliverPizza → DELIVERED",
    "5. SendReceipt → RECEIPT SENT",
  ]);
});

it("each effect happens once while worker and service are killed", async () => {
  const shop = new Workshop();
  const file = shop.write("saga.mjs", SAGA);
  const ledger = shop.home.join("ledger");
  for (const [number, answer] of ["yes", "no"].entries()) {
    const flow = `Saga-${number}`;
    await shop.holdfast("flow", "start", "Saga", ledger, "--id", flow);
    let worker = shop.work(file);
    for (const status of ["Bake", "Timer", "manager"]) {
      await shop.until(flow, (view) => view.status.includes(status) || view.status.includes("manager"));
      await shop.kill(worker);
      const { pid } = JSON.parse(await shop.holdfast("--json", "flow", "status")) as { pid: number };
      process.kill(pid, "SIGKILL");
      worker = shop.work(file);
    }
    await shop.untilStatus(flow, "WAITING_FOR(manager, Late)");
    await shop.holdfast("flow", "signal", flow, "manager", answer);
    const end = await shop.untilStatus(flow, answer === "yes" ? "COMPLETED" : "FAILED");
    expect(end.value).toBe(answer === "yes" ? "delivered" : "refused");
    await shop.kill(worker);
  }
  const each = ["bake", "box", "take"];
  const wanted = [...each.map((what) => `Saga-0 ${what}`), ...[...each, "untake"].map((what) => `Saga-1 ${what}`)];
  expect(readFileSync(ledger, "utf8").trim().split("\n").sort()).toEqual(wanted.sort());
});

it("a flow goes on with the code it began with, and the newest is blocked where it differs", async () => {
  const shop = new Workshop();
  const file = shop.write("changing.mjs", CHANGING);
  let worker = shop.work(file);
  for (const flow of ["C-1", "C-2"]) {
    await shop.holdfast("flow", "start", "Changing", "--id", flow);
    await shop.untilStatus(flow, "WAITING_FOR(go)");
  }
  await shop.kill(worker);
  shop.write("changing.mjs", CHANGING.replace("echo a", "echo b"));
  // It says so before it is deployed.
  const tested = await shop.test(file);
  expect(tested.code).toBe(1);
  expect(tested.stdout).toContain("C-1: would be blocked: step 1: the history has");
  worker = shop.work(file);
  await shop.holdfast("flow", "signal", "C-1", "go");
  expect((await shop.untilStatus("C-1", "COMPLETED")).value).toBe("done \u2028");
  await shop.holdfast("flow", "retry", "C-2", "--new-code");
  const blocked = await shop.untilStatus("C-2", "BLOCKED");
  expect(blocked.why).toMatch(/step 1: the history has .*echo b/);
  await shop.kill(worker);
  shop.write("changing.mjs", CHANGING);
  shop.work(file);
  await shop.holdfast("flow", "retry", "C-2");
  await shop.holdfast("flow", "signal", "C-2", "go");
  expect((await shop.untilStatus("C-2", "COMPLETED")).value).toBe("done \u2028");
  expect(await shop.test(file)).toEqual({ code: 0, stdout: "C-2: fine\nC-1: fine\n2 histories, 0 would be blocked\n" });
});

it("a flow from a file gets its workers from the service, with the file as it was then", async () => {
  const shop = new Workshop();
  const file = shop.write("hosted.mjs", CHANGING);
  await shop.holdfast("flow", "start", file, "--id", "H-1");
  await shop.untilStatus("H-1", "WAITING_FOR(go)");
  shop.write("hosted.mjs", "this is no longer JavaScript");
  process.kill(JSON.parse(await shop.holdfast("--json", "flow", "status")).pid, "SIGKILL");
  await shop.holdfast("flow", "signal", "H-1", "go");
  expect((await shop.untilStatus("H-1", "COMPLETED")).value).toBe("done \u2028");
});

it("a flow with children continues as new, whatever dies", async () => {
  const shop = new Workshop();
  const file = shop.write("family.mjs", FAMILY);
  await shop.holdfast("flow", "start", "Bakery", "--data", "1", "--id", "B-1", "--cwd", shop.home.dir);
  const worker = shop.work(file);
  // It comes early: it is kept across the histories.
  await shop.holdfast("flow", "signal", "B-1", "order", "rye", "--id", "s1");
  await shop.until("B-1", (view) => view.generation === 2 && view.status.includes("order"));
  await shop.kill(worker);
  const { pid } = JSON.parse(await shop.holdfast("--json", "flow", "status")) as { pid: number };
  process.kill(pid, "SIGKILL");
  shop.work(file);
  await shop.holdfast("flow", "signal", "B-1", "order", "last");
  expect((await shop.untilStatus("B-1", "COMPLETED")).value).toBe("loaf 2 last");
  expect(readFileSync(shop.home.join("ledger"), "utf8").trim().split("\n")).toEqual(["B-1.1", "B-1.1g2"]);
  expect((await shop.holdfast("flow", "history", "B-1", "--generation", "1")).trim().split("\n")).toEqual(["1. Loaf → loaf 1", "2. order → rye", "   goes on in a new history"]);
});

it("a TypeScript file needs a loader where node does not strip types, and a file needs the package", async () => {
  const shop = new Workshop();
  const file = shop.write("typed.ts", `import { flow, type Context } from "@holdfast/client/flow";\nflow(async function Typed(ctx: Context, n: number) { return n; });\n`);
  const fails = async (path: string) => run(program(), ["flow", "worker", path], { env: shop.env }).then(() => "", (error: { stderr: string }) => error.stderr);
  if (!(process.features as { typescript?: unknown }).typescript) expect(await fails(file)).toContain("NODE_OPTIONS='--import tsx'");
  // A loader is any module that teaches node: here one that knows just these types.
  const strip = `export const load = async (url, context, next) => url.endsWith(".ts")
    ? { format: "module", shortCircuit: true, source: (await import("node:fs")).readFileSync(new URL(url), "utf8").replace(/: Context|: number|, type Context/g, "") }
    : next(url, context);`;
  const loader = `import { register } from "node:module"; register("data:text/javascript,${encodeURIComponent(strip)}");`;
  await shop.holdfast("flow", "start", "Typed", "--data", "7", "--id", "T-1");
  shop.work(file, { NODE_OPTIONS: `--import ${shop.write("loader.mjs", loader)}` });
  expect((await shop.untilStatus("T-1", "COMPLETED")).value).toBe(7);
  expect(await fails("/dev/null")).toContain("cannot read");
  const elsewhere = mkdtempSync(join(tmpdir(), "hfts"));
  onTestFinished(() => rmSync(elsewhere, { recursive: true }));
  writeFileSync(join(elsewhere, "alone.mjs"), "");
  expect(await fails(join(elsewhere, "alone.mjs"))).toContain("cannot import @holdfast/client/flow");
});
