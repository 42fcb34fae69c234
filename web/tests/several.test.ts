// Beyond one terminal: a session's port in a tab of its own, several sessions at once, and groups of them.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { violations } from "./support/axe.js";
import { DESK, ELSEWHERE, enter, launch, page, PHONE } from "./support/browser.js";
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

/** Serves a page that says what it can see, and a WebSocket that says a word. */
const server = (host: string) => `
import base64, hashlib, http.server
PAGE = b"""<!doctype html><title>served</title><h1>served</h1><p id=hot></p><p id=host></p><p id=opener></p><script>
const put = (id, text) => (document.getElementById(id).textContent = text);
put("opener", "opener " + window.opener);
new WebSocket(location.protocol.replace("http", "ws") + "//" + location.host + "/hot").onmessage = (event) => put("hot", event.data);
fetch("${host}/v1/me", { credentials: "include" }).then(() => "reached", () => "not reached").then((how) => put("host", "host " + how));
document.cookie = "own=1";
navigator.serviceWorker && navigator.serviceWorker.register("/").catch(() => undefined);
</script>"""
class Served(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        key = self.headers.get("Sec-WebSocket-Key")
        if key:
            accept = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", "websocket")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(accept).decode())
            self.end_headers()
            self.wfile.write(b"\\x81\\x03hot")
            self.rfile.read(1)
            return
        print("cookies", self.headers.get("Cookie"), flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served)
print("serving", flush=True)
server.serve_forever()
`;

test("a port opens with a click, at an origin of its own, and reaches neither the page nor its cookies", async () => {
  writeFileSync(join(home.dir, "server.py"), server(home.url));
  await home.hf("new", "-d", "-n", "app", "--cwd", home.dir, "--", "python3", "server.py");
  const opened = await enter(browser, home, "app");
  const port = opened.getByRole("button", { name: /^Open port/ });
  await port.waitFor();
  const [tab] = (await Promise.all([opened.context().waitForEvent("page"), port.click()])) as [Page, void];
  await tab.getByRole("heading", { name: "served" }).waitFor();
  const address = new URL(tab.url());
  expect(address.hostname).toMatch(/^hf-[0-9a-f]+\.localhost$/);
  expect([address.pathname, address.search]).toEqual(["/", ""]);
  await tab.getByText("hot", { exact: true }).waitFor();
  await tab.getByText("host not reached").waitFor();
  await tab.getByText("opener null").waitFor();
  await tab.reload();
  await tab.getByText("hot", { exact: true }).waitFor();
  const printed = (await home.screen("app")).join("\n");
  expect(printed).toContain("cookies own=1");
  expect(printed).not.toContain("holdfast");
  expect(await tab.evaluate(() => navigator.serviceWorker.getRegistrations().then((all) => all.length))).toBe(0);
  // The palette has it too.
  await opened.bringToFront();
  await opened.keyboard.press("Control+k");
  await opened.getByRole("option", { name: /^Open port/ }).waitFor();
  await opened.keyboard.press("Escape");
  // It ends with the session.
  await home.hf("end", "app", "--grace", "0");
  await until("the end of the preview", async () => {
    const answer = await tab.reload().catch(() => undefined);
    return !answer || answer.status() !== 200;
  });
});

