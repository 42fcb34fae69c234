// One session in a real browser, against a real host.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { enter, launch, page, rows, shows, take } from "./support/browser.js";
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

test("without a login the page says what to do, and a code works once and leaves the address", async () => {
  const opened = await page(browser);
  await opened.route("**/v1/me", (route) => route.continue());
  await opened.goto(home.url).catch(() => undefined);
  await opened.getByText("holdfast web").waitFor();
  const entrance = await home.entrance();
  await opened.goto("about:blank");
  await opened.goto(entrance);
  await opened.getByRole("button", { name: "New session" }).waitFor();
  expect(opened.url()).not.toContain("code");
  const cookies = await opened.context().cookies();
  expect(cookies.every((cookie) => cookie.httpOnly && cookie.sameSite === "Strict")).toBe(true);
  expect(cookies.length).toBe(1);
});

test("what is typed with the turn reaches the shell, and the page shows what the host does", async () => {
  await home.shell("typed");
  const opened = await enter(browser, home, "typed");
  await shows(opened, "$");
  await take(opened);
  await opened.keyboard.type("echo one$((1+1))three\n");
  await shows(opened, "one2three");
  await until("the same screen", async () => same(await rows(opened), await home.screen("typed")));
});

test("typing while the turn is free takes it, and no key is lost", async () => {
  await home.shell("free");
  const opened = await enter(browser, home, "free");
  await shows(opened, "$");
  await opened.locator(".xterm-screen").click();
  await opened.keyboard.type("echo first$((40+2))\n");
  await shows(opened, /^first42/);
  await opened.getByText("You have the turn").waitFor();
  expect((await home.screen("free"))[0]).toBe("$ echo first$((40+2))");
});

test("the turn is asked for, given, and passed on", async () => {
  await home.shell("passing");
  await home.as("agent:bot", "take", "passing");
  const opened = await enter(browser, home, "passing");
  await opened.getByText("agent:bot has the turn").waitFor();
  await opened.locator(".xterm-screen").click();
  await opened.keyboard.type("x");
  await opened.getByRole("button", { name: "Request the turn" }).click();
  await opened.getByRole("button", { name: "Requested" }).waitFor();
  await home.as("agent:bot", "release", "passing");
  await opened.getByText("You have the turn").waitFor();
  await home.as("agent:bot", "request", "passing");
  await opened.getByRole("button", { name: "Give to agent:bot" }).click();
  await opened.getByText("agent:bot has the turn").waitFor();
});

test("a looping writer is seized with a reason, frozen, and thawed", async () => {
  await home.shell("loop");
  await home.as("agent:bot", "send", "loop", "--enter", "while :; do echo again; sleep 0.05; done");
  await home.as("agent:bot", "take", "loop").catch(() => "");
  const opened = await enter(browser, home, "loop");
  await opened.getByRole("button", { name: "Seize" }).click();
  const dialog = opened.getByRole("dialog");
  expect(await dialog.getByRole("button", { name: "Seize" }).isDisabled()).toBe(true);
  await dialog.getByLabel("Reason").fill("it loops");
  await dialog.getByLabel("Freeze").check();
  await dialog.getByRole("button", { name: "Seize" }).click();
  await opened.getByText("You have the turn").waitFor();
  await opened.getByText("frozen").first().waitFor();
  expect(await home.hf("journal", "loop")).toContain("it loops");
  await opened.getByRole("button", { name: "Thaw" }).click();
  await until("the thaw", async () => !(await home.json<{ turn: { frozen?: unknown } }>(HUMAN, "info", "loop")).turn.frozen);
  await opened.locator(".xterm-screen").click();
  await opened.keyboard.press("Control+c");
  await opened.keyboard.type("echo stopped\n");
  await shows(opened, /^stopped/);
});

test("vim is exact, before and after the session takes the window's size", async () => {
  await home.shell("vim");
  const opened = await enter(browser, home, "vim");
  await shows(opened, "$");
  await take(opened);
  await opened.keyboard.type("vim -u NONE -c 'set laststatus=2 ruler' notes\n");
  // The editor's own screen: the command line names the file before the editor reads.
  await shows(opened, /^~$/);
  await opened.keyboard.type("iline one\nline two");
  await opened.keyboard.press("Escape");
  await shows(opened, "line two");
  await until("the same screen", async () => same(await rows(opened), await home.screen("vim")));
  await opened.getByRole("button", { name: /Fit/ }).click();
  await until("another size", async () => (await rows(opened)).length > 30);
  await until("the same screen", async () => same(await rows(opened), await home.screen("vim")));
  await opened.locator(".xterm-screen").click();
  await opened.keyboard.type(":wq\n");
  // A new prompt, not the one that the editor had covered.
  await shows(opened, /^\$$/);
  await opened.keyboard.type("cat notes\n");
  await shows(opened, "line one");
});

