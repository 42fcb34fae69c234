// What networks, crashes, crowds and hostile words do to the page: nothing lost, nothing doubled, nothing run.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { DESK, ELSEWHERE, enter, launch, lines, page, PHONE, rows, shows, take } from "./support/browser.js";
import { open, type Door } from "../scripts/door.mjs";
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

/** Numbered lines are all there, once each and in order. */
function counted(all: string[]): number[] {
  return all.flatMap((line) => /^line (\d+)$/.exec(line)?.[1] ?? []).map(Number);
}

test("a host that is killed under output is found again, with nothing lost or doubled", async () => {
  await home.shell("crash");
  const opened = await enter(browser, home, "crash");
  await shows(opened, "$");
  await take(opened);
  await opened.keyboard.type("stty -echo; for i in $(seq 1 1500); do echo line $i; [ $((i%10)) = 0 ] && sleep 0.01; done; stty echo\n");
  await shows(opened, /line \d+/);
  const said = opened.getByText("Reconnecting").first().waitFor();
  await home.killHost();
  await said;
  // Typed while nobody listens: it comes once, when somebody does.
  await opened.keyboard.type("echo typed-$((40+2))\n");
  await home.hf("ls");
  await shows(opened, "typed-42");
  const all = await lines(opened);
  expect(counted(all)).toEqual(Array.from({ length: 1500 }, (_, i) => i + 1));
  expect(all.filter((line) => line === "typed-42").length).toBe(1);
  await until("the host's screen", async () => JSON.stringify(await rows(opened)) === JSON.stringify(await home.screen("crash")));
});

test("Home finds a killed host again, and tells what happened since", async () => {
  await home.shell("before");
  const opened = await enter(browser, home);
  await opened.getByRole("link", { name: /^before/ }).waitFor();
  // Looked for from before the kill on: the next host is there within a moment.
  const said = opened.getByText("Reconnecting").waitFor();
  await home.killHost();
  await said;
  await home.shell("after");
  await opened.getByText("Reconnecting").waitFor({ state: "detached" });
  await opened.getByRole("link", { name: /^after/ }).waitFor();
});

test("who listens in the host's place gets a cookie, and nothing that opens the host", async () => {
  await home.shell("guarded");
  const door = await open(0, home.url);
  const opened = await page(browser);
  await opened.goto(`${door.url}/${new URL(await home.entrance()).hash}`);
  await opened.getByRole("link", { name: /^guarded/ }).waitFor();
  // It loads the terminal ahead: until it has all its parts.
  const loaded = () => opened.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name).join(" "));
  // The terminal's style is a file of what draws it and several views share.
  await until("the page's parts", async () => /screen-\S+\.js/.test(await loaded()) && /internals-\S+\.css/.test(await loaded()));
  await opened.waitForLoadState("networkidle");
  door.shut();
  const thief = await squat(Number(new URL(door.url).port));
  onTestFinished(() => thief.shut());
  // Both the page that waits and one that looks who it is.
  await until("the page to ask again and again", () => thief.asked.length > 5);
  expect(new Set(thief.asked.map(({ path }) => path))).toEqual(new Set(["/v1/challenge"]));
  for (const { headers, body } of thief.asked) {
    expect(Object.keys(JSON.parse(body) as object)).toEqual(["nonce"]);
    expect(headers).not.toHaveProperty("authorization");
    expect(headers).not.toHaveProperty("sec-websocket-protocol");
  }
  const { cookie = "" } = thief.asked[0]?.headers ?? {};
  expect(cookie).toContain("holdfast-");
  expect((await fetch(`${home.url}/v1/me`, { headers: { cookie } })).status).toBe(401);
  thief.shut();
  const again = await open(Number(new URL(door.url).port), home.url);
  onTestFinished(() => again.shut());
  await opened.getByText("Reconnecting").waitFor({ state: "detached" });
});

interface Thief {
  asked: { path: string; headers: IncomingHttpHeaders; body: string }[];
  shut(): void;
}

