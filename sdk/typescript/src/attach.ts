// A terminal that shows a session and types into it, through the host alone.
//
// It is painted once, and then gets the output from the painted offset on: each byte once and in order, also across hosts that die
// and connections that break. What is gone is told as a gap, and the terminal is painted again. It has a connection of its own, so
// that a large paint holds nobody else up, and its end is seen by the host.
//
// At most one terminal answers the session's queries. The host says which; the others never see the queries.

import type { Answer } from "./client.js";
import type { Answered, Connection } from "./connection.js";
import { HoldfastError, disconnected, isBroken } from "./errors.js";
import { Emitter } from "./emitter.js";
import { QueryFilter, withoutReports } from "./filter.js";
import { NO_BYTES } from "./frame.js";
import type { Link } from "./link.js";
import { WAIT_MS } from "./run.js";
import { Backoff, orAbort, pause } from "./signals.js";
import { Typist } from "./typist.js";
import type { AttachAnswer, Exit, Gap, HostEvents, Notice, SendAnswer, SessionView } from "./types.js";

/** Read at once: a few screens, little enough to show progress over a slow line. */
const READ_BYTES = 128 * 1024;
/** Typed in one message: a paste goes in few, and a key does not wait behind all of it. */
const TYPE_BYTES = 32 * 1024;
/** The size of the session is looked at this often while there is output, for hosts that do not tell. */
const SIZE_EVERY_MS = 1_000;
/** A keeper is reached within some milliseconds. */
const UNREACHED_MS = 20;
/** How long a host may take to hear that we leave. */
const LEAVE_WAIT_MS = 1_000;

export interface AttachOptions {
  /** The terminal's size: `80x24`, or its parts. */
  size: string | { cols: number; rows: number };
  /** It only shows. */
  readOnly?: boolean;
  /** What others see as its name. */
  tty?: string;
  /** The first paint has the lines above the screen, too. */
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
  /** Reset the terminal, give it this size, write the bytes. A promise that is given back is waited for. */
  paint: Paint;
  /** Write the bytes. A promise that is given back is waited for before more is read. */
  output: { offset: number; bytes: Uint8Array };
  /** Output that is no longer kept; a paint follows. */
  gap: Gap;
  /** Whether this terminal is the one that writes now, and the newest fence. */
  writes: { writes: boolean; fence: number };
  /** Something the operator should be told. */
  notice: Notice;
  /** Catch the person's attention. */
  ring: { text: string };
  /** The session has another size; a paint follows. */
  size: { size: string };
  /** Whether the host is reached. */
  state: { state: "connected" | "reconnecting"; error?: unknown };
  /** What was typed was refused, and is gone. */
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
  /** This terminal answers the session's queries now: what it answers is typed, as keys are. */
  answers = false;
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
  private typed: { bytes: Uint8Array; done: (typed: boolean) => void }[] = [];
  private isTyping = false;
  private painted = false;
  /** A paint that is due. */
  private wanted: Paint["why"] | undefined;
  private wake = () => {};
  /** The connection over which it is attached; what is said to the host goes there and nowhere else. */
  private connection: Connection | undefined;
  /** Done while it is attached. */
  private attached = deferred();
  /** What the host said before the answer that says who we are was read. */
  private early: [string, unknown][] | undefined;
  private isExpelled = false;
  private history = false;
  /** It shall from this offset on. */
  private answersFrom: number | undefined;
  private filter: QueryFilter | undefined = new QueryFilter();
  private sizedAt = 0;

  constructor(link: Link, session: string, options: AttachOptions) {
    super();
    this.link = link;
    this.session = session;
    this.options = options;
    this.size = sizeText(options.size);
    this.typist = new Typist(session, (params, bytes, signal) => this.sendOne(params, bytes, signal));
    link.told = (method, params) => this.told(method, params);
    let ready!: () => void;
    let failed!: (error: unknown) => void;
    this.ready = new Promise((resolve, reject) => ([ready, failed] = [resolve, reject]));
    this.ready.catch(() => {});
    options.signal?.addEventListener("abort", () => void this.close(), { once: true });
    // Who listens is told everything: it has until the end of this turn of the event loop to say so.
    this.over = Promise.resolve().then(() => this.live(ready, failed));
  }

  /** Types text or bytes behind what was typed before. Says whether they were typed; a refusal is also an event. */
  type(input: string | Uint8Array): Promise<boolean> {
    let bytes = typeof input === "string" ? encoder.encode(input) : input;
    if (!this.writes) bytes = withoutReports(bytes, !this.answers);
    if (bytes.length === 0 || this.options.readOnly || this.closing.signal.aborted) return Promise.resolve(false);
    const done = new Promise<boolean>((resolve) => this.typed.push({ bytes, done: resolve }));
    void this.typeAll();
    return done;
  }

