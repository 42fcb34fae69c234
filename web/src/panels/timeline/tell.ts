// A journal's records as people read them: who, what in a few words, and of which kind.
//
// Some of it is not in a record but in what came before it (from whom a turn was seized), so a teller follows them in order. What an
// actor wrote is kept apart, as a quotation: a view shows it by `<Line>`.

import type { Actor } from "@holdfast/client";

/** One line of a journal, as far as it is read here. */
export interface JournalRecord {
  seq: number;
  time_ms: number;
  /** Output head at that moment. */
  at: number;
  by: "host" | "unknown" | { actor: Actor };
  act: unknown;
  outcome: "done" | { refused: { code: string; by?: Actor; right?: string; rule?: string } };
  changes?: Change[];
}

type Change = {
  turn?: "free" | { held: { by: Actor } };
  granted?: { id: number; to: Actor; rights: string };
  dropped?: number;
  here?: [unknown, Actor];
  waits?: { by: Actor };
};

/** What a filter can choose. `approval` is for those that are to come. */
export type Kind = "command" | "turn" | "rights" | "question" | "approval" | "presence" | "session";

export interface Entry {
  /** Its number in the journal; a question that is not in it has none. */
  seq: number | undefined;
  key: string;
  timeMs: number;
  /** None: the host by itself. */
  by: Actor | undefined;
  kind: Kind;
  /** Our words. */
  words: string;
  /** Somebody's words, behind ours. */
  quoted?: string;
  /** Ours again, behind those. */
  more?: string;
  /** The quotation is a command or keys. */
  isCode?: boolean;
  isRefused?: boolean;
  /** A seizure, a freeze. */
  isGrave?: boolean;
  /** Where in the output it stands. */
  at: number | undefined;
  /** It reached into the terminal: what came behind it may be its doing. */
  writes: boolean;
  /** Typing that may go on in the next record. */
  isOpen?: boolean;
}

type Told = Pick<Entry, "kind" | "words"> & Partial<Pick<Entry, "quoted" | "more" | "isCode" | "isGrave" | "isOpen" | "writes" | "at">>;

const SIGNALS: Record<number, string> = {
  1: "HUP",
  2: "INT",
  3: "QUIT",
  9: "KILL",
  10: "USR1",
  12: "USR2",
  15: "TERM",
  18: "CONT",
  19: "STOP",
  20: "TSTP",
  28: "WINCH",
};
const TARGETS = ["the foreground", "the command", "the whole tree"];
/** Bursts of typing closer together than this are one, until a line is entered. */
const TYPING_GAP_MS = 20_000;
/** Of what was typed at one go, so much is kept for reading. */
const KEYS_MAX = 2_000;

export class Teller {
  private holder: Actor | undefined;
  private readonly known = new Map<string, string>();
  private readonly grants = new Map<number, { to: string; rights: string }>();

  /** The next record; nothing where there is nothing to tell. */
  tell(record: JournalRecord): Entry | undefined {
    const by = actorOf(record.by);
    if (by) this.known.set(by.id, by.handle);
    const told = this.told(record);
    this.apply(record);
    if (!told) return undefined;
    const refused = record.outcome === "done" ? undefined : record.outcome.refused;
    const entry: Entry = { seq: record.seq, key: String(record.seq), timeMs: record.time_ms, by, at: record.at, writes: false, ...told };
    if (!refused) return entry;
    const why =
      refused.code === "turn_held" && refused.by
        ? `${refused.by.handle} has the turn`
        : refused.right
          ? `may not ${refused.right}`
          : refused.code.replaceAll("_", " ");
    return { ...entry, words: `was refused: ${wish(entry.words)}`, more: why, isRefused: true, isGrave: false, writes: false, isOpen: false };
  }

  private told(record: JournalRecord): Told | undefined {
    const [name, what] = parts(record.act);
    switch (name) {
      case "header":
      case "linked":
      case "joined":
        return undefined;
      case "started":
        return { kind: "session", words: "started the session" };
      case "began":
        return { kind: "session", words: "the session started again" };
      case "restarted":
        return { kind: "session", words: "a host took over; the session kept running" };
      case "damaged":
        return { kind: "rights", words: "found the journal damaged; only humans act until one grants anew", quoted: String((what as { what: string }).what), isGrave: true };
      case "refused_more":
        return { kind: "session", words: `was refused ${(what as { count: number }).count} times more` };
      case "ended":
        return { kind: "session", words: `the session ended${exitWords(what)}` };
      case "forgotten":
        return { kind: "rights", words: "forgot", quoted: this.name(String(what)) };
      case "attached":
        return { kind: "presence", words: "attached" };
      case "resumed":
        return { kind: "presence", words: "reconnected" };
      case "left":
        return { kind: "presence", words: "left" };
      case "cut_off":
        return { kind: "presence", words: "lost its connection" };
      case "took":
        return { kind: "turn", words: "took the turn by typing" };
      case "typed":
        return { ...this.typed(what as Burst, record), ...(record.by === "unknown" ? { isGrave: true } : {}) };
      case "asked":
        return this.asked(record, ...parts(what));
      case "did":
        return this.did(what as Did);
      case "lapsed":
        return this.lapsed(record, String(what));
      default:
        return { kind: "session", words: name.replaceAll("_", " ") };
    }
  }

