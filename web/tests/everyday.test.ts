// What a person meets in the first hour: sizes, scrolling, questions, ways from one session to the next.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { violations } from "./support/axe.js";
import { enter, launch, rows, shows, take } from "./support/browser.js";
import { Home, HUMAN, until } from "./support/home.js";

/** A small phone. */
const TINY = { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true, reducedMotion: "reduce" } satisfies BrowserContextOptions;

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
  const opened = await enter(browser, home, "small", TINY);
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

test("what goes wrong in a dialog is said in it, without words for a terminal", async () => {
  await home.shell("taken");
  const opened = await enter(browser, home);
  await opened.getByRole("searchbox", { name: "Search sessions" }).fill("nothing like it");
  const none = opened.getByText("No session fits");
  await none.waitFor();
  expect((await none.boundingBox())?.height).toBeLessThan(40);
  await opened.getByRole("button", { name: "New session" }).click();
  const dialog = opened.getByRole("dialog");
  await dialog.getByLabel("Name").fill("taken");
  await dialog.getByRole("button", { name: "Start" }).click();
  const alert = dialog.getByRole("alert");
  await alert.waitFor();
  expect(await alert.innerText()).toBe("a session named taken is already running");
  expect(await opened.locator(".toast").count()).toBe(0);
});

test("a program that only reads needs nobody, and one that asks does", async () => {
  await home.shell("reads");
  await home.hf("send", "reads", "--enter", "seq 3; cat");
  await home.hf("new", "-d", "-n", "asks", "--", "sh", "-c", "printf 'Go on? '; read x");
  await home.hf("new", "-d", "-n", "over", "--", "sh", "-c", "seq 30; exit 3");
  const opened = await enter(browser, home);
  await opened.getByRole("region", { name: "Needs you" }).getByRole("link", { name: /^asks/ }).waitFor();
  await opened.getByRole("region", { name: "Sessions", exact: true }).getByRole("link", { name: /^reads/ }).getByText("reads input").waitFor();
  // Lines of an ended session's card are whole.
  await until("the lines", async () => (await opened.getByRole("link", { name: /^over/ }).locator(".tail-line").allInnerTexts()).join() === "28,29,30");
});

test("sizes of text are each session's own, and a phone's bar stays in its window", async () => {
  await home.shell("large");
  await home.shell("usual");
  await home.as("agent:bot", "take", "large");
  const opened = await enter(browser, home, "large");
  const size = () => opened.evaluate(() => (window as unknown as { holdfastTerminal: import("@xterm/xterm").Terminal }).holdfastTerminal.options.fontSize);
  await opened.getByRole("button", { name: "A+ larger text" }).first().click();
  expect(await size()).toBe(15);
  await opened.goto(`${home.url}/s/usual`);
  await shows(opened, "$");
  expect(await size()).toBe(14);
  await opened.goto(`${home.url}/s/large`);
  await shows(opened, "$");
  expect(await size()).toBe(15);
  const phone = await enter(browser, home, "large", TINY);
  for (const one of [phone.getByRole("button", { name: "Seize" }), phone.getByLabel("More", { exact: true })]) {
    const box = await one.boundingBox();
    expect((box?.x ?? 999) + (box?.width ?? 0)).toBeLessThanOrEqual(360);
  }
});

test("the graph names an integrated shell as the person does, and a page without its host has its picture", async () => {
  await home.hf("new", "-d", "-n", "own-shell");
  const opened = await enter(browser, home);
  await opened.evaluate(async () => void (await navigator.serviceWorker.ready));
  await opened.goto(`${home.url}/s/own-shell/graph`);
  const root = opened.getByRole("button", { name: /^\/bin\/bash, process/ });
  await root.waitFor();
  await until("the worker", () => opened.evaluate(() => navigator.serviceWorker.controller !== null));
  await opened.context().setOffline(true);
  const other = await opened.context().newPage();
  await other.goto(`${home.url}/`);
  await other.getByText("Cannot reach the host").waitFor();
  await until("the picture", () => other.evaluate(() => (document.querySelector("main svg")?.getBoundingClientRect().width ?? 0) > 0));
});

