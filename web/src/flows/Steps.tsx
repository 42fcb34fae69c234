// The steps of a flow on a line of time: a bar each, its attempts in it, idle time folded.

import { useState } from "preact/hooks";
import type { FlowView } from "@holdfast/client";
import { flowPath, follow, sessionPath } from "../lib/route.js";
import { find } from "../lib/store.js";
import { span } from "../lib/text.js";
import { ActorChip } from "../ui/Actor.js";
import { Line, Lines } from "../ui/Text.js";
import { left, line, took, type Line as TimeLine, type Step } from "./model.js";

/** Steps that are drawn before one asks for more. */
const STEPS_MAX = 200;
/** Of the line's width: a bar that is shorter could not be seen. */
const BAR_MIN = 0.006;

export function Steps({ all, flow, now }: { all: Step[]; flow: FlowView; now: number }) {
  const [most, setMost] = useState(STEPS_MAX);
  const shown = all.slice(-most);
  const start = shown.length < all.length ? (shown[0]?.from ?? flow.started_ms) : flow.started_ms;
  const last = Math.max(...shown.map(({ from, to = 0 }) => Math.max(from, to)), start);
  const drawn = line(shown, start, shown.some(({ state }) => state === "open") ? Math.max(now, last) : last);
  return (
    <>
      {shown.length < all.length && (
        <button type="button" class="quiet" onClick={() => setMost(most + STEPS_MAX)}>
          Show earlier steps
        </button>
      )}
      <ol class="steps" start={(shown[0]?.n ?? 0) + 1}>
        {drawn.folds.length > 0 && <Folds drawn={drawn} />}
        {shown.map((step) => (
          <StepRow key={step.n} step={step} drawn={drawn} now={now} />
        ))}
      </ol>
    </>
  );
}

function Folds({ drawn }: { drawn: TimeLine }) {
  return (
    <li class="step folds" aria-hidden="true">
      <span />
      <span class="track">
        {drawn.folds.map(({ at, ms }) => (
          <span key={at} class="fold-mark" style={{ left: `${at * 100}%` }} title={`${left(ms)} in which nothing ran`}>
            ⋯ {left(ms)}
          </span>
        ))}
      </span>
      <span />
    </li>
  );
}

const WORDS = { open: "open", done: "done", failed: "failed", stopped: "stopped" };

function StepRow({ step, drawn, now }: { step: Step; drawn: TimeLine; now: number }) {
  const { wait } = step;
  const tone = wait?.stuck ? "stuck" : step.state;
  const time = step.to === undefined ? (wait?.until_ms ? `${left(wait.until_ms - now)} left` : took(now - step.from)) : took(step.to - step.from);
  return (
    <li class={`step ${tone}`}>
      <span class="step-name">
        <span class="step-number">{step.n + 1}.</span> <Line text={step.name} />
        {step.attempts.length > 1 && <span class="attempts">{step.attempts.length} attempts</span>}
      </span>
      <span class="track" role="img" aria-label={`${step.kind}, ${wait?.stuck ? "stuck" : WORDS[step.state]}, ${time}`}>
        {bars(step, drawn).map(({ from, to, failed }) => (
          <span key={from} class={`bar-of ${failed ? "failed" : tone}`} title={failed} style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }} />
        ))}
      </span>
      <span class="step-time">{time}</span>
      <span class="step-more">
        <Outcome step={step} now={now} />
      </span>
    </li>
  );
}

/** Where its bars are: one for each attempt of a run, one for everything else. */
function bars(step: Step, drawn: TimeLine): { from: number; to: number; failed: string | undefined }[] {
  const all = step.kind === "run" ? step.attempts : [{ from: step.from, to: step.to, failed: undefined }];
  return all.map(({ from, to, failed }) => {
    const begin = Math.min(drawn.place(from), 1 - BAR_MIN);
    return { from: begin, to: Math.max(begin + BAR_MIN, to === undefined ? 1 : drawn.place(to)), failed };
  });
}

function Outcome({ step, now }: { step: Step; now: number }) {
  const { wait } = step;
  return (
    <>
      {step.state === "open" && wait && <span class="muted">{since(step, now)}</span>}
      {wait?.held_up && <Line class="held" text={wait.held_up} />}
      {wait?.stuck && <Line class="held" text={wait.stuck} />}
      {step.state !== "open" && step.outcome !== "" && <Line class={step.state === "failed" ? "bad-word" : "mono"} text={step.outcome} />}
      {step.by && (
        <span class="muted">
          by <ActorChip handle={step.by} />
        </span>
      )}
      {wait?.flow && (
        <a href={flowPath(wait.flow)} onClick={follow}>
          <Line text={wait.flow} />
        </a>
      )}
      {step.session && <SessionLink session={step.session} isOpen={step.state === "open"} />}
      {(step.output.includes("\n") || step.kind === "run") && (
        <details class="step-details">
          <summary>Details</summary>
          <Line class="command" text={step.about} />
          {step.attempts.some(({ failed }) => failed) && (
            <ul class="tries">
              {step.attempts.map(({ from, to, failed, session }, at) => (
                <li key={at}>
                  Attempt {at + 1}: {failed ?? (step.state === "open" ? "on" : "ok")}
                  {to !== undefined && ` after ${took(to - from)}`} {session && at + 1 < step.attempts.length && <SessionLink session={session} />}
                </li>
              ))}
            </ul>
          )}
          {step.output !== "" && <Lines class="quoted" text={step.output} />}
        </details>
      )}
    </>
  );
}

/** A session is cleared away some time after it has ended. */
function SessionLink({ session, isOpen }: { session: string; isOpen?: boolean }) {
  const live = find(session);
  if (!live) return <span class="muted">its session is gone</span>;
  return (
    <a href={sessionPath(live.view.value.life === "running" ? live.name : live.id)} onClick={follow}>
      {isOpen ? "runs in " : "ran in "}
      <Line text={live.name} />
    </a>
  );
}

function since({ kind, about, wait }: Step, now: number): string {
  const ago = wait && now - wait.since_ms >= 5_000 ? `for ${span(now - wait.since_ms)}` : "";
  switch (kind) {
    case "sleep":
      return `sleeps ${about}`;
    case "until":
      return `until ${about}`;
    case "ask":
      return `asks ${ago}`.trim();
    case "signal":
      return `waits for the signal ${ago}`;
    case "wait":
      return `waits for ${about} ${ago}`;
    case "child":
      return `${about} ${ago}`;
    default:
      return wait?.session ? ago : `starts ${ago}`.trim();
  }
}
