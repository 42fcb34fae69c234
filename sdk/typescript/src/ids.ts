// Random names and numbers.

/** Digits of an id: base 32 without the letters people misread. */
const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";

/** The id of a run that is about to be asked for. */
export function newRunId(): string {
  return newId("run_");
}

/** A key of the caller's own for what is about to be asked: asked again with the same one, it is asked once. */
export function newKey(): string {
  return newId("key_");
}

/** A prefix and 26 characters, 128 random bits. */
function newId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  let bits = 0n;
  for (const byte of bytes) bits = (bits << 8n) | BigInt(byte);
  let digits = "";
  for (let place = 0; place < 26; place++) {
    digits = DIGITS[Number(bits & 31n)] + digits;
    bits >>= 5n;
  }
  return prefix + digits;
}

/** A stream's number: as many random bits as JSON readers can count to. */
export function newStream(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high & 0x1f_ffff) * 0x1_0000_0000 + low || 1;
}
