// How the sessions of Home stand: in which order, and in which groups. Kept for each device.

import { signal } from "@preact/signals";
import type { LiveSession } from "../lib/store.js";
import { stateShown } from "../ui/State.js";

interface Choice {
  words: string;
}

const STORED_ORDER = "holdfast.order";
/** How sessions stand within their group. */
const ORDERS: Record<string, Choice & { compare: (a: LiveSession, b: LiveSession) => number }> = {
  newest: { words: "Newest first", compare: (a, b) => b.view.value.created_ms - a.view.value.created_ms },
  name: { words: "By name", compare: (a, b) => a.name.localeCompare(b.name) },
  directory: { words: "By directory", compare: (a, b) => a.view.value.cwd.localeCompare(b.view.value.cwd) || a.name.localeCompare(b.name) },
};
const order = signal(localStorage.getItem(STORED_ORDER) ?? "newest");

const STORED_GROUPS = "holdfast.groups";
/** By what sessions that need nobody are grouped. */
const GROUPS: Record<string, Choice & { of: (live: LiveSession) => string }> = {
  none: { words: "No groups", of: () => "Sessions" },
  directory: { words: "Group by directory", of: (live) => live.view.value.cwd },
  // `api-web` and `api.db` belong together: whoever names sessions so has groups of their own making.
  name: { words: "Group by first word of name", of: ({ name }) => /^[^._-]+/.exec(name)?.[0] ?? name },
  state: { words: "Group by state", of: (live) => stateShown(live).word },
  turn: { words: "Group by who has the turn", of: (live) => live.view.value.turn.holder?.actor.handle ?? "turn is free" },
};
const groups = signal(localStorage.getItem(STORED_GROUPS) ?? "none");

export function inOrder(all: LiveSession[]): LiveSession[] {
  const { compare } = ORDERS[order.value] ?? { compare: () => 0 };
  return [...all].sort(compare);
}

/** Sessions in their groups, both in order. */
export function grouped(all: LiveSession[]): { title: string; all: LiveSession[] }[] {
  const { of } = GROUPS[groups.value] ?? { of: () => "Sessions" };
  const found = new Map<string, LiveSession[]>();
  for (const live of inOrder(all)) found.set(of(live), [...(found.get(of(live)) ?? []), live]);
  return [...found].map(([title, members]) => ({ title, all: members })).sort((a, b) => a.title.localeCompare(b.title));
}

export function Order() {
  return (
    <span class="orders">
      <Select label="Groups of sessions" stored={STORED_GROUPS} of={groups} choices={GROUPS} />
      <Select label="Order of sessions" stored={STORED_ORDER} of={order} choices={ORDERS} />
    </span>
  );
}

function Select({ label, stored, of, choices }: { label: string; stored: string; of: { value: string }; choices: Record<string, Choice> }) {
  const choose = (chosen: string) => {
    of.value = chosen;
    localStorage.setItem(stored, chosen);
  };
  return (
    <select class="order" aria-label={label} value={of.value} onChange={(event) => choose(event.currentTarget.value)}>
      {Object.entries(choices).map(([id, { words }]) => (
        <option key={id} value={id}>
          {words}
        </option>
      ))}
    </select>
  );
}
