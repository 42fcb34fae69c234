// Who this process is: an actor and its Ed25519 key, in the files the program uses.
//
// `actors/<class>.<name>.key` has the secret, `.pub` is how the host knows the actor. What runs under the same uid can read both.

import { createPrivateKey, createPublicKey, randomBytes, sign, type KeyObject } from "node:crypto";
import { closeSync, existsSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "../errors.js";
import { connectBytes, fields } from "../proof.js";
import { pause } from "../signals.js";
import type { Prover } from "../transport.js";
import type { Actor, Proof } from "../types.js";
import type { Home } from "./home.js";

/** What stands before 32 secret bytes in a PKCS #8 file of an Ed25519 key (RFC 8410). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

const HANDLE = /^(human|agent|service|device):([a-z0-9._-]{1,32})$/;

/** What an actor signs to prove on a connection that it is itself. */
export function challengeBytes(challenge: string, binding: string, actor: Actor): Buffer {
  return Buffer.from(connectBytes(challenge, Buffer.from(binding), actor));
}

/** Its time first: a host remembers those of the last minutes, and takes no older ones. */
function newNonce(): Uint8Array {
  const nonce = randomBytes(16);
  nonce.writeUIntBE(Date.now(), 0, 6);
  return nonce;
}

export class Identity implements Prover {
  readonly actor: Actor;
  private readonly key: KeyObject;

  constructor(handle: string, secret: Uint8Array) {
    this.key = createPrivateKey({ key: Buffer.concat([PKCS8, secret]), format: "der", type: "pkcs8" });
    const spki = createPublicKey(this.key).export({ format: "der", type: "spki" });
    this.actor = { id: spki.subarray(-32).toString("hex"), handle };
  }

  /** The same key under the name that another machine knows it by. */
  called(handle: string): Prover {
    const actor = { ...this.actor, handle };
    const identify = (challenge: string) => ({
      actor,
      signature: sign(null, challengeBytes(challenge, "unix", actor), this.key).toString("hex"),
    });
    return { identify };
  }

  /** Proves itself on a connection; `binding` is whose: a proof for one protocol is none for another. */
  identify(challenge: string, binding = "unix") {
    const signature = sign(null, challengeBytes(challenge, binding, this.actor), this.key).toString("hex");
    return { actor: this.actor, signature };
  }

  /** Signs an act in a session: the `ask` as compact JSON, as spec/protocol.md spells it. It goes along as `proof`. */
  prove(session: string, ask: string, nonce: Uint8Array = newNonce()): Proof {
    const signature = sign(null, fields("holdfast act v1", Buffer.from(session), nonce, Buffer.from(ask)), this.key);
    return { nonce: Buffer.from(nonce).toString("hex"), signature: signature.toString("hex") };
  }

  /** The actor whose key a file has; none where there is no such file. */
  static fromFile(path: string): Identity | undefined {
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    const file = parse(text);
    if (typeof file?.handle !== "string" || typeof file.secret !== "string" || !/^[0-9a-f]{64}$/.test(file.secret)) {
      throw new HoldfastError("bad_request", `cannot use the key file ${path}: it is not a key file`);
    }
    return new Identity(file.handle, Buffer.from(file.secret, "hex"));
  }

  /** The actor of this handle; made where there is none, but for people. Two processes that make it at once end up with one key. */
  static async ofHandle(home: Home, handle: string): Promise<Identity> {
    const parts = HANDLE.exec(handle);
    if (!parts) {
      const hint = "a handle is like agent:node: a class (human, agent, service, device) and a name";
      throw new HoldfastError("bad_request", `invalid handle ${JSON.stringify(handle)}`, { hint });
    }
    const path = join(home.state, "actors", `${parts[1]}.${parts[2]}`);
    for (let tries = 0; tries < 100; tries++) {
      const identity = Identity.fromFile(`${path}.key`);
      if (identity && identity.actor.handle !== handle) {
        throw new HoldfastError("bad_request", `cannot use the key file ${path}.key: it belongs to another actor`);
      }
      if (identity) return identity;
      if (parts[1] === "human") {
        throw new HoldfastError("no_such_actor", `no actor ${handle}`, { hint: `create it: holdfast actor new ${handle}` });
      }
      const made = make(home, path, handle);
      if (made) return made;
      // Somebody is making it this moment: its secret is about to be there.
      await pause(5);
    }
    throw new HoldfastError("bad_request", `cannot use the key file ${path}.pub: its secret key is missing`);
  }
}

function parse(text: string): { handle?: unknown; secret?: unknown } | undefined {
  try {
    return JSON.parse(text) as { handle?: unknown; secret?: unknown };
  } catch {
    return undefined;
  }
}

/** Makes an actor with a fresh key; nothing where somebody was faster. */
function make(home: Home, path: string, handle: string): Identity | undefined {
  if (existsSync(`${path}.pub`)) return undefined;
  mkdirSync(join(home.state, "actors"), { recursive: true, mode: 0o700 });
  const secret = randomBytes(32);
  const identity = new Identity(handle, secret);
  // The secret first: a key that is known and lost would be worse than one that is not known.
  if (!writeNew(`${path}.key`, { handle, secret: secret.toString("hex") })) return undefined;
  if (!writeNew(`${path}.pub`, { handle, id: identity.actor.id, created_ms: Date.now() })) {
    unlinkSync(`${path}.key`);
    return undefined;
  }
  return identity;
}

/** Writes a file that must not be there yet, whole or not at all; false where it is. */
function writeNew(path: string, content: object): boolean {
  const beside = `${path}.new${process.pid}.${randomBytes(4).toString("hex")}`;
  const file = openSync(beside, "wx", 0o600);
  try {
    writeSync(file, `${JSON.stringify(content)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  try {
    // A link, not a rename: the first one stays.
    linkSync(beside, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    unlinkSync(beside);
  }
}
