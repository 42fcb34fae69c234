// What everybody must be able to use: axe on each view, by day and night; the terminal without WebGL; the speed.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { violations } from "./support/axe.js";
import { DESK, enter, launch, page, PHONE, rows, shows, take } from "./support/browser.js";
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

test("axe finds nothing serious on any view, by day and by night, on a desk and a phone", async () => {
  await home.shell("views");
  await home.hf("new", "-d", "-n", "waits", "--", "sh", "-c", "printf 'Go on? [y/n] '; read x");
  await home.hf("new", "-d", "-n", "failed", "--", "sh", "-c", "exit 3");
  await home.as("agent:bot", "new", "-d", "-n", "port", "--", "python3", "-m", "http.server", "0", "--bind", "127.0.0.1");
  const asked = home.as("agent:bot", "ask", "-t", "views", "--option", "yes", "--option", "no", "Deploy?").catch(() => "");
  const free = home.as("agent:bot", "ask", "-t", "views", "Which branch?").catch(() => "");
  for (const options of [DESK, PHONE]) {
    for (const colorScheme of ["light", "dark"] as const) {
      const opened = await enter(browser, home, undefined, { ...options, colorScheme });
      await opened.getByText("waits for input").first().waitFor();
      await opened.getByRole("region", { name: "Ended" }).waitFor();
      expect(await violations(opened)).toEqual([]);
      await opened.getByRole("button", { name: "New session" }).click();
      expect(await violations(opened)).toEqual([]);
      await home.as("agent:bot", "take", "views").catch(() => "");
      await opened.goto(`${home.url}/s/views`);
      await shows(opened, "$");
      await opened.getByRole("region", { name: /Question/ }).first().waitFor();
      await opened.keyboard.type("x");
      expect(await violations(opened)).toEqual([]);
      await opened.getByRole("button", { name: "Seize" }).click();
      await opened.getByRole("dialog").waitFor();
      expect(await violations(opened)).toEqual([]);
      await opened.getByRole("button", { name: "Cancel" }).click();
      const menu = opened.getByLabel("More", { exact: true });
      await menu.click();
      await opened.getByRole("button", { name: "Find" }).click();
      await opened.getByRole("searchbox", { name: "Find" }).fill("$");
      await opened.getByRole("search").getByText("1 of 1").waitFor();
      await menu.click();
      await opened.getByRole("button", { name: "For a screen reader" }).click();
      await opened.locator(".xterm-accessibility-tree").waitFor({ state: "attached" });
      expect(await violations(opened)).toEqual([]);
      await menu.click();
      await opened.getByRole("button", { name: "Show as text" }).click();
      await opened.getByRole("dialog").waitFor();
      expect(await violations(opened)).toEqual([]);
      await opened.context().close();
    }
  }
  const questions = await home.json<{ id: string }[]>(HUMAN, "questions");
  for (const { id } of questions) await home.hf("ask", "--withdraw", id);
  await Promise.all([asked, free]);
});

test("the page without a login is fit for everybody, too", async () => {
  const opened = await page(browser);
  await opened.goto(home.url);
  await opened.getByText("holdfast web").waitFor();
  expect(await violations(opened)).toEqual([]);
});

test("everything is reached by keys, and the terminal lets the focus go", async () => {
  await home.shell("keys");
  const opened = await enter(browser, home, "keys");
  await shows(opened, "$");
  await take(opened);
  await opened.keyboard.press("Control+Shift+ArrowUp");
  expect(await opened.evaluate(() => document.activeElement?.closest(".session-bar") !== null)).toBe(true);
  await opened.keyboard.press("Enter");
  await opened.getByRole("button", { name: "New session" }).waitFor();
});

test("the terminal is drawn by elements and by WebGL, under the same strict policy, with its colours", async () => {
  await home.shell("drawn");
  const opened = await enter(browser, home, "drawn");
  await shows(opened, "$");
  await take(opened);
  await opened.evaluate(() => localStorage.setItem("holdfast.draw", "elements"));
  await opened.reload();
  await shows(opened, "$");
  await opened.locator(".xterm-screen").click();
  await opened.keyboard.type("clear; printf '\\033[38;2;250;10;20mtrue\\033[m\\n'\n");
  const coloured = opened.locator(".xterm-rows span", { hasText: /^true$/ });
  await until("the colour", () => coloured.first().isVisible());
  expect(await coloured.first().evaluate((element) => getComputedStyle(element).display)).toBe("inline-block");
  const [red, green] = (await coloured.first().evaluate((element) => getComputedStyle(element).color)).match(/\d+/g) ?? [];
  expect(Number(red)).toBeGreaterThan(150);
  expect(Number(green)).toBeLessThan(60);
  await opened.evaluate(() => localStorage.setItem("holdfast.draw", "webgl"));
  await opened.reload();
  await shows(opened, "true");
  expect(await opened.locator(".xterm-screen canvas").count()).toBeGreaterThan(1);
  expect(await opened.locator(".xterm-rows").count()).toBe(0);
});

