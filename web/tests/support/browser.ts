// Debian's chromium, and a page of it that is logged in. What the page complains about fails the test that used it.

import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Frame, type Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { until, type Home } from "./home.js";

export const DESK = { viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" } satisfies BrowserContextOptions;
export const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, reducedMotion: "reduce" } satisfies BrowserContextOptions;

/** A name of this machine that only the browser knows. */
export const ELSEWHERE = "box.test";

export const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

export function launch(executablePath = CHROMIUM, more: string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath, args: [...more, "--no-sandbox", `--host-resolver-rules=MAP ${ELSEWHERE} 127.0.0.1`] });
}

/** What a page may say without being at fault: a driver's advice, and that nobody is logged in yet, that a host went away when a
 * test killed it, and that nobody vouches for a certificate. */
const HARMLESS = [/status of 401/, /GPU stall/, /WebSocket connection to/, /Failed to load resource: net::ERR_/, /WebGL/, /error occurred when fetching the script/];

/** A page without a login. */
export async function page(browser: Browser, options: BrowserContextOptions = DESK): Promise<Page> {
  const context: BrowserContext = await browser.newContext(options);
  const complaints: string[] = [];
  const opened = await context.newPage();
  opened.on("console", (message) => {
    const text = message.text();
    // A link that is not taken is the page's to tell, and the tests' to look for.
    if (message.location().url.endsWith("/v1/login")) return;
    if (message.type() === "error" && !HARMLESS.some((harmless) => harmless.test(text))) complaints.push(text);
  });
  opened.on("pageerror", (error) => complaints.push(String(error)));
  onTestFinished(async () => {
    await context.close();
    if (complaints.length > 0) throw new Error(`the page complained:\n${complaints.join("\n")}`);
  });
  return opened;
}

/** A page that is logged in, at Home or at a session. */
export async function enter(browser: Browser, home: Home, session?: string, options: BrowserContextOptions = DESK): Promise<Page> {
  const opened = await page(browser, options);
  await opened.goto(await home.entrance());
  await opened.getByRole("button", { name: "New session" }).waitFor();
  if (session) {
    await opened.goto(`${home.url}/s/${session}`);
    await opened.locator(".xterm-screen").waitFor();
  }
  return opened;
}

/** The rows of the session's screen, by the page's own buffer; or those in its window, wherever that is scrolled to. */
export function rows(opened: Page | Frame, from: "baseY" | "viewportY" = "baseY"): Promise<string[]> {
  return opened.evaluate((from) => {
    const { holdfastTerminal: term } = window as unknown as { holdfastTerminal?: import("@xterm/xterm").Terminal };
    const buffer = term?.buffer.active;
    if (!term || !buffer) return [];
    return Array.from({ length: term.rows }, (_, row) => buffer.getLine(buffer[from] + row)?.translateToString(true).trimEnd() ?? "");
  }, from);
}

/** Waits until the terminal shows a text. */
export async function shows(opened: Page | Frame, text: string | RegExp): Promise<void> {
  const fits = (row: string) => (typeof text === "string" ? row.includes(text) : text.test(row));
  let last: string[] = [];
  try {
    await until(`${String(text)} in the terminal`, async () => (last = await rows(opened)).some(fits));
  } catch (error) {
    throw new Error(`${(error as Error).message}, which shows:\n${last.join("\n").trimEnd()}`, { cause: error });
  }
}

/** Takes the free turn by the button, and gives the terminal the focus. */
export async function take(opened: Page | Frame): Promise<void> {
  await opened.getByRole("button", { name: "Take", exact: true }).click();
  await opened.getByText("You have the turn").waitFor();
  await opened.locator(".xterm-screen").click();
}

/** Every line of the terminal's buffer, what scrolled away too. */
export function lines(opened: Page | Frame): Promise<string[]> {
  return opened.evaluate(() => {
    const { holdfastTerminal: term } = window as unknown as { holdfastTerminal: import("@xterm/xterm").Terminal };
    const buffer = term.buffer.normal;
    return Array.from({ length: buffer.length }, (_, row) => buffer.getLine(row)?.translateToString(true).trimEnd() ?? "");
  });
}
