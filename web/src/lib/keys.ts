// Where the key of this browser's login lies: among what only this origin's pages reach, and in a form that they can use and not read.

import { within } from "./database.js";

const STORE = "keys";
const DATABASE = { name: "holdfast", stores: [STORE] };
const PAGE = "page";
/** Where a version before kept half of a token. */
const FORMER = "holdfast.page";

/** The key; a text where this browser has no ciphers here. */
export type Key = CryptoKey | string;

/** What is kept, if anything. */
export function kept(): Promise<Key | undefined> {
  return within(DATABASE, STORE, "readonly", (keys) => keys.get(PAGE) as IDBRequest<Key | undefined>);
}

/** Keeps it from now on. */
export async function keep(key: Key): Promise<void> {
  localStorage.removeItem(FORMER);
  await within(DATABASE, STORE, "readwrite", (keys) => keys.put(key, PAGE));
}

/** Forgets it. */
export async function forget(): Promise<void> {
  await within(DATABASE, STORE, "readwrite", (keys) => keys.delete(PAGE));
}