test("a question is answered with one tap, and the tab tells of it", async () => {
  await home.shell("asking");
  const answer = home.as("agent:bot", "ask", "-t", "asking", "--option", "yes", "--option", "not yet", "Deploy now?");
  const opened = await enter(browser, home);
  const card = opened.getByRole("region", { name: "Question from agent:bot" });
  await card.getByText("Deploy now?").waitFor();
  await until("the title", async () => /^\(\d+\)/.test(await opened.title()));
  expect(await opened.locator("#favicon").getAttribute("href")).toBe("/icon-waits.svg");
  // A tap can be taken back.
  await card.getByRole("button", { name: "yes", exact: true }).click();
  await card.getByText("Answering “yes”").waitFor();
  await card.getByRole("button", { name: "Undo" }).click();
  await card.getByRole("button", { name: "not yet" }).click();
  await card.getByRole("button", { name: "Send now" }).click();
  expect((await answer).trim()).toBe("not yet");
  await card.waitFor({ state: "detached" });
});

test("a question without options is answered with a text beside the terminal", async () => {
  await home.shell("texts");
  const answer = home.as("agent:bot", "ask", "-t", "texts", "Which branch?");
  const opened = await enter(browser, home, "texts");
  await opened.getByRole("button", { name: "Later" }).click();
  await opened.getByText("Which branch?").waitFor({ state: "detached" });
  await opened.getByRole("button", { name: "Show", exact: true }).click();
  await opened.getByLabel("Your answer").fill("main");
  await opened.getByRole("button", { name: "Answer" }).click();
  expect((await answer).trim()).toBe("main");
});

test("Home has what needs somebody first, tells what changes, and finds", async () => {
  await home.shell("calm");
  const opened = await enter(browser, home);
  const needing = opened.getByRole("region", { name: "Needs you" });
  await opened.getByRole("link", { name: /^calm/ }).waitFor();
  await home.hf("new", "-d", "-n", "needy", "--", "sh", "-c", "printf 'Overwrite? [y/N] '; read x");
  const card = needing.getByRole("link", { name: /^needy/ });
  await card.getByText("Overwrite? [y/N]").first().waitFor();
  await card.getByText("waits for input").waitFor();
  await home.hf("send", "needy", "--enter", "y");
  await opened.getByRole("region", { name: "Ended" }).getByRole("link", { name: /^needy/ }).waitFor();
  await home.as("agent:bot", "take", "calm");
  await opened.getByRole("link", { name: /^calm.*bot.*has the turn/ }).waitFor();
  await opened.getByRole("searchbox", { name: "Search sessions" }).fill("agent:bot");
  await opened.getByRole("link", { name: /^needy/ }).waitFor({ state: "detached" });
  await opened.getByRole("link", { name: /^calm/ }).waitFor();
  await opened.getByRole("searchbox", { name: "Search sessions" }).fill("cal");
  await until("one card", async () => (await opened.locator("a.card").count()) === 1);
});

test("signed out, the page asks for a new link, and another link lets in again", async () => {
  const opened = await enter(browser, home);
  await opened.getByLabel("You are human:ann").click();
  await opened.getByRole("button", { name: "Sign out" }).click();
  await opened.getByText("Open this page from your machine").waitFor();
  await opened.reload();
  await opened.getByText("Open this page from your machine").waitFor();
  const { hash } = new URL(await home.entrance());
  await opened.evaluate((fragment) => void (location.hash = fragment), hash);
  await opened.getByRole("button", { name: "New session" }).waitFor();
  expect(opened.url()).not.toContain("code");
});

test("a link of somebody else's makes nobody another unasked, and stays good", async () => {
  await home.shell("mine");
  const opened = await enter(browser, home, "mine");
  const { text } = await home.json<{ text: string }>("agent:bot", "token", "new", "--for", "1h");
  const links = [`${home.url}/#token=${text}&session=mine`, await home.entrance("agent:bot")];
  for (const link of links) {
    await opened.goto("about:blank");
    await opened.goto(link);
    await opened.getByRole("button", { name: `Stay ${HUMAN}` }).click();
    await opened.getByText("ann", { exact: true }).first().waitFor();
    expect(opened.url()).not.toContain("=");
    expect(await me(opened)).toBe(HUMAN);
  }
  for (const link of links.reverse()) {
    await opened.goto("about:blank");
    await opened.goto(link);
    await opened.getByRole("button", { name: "Become agent:bot" }).click();
    await until("another", async () => (await me(opened)) === "agent:bot");
    await opened.goto(await home.entrance());
    await opened.getByRole("button", { name: `Become ${HUMAN}` }).click();
    await until("oneself", async () => (await me(opened)) === HUMAN);
  }
});