  /** What was done as asked needs no second line; what was not does. */
  private did({ what, ending }: Did): Told | undefined {
    if (ending === "done") return undefined;
    const words = ending === "lost" ? `lost ${what}: the host was killed in between; look whether it was done` : `could not do ${what}`;
    return { kind: "session", words, isGrave: true, ...(ending === "lost" ? {} : { more: ending.failed.why }) };
  }

  private typed(burst: Burst, record: JournalRecord): Told {
    const more = this.tookByWriting(record);
    const place = { kind: "command", writes: true, at: burst.from, ...(more ? { more } : {}) } as const;
    if (burst.keys === undefined) return { ...place, words: `typed ${burst.len} ${burst.len === 1 ? "byte" : "bytes"} that the screen did not show` };
    const text = typeof burst.keys === "string" ? burst.keys : `0x${burst.keys.hex}`;
    return { ...place, words: "typed", quoted: keysShown(text), isCode: true, isOpen: !/[\r\n\x03\x04]$/.test(text) };
  }

  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each kind of act has fields of its own, and a newer host others
  private asked(record: JournalRecord, name: string, what: any): Told | undefined {
    const to = (what?.to as Actor | undefined)?.handle ?? "";
    switch (name) {
      case "take":
        return { kind: "turn", words: "took the turn" };
      case "request":
        return { kind: "turn", words: newHolder(record) ? "requested the turn and got it" : "requested the turn" };
      case "withdraw":
        return { kind: "turn", words: "withdrew its request for the turn" };
      case "give":
        return { kind: "turn", words: "gave the turn to", quoted: to };
      case "release":
        return { kind: "turn", words: "released the turn" };
      case "seize": {
        const from = this.holder && this.holder.id !== (actorOf(record.by) ?? this.holder).id ? ` from ${this.holder.handle}` : "";
        const words = `seized the turn${from}${what.freeze ? " and froze the session" : ""}`;
        return { kind: "turn", words, isGrave: true, ...(what.reason ? { quoted: what.reason } : {}) };
      }
      case "thaw":
        return { kind: "turn", words: "thawed the session" };
      case "grant":
        return {
          kind: "rights",
          words: `granted ${what.rights} to`,
          quoted: to,
          ...(what.until ? { more: `until ${clock(what.until, record.time_ms)}` } : {}),
        };
      case "revoke": {
        const id = Number(what?.grant);
        const grant = this.grants.get(id);
        if (grant) return { kind: "rights", words: `revoked ${grant.rights} from`, quoted: grant.to };
        return {
          kind: "rights",
          words: what?.actor ? "revoked everything from" : `revoked grant ${id}`,
          ...(what?.actor ? { quoted: this.name(what.actor) } : {}),
        };
      }
      case "run": {
        const more = this.tookByWriting(record);
        return {
          kind: "command",
          words: "ran",
          quoted: what.command,
          isCode: true,
          writes: true,
          ...(more ? { more } : {}),
        };
      }
      case "resize":
        return { kind: "session", words: `resized the terminal to ${String(what.size).replace("x", "×")}`, writes: true };
      case "signal":
        return {
          kind: "command",
          words: `sent ${SIGNALS[what.number] ?? `signal ${what.number}`} to ${TARGETS[what.target] ?? "the tree"}`,
          writes: true,
        };
      case "rename":
        return { kind: "session", words: "renamed the session to", quoted: what.name };
      case "detach":
        return { kind: "presence", words: what.operators?.length === 1 ? "detached a client" : "detached clients" };
      case "end":
        return { kind: "session", words: "ended the session", isGrave: true };
      case "recover":
        return { kind: "session", words: "recovered the session", isGrave: true };
      case "operation":
        return operation(what);
      default:
        return { kind: "session", words: name };
    }
  }

  private lapsed(record: JournalRecord, lapse: string): Told {
    const before = this.holder?.handle ?? "no actor";
    const next = newHolder(record)?.handle ?? "no actor";
    const isTurn = (record.changes ?? []).some((change) => change.turn !== undefined);
    switch (lapse) {
      case "grace":
        return isTurn
          ? { kind: "turn", words: "the turn is free again;", quoted: before, more: "was idle" }
          : { kind: "presence", words: "dropped a client that lost its connection" };
      case "idle":
        return { kind: "turn", words: "the turn went to", quoted: next, more: `${before} was idle` };
      case "next":
        return { kind: "turn", words: "the turn went to", quoted: next, more: "next in the queue" };
      case "grants":
        return { kind: "rights", words: "a grant expired" };
      case "tokens":
        return { kind: "rights", words: "a grant ended with the token that gave it" };
      case "rights":
        return { kind: "turn", words: "the turn is free again;", quoted: before, more: "may no longer type" };
      case "observers":
        return { kind: "presence", words: "dropped clients that may no longer observe" };
      default:
        return { kind: "turn", words: "a request for the turn was dropped" };
    }
  }

