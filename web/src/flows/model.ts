// A flow's history as people read it: its steps with their attempts, and where they stand on a line on which idle time is folded.

import type { FlowView, FlowWait } from "@holdfast/client";
import { span } from "../lib/text.js";

/** A recorded event, as `spec/flows.md` has it. */
export interface Recorded {
  at_ms: number;
  event: string;
  n?: number;
  [field: string]: unknown;
}

interface Outcome {
  state?: string;
  exit_code?: number;
  not_started?: boolean;
  output?: string;
  truncated?: boolean;
  session?: string;
  why?: string;
}

export interface Attempt {
  from: number;
  to?: number;
  /** How it ended; none: it did well, or is still on. */
  failed?: string;
  session?: string;
}

export interface Step {
  n: number;
  name: string;
  kind: string;
  /** What it does, in a line. */
  about: string;
  from: number;
  to?: number;
  state: "open" | "done" | "failed" | "stopped";
  attempts: Attempt[];
  /** What came of it, in a line. */
  outcome: string;
  /** What it printed, where that is more than its outcome. */
  output: string;
  session?: string;
  /** Who answered, or sent the signal. */
  by?: string;
  /** What is known of it while it is open. */
  wait?: FlowWait;
}

const text = (value: unknown): string => (typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value));
const object = (value: unknown): Record<string, unknown> => (typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {});

/** How an attempt that did not do well ended. */
function words(outcome: Outcome): string {
  if (outcome.state === "refused") return outcome.why ?? "refused";
  if (outcome.state === "cancelled") return "interrupted";
  if (outcome.state === "lost") return outcome.not_started ? "lost before it started" : "lost: it may have run";
  return outcome.exit_code === undefined ? "ended, status unknown" : `exit ${outcome.exit_code}`;
}

/** How long, exactly enough to be read: `0.4 s`, `12 s`, `3 min`. */
export function took(ms: number): string {
  if (ms < 9_950) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  return ms < 60_000 ? `${Math.round(ms / 1000)} s` : span(ms);
}

