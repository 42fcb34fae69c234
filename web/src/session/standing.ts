// How this person stands to a session: whose the turn is, and what they may do.

import type { SessionView } from "@holdfast/client";
import { login } from "../lib/login.js";

export type Standing =
  | { is: "mine"; queue: string[] }
  | { is: "free" }
  /** `asked`: this person waits for it. */
  | { is: "theirs"; holder: string; asked: boolean }
  | { is: "over" };

export function standing(view: SessionView, me: { id: string; handle: string } | undefined): Standing {
  if (view.life !== "running") return { is: "over" };
  const { holder, queue = [] } = view.turn;
  if (!holder) return { is: "free" };
  if (holder.actor.id === me?.id) return { is: "mine", queue };
  return { is: "theirs", holder: holder.actor.handle, asked: me !== undefined && queue.includes(me.handle) };
}

/** Rights as a set, narrowed to what this browser was let in with. */
export function rightsOf(rights: string): Set<string> {
  const held = rights.split(",").filter(Boolean);
  const can = login.value.state === "in" ? login.value.me.token?.can : undefined;
  if (can === undefined || can === null) return new Set(held);
  const most = can.split(/[ ,]+/);
  return new Set(held.filter((right) => most.includes(right)));
}