  private apply({ changes = [] }: JournalRecord): void {
    for (const { turn, granted, here, waits } of changes) {
      if (turn !== undefined) this.holder = turn === "free" ? undefined : turn.held.by;
      if (granted) this.grants.set(granted.id, { to: granted.to.handle, rights: granted.rights });
      for (const actor of [granted?.to, here?.[1], waits?.by, this.holder]) if (actor) this.known.set(actor.id, actor.handle);
    }
  }

  private tookByWriting(record: JournalRecord): string | undefined {
    return !this.holder && newHolder(record) ? "which took the turn" : undefined;
  }

  private name(id: string): string {
    return this.known.get(id) ?? `key ${id.slice(0, 8)}`;
  }
}

interface Did {
  what: string;
  ending: "done" | "lost" | { failed: { why: string } };
}

interface Burst {
  from: number;
  to: number;
  len: number;
  keys?: string | { hex: string };
}

/** A record's act: `"started"` or `{ typed: … }`. */
/** Who did it; none: the host. Somebody who reached the keeper past the host has no name. */
function actorOf(by: JournalRecord["by"]): Actor | undefined {
  if (by === "host") return undefined;
  return by === "unknown" ? { id: "unknown", handle: "unknown" } : by.actor;
}

function parts(act: unknown): [string, unknown] {
  if (typeof act === "string") return [act, undefined];
  const [first] = Object.entries((act ?? {}) as object);
  return first ?? ["unknown", undefined];
}

function operation(what: { name: string; detail: string }): Told {
  const approves = what.name.startsWith("approval.");
  if (what.name === "question.answer") {
    // `ID: answer (asked: text)`
    const [, answer, asked] = /^que_\w+: ([\s\S]*?)(?: \(asked: ([\s\S]*)\))?$/.exec(what.detail) ?? [];
    return { kind: "question", words: "answered", quoted: answer ?? what.detail, ...(asked ? { more: `to “${asked}”` } : {}) };
  }
  const kind = approves ? "approval" : what.name.startsWith("question.") ? "question" : "session";
  return { kind, words: what.name.replace(/^\w+\./, ""), ...(what.detail ? { quoted: what.detail } : {}) };
}

function newHolder(record: JournalRecord): Actor | undefined {
  const turn = record.changes?.find((change) => change.turn !== undefined)?.turn;
  return turn && turn !== "free" ? turn.held.by : undefined;
}

/** What was wanted, of what would have been done. */
function wish(words: string): string {
  return { ran: "run", typed: "type", "took the turn": "take the turn" }[words] ?? words;
}

function exitWords(exit: unknown): string {
  if (exit && typeof exit === "object") {
    if ("code" in exit) return ` with ${String(exit.code)}`;
    if ("signal" in exit) return ` by signal ${String(exit.signal)}`;
  }
  return "";
}

const KEYS: Record<string, string> = { "\r": "⏎", "\n": "⏎", "\t": "⇥", "\x1b": "␛", "\x7f": "⌫" };

/** Typed keys, each to be seen. */
export function keysShown(keys: string): string {
  return keys.replaceAll(/[\x00-\x1f\x7f]/g, (key) => KEYS[key] ?? `^${String.fromCharCode(key.charCodeAt(0) ^ 0x40)}`);
}

/** A time of day; with the date where that is another. */
export function clock(ms: number, now = Date.now()): string {
  const [at, today] = [new Date(ms), new Date(now)];
  const time = at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  return at.toDateString() === today.toDateString() ? time : `${at.toLocaleDateString(undefined, { month: "short", day: "numeric" })} ${time}`;
}

/** Adds an entry; typing that goes on joins what is there. */
export function join(entries: Entry[], next: Entry): void {
  const last = entries.at(-1);
  const goesOn =
    last?.isOpen && next.words === "typed" && !next.isRefused && last.by?.id === next.by?.id && next.timeMs - last.timeMs < TYPING_GAP_MS;
  if (!goesOn) entries.push(next);
  else entries[entries.length - 1] = { ...last, quoted: `${last.quoted}${next.quoted}`.slice(0, KEYS_MAX), isOpen: next.isOpen ?? false };
}

/** The act before an offset of the output: whose doing it may be. The same rule as `holdfast journal --at`. */
export function actAt(entries: readonly Entry[], offset: number): Entry | undefined {
  let found: Entry | undefined;
  for (const entry of entries) {
    if (!entry.writes || entry.at === undefined || entry.at > offset) continue;
    if (!found || entry.at >= (found.at ?? 0)) found = entry;
  }
  return found;
}