test("who wants it is notified of what is new while looking elsewhere", async () => {
  await home.shell("far");
  await home.hf("new", "-d", "-n", "waited", "--", "sh", "-c", "printf 'Since long? '; read x");
  await until("a prompt", async () => (await home.json<{ state: string }>(HUMAN, "state", "waited")).state === "waiting");
  const opened = await enter(browser, home);
  // What is shown is asked of the page: a browser without a screen drops some.
  await opened.evaluate(() => {
    const shown: unknown[] = [];
    Object.assign(window, { shown });
    const show = ServiceWorkerRegistration.prototype.showNotification;
    ServiceWorkerRegistration.prototype.showNotification = async function (title, options) {
      await show.call(this, title, options);
      shown.push({ title, body: options?.body, data: options?.data });
    };
  });
  const shown = () => opened.evaluate(() => (window as unknown as { shown: unknown[] }).shown);
  await opened.context().grantPermissions(["notifications"]);
  await opened.getByRole("button", { name: "Notify me when a session waits" }).click();
  await opened.getByTitle("Notifications are on").waitFor();
  // Without a screen no window hides another.
  await opened.evaluate(() => Object.defineProperty(document, "visibilityState", { value: "hidden" }));
  await opened.getByRole("region", { name: "Needs you" }).getByRole("link", { name: /^waited/ }).waitFor();
  const asked = home.as("agent:bot", "ask", "-t", "far", "Go <b>on</b>?").catch(() => "");
  await until("a notification", async () => (await shown()).length > 0);
  await home.hf("new", "-d", "-n", "waits-now", "--", "sh", "-c", "printf 'Now? '; read x");
  await until("another", async () => (await shown()).length > 1);
  expect(await shown()).toEqual([
    { title: "agent:bot asks in far", body: "Go <b>on</b>?", data: { path: "/s/far" } },
    { title: "waits-now waits for input", body: "Now?", data: { path: "/s/waits-now" } },
  ]);
  const [question] = await home.json<{ id: string }[]>(HUMAN, "questions");
  await home.hf("answer", question?.id ?? "", "yes");
  await asked;
});

test("the page can be installed", async () => {
  const opened = await enter(browser, home);
  await opened.evaluate(async () => void (await navigator.serviceWorker.ready));
  const session = await opened.context().newCDPSession(opened);
  const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
  // A private window, which every test has, installs nothing.
  expect(installabilityErrors.filter(({ errorId }) => errorId !== "in-incognito")).toEqual([]);
  const { errors, data } = await session.send("Page.getAppManifest");
  expect(errors).toEqual([]);
  expect(data).toContain("standalone");
});

test("a link with a token that may only look opens its session, read-only", async () => {
  await home.shell("shared");
  const token = (await home.json<{ text: string }>(HUMAN, "token", "new", "--can", "observe")).text;
  const opened = await page(browser);
  await opened.goto(`${home.url}/#token=${token}&session=shared`);
  await shows(opened, "$");
  expect(opened.url()).toBe(`${home.url}/s/shared`);
  await opened.getByText("you may only watch").waitFor();
  expect(await opened.getByRole("button", { name: "Take", exact: true }).count()).toBe(0);
  await opened.locator(".xterm-screen").click();
  await opened.keyboard.type("x\n");
  await opened.getByText("You may watch this session").waitFor();
  expect((await home.screen("shared"))[0]).toBe("$");
});