/** For whom the host takes this browser: asked as the page does. */
function me(opened: Page): Promise<string> {
  return opened.evaluate(async () => {
    const done = <T>(request: IDBRequest<T>) => new Promise<T>((resolve) => (request.onsuccess = () => resolve(request.result)));
    const database = await done(indexedDB.open("holdfast"));
    const key = await done(database.transaction("keys").objectStore("keys").get("page") as IDBRequest<CryptoKey>);
    database.close();
    const nonce = "0".repeat(32);
    const body = JSON.stringify({ nonce });
    const headers = { "content-type": "application/json" };
    const asked = await fetch("/v1/challenge", { method: "POST", headers, body });
    const { challenge } = (await asked.json()) as { challenge: string };
    const text = new TextEncoder().encode(["page", nonce, challenge].join("\n"));
    const sum = new Uint8Array(await crypto.subtle.sign("HMAC", key, text));
    const answer = Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const authorization = `Bearer page_${nonce}.${challenge}.${answer}`;
    const { actor } = (await (await fetch("/v1/me", { headers: { authorization } })).json()) as { actor: { handle: string } };
    return actor.handle;
  });
}

test("a session is started from the page, in this window's size and with the turn", async () => {
  const opened = await enter(browser, home);
  await opened.getByRole("button", { name: "New session" }).click();
  const dialog = opened.getByRole("dialog");
  await dialog.getByLabel("Name").fill("fresh");
  await dialog.getByLabel("Directory").fill(home.dir);
  await dialog.getByRole("button", { name: "Start" }).click();
  await opened.getByText("You have the turn").waitFor();
  await until("this window's size", async () => (await rows(opened)).length > 30);
  await opened.keyboard.type("pwd\n");
  await shows(opened, home.dir);
});

function same(one: string[], other: string[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

test("a text is found in what is above the screen, the newest first", async () => {
  await home.shell("find");
  const opened = await enter(browser, home, "find");
  await shows(opened, "$");
  await take(opened);
  await opened.keyboard.type("for i in $(seq 500); do echo line $i of many; done; echo done$((1+1))\n");
  await shows(opened, "done2");
  await opened.keyboard.press("Control+Shift+F");
  const bar = opened.getByRole("search", { name: "Find in the terminal" });
  await opened.keyboard.type("line 12");
  await bar.getByText("11 of 11").waitFor();
  expect(await rows(opened, "viewportY")).toContain("line 129 of many");
  await opened.keyboard.press("Enter");
  await bar.getByText("10 of 11").waitFor();
  await bar.getByRole("button", { name: "Newer" }).click();
  await bar.getByText("11 of 11").waitFor();
  await bar.getByRole("searchbox").fill("no such line");
  await bar.getByText("nothing").waitFor();
  await bar.getByRole("searchbox").press("Escape");
  await bar.waitFor({ state: "detached" });
  await opened.keyboard.type("echo typed$((1+2))\n");
  await shows(opened, "typed3");
});

test("the terminal is there as text, to copy and to be read aloud", async () => {
  await home.shell("text", HUMAN, "60x10");
  const opened = await enter(browser, home, "text");
  await opened.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await shows(opened, "$");
  await take(opened);
  await opened.keyboard.type("clear; seq 30; printf '%070d\\n' 7; echo end$((1+1))\n");
  await shows(opened, "end2");
  const menu = opened.getByLabel("More", { exact: true });
  await menu.click();
  await opened.getByRole("button", { name: "Show as text" }).click();
  const dialog = opened.getByRole("dialog");
  await dialog.getByRole("button", { name: "Copy all" }).click();
  await dialog.getByRole("button", { name: "Copied" }).waitFor();
  const copied = (await opened.evaluate(() => navigator.clipboard.readText())).split("\n");
  expect(copied).toContain("1");
  expect(copied).toContain("7".padStart(70, "0"));
  expect((await dialog.getByLabel("Text of the terminal").innerText()).split("\n")).toEqual(copied);
  await dialog.getByRole("button", { name: "Close" }).click();
  await menu.click();
  await opened.getByRole("button", { name: "For a screen reader" }).click();
  await opened.locator(".xterm-accessibility-tree").getByText("end2", { exact: true }).waitFor();
});