test("a password is typed on a card, and the journal has its length only", async () => {
  await home.hf("new", "-d", "-n", "locked", "--", "sh", "-c", "stty -echo; printf 'Passphrase: '; read x; stty echo; echo got $(printf %s \"$x\" | wc -c); cat");
  const opened = await enter(browser, home);
  const card = opened.getByRole("region", { name: "locked waits for a password" });
  await card.getByText("Passphrase:").waitFor();
  await card.getByLabel("Password").fill("open sesame");
  await card.getByRole("button", { name: "Enter" }).click();
  await card.waitFor({ state: "detached" });
  await until("the program", async () => (await home.screen("locked")).some((row) => row.endsWith("got 11")));
  expect(await home.hf("journal", "locked")).not.toContain("sesame");
});

test("Ctrl+K goes to another session, does what the view offers, and finds what sessions printed", async () => {
  await home.shell("alpha");
  await home.shell("beta");
  await home.hf("send", "beta", "--enter", "echo needle-$((40+2))");
  await until("the output", async () => (await home.screen("beta")).some((row) => row === "needle-42"));
  await home.hf("release", "beta");
  const opened = await enter(browser, home, "alpha");
  await shows(opened, "$");
  await opened.locator(".xterm-screen").click();
  const field = opened.getByRole("combobox", { name: "Session or command" });
  await opened.keyboard.press("Control+k");
  await field.waitFor();
  expect(await violations(opened)).toEqual([]);
  await opened.keyboard.type("bet");
  await opened.getByRole("option", { name: /^beta/ }).waitFor();
  await opened.keyboard.press("Enter");
  await until("the other session", () => opened.url().endsWith("/s/beta"));
  await shows(opened, "needle-42");
  // The one before is the next, with no letter typed.
  await opened.keyboard.press("Control+k");
  await field.waitFor();
  await opened.keyboard.press("Enter");
  await until("the first again", () => opened.url().endsWith("/s/alpha"));
  await shows(opened, "$");
  await opened.keyboard.press("Control+k");
  await opened.keyboard.type("take the");
  await opened.getByRole("option", { name: /^Take the turn/ }).waitFor();
  await opened.keyboard.press("Enter");
  await opened.getByText("You have the turn").waitFor();
  // Twice, the key is the terminal's: what is behind the cursor goes.
  await opened.locator(".xterm-screen").click();
  await opened.keyboard.type("echo ab");
  await opened.keyboard.press("Control+b");
  await shows(opened, /echo ab$/);
  await opened.keyboard.press("Control+k");
  await field.waitFor();
  await opened.keyboard.press("Control+k");
  await field.waitFor({ state: "detached" });
  await shows(opened, /^\$ echo a$/);
  await opened.keyboard.press("Control+k");
  await field.fill("needle-4");
  await opened.keyboard.press("Enter");
  await opened.getByRole("option", { name: /needle-42 ?beta/ }).click();
  await until("the session", () => opened.url().endsWith("/s/beta"));
  await opened.getByRole("search").getByText(/of 1|1 of/).waitFor();
  // By night, though the browser says that it is day: the page, and the terminal in it.
  await opened.keyboard.press("Control+k");
  await field.fill("theme: dark");
  await opened.keyboard.press("Enter");
  const grounds = () =>
    opened.evaluate(() => {
      const { holdfastTerminal: term } = window as unknown as { holdfastTerminal: import("@xterm/xterm").Terminal };
      return [getComputedStyle(document.documentElement).backgroundColor, term.options.theme?.background];
    });
  await until("the night", async () => (await grounds()).join(" ") === "rgb(16, 22, 21) #0b100f");
  expect(await violations(opened)).toEqual([]);
  await opened.reload();
  await shows(opened, "needle-42");
  expect(await grounds()).toEqual(["rgb(16, 22, 21)", "#0b100f"]);
});

test("font and text size are this device's, for every session", async () => {
  await home.hf("new", "-d", "-n", "typed", "--", "sh", "-c", "echo typed; read x");
  await home.hf("new", "-d", "-n", "set", "--", "sh", "-c", "echo set; read x");
  const opened = await enter(browser, home, "typed");
  await shows(opened, "typed");
  const looks = () =>
    opened.evaluate(() => {
      const { holdfastTerminal: term } = window as unknown as { holdfastTerminal: import("@xterm/xterm").Terminal };
      return [term.options.fontFamily?.split(",")[0], term.options.fontSize];
    });
  const choose = async (name: string) => {
    await opened.keyboard.press("Control+k");
    await opened.getByRole("combobox").fill(name);
    await opened.keyboard.press("Enter");
  };
  expect(await looks()).toEqual(["ui-monospace", 14]);
  await choose("font: courier");
  await until("the font", async () => (await looks())[0] === '"Courier New"');
  await opened.getByRole("button", { name: "A+ larger text" }).click();
  await choose("use this text size");
  await opened.goto(opened.url().replace("/s/typed", "/s/set"));
  await shows(opened, "set");
  expect(await looks()).toEqual(['"Courier New"', 15]);
  await choose("font: system");
  await until("the device's own font again", async () => (await looks())[0] === "ui-monospace");
});

