// How this browser shows terminals, kept for the next time: a phone and a desk differ.

import { signal } from "@preact/signals";

const STORED = "holdfast.font";

function initial(): number {
  const kept = Number(localStorage.getItem(STORED));
  if (kept >= 6 && kept <= 28) return kept;
  return matchMedia("(max-width: 700px)").matches ? 12 : 14;
}

export const fontSize = signal(initial());

export function setFontSize(size: number): void {
  fontSize.value = size;
  localStorage.setItem(STORED, String(size));
}

const STORED_FIT = "holdfast.fit";

/** Sessions take this window's size when their turn is had here. */
export function fitsByChoice(): boolean {
  return localStorage.getItem(STORED_FIT) === "yes";
}

const STORED_ALOUD = "holdfast.aloud";

/** The terminal says its lines to a screen reader. Costs some speed, so who needs it asks for it. */
export const aloud = signal(localStorage.getItem(STORED_ALOUD) === "yes");

export function chooseAloud(isAloud: boolean): void {
  aloud.value = isAloud;
  localStorage.setItem(STORED_ALOUD, isAloud ? "yes" : "no");
}

export function chooseFit(fits: boolean): void {
  localStorage.setItem(STORED_FIT, fits ? "yes" : "no");
}
