// Small things about time: waiting that can be cut short, and how long to wait before trying again.

/** Waits; ends early, with the signal's reason, when it is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A promise that gives up when the signal is aborted; what was begun goes on unseen. */
export function orAbort<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      promise.catch(() => {});
      return reject(signal.reason);
    }
    const stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** A signal that is aborted when any of these is. Let go of it, or it stays on the list of long-lived ones. */
export function anySignal(...signals: Array<AbortSignal | undefined>): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const given = signals.filter((signal) => signal !== undefined);
  const stop = (event: globalThis.Event) => controller.abort((event.target as AbortSignal).reason);
  for (const signal of given) {
    if (signal.aborted) controller.abort(signal.reason);
    else signal.addEventListener("abort", stop, { once: true });
  }
  const release = () => given.forEach((signal) => signal.removeEventListener("abort", stop));
  return { signal: controller.signal, release };
}

/** Delays that grow and are bounded, each drawn at random: a thousand clients must not come back in step. */
export class Backoff {
  private next: number;
  private readonly firstMs: number;
  private readonly maxMs: number;

  constructor(firstMs = 50, maxMs = 2_000) {
    this.firstMs = firstMs;
    this.maxMs = maxMs;
    this.next = firstMs;
  }

  /** The next delay: between half of its bound and all of it. */
  delay(): number {
    const bound = this.next;
    this.next = Math.min(this.next * 2, this.maxMs);
    return bound / 2 + (Math.random() * bound) / 2;
  }

  /** It worked. */
  reset(): void {
    this.next = this.firstMs;
  }
}