  /** The terminal has another size. The session takes it where this terminal writes, or is alone. */
  resize(size: string | { cols: number; rows: number }): void {
    this.size = sizeText(size);
    if (this.client !== undefined) void this.update({ size: this.size });
  }

  /** Paints again, with the lines above the screen if asked to. */
  async repaint(options: { history?: boolean } = {}): Promise<void> {
    if (options.history) this.history = true;
    this.want("asked");
  }

  /** Lets go. The session goes on. */
  async close(): Promise<void> {
    if (this.closing.signal.aborted) return this.over;
    const { client, connection, position } = this;
    this.closing.abort(new HoldfastError("disconnected", "the terminal was detached"));
    this.wake();
    if (client !== undefined && connection) {
      const signal = AbortSignal.timeout(LEAVE_WAIT_MS);
      const { session } = this;
      try {
        // What it has answered must not be answered again.
        const answers = { on: false, left: position, from: position };
        if (this.answers) await orAbort(connection.request("session.update", { session, client, answers }, NO_BYTES), signal);
        await orAbort(connection.request("session.leave", { session, client }, NO_BYTES), signal);
      } catch {
        // The end of the connection says it, too.
      }
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
        else if (!isBroken(error)) end = { why: isEnd(error) ? "ended" : "refused", error };
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
    for (const { done } of this.typed.splice(0)) done(false);
    this.emit("detached", end);
  }

  /** Attaches, for the first time or anew after a broken connection. */
  private async attach(): Promise<void> {
    const { readOnly = false, tty = "", history = false } = this.options;
    const { signal } = this.closing;
    const params = { session: this.session, size: this.size, read_only: readOnly, tty };
    this.answersFrom = undefined;
    this.early = [];
    this.connection = await this.link.connection(signal);
    const { result, bytes } = await this.ask("session.attach", params);
    const answer = result as AttachAnswer;
    const { painted } = answer;
    this.view = answer.session;
    this.client = answer.client;
    this.say(answer.writes, answer.fence);
    this.answers = false;
    this.filter ??= new QueryFilter();
    if (answer.answers) this.answersFrom = painted.offset;
    const early = this.early ?? [];
    this.early = undefined;
    for (const [method, params] of early) this.told(method, params);
    this.attached.resolve();
    if (params.size !== this.size) void this.update({ size: this.size });
    // After a broken connection the terminal goes on where it stood: what it missed is still kept, or is a gap.
    if (this.painted && painted.size === this.sessionSize) return;
    const why = this.painted ? "size" : "attached";
    if (history || painted.form === "keyframe") {
      this.history = history && !this.painted;
      await this.paint(why);
    } else {
      await this.show(painted, bytes, why);
    }
    this.beginAnswering();
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
      const woken = new Promise<undefined>((resolve) => (this.wake = () => resolve(undefined)));
      const params = { session: this.session, from: this.position, max: READ_BYTES, wait_ms: WAIT_MS };
      const reading = this.ask("session.read", params);
      reading.catch(() => {});
      const read = await orAbort(Promise.race([reading, woken]), signal);
      if (!read || this.wanted) continue;
      const { gap, end } = read.result as { gap?: Gap | null; end: boolean };
      if (gap) {
        this.emit("gap", gap);
        this.wanted = "gap";
        continue;
      }
      await this.pass(read.bytes);
      const over = end ? await this.ended() : undefined;
      if (over) return over;
      if (read.bytes.length > 0) this.lookAtSize();
    }
  }

  /** How it ended; nothing where it lives, and a new host has not reached its keeper yet. */
  private async ended(): Promise<AttachEvents["detached"] | undefined> {
    const view = (await this.ask("session.get", { session: this.session })).result as SessionView;
    this.view = view;
    if (view.life === "running") return pause(UNREACHED_MS, this.closing.signal).then(() => undefined);
    return { why: "ended", ...(view.exit ? { exit: view.exit } : {}) };
  }

  /** Gives output to the terminal, up to where it begins to answer without the queries. */
  private async pass(bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (rest.length > 0) {
      this.beginAnswering();
      const from = this.answersFrom;
      const until = from !== undefined && from > this.position ? from - this.position : rest.length;
      const some = rest.subarray(0, until);
      rest = rest.subarray(some.length);
      const offset = this.position;
      const shown = this.filter ? this.filter.feed(some) : some;
      this.position += some.length;
      if (shown.length > 0) await Promise.all(this.emit("output", { offset, bytes: shown }));
    }
    this.beginAnswering();
  }

  private beginAnswering(): void {
    const from = this.answersFrom;
    if (from === undefined || this.position < from || !this.filter) return;
    // Within a string that is being dropped the rest must go too: a little later, then.
    const held = this.filter.giveUp();
    if (!held) return;
    this.filter = undefined;
    this.answers = true;
    this.answersFrom = undefined;
    if (held.length > 0) this.emit("output", { offset: this.position - held.length, bytes: held });
    void this.update({ answers: { on: true, left: from, from: this.position } });
  }

