// Flows in the page: what they wait for, their steps on a line of time, and what a person does about them.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { line, steps, type Recorded } from "../src/flows/model.js";
import { violations } from "./support/axe.js";
import { DESK, enter, launch, PHONE, shows } from "./support/browser.js";
import { Home, until } from "./support/home.js";

let home: Home;
let browser: Browser;

const ORDER = `
flow: Order
steps:
- run: Take
  command: echo ORDER-{{ input }}
  undo: echo cancelled {{ output }}
- run: Prepare
  command: "[ -e tried ] || { touch tried; exit 3; }; echo PIZZA"
  retries: 3
  backoff: 200ms
- sleep: 1s
- ask: "Deliver \\u202e now?"
  name: Deliver
  options: [yes, no]
  expires: 3d
- signal: go
- run: Bake
  command: echo baking; read line; echo got $line
  session: kitchen
- run: Send
  command: echo SENT
`;

async function start(id: string, text: string, ...more: string[]): Promise<void> {
  const file = join(home.dir, `${id}.yaml`);
  writeFileSync(file, text);
  await home.hf("flow", "start", file, "margherita", "--id", id, ...more);
}

async function status(id: string): Promise<string> {
  return (await home.json<{ status: string }>("human:ann", "flow", "show", id)).status;
}

beforeAll(async () => {
  [home, browser] = await Promise.all([Home.open(), launch()]);
});

afterAll(async () => {
  await browser?.close();
  await home?.hf("flow", "stop").catch(() => "");
  await home?.close();
});

test("a flow is followed, answered and signalled in the page, and a step leads to the session it runs in", async () => {
  const opened = await enter(browser, home);
  await opened.goto(`${home.url}/flows`);
  await opened.getByText("No flows yet").waitFor();
  await home.shell("kitchen");
  await start("Order-1", ORDER);
  // Who started it in a terminal comes back to the window.
  await opened.evaluate(() => dispatchEvent(new Event("focus")));
  await opened.getByRole("link", { name: /Order-1/ }).first().waitFor();
  await opened.getByText("asks", { exact: true }).first().waitFor();
  await opened.getByRole("link", { name: /Order-1/ }).first().click();
  const rows = opened.getByRole("region", { name: "Steps" }).getByRole("listitem");
  await rows.filter({ hasText: "Prepare" }).getByText("2 attempts").waitFor();
  await rows.filter({ hasText: "Take" }).getByText("ORDER-margherita").first().waitFor();
  await rows.filter({ hasText: "Timer" }).getByText("elapsed").first().waitFor();
  // Hostile words are told as text.
  await opened.getByText("Deliver ⟨RLO⟩ now?").waitFor();
  await rows.filter({ hasText: "Deliver" }).getByText(/2 d 23 h left/).waitFor();
  await opened.getByRole("region", { name: /^Question/ }).getByRole("button", { name: "yes" }).click();
  await opened.getByRole("button", { name: "Send now" }).click();
  await opened.getByRole("region", { name: "Signal go" }).waitFor();
  await rows.filter({ hasText: "Deliver" }).getByText("ann").waitFor();
  await opened.getByLabel("Value of the signal").fill("now");
  await opened.getByRole("button", { name: "Send signal" }).click();
  await rows.filter({ hasText: "Bake" }).getByRole("link", { name: /runs in kitchen/ }).click();
  await shows(opened, "baking");
  await home.hf("send", "kitchen", "--enter", "rye");
  await opened.goBack();
  await opened.getByText("completed").first().waitFor();
  await rows.filter({ hasText: "Bake" }).getByText("got rye").first().waitFor();
  await opened.getByText("History", { exact: false }).last().click();
  await opened.getByRole("cell", { name: "completed" }).waitFor();
  expect(await opened.getByRole("row").count()).toBeGreaterThan(15);
});

test("a stuck step is decided, a blocked flow is let go on, and a flow is cancelled with a reason", async () => {
  const fails = "flow: Fails\nsteps:\n- run: Do\n  command: echo done\n  undo: \"[ -e mended ]\"\n- run: Break\n  command: exit 1\n";
  await start("Fails-1", fails);
  const opened = await enter(browser, home);
  await until("the stuck undo", async () => (await status("Fails-1")).startsWith("STUCK"));
  await opened.goto(`${home.url}/flows/Fails-1`);
  const stuck = opened.getByRole("region", { name: "Stuck" });
  await stuck.getByText("undo Do").waitFor();
  writeFileSync(join(home.dir, "mended"), "");
  await stuck.getByRole("button", { name: "Run it again" }).click();
  await opened.getByText("failed", { exact: true }).first().waitFor();

  await home.hf("flow", "start", "Coded", "x", "--id", "Coded-1");
  await start("Waits-1", "flow: Waits\nsteps:\n- sleep: 5d\n");
  await opened.goto(`${home.url}/flows`);
  await opened.getByText("waits for a worker").waitFor();
  await opened.getByRole("link", { name: /Waits-1/ }).click();
  await opened.getByText(/4 d 23 h left/).waitFor();
  await opened.getByRole("button", { name: "Cancel flow" }).click();
  await opened.getByRole("dialog").getByLabel("Reason").fill("not today");
  await opened.getByRole("dialog").getByRole("button", { name: "Cancel flow" }).click();
  await opened.getByText("cancelled by human:ann: not today").first().waitFor();
  expect(await status("Waits-1")).toBe("CANCELLED");
});

