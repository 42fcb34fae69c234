// The turn: the exclusive right to write into a session now.

import type { Attachment } from "./attach.js";
import type { Answer, CallOptions, Client, OperationName } from "./client.js";
import { HoldfastError } from "./errors.js";
import type { Actor, SeizeAnswer, TurnAnswer, TurnView } from "./types.js";

/** Through which attached terminal it is done: the turn is then that terminal's. None: by single requests. */
export interface TurnOptions extends CallOptions {
  through?: Attachment;
}

export class Turn {
  private readonly client: Client;
  private readonly session: string;

  constructor(client: Client, session: string) {
    this.client = client;
    this.session = session;
  }

  /** Gets who has the turn, and who waits for it. */
  get(options: CallOptions = {}): Promise<TurnView> {
    return this.client.call("turn.get", { session: this.session }, options);
  }

  /** Takes the turn if it is free. */
  take(options: TurnOptions = {}): Promise<TurnAnswer> {
    return this.act("turn.take", {}, options);
  }

  /** Requests the turn: you get it when its holder releases it or is idle. */
  request(options: TurnOptions = {}): Promise<TurnAnswer> {
    return this.act("turn.request", {}, options);
  }

  /** Withdraws the request for the turn. */
  withdraw(options: TurnOptions = {}): Promise<TurnAnswer> {
    return this.act("turn.withdraw", {}, options);
  }

  /** Releases the turn. */
  release(options: TurnOptions = {}): Promise<TurnAnswer> {
    return this.act("turn.release", {}, options);
  }

  /** Gives the turn to an actor, or to the actor with a handle. */
  async give(to: Actor | string, options: TurnOptions = {}): Promise<TurnAnswer> {
    const { signal } = options;
    return this.act("turn.give", { to: typeof to === "string" ? await this.actor(to, signal ? { signal } : {}) : to }, options);
  }

  /** Seizes the turn, whatever its holder does; `freeze` also stops the process tree. */
  seize(reason: string, options: TurnOptions & { freeze?: boolean } = {}): Promise<SeizeAnswer> {
    const { freeze = false, ...rest } = options;
    return this.act("turn.seize", { reason, freeze }, rest);
  }

  /** Resumes a frozen process tree. */
  thaw(options: TurnOptions = {}): Promise<TurnAnswer> {
    return this.act("turn.thaw", {}, options);
  }

  /** Only the connection over which a terminal is attached may speak for it. */
  private async act<O extends OperationName>(operation: O, more: object, options: TurnOptions): Promise<Answer<O>> {
    const { signal, through } = options;
    const params = { session: this.session, ...more };
    const call = signal ? { signal } : {};
    return (await (through ?? this.client).raw(operation, params, call)) as Answer<O>;
  }

  private async actor(handle: string, options: CallOptions): Promise<Actor> {
    const all = await this.client.call("actor.list", {}, options);
    const known = all.find((view) => view.actor.handle === handle);
    if (!known) throw new HoldfastError("no_such_actor", `the host does not know the actor ${handle}`, { hint: "see `actor.list`" });
    return known.actor;
  }
}
