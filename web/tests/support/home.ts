// A home of its own for each test file: a host that listens for HTTP, a human, and the program to act beside the browser.
//
// When it is let go of its sessions are ended and its host is stopped; a process that is left over is ended by its number, and
// fails the test.

import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { open } from "../../scripts/door.mjs";

const run = promisify(execFile);

/** How long anything may take on a busy machine before a test gives up on it. */
export const PATIENCE_MS = 20_000;

/** Polls until a condition holds; the one place that waits by looking. */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const deadline = Date.now() + PATIENCE_MS;
  let seen: T | undefined;
  let failed: unknown;
  for (;;) {
    try {
      seen = await look();
      if (seen) return seen;
    } catch (error) {
      failed = error;
    }
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`, { cause: failed });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Who looks at the page. */
export const HUMAN = "human:ann";

export class Home {
  readonly dir = mkdtempSync(join(tmpdir(), "hfweb"));
  readonly env: Record<string, string>;
  readonly program: string;
  /** Where the page is. */
  url = "";
  private shut = () => {};

  private constructor(private readonly within: readonly string[]) {
    const program = process.env["HOLDFAST_BIN"];
    if (!program) throw new Error("set HOLDFAST_BIN to the holdfast program the tests shall use");
    this.program = program;
    this.env = {
      HOLDFAST_HOME: this.dir,
      // A test speaks as an agent and as a human from one process: the host looks no further up than here.
      HOLDFAST_TEST_TOP: String(process.pid),
      HOME: this.dir,
      PATH: "/usr/local/bin:/usr/bin:/bin",
      SHELL: "/bin/bash",
      TERM: "xterm-256color",
      LANG: "C.UTF-8",
      PS1: "$ ",
    };
  }

  /** `within`: a command in front of each, which says where they run. Such a home does not listen for HTTP: nothing here could reach it. */
  static async open(within: readonly string[] = [], env: Record<string, string> = {}): Promise<Home> {
    const home = new Home(within);
    Object.assign(home.env, env);
    try {
      await home.start();
    } catch (error) {
      await home.close();
      throw error;
    }
    return home;
  }

  private async start(): Promise<void> {
    // A human is made at a terminal: `script` is one.
    await run("script", ["-qec", [...this.within, this.program, "actor", "new", HUMAN].join(" "), "/dev/null"], { env: this.env, cwd: this.dir });
    if (this.within.length > 0) return;
    // Known beforehand: the next host, after a crash, must listen there too.
    await this.as(HUMAN, "host", "start", "--http", `127.0.0.1:${await freePort()}`);
    const address = new URL((await this.login()).url).origin;
    this.url = address;
    // A program has the page it was built with. Where that is not the one built last, a door shows the newer one.
    const built = readFileSync(new URL("../../build/index.html", import.meta.url), "utf8");
    if ((await (await fetch(address)).text()) !== built) {
      if (process.env["HOLDFAST_WEB"] === "host") throw new Error("the program has not the page in web/build: run cargo xtask web-build, and build it again");
      const door = await open(0, address);
      this.url = door.url;
      this.shut = door.shut;
    }
  }

  /** Runs the program as somebody, to its end. */
  async as(actor: string, ...args: string[]): Promise<string> {
    const [program = "", ...all] = [...this.within, this.program, "--as", actor, ...args];
    const { stdout } = await run(program, all, { env: this.env, cwd: this.dir });
    return stdout;
  }

  /** The same, its answer read as JSON. */
  async json<T = Record<string, unknown>>(actor: string, ...args: string[]): Promise<T> {
    return JSON.parse(await this.as(actor, "--json", ...args)) as T;
  }

  /** The human's. */
  hf(...args: string[]): Promise<string> {
    return this.as(HUMAN, ...args);
  }

  /** A shell in a session, its prompt `$ `. */
  async shell(name: string, actor = HUMAN, size = "80x24"): Promise<void> {
    await this.as(actor, "new", "-d", "-n", name, "--size", size, "--", "/bin/bash", "--norc", "--noprofile");
  }

  /** An address that logs the human in, once. */
  login(actor = HUMAN): Promise<{ url: string }> {
    return this.json<{ url: string }>(actor, "web", "--no-open");
  }

  /** That address, at the page that is tested. */
  async entrance(actor = HUMAN): Promise<string> {
    return `${this.url}/#${new URL((await this.login(actor)).url).hash.slice(1)}`;
  }

  /** The rows of a session's screen, as the host has them. */
  async screen(name: string): Promise<string[]> {
    const { rows } = await this.json<{ rows: string[] }>(HUMAN, "screen", name);
    return rows.map((row) => row.trimEnd());
  }

  /** Ends the host at once, as a crash would. */
  async killHost(): Promise<void> {
    const { pid } = await this.json<{ pid: number }>(HUMAN, "host", "status");
    process.kill(pid, "SIGKILL");
    await until("the end of the host", () => !readdirSync("/proc").includes(String(pid)) || stateOf(pid) === "Z");
  }

  async close(): Promise<void> {
    this.shut();
    await this.hf("end", "--all", "--grace", "0").catch(() => {});
    await this.hf("host", "stop").catch(() => {});
    const left = await until("the end of all processes", () => this.processes().length === 0).catch(() => this.processes());
    if (Array.isArray(left)) {
      for (const pid of left) process.kill(pid, "SIGKILL");
      throw new Error(`processes were left over: ${left.join(" ")}`);
    }
    rmSync(this.dir, { recursive: true, force: true });
  }

  private processes(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => ["environ", "cmdline"].some((file) => read(`/proc/${pid}/${file}`).includes(this.dir)))
      .map(Number);
  }
}

function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((found) =>
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => found(port));
    }),
  );
}

function stateOf(pid: number): string | undefined {
  return read(`/proc/${pid}/stat`).split(") ")[1]?.[0];
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
