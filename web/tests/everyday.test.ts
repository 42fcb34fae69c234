// What a person meets in the first hour: sizes, scrolling, questions, ways from one session to the next.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { enter, launch, rows, shows, take } from "./support/browser.js";
import { Home, HUMAN, until } from "./support/home.js";

let home: Home;
let browser: Browser;

beforeAll(async () => {
  [home, browser] = await Promise.all([Home.open(), launch()]);
});

afterAll(async () => {
  await browser?.close();
  await home?.close();
});

/** The sizes a session was given, as its journal has them. */
async function resizes(name: string): Promise<string[]> {
  const { id } = await home.json<{ id: string }>(HUMAN, "info", name);
  const dir = join(home.dir, "sessions", id);
  const lines = readdirSync(dir).filter((file) => file.startsWith("journal.")).flatMap((file) => readFileSync(join(dir, file), "utf8").split("\n"));
  return lines.flatMap((line) => /"resize":\{"size":"(\d+x\d+)"/.exec(line)?.[1] ?? []);
}

/** How many lines above the screen the terminal has, and how far up it is scrolled. */
function scrolled(opened: Page): Promise<{ above: number; up: number }> {
  return opened.evaluate(() => {
    const { holdfastTerminal: term } = window as unknown as { holdfastTerminal: import("@xterm/xterm").Terminal };
    const { baseY, viewportY } = term.buffer.active;
    return { above: baseY, up: baseY - viewportY };
  });
}

test("a session that fits a window is resized once, and two windows that fit do not fight", async () => {
  const one = await enter(browser, home);
  await one.getByRole("button", { name: "New session" }).click();
  await one.getByRole("dialog").getByLabel("Name").fill("fits");
  await one.getByRole("dialog").getByLabel("Command").fill("bash --norc --noprofile");
  await one.getByRole("dialog").getByRole("button", { name: "Start" }).click();
  await until("this window's size", async () => (await rows(one)).length > 30);
  const [first] = await resizes("fits");
  // Another window of the same person, of another size, which fits too: it changes nothing until somebody types there.
  const two = await enter(browser, home, "fits", { viewport: { width: 900, height: 600 }, reducedMotion: "reduce" });
  await two.evaluate(() => localStorage.setItem("holdfast.fit", "yes"));
  await two.reload();
  await two.getByText("You have the turn").waitFor();
  await shows(two, "$");
  await one.keyboard.type("echo a-$((40+2))\n");
  await shows(two, /^a-42/);
  expect(await resizes("fits")).toEqual([first]);
  await two.locator(".xterm-screen").click();
  await two.keyboard.type("echo b-$((40+2))\n");
  await shows(one, /^b-42/);
  await until("the other window's size", async () => (await resizes("fits")).length > 1);
  const [, second] = await resizes("fits");
  // What would go on for ever shows in as many looks at the host as the page takes to hear of a change.
  for (let n = 0; n < 3; n += 1) {
    await home.hf("send", "fits", "--enter", `echo n-${n}`);
    await shows(one, new RegExp(`^n-${n}`));
    await shows(two, new RegExp(`^n-${n}`));
  }
  expect(await resizes("fits")).toEqual([first, second]);
});

test("the columns that fit are the same whatever columns there are", async () => {
  await home.shell("widths", HUMAN, "400x24");
  const opened = await enter(browser, home, "widths");
  await shows(opened, "$");
  await take(opened);
  // A window with room for a hundred columns and hardly more. Of few columns the whole width, rounded, is a bad measure.
  const wide = await opened.locator(".xterm-screen").evaluate((screen) => screen.getBoundingClientRect().width);
  await opened.setViewportSize({ width: Math.ceil(wide / 4) + 28, height: 700 });
  const fit = opened.getByRole("button", { name: "Fit the session to this window" });
  for (const narrow of ["20x24", "23x24"]) {
    await home.hf("resize", "widths", narrow);
    await until("the narrow size", async () => `${(await rows(opened)).length}` === "24");
    await fit.click();
    await until("a fit", async () => (await resizes("widths")).at(-1) !== narrow && (await rows(opened)).length > 24);
    await fit.click();
  }
  expect((await resizes("widths")).map((size) => size.split("x")[0])).toEqual(["20", "100", "23", "100"]);
});

test("another size leaves the lines above the screen, and the reader where it was", async () => {
  await home.shell("kept");
  await home.hf("send", "kept", "--enter", "seq 1 500; echo all-$((40+2))");
  await until("the output", async () => (await home.screen("kept")).some((row) => row === "all-42"));
  const opened = await enter(browser, home, "kept");
  await shows(opened, "all-42");
  const before = await scrolled(opened);
  expect(before.above).toBeGreaterThan(450);
  // A wheel scrolls at once, though nothing was printed since the page was opened.
  await opened.locator(".xterm-screen").hover();
  await opened.mouse.wheel(0, -1_000);
  await until("the wheel", async () => (await scrolled(opened)).up > 1);
  const { up } = await scrolled(opened);
  await home.hf("resize", "kept", "90x30");
  await until("the new size", async () => (await rows(opened)).length === 30);
  await until("the lines above", async () => (await scrolled(opened)).above > 450);
  expect((await scrolled(opened)).up).toBe(up);
});

test("on a small phone a question shows its options beside the terminal, and a tap is sent after a moment", async () => {
  await home.shell("small");
  const long = "The migration renames two columns of the table of customers, takes a lock of about a minute, and cannot be undone. Shall I run it now?";
  const options = ["--option", "run it now", "--option", "tonight", "--option", "not at all"];
  const answer = home.as("agent:bot", "ask", "-t", "small", ...options, long);
  const opened = await enter(browser, home, "small", { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true, reducedMotion: "reduce" });
  await shows(opened, "$");
  const card = opened.getByRole("region", { name: "Question from agent:bot" });
  await card.waitFor();
  const pane = await opened.locator(".pane").boundingBox();
  for (const name of ["run it now", "tonight", "not at all"]) {
    const box = await card.getByRole("button", { name }).boundingBox();
    const dock = await opened.locator(".dock").boundingBox();
    if (!box || !dock || !pane) throw new Error("not shown");
    expect(box.y + box.height).toBeLessThanOrEqual(dock.y + dock.height);
    expect(dock.y + dock.height).toBeLessThanOrEqual(pane.y + 1);
  }
  expect(pane?.height).toBeGreaterThan(120);
  await card.getByRole("button", { name: "tonight" }).click();
  // Another view does not forget it.
  await opened.getByRole("link", { name: /All sessions/ }).click();
  expect((await answer).trim()).toBe("tonight");
});
