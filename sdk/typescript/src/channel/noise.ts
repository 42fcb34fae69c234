// The client's half of the handshake: Noise IK, or IKpsk2 with an invite's secret, as spec/channel.md has it. The ciphers are the
// browser's.

import { HoldfastError } from "../errors.js";
import { join, toHex } from "../proof.js";
import { Channel } from "./frames.js";
import { exchangeKey, type DeviceKey } from "./keys.js";

const VERSION = 1;
const MODE_KNOWN = 0;
const MODE_INVITED = 1;
const WELCOME = 0;
const NAMES = ["Noise_IK_25519_AESGCM_SHA256", "Noise_IKpsk2_25519_AESGCM_SHA256"] as const;
/** Longest handshake message. */
const HANDSHAKE_BYTES_MAX = 1024;
const KEY_BYTES = 32;
const NOTHING = new Uint8Array(0);

const encoder = new TextEncoder();
type Bytes = Uint8Array<ArrayBuffer>;

/** What the guest of an invite has. */
export interface Invited {
  id: Uint8Array;
  secret: Uint8Array;
}

/** A key that is used for one handshake. */
export interface Ephemeral {
  secret: CryptoKey;
  public: Bytes;
}

/** A handshake whose first message is written. */
export interface Begun {
  first: Bytes;
  /** Reads the host's answer. A host with another key than the expected one cannot have written it. */
  finish(second: Bytes): Promise<{ channel: Channel; welcome: Welcome }>;
}

/** What the host says. `handle`: it knows the key; none with an invite. */
export type Welcome = { known: true; handle?: string } | { known: false };

/** The channel cannot be: whatever answered did not prove the host's key, or what it sent was changed on the way. */
export class Unproven extends Error {
  override readonly name = "Unproven";
}

/** Begins a channel to the host with this key. */
export async function begin(host: Bytes, device: DeviceKey, invited?: Invited, ephemeral?: Ephemeral): Promise<Begun> {
  const mode = invited ? MODE_INVITED : MODE_KNOWN;
  const theirs = exchangeKey(host);
  const own = ephemeral ?? (await newEphemeral());
  const state = await State.begin(NAMES[mode], join(encoder.encode("holdfast channel"), Uint8Array.of(VERSION, mode)));
  await state.mixHash(theirs);
  await state.mixHash(own.public);
  if (invited) await state.mixKey(own.public);
  await state.mixKey(await shared(own.secret, theirs));
  const sealedKey = await state.seal(await publicOf(device));
  await state.mixKey(await shared(device.exchange, theirs));
  const sealedId = await state.seal(invited?.id ?? NOTHING);
  const first = join(Uint8Array.of(VERSION, mode), own.public, sealedKey, sealedId);
  const finish = async (second: Bytes) => {
    if (second.length > HANDSHAKE_BYTES_MAX || second.length < KEY_BYTES) throw new Unproven("the answer is no handshake");
    const answered = second.slice(0, KEY_BYTES);
    let said: Bytes;
    try {
      await state.mixHash(answered);
      if (invited) await state.mixKey(answered);
      await state.mixKey(await shared(own.secret, answered));
      await state.mixKey(await shared(device.exchange, answered));
      if (invited) await state.mixKeyAndHash(invited.secret);
      said = await state.open(second.slice(KEY_BYTES));
    } catch (cause) {
      throw new Unproven("the answer does not open", { cause });
    }
    return { channel: await state.split(), welcome: readWelcome(said, mode) };
  };
  return { first, finish };
}

function readWelcome(said: Bytes, mode: number): Welcome {
  const handle = new TextDecoder().decode(said.subarray(1));
  if (said[0] === WELCOME && mode === MODE_KNOWN && handle !== "") return { known: true, handle };
  if (said.length === 1 && said[0] === WELCOME && mode === MODE_INVITED) return { known: true };
  if (said.length === 1 && mode === MODE_KNOWN) return { known: false };
  throw new Unproven("the host's answer cannot be read");
}

