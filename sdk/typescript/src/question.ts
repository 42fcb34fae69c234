// Questions: an operator, most often an agent, asks the humans of a session something and waits; a human answers.

import type { CallOptions, Client } from "./client.js";
import { newKey } from "./ids.js";
import { deadlineOf, remaining, type WaitOptions } from "./run.js";
import type { QuestionAskParams, QuestionView } from "./types.js";

export interface AskOptions extends WaitOptions {
  /** What can be answered; none: any text. */
  options?: string[];
  /** A key of your own: with it the question is asked once, also by a program that was started again. */
  key?: string;
  /** Close the question after this long. */
  expiresMs?: number;
}

/** Asks, and waits until it is no longer open. A timeout withdraws nothing. */
export async function askHumans(client: Client, session: string, text: string, how: AskOptions): Promise<QuestionView> {
  const { options, key = newKey(), expiresMs, timeoutMs, signal } = how;
  const call: CallOptions = signal ? { signal } : {};
  const deadline = deadlineOf(timeoutMs);
  const wait = () => Math.ceil(remaining(deadline, `an answer to ${JSON.stringify(text)}`));
  // Drawn here: after a lost answer the same question is asked for, not another one.
  const params: QuestionAskParams = { session, text, key, wait_ms: wait() };
  if (options) params.options = options;
  if (expiresMs !== undefined) params.expires_ms = expiresMs;
  let asked = await client.call("question.ask", params, call);
  while (asked.state === "open") asked = await client.call("question.get", { question: asked.id, wait_ms: wait() }, call);
  return asked;
}
