// The journal as a stream: who did what, how it ended, newest at the end. A click goes to that output.

import { useSignal, useSignalEffect, type Signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RunView } from "@holdfast/client";
import { myActor } from "../../lib/login.js";
import { phone } from "../../lib/phone.js";
import { sessionPath } from "../../lib/route.js";
import { ActorChip } from "../../ui/Actor.js";
import { Icon } from "../../ui/icons.js";
import { Line } from "../../ui/Text.js";
import { attempt, tell } from "../../ui/told.js";
import type { LiveSession } from "../../lib/store.js";
import type { Screen } from "../../session/screen.js";
import type { PanelProps } from "../index.js";
import { Feed, stream } from "./feed.js";
import { commandAt, markedCommands, type Marked } from "./marks.js";
import { Past } from "./Past.js";
import { Places } from "./places.js";
import { actAt, clock, type Entry, type Kind } from "./tell.js";
import "../../css/timeline.css";

const FILTERS: { word: string; kinds: Kind[] }[] = [
  { word: "Acts", kinds: ["command", "turn", "rights", "question", "approval", "session"] },
  { word: "Commands", kinds: ["command"] },
  { word: "Turn", kinds: ["turn"] },
  { word: "Rights", kinds: ["rights"] },
  { word: "Asks", kinds: ["question", "approval"] },
  { word: "Visits", kinds: ["presence"] },
];
/** Drawn at once; the rest on demand. */
const ROWS = 300;
/** The output is there before the host has said that a command is over. */
const LOOK_AFTER_MS = 150;
/** Nearer to the end than this, one looks at the end. */
const END_PX = 60;

export default function Timeline({ live, screen }: PanelProps) {
  const [feed] = useState(() => new Feed(live));
  const [places] = useState(() => new Places(live));
  const [filter, setFilter] = useState("Acts");
  const [rows, setRows] = useState(ROWS);
  const past = useSignal<number | undefined>(undefined);
  const marked = useSignal<string | undefined>(undefined);
  const selected = useSignal<number | undefined>(undefined);
  const commands = useCommands(live, feed, places);
  useEffect(
    () => () => {
      feed.close();
      places.close();
    },
    [],
  );
  useEffect(() => {
    if (!screen) return;
    const line = () => (screen.term.hasSelection() ? screen.term.getSelectionPosition()?.end.y : undefined);
    const changed = screen.term.onSelectionChange(() => (selected.value = line()));
    return () => changed.dispose();
  }, [screen]);
  useSignalEffect(() => {
    if (past.value !== undefined) marked.value = actAt(feed.entries.value, past.value)?.key;
  });

  const all = stream(feed.entries.value, feed.questions.value);
  const kinds = FILTERS.find(({ word }) => word === filter)?.kinds;
  const chosen = all.filter(({ kind }) => kinds?.includes(kind));
  const acts = pointing({ live, screen }, feed, places, past, marked);
  const chosenAt = placeOf(all.find(({ key }) => key === marked.value), feed);
  useMoment(feed.loaded.value ? screen : undefined, all, acts.jump);
  const whoTyped = async () => {
    const act = selected.value === undefined ? undefined : await acts.whoTyped(selected.value);
    if (!act) return;
    setFilter("Acts");
    setRows(Math.max(ROWS, all.length - all.findIndex(({ key }) => key === act.key) + 20));
  };
  const toggle = () => (past.value === undefined ? void acts.scrub() : (past.value = undefined));
  return (
    <div class="timeline">
      <div class="timeline-top">
        <Filters chosen={filter} onChoose={setFilter} />
        <div class="timeline-acts">
          {selected.value !== undefined && past.value === undefined && (
            <button type="button" class="small" onClick={() => void whoTyped()}>
              Who typed this?
            </button>
          )}
          {chosenAt !== undefined && !phone && (
            <button type="button" class="small" onClick={() => void copyLink(live, chosenAt)}>
              Copy link
            </button>
          )}
          <button type="button" class="small" aria-pressed={past.value !== undefined} onClick={toggle}>
            <Icon name="past" size={15} /> Scrub<span class="visually-hidden"> back</span>
          </button>
        </div>
      </div>
      {feed.trouble.value && (
        <p class="banner" role="alert">
          <Line text={feed.trouble.value} />
        </p>
      )}
      <Acts feed={feed} commands={commands} screen={screen} chosen={chosen} rows={rows} marked={marked.value} onMore={() => setRows(rows + ROWS)} onJump={acts.jump} />
      {past.value !== undefined && (
        <Past
          live={live}
          kept={places.kept}
          offset={past.value}
          act={actAt(feed.entries.value, past.value)}
          stops={stops(feed.entries.value)}
          onOffset={(offset) => (past.value = offset)}
          onClose={() => (past.value = undefined)}
        />
      )}
    </div>
  );
}

