// An invite that is opened on a phone with nothing installed: through a relay, in a fresh profile.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdirSync } from "node:fs";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { launch, lines, page, PHONE, rows, shows, take } from "./support/browser.js";
import { Home, HUMAN, until } from "./support/home.js";
import { accept, inside, invite, Relay } from "./support/relay.js";

let home: Home;
let browser: Browser;
let relay: Relay;

beforeAll(async () => {
  [home, browser] = await Promise.all([Home.open(), launch()]);
  relay = await Relay.start(home);
  await home.hf("relay", "add", relay.url);
});

afterAll(async () => {
  await browser?.close();
  await relay?.kill();
  await home?.close();
});

/** Where pictures go that a person looks at; none: none are made. */
async function picture(opened: Page, name: string): Promise<void> {
  const dir = process.env["HOLDFAST_PICTURES"];
  if (!dir) return;
  mkdirSync(dir, { recursive: true });
  await opened.screenshot({ path: `${dir}/${name}.png` });
}

/** The shell's worker has the page from now on. */
async function isKept(opened: Page): Promise<void> {
  await opened.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  await until("the worker", () => opened.evaluate(() => navigator.serviceWorker.controller !== null));
}

test("a phone opens an invite, steers a session, answers a question, and goes on when its relay is killed and replaced", async () => {
  await home.shell("train", HUMAN, "60x20");
  const opened = await page(browser, PHONE);
  const asked: string[] = [];
  opened.context().on("request", (request) => asked.push(`${request.url()} ${JSON.stringify(request.headers())} ${request.postData() ?? ""}`));
  const link = await invite(home, "--host-wide");
  const code = link.split("#")[1] as string;
  await opened.goto(link);
  await opened.getByRole("heading", { name: "invites this browser" }).waitFor();
  expect(opened.url(), "the secret is not in the address").not.toContain("#");
  await picture(opened, "1-invite");
  await opened.getByLabel("Name of this device").fill("Ann Phone");
  const began = Date.now();
  await opened.getByRole("button", { name: /^Open / }).click();
  const frame = await inside(opened);
  await frame.getByRole("link", { name: "train" }).first().waitFor();
  console.log(`sessions shown ${Date.now() - began} ms after the tap`);
  await picture(opened, "2-home");
  const { length } = await home.json<unknown[]>(HUMAN, "devices", "ls");
  expect(length).toBe(1);

  await frame.getByRole("link", { name: "train" }).first().click();
  await frame.locator(".xterm-screen").waitFor();
  await shows(frame, "$");
  expect(opened.url()).toMatch(/\/i#\/[0-9a-f]{12}\/s\/train$/);
  await take(frame);
  await opened.keyboard.type("echo phone-$((40+2))\n");
  await shows(frame, "phone-42");
  const journal = await home.hf("journal", "train");
  expect(journal).toContain("human:ann-phone");
  await picture(opened, "3-session");

  const answered = home.as("agent:bot", "ask", "-t", "train", "--option", "ship it", "--option", "wait", "Deploy now?");
  await frame.getByRole("button", { name: "ship it" }).first().click();
  expect(await answered).toContain("ship it");

  await frame.locator(".xterm-screen").click();
  await opened.keyboard.type("stty -echo; for i in $(seq 1 1500); do echo line $i; [ $((i%10)) = 0 ] && sleep 0.01; done; stty echo\n");
  await shows(frame, /line \d+/);
  const said = frame.getByText("Reconnecting").first().waitFor();
  const { port } = relay;
  await relay.kill();
  await said;
  await picture(opened, "4-reconnecting");
  await opened.keyboard.type("echo typed-$((40+2))\n");
  relay = await Relay.start(home, port);
  await shows(frame, "typed-42");
  const all = await lines(frame);
  expect(all.flatMap((line) => /^line (\d+)$/.exec(line)?.[1] ?? []).map(Number)).toEqual(Array.from({ length: 1500 }, (_, i) => i + 1));
  expect(all.filter((line) => line === "typed-42").length).toBe(1);
  await until("the host's screen", async () => JSON.stringify(await rows(frame)) === JSON.stringify(await home.screen("train")));
  await picture(opened, "5-after");

  // The browser's own way back is the page's.
  await opened.goBack();
  await frame.getByRole("button", { name: "New session" }).waitFor();
  expect(asked.length).toBeGreaterThan(3);
  expect(asked.filter((request) => request.includes(code) || request.includes("train")), "neither the secret nor names are sent in the open").toEqual([]);
});

test("used, expired and revoked invites say so", async () => {
  const says = async (link: string, text: RegExp) => {
    const opened = await page(browser, PHONE);
    await opened.goto(link);
    await opened.getByRole("button", { name: /^Open / }).click();
    await opened.getByRole("heading", { name: "This invite no longer works" }).waitFor();
    await opened.getByText(text).waitFor();
    await picture(opened, `6-${text.source.replaceAll(" ", "-")}`);
  };
  const used = await invite(home, "--host-wide");
  await accept(await page(browser, PHONE), used);
  await says(used, /already used/);
  const brief = await home.json<{ link: string; invite: { id: string } }>(HUMAN, "invite", "--host-wide", "--for", "1s");
  await until("the end of the invite", async () => {
    const all = await home.json<{ id: string; state: string }[]>(HUMAN, "invites", "ls");
    return all.some(({ id, state }) => id === brief.invite.id && state === "expired");
  });
  await says(brief.link, /has expired/);
  const revoked = await home.json<{ link: string; invite: { id: string } }>(HUMAN, "invite", "--host-wide");
  await home.hf("invites", "revoke", revoked.invite.id);
  await says(revoked.link, /was revoked/);
  const opened = await page(browser, PHONE);
  await opened.goto(`${relay.url}/i#nonsense`);
  await opened.getByRole("heading", { name: "This link does not work" }).waitFor();
});

test("a revoked phone is thrown out at once while it is attached, and stays out", async () => {
  await home.shell("lost");
  const opened = await page(browser, PHONE);
  const frame = await accept(opened, await invite(home, "--host-wide"), "lost-phone");
  await frame.getByRole("link", { name: "lost" }).first().click();
  await shows(frame, "$");
  const out = frame.getByRole("heading", { name: "no longer lets this browser in" }).waitFor();
  const began = Date.now();
  await home.hf("devices", "revoke", "human:lost-phone");
  await out;
  const took = Date.now() - began;
  console.log(`out after ${took} ms, the command included`);
  await picture(opened, "7-revoked");
  await opened.reload();
  await opened.getByRole("heading", { name: "no longer lets this browser in" }).waitFor();
  await opened.getByRole("button", { name: "Forget this machine" }).click();
  await opened.getByRole("heading", { name: "Open an invite" }).waitFor();
});

test("the guest of one session sees that session and can start none", async () => {
  await home.shell("shared");
  await home.shell("private");
  const opened = await page(browser, PHONE);
  const frame = await accept(opened, await invite(home, "shared"), "guest");
  await shows(frame, "$");
  await frame.getByRole("link", { name: /All sessions/ }).click();
  await frame.getByRole("link", { name: "shared" }).first().waitFor();
  expect(await frame.getByText("private").count()).toBe(0);
  expect(await frame.getByRole("button", { name: "New session" }).count()).toBe(0);
});

test("a phone goes on by another relay when the one that served it is gone for good, and opens without any", async () => {
  const [first, second] = await Promise.all([Relay.start(home), Relay.start(home)]);
  onTestFinished(async () => {
    for (const one of [first, second]) {
      await home.hf("relay", "remove", one.url);
      await one.kill();
    }
  });
  // The first one in the link is the one that serves the shell.
  await home.hf("relay", "remove", relay.url);
  await home.hf("relay", "add", first.url);
  await home.hf("relay", "add", second.url);
  await until("both relays", async () => {
    const { relays } = await home.json<{ relays: { url: string; up: boolean }[] }>(HUMAN, "relay", "ls");
    return relays.filter(({ up }) => up).length === 2;
  });
  await home.shell("two");
  const opened = await page(browser, PHONE);
  const link = await invite(home, "--host-wide");
  const [served, other] = link.startsWith(first.url) ? [first, second] : [second, first];
  let frame = await accept(opened, link, "wanderer");
  await frame.getByRole("link", { name: "two" }).first().click();
  await shows(frame, "$");
  await isKept(opened);
  await served.kill();
  await take(frame);
  await opened.keyboard.type("echo moved-$((40+2))\n");
  await shows(frame, "moved-42");
  // From the worker, with the relay that served it away.
  await opened.reload();
  frame = await inside(opened);
  await shows(frame, "moved-42");
  await other.kill();
  await opened.reload();
  frame = await inside(opened);
  await frame.getByRole("heading", { name: "Cannot reach the host" }).waitFor();
  // A page that was changed where it is kept is not opened, nor is one of another host.
  await opened.evaluate(async () => {
    const done = <T>(request: IDBRequest<T>) => new Promise<T>((resolve, reject) => ((request.onsuccess = () => resolve(request.result)), (request.onerror = reject)));
    const database = await done(indexedDB.open("holdfast-phone"));
    const store = database.transaction("pages", "readwrite").objectStore("pages");
    const [key] = await done(store.getAllKeys());
    const page = (await done(store.get(key as string))) as { contents: Uint8Array[] };
    const script = page.contents[1] as Uint8Array;
    script[1000] = (script[1000] as number) ^ 1;
    await done(store.put(page, key));
  });
  await opened.reload();
  await opened.getByRole("heading", { name: /^Cannot reach/ }).waitFor();
  expect(await opened.locator("iframe").count()).toBe(0);
  await home.hf("relay", "add", relay.url);
});

test("a host's page reaches neither the keys around it nor a network, and no other site frames the shell", async () => {
  // What is refused here is complained about, as it should be.
  const context = await browser.newContext(PHONE);
  onTestFinished(() => context.close());
  const opened = await context.newPage();
  const frame = await accept(opened, await invite(home, "--host-wide"), "boxed");
  const tries = await frame.evaluate(async () => {
    const fails = async (act: () => unknown) => {
      try {
        await act();
        return "reached";
      } catch {
        return "refused";
      }
    };
    return {
      origin: window.origin,
      parent: await fails(() => parent.document.body),
      top: await fails(() => (top as Window).location.href),
      database: await fails(() => indexedDB.open("holdfast-phone")),
      worker: await fails(() => navigator.serviceWorker.getRegistrations()),
      caches: await fails(() => caches.keys()),
      cookies: await fails(() => document.cookie),
      network: await fails(() => fetch("/healthz")),
      socket: await new Promise((resolve) => {
        try {
          const socket = new WebSocket(`ws://${"127.0.0.1"}:1/`);
          socket.onerror = () => resolve("refused");
          socket.onopen = () => resolve("reached");
        } catch {
          resolve("refused");
        }
      }),
    };
  });
  expect(tries).toEqual({ origin: "null", parent: "refused", top: "refused", database: "refused", worker: "refused", caches: "refused", cookies: "refused", network: "refused", socket: "refused" });
  // Nor can the shell's own scripts read the keys.
  const readable = await opened.evaluate(async () => {
    const done = <T>(request: IDBRequest<T>) => new Promise<T>((resolve, reject) => ((request.onsuccess = () => resolve(request.result)), (request.onerror = reject)));
    const database = await done(indexedDB.open("holdfast-phone"));
    const [host] = (await done(database.transaction("hosts").objectStore("hosts").getAll())) as { device: { sign: CryptoKey; exchange: CryptoKey } }[];
    return [host?.device.sign.extractable, host?.device.exchange.extractable];
  });
  expect(readable).toEqual([false, false]);
  const hostile = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html");
    answer.end(`<iframe src="${relay.url}/i"></iframe>`);
  });
  await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void hostile.close());
  const around = await browser.newPage();
  onTestFinished(() => around.close());
  await around.goto(`http://127.0.0.1:${(hostile.address() as AddressInfo).port}/`);
  expect(await around.frameLocator("iframe").locator("#shell").count()).toBe(0);
});

test("a shell that came from the host itself opens away from it, and reaches it through a relay alone", async () => {
  await home.shell("away");
  const at = new URL((await home.login()).url).origin;
  const opened = await page(browser, PHONE);
  let frame = await accept(opened, `${at}/i#${(await invite(home, "--host-wide")).split("#")[1]}`, "traveller");
  await frame.getByRole("link", { name: "away" }).first().waitFor();
  await isKept(opened);
  // Away from home: nothing answers at the host's address.
  await home.hf("host", "start", "--no-http");
  await until("the port to be shut", () => fetch(at).then(() => false, () => true));
  await opened.reload();
  frame = await inside(opened);
  await frame.getByRole("link", { name: "away" }).first().click();
  await shows(frame, "$");
  await take(frame);
  await opened.keyboard.type("echo far-$((40+2))\n");
  await shows(frame, "far-42");
});
