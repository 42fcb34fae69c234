// What agents can do with Holdfast: tasks, driven by a scripted model through real clients, and a score for each.
//
//     node run.mjs HOLDFAST PACKAGES CLIENT… [--task NAME]… [--json FILE]

import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CLIENTS } from "./clients.mjs";
import { serve } from "./model.mjs";
import { TASKS } from "./tasks.mjs";

/** How long one prompt may take on a busy machine. */
const PATIENCE_MS = 120_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { task: { type: "string", multiple: true }, json: { type: "string" } },
});
const [program, packages, ...clients] = positionals;

/** A home of its own, with a person and an agent. */
class World {
  constructor(client) {
    this.program = program;
    this.home = mkdtempSync(join(tmpdir(), "hfev"));
    this.dir = join(this.home, "work");
    this.actor = `agent:${client}`;
    this.human = "human:ann";
    this.patience_ms = PATIENCE_MS;
    // A test speaks as an agent and as a person from one process: the host looks no further up than here.
    this.mcpEnv = { HOLDFAST_HOME: this.home, HOLDFAST_TEST_TOP: String(process.pid), SHELL: "/bin/bash", HOME: this.home };
    this.env = { ...this.mcpEnv, PATH: process.env.PATH, TERM: "xterm-256color", LANG: "C.UTF-8", CI: "1" };
    mkdirSync(this.dir);
    writeFileSync(join(this.home, ".bashrc"), "PS1='$ '\n");
    this.makePerson("ann");
  }

  /** A person's key, which only a terminal would make. */
  makePerson(name) {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const last = (key, type) => key.export({ format: "der", type }).subarray(-32).toString("hex");
    const handle = `human:${name}`;
    mkdirSync(join(this.home, "actors"), { mode: 0o700 });
    const write = (kind, content) => writeFileSync(join(this.home, `actors/human.${name}.${kind}`), `${JSON.stringify(content)}\n`, { mode: 0o600 });
    write("key", { handle, secret: last(privateKey, "pkcs8") });
    write("pub", { id: last(publicKey, "spki"), handle, created_ms: Date.now() });
  }

  bin(name) {
    return join(packages, name, "node_modules/.bin", name);
  }

  holdfast(...args) {
    return this.holdfastWith("", ...args);
  }

  holdfastWith(input, ...args) {
    return execFileSync(this.program, args, { env: this.env, cwd: this.dir, encoding: "utf8", input, stdio: "pipe" });
  }

  sh(command) {
    execFileSync("sh", ["-c", command], { env: this.env, cwd: this.dir, stdio: "ignore" });
  }

  /** Polls until something is there. */
  async until(what, look) {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      let seen;
      try {
        seen = look();
      } catch {
        // A host that restarts, a session that is not there yet.
      }
      if (seen) return seen;
      if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  leave() {
    for (const args of [["end", "--all", "--grace", "0"], ["host", "stop"]]) {
      try {
        this.holdfast("--as", this.human, ...args);
      } catch {
        // Nothing was there.
      }
    }
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Newlines and quotes of JSON as what they stand for. */
function readable(text) {
  return text.replaceAll("\\r\\n", "\n").replaceAll("\\n", "\n").replaceAll('\\"', '"');
}

/** One task through one client: what came of it. */
async function score(client, task) {
  const world = new World(client);
  const score = { client, task: task.name, success: false, calls: 0, bytes: 0, wrong: 0, interruptions: 0, ms: 0, why: [] };
  const began = Date.now();
  try {
    const human = { done: false, failed: undefined };
    task.before?.(world);
    const person = task.human?.(world).then(
      () => (human.done = true),
      (error) => (human.failed = error),
    );
    for (const phase of task.phases ?? [task]) {
      if (phase !== task) phase.before?.(world);
      const model = await serve(phase.steps);
      try {
        const end = await CLIENTS[client](world, model.url, `Do the task ${task.name} with the tools of holdfast.`);
        const { missing } = model.seen;
        const results = model.seen.results.map(readable);
        score.calls += results.length;
        score.bytes += results.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
        phase.expects.forEach((expected, at) => {
          const text = results[at];
          const fits = text !== undefined && (typeof expected === "function" ? expected(text) : expected.test(text));
          if (fits) return;
          score.wrong += 1;
          score.why.push(text === undefined ? `step ${at + 1} was not reached` : `step ${at + 1}: ${text.slice(0, 300)}`);
        });
        if (missing.length > 0) score.why.push(`no tools ${missing.join(", ")}`);
        if (results.length === 0) score.why.push(`asked: ${model.seen.asked.slice(0, 6).join(", ")}; tools: ${model.seen.offered.slice(0, 60).join(" ")}; said: ${end.said.slice(-600)}`);
      } finally {
        await model.close();
      }
    }
    if (person) await Promise.race([person, new Promise((resolve) => setTimeout(resolve, 5_000))]);
    score.interruptions = task.human && human.done ? (task.interruptions ?? 1) : 0;
    if (human.failed) score.why.push(String(human.failed));
    const isDone = task.check ? task.check(world) : true;
    if (!isDone) score.why.push("the world is not as it should be");
    score.success = isDone && score.wrong === 0 && !human.failed;
  } catch (error) {
    score.why.push(String(error.stack ?? error).slice(0, 600));
  } finally {
    score.ms = Date.now() - began;
    world.leave();
  }
  return score;
}

const tasks = values.task ? TASKS.filter(({ name }) => values.task.includes(name)) : TASKS;
const scores = [];
for (const client of clients) {
  for (const task of tasks) {
    const one = await score(client, task);
    scores.push(one);
    const { success, calls, bytes, wrong, interruptions, ms } = one;
    console.log(`${success ? "ok  " : "FAIL"} ${client.padEnd(9)} ${task.name.padEnd(18)} ${calls} calls, ${bytes} bytes, ${wrong} wrong, ${interruptions} interruptions, ${ms} ms`);
    for (const why of one.why) console.log(`     ${why.replaceAll("\n", "\n     ")}`);
  }
}
const sum = (of, name) => of.reduce((all, one) => all + Number(one[name]), 0);
for (const client of clients) {
  const own = scores.filter((one) => one.client === client);
  console.log(`${client}: ${sum(own, "success")} of ${own.length} tasks, ${sum(own, "calls")} calls, ${sum(own, "bytes")} bytes, ${sum(own, "wrong")} wrong steps, ${sum(own, "interruptions")} interruptions`);
}
if (values.json) writeFileSync(values.json, `${JSON.stringify(scores, null, 2)}\n`);
process.exitCode = scores.every(({ success }) => success) ? 0 : 1;
