// One flow: what it waits for and what can be done about it, its steps on a line, and the table of its history.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FlowView } from "@holdfast/client";
import { FlowAsk } from "../ask/FlowAsk.js";
import { flowNamed, flows, flowsLoaded, needOf } from "../lib/flows.js";
import { myActor } from "../lib/login.js";
import { flowPath, follow } from "../lib/route.js";
import { client } from "../lib/store.js";
import { span } from "../lib/text.js";
import { ActorChip } from "../ui/Actor.js";
import { Line, Lines } from "../ui/Text.js";
import { Acts, Blocked, Signal, Stuck } from "./acts.js";
import { steps, told, type Recorded } from "./model.js";
import { FlowPill, FlowRow, gave } from "./Row.js";
import { Steps } from "./Steps.js";

/** Rows of the history that are drawn before one asks for more: a flow can have 100,000. */
const ROWS_MAX = 500;

interface Known {
  view: FlowView;
  history: Recorded[];
}

/** A flow with its history: read once, and then what is new whenever the list says that it changed. */
function useFlow(id: string, generation: number | undefined): { known?: Known; missing?: string } {
  const [state, setState] = useState<{ known?: Known; missing?: string }>({});
  const known = useRef<Known | undefined>(undefined);
  const asked = useRef(0);
  const listed = flowNamed(id);
  useEffect(() => {
    known.current = undefined;
  }, [generation]);
  useEffect(() => {
    const mine = ++asked.current;
    const read = async () => {
      const before = generation === undefined ? known.current : undefined;
      const after = before?.history.length ?? 0;
      const view = await client.call("flow.get", { flow: id, after, ...(generation === undefined ? {} : { generation }) });
      if (mine !== asked.current) return;
      const isAnew = before !== undefined && before.view.generation !== view.generation;
      if (isAnew) {
        known.current = undefined;
        return read();
      }
      const history = [...(before?.history ?? []), ...((view.history ?? []) as unknown as Recorded[])];
      known.current = { view, history };
      setState({ known: known.current });
    };
    read().catch((error: unknown) => mine === asked.current && !known.current && setState({ missing: error instanceof Error ? error.message : String(error) }));
  }, [id, listed?.changed, generation]);
  return state;
}

/** The time, by the second while something is open. */
function useNow(isOpen: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    setNow(Date.now());
    if (!isOpen) return;
    const timer = setInterval(() => document.visibilityState === "visible" && setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isOpen]);
  return now;
}

export function Flow({ id }: { id: string }) {
  const [generation, setGeneration] = useState<number | undefined>(undefined);
  const { known, missing } = useFlow(id, generation);
  const isOpen = known !== undefined && needOf(known.view) !== "ended";
  const now = useNow(isOpen);
  const shown = useMemo(() => (known ? steps(known.history, known.view.waits_for) : []), [known]);
  if (!known) {
    if (missing && flowsLoaded.value) return <p class="muted">{missing}</p>;
    return <p class="muted" aria-busy="true" />;
  }
  const { view, history } = known;
  const asks = generation === undefined ? (view.waits_for ?? []).filter(({ kind }) => kind === "ask") : [];
  const children = flows.value.filter(({ parent }) => parent === id);
  return (
    <div class="flow">
      <Top view={view} history={history} now={now} />
      <Generations view={view} latest={flowNamed(id)?.generation ?? view.generation ?? 1} onChoose={setGeneration} />
      {generation === undefined && <Blocked flow={view} />}
      {asks.length > 0 && (
        <section aria-label="Questions" class="questions">
          {asks.map((wait) => (
            <FlowAsk key={wait.n} flow={view} wait={wait} />
          ))}
        </section>
      )}
      {generation === undefined && <Stuck flow={view} />}
      {generation === undefined && <Signal flow={view} />}
      <section class="group" aria-label="Steps">
        <h2>
          Steps <span class="count">{shown.length}</span>
        </h2>
        <Steps all={shown} flow={view} now={now} />
      </section>
      {children.length > 0 && (
        <section class="group" aria-label="Flows it started">
          <h2>Flows it started</h2>
          <div class="flow-rows">
            {children.map((child) => (
              <FlowRow key={child.id} flow={child} />
            ))}
          </div>
        </section>
      )}
      <History history={history} names={new Map(shown.map((step) => [step.n, step]))} />
    </div>
  );
}

