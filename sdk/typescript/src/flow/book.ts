// What is known of one flow while its function is replayed: what was asked for, what came of it, and who waits for it.
//
// Outcomes are let out one by one, in the order of the history, and only while the function stands still. So what it does between two
// of them is the same in each replay, however much of the history a worker got at once.

/** What a flow asks for, as the service takes it. */
export type Command = { do: string; name: string } & Record<string, unknown>;

/** An event of a history. */
export type HistoryEvent = { event: string; at_ms?: number } & Record<string, unknown>;

export interface Outcome {
  /** Which one it was, counted as the code got to know them. */
  order: number;
  ok: boolean;
  value: unknown;
}

type Told = { ok: boolean; value: unknown };
type Local = { n: number; told: Promise<Told> | Told; command: Command | undefined };
type Waiter = { numbers: number[]; wake: () => void };

/** As the history has it: what is left at its default is not written. */
const UNSAID: Record<string, unknown> = { retries: 0, backoff_ms: 0, on_lost: "ask" };
/** What is known as soon as it is asked for: the code does not wait for the service. */
const AT_ONCE = ["step", "undo"];
/** The number of a step that is never done: of code that must not go on. */
const NEVER = -1;

export class Book {
  readonly asked = new Map<number, Command>();
  readonly outcomes = new Map<number, Outcome>();
  /** Commands that the history does not have yet. */
  fresh: Array<[number, Command]> = [];
  /** The number of the next command. */
  next = 0;
  /** Why the function cannot go on. */
  blocked: string | undefined;
  /** What the next history begins with, once the function has asked for one. */
  continues: { input: unknown } | undefined;
  /** Whether the function may ask now: only while its worker decides. */
  isOpen = false;
  private order = 0;
  private readonly waiters = new Set<Waiter>();
  private locals: Local[] = [];
  /** What came of everything that was known at once. */
  private readonly recorded = new Map<number, Told>();
  private readonly queue: Array<{ n: number } & Told> = [];

  /** Takes in an event of the history. */
  feed(event: HistoryEvent): void {
    const n = event["n"] as number;
    if (event.event === "asked") {
      const command = event["command"] as Command;
      // What undoes something is the engine's own, behind everything that the code asked for.
      if (command["undoes"] === undefined) this.asked.set(n, command);
    } else if (event.event === "done") {
      const done = { n, ok: event["ok"] as boolean, value: event["value"] };
      if (AT_ONCE.includes(this.asked.get(n)?.do ?? "")) this.recorded.set(n, done);
      else this.queue.push(done);
    }
  }

  /** Asks for something; gives its number. `local` is computed here and recorded with the command. */
  ask(asked: Command, local?: () => unknown): number {
    if (!this.isOpen) {
      this.blocked ??= `${asked.name} was asked for while the flow waited: a flow awaits only what ctx gives`;
      return NEVER;
    }
    if (this.continues) {
      this.blocked ??= `${asked.name} was asked for behind ctx.continueAsNew(…); write: return ctx.continueAsNew(…)`;
      return NEVER;
    }
    const command = tidied(asked);
    const n = this.next++;
    const was = this.asked.get(n);
    const recorded = this.recorded.get(n);
    if (was !== undefined) {
      if (!this.isSame(n, was, command)) return NEVER;
      if (recorded) this.locals.push({ n, told: recorded, command: undefined });
      return n;
    }
    if (local) this.locals.push({ n, told: this.compute(command.name, local), command });
    else if (command.do === "undo") this.locals.push({ n, told: { ok: true, value: null }, command: undefined });
    this.asked.set(n, command);
    this.fresh.push([n, command]);
    return n;
  }

  /** The function goes on with a new history, and asks for nothing more in this one. */
  continueAsNew(input: unknown): void {
    this.continues ??= { input };
  }

  /** Records what is known at once, and does not wait for it; gives what was recorded. */
  mark(name: string, value: number): number {
    const was = this.asked.has(this.next);
    const n = this.ask({ do: "step", name, ...(was ? {} : { ok: true, value }) });
    if (n === NEVER) return value;
    this.locals = this.locals.filter((local) => local.n !== n);
    const found = was ? this.recorded.get(n)?.value : value;
    this.outcomes.set(n, { order: this.order++, ok: true, value: found });
    return found as number;
  }

  private isSame(n: number, was: Command, wanted: Command): boolean {
    const bare = was.do === "step" ? { do: was.do, name: was.name } : was;
    const [had, has] = [canonical(bare), canonical(wanted)];
    if (had !== has) this.blocked ??= `step ${n + 1}: the history has ${had}, the code asks for ${has}`;
    return had === has;
  }

  private compute(name: string, local: () => unknown): Promise<Told> {
    // It runs here, at least once; what it gave is recorded, and a replay does not run it again.
    const computed = (async () => {
      const value = await local();
      return { ok: true, value: value === undefined ? null : inJson(value) };
    })();
    return computed.catch((error: unknown) => {
      if (error instanceof Failed) return { ok: false, value: error.message };
      this.blocked ??= `${name}: ${told(error)}`;
      return { ok: false, value: null };
    });
  }

  /** Wakes once the first of these is known; at once where one is. */
  when(numbers: number[], wake: () => void): void {
    if (numbers.some((n) => this.outcomes.has(n))) return wake();
    this.waiters.add({ numbers, wake });
  }

  /** Whether the function waits for anything that can come. */
  get isWaiting(): boolean {
    return this.waiters.size > 0;
  }

  /** Lets out the next outcome: what was computed here before what the history has. Whether there was one. */
  async release(): Promise<boolean> {
    const local = this.locals.shift();
    if (local) {
      this.know(local.n, await this.settle(local));
      return true;
    }
    const done = this.queue.shift();
    if (done) this.know(done.n, done);
    return done !== undefined;
  }

  private async settle(local: Local): Promise<Told> {
    const found = await local.told;
    if (local.command) Object.assign(local.command, found);
    return found;
  }

  /** Everything that the function left to be computed is computed: it is part of what was asked for. */
  async finish(): Promise<void> {
    for (const local of this.locals) await this.settle(local);
  }

  private know(n: number, { ok, value }: Told): void {
    this.outcomes.set(n, { order: this.order++, ok, value });
    for (const waiter of this.waiters) {
      if (waiter.numbers.includes(n)) {
        this.waiters.delete(waiter);
        waiter.wake();
      }
    }
  }
}

/** A step failed for good, or the flow itself says that it failed. What was done is undone, the last first. */
export class Failed extends Error {
  override readonly name = "Failed";
  /** What is known of it: of a run its `state`, `exit_code`, `output`, `session`. */
  readonly value: unknown;

  constructor(what: string, value?: unknown) {
    super(what);
    this.value = value;
  }
}

/** What a value is once it was recorded; throws where it cannot be. */
export function inJson(value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`a ${typeof value} is not JSON`);
  return JSON.parse(text) as unknown;
}

/** An error in one line. */
export function told(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function tidied(command: Command): Command {
  const isSaid = ([key, value]: [string, unknown]) =>
    value !== undefined && value !== UNSAID[key] && (key === "input" || !(Array.isArray(value) && value.length === 0));
  return Object.fromEntries(Object.entries(command).filter(isSaid)) as Command;
}

/** JSON in one spelling, whatever the order of the keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, one]) => `${JSON.stringify(key)}: ${canonical(one)}`).join(", ")}}`;
}
