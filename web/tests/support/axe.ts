// Whether everybody can use a view.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Violations that keep somebody out, as lines; a page that is wider than its window is one. */
export async function violations(opened: Page): Promise<string[]> {
  const tooWide = await opened.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (tooWide > 0) return [`the page is ${tooWide} pixels wider than its window`];
  await opened.evaluate(AXE);
  const { violations: found } = await opened.evaluate(() => (window as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run());
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(" ")} ${node.failureSummary ?? ""}`));
}
