// Text that others wrote, made harmless to read: nothing in it moves, hides or reorders what stands beside it.
//
// It becomes text nodes only, so it is never markup. Here the characters that do not show are made to.

const NAMED: Record<string, string> = {
  "\u061c": "ALM",
  "\u200b": "ZWSP",
  "\u200e": "LRM",
  "\u200f": "RLM",
  "\u2028": "LS",
  "\u2029": "PS",
  "\u202a": "LRE",
  "\u202b": "RLE",
  "\u202c": "PDF",
  "\u202d": "LRO",
  "\u202e": "RLO",
  "\u2060": "WJ",
  "\u2066": "LRI",
  "\u2067": "RLI",
  "\u2068": "FSI",
  "\u2069": "PDI",
  "\ufeff": "BOM",
};

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g;

/** The text with what does not show in words: U+202E is `⟨RLO⟩`, the escape character `␛`. Lines and tabs stay. */
export function shown(text: string): string {
  return text.replace(HIDDEN, (character) => {
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "␡";
    return `⟨${NAMED[character] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`}⟩`;
  });
}

/** The same in one line. */
export function shownLine(text: string): string {
  return shown(text.replaceAll(/[\r\n\t]+/g, " "));
}

/** An argv as one would type it, near enough to be read. */
export function commandLine(argv: readonly string[]): string {
  return argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

/** Without what Holdfast adds to a shell that it integrates: that is no word of the person's. */
export function ownWords(argv: readonly string[]): string[] {
  const added = (word: string | undefined, value: string | undefined) =>
    (word === "--rcfile" && /\/start\.bash$/.test(value ?? "")) || (word === "--init-command" && /\/shells\/.*fish\.fish/.test(value ?? ""));
  const at = argv.findIndex((word, index) => added(word, argv[index + 1]));
  return at < 0 ? [...argv] : [...argv.slice(0, at), ...argv.slice(at + 2)];
}

/** How long ago: `now`, `40 s`, `12 min`, `3 h`, `2 d`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 5) return "now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** Columns and rows of a size like `80x24`. */
export function sizeOf(size: string): { cols: number; rows: number } {
  const [cols = 80, rows = 24] = size.split("x").map(Number);
  return { cols, rows };
}
