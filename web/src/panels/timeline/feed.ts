// A session's journal, live, with what is known beside it: how its runs go, what was asked.

import { effect, signal } from "@preact/signals";
import type { QuestionView, RunView } from "@holdfast/client";
import { client, heard, link, type LiveSession } from "../../lib/store.js";
import { join, Teller, type Entry, type JournalRecord } from "./tell.js";

/** Entries kept in the page. */
const ENTRIES_MAX = 5_000;
const WAIT_MS = 20_000;
const RETRY_MS = 1_000;
const OF_QUESTIONS = ["asked", "answered", "question_closed"];
const OF_RUNS = ["run_started", "run_ended"];

export class Feed {
  readonly entries = signal<readonly Entry[]>([]);
  /** Runs by the number of their record. */
  readonly runs = signal<ReadonlyMap<number, RunView>>(new Map());
  readonly questions = signal<readonly QuestionView[]>([]);
  /** Everything that was there has been read. */
  readonly loaded = signal(false);
  /** There are older records, which are not shown. */
  readonly isCut = signal(false);
  readonly trouble = signal<string | undefined>(undefined);
  private readonly live: LiveSession;
  private readonly closing = new AbortController();

  constructor(live: LiveSession) {
    this.live = live;
    void this.follow();
    // Now, and whenever the host was away.
    const look = effect(() => {
      if (link.value !== "connected") return;
      void this.lookAtRuns();
      void this.lookAtQuestions();
    });
    const hear = (event: { session: string; event: string }) => {
      if (event.session !== live.id) return;
      if (OF_QUESTIONS.includes(event.event)) void this.lookAtQuestions();
      if (OF_RUNS.includes(event.event)) void this.lookAtRuns();
    };
    heard.add(hear);
    this.closing.signal.addEventListener("abort", () => {
      look();
      heard.delete(hear);
    });
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
          { session: this.live.id, after, ...(after === 0 ? { last: ENTRIES_MAX } : {}), wait_ms: this.loaded.value ? WAIT_MS : 0 },
          { signal: over },
        );
        if (after === 0) this.isCut.value = answer.from > 1;
        after = answer.to;
        const lines = new TextDecoder().decode(answer.bytes).split("\n");
        for (const line of lines) {
          const record = read(line);
          const entry = record && teller.tell(record);
          if (entry) join(told, entry);
        }
        told.splice(0, Math.max(0, told.length - ENTRIES_MAX));
        this.trouble.value = undefined;
        if (!answer.more) {
          this.entries.value = [...told];
          this.loaded.value = true;
        }
        if (answer.end) return;
      } catch (error) {
        if (over.aborted) return;
        this.trouble.value = error instanceof Error ? error.message : String(error);
        await pause(RETRY_MS);
      }
    }
  }

  private async lookAtRuns(): Promise<void> {
    const runs = await client.call("run.list", { session: this.live.id }).catch(() => undefined);
    if (runs) this.runs.value = new Map(runs.flatMap((run) => (run.act === undefined || run.act === null ? [] : [[run.act, run]])));
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