async function newEphemeral(): Promise<Ephemeral> {
  const pair = (await crypto.subtle.generateKey("X25519", false, ["deriveBits"])) as CryptoKeyPair;
  return { secret: pair.privateKey, public: new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)) };
}

async function publicOf({ id }: DeviceKey): Promise<Bytes> {
  return exchangeKey(Uint8Array.from(id.match(/../g) ?? [], (pair) => parseInt(pair, 16)));
}

async function shared(secret: CryptoKey, theirs: Bytes): Promise<Bytes> {
  const key = await crypto.subtle.importKey("raw", theirs, "X25519", false, []);
  const bits = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: key }, secret, 256));
  // A point of small order would make the secret everybody's. Browsers refuse it, too.
  if (bits.every((byte) => byte === 0)) throw new HoldfastError("bad_request", "this is not a usable key");
  return bits;
}

/** Noise's symmetric state. */
class State {
  private cipher: CryptoKey | undefined;
  private number = 0;

  private constructor(
    private hash: Bytes,
    private chain: Bytes,
  ) {}

  static async begin(name: string, prologue: Bytes): Promise<State> {
    const hash = new Uint8Array(KEY_BYTES);
    // Both names fit.
    hash.set(encoder.encode(name));
    const state = new State(hash, hash);
    await state.mixHash(prologue);
    return state;
  }

  async mixHash(bytes: Uint8Array): Promise<void> {
    this.hash = new Uint8Array(await crypto.subtle.digest("SHA-256", join(this.hash, bytes)));
  }

  async mixKey(bytes: Uint8Array): Promise<void> {
    const [chain, key] = await derive(this.chain, bytes, 2);
    await this.use(chain as Bytes, key as Bytes);
  }

  async mixKeyAndHash(bytes: Uint8Array): Promise<void> {
    const [chain, hash, key] = await derive(this.chain, bytes, 3);
    await this.mixHash(hash as Bytes);
    await this.use(chain as Bytes, key as Bytes);
  }

  private async use(chain: Bytes, key: Bytes): Promise<void> {
    this.chain = chain;
    this.cipher = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt", "decrypt"]);
    this.number = 0;
  }

  async seal(plain: Uint8Array): Promise<Bytes> {
    const sealed = new Uint8Array(await crypto.subtle.encrypt(this.how(), this.key(), join(plain)));
    await this.mixHash(sealed);
    return sealed;
  }

  async open(sealed: Bytes): Promise<Bytes> {
    const plain = new Uint8Array(await crypto.subtle.decrypt(this.how(), this.key(), sealed));
    await this.mixHash(sealed);
    return plain;
  }

  /** The channel that begins where the handshake ends. */
  async split(): Promise<Channel> {
    const [out, back] = await derive(this.chain, NOTHING, 2);
    return Channel.make(this.hash, out as Bytes, back as Bytes);
  }

  private key(): CryptoKey {
    if (!this.cipher) throw new Error(`no key yet, at ${toHex(this.hash)}`);
    return this.cipher;
  }

  private how(): AesGcmParams {
    return { name: "AES-GCM", iv: nonce(this.number++), additionalData: this.hash };
  }
}

/** Noise's nonce for AES-GCM: four zero bytes, then the number. */
export function nonce(number: number): Bytes {
  const bytes = new Uint8Array(12);
  new DataView(bytes.buffer).setBigUint64(4, BigInt(number));
  return bytes;
}

/** Noise's HKDF. */
async function derive(chain: Bytes, input: Uint8Array, count: number): Promise<Bytes[]> {
  const key = await hmac(chain, input);
  const out: Bytes[] = [];
  for (let at = 1; at <= count; at++) out.push(await hmac(key, join(out.at(-1) ?? NOTHING, Uint8Array.of(at))));
  return out;
}

async function hmac(key: Bytes, bytes: Uint8Array): Promise<Bytes> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, join(bytes)));
}
