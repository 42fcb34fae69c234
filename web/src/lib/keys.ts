// Where the key of this browser's login lies: among what only this origin's pages reach, and in a form that they can use and not read.

const DATABASE = "holdfast";
const STORE = "keys";
const PAGE = "page";
/** Where a version before kept half of a token. */
const FORMER = "holdfast.page";

/** The key; a text where this browser has no ciphers here. */
export type Key = CryptoKey | string;

/** What is kept, if anything. */
export function kept(): Promise<Key | undefined> {
  return within("readonly", (keys) => keys.get(PAGE) as IDBRequest<Key | undefined>);
}

/** Keeps it from now on. */
export async function keep(key: Key): Promise<void> {
  localStorage.removeItem(FORMER);
  await within("readwrite", (keys) => keys.put(key, PAGE));
}

/** Forgets it. */
export async function forget(): Promise<void> {
  await within("readwrite", (keys) => keys.delete(PAGE));
}

async function within<T>(mode: IDBTransactionMode, ask: (keys: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const database = await open();
  try {
    return await done(ask(database.transaction(STORE, mode).objectStore(STORE)));
  } finally {
    database.close();
  }
}

function open(): Promise<IDBDatabase> {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  return done(opening);
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("this browser keeps nothing"));
  });
}
