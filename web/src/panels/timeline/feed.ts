// A session's journal, live, with what is known beside it: how its runs ended, what was asked.

import { signal } from "@preact/signals";
import type { QuestionView, RunView } from "@holdfast/client";
import { client, heard, type LiveSession } from "../../lib/store.js";
import { join, Teller, type Entry, type JournalRecord } from "./tell.js";

/** Entries kept in the page. */
const ENTRIES_MAX = 5_000;
const WAIT_MS = 20_000;
const RUNS_EVERY_MS = 1_000;
const RETRY_MS = 1_000;

export class Feed {
  readonly entries = signal<readonly Entry[]>([]);
  readonly runs = signal<readonly RunView[]>([]);
  readonly questions = signal<readonly QuestionView[]>([]);
  /** Everything that was there has been read. */
  readonly loaded = signal(false);
  readonly trouble = signal<string | undefined>(undefined);
  private readonly live: LiveSession;
  private readonly closing = new AbortController();

  constructor(live: LiveSession) {
    this.live = live;
    void this.follow();
    void this.lookAtRuns();
    void this.lookAtQuestions();
    const hear = (event: { session: string; event: string }) => {
      if (event.session === live.id && ["asked", "answered", "question_closed"].includes(event.event)) void this.lookAtQuestions();
    };
    heard.add(hear);
    this.closing.signal.addEventListener("abort", () => heard.delete(hear));
  }

  close(): void {
    this.closing.abort();
  }

  private async follow(): Promise<void> {
    const { signal: over } = this.closing;
    const teller = new Teller();
    const told: Entry[] = [];
    let after = 0;
    while (!over.aborted) {
      try {
        const answer = await client.call(
          "session.journal",
          { session: this.live.id, after, wait_ms: this.loaded.value ? WAIT_MS : 0 },
          { signal: over },
        );
        after = answer.to;
        const lines = new TextDecoder().decode(answer.bytes).split("\n");
        let isRun = false;
        for (const line of lines) {
          const record = read(line);
          const entry = record && teller.tell(record);
          if (!entry) continue;
          isRun ||= entry.run !== undefined;
          join(told, entry);
        }
        told.splice(0, Math.max(0, told.length - ENTRIES_MAX));
        this.trouble.value = undefined;
        if (!answer.more) {
          this.entries.value = [...told];
          this.loaded.value = true;
        }
        if (isRun) void this.readRuns();
        if (answer.end) return;
      } catch (error) {
        if (over.aborted) return;
        this.trouble.value = error instanceof Error ? error.message : String(error);
        await pause(RETRY_MS);
      }
    }
  }

  /** While a run is on its end is looked for; the journal does not tell of it. */
  private async lookAtRuns(): Promise<void> {
    await this.readRuns();
    while (!this.closing.signal.aborted) {
      await pause(RUNS_EVERY_MS);
      if (document.visibilityState === "visible" && this.runs.value.some(({ state }) => state === "starting" || state === "running"))
        await this.readRuns();
    }
  }

  private async readRuns(): Promise<void> {
    const runs = await client.call("run.list", { session: this.live.id }).catch(() => undefined);
    if (runs) this.runs.value = runs;
  }

  private async lookAtQuestions(): Promise<void> {
    const questions = await client.call("question.list", { session: this.live.id, all: true }).catch(() => undefined);
    if (questions) this.questions.value = questions;
  }
}

function read(line: string): JournalRecord | undefined {
  try {
    return line ? (JSON.parse(line) as JournalRecord) : undefined;
  } catch {
    return undefined;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

/** How far apart the two clocks' readings of one act may be: both are the host's. */
const SAME_RUN_MS = 2_000;

/** The run a record tells of. A record has no run's id, so it is found by who, what and when. */
export function runOf(entry: Entry, runs: readonly RunView[]): RunView | undefined {
  if (!entry.run || !entry.by) return undefined;
  const { id } = entry.by;
  const near = runs
    .filter((run) => run.actor.id === id && Math.abs(run.started_ms - entry.timeMs) < SAME_RUN_MS && run.command === entry.run?.command)
    .sort((a, b) => Math.abs(a.started_ms - entry.timeMs) - Math.abs(b.started_ms - entry.timeMs));
  return near[0];
}

/** Journal and questions as one stream. The journal has answers, not what was asked: those are laid in by their time. */
export function stream(entries: readonly Entry[], questions: readonly QuestionView[]): Entry[] {
  const asked = questions.map((question): Entry => ({
    seq: undefined,
    key: question.id,
    timeMs: question.asked_ms,
    by: question.by,
    kind: "question",
    words: "asked",
    quoted: question.text,
    at: undefined,
    writes: false,
    ...(question.state === "open" ? { more: "waits for an answer" } : question.state === "answered" ? {} : { more: question.state }),
  }));
  return [...entries, ...asked].sort((a, b) => a.timeMs - b.timeMs || (a.seq ?? 0) - (b.seq ?? 0));
}