/** What is left, to the second: `2 d 4 h`, `3 h 12 min`, `4:05`, `9 s`. */
export function left(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes}:${String(seconds % 60).padStart(2, "0")}` : `${seconds} s`;
}

function about(command: Record<string, unknown>): string {
  switch (command["do"]) {
    case "run":
      return text(command["command"]);
    case "sleep":
      return left(Number(command["ms"]));
    case "until":
      return new Date(Number(command["at_ms"])).toLocaleString();
    case "ask":
      return text(command["text"]);
    case "wait": {
      const until = command["until"];
      const what = typeof until === "object" ? `port ${text(object(until)["port"])}` : text(until);
      return `${what} in ${text(command["session"])}`;
    }
    case "child":
      return `flow ${text(command["flow"])}`;
    default:
      return "";
  }
}

/** A step that is over. */
function finish(step: Step, { ok, value, at_ms }: Recorded): void {
  const its = object(value);
  step.to = at_ms;
  step.state = ok ? "done" : "failed";
  const last = step.attempts.at(-1);
  if (last) last.to = at_ms;
  if (step.kind === "run") {
    const outcome = its as Outcome;
    const output = typeof value === "string" ? value : (outcome.output ?? "");
    if (outcome.session) step.session = outcome.session;
    if (outcome.session && last) last.session = outcome.session;
    if (!ok && last) last.failed = words(outcome);
    step.output = output.trimEnd() + (outcome.truncated ? "\n…" : "");
    step.outcome = ok ? (output.trimEnd().split("\n").at(-1) ?? "") : words(outcome);
    return;
  }
  if (typeof its["by"] === "string") step.by = its["by"];
  if (step.kind === "ask") step.outcome = ok ? text(its["answer"]) : "nobody answered in time";
  else if (step.kind === "sleep") step.outcome = `${step.about} elapsed`;
  else if (step.kind === "until") step.outcome = "the moment came";
  else if (!ok) step.outcome = its["expired"] ? "it did not come in time" : text(its["why"] ?? value);
  else step.outcome = step.kind === "wait" ? "it came" : text(value);
}

/** The steps of a history, in their order. */
export function steps(history: readonly Recorded[], waits: readonly FlowWait[] = []): Step[] {
  const known = new Map<number, Step>();
  let signal: string | undefined;
  for (const event of history) {
    const step = event.n === undefined ? undefined : known.get(event.n);
    const outcome = object(event["outcome"]) as Outcome;
    switch (event.event) {
      case "asked": {
        const command = object(event["command"]);
        const kind = text(command["do"]);
        const name = text(command["name"]);
        const from = event.at_ms;
        known.set(event.n ?? 0, { n: event.n ?? 0, name, kind, about: about(command), from, state: "open", attempts: [{ from }], outcome: "", output: "" });
        break;
      }
      case "tried":
      case "stuck": {
        const last = step?.attempts.at(-1);
        if (!step || !last) break;
        last.to = event.at_ms;
        last.failed = words(outcome);
        if (outcome.session) last.session = outcome.session;
        if (event.event === "tried") step.attempts.push({ from: event.at_ms + Number(event["pause_ms"] ?? 0) });
        break;
      }
      case "done":
        if (!step) break;
        finish(step, event);
        if (step.kind === "signal" && signal) step.by = signal;
        break;
      case "ending":
      case "ended":
      case "continued":
        for (const open of known.values()) {
          if (open.state !== "open" || (event.event === "ending" && ["run", "child"].includes(open.kind))) continue;
          [open.state, open.to, open.outcome] = ["stopped", event.at_ms, "stopped"];
        }
        break;
    }
    signal = event.event === "signal" ? text(event["by"]) : undefined;
  }
  for (const wait of waits) {
    const step = known.get(wait.n);
    if (!step || step.state !== "open") continue;
    step.wait = wait;
    if (wait.session) step.session = wait.session;
  }
  return [...known.values()];
}

/** A stretch of time in which nothing ran, drawn shorter than it was. */
export interface Fold {
  /** Where its middle is, of 1. */
  at: number;
  ms: number;
}

export interface Line {
  /** Where a moment stands, from 0 to 1. */
  place(at: number): number;
  folds: Fold[];
}

/** Of the time in which something ran, what an idle stretch is drawn as at most. */
const IDLE_SHARE = 0.12;

/** A line from a flow's start to its end, or to now. */
export function line(all: readonly Step[], start: number, end: number): Line {
  const busy = all.filter(({ kind }) => kind === "run").flatMap(({ attempts }) => attempts.map(({ from, to = end }) => [from, to] as const));
  const times = new Set([start, end]);
  for (const { from, to = end } of all) times.add(from).add(to);
  for (const [from, to] of busy) times.add(from).add(to);
  const moments = [...times].filter((at) => at >= start && at <= end).sort((a, b) => a - b);
  const gaps = moments.slice(1).map((to, at) => {
    const from = moments[at] ?? start;
    return { from, ms: to - from, isIdle: !busy.some((run) => run[0] < to && run[1] > from) };
  });
  const active = gaps.reduce((sum, gap) => sum + (gap.isIdle ? 0 : gap.ms), 0);
  const most = active > 0 ? Math.max(1, active * IDLE_SHARE) : Number.POSITIVE_INFINITY;
  const places = new Map<number, number>([[start, 0]]);
  const folds: { from: number; width: number; ms: number }[] = [];
  let width = 0;
  for (const { from, ms, isIdle } of gaps) {
    const drawn = isIdle ? Math.min(ms, most) : ms;
    if (drawn < ms) folds.push({ from: width, width: drawn, ms });
    width += drawn;
    places.set(from + ms, width);
  }
  const whole = Math.max(1, width);
  return {
    place: (at) => (places.get(Math.min(end, Math.max(start, at))) ?? whole) / whole,
    folds: folds.map((fold) => ({ at: (fold.from + fold.width / 2) / whole, ms: fold.ms })),
  };
}

/** An event of the history in a line: what happened, and to what. */
export function told(event: Recorded, known: ReadonlyMap<number, Step>): { what: string; step: string; more: string } {
  const step = event.n === undefined ? "" : `${event.n + 1}. ${known.get(event.n)?.name ?? ""}`;
  const outcome = object(event["outcome"]) as Outcome;
  const by = event["by"] ? ` by ${text(event["by"])}` : "";
  switch (event.event) {
    case "started":
      return { what: "started", step, more: `${text(event["by"])}, with ${text(event["input"]) || "nothing"}` };
    case "asked":
      return { what: text(object(event["command"])["do"]), step, more: about(object(event["command"])) };
    case "tried":
      return { what: `attempt ${Number(event["attempt"]) + 1} failed`, step, more: words(outcome) };
    case "stuck":
      return { what: "stuck", step, more: words(outcome) };
    case "done": {
      const value = object(event["value"]);
      const said = value["answer"] ?? value["output"] ?? value["why"] ?? event["value"];
      return { what: event["ok"] ? "done" : "failed", step, more: text(said) + (value["by"] ? ` by ${text(value["by"])}` : "") };
    }
    case "signal":
      return { what: "signal", step: text(event["name"]), more: text(event["value"]) + by };
    case "blocked":
      return { what: "blocked", step, more: text(event["why"]) };
    case "rewound":
      return { what: `back to step ${Number(event["to"]) + 1}`, step, more: by.trim() };
    case "ending":
      return { what: "ending", step, more: text(event["value"]) };
    case "ended":
      return { what: event["ok"] ? "completed" : "ended", step, more: text(event["value"]) };
    case "continued":
      return { what: "goes on in a new history", step, more: text(event["input"]) };
    default:
      return { what: event.event, step, more: by.trim() };
  }
}

export interface Told {
  word: string;
  tone: "busy" | "waits" | "calm" | "good" | "bad" | "over";
}

/** What a flow does, in a few words and a colour. */
export function doing(flow: FlowView): Told {
  const waits = flow.waits_for ?? [];
  const first = waits[0];
  switch (flow.state) {
    case "completed":
      return { word: "completed", tone: "good" };
    case "failed":
      return { word: "failed", tone: "bad" };
    case "cancelled":
    case "continued":
      return { word: flow.state, tone: "over" };
    case "blocked":
      return { word: "blocked", tone: "bad" };
    case "undoing":
      return waits.some(({ stuck }) => stuck) ? { word: "stuck", tone: "bad" } : { word: "undoing", tone: "busy" };
    case "deciding":
      return flow.status === "WAITING_FOR(worker)" ? { word: "waits for a worker", tone: "calm" } : { word: "decides", tone: "busy" };
  }
  if (waits.some(({ stuck }) => stuck)) return { word: "stuck", tone: "bad" };
  if (waits.some(({ kind }) => kind === "ask")) return { word: "asks", tone: "waits" };
  if (waits.some(({ kind, held_up }) => kind === "run" && !held_up)) return { word: "runs", tone: "busy" };
  return { word: first?.kind === "sleep" || first?.kind === "until" ? "sleeps" : "waits", tone: "calm" };
}

/** What a flow waits for, in words. */
export function waitsFor(wait: FlowWait): string {
  if (wait.stuck) return `${wait.name}: ${wait.stuck}`;
  if (wait.held_up) return `${wait.name}, held up: ${wait.held_up}`;
  switch (wait.kind) {
    case "ask":
      return wait.question ?? wait.name;
    case "signal":
      return `signal ${wait.name}`;
    case "run":
      return (wait.attempt ?? 1) > 1 ? `${wait.name}, attempt ${wait.attempt}` : wait.name;
    case "child":
      return `${wait.name} (${wait.flow ?? "a flow"})`;
    case "wait":
      return `${wait.name} in ${wait.session ?? "a session"}`;
    default:
      return wait.name;
  }
}
