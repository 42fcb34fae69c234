// What goes wrong, with a stable word for programs and a hint for people.

import type { Code, Fault } from "./types.js";

/**
 * A host's codes, and five of the client's own: `disconnected` (the connection broke, and whether the act happened is not
 * known), `timeout` (a wait timed out), `protocol` (the client cannot read the host's answer), `untrusted_home` (somebody else decides
 * what lies in the home), `unreachable` (there is no way to another machine now).
 */
export type ErrorCode = Code | "disconnected" | "timeout" | "protocol" | "untrusted_home" | "unreachable";

/** A refusal or a failure. */
export class HoldfastError extends Error {
  override readonly name = "HoldfastError";
  /** For programs; never renamed. */
  readonly code: ErrorCode;
  /** What to do about it; may be empty. */
  readonly hint: string;
  /** What belongs to the code: who has the turn, which right is missing. */
  readonly details: unknown;

  constructor(code: ErrorCode, message: string, more: { hint?: string; details?: unknown; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.hint = more.hint ?? "";
    this.details = more.details;
  }

  /** From what a host sent. */
  static from(fault: Fault): HoldfastError {
    return new HoldfastError(fault.code, fault.message, { hint: fault.hint ?? "", details: fault.details });
  }
}

/** Whether an error is the end of a connection: the host may be there again in a moment. */
export function isBroken(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === "disconnected";
}

export function disconnected(message: string, cause?: unknown): HoldfastError {
  const hint = "the sessions go on; connect again";
  return new HoldfastError("disconnected", message, { hint, cause });
}
