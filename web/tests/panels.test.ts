// What stands beside a terminal: what happened, what runs, and links for others.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { violations } from "./support/axe.js";
import { DESK, enter, launch, page, PHONE, rows, shows, take } from "./support/browser.js";
import { Home, HUMAN, until } from "./support/home.js";

const BOT = "agent:bot";

let home: Home;
let browser: Browser;

beforeAll(async () => {
  [home, browser] = await Promise.all([Home.open(), launch()]);
});

afterAll(async () => {
  await browser?.close();
  await home?.close();
});

/** A panel of a session, once its terminal is there. */
async function panel(opened: Page, session: string, id: string): Promise<Page> {
  await opened.goto(`${home.url}/s/${session}/${id}`);
  await opened.locator(".xterm-screen").first().waitFor({ state: "attached" });
  return opened;
}

/** The lines a terminal of the page shows now, wherever it is scrolled to. */
function seen(opened: Page, which: "holdfastTerminal" | "holdfastPast"): Promise<string[]> {
  return opened.evaluate((name) => {
    const term = (window as unknown as Record<string, import("@xterm/xterm").Terminal | undefined>)[name];
    const buffer = term?.buffer.active;
    if (!term || !buffer) return [];
    return Array.from({ length: term.rows }, (_, row) => buffer.getLine(buffer.viewportY + row)?.translateToString(true) ?? "");
  }, which);
}

test("the timeline tells who ran what and how it ended, and a click goes to that output", async () => {
  await home.shell("told");
  await home.hf("run", "told", "--", "sh", "-c", "echo first-output; exit 3").catch(() => "");
  await home.hf("run", "told", "--", "seq", "1", "200");
  await home.hf("release", "told");
  const opened = await panel(await enter(browser, home), "told", "timeline");
  await shows(opened, "200");
  const failed = opened.locator(".act", { hasText: "first-output" });
  await failed.locator(".end", { hasText: "exit 3" }).waitFor();
  expect(await failed.innerText()).toContain("ann");
  expect((await rows(opened)).some((row) => row === "first-output")).toBe(false);
  await failed.getByRole("button").click();
  await until("the output in view", async () => (await seen(opened, "holdfastTerminal")).includes("first-output"));
  expect(await failed.getAttribute("data-marked")).toBe("true");
});

test("the timeline is live, and tells of turns, seizures, grants, questions and refusals", async () => {
  await home.shell("live");
  const opened = await panel(await enter(browser, home), "live", "timeline");
  await opened.locator(".act", { hasText: "started the session" }).waitFor();
  await home.as(BOT, "take", "live");
  await opened.locator(".act", { hasText: "took the turn" }).waitFor();
  await home.hf("seize", "live", "--reason", "<b>stop</b> \u202ethat");
  await opened
    .locator(".act.grave", { hasText: `seized the turn from ${BOT}` })
    .getByText("<b>stop</b> ⟨RLO⟩that")
    .waitFor();
  await home.as(BOT, "send", "live", "--enter", "true").catch(() => "");
  await home.as(BOT, "run", "live", "--", "true").catch(() => "");
  await opened.locator(".act.refused", { hasText: "was refused: run" }).waitFor();
  await home.hf("grant", "live", "--to", BOT, "--can", "observe,run", "--for", "2h");
  await opened.locator(".act", { hasText: "granted observe,run to" }).waitFor();
  const asked = home.as(BOT, "ask", "-t", "live", "--option", "yes", "Deploy?");
  await opened.locator(".act", { hasText: "asked Deploy?" }).waitFor();
  const [question] = await home.json<{ id: string }[]>(HUMAN, "questions");
  await home.hf("answer", question?.id ?? "", "yes");
  await opened.locator(".act", { hasText: "answered yes" }).waitFor();
  await asked;
  await opened.getByRole("button", { name: "Commands" }).click();
  expect(await opened.locator(".act.of-turn").count()).toBe(0);
});

test("output that the session no longer keeps is said to be gone; what it keeps is found among many lines", async () => {
  await home.shell("gone");
  await home.hf("run", "gone", "--", "echo", "too-long-ago");
  await home.hf("run", "gone", "--", "seq", "1", "300000");
  await home.hf("run", "gone", "--", "echo", "kept");
  await home.hf("run", "gone", "--", "seq", "1", "2000");
  await home.hf("release", "gone");
  const opened = await panel(await enter(browser, home), "gone", "timeline");
  await shows(opened, "2000");
  await opened.locator(".act", { hasText: "echo kept" }).getByRole("button").click();
  await until("the output in view", async () => (await seen(opened, "holdfastTerminal")).includes("kept"));
  await opened.locator(".act", { hasText: "too-long-ago" }).getByRole("button").click();
  await opened.getByText("That output is gone").waitFor();
  expect(await seen(opened, "holdfastTerminal")).toContain("kept");
});

