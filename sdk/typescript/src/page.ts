// What a page shows in place of a token: that it has the key it got when it logged in. The key itself is sent to nobody.
//
// Whoever has the host's port while the host is away is sent this browser's cookie. So the page asks first, with a random text, and
// answers nothing unless the proof shows that who listens there knows the key too. What it answers is good for that host alone.

import { HoldfastError, disconnected } from "./errors.js";

/** What a page shows begins with this. */
const PAGE = "page_";
const NONCE_BYTES = 16;

/** What a host answers to `POST /v1/challenge`. */
export interface Challenge {
  challenge: string;
  /** That who asks knows the key. */
  proof: string;
}

/** The key of a login, from `page` in the answer of `POST /v1/login`, in a form that no script can read it from. */
export function pageKey(page: string): Promise<CryptoKey> {
  const bytes = new TextEncoder().encode(page.slice(PAGE.length));
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
}

/** What to show in place of a token. Fails with `disconnected` where something else than the host of this login answers. */
export async function showPage(key: CryptoKey, ask: (nonce: string) => Promise<Challenge>): Promise<string> {
  const nonce = hex(crypto.getRandomValues(new Uint8Array(NONCE_BYTES)));
  const { challenge, proof } = await ask(nonce);
  if (!(await crypto.subtle.verify("HMAC", key, unhex(proof), words("host", nonce, challenge)))) {
    throw new HoldfastError("disconnected", "something else than your host answers at this address", {
      hint: "on the host's machine: holdfast host status",
    });
  }
  const answer = await crypto.subtle.sign("HMAC", key, words("page", nonce, challenge));
  return `${PAGE}${nonce}.${challenge}.${hex(new Uint8Array(answer))}`;
}

function words(...all: string[]): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(all.join("\n"));
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function unhex(text: unknown): Uint8Array<ArrayBuffer> {
  if (typeof text !== "string" || !/^([0-9a-f]{2}){32}$/.test(text)) throw disconnected("this is no proof of a host");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
