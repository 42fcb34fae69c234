// What people call the actors that are links: whoever made a link wrote down for whom.

import { signal } from "@preact/signals";
import { client } from "./store.js";

/** Actors that are links. */
export const SHARED = "device:share-";
/** What a link is called that nobody gave a name. */
export const UNNAMED = "link to ";

const names = signal<ReadonlyMap<string, string>>(new Map());
const asked = new Set<string>();

/** A link's name, where this login may know it. The first look at one that is not known asks for all. */
export function nameOf(handle: string): string | undefined {
  if (!handle.startsWith(SHARED)) return undefined;
  const known = names.value.get(handle);
  if (known === undefined && !asked.has(handle)) {
    asked.add(handle);
    queueMicrotask(() => void look());
  }
  return known;
}

let looking: Promise<void> | undefined;

function look(): Promise<void> {
  looking ??= client
    .call("token.list", {})
    .then(
      (tokens) => {
        const named = tokens.filter(({ actor, note }) => actor.startsWith(SHARED) && note && !note.startsWith(UNNAMED));
        if (named.length > 0) names.value = new Map(named.map(({ actor, note }) => [actor, note ?? ""]));
      },
      () => undefined,
    )
    .finally(() => (looking = undefined));
  return looking;
}