test("a session with ten thousand lines above its screen is painted whole, and it is said how fast", async () => {
  await home.shell("fast", HUMAN, "100x30");
  await home.hf("send", "fast", "--enter", "seq 1 12000");
  await until("the end of the output", async () => (await home.screen("fast")).some((row) => row === "12000"));
  await home.hf("release", "fast");
  const opened = await enter(browser, home, "fast");
  await shows(opened, "12000");
  // Again, with the page's code at hand: what is measured is the session. The figure is for SPEC.md: a clock fails no test.
  const tries: number[] = [];
  while (tries.length < 5) {
    await opened.getByRole("link", { name: "All sessions" }).click();
    await opened.getByRole("link", { name: /^fast/ }).waitFor();
    await opened.evaluate(`Object.assign(window, { drawn: ${drawn.toString()} })`);
    const { ms, lines } = await opened.evaluate(paintOf, { path: "/s/fast", last: "12000" });
    expect(lines).toBeGreaterThan(9_000);
    tries.push(Math.round(ms));
  }
  console.log(`painted with 10,000 lines after ${tries.join(", ")} ms`);
  // And from an address, page and all: what the browser's own clock says since it began.
  const afresh: number[] = [];
  while (afresh.length < 5) {
    await opened.goto(`${home.url}/s/fast`);
    afresh.push(Math.round((await opened.evaluate(drawn, "12000")).at));
  }
  console.log(`the page itself and all that after ${afresh.join(", ")} ms`);
});

/** Runs in the page: from the click on a card until everything is drawn. */
async function paintOf({ path, last }: { path: string; last: string }): Promise<{ ms: number; lines: number }> {
  const from = performance.now();
  Object.assign(window, { holdfastTerminal: undefined });
  [...document.querySelectorAll<HTMLAnchorElement>("a.card")].find((card) => card.pathname === path)?.click();
  const { at, lines } = await (window as unknown as { drawn: typeof drawn }).drawn(last);
  return { ms: at - from, lines };
}

/** Runs in the page: waits until the terminal ends with a line, and that is drawn. */
async function drawn(last: string): Promise<{ at: number; lines: number }> {
  const terminal = () => (window as unknown as { holdfastTerminal?: import("@xterm/xterm").Terminal }).holdfastTerminal;
  for (;;) {
    const buffer = terminal()?.buffer.active;
    for (let row = (buffer?.length ?? 0) - 1; buffer && row >= Math.max(0, buffer.length - 30); row -= 1) {
      if (!terminal()?.element || buffer.getLine(row)?.translateToString(true) !== last) continue;
      // The frame that shows it, and the one after: by then it is on the screen.
      for (let frame = 0; frame < 2; frame += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
      return { at: performance.now(), lines: buffer.length };
    }
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
}

test("every key is echoed, and it is said how fast", async () => {
  await home.shell("echo");
  const opened = await enter(browser, home, "echo");
  await shows(opened, "$");
  await take(opened);
  const echoed = await opened.evaluate(async () => {
    const { holdfastTerminal: term } = window as unknown as { holdfastTerminal: import("@xterm/xterm").Terminal };
    const times: number[] = [];
    for (let key = 0; key < 60; key += 1) {
      const drawn = new Promise<void>((done) => {
        const parsed = term.onWriteParsed(() => {
          parsed.dispose();
          requestAnimationFrame(() => done());
        });
      });
      const from = performance.now();
      term.input("a", true);
      await drawn;
      times.push(performance.now() - from);
    }
    return times.sort((a, b) => a - b);
  });
  const [p50, p99] = [echoed[30] ?? Infinity, echoed[59] ?? Infinity];
  console.log(`key echo: p50 ${p50.toFixed(1)} ms, longest ${p99.toFixed(1)} ms`);
  expect(echoed.length).toBe(60);
});

test("a burst of ten megabytes leaves the page alive, and right in the end", async () => {
  await home.shell("burst");
  const opened = await enter(browser, home, "burst");
  await shows(opened, "$");
  await take(opened);
  await burst(opened);
});

/** Ten megabytes at once: the page goes on drawing frames, and ends with what the host has. */
async function burst(opened: Page): Promise<void> {
  await opened.evaluate(() => {
    const longest = { ms: 0 };
    Object.assign(window, { longest });
    let last = performance.now();
    const frame = (now: number) => {
      longest.ms = Math.max(longest.ms, now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await opened.keyboard.type("yes 0123456789012345678901234567890123456789012345678 | head -c 10000000; echo; echo burst-over\n");
  await shows(opened, /^burst-over/);
  const longest = await opened.evaluate(() => (window as unknown as { longest: { ms: number } }).longest.ms);
  console.log(`longest time without a frame: ${Math.round(longest)} ms`);
  await until("the host's screen", async () => JSON.stringify(await rows(opened)) === JSON.stringify(await home.screen("burst")));
}