/** A server that wants what is sent to a host, and answers as well as it can. */
function squat(port: number): Promise<Thief> {
  const asked: Thief["asked"] = [];
  const server = createServer((request, answer) => {
    // The page is looked for, too, by what keeps it for times without a network.
    if (!request.url?.startsWith("/v1")) return void request.socket.destroy();
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => {
      asked.push({ path: request.url ?? "", headers: request.headers, body });
      answer.setHeader("content-type", "application/json");
      answer.end(JSON.stringify({ challenge: "ffffffff-00", proof: "00".repeat(32) }));
    });
  });
  server.on("upgrade", (request, socket) => {
    asked.push({ path: request.url ?? "", headers: request.headers, body: "{}" });
    socket.destroy();
  });
  const shut = () => {
    server.closeAllConnections();
    server.close();
  };
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve({ asked, shut })));
}

test("a session that gets another name keeps its page, and its terminal", async () => {
  await home.shell("before-it");
  const opened = await enter(browser, home, "before-it");
  await shows(opened, "$");
  await take(opened);
  await opened.keyboard.type("echo written\n");
  await shows(opened, /^written/);
  await home.hf("rename", "before-it", "after-it");
  await until("the new name", async () => (await opened.locator(".session-name").innerText()) === "after-it");
  await until("the new address", () => opened.url() === `${home.url}/s/after-it`);
  await opened.keyboard.type("echo and on\n");
  await shows(opened, /^and on/);
});

test("offline and online again the terminal goes on where it stood", async () => {
  await home.shell("tunnel");
  const opened = await enter(browser, home, "tunnel");
  await shows(opened, "$");
  await take(opened);
  await opened.keyboard.type("for i in $(seq 1 300); do echo line $i; sleep 0.01; done; echo all done\n");
  await shows(opened, "line 20");
  await opened.context().setOffline(true);
  await until("the end of the output", async () => (await home.screen("tunnel")).some((row) => row === "all done"));
  await opened.context().setOffline(false);
  await shows(opened, /^all done/);
  expect(counted(await lines(opened))).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
});

/** A page with the turn in a session, reached through a network that can be broken. */
async function throughDoor(session: string): Promise<{ opened: Page; door: Door }> {
  await home.shell(session);
  const door = await open(0, home.url);
  onTestFinished(() => door.shut());
  const opened = await page(browser);
  await opened.goto(`${door.url}/${new URL(await home.entrance()).hash}`);
  await opened.getByRole("link", { name: new RegExp(`^${session}`) }).click();
  await shows(opened, "$");
  await take(opened);
  return { opened, door };
}

test("a network that swallows everything is noticed, and what was typed comes once when another is there", async () => {
  const { opened, door } = await throughDoor("swallowed");
  door.stall(true);
  await opened.keyboard.type("echo typed-$((40+2))\n");
  await opened.getByText("Reconnecting").first().waitFor();
  expect((await home.screen("swallowed")).join()).not.toContain("typed-42");
  door.stall(false);
  await shows(opened, /^typed-42/);
  await opened.getByText("Reconnecting").first().waitFor({ state: "detached" });
  await opened.keyboard.type("echo still-here\n");
  await shows(opened, /^still-here/);
  expect((await lines(opened)).filter((line) => line === "typed-42").length).toBe(1);
  await until("the host's screen", async () => JSON.stringify(await rows(opened)) === JSON.stringify(await home.screen("swallowed")));
});

test("a network that breaks again and again loses no key, and doubles none", async () => {
  const { opened, door } = await throughDoor("flaky");
  await opened.keyboard.type("cat > typed.txt\n");
  // By then the shell has given the terminal back its modes.
  await until("the reader", () => existsSync(join(home.dir, "typed.txt")));
  const wanted = Array.from({ length: 200 }, (_, line) => `line ${line}`);
  let breaks = 0;
  for (const [at, line] of wanted.entries()) {
    await opened.keyboard.type(`${line}\n`);
    if (at % 10 !== 9) continue;
    // Every other time in the midst of what was just typed; else while it is being connected anew, or after.
    if (at % 20 === 9) await shows(opened, new RegExp(`^line ${at}$`));
    door.cut();
    breaks += 1;
  }
  await shows(opened, "line 199");
  await opened.keyboard.press("Control+d");
  await until("the file", () => readFileSync(join(home.dir, "typed.txt"), "latin1").length >= wanted.join("\n").length + 1);
  expect(readFileSync(join(home.dir, "typed.txt"), "latin1")).toBe(`${wanted.join("\n")}\n`);
  expect(breaks).toBe(20);
  await until("the host's screen", async () => JSON.stringify(await rows(opened)) === JSON.stringify(await home.screen("flaky")));
});

