// One line that says what just went wrong, or right. The next replaces it.

import { signal } from "@preact/signals";
import { HoldfastError } from "@holdfast/client";

/** Dialogs that are open: what goes wrong then is said in the dialog, which covers everything else. */
export const dialogs = signal(0);

export interface Told {
  text: string;
  hint?: string;
  tone: "plain" | "bad";
}

export const told = signal<Told | undefined>(undefined);
let timer: ReturnType<typeof setTimeout> | undefined;

/** Long enough to read two lines. */
const SHOWN_MS = 6_000;

export function tell(text: string, tone: Told["tone"] = "plain", hint?: string): void {
  told.value = { text, tone, ...(hint ? { hint } : {}) };
  clearTimeout(timer);
  timer = setTimeout(() => (told.value = undefined), SHOWN_MS);
}

/** Hints that name commands, ways of the protocol or places of the machine are for people at a terminal. */
const FOR_TERMINALS = /holdfast |`|--|\/v1|\/proc|ulimit|\bseq\b/;

/** Says what went wrong, with what helps here. */
export function tellError(error: unknown): void {
  const hint = error instanceof HoldfastError && error.hint && !FOR_TERMINALS.test(error.hint) ? error.hint : undefined;
  tell(error instanceof Error ? error.message : String(error), "bad", hint);
}

/** Does something for a click; what goes wrong is said. */
export async function attempt<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    tellError(error);
    return undefined;
  }
}