/** From acts to the output, and back. */
function pointing({ live, screen }: PanelProps, feed: Feed, places: Places, past: Signal<number | undefined>, marked: Signal<string | undefined>) {
  const scrub = () =>
    attempt(async () => {
      await places.kept.read(live);
      past.value = places.kept.head;
    });
  const jump = (entry: Entry, offset: number) =>
    attempt(async () => {
      marked.value = entry.key;
      if (past.value !== undefined && offset >= places.kept.oldest) return void (past.value = offset);
      if (!screen) await places.kept.read(live);
      const came = screen ? await places.jump(screen, offset) : offset < places.kept.oldest ? "gone" : "lost";
      if (came === "gone") tell("That output is gone: the session keeps only the newest output.");
      // On a phone the panel lies over the terminal, so the past is shown in the panel.
      else if (came === "lost" || matchMedia("(max-width: 900px)").matches) past.value = offset;
    });
  const whoTyped = (line: number) =>
    attempt(async () => {
      const offset = screen && (await places.offsetOf(screen, line));
      const act = offset === undefined ? undefined : actAt(feed.entries.value, offset);
      if (!act) return void tell("Unknown: the journal has no act before that line.");
      marked.value = act.key;
      const said = `${act.by?.handle ?? "the host"} ${act.words} ${act.quoted ?? ""}`;
      tell(said, "plain", `at ${clock(act.timeMs)}, record ${act.seq}: the last act before that line`);
      return act;
    });
  return { scrub, jump, whoTyped };
}

/** Where acts that wrote stand, ascending. */
function stops(entries: readonly Entry[]): number[] {
  const places = entries.flatMap(({ at, writes }) => (writes && at !== undefined ? [at] : []));
  return [...new Set(places)].sort((a, b) => a - b);
}

function Filters({ chosen, onChoose }: { chosen: string; onChoose: (word: string) => void }) {
  return (
    <div class="filters" role="group" aria-label="Show">
      {FILTERS.map(({ word }) => (
        <button key={word} type="button" class="quiet small" aria-pressed={chosen === word} onClick={() => onChoose(word)}>
          {word}
        </button>
      ))}
    </div>
  );
}

/** Where an entry's output begins. */
function placeOf(entry: Entry | undefined, feed: Feed): number | undefined {
  return (entry?.seq === undefined ? undefined : feed.runs.value.get(entry.seq)?.from) ?? entry?.at;
}

/** An address that opens the session there. Whoever opens it needs a login of their own. */
function copyLink(live: LiveSession, offset: number): Promise<void> {
  const url = `${location.origin}${sessionPath(live.name, "timeline")}#at=${offset}`;
  return attempt(async () => {
    await navigator.clipboard.writeText(url);
    tell("The link to this moment is copied.");
  });
}

/** Goes to the moment that the address names, once. */
function useMoment(screen: Screen | undefined, entries: readonly Entry[], jump: (entry: Entry, offset: number) => void): void {
  useEffect(() => {
    const offset = Number(new URLSearchParams(location.hash.slice(1)).get("at") ?? "none");
    const entry = Number.isSafeInteger(offset) ? actAt(entries, offset) : undefined;
    // Once it is painted: before, there is no line to go to.
    if (screen && entry) void screen.attachment.ready.then(() => jump(entry, offset));
  }, [screen]);
}

/** How commands that were typed ended, by the shell's marks: looked at anew when something was typed, or the session does something else. */
function useCommands(live: LiveSession, feed: Feed, places: Places): readonly Marked[] {
  const [commands, setCommands] = useState<readonly Marked[]>([]);
  const typed = feed.entries.value.findLast(isTyped)?.key;
  const doing = live.doing.value?.since_ms;
  useEffect(() => {
    if (typed === undefined) return;
    // The host says what a session does a moment after its output.
    const timer = setTimeout(
      () =>
        void places.kept.read(live).then(
          () => setCommands(markedCommands(places.kept)),
          () => undefined,
        ),
      LOOK_AFTER_MS,
    );
    return () => clearTimeout(timer);
  }, [typed, doing, feed.entries.value.length]);
  return commands;
}

/** Keys that ended a line. */
function isTyped({ words, quoted, isRefused }: Entry): boolean {
  return words === "typed" && !isRefused && (quoted?.endsWith("⏎") ?? false);
}

interface ActsProps {
  feed: Feed;
  commands: readonly Marked[];
  screen: Screen | undefined;
  chosen: readonly Entry[];
  rows: number;
  marked: string | undefined;
  onMore: () => void;
  onJump: (entry: Entry, offset: number) => void;
}