test("two browsers and a program see the same, and one writes at a time", async () => {
  await home.shell("crowd");
  const one = await enter(browser, home, "crowd");
  const two = await enter(browser, home, "crowd");
  await shows(two, "$");
  await home.as("agent:bot", "send", "crowd", "--enter", "echo from-bot");
  await shows(one, /^from-bot/);
  await shows(two, /^from-bot/);
  await home.as("agent:bot", "release", "crowd").catch(() => "");
  await take(one);
  await one.keyboard.type("echo from-one\n");
  await shows(two, /^from-one/);
  await expect(home.as("agent:bot", "send", "crowd", "--enter", "echo refused")).rejects.toThrow();
  await until("the same screen", async () => {
    const [a, b, c] = await Promise.all([rows(one), rows(two), home.screen("crowd")]);
    return JSON.stringify(a) === JSON.stringify(b) && JSON.stringify(b) === JSON.stringify(c);
  });
});

test("hostile words stay words: titles, prompts, commands, questions, output", async () => {
  const evil = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202eevil";
  await home.hf("new", "-d", "-n", "evil", "--", "sh", "-c", `printf '\\033]0;%s\\007%s\\n%s? ' '${evil}' '${evil}' '${evil}'; read x`);
  const asked = home.as("agent:bot", "ask", "-t", "evil", "--option", evil, "--timeout", "60s", evil).catch(() => "");
  const opened = await enter(browser, home);
  let dialogs = 0;
  opened.on("dialog", (dialog) => {
    dialogs += 1;
    void dialog.dismiss();
  });
  const card = opened.getByRole("region", { name: /Question/ });
  await card.getByText("<script>alert(2)</script>").first().waitFor();
  await opened.getByText("⟨RLO⟩evil").first().waitFor();
  expect(await opened.locator("img[src='x'], main script").count()).toBe(0);
  await opened.getByRole("link", { name: /evil/ }).first().waitFor();
  await card.getByRole("button", { name: /script/ }).click();
  await card.getByRole("button", { name: "Send now" }).click();
  await asked;
  await opened.goto(`${home.url}/s/evil`);
  await shows(opened, "<script>");
  expect(await opened.locator("img[src='x'], main script").count()).toBe(0);
  await opened.goto(`${home.url}/s/${encodeURIComponent(evil)}`);
  await opened.getByText("No such session").waitFor();
  expect(dialogs).toBe(0);
});

test("a program's clipboard text and links are shown before anything happens", async () => {
  await home.shell("links");
  const opened = await enter(browser, home, "links");
  await opened.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await shows(opened, "$");
  await take(opened);
  await opened.keyboard.type("printf '\\033]52;c;%s\\007' $(printf stolen | base64)\n");
  const dialog = opened.getByRole("dialog");
  await opened.getByRole("button", { name: "Show it" }).click();
  await dialog.getByText("stolen").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  expect(await opened.evaluate(() => navigator.clipboard.readText())).not.toBe("stolen");
  await opened.keyboard.type("clear; echo https://example.org/path\n");
  await shows(opened, /^https:/);
  const box = await opened.locator(".xterm-screen").boundingBox();
  if (!box) throw new Error("no terminal");
  const row = (await rows(opened)).findIndex((text) => text.startsWith("https:"));
  const height = box.height / (await rows(opened)).length;
  // The terminal looks for links where the mouse moves.
  let x = 30;
  await until("a link", async () => {
    await opened.mouse.move(box.x + (x = x === 30 ? 40 : 30), box.y + height * (row + 0.5));
    return opened.locator(".xterm-cursor-pointer").count();
  });
  await opened.mouse.down();
  await opened.mouse.up();
  await dialog.getByText("https://example.org/path").waitFor();
  const popup = opened.context().waitForEvent("page");
  await dialog.getByRole("button", { name: "Open" }).click();
  const other = await popup;
  expect(await other.evaluate(() => window.opener === null)).toBe(true);
});

