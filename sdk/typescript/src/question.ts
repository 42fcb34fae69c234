// Questions: an operator, most often an agent, asks the humans of a session something and waits; a human answers.

import type { CallOptions, Client } from "./client.js";
import { newQuestionId } from "./ids.js";
import { deadlineOf, remaining, type WaitOptions } from "./run.js";
import type { Actor } from "./types.js";

/** A question as clients see it. */
export interface Question {
  id: string;
  /** Its session, and that one's name. */
  session: string;
  name: string;
  /** Who asks. */
  by: Actor;
  /** As it was written: what shows it makes it harmless first. */
  text: string;
  /** What can be answered; none: any text. */
  options: string[];
  asked_ms: number;
  /** When nobody can answer it any more. */
  expires_at_ms?: number | null;
  state: "open" | "answered" | "withdrawn" | "expired";
  answer: { text: string; option?: number | null; by: Actor; at_ms: number } | null;
  withdrawn_by?: Actor | null;
}

export interface AskOptions extends WaitOptions {
  /** What can be answered; none: any text. */
  options?: string[];
  /** After this long nobody can answer it any more. */
  expiresMs?: number;
}

/** Asks, and waits until it is no longer open. A timeout withdraws nothing. */
export async function askHumans(client: Client, session: string, text: string, how: AskOptions): Promise<Question> {
  const { options, expiresMs, timeoutMs, signal } = how;
  const call: CallOptions = signal ? { signal } : {};
  const deadline = deadlineOf(timeoutMs);
  const wait = () => Math.ceil(remaining(deadline, `an answer to ${JSON.stringify(text)}`));
  // Drawn here: after a lost answer the same question is asked for, not another one.
  const question = newQuestionId();
  const params = { session, text, question, wait_ms: wait(), ...(options ? { options } : {}), ...(expiresMs ? { expires_ms: expiresMs } : {}) };
  let asked = (await client.raw("question.ask", params, call)) as Question;
  while (asked.state === "open") asked = (await client.raw("question.get", { question, wait_ms: wait() }, call)) as Question;
  return asked;
}
