// A run: one command with a beginning, an end and a status.

import type { CallOptions, Client } from "./client.js";
import { HoldfastError } from "./errors.js";
import { chunks, gather, type Chunk } from "./output.js";
import type { RunAnswer, TraceView } from "./types.js";

/** How long one question waits for an end; it is asked again. */
export const WAIT_MS = 20_000;

/** How long to wait. */
export interface WaitOptions extends CallOptions {
  /** Give up after this long, with the code `timeout`. This stops nothing. */
  timeoutMs?: number;
}

/** Milliseconds that are left until a deadline, at most `WAIT_MS`; fails when it has passed. */
export function remaining(deadline: number, what: string): number {
  const left = deadline - Date.now();
  if (left <= 0) throw new HoldfastError("timeout", `timed out waiting for ${what}`, { hint: "wait longer, or check its state" });
  return Math.min(left, WAIT_MS);
}

export function deadlineOf(timeoutMs: number | undefined): number {
  return timeoutMs === undefined ? Number.POSITIVE_INFINITY : Date.now() + timeoutMs;
}

export class Run {
  /** Its id, for all time. */
  readonly id: string;
  /** As it was when it was last asked for. */
  view: RunAnswer;
  private readonly client: Client;

  constructor(client: Client, view: RunAnswer) {
    this.client = client;
    this.view = view;
    this.id = view.id;
  }

  /** True if the run is finished. */
  get isOver(): boolean {
    return this.view.state !== "starting" && this.view.state !== "running";
  }

  /** Its status where it is known. */
  get exitCode(): number | undefined {
    return this.view.exit_code ?? undefined;
  }

  /** Gets its current state. */
  async get(options: CallOptions = {}): Promise<RunAnswer> {
    this.view = await this.client.call("run.get", { run: this.id }, options);
    return this.view;
  }

  /** Everything that is known of it: contract, decision, attempts, effects, outcome. */
  async trace(options: CallOptions = {}): Promise<TraceView> {
    return this.client.call("run.trace", { run: this.id }, options);
  }

  /** Waits for its end. A timeout stops nothing. */
  async wait(options: WaitOptions = {}): Promise<RunAnswer> {
    const { timeoutMs, ...call } = options;
    const deadline = deadlineOf(timeoutMs);
    while (!this.isOver) {
      const wait_ms = Math.ceil(remaining(deadline, `the end of ${this.id}`));
      this.view = await this.client.call("run.get", { run: this.id, wait_ms }, call);
    }
    return this.view;
  }

  /** Waits for its end until a moment, and tells what it prints meanwhile. */
  async told(options: CallOptions & { onOutput?: (text: string) => void }, deadline: number): Promise<RunAnswer> {
    const { onOutput, signal } = options;
    if (onOutput) await this.tell(onOutput, deadline, signal);
    if (this.isOver) return this.view;
    const call = signal ? { signal } : {};
    return this.wait(deadline === Number.POSITIVE_INFINITY ? call : { ...call, timeoutMs: Math.max(deadline - Date.now(), 1) });
  }

  private async tell(onOutput: (text: string) => void, deadline: number, signal?: AbortSignal): Promise<void> {
    const decoder = new TextDecoder();
    let from: number | undefined;
    for (;;) {
      const wait_ms = Math.ceil(Math.min(Math.max(deadline - Date.now(), 0), WAIT_MS));
      const params = { run: this.id, wait_ms, ...(from === undefined ? {} : { from }) };
      const piece = await this.client.call("run.output", params, signal ? { signal } : {});
      const text = decoder.decode(piece.bytes, { stream: !piece.end });
      if (text !== "") onOutput(text);
      if (piece.end || Date.now() >= deadline) return;
      from = piece.to;
    }
  }

  /** Its output until it is over: `for await (const chunk of run)`. */
  [Symbol.asyncIterator](): AsyncGenerator<Chunk, void, void> {
    return this.follow();
  }

  /** Its output so far, or all of it once it is over, as bytes. */
  output(options: CallOptions & { from?: number } = {}): Promise<Uint8Array> {
    return gather(this.read(options, (piece) => piece.end || piece.bytes.length === 0));
  }

  /** Its output until it is over. */
  follow(options: CallOptions & { from?: number } = {}): AsyncGenerator<Chunk, void, void> {
    return this.read(options, (piece) => piece.end, WAIT_MS);
  }

  /** Interrupts it, and waits until it is over or `timeoutMs` has passed. */
  async cancel(options: WaitOptions = {}): Promise<RunAnswer> {
    const { timeoutMs = WAIT_MS, ...call } = options;
    this.view = await this.client.call("run.cancel", { run: this.id, wait_ms: timeoutMs }, call);
    return this.view;
  }

  private read(options: CallOptions & { from?: number }, isOver: Parameters<typeof chunks>[2], wait_ms = 0) {
    const { from: start, ...call } = options;
    return chunks(
      start,
      (from) => this.client.call("run.output", { run: this.id, wait_ms, ...(from === undefined ? {} : { from }) }, call),
      isOver,
    );
  }
}
