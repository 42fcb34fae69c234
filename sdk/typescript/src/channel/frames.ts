// Frames: one sealed message each, with a kind and a body. Both sides count them, and a frame that does not open ends the channel.

import { join } from "../proof.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** What a frame is for. */
export const Kind = { data: 0, alive: 1, rekey: 2, end: 3 } as const;
export type Kind = (typeof Kind)[keyof typeof Kind];

/** Longest body: Noise's longest message without its seal and its kind. */
export const DATA_BYTES_MAX = 65_535 - 16 - 1;
/** How long a key is used: spec/channel.md says why. */
export const REKEY_FRAMES = 2 ** 20;
export const REKEY_BYTES = 2 ** 30;
export const REKEY_MS = 10 * 60 * 1000;
/** AES-GCM with this nonce makes the next key. */
const LAST_NONCE = Uint8Array.of(0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255);

/** One direction: its key, and how long it was used. */
class Half {
  frames = 0;
  bytes = 0;
  since: number | undefined;
  private number = 0;

  private constructor(private key: CryptoKey) {}

  static async make(key: Bytes): Promise<Half> {
    return new Half(await cipher(key));
  }

  async seal(plain: Bytes): Promise<Bytes> {
    return new Uint8Array(await crypto.subtle.encrypt(this.how(), this.key, plain));
  }

  async open(message: Bytes): Promise<Bytes> {
    return new Uint8Array(await crypto.subtle.decrypt(this.how(), this.key, message));
  }

  count(bytes: number): void {
    this.frames += 1;
    this.bytes += bytes;
  }

  /** Noise's REKEY; numbers go on. */
  async rekey(now?: number): Promise<void> {
    const next = await crypto.subtle.encrypt({ name: "AES-GCM", iv: LAST_NONCE }, this.key, new Uint8Array(32));
    this.key = await cipher(new Uint8Array(next).slice(0, 32));
    this.frames = this.bytes = 0;
    this.since = now;
  }

  private how(): AesGcmParams {
    const iv = new Uint8Array(12);
    new DataView(iv.buffer).setBigUint64(4, BigInt(this.number++));
    return { name: "AES-GCM", iv };
  }
}

function cipher(key: Bytes): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt", "decrypt"]);
}

/** A channel that is up. Frames are sealed, and opened, one at a time and in order: whoever calls waits for the one before. */
export class Channel {
  /** The hash of the handshake: what only the two ends of this channel have. No secret. */
  readonly binding: Bytes;
  private isDead = false;
  private hasEnded = { out: false, back: false };

  private constructor(
    binding: Bytes,
    private readonly out: Half,
    private readonly back: Half,
  ) {
    this.binding = binding;
  }

  static async make(binding: Bytes, out: Bytes, back: Bytes): Promise<Channel> {
    return new Channel(binding, await Half.make(out), await Half.make(back));
  }

  /** Seals a frame: one message, with one before it where the key is due. */
  async seal(kind: Kind, body: Uint8Array, now = Date.now()): Promise<Bytes[]> {
    if (this.isDead || this.hasEnded.out) throw new Error("the channel is over");
    if (body.length > DATA_BYTES_MAX || (kind === Kind.data) === (body.length === 0)) throw new Error("a body that does not fit its kind");
    const { out } = this;
    out.since ??= now;
    const isDue = out.frames >= REKEY_FRAMES || out.bytes >= REKEY_BYTES || now - out.since >= REKEY_MS;
    const before = isDue && kind !== Kind.rekey ? [await this.sealOne(Kind.rekey, body.subarray(0, 0), now)] : [];
    return [...before, await this.sealOne(kind, body, now)];
  }

  private async sealOne(kind: Kind, body: Uint8Array, now: number): Promise<Bytes> {
    const message = await this.out.seal(join(Uint8Array.of(kind), body));
    this.out.count(message.length);
    if (kind === Kind.rekey) await this.out.rekey(now);
    if (kind === Kind.end) this.hasEnded.out = true;
    return message;
  }

  /** Opens a message. After an error the channel is dead. */
  async open(message: Bytes): Promise<{ kind: Kind; body: Bytes }> {
    try {
      if (this.isDead || this.hasEnded.back) throw new Error("a frame behind the end");
      const plain = await this.back.open(message);
      this.back.count(message.length);
      // Twice: what is under way when a key is due is under the old one.
      if (this.back.frames > 2 * REKEY_FRAMES || this.back.bytes > 2 * REKEY_BYTES) throw new Error("the key was used for too long");
      const kind = plain[0] as Kind | undefined;
      const isData = kind === Kind.data && plain.length > 1;
      if (!isData && !(plain.length === 1 && (kind === Kind.alive || kind === Kind.rekey || kind === Kind.end))) throw new Error("an unknown frame");
      if (kind === Kind.rekey) await this.back.rekey();
      if (kind === Kind.end) this.hasEnded.back = true;
      return { kind: kind as Kind, body: plain.subarray(1) };
    } catch (error) {
      this.isDead = true;
      throw error;
    }
  }
}
