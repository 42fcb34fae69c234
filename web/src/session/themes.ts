// The terminal's colours, by day and by night. The sixteen are chosen to be read on their ground.

import type { ITheme } from "@xterm/xterm";

export const DARK: ITheme = {
  background: "#0b100f",
  foreground: "#dfe7e4",
  cursor: "#5fd0bd",
  cursorAccent: "#0b100f",
  selectionBackground: "#2c5c5590",
  black: "#1c2523",
  red: "#f2777a",
  green: "#8fd18a",
  yellow: "#e6c46a",
  blue: "#7eb2f2",
  magenta: "#c9a0ee",
  cyan: "#6ad0c8",
  white: "#ccd6d2",
  brightBlack: "#6d7c77",
  brightRed: "#ff9c9e",
  brightGreen: "#b1e8ab",
  brightYellow: "#f7dc92",
  brightBlue: "#a5cdff",
  brightMagenta: "#dfc2fb",
  brightCyan: "#97e6df",
  brightWhite: "#ffffff",
};

export const LIGHT: ITheme = {
  background: "#fdfefd",
  foreground: "#1c2624",
  cursor: "#0f766e",
  cursorAccent: "#fdfefd",
  selectionBackground: "#9fd9cf80",
  black: "#1c2624",
  red: "#b3261e",
  green: "#2c6e2f",
  yellow: "#7a5900",
  blue: "#1d5fb8",
  magenta: "#7b3fa8",
  cyan: "#0b6b68",
  white: "#5e6a67",
  brightBlack: "#6b7875",
  brightRed: "#c93a32",
  brightGreen: "#37803a",
  brightYellow: "#8c6800",
  brightBlue: "#2f72cc",
  brightMagenta: "#9052be",
  brightCyan: "#127f7b",
  brightWhite: "#2d3836",
};

/** What was found, in both. */
export const FOUND: ITheme = { selectionBackground: "#f0883e", selectionInactiveBackground: "#f0883e", selectionForeground: "#1a1206" };
