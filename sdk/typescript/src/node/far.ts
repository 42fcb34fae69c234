// Machines elsewhere: the program `holdfast` joins a socket of this machine with a host there, by ssh or through a relay.

import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { disconnected, HoldfastError } from "../errors.js";
import type { Dialer, Prover, Receiver, Transport } from "../transport.js";
import type { Home } from "./home.js";
import type { Identity } from "./identity.js";
import { mustBeOurs } from "./trust.js";
import { carry, open } from "./unix.js";

/** How long ssh may take to get in. */
const JOIN_MS = 60_000;

export interface FarOptions {
  home: Home;
  identity: Identity;
  program: string;
  /** What `holdfast hosts` calls the machine. */
  host: string;
  env: NodeJS.ProcessEnv;
}

/** The way to the host of another machine, under the name that the actor has there. */
export class FarWay implements Dialer {
  readonly where: string;
  private readonly options: FarOptions;
  private joined: Promise<string> | undefined;
  private child: ChildProcess | undefined;
  private there: Prover;
  private wasThere = false;
  private isClosed = false;

  constructor(options: FarOptions) {
    this.options = options;
    this.where = options.host;
    this.there = options.identity;
  }

  get prover(): Prover {
    return { identify: (challenge) => this.there.identify(challenge) };
  }

  async dial(receiver: Receiver): Promise<Transport> {
    this.joined ??= this.join();
    let path: string;
    try {
      path = await this.joined;
    } catch (error) {
      this.joined = undefined;
      throw error;
    }
    const socket = await open(path);
    if (socket instanceof Error) {
      this.joined = undefined;
      throw disconnected(`the way to ${this.where} is closed`, socket);
    }
    this.wasThere = true;
    return carry(socket, receiver);
  }

  /** Lets the way go. */
  close(): void {
    this.isClosed = true;
    this.child?.stdin?.end();
  }

  private async join(): Promise<string> {
    const { home, identity, program, host, env } = this.options;
    mustBeOurs(home.run);
    mkdirSync(home.run, { recursive: true, mode: 0o700 });
    const path = join(home.run, `far-${randomBytes(4).toString("hex")}.sock`);
    const words = ["--as", identity.actor.handle, "--json", "connect", host, "--socket", path, "--while-stdin"];
    // It ends with its standard input, and so with this process however that ends.
    const child = spawn(program, words, { env, stdio: ["pipe", "pipe", "pipe"] });
    this.child = child;
    // A process that waits for nothing else may end.
    child.unref();
    for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as unknown as { unref?: () => void }).unref?.();
    child.stdin.on("error", () => undefined);
    let told = "";
    child.stderr.on("data", (text: Buffer) => (told += text.toString()));
    const line = await new Promise<string>((resolve) => {
      // Holds the process while somebody waits for this.
      const late = setTimeout(() => child.kill(), JOIN_MS);
      const done = (text: string) => {
        clearTimeout(late);
        resolve(text);
      };
      createInterface({ input: child.stdout }).once("line", done);
      child.once("error", (error) => ((told = error.message), done("")));
      child.once("close", () => done(""));
    });
    if (this.isClosed) child.stdin.end();
    if (line === "") throw this.failed(told);
    this.there = identity.called((JSON.parse(line) as { actor: { handle: string } }).actor.handle);
    return path;
  }

  private failed(told: string): HoldfastError {
    let message = told.trim() || "it did not answer in time";
    let hint = "";
    try {
      const { error } = JSON.parse(told) as { error: { message: string; hint?: string } };
      message = error.message;
      hint = error.hint ?? "";
    } catch {
      // What ssh said stands for itself.
    }
    // One that was there may come back.
    if (this.wasThere) return disconnected(`cannot reach ${this.where}: ${message}`);
    return new HoldfastError("unreachable", `cannot reach ${this.where}: ${message}`, { hint });
  }
}
