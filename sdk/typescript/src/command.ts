// A command's own directory, variables and input, said so that bash, zsh and fish take them alike.

import { HoldfastError } from "./errors.js";

/** What a run has for itself. */
export interface Own {
  /** The directory it runs in. */
  cwd?: string;
  /** Variables of its own; `null` takes one away. */
  env?: Record<string, string | null>;
  /** A text that it reads in place of the terminal. */
  stdin?: string;
}

/** A word as every shell of ours takes it for what it is. */
export function quoted(word: string): string {
  if (/^[A-Za-z0-9_./:=,+@%-]+$/.test(word)) return word;
  // Neither a quote nor a backslash stands inside quotes: fish reads both differently there.
  return `'${word.replace(/['\\]/g, (c) => (c === "'" ? `'\\''` : `'\\\\'`))}'`;
}

/** The command in a child of the shell that has these for itself, and leaves the shell's own as they are; without any, as it is. */
export function withOwn(command: string, own: Own): string {
  const { cwd, env = {}, stdin } = own;
  const variables = Object.entries(env);
  if (cwd === undefined && variables.length === 0 && stdin === undefined) return command;
  const words = ["env", ...(cwd === undefined ? [] : ["-C", cwd])];
  for (const [name] of variables) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new HoldfastError("bad_request", `invalid variable name ${JSON.stringify(name)}`);
  }
  words.push(...variables.flatMap(([name, value]) => (value === null ? ["-u", name] : [])));
  words.push(...variables.flatMap(([name, value]) => (value === null ? [] : [`${name}=${value}`])));
  words.push("sh", "-c", `exec "\${SHELL:-sh}" -c "$0"`, command);
  const line = words.map(quoted).join(" ");
  return stdin === undefined ? line : `printf %s ${quoted(stdin)} | ${line}`;
}
