// All flows: what needs a person first.

import { useState } from "preact/hooks";
import type { FlowView } from "@holdfast/client";
import { FlowAsk } from "../ask/FlowAsk.js";
import { flowQuestions, flows, flowsLoaded, needOf } from "../lib/flows.js";
import { route } from "../lib/route.js";
import { Flow } from "./Flow.js";
import { FlowRow } from "./Row.js";
import "../css/flows.css";

/** Rows of one group before one asks for more. */
const SHOWN_MAX = 100;

export default function Flows() {
  const where = route.value;
  if (where.view === "page" && where.item) return <Flow key={where.item} id={where.item} />;
  return <All />;
}

function All() {
  const [wanted, setWanted] = useState("");
  const sought = wanted.trim().toLowerCase();
  const fits = ({ id, name, by, status }: FlowView) => [id, name, by, status].some((text) => text.toLowerCase().includes(sought));
  const fitting = flows.value.filter(fits);
  const needing = fitting.filter((flow) => ["ask", "stuck", "blocked"].includes(needOf(flow)));
  const open = fitting.filter((flow) => needOf(flow) === "none");
  const ended = fitting.filter((flow) => needOf(flow) === "ended");
  if (flowsLoaded.value && flows.value.length === 0) {
    return (
      <div class="empty">
        <p class="muted">No flows yet.</p>
        <p class="muted">
          Start one with <code>holdfast flow start FILE</code>.
        </p>
      </div>
    );
  }
  return (
    <div class="flows">
      {flowQuestions.value.length > 0 && (
        <section aria-label="Questions" class="questions">
          {flowQuestions.value.map(({ flow, wait }) => (
            <FlowAsk key={`${flow.id} ${wait.n}`} flow={flow} wait={wait} where />
          ))}
        </section>
      )}
      {flows.value.length > 8 && <input class="field" type="search" aria-label="Search flows" placeholder="Search flows" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />}
      <Group title="Needs you" all={needing} />
      <Group title="Open" all={open} />
      <Group title="Ended" all={ended} />
      {flowsLoaded.value && fitting.length === 0 && <p class="muted">No flow fits.</p>}
    </div>
  );
}

function Group({ title, all }: { title: string; all: FlowView[] }) {
  const [most, setMost] = useState(SHOWN_MAX);
  if (all.length === 0) return null;
  return (
    <section class="group" aria-label={title}>
      <h2>
        {title} <span class="count">{all.length}</span>
      </h2>
      <div class="flow-rows">
        {all.slice(0, most).map((flow) => (
          <FlowRow key={flow.id} flow={flow} />
        ))}
      </div>
      {all.length > most && (
        <button type="button" class="quiet" onClick={() => setMost(most + SHOWN_MAX)}>
          Show {Math.min(SHOWN_MAX, all.length - most)} more
        </button>
      )}
    </section>
  );
}
