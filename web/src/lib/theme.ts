// By day or by night: as the browser says, or as somebody chose for this page.

import { computed, effect, signal } from "@preact/signals";
import type { Command } from "../palette/commands.js";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const STORED = "holdfast.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(system.matches);
system.addEventListener("change", () => (systemIsDark.value = system.matches));

const kept = localStorage.getItem(STORED);
export const theme = signal<Theme>(THEMES.find((one) => one === kept) ?? "system");

/** What the terminal's colours follow. */
export const isDark = computed(() => (theme.value === "system" ? systemIsDark.value : theme.value === "dark"));

/** The style sheets' colours follow this attribute. */
effect(() => void (document.documentElement.dataset["theme"] = theme.value));

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  localStorage.setItem(STORED, chosen);
}

/** For the palette, everywhere. */
export function themeCommands(): Command[] {
  return THEMES.filter((one) => one !== theme.value).map((one) => ({ name: `Theme: ${one}`, run: () => chooseTheme(one) }));
}
