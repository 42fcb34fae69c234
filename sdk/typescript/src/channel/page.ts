// The page that a host signed: fetched through the channel, and checked by the host's key each time it is used.

import { Connection } from "../connection.js";
import { HoldfastError } from "../errors.js";
import { fields, fromHex, toHex } from "../proof.js";
import type { PageView } from "../types.js";
import { relayDialer } from "./dialer.js";
import type { Way } from "./reach.js";
import { NO_BYTES } from "../frame.js";

/** A page with its files. It can be put into IndexedDB as it is. */
export interface SignedPage extends PageView {
  contents: Uint8Array<ArrayBuffer>[];
}

/** Fetches the host's page. One that is kept is not sent again where it is still the host's. */
export async function fetchPage(way: Way, program: string, kept: SignedPage | undefined, signal: AbortSignal): Promise<SignedPage> {
  const connection = await Connection.open(relayDialer(way), program, () => undefined, signal);
  try {
    const asked = kept ? { have: kept.signature } : {};
    const { result, bytes } = await connection.request("page.get", asked, NO_BYTES);
    const view = result as PageView;
    if (kept && view.signature === kept.signature) return await checkPage(way.host, kept);
    let at = 0;
    const contents = view.files.map((file) => bytes.slice(at, (at += file.bytes)));
    return await checkPage(way.host, { ...view, contents });
  } finally {
    connection.close();
  }
}

/** The page, where the host with this key signed it and it is whole; else it fails. */
export async function checkPage(host: string, page: SignedPage): Promise<SignedPage> {
  const refused = (why: string) => new HoldfastError("protocol", `the page was not signed by this host: ${why}`, { hint: "it was not opened" });
  const { version, files, signature, contents } = page;
  for (const [at, file] of files.entries()) {
    const digest = await crypto.subtle.digest("SHA-256", contents[at] ?? NO_BYTES.slice());
    if (toHex(new Uint8Array(digest)) !== file.digest) throw refused(`${file.name} has other bytes`);
  }
  const encoder = new TextEncoder();
  const signed = fields("holdfast page v1", encoder.encode(version), ...files.flatMap(({ name, digest }) => [encoder.encode(name), fromHex(digest)]));
  const key = await crypto.subtle.importKey("raw", fromHex(host), "Ed25519", false, ["verify"]);
  if (!(await crypto.subtle.verify("Ed25519", key, fromHex(signature), signed))) throw refused("its signature is another key's");
  return page;
}
