// The link of an invite: `https://RELAY/i#CODE`. What stands behind the `#` stays with the browser that opens it.

import { HoldfastError } from "../errors.js";
import { toHex } from "../proof.js";
import { fromBase64 } from "./keys.js";
import type { Invited } from "./noise.js";

const VERSION = 1;
const RELAYS_MAX = 4;
const LINK_CHARS_MAX = 2048;

/** What an invite carries. */
export interface Invite extends Invited {
  /** The host's key, as hexadecimal digits. */
  host: string;
  /** What the host calls itself; may be empty. */
  name: string;
  /** Where it waits. */
  relays: string[];
}

/** Reads a link, or what stands behind its `#`. */
export function readInvite(link: string): Invite {
  const code = link.trim().split("#").at(-1) ?? "";
  const damaged = () => new HoldfastError("bad_request", "this is not an invite link, or a part of it is missing", { hint: "open the whole link" });
  if (code.length > LINK_CHARS_MAX) throw damaged();
  let bytes: Uint8Array;
  try {
    bytes = fromBase64(code);
  } catch {
    throw damaged();
  }
  let at = 0;
  const take = (count: number) => {
    if (at + count > bytes.length) throw damaged();
    return bytes.slice(at, (at += count));
  };
  const number = () => take(1)[0] as number;
  const text = () => {
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(take(number()));
    } catch {
      throw damaged();
    }
  };
  const version = number();
  if (version !== VERSION) throw new HoldfastError("bad_request", `this invite is of version ${version}, which this page does not know`);
  const [host, id, secret, count] = [toHex(take(32)), take(16), take(32), number()];
  if (count < 1 || count > RELAYS_MAX) throw damaged();
  const name = text();
  const relays = Array.from({ length: count }, text);
  if (at !== bytes.length || !relays.every(isRelay) || !/^[\w.-]{0,64}$/.test(name)) throw damaged();
  return { host, id, secret, name, relays };
}

/** `https://NAME[:PORT]`, or the same without TLS on this machine. */
export function isRelay(text: string): boolean {
  try {
    const { origin, protocol, hostname } = new URL(text);
    const isHere = ["127.0.0.1", "localhost", "[::1]"].includes(hostname);
    return origin === text && (protocol === "https:" || (protocol === "http:" && isHere));
  } catch {
    return false;
  }
}
