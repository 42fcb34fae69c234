// Every flow of the host as it is now. One question waits at the host until something changes; while nothing does, it is asked anew
// once a minute, and nothing else happens.

import { computed, signal } from "@preact/signals";
import { HoldfastError, type FlowView, type FlowWait } from "@holdfast/client";
import { login, myActor } from "./login.js";
import { client, link } from "./store.js";

/** The host answers after a minute at the latest. */
const WAIT_MS = 55_000;
/** Flows that change all the time are looked at this often. */
const PAUSE_MS = 250;
/** After a failure: a service that starts, or a host that is restarted. */
const AGAIN_MS = 3_000;

const all = signal<ReadonlyMap<string, FlowView>>(new Map());
/** The first list is there. */
export const flowsLoaded = signal(false);

/** What a flow waits for from a person. */
export type FlowNeed = "ask" | "stuck" | "blocked" | "none" | "ended";
const NEEDS: FlowNeed[] = ["ask", "stuck", "blocked", "none", "ended"];

export function needOf({ state, waits_for = [] }: FlowView): FlowNeed {
  if (["completed", "failed", "cancelled", "continued"].includes(state)) return "ended";
  if (state === "blocked") return "blocked";
  if (waits_for.some(({ stuck }) => stuck)) return "stuck";
  return waits_for.some(({ kind }) => kind === "ask") ? "ask" : "none";
}

/** All flows: what needs this person first, then the newest. */
export const flows = computed(() => {
  const needs = new Map([...all.value.values()].map((flow) => [flow, NEEDS.indexOf(needOf(flow))]));
  return [...needs.keys()].sort((a, b) => needs.get(a)! - needs.get(b)! || b.started_ms - a.started_ms);
});

export function flowNamed(id: string): FlowView | undefined {
  return all.value.get(id);
}

/** A question of a flow. */
export interface FlowQuestion {
  flow: FlowView;
  wait: FlowWait;
}

/** Open questions, oldest first. */
export const flowQuestions = computed<FlowQuestion[]>(() =>
  flows.value
    .flatMap((flow) => (needOf(flow) === "ended" ? [] : (flow.waits_for ?? []).filter(({ kind }) => kind === "ask").map((wait) => ({ flow, wait }))))
    .sort((a, b) => a.wait.since_ms - b.wait.since_ms),
);

/** Flows that cannot go on without a person. */
export const flowsWaiting = computed(() => flows.value.filter((flow) => ["ask", "stuck", "blocked"].includes(needOf(flow))).length);

/** Takes in what an act answered. */
export function takeFlow(flow: FlowView): void {
  all.value = new Map(all.value).set(flow.id, { ...flow, history: [] });
}

/** Whether this login may answer, signal, cancel and retry; what the service allows is told when it is tried. */
export function maySteer(flow: FlowView): boolean {
  const me = myActor()?.handle;
  const can = login.value.state === "in" ? login.value.me.token?.can : "";
  const carries = can === undefined || can === null || can.split(/[ ,]+/).includes("run");
  return carries && (isHuman() || me === flow.by);
}

export function isHuman(): boolean {
  return myActor()?.handle.startsWith("human:") ?? false;
}

let isWatching = false;
let asksNow: AbortController | undefined;

/** Watches until the page is left. */
export function watchFlows(): void {
  if (isWatching) return;
  isWatching = true;
  // Where there are no flows yet nothing can tell of the first: who comes back to the page may have started one.
  addEventListener("focus", () => all.value.size === 0 && asksNow?.abort());
  void watch();
}

async function watch(): Promise<void> {
  let after = 0;
  for (let wait_ms = 0; ; wait_ms = WAIT_MS) {
    try {
      asksNow = new AbortController();
      const signal = asksNow.signal;
      const changed = await client.call("flow.list", { all: true, after, wait_ms }, { signal });
      const newest = Math.max(0, ...changed.map((flow) => flow.changed ?? 0));
      // Another life of the service, whose clock was set back, begins anew.
      const isAnew = changed.length > 0 && newest <= after;
      if (changed.length > 0) all.value = new Map([...(isAnew ? [] : all.value), ...changed.map((flow) => [flow.id, flow] as const)]);
      after = isAnew ? newest : Math.max(after, newest);
      flowsLoaded.value = true;
      if (changed.length > 0) await pause(PAUSE_MS);
    } catch (error) {
      if (client.link.isClosed) return;
      if (asksNow?.signal.aborted) {
        wait_ms = -WAIT_MS;
        continue;
      }
      // A guest has no flows, and a host of an earlier version has none to tell of.
      if (error instanceof HoldfastError && ["denied", "no_such_actor", "unknown_operation", "bad_request"].includes(error.code)) return;
      await pause(AGAIN_MS);
      if (link.value !== "connected") await client.connect().catch(() => undefined);
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
