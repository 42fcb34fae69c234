// A terminal that shows a session and types into it, through the host alone.
//
// It is painted once, and then gets the output from the painted offset on: each byte once and in order, also across hosts that die
// and connections that break. What is gone is told as a gap, and the terminal is painted again. It has a connection of its own, so
// that a large paint holds nobody else up, and the host takes the connection's end for the terminal's.
//
// The host answers the session's queries in its place: the terminal never sees them.

import type { CallOptions } from "./client.js";
import type { Answered, Connection } from "./connection.js";
import { HoldfastError, disconnected, isBroken } from "./errors.js";
import { Emitter } from "./emitter.js";
import { QueryFilter, withoutReports } from "./filter.js";
import { NO_BYTES } from "./frame.js";
import type { Link } from "./link.js";
import { Backoff, orAbort, pause } from "./signals.js";
import { Typist, type Way } from "./typist.js";
import type { AttachAnswer, Exit, Gap, HostEvents, Notice, Painted, SessionView } from "./types.js";

/** A keeper is reached within some milliseconds. */
const UNREACHED_MS = 20;
/** How long a host may take to hear that we leave. */
const LEAVE_WAIT_MS = 1_000;

export interface AttachOptions {
  /** The terminal's size: `80x24`, or its parts. */
  size: string | { cols: number; rows: number };
  /** The session takes this terminal's size where it is alone there, and whenever it begins to write. */
  fit?: boolean;
  /** It only shows. */
  readOnly?: boolean;
  /** What others see as its name. */
  tty?: string;
  /** The first paint, and that of another size, have the lines above the screen, too. */
  history?: boolean;
  /** Ends it. */
  signal?: AbortSignal;
}

export interface Paint {
  /** Brings a terminal of this size, reset before, into the session's state. */
  bytes: Uint8Array;
  /** Output goes on from here. */
  offset: number;
  /** The session's size, which the terminal must have while it is written. */
  size: string;
  /** Why. */
  why: "attached" | "gap" | "size" | "asked";
}

export interface AttachEvents {
  /** Reset the terminal, give it this size, write the bytes. If a listener returns a promise, the client waits for it. */
  paint: Paint;
  /** Write the bytes. If a listener returns a promise, the client waits for it before it reads more. */
  output: { offset: number; bytes: Uint8Array };
  /** Output that is no longer kept; a paint follows. */
  gap: Gap;
  /** Whether this terminal is the one that writes now, and the newest fence. */
  writes: { writes: boolean; fence: number };
  /** News for the operator. */
  notice: Notice;
  /** Catch the person's attention. */
  ring: { text: string };
  /** The session has another size; a paint follows. */
  size: { size: string };
  /** Whether the host is reached. */
  state: { state: "connected" | "reconnecting"; error?: unknown };
  /** The host refused the input; it is gone. */
  refused: HoldfastError;
  /** It is over. */
  detached: { why: "detached" | "ended" | "closed" | "refused"; exit?: Exit; error?: unknown };
}

const encoder = new TextEncoder();

export class Attachment extends Emitter<AttachEvents> {
  /** The session as it was when it was attached to. */
  view: SessionView | undefined;
  /** This client's number in the session. */
  client: number | undefined;
  /** It writes now. */
  writes = false;
  /** The newest fence it knows. */
  fence = 0;
  /** The session's size. */
  sessionSize = "";
  /** Everything before this offset was given to the terminal. */
  position = 0;
  /** Done once it is painted for the first time; fails where it cannot be attached. */
  readonly ready: Promise<void>;
  /** Done when it is over. */
  readonly over: Promise<void>;

