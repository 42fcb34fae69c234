// Names of keys, as people write them, and the bytes a terminal sends for them.

import { HoldfastError } from "./errors.js";

interface Held {
  shift: boolean;
  meta: boolean;
  control: boolean;
}

const LETTERS: Record<string, string> = { up: "A", down: "B", right: "C", left: "D", home: "H", end: "F" };
const TILDES: Record<string, number> = {
  insert: 2,
  ic: 2,
  delete: 3,
  dc: 3,
  pgup: 5,
  pageup: 5,
  ppage: 5,
  pgdn: 6,
  pagedown: 6,
  npage: 6,
};
const SIMPLE: Record<string, string> = {
  enter: "\r",
  return: "\r",
  cr: "\r",
  tab: "\t",
  esc: "\x1b",
  escape: "\x1b",
  space: " ",
  bspace: "\x7f",
  backspace: "\x7f",
};
const FUNCTION_CODES = [15, 17, 18, 19, 20, 21, 23, 24];

/** What a key sends: `C-c`, `M-x`, `Enter`, `Up`, `F1`, or a character. */
export function keyText(name: string, applicationCursor = false): string {
  const held: Held = { shift: false, meta: false, control: false };
  let rest = name;
  // `C--` is Control and a hyphen: a prefix counts only where a key follows it.
  for (let prefix = /^[cms]-(?=.)/i.exec(rest); prefix; prefix = /^[cms]-(?=.)/i.exec(rest)) {
    const letter = prefix[0].charAt(0).toLowerCase();
    if (letter === "c") held.control = true;
    else if (letter === "m") held.meta = true;
    else held.shift = true;
    rest = rest.slice(2);
  }
  const text = named(rest.toLowerCase(), held) ?? character(rest, held);
  if (text === undefined) {
    throw new HoldfastError("bad_request", `unknown key ${JSON.stringify(name)}`, {
      hint: "keys are like C-c, M-x, Enter, Tab, Esc, Space, BSpace, Up, Home, PgUp, Delete, F1, or a character",
    });
  }
  return applicationCursor ? text.replace(/^\x1b\[([A-DFH])$/, "\x1bO$1") : text;
}

/** Whether a key is one that a program may want in another form. */
export function hasTwoForms(text: string): boolean {
  return /^\x1b\[[A-DFH]$/.test(text);
}

function control(c: string): string | undefined {
  if (c === "@" || c === " ") return "\0";
  if (c === "/") return "\x1f";
  if (c === "?") return "\x7f";
  return /^[a-zA-Z[\\\]^_]$/.test(c) ? String.fromCharCode(c.charCodeAt(0) & 0x1f) : undefined;
}

function character(text: string, held: Held): string | undefined {
  if ([...text].length !== 1) return undefined;
  const c = held.control ? control(text) : held.shift ? text.replace(/[a-z]/, (small) => small.toUpperCase()) : text;
  return c === undefined ? undefined : (held.meta ? "\x1b" : "") + c;
}

function named(name: string, held: Held): string | undefined {
  const modifiers = 1 + Number(held.shift) + 2 * Number(held.meta) + 4 * Number(held.control);
  if (name === "btab" || (name === "tab" && held.shift)) return "\x1b[Z";
  if (name === "space" && held.control) return held.meta ? "\x1b\0" : "\0";
  const simple = SIMPLE[name];
  if (simple !== undefined) return (held.meta ? "\x1b" : "") + simple;
  const letter = LETTERS[name];
  if (letter !== undefined) return modifiers === 1 ? `\x1b[${letter}` : `\x1b[1;${modifiers}${letter}`;
  const tilde = TILDES[name];
  if (tilde !== undefined) return modifiers === 1 ? `\x1b[${tilde}~` : `\x1b[${tilde};${modifiers}~`;
  const number = /^f(\d+)$/.exec(name)?.[1];
  return number === undefined ? undefined : functionKey(Number(number), modifiers);
}

function functionKey(number: number, modifiers: number): string | undefined {
  if (number >= 1 && number <= 4) {
    const letter = "PQRS".charAt(number - 1);
    return modifiers === 1 ? `\x1bO${letter}` : `\x1b[1;${modifiers}${letter}`;
  }
  const code = FUNCTION_CODES[number - 5];
  if (code === undefined) return undefined;
  return modifiers === 1 ? `\x1b[${code}~` : `\x1b[${code};${modifiers}~`;
}
