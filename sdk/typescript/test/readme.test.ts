// The first example of the README, as it stands there.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { Home } from "./home.js";

const root = fileURLToPath(new URL("..", import.meta.url));

/** A port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

it("starts a build, waits for its port and reads the end of its log in five lines", async () => {
  expect(existsSync(`${root}/dist/node.js`), "run `npm run build` first").toBe(true);
  const example = /```js\n([^]*?)```/.exec(readFileSync(`${root}/README.md`, "utf8"))?.[1] ?? "";
  expect(example.trim().split("\n").length).toBe(5);
  const home = Home.make();
  const port = await freePort();
  mkdirSync(home.join("node_modules/@holdfast"), { recursive: true });
  symlinkSync(root, home.join("node_modules/@holdfast/client"));
  writeFileSync(home.join("serve.cjs"), `require("http").createServer().listen(${port}, "127.0.0.1")`);
  writeFileSync(home.join("package.json"), JSON.stringify({ scripts: { build: "echo built", serve: "node serve.cjs" } }));
  // Only the port is another one: 3000 may be somebody's.
  expect(example).toContain("3000");
  writeFileSync(home.join("example.mjs"), example.replace("3000", String(port)));
  const { stdout } = await promisify(execFile)(process.execPath, ["example.mjs"], { cwd: home.dir, env: home.env });
  expect(stdout).toMatch(/^built$/m);
  expect(stdout).toContain("node serve.cjs");
  // The session is still there afterwards.
  expect(await home.holdfast("ls")).toContain("web");
});