test("a program that shouts for the clipboard keeps nobody from typing or seizing, and is ignored when told", async () => {
  await home.shell("shouts");
  const shout = "while :; do printf '\\033]52;c;%s\\007' $(date +%N | base64); sleep 0.02; done";
  await home.as("agent:bot", "send", "shouts", "--enter", shout);
  await home.as("agent:bot", "take", "shouts").catch(() => "");
  const opened = await enter(browser, home, "shouts");
  const show = opened.getByRole("button", { name: "Show it" });
  await show.waitFor();
  await opened.getByRole("button", { name: "Seize" }).click();
  const dialog = opened.getByRole("dialog");
  await dialog.getByLabel("Reason").pressSequentially("it shouts", { delay: 30 });
  await dialog.getByRole("button", { name: "Seize" }).click();
  await opened.getByText("You have the turn").waitFor();
  await opened.getByRole("button", { name: "Ignore" }).click();
  await opened.locator(".xterm-screen").click();
  const said = await home.json<{ head: number }>(HUMAN, "info", "shouts");
  await until("more of it", async () => (await home.json<{ head: number }>(HUMAN, "info", "shouts")).head > said.head + 500);
  await opened.keyboard.press("Control+c");
  await opened.keyboard.type("echo calm\n");
  await shows(opened, /^calm/);
  expect(await show.count()).toBe(0);
  expect(await home.hf("journal", "shouts")).toContain("it shouts");
});

test("on a phone the key row types, a wide screen pans, and the session keeps its size", async () => {
  await home.shell("phone", HUMAN, "120x30");
  const opened = await enter(browser, home, "phone", PHONE);
  await shows(opened, "$");
  const keys = opened.getByRole("toolbar", { name: "Keys" });
  // The first key takes the turn that is free.
  await opened.getByRole("button", { name: "Take", exact: true }).waitFor();
  await keys.getByRole("button", { name: "Control C" }).click();
  await opened.getByText("You have the turn").waitFor();
  await opened.keyboard.type("echo fir");
  await keys.getByRole("button", { name: "Ctrl, for the next key" }).click();
  await opened.keyboard.type("a");
  await opened.keyboard.type("#");
  await opened.keyboard.press("Enter");
  await shows(opened, "#echo fir");
  await keys.getByRole("button", { name: "Up" }).click();
  await keys.getByRole("button", { name: "Control C" }).click();
  await shows(opened, "^C");
  // Nobody allowed this page to read the clipboard.
  await keys.getByRole("button", { name: "Paste" }).click();
  await opened.getByRole("dialog").getByLabel("Text").fill("echo put in by hand");
  await opened.getByRole("button", { name: "Type it" }).click();
  await shows(opened, "echo put in by hand");
  const pane = opened.locator(".pane");
  expect(await pane.evaluate((element) => element.scrollWidth > element.clientWidth)).toBe(true);
  expect(await opened.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await swipe(opened, { x: 300, y: 300 }, { x: 80, y: 300 });
  await until("the pan", () => pane.evaluate((element) => element.scrollLeft > 100));
  const cell = () => opened.locator(".xterm-screen").evaluate((element) => element.getBoundingClientRect().width / 120);
  const before = await cell();
  await pinch(opened, { x: 180, y: 300 }, 40, 120);
  await until("larger text", async () => (await cell()) > before * 1.3);
  expect((await home.json<{ size: string }>(HUMAN, "info", "phone")).size).toBe("120x30");
});

test("on a phone what is found is brought into the window", async () => {
  await home.hf("new", "-d", "-n", "far-right", "--size", "120x30", "--", "sh", "-c", "printf '%100s needle\\n' x; exec sleep 600");
  const opened = await enter(browser, home, "far-right", PHONE);
  await shows(opened, "needle");
  const pane = opened.locator(".pane");
  expect(await pane.evaluate((element) => element.scrollLeft)).toBe(0);
  await opened.getByLabel("More", { exact: true }).click();
  await opened.getByRole("button", { name: "Find" }).click();
  await opened.getByRole("searchbox", { name: "Find" }).fill("needle");
  await opened.getByRole("search").getByText("1 of 1").waitFor();
  await until("the pan", () => pane.evaluate((element) => element.scrollLeft > 100));
});

test("another device comes over TLS, by the name it was told, and its links lead there", async () => {
  const far = await Home.open();
  onTestFinished(() => far.close());
  const [key, cert] = [join(far.dir, "key.pem"), join(far.dir, "cert.pem")];
  const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", `/CN=${ELSEWHERE}`];
  execFileSync("openssl", [...made, "-keyout", key, "-out", cert], { stdio: "ignore" });
  await far.hf("host", "start", "--http", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, "--name", ELSEWHERE);
  await far.shell("afar");
  const { url } = await far.json<{ url: string }>(HUMAN, "web", "--phone");
  const { origin, hostname } = new URL(url);
  expect(hostname).toBe(ELSEWHERE);
  const opened = await page(browser, { ...PHONE, ignoreHTTPSErrors: true });
  await opened.goto(url);
  await opened.getByRole("link", { name: /^afar/ }).click();
  await shows(opened, "$");
  await opened.getByRole("button", { name: "Take", exact: true }).click();
  await opened.getByText("You have the turn").waitFor();
  await opened.keyboard.type("echo from-afar\n");
  await shows(opened, /^from-afar/);
  const [cookie] = await opened.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: "Strict" });
  await opened.getByRole("link", { name: "Share" }).click();
  await opened.getByText(`Links work wherever ${new URL(url).host} can be reached.`).waitFor();
  await opened.getByRole("button", { name: "Create link" }).click();
  const guest = await page(browser, { ...DESK, ignoreHTTPSErrors: true });
  const link = await opened.getByLabel("Link", { exact: true }).inputValue();
  expect(link.startsWith(`${origin}/#token=`)).toBe(true);
  await guest.goto(link);
  await shows(guest, /^from-afar/);
});