test("from elsewhere a preview has the host's name and certificate, and another port", async () => {
  const far = await Home.open();
  onTestFinished(() => far.close());
  const [key, cert] = [join(far.dir, "key.pem"), join(far.dir, "cert.pem")];
  const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", `/CN=${ELSEWHERE}`];
  execFileSync("openssl", [...made, "-keyout", key, "-out", cert], { stdio: "ignore" });
  await far.hf("host", "start", "--http", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, "--name", ELSEWHERE);
  const { url } = await far.json<{ url: string }>(HUMAN, "web", "--phone");
  const { origin, host } = new URL(url);
  writeFileSync(join(far.dir, "server.py"), server(origin));
  await far.hf("new", "-d", "-n", "app", "--cwd", far.dir, "--", "python3", "server.py");
  const { address } = await until("the port", async () => (await far.json<{ address: string }[]>(HUMAN, "ports", "app"))[0]);
  const port = Number(address.split(":")[1]);
  const token = (await far.hf("token", "new")).trim();
  const opened = await page(browser, { ...DESK, ignoreHTTPSErrors: true });
  await opened.goto(url);
  await opened.getByRole("button", { name: "New session" }).waitFor();
  const preview = await opened.evaluate(
    async ([token, port]) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const answer = await fetch("/v1/previews", { method: "POST", headers, body: JSON.stringify({ session: "app", port }) });
      return ((await answer.json()) as { url: string }).url;
    },
    [token, port] as const,
  );
  expect([new URL(preview).hostname, new URL(preview).host === host]).toEqual([ELSEWHERE, false]);
  // What is refused to the page in it is that page's complaint, and meant.
  const context = await browser.newContext({ ...DESK, ignoreHTTPSErrors: true });
  onTestFinished(() => context.close());
  const tab = await context.newPage();
  await tab.goto(preview);
  await tab.getByText("hot", { exact: true }).waitFor();
  await tab.getByText("host not reached").waitFor();
  const [cookie] = await context.cookies(new URL(preview).origin);
  expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: "Lax" });
});

test("several sessions are watched at once, live, and the choice is kept", async () => {
  for (const name of ["api-web", "api-db", "docs"]) await home.shell(name);
  const opened = await enter(browser, home);
  await opened.getByRole("link", { name: "Watch several" }).click();
  const tile = (name: string) => opened.getByRole("region", { name });
  for (const name of ["api-web", "api-db", "docs"]) await tile(name).locator(".xterm-screen").waitFor();
  await home.hf("send", "docs", "--enter", "echo live-$((40+2))");
  const text = (name: string) => tile(name).locator(".xterm-rows").innerText();
  await until("the output in its tile", async () => (await text("docs")).includes("live-42"));
  // All of the terminal is within its tile.
  const box = await tile("docs").locator(".tile-pane").boundingBox();
  const screen = await tile("docs").locator(".xterm-screen").boundingBox();
  expect(box && screen && screen.width <= box.width && screen.height <= box.height).toBe(true);
  await opened.getByRole("button", { name: "api-db" }).click();
  await until("one tile less", async () => (await opened.locator(".tile").count()) === 2);
  await opened.reload();
  await until("the choice", async () => (await opened.locator(".tile").count()) === 2);
  expect(await violations(opened)).toEqual([]);
  // Who watches takes no turn, and is seen as who watches.
  const { clients } = await home.json<{ clients: { read_only: boolean }[] }>(HUMAN, "info", "docs");
  expect(clients.map((client) => client.read_only)).toEqual([true]);
  await tile("docs").getByRole("link").click();
  await opened.locator(".pane .xterm-screen").waitFor();
  expect(new URL(opened.url()).pathname).toBe("/s/docs");
  const phone = await enter(browser, home, undefined, PHONE);
  await phone.getByRole("link", { name: "Watch several" }).click();
  await phone.getByRole("region", { name: "docs" }).locator(".xterm-screen").waitFor();
  expect(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
});

test("sessions stand in groups of a person's choice", async () => {
  const opened = await enter(browser, home);
  const heads = () => opened.locator(".group h2 bdi").allInnerTexts();
  await opened.getByLabel("Groups of sessions").selectOption({ label: "Group by first word of name" });
  await until("the groups", async () => (await heads()).join(" ").startsWith("api docs"));
  await opened.reload();
  await until("the same groups", async () => (await heads()).join(" ").startsWith("api docs"));
  await opened.getByLabel("Groups of sessions").selectOption({ label: "Group by directory" });
  await until("one directory", async () => (await heads())[0] === home.dir);
  expect(await violations(opened)).toEqual([]);
});
