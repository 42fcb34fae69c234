// The pictures in docs/images: a host with some work on it, seen from a desk and a phone, by day and night.
//
// `HOLDFAST_BIN=… npm run screenshots`, after `npm run build`. `GALLERY=DIR` beside it: every view
// (or those that are named behind `--`), in every size and light.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
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
  await work(home);
}

/** A shell with a history: runs of a person and an agent, a seizure, a server. */
async function work(home: Home): Promise<void> {
  writeFileSync(
    join(home.dir, "cargo"),
    `#!/bin/sh\nif [ "$1" = test ]; then printf 'running 42 tests\\n'; for i in 1 2 3 4 5 6; do printf 'test orders::case_%s ... \\033[32mok\\033[m\\n' $i; done; printf 'test orders::refund ... \\033[31mFAILED\\033[m\\n'; exit 1; fi\nprintf '\\033[1;32m   Compiling\\033[m api v0.4.1\\n\\033[1;32m    Finished\\033[m dev profile in 8.31s\\n'\n`,
    { mode: 0o755 },
  );
  writeFileSync(join(home.dir, ".bashrc"), `PATH=${home.dir}:$PATH; PS1='\\[\\033[1;32m\\]ann@box\\[\\033[m\\]:\\[\\033[1;34m\\]~/api\\[\\033[m\\]$ '\n`);
  await home.hf("new", "-d", "-n", "work", "--size", "100x30", "--", "bash");
  await home.as(AGENT, "run", "work", "--", "cargo", "build");
  await home.as(AGENT, "run", "work", "--", "cargo", "test").catch(() => "");
  await home.hf("seize", "work", "--reason", "let me look at that failure");
  await home.hf("run", "work", "--", "cargo", "test", "refund").catch(() => "");
  await home.hf("release", "work");
  await home.as(AGENT, "take", "work");
  await home.as(AGENT, "send", "work", "--enter", "python3 -m http.server 3000 --bind 127.0.0.1");
}

function question(home: Home): Promise<string> {
  const text = "Canary is healthy after 10 minutes. Roll out to all 40 machines?";
  return home.as(AGENT, "ask", "-t", "deploy", "--option", "Roll out", "--option", "Wait an hour", "--option", "Roll back", text).catch(() => "");
}

const DESK = { viewport: { width: 1280, height: 800 } } satisfies BrowserContextOptions;
const WIDE = { viewport: { width: 1440, height: 900 } } satisfies BrowserContextOptions;
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true } satisfies BrowserContextOptions;

/** A place of the page, and what must be seen there before it is worth a picture. */
interface View {
  path: string;
  ready(page: Page, home: Home): Promise<unknown>;
}

const terminal = (page: Page) => page.locator(".xterm-rows", { hasText: "healthy" }).first().waitFor({ state: "attached" });