test("who typed a selected line is said", async () => {
  await home.shell("typed");
  await home.hf("run", "typed", "--", "echo", "by-a-human");
  await home.hf("release", "typed");
  await home.as(BOT, "run", "typed", "--", "echo", "by-a-bot");
  const opened = await panel(await enter(browser, home), "typed", "timeline");
  await shows(opened, /^by-a-bot/);
  await opened.locator(".act", { hasText: "by-a-bot" }).waitFor();
  for (const [line, who] of [
    ["by-a-human", "ann"],
    ["by-a-bot", "bot"],
  ] as const) {
    await opened.evaluate((text) => {
      const { holdfastTerminal: term } = window as unknown as { holdfastTerminal: import("@xterm/xterm").Terminal };
      for (let at = 0; at < term.buffer.active.length; at += 1)
        if (term.buffer.active.getLine(at)?.translateToString(true) === text) term.selectLines(at, at);
    }, line);
    await opened.getByRole("button", { name: "Who typed this?" }).click();
    await until(`${who} is named`, async () => (await opened.locator('.act[data-marked="true"]').innerText()).includes(who));
    expect(await opened.locator('.act[data-marked="true"]').innerText()).toContain(`echo ${line}`);
  }
});

test("the past is replayed at any offset that is kept, read-only, while the session goes on", async () => {
  await home.shell("past");
  await home.hf("run", "past", "--", "echo", "long-ago");
  await home.hf("run", "past", "--", "clear");
  await home.hf("run", "past", "--", "echo", "just-now");
  const [run] = await home.json<{ to: number }[]>(HUMAN, "run", "ls", "past");
  const opened = await panel(await enter(browser, home), "past", "timeline");
  await shows(opened, /^just-now/);
  await opened.getByRole("button", { name: "Scrub back" }).click();
  const past = opened.getByRole("region", { name: "The past", exact: true });
  await until("the last screen", async () => (await seen(opened, "holdfastPast")).includes("just-now"));
  const runs = await home.json<{ command: string; to: number }[]>(HUMAN, "run", "ls", "past");
  const first = runs.find(({ command }) => command.includes("long-ago")) ?? run;
  await past.getByRole("slider").fill(String(first?.to));
  await until("the first screen", async () => {
    const lines = await seen(opened, "holdfastPast");
    return lines.includes("long-ago") && !lines.includes("just-now");
  });
  await past.locator(".past-act", { hasText: "echo long-ago" }).waitFor();
  // What is behind it is the session as it is.
  await home.hf("run", "past", "--", "echo", "meanwhile");
  await shows(opened, /^meanwhile/);
  await past.getByRole("button", { name: "Back to now" }).click();
  await past.waitFor({ state: "detached" });
});

test("the graph shows a server with its port and whose doing it is, as it comes and goes", async () => {
  await home.shell("graph");
  const opened = await panel(await enter(browser, home), "graph", "graph");
  await opened.getByRole("button", { name: /bash/ }).waitFor();
  await home.as(BOT, "send", "graph", "--enter", "exec 3>notes.txt; python3 -m http.server 0 --bind 127.0.0.1");
  const server = opened.getByRole("button", { name: /http\.server.*agent:bot.*listens on tcp 127\.0\.0\.1:\d+/ });
  await server.waitFor();
  const [port] = await home.json<{ address: string }[]>(HUMAN, "ports", "graph");
  await opened.locator(".pill.port", { hasText: `:${port?.address.split(":").at(-1)}` }).waitFor();
  await server.focus();
  await opened.keyboard.press("Enter");
  const details = opened.getByRole("region", { name: /Process \d+/ });
  await details.getByText("python3 -m http.server 0 --bind 127.0.0.1").waitFor();
  await details
    .getByText(/^notes\.txt$|\/notes\.txt$/)
    .first()
    .waitFor();
  await details.getByText(home.dir, { exact: true }).waitFor();
  expect(await details.innerText()).toContain(BOT);
  await home.as(BOT, "send", "graph", "\x03");
  await server.waitFor({ state: "detached" });
  // On a narrow screen it is a list.
  await opened.setViewportSize({ width: 390, height: 844 });
  await opened.locator(".tree").getByRole("button", { name: /bash/ }).waitFor();
  expect(await opened.locator(".drawing").count()).toBe(0);
});

