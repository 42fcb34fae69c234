// How this browser shows terminals, kept for the next time: a phone and a desk differ, and so do sessions.

import { signal } from "@preact/signals";

const STORED = "holdfast.fonts";
/** Sessions whose size is remembered, the newest last. */
const REMEMBERED = 60;

function initial(): number {
  return matchMedia("(max-width: 700px)").matches ? 12 : 14;
}

function remembered(): [string, number][] {
  try {
    return Object.entries(JSON.parse(localStorage.getItem(STORED) ?? "{}") as Record<string, number>);
  } catch {
    return [];
  }
}

/** The size of a session's text. */
export function fontOf(session: string): number {
  const kept = remembered().find(([id]) => id === session)?.[1] ?? 0;
  return kept >= 6 && kept <= 28 ? kept : initial();
}

export function keepFont(session: string, size: number): void {
  const others = remembered().filter(([id]) => id !== session);
  localStorage.setItem(STORED, JSON.stringify(Object.fromEntries([...others.slice(1 - REMEMBERED), [session, size]])));
}

const STORED_FIT = "holdfast.fit";

/** Sessions take this window's size when their turn is had here. */
export function fitsByChoice(): boolean {
  return localStorage.getItem(STORED_FIT) === "yes";
}

const STORED_SCALE = "holdfast.scale";

/** A session that is smaller than its window is shown as large as the window allows. */
export const scales = signal(localStorage.getItem(STORED_SCALE) === "yes");

export function chooseScale(isScaled: boolean): void {
  scales.value = isScaled;
  localStorage.setItem(STORED_SCALE, isScaled ? "yes" : "no");
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
