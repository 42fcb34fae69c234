// A home of its own for each test, and the program in it.
//
// The variables are those of the program's own tests. When a home is let go of, its sessions are ended and its host stopped; a
// process that is left over fails the test, and is ended by its number.

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { connect, Identity, type Client, type LocalOptions } from "../src/node.js";

/** How long anything may take on a busy machine before a test gives up on it. */
export const PATIENCE_MS = 20_000;

const run = promisify(execFile);

/** The program under test. */
export function program(): string {
  const path = process.env["HOLDFAST_BIN"];
  if (!path) throw new Error("set HOLDFAST_BIN to the holdfast program the tests shall use");
  return path;
}

/** Polls until a condition holds; the one place that waits by looking. */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export class Home {
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  private readonly clients: Client[] = [];

  private constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "hfts"));
    this.env = {
      HOLDFAST_HOME: this.dir,
      // A test speaks as an agent and as a human from one process: the host looks no further up than here.
      HOLDFAST_TEST_TOP: String(process.pid),
      HOLDFAST_BIN: program(),
      HOME: this.dir,
      PATH: "/usr/local/bin:/usr/bin:/bin",
      SHELL: "/bin/bash",
      TERM: "xterm-256color",
      LANG: "C.UTF-8",
    };
  }

  /** One that is gone when the test is over. */
  static make(): Home {
    const home = new Home();
    onTestFinished(() => home.leave());
    return home;
  }

  /** A client of its host, which is started. */
  async client(options: LocalOptions = {}): Promise<Client> {
    const client = await connect({ env: this.env, ...options });
    this.clients.push(client);
    const { defaults } = client;
    client.defaults = () => ({ ...defaults(), cwd: this.dir });
    return client;
  }

  /** Runs the program to its end, as the actor that clients are by default. */
  async holdfast(...args: string[]): Promise<string> {
    const env = { ...this.env, HOLDFAST_ACTOR: "agent:node" };
    return (await run(program(), args, { env, cwd: this.dir })).stdout;
  }

  /** A client of a person, whose key only a terminal would make. */
  async human(name: string): Promise<Client> {
    const secret = randomBytes(32);
    const { actor } = new Identity(`human:${name}`, secret);
    const write = (kind: string, content: object) =>
      writeFileSync(this.join(`actors/human.${name}.${kind}`), `${JSON.stringify(content)}\n`, { mode: 0o600 });
    mkdirSync(this.join("actors"), { recursive: true, mode: 0o700 });
    write("key", { handle: actor.handle, secret: secret.toString("hex") });
    write("pub", { ...actor, created_ms: Date.now() });
    return this.client({ actor: actor.handle });
  }

  join(name: string): string {
    return join(this.dir, name);
  }

  /** Ends the host at once, as a crash would. */
  async killHost(client: Client): Promise<void> {
    const { pid } = await client.status();
    process.kill(pid, "SIGKILL");
    await until("the end of the host", () => !isAlive(pid));
  }

  /** Numbers of the processes that belong to this home: their environment, command line or file names it. */
  processes(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => {
        const texts = [`environ`, `cmdline`].map((file) => attempt(() => readFileSync(`/proc/${pid}/${file}`, "latin1")));
        return [...texts, attempt(() => readlinkSync(`/proc/${pid}/exe`))].some((text) => text.includes(this.dir));
      })
      .map(Number);
  }

  private async leave(): Promise<void> {
    for (const client of this.clients) client.close();
    // In rounds: what is asked to end may start the host, and a host that starts wakes the service of flows.
    const end = async () => {
      if (this.processes().length === 0) return true;
      if (existsSync(this.join("flows.db"))) await this.holdfast("flow", "stop").catch(() => {});
      if (existsSync(this.join("run/host.sock"))) {
        await this.holdfast("end", "--all", "--grace", "0").catch(() => {});
        await this.holdfast("host", "stop").catch(() => {});
      }
      return this.processes().length === 0;
    };
    const left = await until("the end of all processes", end).catch(() => this.processes());
    if (Array.isArray(left)) {
      for (const pid of left) attempt(() => String(process.kill(pid, "SIGKILL")));
      throw new Error(`processes were left over: ${left.join(" ")}`);
    }
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function attempt(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}

function isAlive(pid: number): boolean {
  // One that nobody has waited for yet is dead all the same.
  const state = attempt(() => readFileSync(`/proc/${pid}/stat`, "latin1")).split(") ")[1]?.[0];
  return state !== undefined && state !== "Z";
}
