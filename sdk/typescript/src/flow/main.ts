// A worker for the flows of a file. `holdfast flow worker` and `flow test` start it.

import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { told } from "./book.js";
import { describe, lint } from "./lint.js";
import { FLOWS } from "./replay.js";
import { testHistories, Worker } from "./worker.js";

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

async function test(): Promise<number> {
  const found = await testHistories();
  for (const [flow, blocked] of found) console.log(`${flow}: ${blocked === undefined ? "fine" : `would be blocked: ${blocked}`}`);
  const diverging = found.filter(([, blocked]) => blocked !== undefined).length;
  console.log(`${found.length} histories, ${diverging} would be blocked`);
  return diverging > 0 ? 1 : 0;
}

/** Loads the file, says what is not deterministic in it, and works, tests it, or names its flows; the exit status. */
export async function main(words: readonly string[]): Promise<number> {
  if (words[0] === "--kept" && words.length === 3) {
    const [, code, lay] = words as [string, string, string];
    process.on("unhandledRejection", (error) => say(`a flow did not wait for a failure: ${told(error)}`));
    await Worker.kept({ log: say, file: resolve(lay) }, code);
    return 0;
  }
  const option = ["--test", "--names"].find((one) => one === words[0]);
  const [file, ...more] = words.slice(option ? 1 : 0);
  if (file === undefined || more.length > 0 || !existsSync(file)) {
    say(file === undefined || more.length > 0 ? "usage: [--test | --names] FILE.mjs" : `error: cannot read ${file}`);
    return 2;
  }
  for (const finding of lint(readFileSync(file, "utf8"))) say(`warning: ${file}: ${describe(finding)}`);
  try {
    await import(pathToFileURL(resolve(file)).href);
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_UNKNOWN_FILE_EXTENSION") {
      say(`error: node ${process.version} cannot load ${file}: it does not strip types`);
      say("hint: use node 22.18 or newer, compile the file with tsc, or name a loader, for example NODE_OPTIONS='--import tsx'");
    } else {
      say(`error: cannot load ${file}: ${error instanceof Error && error.stack ? error.stack : told(error)}`);
    }
    return 2;
  }
  if (FLOWS.size === 0) {
    say(`error: ${file} gives no function to flow(…)`);
    return 2;
  }
  // A promise that a flow let go of, for example the loser of a race, is that flow's own: the worker has others.
  process.on("unhandledRejection", (error) => say(`a flow did not wait for a failure: ${told(error)}`));
  if (option === "--names") {
    console.log([...FLOWS.keys()].sort().join("\n"));
    return 0;
  }
  try {
    if (option === "--test") return await test();
    say(`worker for ${[...FLOWS.keys()].sort().join(", ")}`);
    return await new Worker({ log: say, file: resolve(file) }).run();
  } catch (error) {
    say(`error: ${error instanceof Error ? error.message : told(error)}`);
    const hint = (error as { hint?: string }).hint;
    if (hint) say(`hint: ${hint}`);
    return 1;
  }
}
