// One line that says what just went wrong, or right. The next replaces it.

import { signal } from "@preact/signals";
import { HoldfastError } from "@holdfast/client";

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

/** Does something for a click; what goes wrong is said. */
export async function attempt<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    const hint = error instanceof HoldfastError ? error.hint : undefined;
    tell(error instanceof Error ? error.message : String(error), "bad", hint);
    return undefined;
  }
}