function Acts({ feed, commands, screen, chosen, rows, marked, onMore, onJump }: ActsProps) {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const drawn = chosen.slice(-rows);
  // A reader at the end stays at the end; a reader further up stays there.
  useEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [drawn.length, drawn[0]?.key, drawn.at(-1)?.quoted]);
  useEffect(() => box.current?.querySelector('[data-marked="true"]')?.scrollIntoView({ block: "nearest" }), [marked, rows]);
  const onScroll = () => {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < END_PX;
  };
  return (
    <div class="timeline-box" ref={box} tabIndex={0} role="region" aria-label="What happened" onScroll={onScroll}>
      {chosen.length > drawn.length && (
        <p class="earlier">
          <button type="button" class="quiet small" onClick={onMore}>
            {chosen.length - drawn.length} earlier
          </button>
        </p>
      )}
      {feed.isCut.value && chosen.length === drawn.length && (
        <p class="earlier muted">
          For earlier events, run <code>holdfast journal</code>.
        </p>
      )}
      {feed.loaded.value && drawn.length === 0 && <p class="nothing muted">No such events.</p>}
      <ol class="acts">
        {drawn.map((entry, at) => {
          const day = dayBetween(drawn[at - 1], entry);
          const command = entry.at !== undefined && isTyped(entry) ? commandAt(commands, entry.at) : undefined;
          return <Row key={entry.key} entry={entry} day={day} command={command} took={command && screen?.tookAt(command.start)} run={entry.seq === undefined ? undefined : feed.runs.value.get(entry.seq)} isMarked={marked === entry.key} onJump={onJump} />;
        })}
      </ol>
    </div>
  );
}

function dayBetween(before: Entry | undefined, entry: Entry): string | undefined {
  const day = new Date(entry.timeMs).toDateString();
  if (before ? new Date(before.timeMs).toDateString() === day : day === new Date().toDateString()) return undefined;
  return new Date(entry.timeMs).toLocaleDateString(undefined, { weekday: "long", month: "long", day: "numeric" });
}

interface RowProps {
  entry: Entry;
  day: string | undefined;
  run: RunView | undefined;
  /** How the command that was typed ended, and how long it took, where that is known. */
  command: Marked | undefined;
  took: number | undefined;
  isMarked: boolean;
  onJump: (entry: Entry, offset: number) => void;
}

function Row({ entry, day, run, command, took, isMarked, onJump }: RowProps) {
  const { by, kind, timeMs, at, isRefused, isGrave } = entry;
  const offset = run?.from ?? at;
  const time = new Date(timeMs);
  const isPlain = (entry.isCode || kind === "session" || kind === "presence") && !isGrave && !isRefused;
  const inner = (
    <>
      <span class="act-head">
        <span class="act-words">
          {by ? <ActorChip handle={by.handle} you={by.id === myActor()?.id} /> : <span class="actor host">host</span>}{" "}
          <span class={`what ${isPlain ? "muted" : ""}`}>{entry.words}</span>
          {entry.quoted && !entry.isCode && (
            <>
              {" "}
              <Line class="quote" text={entry.quoted} />
            </>
          )}
          {entry.more && (
            <>
              {entry.isCode ? ", " : " "}
              <Line class="muted" text={entry.more} />
            </>
          )}
        </span>
        {run && <RunEnd run={run} />}
        {!run && command && <TypedEnd command={command} took={took} />}
      </span>
      {entry.quoted && entry.isCode && <Line class="act-code" text={entry.quoted} />}
    </>
  );
  return (
    <>
      {day && <li class="day muted">{day}</li>}
      <li class={`act of-${kind} ${isRefused ? "refused" : ""} ${isGrave ? "grave" : ""}`} data-marked={isMarked}>
        <time dateTime={time.toISOString()} title={time.toLocaleString()}>
          {time.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })}
        </time>
        <span class="act-dot" aria-hidden="true" />
        {offset === undefined ? (
          <div class="act-body">{inner}</div>
        ) : (
          <button
            type="button"
            class="act-body"
            aria-current={isMarked ? "true" : undefined}
            title="Go to this output"
            onClick={() => onJump(entry, offset)}
          >
            {inner}
          </button>
        )}
      </li>
    </>
  );
}

function RunEnd({ run }: { run: RunView }) {
  const took = duration(run.duration_ms);
  if (run.state === "starting" || run.state === "running") return <Running run={run} />;
  if (run.state === "lost") return <span class="end">lost</span>;
  const { exit_code: code } = run;
  const word = run.state === "cancelled" ? "cancelled" : code === undefined || code === null ? "status unknown" : `exit ${code}`;
  return (
    <span class={`end ${code === 0 ? "good" : code === undefined || code === null ? "" : "bad"}`}>
      {word} · {took}
    </span>
  );
}

function TypedEnd({ command: { end, status }, took }: { command: Marked; took: number | undefined }) {
  if (end === undefined) return <span class="end busy">runs</span>;
  const word = status === undefined ? "ended" : `exit ${status}`;
  return (
    <span class={`end ${status === 0 ? "good" : status === undefined ? "" : "bad"}`} title="By the marks that the shell prints">
      {took === undefined ? word : `${word} · ${duration(took)}`}
    </span>
  );
}

/** Counts on from what the host said: the two clocks may differ. */
function Running({ run }: { run: RunView }) {
  const [took, setTook] = useState(run.duration_ms);
  useEffect(() => {
    const from = Date.now() - run.duration_ms;
    const timer = setInterval(() => setTook(Date.now() - from), 1_000);
    return () => clearInterval(timer);
  }, [run]);
  return <span class="end busy">runs · {duration(took)}</span>;
}

/** `27 ms`, `1.4 s`, `3 min 20 s`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}