test("while nothing happens the page asks once a minute, and a change shows at once", async () => {
  await start("Calm-1", "flow: Calm\nsteps:\n- signal: go\n- sleep: 5d\n");
  const opened = await enter(browser, home);
  const asked: string[] = [];
  opened.on("websocket", (socket) => socket.on("framesent", ({ payload }) => /flow\.(list|get)/.test(payload.toString("latin1")) && asked.push(payload.toString("latin1"))));
  await opened.goto(`${home.url}/flows/Calm-1`);
  await opened.getByRole("region", { name: "Signal go" }).waitFor();
  await until("a question that waits", () => asked.some((one) => one.includes('"wait_ms":55000')));
  const before = asked.length;
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(asked.slice(before)).toEqual([]);
  await home.hf("flow", "signal", "Calm-1", "go");
  await opened.getByText(/4 d 23 h left/).waitFor();
});

test("axe finds nothing serious on the flows' views, by day and by night, on a desk and a phone", async () => {
  await start("Ask-1", "flow: Ask\nsteps:\n- run: A\n  command: echo one; echo two\n- ask: Go?\n  name: Go\n  options: [yes, no]\n");
  for (const options of [DESK, PHONE]) {
    for (const colorScheme of ["light", "dark"] as const) {
      const opened = await enter(browser, home, undefined, { ...options, colorScheme });
      await opened.getByRole("region", { name: "Flows" }).getByText("Ask-1").waitFor();
      expect(await violations(opened)).toEqual([]);
      await opened.goto(`${home.url}/flows`);
      await opened.getByRole("region", { name: "Needs you" }).waitFor();
      expect(await violations(opened)).toEqual([]);
      await opened.goto(`${home.url}/flows/Ask-1`);
      await opened.getByRole("region", { name: "Steps" }).getByText("Details").click();
      await opened.getByText("History", { exact: false }).last().click();
      await opened.getByRole("table").waitFor();
      expect(await violations(opened)).toEqual([]);
      expect(await opened.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(options.viewport.width);
      const shots = process.env["SHOTS"];
      if (shots) await opened.screenshot({ path: join(shots, `${options === PHONE ? "phone" : "desk"}-${colorScheme}.png`), fullPage: true });
      await opened.context().close();
    }
  }
});

test("a history becomes steps with attempts, and idle time is folded", () => {
  const run = (name: string) => ({ do: "run", name, command: "x" });
  const history: Recorded[] = [
    { at_ms: 0, event: "started", name: "A", by: "human:ann" },
    { at_ms: 0, event: "asked", n: 0, command: run("Take") },
    { at_ms: 1_000, event: "tried", n: 0, attempt: 0, outcome: { state: "ended", exit_code: 3, session: "ses_1" }, pause_ms: 500 },
    { at_ms: 2_500, event: "done", n: 0, ok: true, value: { state: "ended", exit_code: 0, output: "a\nb\n", session: "ses_2" } },
    { at_ms: 2_500, event: "asked", n: 1, command: { do: "sleep", name: "Timer", ms: 432_000_000 } },
    { at_ms: 432_002_500, event: "done", n: 1, ok: true, value: null },
    { at_ms: 432_002_500, event: "asked", n: 2, command: { do: "ask", name: "Ship", text: "?" } },
    { at_ms: 432_003_000, event: "done", n: 2, ok: true, value: { answer: "yes", by: "human:ann" } },
    { at_ms: 432_003_000, event: "asked", n: 3, command: { do: "signal", name: "go" } },
    { at_ms: 432_004_000, event: "ending", ok: false, value: "no", cancelled_by: "human:ann" },
  ];
  const all = steps(history);
  expect(all.map(({ name, state, outcome, by }) => [name, state, outcome, by])).toEqual([
    ["Take", "done", "b", undefined],
    ["Timer", "done", "5 d 0 h elapsed", undefined],
    ["Ship", "done", "yes", "human:ann"],
    ["go", "stopped", "stopped", undefined],
  ]);
  expect(all[0]?.attempts).toEqual([
    { from: 0, to: 1_000, failed: "exit 3", session: "ses_1" },
    { from: 1_500, to: 2_500, session: "ses_2" },
  ]);
  const drawn = line(all, 0, 432_004_000);
  expect(drawn.folds.map(({ ms }) => ms)).toContain(432_000_000);
  // What ran takes most of the line, though it was a moment of five days.
  expect(drawn.place(2_500)).toBeGreaterThan(0.5);
  expect([drawn.place(0), drawn.place(432_004_000)]).toEqual([0, 1]);
});