const VIEWS = {
  home: {
    path: "/",
    async ready(page) {
      await page.getByRole("button", { name: "Roll out" }).waitFor();
      await page.getByText(":8443").first().waitFor();
      await until("output on the cards", async () => (await page.locator(".tail-line", { hasText: "GET /v1" }).count()) > 3);
    },
  },
  session: {
    path: "/s/deploy",
    async ready(page, home) {
      await terminal(page);
      await home.as(AGENT, "take", "deploy");
      await page.getByRole("button", { name: "Seize" }).waitFor();
    },
  },
  watch: {
    path: "/watch",
    async ready(page) {
      await until("four terminals", async () => (await page.locator(".tile .xterm-screen").count()) === 4);
    },
  },
  ports: {
    path: "/s/work",
    async ready(page) {
      await page.locator(".xterm-screen").waitFor();
      await page.getByLabel("More", { exact: true }).click();
      await page.locator(".menu-list", { hasText: "Open port 3000" }).waitFor();
    },
  },
  timeline: {
    path: "/s/work/timeline",
    async ready(page) {
      await page.locator(".act", { hasText: "cargo test" }).first().waitFor();
      await page.locator(".act .end", { hasText: "exit 1" }).first().waitFor();
    },
  },
  graph: {
    path: "/s/work/graph",
    async ready(page) {
      await page.getByRole("button", { name: /http\.server/ }).click();
      await page.getByRole("region", { name: /Process \d+/ }).waitFor();
    },
  },
  share: {
    path: "/s/work/share",
    async ready(page) {
      await page.getByRole("button", { name: "Make a link" }).click();
      await page.getByRole("img", { name: "The link as a QR code" }).waitFor();
    },
  },
  past: {
    path: "/s/work/timeline",
    async ready(page) {
      await page.locator(".act", { hasText: "cargo test" }).first().waitFor();
      await page.getByRole("button", { name: "Scrub back" }).click();
      await page.getByRole("region", { name: "The past", exact: true }).waitFor();
      await page.getByRole("button", { name: "To the act before" }).click();
    },
  },
  seize: {
    path: "/s/deploy",
    async ready(page, home) {
      await terminal(page);
      await home.as(AGENT, "take", "deploy");
      await page.getByRole("button", { name: "Seize" }).click();
    },
  },
  new: {
    path: "/",
    async ready(page) {
      await page.getByRole("button", { name: "New session" }).click();
    },
  },
  hint: {
    path: "/s/deploy",
    async ready(page) {
      await terminal(page);
      await page.keyboard.type("x");
    },
  },
  find: {
    path: "/s/deploy",
    async ready(page) {
      await terminal(page);
      await choose(page, "Find");
      await page.getByRole("searchbox", { name: "Find" }).fill("cargo");
      await page.getByText("2 of 2").waitFor();
    },
  },
  text: {
    path: "/s/deploy",
    async ready(page) {
      await terminal(page);
      await choose(page, "Show as text");
    },
  },
  menu: {
    path: "/s/deploy",
    async ready(page) {
      await terminal(page);
      await page.getByLabel("More", { exact: true }).click();
    },
  },
  offer: {
    path: "/s/work",
    async ready(page) {
      await page.locator(".xterm-screen").waitFor();
      await page.evaluate(() => {
        const { holdfastTerminal: term } = window as unknown as { holdfastTerminal: import("@xterm/xterm").Terminal };
        term.write("\x1b]52;c;aGVsbG8=\x07");
      });
      await page.getByRole("button", { name: "Show it" }).waitFor();
    },
  },
  choice: {
    path: "/",
    async ready(page, home) {
      await page.goto("about:blank");
      await page.goto(await home.entrance(AGENT));
      await page.getByRole("button", { name: "Stay" }).waitFor();
    },
  },
} satisfies Record<string, View>;

async function choose(page: Page, item: string): Promise<void> {
  await page.getByLabel("More", { exact: true }).click();
  await page.getByRole("button", { name: item }).click();
}

async function shoot(home: Home, browser: Browser, file: string, view: View, options: BrowserContextOptions): Promise<void> {
  const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(await home.entrance());
  await page.locator("a.card", { hasText: "deploy" }).waitFor();
  if (view.path !== "/") await page.goto(home.url + view.path);
  await view.ready(page, home);
  await page.screenshot({ path: file });
  await context.close();
}

/** The pictures of the README. */
async function chosen(home: Home, browser: Browser): Promise<void> {
  mkdirSync(OUT, { recursive: true });
  await shoot(home, browser, `${OUT}web-home.png`, VIEWS.home, { ...DESK, colorScheme: "light" });
  await shoot(home, browser, `${OUT}web-session.png`, VIEWS.timeline, { ...DESK, colorScheme: "dark" });
  await shoot(home, browser, `${OUT}web-phone-home.png`, VIEWS.home, { ...PHONE, colorScheme: "dark" });
  await shoot(home, browser, `${OUT}web-phone-session.png`, VIEWS.session, { ...PHONE, colorScheme: "light" });
}

/** Every view in every size and light, to be looked at. */
async function gallery(home: Home, browser: Browser, dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true });
  const named = process.argv.slice(3);
  for (const [name, view] of Object.entries<View>(VIEWS).filter(([name]) => named.length === 0 || named.includes(name))) {
    for (const [size, options] of Object.entries({ desk: WIDE, phone: PHONE })) {
      for (const colorScheme of ["light", "dark"] as const) {
        await shoot(home, browser, join(dir, `${name}-${size}-${colorScheme}.png`), view, { ...options, colorScheme }).catch((error: unknown) =>
          console.error(`${name}-${size}-${colorScheme}: ${String(error)}`),
        );
      }
    }
  }
}

const home = await Home.open();
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  await scene(home);
  const asked = question(home);
  const dir = process.env["GALLERY"];
  await (dir ? gallery(home, browser, dir) : chosen(home, browser));
  const [open] = await home.json<{ id: string }[]>(HUMAN, "questions");
  if (open) await home.hf("ask", "--withdraw", open.id);
  await asked;
} finally {
  await browser.close();
  await home.close();
}