  private readonly link: Link;
  private readonly session: string;
  private readonly options: AttachOptions;
  private size: string;
  private readonly closing = new AbortController();
  private readonly typist: Typist;
  /** Why what was typed last was refused. */
  private refusal: unknown;
  private isPainted = false;
  private isExpelled = false;
  /** A paint that is due, with the lines above the screen or without. */
  private wanted: Paint["why"] | undefined;
  private wantsHistory = false;
  private wake = () => {};
  /** The connection over which it is attached; what is said to the host goes there and nowhere else. */
  private connection: Connection | undefined;
  /** Done while it is attached. */
  private attached = deferred();
  /** What the host said before the answer that says who we are was read. */
  private early: [string, unknown][] | undefined;
  private filter = new QueryFilter();

  constructor(link: Link, session: string, options: AttachOptions) {
    super();
    this.link = link;
    this.session = session;
    this.options = options;
    this.size = sizeText(options.size);
    this.typist = new Typist(session, () => this.way());
    link.told = (method, params) => this.told(method, params);
    let ready!: () => void;
    let failed!: (error: unknown) => void;
    this.ready = new Promise((resolve, reject) => ([ready, failed] = [resolve, reject]));
    this.ready.catch(() => {});
    options.signal?.addEventListener("abort", () => void this.close(), { once: true });
    // A listener gets every event if it registers before the end of this turn of the event loop.
    this.over = Promise.resolve().then(() => this.live(ready, failed));
    if (options.signal?.aborted) void this.close();
  }

  /** Asks for an operation as this attached client, over the connection that alone may speak for it. */
  async raw(operation: string, params: object, options: CallOptions = {}): Promise<unknown> {
    const { connection, params: own } = await this.way();
    const asked = connection.request(operation, { ...params, ...own }, NO_BYTES);
    return (await orAbort(asked, options.signal ?? this.closing.signal)).result;
  }

  /** Types text or bytes behind what was typed before. Says whether they were typed; a refusal is also an event. */
  type(input: string | Uint8Array): Promise<boolean> {
    let bytes = typeof input === "string" ? encoder.encode(input) : input;
    // No person pressed those: they must not take the turn.
    if (!this.writes) bytes = withoutReports(bytes, true);
    if (bytes.length === 0 || this.options.readOnly || this.closing.signal.aborted) return Promise.resolve(false);
    return this.typist.send(bytes).then(
      () => true,
      (error: unknown) => this.refused(error),
    );
  }

  /** The terminal has another size. With `fit` the session takes it where this terminal writes. */
  resize(size: string | { cols: number; rows: number }): void {
    this.size = sizeText(size);
    const { client, session } = this;
    // No caller waits for it; after a broken connection the attach reports it.
    if (client !== undefined) this.ask("session.update", { session, client, size: this.size }).catch(() => {});
    if (this.options.fit && this.writes) void this.fit();
  }

  /** Gives the session this terminal's size; says whether it took it. A paint follows. */
  async fit(): Promise<boolean> {
    try {
      await this.ask("session.resize", { session: this.session, size: this.size });
      return true;
    } catch {
      return false;
    }
  }

  /** Paints again, with the lines above the screen if asked to. */
  repaint(options: { history?: boolean } = {}): void {
    this.wantsHistory ||= options.history ?? false;
    this.wanted ??= "asked";
    this.wake();
  }

  /** Opens another connection, for a network that changed without a word. Goes on where it stands. */
  reconnect(): void {
    this.link.drop();
  }

  /** Detaches. The session keeps running. */
  async close(): Promise<void> {
    if (this.closing.signal.aborted) return this.over;
    const { client, connection, session } = this;
    this.closing.abort(new HoldfastError("disconnected", "the terminal was detached"));
    if (client !== undefined && connection) {
      const left = connection.request("session.leave", { session, client }, NO_BYTES);
      // The end of the connection says it, too.
      await orAbort(left, AbortSignal.timeout(LEAVE_WAIT_MS)).catch(() => {});
    }
    this.link.close();
    return this.over;
  }

