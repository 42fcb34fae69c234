// The files of a session beside its terminal: browse, look, upload, download, and what was written.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { violations } from "./support/axe.js";
import { enter, launch } from "./support/browser.js";
import { Home, until } from "./support/home.js";

let home: Home;
let browser: Browser;

beforeAll(async () => {
  [home, browser] = await Promise.all([Home.open(), launch()]);
});

afterAll(async () => {
  await browser?.close();
  await home?.close();
});

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const HOSTILE = "<img src=x onerror=\"window.owned=1\"><script>window.owned=1</script>";

async function files(name: string): Promise<{ opened: Page; cwd: string }> {
  const cwd = `${home.dir}/${name}`;
  mkdirSync(`${cwd}/src`, { recursive: true });
  writeFileSync(`${cwd}/notes.md`, `# Plan\n\n- **first** \`code\`\n\n${HOSTILE}\n\n[link](javascript:window.owned=1)\n`);
  writeFileSync(`${cwd}/src/main.c`, "int main(void);\n");
  writeFileSync(`${cwd}/page.html`, HOSTILE);
  writeFileSync(`${cwd}/dot.png`, Buffer.from(PIXEL, "base64"));
  await home.hf("new", "-d", "-n", name, "--cwd", cwd, "--", "bash");
  const opened = await enter(browser, home);
  await opened.goto(`${home.url}/s/${name}/files`);
  await opened.locator(".entries").waitFor();
  return { opened, cwd };
}

test("a session's files are browsed, shown as text, and nothing in them runs", async () => {
  const { opened } = await files("browse");
  await opened.getByRole("button", { name: "src/" }).click();
  await opened.getByRole("button", { name: "main.c", exact: false }).first().click();
  await opened.locator(".file-text", { hasText: "int main(void);" }).waitFor();
  await opened.getByRole("button", { name: "Back to the list" }).click();
  await opened.locator(".crumbs button").first().click();
  await opened.locator(".entry", { hasText: "notes.md" }).click();
  await opened.getByRole("heading", { name: "Plan" }).waitFor();
  expect(await opened.locator(".markdown").innerText()).toContain("<script>window.owned=1</script>");
  expect(await opened.locator(".markdown a, .markdown img, .markdown script").count()).toBe(0);
  expect(await violations(opened)).toEqual([]);
  await opened.getByRole("button", { name: "Back to the list" }).click();
  await opened.locator(".entry", { hasText: "page.html" }).click();
  await opened.locator(".file-text", { hasText: "onerror" }).waitFor();
  await opened.getByRole("button", { name: "Back to the list" }).click();
  await opened.locator(".entry", { hasText: "dot.png" }).click();
  await until("the picture", async () => (await opened.locator("canvas.picture").getAttribute("width")) === "1");
  expect(await opened.evaluate(() => (window as { owned?: number }).owned)).toBe(undefined);
});

test("a file is uploaded and downloaded, and what a write changed is shown", async () => {
  const { opened, cwd } = await files("moved");
  await opened.getByLabel("Files to upload").setInputFiles({ name: "up.txt", mimeType: "text/plain", buffer: Buffer.from("uploaded\n") });
  await opened.locator(".entry", { hasText: "up.txt" }).first().waitFor();
  expect(readFileSync(`${cwd}/up.txt`, "utf8")).toBe("uploaded\n");
  const [download] = await Promise.all([
    opened.waitForEvent("download"),
    opened.getByRole("button", { name: "Download up.txt" }).click(),
  ]);
  expect(readFileSync(await download.path(), "utf8")).toBe("uploaded\n");
  await opened.locator(".changes .entry", { hasText: "up.txt" }).click();
  await opened.locator(".diff .added", { hasText: "+uploaded" }).waitFor();
  // Over what was there: both sides are shown.
  await opened.getByLabel("Files to upload").setInputFiles({ name: "up.txt", mimeType: "text/plain", buffer: Buffer.from("again\n") });
  await until("the second write", async () => readFileSync(`${cwd}/up.txt`, "utf8") === "again\n");
  await until("its row", async () => (await opened.locator(".changes .entry", { hasText: "up.txt" }).count()) === 2);
  await opened.locator(".changes .entry", { hasText: "up.txt" }).first().click();
  await opened.locator(".diff .gone", { hasText: "-uploaded" }).waitFor();
  await opened.locator(".diff .added", { hasText: "+again" }).waitFor();
});

test("a dropped file is uploaded where the list is", async () => {
  const { opened, cwd } = await files("dropped");
  await opened.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File(["dropped"], "drop.txt"));
    document.querySelector(".files")?.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  });
  await opened.locator(".entry", { hasText: "drop.txt" }).first().waitFor();
  expect(readFileSync(`${cwd}/drop.txt`, "utf8")).toBe("dropped");
  // What is longer than a write goes in pieces, and arrives whole.
  await opened.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(3_000_000).fill(7), "end"], "long.bin"));
    document.querySelector(".files")?.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  });
  await opened.locator(".entry", { hasText: "long.bin" }).first().waitFor();
  const long = readFileSync(`${cwd}/long.bin`);
  expect([long.length, long[2_999_999], long.subarray(-3).toString()]).toEqual([3_000_003, 7, "end"]);
});

test("a directory of thousands is shown page by page", async () => {
  const { opened, cwd } = await files("many");
  mkdirSync(`${cwd}/many`);
  for (let number = 0; number < 1_500; number += 1) writeFileSync(`${cwd}/many/f${String(number).padStart(4, "0")}`, "");
  await opened.getByRole("button", { name: "src/" }).waitFor();
  await opened.reload();
  await opened.getByRole("button", { name: "many/" }).click();
  await opened.locator(".entry", { hasText: "f0999" }).waitFor();
  expect(await opened.locator(".entry", { hasText: "f1499" }).count()).toBe(0);
  await opened.getByRole("button", { name: "Show more" }).click();
  await opened.locator(".entry", { hasText: "f1499" }).waitFor();
  expect(await opened.getByRole("button", { name: "Show more" }).count()).toBe(0);
});
