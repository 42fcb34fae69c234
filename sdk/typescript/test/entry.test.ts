// What each entry point pulls in.

import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

/** Everything a module imports, and what that imports; modules of others by their names. */
function reached(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, from = ""] of readFileSync(file, "utf8").matchAll(/(?:from\s+|import\s*\(?)"([^"]+)"/g)) {
    if (from.startsWith(".")) reached(resolve(dirname(file), from.replace(/\.js$/, ".ts")), seen);
    else seen.add(from);
  }
  return seen;
}

const source = (name: string) => fileURLToPath(new URL(`../src/${name}`, import.meta.url));
const foreign = (name: string) => [...reached(source(name))].filter((module) => !module.startsWith("/")).sort();

it("the browser's entry needs nothing but itself", () => {
  expect(reached(source("index.ts")).size).toBeGreaterThan(15);
  expect(foreign("index.ts")).toEqual([]);
});

it("the sealed channel's entry needs nothing but itself and the browser", () => {
  expect(reached(source("channel.ts")).size).toBeGreaterThan(10);
  expect(foreign("channel.ts")).toEqual([]);
});

it("that of Node needs Node, and `ws` for WebSockets", () => {
  expect(foreign("node.ts").filter((module) => !module.startsWith("node:"))).toEqual(["ws"]);
});
