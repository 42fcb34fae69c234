// What this browser keeps of hosts: among what only this origin's pages reach. Keys are there in a form that scripts use and cannot read.

import type { DeviceKey, SignedPage } from "@holdfast/client/channel";

/** A host that this browser is a device of. */
export interface Host {
  /** Its key: hexadecimal digits. */
  key: string;
  /** What it calls itself. */
  name: string;
  relays: string[];
  device: DeviceKey;
  /** By which handle it knows this browser. */
  handle: string;
  /** The session it was invited to; none: the whole host. */
  session?: string;
  /** When it was last opened. */
  usedMs: number;
  /** What its page remembers: sizes, colours. */
  stored: Record<string, string>;
}

const DATABASE = "holdfast-phone";
const HOSTS = "hosts";
const PAGES = "pages";

/** All hosts, the last one that was opened first. */
export async function hosts(): Promise<Host[]> {
  const all = await within(HOSTS, "readonly", (store) => store.getAll() as IDBRequest<Host[]>);
  return all.sort((a, b) => b.usedMs - a.usedMs);
}

export async function keepHost(host: Host): Promise<void> {
  await within(HOSTS, "readwrite", (store) => store.put(host, host.key));
}

/** Forgets a host: its key, its page and what that remembered. */
export async function forgetHost(key: string): Promise<void> {
  await within(HOSTS, "readwrite", (store) => store.delete(key));
  await within(PAGES, "readwrite", (store) => store.delete(key));
}

/** The page of a host as it was kept. It must be checked before it is used. */
export function page(key: string): Promise<SignedPage | undefined> {
  return within(PAGES, "readonly", (store) => store.get(key) as IDBRequest<SignedPage | undefined>);
}

export async function keepPage(key: string, page: SignedPage): Promise<void> {
  await within(PAGES, "readwrite", (store) => store.put(page, key));
}

async function within<T>(name: string, mode: IDBTransactionMode, ask: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const database = await open();
  try {
    return await done(ask(database.transaction(name, mode).objectStore(name)));
  } finally {
    database.close();
  }
}

function open(): Promise<IDBDatabase> {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => {
    for (const name of [HOSTS, PAGES]) opening.result.createObjectStore(name);
  };
  return done(opening);
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("this browser keeps nothing"));
  });
}
