// What the palette offers: the view that is open says what can be done in it.

import { signal } from "@preact/signals";

export interface Command {
  name: string;
  /** What it is about, or the keys that do the same. */
  note?: string;
  run: () => void;
}

interface View {
  commands: () => Command[];
  /** Types the palette's own key into the terminal: whoever presses it twice means the terminal. */
  typeKey?: () => void;
}

export const isPaletteOpen = signal(false);

const view = signal<View | undefined>(undefined);

/** Offers the commands of a view until that is left. */
export function offer(offered: View): () => void {
  view.value = offered;
  return () => {
    if (view.peek() === offered) view.value = undefined;
  };
}

export function offered(): Command[] {
  return view.value?.commands() ?? [];
}

/** Ctrl+K or Cmd+K, and nothing beside it. */
export function isPaletteKey({ key, ctrlKey, metaKey, shiftKey, altKey }: KeyboardEvent): boolean {
  return key.toLowerCase() === "k" && ctrlKey !== metaKey && !shiftKey && !altKey;
}

/** Opens the palette; pressed again, the key is the terminal's. */
export function onPaletteKey(event: KeyboardEvent): void {
  if (!isPaletteKey(event)) return;
  event.preventDefault();
  if (isPaletteOpen.value) view.value?.typeKey?.();
  isPaletteOpen.value = !isPaletteOpen.value;
}

/** A text that a session's view is to look for as soon as its terminal is there. */
export const wanted = signal<{ session: string; text: string } | undefined>(undefined);
