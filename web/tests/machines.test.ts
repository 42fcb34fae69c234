// A phone, a relay and a host on three machines: network namespaces, of which phone and host see only the relay, with TLS on its legs.

import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { CHROMIUM, launch, page, PHONE, rows, shows, take } from "./support/browser.js";
import { Home, HUMAN, until } from "./support/home.js";
import { accept, invite, Relay } from "./support/relay.js";

/** The relay's address, which both sides have a route to. */
const RELAY = "10.9.0.1";
const PORT = 7443;
const name = (what: string) => `hfw${process.pid}-${what}`;
const within = (what: string) => ["nsenter", `--net=/run/netns/${name(what)}`, "--"];
const ip = (...args: string[]) => execFileSync("ip", args, { stdio: "pipe" });
/** Only root makes namespaces. */
const isRoot = process.getuid?.() === 0;

const dir = mkdtempSync(join(tmpdir(), "hfnet"));
const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
let home: Home;
let browser: Browser;
let relay: Relay;

function startRelay(): Promise<Relay> {
  return Relay.at(home, within("relay"), `${RELAY}:${PORT}`, "--tls-cert", cert, "--tls-key", key);
}

beforeAll(async () => {
  if (!isRoot) return;
  for (const what of ["phone", "relay", "host"]) {
    ip("netns", "add", name(what));
    ip("-n", name(what), "link", "set", "lo", "up");
  }
  ip("-n", name("relay"), "addr", "add", `${RELAY}/32`, "dev", "lo");
  for (const [what, number] of [["phone", 1], ["host", 2]] as const) {
    ip("link", "add", "up0", "netns", name(what), "type", "veth", "peer", "name", `to${number}`, "netns", name("relay"));
    ip("-n", name("relay"), "addr", "add", `10.9.${number}.1/24`, "dev", `to${number}`);
    ip("-n", name("relay"), "link", "set", `to${number}`, "up");
    address(what, number, 2);
  }
  const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=relay", "-addext", "basicConstraints=critical,CA:FALSE", "-addext"];
  execFileSync("openssl", [...made, `subjectAltName=IP:${RELAY}`, "-keyout", key, "-out", cert], { stdio: "pipe" });
  const spki = `openssl x509 -in ${cert} -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64`;
  const pin = execFileSync("sh", ["-c", spki], { encoding: "utf8" }).trim();
  const phone = join(dir, "chromium");
  writeFileSync(phone, `#!/bin/sh\nexec ${within("phone").join(" ")} ${CHROMIUM} "$@"\n`);
  chmodSync(phone, 0o755);
  home = await Home.open(within("host"), { HOLDFAST_RELAY_CA: cert });
  relay = await startRelay();
  browser = await launch(phone, [`--ignore-certificate-errors-spki-list=${pin}`]);
  await home.hf("relay", "add", relay.url);
});

afterAll(async () => {
  await browser?.close();
  await relay?.kill();
  await home?.close();
  if (isRoot) for (const what of ["phone", "relay", "host"]) ip("netns", "del", name(what));
  rmSync(dir, { recursive: true, force: true });
});

/** Gives a machine an address, and the way to the relay. */
function address(what: string, number: number, last: number): void {
  ip("-n", name(what), "addr", "flush", "dev", "up0");
  ip("-n", name(what), "addr", "add", `10.9.${number}.${last}/24`, "dev", "up0");
  ip("-n", name(what), "link", "set", "up0", "up");
  ip("-n", name(what), "route", "replace", RELAY, "via", `10.9.${number}.1`);
}

test("a phone that sees only the relay steers a session and answers a question, while the relay is replaced and its own address changes", async () => {
  if (!isRoot) return console.warn("not run: namespaces need root");
  await home.shell("train", HUMAN, "60x20");
  const opened = await page(browser, PHONE);
  const link = await invite(home, "--host-wide");
  expect(link.startsWith(`https://${RELAY}:${PORT}/i#`)).toBe(true);
  const frame = await accept(opened, link, "phone");
  await frame.getByRole("link", { name: "train" }).first().click();
  await shows(frame, "$");
  await take(frame);
  await opened.keyboard.type("stty -echo; for i in $(seq 1 1500); do echo line $i; [ $((i%10)) = 0 ] && sleep 0.01; done; stty echo\n");
  await shows(frame, /line \d+/);
  const said = frame.getByText("Reconnecting").first().waitFor();
  await relay.kill();
  await said;
  await opened.keyboard.type("echo typed-$((40+2))\n");
  relay = await startRelay();
  await shows(frame, "typed-42");
  const answered = home.as("agent:bot", "ask", "-t", "train", "--option", "ship it", "--option", "wait", "Deploy now?");
  await frame.getByRole("button", { name: "ship it" }).first().click();
  expect(await answered).toContain("ship it");
  // Another network: what was open is gone without a word.
  address("phone", 1, 3);
  await frame.locator(".xterm-screen").click();
  await opened.keyboard.type("echo roamed-$((40+2))\n");
  await shows(frame, "roamed-42");
  const seen = await rows(frame);
  expect(seen.filter((row) => row === "typed-42").length).toBe(1);
  expect(seen.filter((row) => row === "roamed-42").length).toBe(1);
  await until("the host's screen", async () => JSON.stringify(await rows(frame)) === JSON.stringify(await home.screen("train")));
});