test("a link that is shared lets somebody look and no more, until it is revoked", async () => {
  await home.shell("lent");
  await home.shell("other");
  const opened = await panel(await enter(browser, home), "lent", "share");
  await opened.getByText("Links work on this machine only.").waitFor();
  await opened.getByLabel("Note").fill("for Ben");
  await opened.getByRole("button", { name: "Create link" }).click();
  await opened.getByRole("img", { name: "The link as a QR code" }).waitFor();
  const url = await opened.getByLabel("Link", { exact: true }).inputValue();
  expect(url).toMatch(/#token=\w+&session=lent$/);

  const guest = await page(browser);
  await guest.goto(url);
  await shows(guest, "$");
  expect(guest.url()).toBe(`${home.url}/s/lent`);
  await guest.getByText("you may only watch").waitFor();
  await guest.locator(".xterm-screen").click();
  await guest.keyboard.type("x\n");
  expect((await home.screen("lent"))[0]).toBe("$");
  // A guest sees no button that is of no use to a guest; the owner sees whom the link is for.
  expect(await guest.getByRole("link", { name: "Share" }).count()).toBe(0);
  expect(await guest.getByRole("button", { name: "Fit the session to this window" }).count()).toBe(0);
  await opened.getByRole("group", { name: "Attached" }).getByText("for Ben").waitFor();
  await guest.goto(`${home.url}/s/other`);
  await guest.getByText("No such session").waitFor();
  await guest.goto(`${home.url}/s/lent`);
  await shows(guest, "$");

  await opened.getByRole("button", { name: "Revoke for Ben" }).click();
  await opened.getByText("No active links.").waitFor();
  // At once: what comes now it does not see.
  await guest.getByText("This link no longer works").waitFor();
  await home.hf("run", "lent", "--", "echo", "secret");
  await shows(await enter(browser, home, "lent"), /^secret/);
  expect((await rows(guest)).join()).not.toContain("secret");
  await guest.reload();
  await guest.getByText("This link no longer works").waitFor();
  const late = await page(browser);
  await late.goto(url);
  await late.getByText("This link no longer works").waitFor();
});

test("a link that may type takes the turn and types, and seizes nothing", async () => {
  await home.shell("open");
  const opened = await panel(await enter(browser, home), "open", "share");
  await opened.getByLabel("Watch and type").check();
  await opened.getByRole("button", { name: "Create link" }).click();
  const url = await opened.getByLabel("Link", { exact: true }).inputValue();
  const guest = await page(browser);
  await guest.goto(url);
  await shows(guest, "$");
  await take(guest);
  await guest.keyboard.type("echo by-a-guest\n");
  await shows(guest, /^by-a-guest/);
  await home.hf("seize", "open", "--reason", "enough");
  await guest.getByText("has the turn").first().waitFor();
  expect(await guest.getByRole("button", { name: "Seize" }).count()).toBe(0);
});

test("axe finds nothing serious on any panel, by day and by night, on a desk and a phone", async () => {
  await home.shell("fit");
  await home.hf("run", "fit", "--", "sh", "-c", "exit 3").catch(() => "");
  await home.hf("seize", "fit", "--reason", "a look");
  await home.hf("release", "fit");
  await home.as(BOT, "send", "fit", "--enter", "python3 -m http.server 0 --bind 127.0.0.1 > out.txt 2>&1");
  for (const options of [DESK, PHONE]) {
    for (const colorScheme of ["light", "dark"] as const) {
      const opened = await enter(browser, home, undefined, { ...options, colorScheme });
      await panel(opened, "fit", "timeline");
      await opened.getByText("exit 3", { exact: false }).first().waitFor();
      expect(await violations(opened)).toEqual([]);
      await opened.getByRole("button", { name: "Scrub back" }).click();
      await opened.getByRole("region", { name: "The past", exact: true }).waitFor();
      expect(await violations(opened)).toEqual([]);
      await panel(opened, "fit", "graph");
      await opened.getByRole("button", { name: /http\.server/ }).click();
      await opened.getByRole("region", { name: /Process \d+/ }).waitFor();
      expect(await violations(opened)).toEqual([]);
      await panel(opened, "fit", "share");
      await opened.getByRole("button", { name: "Create link" }).click();
      await opened.getByRole("img", { name: "The link as a QR code" }).waitFor();
      expect(await violations(opened)).toEqual([]);
      await opened.context().close();
    }
  }
});
