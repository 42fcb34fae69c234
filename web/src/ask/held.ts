// An answer that was tapped is held for a moment, and can be taken back; then it is sent. It does not matter which view is open.

import { signal } from "@preact/signals";
import type { QuestionView as Question } from "@holdfast/client";
import { client, questions } from "../lib/store.js";
import { attempt } from "../ui/told.js";

/** Time to see what was tapped. */
const UNDO_MS = 5_000;

interface Held {
  said: number;
  send: () => Promise<void>;
  timer: ReturnType<typeof setTimeout>;
}

/** By the question's id. */
export const held = signal<ReadonlyMap<string, Held>>(new Map());

/** Answers with an option after a moment; at once where the question does not wait that long. */
export function hold(id: string, said: number, expires_ms: number | undefined, send: () => Promise<void>): void {
  takeBack(id);
  const left = (expires_ms ?? Infinity) - Date.now();
  const timer = setTimeout(() => void sendHeld(id), left < 2 * UNDO_MS ? 0 : UNDO_MS);
  held.value = new Map(held.value).set(id, { said, send, timer });
}

export function takeBack(id: string): Held | undefined {
  const known = held.value.get(id);
  if (!known) return undefined;
  clearTimeout(known.timer);
  held.value = new Map([...held.value].filter(([other]) => other !== id));
  return known;
}

/** Sends what is held. */
export async function sendHeld(id: string): Promise<void> {
  await takeBack(id)?.send();
}

/** Answers a session's question, where that is still open. */
export async function answerOpen(question: Question, said: string | number): Promise<void> {
  if (questions.value.some((open) => open.id === question.id)) await answer(question, said);
}

export async function answer(question: Question, said: string | number): Promise<void> {
  const done = await attempt(() => client.answer(question, said));
  if (done) questions.value = questions.value.filter((one) => one.id !== question.id);
}

// Who leaves has not taken it back.
addEventListener("pagehide", () => {
  for (const id of held.value.keys()) void sendHeld(id);
});
