// What this browser keeps of hosts: among what only this origin's pages reach. Keys are there in a form that scripts use and cannot read.

import { within } from "../src/lib/database.js";
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

const HOSTS = "hosts";
const PAGES = "pages";
const DATABASE = { name: "holdfast-phone", stores: [HOSTS, PAGES] };

/** All hosts, the last one that was opened first. */
export async function hosts(): Promise<Host[]> {
  const all = await within(DATABASE, HOSTS, "readonly", (store) => store.getAll() as IDBRequest<Host[]>);
  return all.sort((a, b) => b.usedMs - a.usedMs);
}

export async function keepHost(host: Host): Promise<void> {
  await within(DATABASE, HOSTS, "readwrite", (store) => store.put(host, host.key));
}

/** Forgets a host: its key, its page and what that remembered. */
export async function forgetHost(key: string): Promise<void> {
  await within(DATABASE, HOSTS, "readwrite", (store) => store.delete(key));
  await within(DATABASE, PAGES, "readwrite", (store) => store.delete(key));
}

/** The page of a host as it was kept. It must be checked before it is used. */
export function page(key: string): Promise<SignedPage | undefined> {
  return within(DATABASE, PAGES, "readonly", (store) => store.get(key) as IDBRequest<SignedPage | undefined>);
}

export async function keepPage(key: string, page: SignedPage): Promise<void> {
  await within(DATABASE, PAGES, "readwrite", (store) => store.put(page, key));
}
