// The pictures in docs/images: a host with some work on it, seen from a desk and a phone, by day and night.
//
// `HOLDFAST_BIN=… npm run screenshots`, after `npm run build`.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chromium, type BrowserContextOptions, type Page } from "playwright-core";
import { Home, HUMAN, until } from "../tests/support/home.js";

const OUT = new URL("../../docs/images/", import.meta.url).pathname;
const AGENT = "agent:claude";

const BUILD = `
printf '\\033[1m$ cargo build --release\\033[m\\n'
for c in serde tokio hyper rustls axum tower; do printf '\\033[1;32m   Compiling\\033[m %s v1.4.2\\n' $c; done
printf '\\033[1;33mwarning\\033[m\\033[1m: unused variable: \`retries\`\\033[m\\n  \\033[1;34m-->\\033[m src/deploy.rs:48:9\\n   \\033[1;34m|\\033[m\\n\\033[1;34m48\\033[m \\033[1;34m|\\033[m     let retries = 3;\\n   \\033[1;34m|\\033[m         \\033[1;33m^^^^^^^\\033[m help: prefix it with an underscore\\n\\n'
printf '\\033[1;32m    Finished\\033[m release profile in 1m 12s\\n\\n'
printf '\\033[1m$ cargo nextest run\\033[m\\n'
i=0; for t in parses_a_frame refuses_a_long_one resumes_by_offset keeps_the_turn seizes_a_loop answers_once; do i=$((i+1)); printf '\\033[1;32m        PASS\\033[m [   0.0%ds] \\033[1;35mapi\\033[m \\033[1;36mtests::\\033[m%s\\n' $i $t; done
printf '\\033[1;32m     Summary\\033[m [   0.4s] 6 tests run: 6 passed\\n\\n'
printf '\\033[1m$ ./deploy --stage canary\\033[m\\nuploading image  \\033[32m████████████████████████\\033[m 100%%\\nrolling out to canary (2 of 40 machines) … healthy\\n'
exec sleep 3600`;

async function scene(home: Home): Promise<void> {
  const start = (name: string, actor: string, script: string, ...args: string[]) => {
    writeFileSync(join(home.dir, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return home.as(actor, "new", "-d", "-n", name, ...args, "--", `./${name}`);
  };
  await start("backup", HUMAN, "echo 'sent 1.2 GiB  received 34 KiB  48 MB/s'; echo 'total size is 212 GiB  speedup is 171.9'");
  await start("logs", HUMAN, "i=0; while :; do i=$((i+1)); echo \"12:04:$((10+i%50)) GET /v1/orders/$((4000+i*7)) 200 $((3+i%9))ms\"; sleep 0.7; done");
  await start("api", AGENT, "exec python3 -u -m http.server 8443 --bind 127.0.0.1");
  await start("migrate", AGENT, "echo 'applied 0041_orders_index'; echo 'applied 0042_drop_legacy'; printf 'Apply 0043_backfill to production? [y/N] '; read a");
  await start("deploy", AGENT, BUILD, "--size", "112x38");
  await home.as(AGENT, "request", "deploy");
}

function question(home: Home): Promise<string> {
  const text = "Canary is healthy after 10 minutes. Roll out to all 40 machines?";
  return home.as(AGENT, "ask", "-t", "deploy", "--option", "Roll out", "--option", "Wait an hour", "--option", "Roll back", text).catch(() => "");
}

async function shoot(home: Home, name: string, path: string, options: BrowserContextOptions, ready: (page: Page) => Promise<unknown>) {
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    const page = await (await browser.newContext({ ...options, reducedMotion: "reduce" })).newPage();
    await page.goto(await home.entrance());
    await page.locator("a.card", { hasText: "deploy" }).waitFor();
    if (path !== "/") await page.goto(home.url + path);
    await ready(page);
    await page.screenshot({ path: `${OUT}${name}.png` });
  } finally {
    await browser.close();
  }
}

const DESK = { viewport: { width: 1280, height: 800 } } satisfies BrowserContextOptions;
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true } satisfies BrowserContextOptions;

mkdirSync(OUT, { recursive: true });
const home = await Home.open();
try {
  await scene(home);
  const asked = question(home);
  const homeIsReady = async (page: Page) => {
    await page.getByRole("button", { name: "Roll out" }).waitFor();
    await page.getByText(":8443").first().waitFor();
    await until("output on the cards", async () => (await page.locator(".tail-line", { hasText: "GET /v1" }).count()) > 3);
  };
  const sessionIsReady = (page: Page) => page.locator(".xterm-rows", { hasText: "healthy" }).waitFor();
  await shoot(home, "web-home", "/", { ...DESK, colorScheme: "light" }, homeIsReady);
  await shoot(home, "web-session", "/s/deploy", { ...DESK, colorScheme: "dark" }, sessionIsReady);
  await shoot(home, "web-phone-home", "/", { ...PHONE, colorScheme: "dark" }, homeIsReady);
  await shoot(home, "web-phone-session", "/s/deploy", { ...PHONE, colorScheme: "light" }, sessionIsReady);
  const [open] = await home.json<{ id: string }[]>(HUMAN, "questions");
  if (open) await home.hf("answer", open.id, "--option", "1").catch(() => home.hf("ask", "--withdraw", open.id));
  await asked;
} finally {
  await home.close();
}