test("a session is renamed from the page, and started again when it has ended", async () => {
  await home.hf("new", "-d", "-n", "short", "--", "sh", "-c", "echo ran; read x");
  const opened = await enter(browser, home, "short");
  await shows(opened, "ran");
  await opened.getByLabel("More", { exact: true }).click();
  await opened.getByRole("button", { name: "Rename" }).click();
  await opened.getByRole("dialog").getByLabel("Name").fill("shorter");
  await opened.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
  await until("the new address", () => opened.url().endsWith("/s/shorter"));
  await home.hf("end", "shorter", "--grace", "0");
  await opened.getByRole("button", { name: "Start again" }).click();
  await opened.getByText("You have the turn").waitFor();
  await shows(opened, "ran");
  expect((await home.json<{ life: string }>(HUMAN, "info", "shorter")).life).toBe("running");
});

test("commands that were typed have their status and time in the timeline, and are stepped through", async () => {
  await home.hf("new", "-d", "-n", "steps", "--size", "80x24");
  const opened = await enter(browser, home, "steps");
  await opened.goto(`${home.url}/s/steps/timeline`);
  await shows(opened, /[#$]$/);
  await take(opened);
  await opened.keyboard.type("sh -c 'sleep 0.1; exit 3'\n");
  const failed = opened.locator(".act", { hasText: "exit 3'" });
  await failed.locator(".end", { hasText: /^exit 3 · \d+ ms$/ }).waitFor();
  await opened.keyboard.type("seq 200\n");
  await opened.locator(".act", { hasText: "seq 200" }).locator(".end", { hasText: /^exit 0/ }).waitFor();
  await opened.keyboard.press("Alt+PageUp");
  await until("the last command", async () => (await rows(opened, "viewportY")).slice(0, 4).some((row) => row.endsWith("seq 200")));
  await opened.keyboard.press("Alt+PageUp");
  await until("the one before", async () => (await rows(opened, "viewportY")).slice(0, 4).some((row) => row.includes("sleep 0.1")));
  await opened.keyboard.press("Alt+PageDown");
  await opened.keyboard.press("Alt+PageDown");
  await until("the end", async () => (await scrolled(opened)).up === 0);
  // A link to that moment opens the session there.
  await opened.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await failed.getByRole("button").click();
  await opened.getByRole("button", { name: "Copy link" }).click();
  await opened.getByText("The link to this moment is copied.").waitFor();
  const link = await opened.evaluate(() => navigator.clipboard.readText());
  expect(link).toMatch(/\/s\/steps\/timeline#at=\d+$/);
  await opened.goto("about:blank");
  await opened.goto(link);
  await until("the moment", async () => (await rows(opened, "viewportY")).slice(0, 5).some((row) => row.includes("sleep 0.1")));
});

test("text is composed on a phone, and scaled where the session is smaller than the window", async () => {
  await home.shell("composed", HUMAN, "40x8");
  const phone = await enter(browser, home, "composed", TINY);
  await shows(phone, "$");
  await phone.getByRole("button", { name: "Write" }).click();
  await phone.getByLabel("Text to send").fill("echo composed-$((40+2))");
  await phone.getByRole("button", { name: "Send", exact: true }).click();
  await shows(phone, /^composed-42/);
  expect(await phone.getByLabel("Text to send").inputValue()).toBe("");
  const desk = await enter(browser, home, "composed");
  await shows(desk, /^composed-42/);
  const width = () => desk.locator(".xterm-screen").evaluate((screen) => screen.getBoundingClientRect().width);
  const before = await width();
  await desk.getByLabel("More", { exact: true }).click();
  await desk.getByRole("button", { name: "Scale text to the window" }).click();
  await until("larger text", async () => (await width()) > before * 1.5);
  expect(await desk.evaluate(() => document.querySelector(".pane")?.scrollWidth)).toBeLessThanOrEqual(1440);
  expect(await resizes("composed")).toEqual([]);
});