test("without a network the page itself still opens, says so, and comes back by itself", async () => {
  const opened = await enter(browser, home);
  await opened.evaluate(async () => void (await navigator.serviceWorker.ready));
  await opened.context().setOffline(true);
  await opened.reload();
  await opened.getByText("Cannot reach the host").waitFor();
  const kept = await opened.evaluate(async () => {
    const names = await caches.keys();
    const all = await Promise.all(names.map(async (name) => (await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname)));
    return all.flat();
  });
  expect(kept.length).toBeGreaterThan(3);
  expect(kept.filter((path) => path.startsWith("/v1"))).toEqual([]);
  await opened.context().setOffline(false);
  await opened.getByRole("button", { name: "New session" }).waitFor();
});

/** A finger, by the browser's own protocol: as a phone's. */
async function swipe(opened: Page, from: { x: number; y: number }, to: { x: number; y: number }): Promise<void> {
  const session = await opened.context().newCDPSession(opened);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", points: { x: number; y: number }[]) =>
    session.send("Input.dispatchTouchEvent", { type, touchPoints: points });
  await touch("touchStart", [from]);
  for (let step = 1; step <= 10; step += 1) {
    const at = (a: number, b: number) => a + ((b - a) * step) / 10;
    await touch("touchMove", [{ x: at(from.x, to.x), y: at(from.y, to.y) }]);
  }
  await touch("touchEnd", []);
}

/** Two fingers that go apart. */
async function pinch(opened: Page, at: { x: number; y: number }, from: number, to: number): Promise<void> {
  const session = await opened.context().newCDPSession(opened);
  const fingers = (apart: number) => [
    { x: at.x - apart / 2, y: at.y, id: 0 },
    { x: at.x + apart / 2, y: at.y, id: 1 },
  ];
  await session.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: fingers(from) });
  for (let step = 1; step <= 10; step += 1) {
    await session.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: fingers(from + ((to - from) * step) / 10) });
  }
  await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
}
