// A device's key: one Ed25519 key in its two forms, as spec/channel.md has them. Both are the browser's to keep: scripts use them and
// cannot read them. The secret they were made from is forgotten as soon as they are.

import { HoldfastError } from "../errors.js";
import { fromHex, join, toHex } from "../proof.js";

/** What stands before 32 secret bytes in a PKCS #8 file (RFC 8410). */
const PKCS8_ED25519 = fromHex("302e020100300506032b657004220420");
const PKCS8_X25519 = fromHex("302e020100300506032b656e04220420");
/** The prime of Curve25519's field. */
const P = 2n ** 255n - 19n;

/** A key of this device. It can be put into IndexedDB as it is. */
export interface DeviceKey {
  /** The public key, as the host knows it: hexadecimal digits. */
  id: string;
  /** Signs. */
  sign: CryptoKey;
  /** Exchanges: the same key in its X25519 form. */
  exchange: CryptoKey;
}

/** A fresh key, or that of a secret. Fails where the browser has no such keys. */
export async function newDeviceKey(secret: Uint8Array<ArrayBuffer> = crypto.getRandomValues(new Uint8Array(32))): Promise<DeviceKey> {
  try {
    const pkcs8 = join(PKCS8_ED25519, secret);
    const readable = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", true, ["sign"]);
    const { x = "" } = await crypto.subtle.exportKey("jwk", readable);
    const sign = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", false, ["sign"]);
    const scalar = new Uint8Array(await crypto.subtle.digest("SHA-512", secret)).slice(0, 32);
    const exchange = await exchangeSecret(scalar);
    return { id: toHex(fromBase64(x)), sign, exchange };
  } catch (cause) {
    throw new HoldfastError("bad_request", "this browser cannot make the keys that Holdfast uses", {
      hint: "use Chrome 137, Firefox 130 or Safari 17, or a later version",
      cause,
    });
  }
}

/** An X25519 secret that no script reads. */
export function exchangeSecret(scalar: Uint8Array): Promise<CryptoKey> {
  return crypto.subtle.importKey("pkcs8", join(PKCS8_X25519, scalar), "X25519", false, ["deriveBits"]);
}

/** A public Ed25519 key in its X25519 form: `u = (1 + y) / (1 - y)`. */
export function exchangeKey(key: Uint8Array): Uint8Array<ArrayBuffer> {
  let y = 0n;
  for (let at = 31; at >= 0; at--) y = (y << 8n) | BigInt((key[at] ?? 0) & (at === 31 ? 0x7f : 0xff));
  if (key.length !== 32 || y >= P || y === 1n) throw new HoldfastError("bad_request", "this is not a key of a host");
  let u = mod((1n + y) * power(mod(1n - y), P - 2n));
  return Uint8Array.from({ length: 32 }, () => {
    const byte = Number(u & 0xffn);
    u >>= 8n;
    return byte;
  });
}

function mod(value: bigint): bigint {
  return ((value % P) + P) % P;
}

function power(base: bigint, exponent: bigint): bigint {
  let out = 1n;
  for (; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) out = (out * base) % P;
    base = (base * base) % P;
  }
  return out;
}

/** Bytes of base64url without padding. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  if (!/^[\w-]*$/.test(text)) throw new HoldfastError("bad_request", "this is not base64url");
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (char) => char.charCodeAt(0));
}
