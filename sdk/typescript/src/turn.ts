// The turn: the exclusive right to write into a session now.

import type { CallOptions, Client } from "./client.js";
import { HoldfastError } from "./errors.js";
import type { Actor, SeizeAnswer, TurnAnswer, TurnView } from "./types.js";

/** Through which attached client it is done; none: by single requests. */
export interface TurnOptions extends CallOptions {
  client?: number;
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
    return this.client.call("turn.take", ...this.params(options));
  }

  /** Requests the turn: you get it when its holder releases it or is idle. */
  request(options: TurnOptions = {}): Promise<TurnAnswer> {
    return this.client.call("turn.request", ...this.params(options));
  }

  /** Withdraws the request for the turn. */
  withdraw(options: TurnOptions = {}): Promise<TurnAnswer> {
    return this.client.call("turn.withdraw", ...this.params(options));
  }

  /** Releases the turn. */
  release(options: TurnOptions = {}): Promise<TurnAnswer> {
    return this.client.call("turn.release", ...this.params(options));
  }

  /** Gives the turn to an actor, or to the actor with a handle. */
  async give(to: Actor | string, options: TurnOptions = {}): Promise<TurnAnswer> {
    const [params, call] = this.params(options);
    return this.client.call("turn.give", { ...params, to: typeof to === "string" ? await this.actor(to, call) : to }, call);
  }

  /** Seizes the turn, whatever its holder does; `freeze` also stops the process tree. */
  seize(reason: string, options: TurnOptions & { freeze?: boolean } = {}): Promise<SeizeAnswer> {
    const { freeze = false, ...rest } = options;
    const [params, call] = this.params(rest);
    return this.client.call("turn.seize", { ...params, reason, freeze }, call);
  }

  /** Resumes a frozen process tree. */
  thaw(options: TurnOptions = {}): Promise<TurnAnswer> {
    return this.client.call("turn.thaw", ...this.params(options));
  }

  private params(options: TurnOptions): [{ session: string; client?: number }, CallOptions] {
    const { signal, client } = options;
    return [{ session: this.session, ...(client === undefined ? {} : { client }) }, signal ? { signal } : {}];
  }

  private async actor(handle: string, options: CallOptions): Promise<Actor> {
    const all = await this.client.call("actor.list", {}, options);
    const known = all.find((view) => view.actor.handle === handle);
    if (!known) throw new HoldfastError("no_such_actor", `the host does not know the actor ${handle}`, { hint: "see `actor.list`" });
    return known.actor;
  }
}
