// A flow's function, run against its history: history in, commands out.

import { Book, Failed, inJson, told, type Command, type HistoryEvent } from "./book.js";
import { Context } from "./context.js";

/** A flow: an async function in which nothing but `ctx` is awaited. */
export type Flow<I = never, O = unknown> = (ctx: Context, input: I) => PromiseLike<O>;

/** A worker's answer to a history. */
export type Decision = { commands: Array<[number, Command]> } | { blocked: string };

/** The flows of the files that were loaded, by name. */
export const FLOWS = new Map<string, Flow>();

/** Makes an async function a flow, under its own name or another one. */
export function flow<I, O>(run: Flow<I, O>): Flow<I, O>;
export function flow<I, O>(name: string, run: Flow<I, O>): Flow<I, O>;
export function flow<I, O>(first: string | Flow<I, O>, second?: Flow<I, O>): Flow<I, O> {
  const [name, run] = typeof first === "string" ? [first, second] : [first.name, first];
  if (!name || !run) throw new TypeError("a flow needs a name: flow(async function PizzaOrder(ctx, pizza) { … })");
  FLOWS.set(name, run as Flow);
  return run;
}

/** One flow's function, as far as it has come. */
export class Replay {
  readonly #book = new Book();
  readonly #context: Context;
  readonly #run: Flow;
  #input: { value: unknown } | undefined;
  #isStarted = false;
  #end: { ok: boolean; value: unknown } | undefined;

  constructor(id: string, run: Flow) {
    this.#context = new Context(id, this.#book);
    this.#run = run;
  }

  /** Takes in what is new in the history. */
  feed(events: readonly HistoryEvent[]): void {
    for (const event of events) {
      this.#book.feed(event);
      if (event.event === "started") this.#input = { value: event["input"] };
    }
  }

  /** Runs the function as far as it goes: its new commands, or why it cannot go on. */
  async decide(): Promise<Decision> {
    const book = this.#book;
    if (!this.#input) return { blocked: "the history has no beginning" };
    book.fresh = [];
    book.isOpen = true;
    if (!this.#isStarted) this.#start(this.#input.value);
    do {
      // Everything that the function can do without an outcome is done before this comes back.
      await new Promise((resolve) => setImmediate(resolve));
    } while (!book.blocked && !this.#end && !book.continues && (await book.release()));
    await book.finish();
    book.isOpen = false;
    if (!book.blocked && !this.#end && !book.continues && !book.isWaiting) {
      book.blocked = "a flow awaits only what ctx gives; put everything else into ctx.step";
    }
    if (!book.blocked && (book.continues || this.#end)) this.#append(this.#end);
    return book.blocked === undefined ? { commands: book.fresh } : { blocked: book.blocked };
  }

  #start(input: unknown): void {
    this.#isStarted = true;
    const ended = (async () => this.#run(this.#context, input as never))();
    ended.then(
      (value: unknown) => (this.#end = { ok: true, value }),
      (error: unknown) => {
        if (error instanceof Failed) this.#end = { ok: false, value: error.message };
        else this.#book.blocked ??= told(error);
      },
    );
  }

  #append(end: { ok: boolean; value: unknown } | undefined): void {
    const book = this.#book;
    const left = [...book.asked.keys()].filter((n) => n >= book.next);
    if (left.length > 0) {
      book.blocked = `the code ends before step ${Math.min(...left) + 1} of the history`;
      return;
    }
    if (book.continues || !end) {
      const input = book.continues?.input ?? null;
      book.fresh.push([book.next, { do: "continue", input } as unknown as Command]);
      return;
    }
    try {
      const value = end.value === undefined ? null : inJson(end.value);
      book.fresh.push([book.next, { do: "end", ok: end.ok, value } as unknown as Command]);
    } catch (error) {
      book.blocked = `what the flow returns is not JSON: ${told(error)}`;
    }
  }
}