  private async live(ready: () => void, failed: (error: unknown) => void): Promise<void> {
    const backoff = new Backoff(50, this.link.retry.maxDelayMs);
    const { signal } = this.closing;
    let end: AttachEvents["detached"] | undefined;
    while (!end) {
      try {
        await this.attach();
        this.emit("state", { state: "connected" });
        backoff.reset();
        ready();
        end = await this.follow();
      } catch (error) {
        this.lose();
        if (signal.aborted) end = { why: this.isExpelled ? "detached" : "closed" };
        else if (!isPassing(error)) end = { why: isEnd(error) ? "ended" : "refused", error };
        else {
          if (this.client !== undefined) this.emit("state", { state: "reconnecting", error });
          await pause(backoff.delay(), signal).catch(() => {});
        }
        if (end) failed(error);
      }
    }
    if (!signal.aborted) {
      this.closing.abort(new HoldfastError("disconnected", "the terminal is detached"));
      this.link.close();
    }
    this.typist.fail(signal.reason);
    this.emit("detached", end);
  }

  /** Attaches, for the first time or anew after a broken connection. */
  private async attach(): Promise<void> {
    const { readOnly = false, tty = "", history = false, fit = false } = this.options;
    const { size, session } = this;
    this.early = [];
    this.connection = await this.link.connection(this.closing.signal);
    const attaching = await this.ask("session.attach", { session, size, read_only: readOnly, tty, remote: true });
    const answer = attaching.result as AttachAnswer;
    this.view = answer.session;
    this.client = answer.client;
    this.say(answer.writes, answer.fence);
    const { early } = this;
    this.early = undefined;
    for (const [method, params] of early ?? []) this.told(method, params);
    this.attached.resolve();
    if (size !== this.size) this.resize(this.size);
    // After a broken connection the terminal goes on where it stood: what it missed is still kept, or is a gap.
    if (this.isPainted) return;
    const isAlone = answer.session.clients.every(({ id }) => id === answer.client);
    const isFitted = fit && isAlone && !readOnly && answer.painted.size !== this.size && (await this.fit());
    this.wantsHistory = history;
    if (isFitted || history) await this.paint("attached");
    else await this.show(answer.painted, attaching.bytes, "attached");
  }

  /** The connection is over; it is attached no more. */
  private lose(): void {
    // While we let go, what says so is still on its way.
    if (!this.closing.signal.aborted) this.connection?.close();
    this.connection = undefined;
    this.attached.resolve();
    this.attached = deferred();
  }

  /** Follows the output until something ends it. */
  private async follow(): Promise<AttachEvents["detached"]> {
    const { signal } = this.closing;
    for (;;) {
      signal.throwIfAborted();
      if (this.wanted) {
        await this.paint(this.wanted);
        continue;
      }
      const over = await this.followOutput();
      if (over) return over;
    }
  }

  /** Passes output on until a paint is due, or it ends. */
  private async followOutput(): Promise<AttachEvents["detached"] | undefined> {
    const { signal } = this.closing;
    const output = this.connection?.follow(this.session, this.position);
    if (!output) throw disconnected("not attached");
    try {
      while (!this.wanted) {
        const woken = new Promise<void>((resolve) => (this.wake = resolve));
        const isReady = await orAbort(Promise.race([output.ready().then(() => true), woken]), signal);
        if (!isReady || this.wanted) continue;
        const { gap, end, size, bytes } = output.take();
        if (gap) {
          this.emit("gap", gap);
          this.wanted = "gap";
        } else if (size !== this.sessionSize) {
          this.wanted = "size";
          this.wantsHistory ||= this.options.history ?? false;
        } else {
          await this.pass(bytes);
          output.done(bytes.length);
          if (end) return await this.ended();
        }
      }
      return undefined;
    } finally {
      output.stop();
    }
  }

  /** How it ended; nothing where it lives, and a new host has not reached its keeper yet. */
  private async ended(): Promise<AttachEvents["detached"] | undefined> {
    const view = (await this.ask("session.get", { session: this.session })).result as SessionView;
    this.view = view;
    if (view.life === "running") return pause(UNREACHED_MS, this.closing.signal).then(() => undefined);
    return { why: "ended", ...(view.exit ? { exit: view.exit } : {}) };
  }

