// Files of flows by their digests: flows go on with the one they began with, whatever the worker's own says by now.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { told } from "./book.js";
import { FLOWS, type Flow } from "./replay.js";

/** How many digits of a digest people are shown. */
const SHOWN = 12;

/** Asks the flow service. */
export interface Asks {
  ask<T>(what: string, params: object): Promise<T>;
}

/** The file that a flow goes on with does not load, or has no such flow. */
export class Unloadable extends Error {
  override readonly name = "Unloadable";
}

/** See the module. */
export class Shelf {
  readonly #flows: ReadonlyMap<string, Flow>;
  readonly #file: string | undefined;
  readonly #older = new Map<string, ReadonlyMap<string, Flow>>();
  /** What the worker's own file says; nothing: it is not to be kept. */
  #text: string | undefined;
  #own = "";

  constructor(flows: ReadonlyMap<string, Flow>, file: string | undefined) {
    this.#flows = flows;
    this.#file = file;
    if (file !== undefined && existsSync(file)) this.#text = readFileSync(file, "utf8");
  }

  /** The service has the file already, under this digest. */
  isKept(code: string): void {
    this.#own = code;
    this.#text = undefined;
  }

  /** Has the service keep the worker's own file: its digest, or nothing where it has none. */
  async register(service: Asks): Promise<string> {
    if (this.#file === undefined || this.#text === undefined) return this.#own;
    const kept = await service.ask<{ code: string }>("keep", { text: this.#text, file: basename(this.#file) });
    return (this.#own = kept.code);
  }

  /** The function that decides about a flow of this name and code. */
  async run(service: Asks, name: string, code: string): Promise<Flow> {
    const isOwn = this.#file === undefined || code === "" || code === this.#own;
    const run = (isOwn ? this.#flows : await this.#old(service, this.#file as string, code)).get(name);
    if (!run) throw new Unloadable(`the file that it began with (digest ${code.slice(0, SHOWN)}) has no flow ${name}`);
    return run;
  }

  async #old(service: Asks, file: string, code: string): Promise<ReadonlyMap<string, Flow>> {
    const known = this.#older.get(code);
    if (known) return known;
    try {
      const found = await load(service, file, code);
      this.#older.set(code, found);
      return found;
    } catch (error) {
      if ((error as { code?: unknown }).code === "disconnected") throw error;
      throw new Unloadable(`the file that it began with (digest ${code.slice(0, SHOWN)}) does not load: ${told(error)}`);
    }
  }
}

/** The flows of a file that was kept under this digest. */
export async function load(service: Asks, file: string, code: string): Promise<ReadonlyMap<string, Flow>> {
  const { text } = await service.ask<{ text: string }>("code", { code });
  // Beside where it lay, so that what it imports is found; that is what is there now: only the file itself was kept.
  const beside = join(dirname(file), `.${basename(file, extname(file))}-${code.slice(0, SHOWN)}-${process.pid}${extname(file)}`);
  const own = new Map(FLOWS);
  FLOWS.clear();
  try {
    writeFileSync(beside, text, { mode: 0o600 });
    await import(pathToFileURL(beside).href);
    return new Map(FLOWS);
  } finally {
    rmSync(beside, { force: true });
    FLOWS.clear();
    for (const [name, run] of own) FLOWS.set(name, run);
  }
}
