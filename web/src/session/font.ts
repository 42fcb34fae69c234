// How this browser shows terminals, kept for the next time: a phone and a desk differ, and so do sessions.

import { signal } from "@preact/signals";

const STORED = "holdfast.fonts";
/** Sessions whose size is remembered, the newest last. */
const REMEMBERED = 60;

/** The smallest and the largest text. */
export const SIZE_MIN = 6;
export const SIZE_MAX = 28;

const STORED_SIZE = "holdfast.font.size";

/** What somebody chose for all sessions on this device; else what suits its screen. */
function initial(): number {
  const chosen = Number(localStorage.getItem(STORED_SIZE) ?? 0);
  if (chosen >= SIZE_MIN && chosen <= SIZE_MAX) return chosen;
  return matchMedia("(max-width: 700px)").matches ? 12 : 14;
}

/** From now on every session's text has this size on this device, until one is given its own. */
export function chooseSize(size: number): void {
  localStorage.setItem(STORED_SIZE, String(size));
  localStorage.removeItem(STORED);
}

const SYSTEM = 'ui-monospace, "SF Mono", SFMono-Regular, Menlo, "Cascadia Mono", Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';

/** Fonts that a device may have. One that it does not have looks like `system`. */
export const FONTS = ["system", "JetBrains Mono", "Fira Code", "Cascadia Mono", "Menlo", "Consolas", "DejaVu Sans Mono", "Liberation Mono", "Courier New"] as const;
export type Font = (typeof FONTS)[number];

const STORED_FONT = "holdfast.font";
const keptFont = localStorage.getItem(STORED_FONT);

/** The terminals' font on this device. */
export const font = signal<Font>(FONTS.find((one) => one === keptFont) ?? "system");

export function chooseFont(chosen: Font): void {
  font.value = chosen;
  localStorage.setItem(STORED_FONT, chosen);
}

/** As style sheets name it. */
export function family(chosen: Font): string {
  return chosen === "system" ? SYSTEM : `"${chosen}", ${SYSTEM}`;
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
  return kept >= SIZE_MIN && kept <= SIZE_MAX ? kept : initial();
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
