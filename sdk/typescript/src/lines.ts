// Who runs something in a session waits for those before, in order: one shell runs one command at a time.

import { HoldfastError } from "./errors.js";
import { orAbort } from "./signals.js";

export class Lines {
  /** By session: the end of the last in line. */
  private readonly last = new Map<string, Promise<void>>();

  /** Does some work when all before it in this line is done; fails with `timeout` where that takes too long. */
  async next<T>(line: string, work: () => Promise<T>, deadline: number, signal?: AbortSignal): Promise<T> {
    const before = this.last.get(line) ?? Promise.resolve();
    let leave!: () => void;
    const mine = new Promise<void>((resolve) => (leave = resolve));
    const end = before.then(() => mine);
    this.last.set(line, end);
    try {
      await orAbort(inTime(before, deadline), signal);
      return await work();
    } finally {
      leave();
      if (this.last.get(line) === end) this.last.delete(line);
    }
  }
}

async function inTime(before: Promise<void>, deadline: number): Promise<void> {
  if (deadline === Number.POSITIVE_INFINITY) return before;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const hint = "nothing was run: others ran before it";
    timer = setTimeout(() => reject(new HoldfastError("timeout", "timed out waiting for earlier runs", { hint })), deadline - Date.now());
  });
  try {
    await Promise.race([before, late]);
  } finally {
    clearTimeout(timer);
  }
}