  private stopAnswering(): void {
    if (!this.answers && this.answersFrom === undefined) return;
    const left = this.answersFrom ?? this.position;
    this.answers = false;
    this.answersFrom = undefined;
    this.filter ??= new QueryFilter();
    void this.update({ answers: { on: false, left, from: Math.max(left, this.position) } });
  }

  /** Paints the terminal anew. Its form for another size is ours alone to draw: so it is asked for in the session's size. */
  private async paint(why: Paint["why"]): Promise<void> {
    const { history } = this;
    this.history = false;
    let size = this.sessionSize || this.size;
    for (;;) {
      const params = { session: this.session, size, history };
      const { result, bytes } = await this.ask("session.paint", params);
      const painted = result as Answer<"session.paint">;
      if (painted.form === "repaint") {
        this.wanted = undefined;
        return this.show(painted, bytes, why);
      }
      size = painted.size;
    }
  }

  private async show(painted: { offset: number; size: string }, bytes: Uint8Array, why: Paint["why"]): Promise<void> {
    const left = this.position;
    if (painted.size !== this.sessionSize) {
      this.sessionSize = painted.size;
      if (this.painted) this.emit("size", { size: painted.size });
    }
    this.painted = true;
    this.position = painted.offset;
    if (this.filter) this.filter = new QueryFilter();
    await Promise.all(this.emit("paint", { bytes, offset: painted.offset, size: painted.size, why }));
    // What the paint skipped this terminal never saw.
    if (this.answers && why !== "attached") void this.update({ answers: { on: true, left, from: painted.offset } });
  }

  private want(why: Paint["why"]): void {
    this.wanted ??= why;
    this.wake();
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
        if (!writes) this.stopAnswering();
        this.sizedAt = 0;
        break;
      }
      case "notice":
        this.sizedAt = 0;
        this.emit("notice", (params as HostEvents["notice"]).notice);
        break;
      case "ring":
        this.emit("ring", { text: (params as HostEvents["ring"]).text });
        break;
      case "answer":
        if (!this.answers) {
          this.answersFrom = (params as HostEvents["answer"]).from;
          this.beginAnswering();
        }
        break;
      case "size":
        this.sized((params as { size: string }).size);
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
    this.writes = writes;
    this.fence = fence;
    if (isNews) this.emit("writes", { writes, fence });
  }

  private sized(size: string): void {
    if (this.painted && size !== this.sessionSize) this.want("size");
  }

  private lookAtSize(): void {
    const now = Date.now();
    if (now - this.sizedAt < SIZE_EVERY_MS) return;
    this.sizedAt = now;
    const looked = this.ask("session.get", { session: this.session });
    looked.then(({ result }) => this.sized((result as SessionView).size)).catch(() => {});
  }

  /** Tells the host what changed. Where it is not heard, what is told anew after the next attach is the same. */
  private async update(what: object): Promise<void> {
    const { client } = this;
    if (client === undefined) return;
    try {
      const params = { session: this.session, client, ...what };
      const { size } = (await this.ask("session.update", params)).result as { size: string };
      this.sized(size);
    } catch {
      // The reader notices that the connection is over.
    }
  }

  private async typeAll(): Promise<void> {
    if (this.isTyping) return;
    this.isTyping = true;
    while (this.typed.length > 0 && !this.closing.signal.aborted) {
      const batch = this.typed.splice(0, batchLength(this.typed));
      let typed = false;
      try {
        await this.typist.send(joined(batch.map(({ bytes }) => bytes)), { signal: this.closing.signal });
        typed = true;
      } catch (error) {
        if (!this.closing.signal.aborted && error instanceof HoldfastError) this.emit("refused", error);
      }
      for (const { done } of batch) done(typed);
    }
    this.isTyping = false;
  }

  /** Sends one message until it is answered, under whatever number this client has by then. */
  private async sendOne(params: object, bytes: Uint8Array, signal?: AbortSignal): Promise<SendAnswer> {
    for (;;) {
      await orAbort(this.attached.promise, signal);
      // One that broke in this moment: the reader notices, and attaches anew.
      const { connection, client } = this;
      if (!connection) continue;
      try {
        return (await this.ask("session.send", { ...params, client }, bytes)).result as SendAnswer;
      } catch (error) {
        if (!isBroken(error)) throw error;
        if (this.connection === connection) this.attached = deferred();
      }
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

function isEnd(error: unknown): boolean {
  return error instanceof HoldfastError && (error.code === "ended" || error.code === "not_found");
}

function sizeText(size: AttachOptions["size"]): string {
  return typeof size === "string" ? size : `${size.cols}x${size.rows}`;
}

function batchLength(typed: { bytes: Uint8Array }[]): number {
  let bytes = 0;
  const full = typed.findIndex((one) => (bytes += one.bytes.length) >= TYPE_BYTES);
  return full < 0 ? typed.length : full + 1;
}

function joined(parts: Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
