// Who came by a link that somebody shared: a guest has no machine here to run a program on.

import type { Me } from "./login.js";

const STORED = "holdfast.guest";

/** Looks at the address before the login takes what it brings: a token in it is somebody's link. */
export function noteLink(): void {
  if (new URLSearchParams(location.hash.slice(1)).has("token")) localStorage.setItem(STORED, "yes");
}

/** Remembers who is in, for when they are no more. */
export function noteLogin({ actor }: Me): void {
  localStorage.setItem(STORED, isGuest(actor.handle) ? "yes" : "no");
}

export function wasGuest(): boolean {
  return localStorage.getItem(STORED) === "yes";
}

function isGuest(handle: string): boolean {
  return handle.startsWith("device:");
}

/** Whether this login may start sessions: a right of people and agents, where its token does not leave it out. */
export function mayStart({ actor, known, token }: Me): boolean {
  if (known === false) return false;
  const isOf = (kind: string) => actor.handle.startsWith(`${kind}:`);
  const can = token?.can;
  return (isOf("human") || isOf("agent")) && (can === undefined || can === null || can.split(/[ ,]+/).includes("start"));
}