function Top({ view, history, now }: { view: FlowView; history: Recorded[]; now: number }) {
  const started = history[0];
  const code = String(started?.["code"] ?? "");
  const input = started?.["input"];
  const end = view.ended_ms ?? now;
  return (
    <header class="flow-top">
      <div class="flow-state">
        <FlowPill flow={view} />
        <span class="muted">
          {view.ended_ms ? `took ${span(end - view.started_ms)}` : `for ${span(end - view.started_ms)}`} · {view.events} events
        </span>
        <Acts flow={view} />
      </div>
      <dl class="facts">
        <dt>Flow</dt>
        <dd>
          <Line text={view.name} />
        </dd>
        <dt>Started</dt>
        <dd>
          {new Date(view.started_ms).toLocaleString()} by <ActorChip handle={view.by} you={view.by === myActor()?.handle} />
        </dd>
        {view.parent && (
          <>
            <dt>Part of</dt>
            <dd>
              <a href={flowPath(view.parent)} onClick={follow}>
                <Line text={view.parent} />
              </a>
            </dd>
          </>
        )}
        {input !== undefined && input !== null && input !== "" && (
          <>
            <dt>Input</dt>
            <dd>
              <Line class="mono" text={typeof input === "string" ? input : JSON.stringify(input)} />
            </dd>
          </>
        )}
        <dt>Code</dt>
        <dd title={code}>{code ? <code>{code.slice(0, 12)}</code> : <span class="muted">a worker's</span>}</dd>
        {gave(view) !== "" && (
          <>
            <dt>{view.state === "completed" ? "Result" : "Reason"}</dt>
            <dd>
              <Lines text={gave(view)} />
            </dd>
          </>
        )}
      </dl>
    </header>
  );
}

function Generations({ view, latest, onChoose }: { view: FlowView; latest: number; onChoose: (generation: number | undefined) => void }) {
  const at = view.generation ?? 1;
  if (latest <= 1) return null;
  return (
    <p class="generations">
      <button type="button" class="small" disabled={at <= 1} onClick={() => onChoose(at - 1)}>
        Older
      </button>
      <span>
        History {at} of {latest}
      </span>
      <button type="button" class="small" disabled={at >= latest} onClick={() => onChoose(at + 1 >= latest ? undefined : at + 1)}>
        Newer
      </button>
    </p>
  );
}

function History({ history, names }: { history: Recorded[]; names: ReadonlyMap<number, ReturnType<typeof steps>[number]> }) {
  const [isOpen, setIsOpen] = useState(false);
  const [most, setMost] = useState(ROWS_MAX);
  const first = Math.max(0, history.length - most);
  return (
    <details class="flow-history" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        History <span class="count">{history.length} events</span>
      </summary>
      {isOpen && first > 0 && (
        <button type="button" class="quiet" onClick={() => setMost(most + ROWS_MAX)}>
          Show earlier events
        </button>
      )}
      {isOpen && (
        <div class="flow-table" tabIndex={0} role="region" aria-label="History of the flow">
          <table>
            <thead>
              <tr>
                <th scope="col">#</th>
                <th scope="col">Time</th>
                <th scope="col">Event</th>
                <th scope="col">Step</th>
                <th scope="col">Details</th>
              </tr>
            </thead>
            <tbody>
              {history.slice(first).map((event, at) => {
                const { what, step, more } = told(event, names);
                return (
                  <tr key={first + at}>
                    <td>{first + at + 1}</td>
                    <td>
                      <time dateTime={new Date(event.at_ms).toISOString()} title={new Date(event.at_ms).toLocaleString()}>
                        {new Date(event.at_ms).toLocaleTimeString()}
                      </time>
                    </td>
                    <td>{what}</td>
                    <td>
                      <Line text={step} />
                    </td>
                    <td>
                      <Line text={more.slice(0, 300)} />
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
