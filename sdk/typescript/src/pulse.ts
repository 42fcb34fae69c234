// Whether a network still carries anything. One that swallows everything breaks no connection: a phone in a tunnel, a router that
// forgot us. Where an answer is overdue and nothing was heard, the host is asked something small; where that is not answered
// either, the connection is over.

/** How much later than asked an answer may come before the host is asked. */
export const LATE_MS = 3_000;
/** How long it may take for that. */
const PULSE_WAIT_MS = 5_000;

export class Pulse {
  private heardAt = Date.now();
  private askedAt: number | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private firesAt = Number.POSITIVE_INFINITY;
  private readonly due: () => number | undefined;
  private readonly ask: () => void;
  private readonly dead: () => void;

  /** `due`: when the next answer should be there; none: no caller waits. */
  constructor(due: () => number | undefined, ask: () => void, dead: () => void) {
    this.due = due;
    this.ask = ask;
    this.dead = dead;
  }

  /** Something came. */
  heard(): void {
    this.heardAt = Date.now();
    this.askedAt = undefined;
  }

  /** An answer is waited for. */
  expect(due: number): void {
    if (due >= this.firesAt) return;
    clearTimeout(this.timer);
    this.firesAt = due;
    this.timer = setTimeout(() => this.look(), Math.max(0, due - Date.now()));
    // A process that has nothing else to do may end.
    if (typeof this.timer === "object") this.timer.unref?.();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.firesAt = Number.NEGATIVE_INFINITY;
  }

  private look(): void {
    this.firesAt = Number.POSITIVE_INFINITY;
    const [now, due] = [Date.now(), this.due()];
    if (due === undefined) return;
    // What answers others will answer this, too.
    const quietUntil = Math.max(due, this.heardAt + LATE_MS);
    if (quietUntil > now) return this.expect(quietUntil);
    if (this.askedAt === undefined) {
      this.askedAt = now;
      this.ask();
    } else if (now - this.askedAt >= PULSE_WAIT_MS) {
      return this.dead();
    }
    this.expect(this.askedAt + PULSE_WAIT_MS);
  }
}
