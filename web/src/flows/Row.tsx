// A flow in a line: what it does, what it waits for and since when.

import type { FlowView } from "@holdfast/client";
import { myActor } from "../lib/login.js";
import { follow, flowPath } from "../lib/route.js";
import { span } from "../lib/text.js";
import { ActorChip } from "../ui/Actor.js";
import { Line } from "../ui/Text.js";
import { doing, waitsFor } from "./model.js";

export function FlowPill({ flow }: { flow: FlowView }) {
  const { word, tone } = doing(flow);
  return (
    <span class={`state ${tone}`}>
      <span class="dot" aria-hidden="true" />
      {word}
    </span>
  );
}

/** What it gave, or why it failed. */
export function gave({ value }: FlowView): string {
  return typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);
}

export function FlowRow({ flow }: { flow: FlowView }) {
  const waits = flow.waits_for ?? [];
  const since = flow.ended_ms ?? waits[0]?.since_ms ?? flow.started_ms;
  const about = flow.state === "blocked" ? (flow.why ?? "") : waits.length > 0 ? waits.map(waitsFor).join(" · ") : gave(flow);
  return (
    <a class="flow-row" href={flowPath(flow.id)} onClick={follow}>
      <Line class="flow-id" text={flow.id} />
      <FlowPill flow={flow} />
      <Line class="flow-about muted" text={about} />
      <ActorChip handle={flow.by} you={flow.by === myActor()?.handle} />
      <time class="muted" dateTime={new Date(since).toISOString()} title={new Date(since).toLocaleString()}>
        {span(Date.now() - since)}
      </time>
    </a>
  );
}
