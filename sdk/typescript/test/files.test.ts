// Files of a session's working tree, against a real host.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { HoldfastError } from "../src/node.js";
import { Home } from "./home.js";

async function code(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  return error instanceof HoldfastError ? error.code : "none";
}

async function tree() {
  const home = Home.make();
  const cwd = home.join("tree");
  mkdirSync(cwd);
  const client = await home.client();
  return { cwd, session: await client.open({ command: ["cat"], cwd }) };
}

it("files are listed, read, written, edited and undone", async () => {
  const { cwd, session } = await tree();
  const written = await session.files.write("a.txt", "one\n");
  expect([written.id, written.before ?? null, written.size]).toEqual([1, null, 4]);
  const edited = await session.files.edit("a.txt", "one", "two");
  expect(edited.diff).toContain("-one\n+two\n");
  expect(await session.files.readText("a.txt")).toBe("two\n");
  expect((await session.files.list()).map(({ name }) => name)).toEqual(["a.txt"]);
  expect((await session.files.changes()).map(({ id }) => id)).toEqual([2, 1]);
  expect(await session.files.diff(2)).toContain("+two");
  await session.files.undo();
  expect(readFileSync(`${cwd}/a.txt`, "utf8")).toBe("one\n");
  expect(await code(session.files.write("a.txt", "x", { new: true }))).toBe("file_changed");
  expect(await code(session.files.read("../x"))).toBe("outside_root");
  expect(await code(session.files.read("nothing"))).toBe("no_such_file");
});

it("a large file goes in pieces, and says how far it is", async () => {
  const { cwd, session } = await tree();
  const content = new Uint8Array(3_500_000).map((_, at) => at % 251);
  const seen: number[] = [];
  await session.files.write("large", content, { onProgress: (done) => seen.push(done) });
  expect(seen).toEqual([1_048_576, 2_097_152, 3_145_728, 3_500_000]);
  expect(Buffer.compare(readFileSync(`${cwd}/large`), content)).toBe(0);
  expect(Buffer.compare(await session.files.read("large"), content)).toBe(0);
  expect((await session.files.read("large", { max: 10 })).length).toBe(10);
  await session.files.write("blob", new Blob([content.subarray(0, 2_000_000), "end"]));
  expect(readFileSync(`${cwd}/blob`).length).toBe(2_000_003);
  expect(readFileSync(`${cwd}/blob`).subarray(-3).toString()).toBe("end");
});

it("a watched directory tells what changes", async () => {
  const { cwd, session } = await tree();
  const events = session.files.watch("", { intervalMs: 20 });
  const first = events.next();
  const writing = setInterval(() => writeFileSync(`${cwd}/new`, String(Date.now())), 30);
  const { value } = await first;
  clearInterval(writing);
  expect(value?.entry.name).toBe("new");
  await events.return();
});