  /** Gives output to the terminal, without the queries. */
  private async pass(bytes: Uint8Array): Promise<void> {
    const offset = this.position;
    this.position += bytes.length;
    const shown = this.filter.feed(bytes);
    if (shown.length > 0) await Promise.all(this.emit("output", { offset, bytes: shown }));
  }

  private async paint(why: Paint["why"]): Promise<void> {
    const { session, size, wantsHistory: history } = this;
    const { result, bytes } = await this.ask("session.paint", { session, size, history, remote: true });
    this.wanted = undefined;
    this.wantsHistory = false;
    return this.show(result as Painted, bytes, why);
  }

  private async show(painted: Painted, bytes: Uint8Array, why: Paint["why"]): Promise<void> {
    const { offset, size } = painted;
    const isResized = this.isPainted && size !== this.sessionSize;
    this.sessionSize = size;
    this.isPainted = true;
    this.position = offset;
    this.filter = new QueryFilter();
    if (isResized) this.emit("size", { size });
    await Promise.all(this.emit("paint", { bytes, offset, size, why }));
  }

  private told(method: string, params: unknown): void {
    if (this.early) {
      this.early.push([method, params]);
      return;
    }
    switch (method) {
      case "writes": {
        const { writes, fence } = params as HostEvents["writes"];
        this.say(writes, fence);
        break;
      }
      case "notice":
        this.emit("notice", (params as HostEvents["notice"]).notice);
        break;
      case "ring":
        this.emit("ring", { text: (params as HostEvents["ring"]).text });
        break;
      case "detached":
        this.isExpelled = true;
        this.closing.abort(new HoldfastError("disconnected", "the host detached this terminal"));
        this.link.close();
        break;
      default:
        break;
    }
  }

  private say(writes: boolean, fence: number): void {
    const isNews = writes !== this.writes || fence !== this.fence;
    const begins = writes && !this.writes;
    this.writes = writes;
    this.fence = fence;
    if (isNews) this.emit("writes", { writes, fence });
    if (begins && this.options.fit && this.isPainted && this.size !== this.sessionSize) void this.fit();
  }

  /** What was typed is gone; what was typed behind it meanwhile is for the same reason, and that is told once. */
  private refused(error: unknown): false {
    if (!this.closing.signal.aborted && error instanceof HoldfastError && error !== this.refusal) this.emit("refused", error);
    this.refusal = error;
    return false;
  }

  /** The connection over which it is attached, under whatever number this client has there. */
  private async way(): Promise<Way> {
    for (;;) {
      await orAbort(this.attached.promise, this.closing.signal);
      const { connection, client } = this;
      if (connection && !connection.over && client !== undefined) return { connection, params: { client } };
      // One that broke in this moment: the reader notices, and attaches anew.
      if (connection === this.connection) this.attached = deferred();
    }
  }

  /** Asks over the connection at which it is attached. */
  private ask(method: string, params: object, bytes: Uint8Array = NO_BYTES): Promise<Answered> {
    const { signal } = this.closing;
    return orAbort(this.connection?.request(method, params, bytes) ?? Promise.reject(disconnected("not attached")), signal);
  }
}

interface Deferred {
  promise: Promise<void>;
  resolve: () => void;
}

function deferred(): Deferred {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

/** The host is away, or is there and has not reached the session's keeper yet. */
function isPassing(error: unknown): boolean {
  return isBroken(error) || (error instanceof HoldfastError && error.code === "busy");
}

function isEnd(error: unknown): boolean {
  return error instanceof HoldfastError && (error.code === "ended" || error.code === "not_found");
}

function sizeText(size: AttachOptions["size"]): string {
  return typeof size === "string" ? size : `${size.cols}x${size.rows}`;
}
