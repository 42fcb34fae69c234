// A line of output with its colours: the six that programs mean something by. Everything else a line can do is left out here.

export interface Ink {
  text: string;
  /** Class names. */
  ink: string;
}

const HUES = ["red", "green", "yellow", "blue", "magenta", "cyan"];
/** Sequences that set attributes, and those that are nothing to see: links, titles, modes. */
const SEQUENCE = /\x1b\[([\d;:]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[\d;:?]*[@-~]/g;

/** The text alone. */
export function plain(line: string): string {
  return line.replace(SEQUENCE, "");
}

/** The pieces of a line, each with how it is written. */
export function inked(line: string): Ink[] {
  const pieces: Ink[] = [];
  let [hue, isBold, from] = [-1, false, 0];
  const put = (to: number) => {
    const ink = [HUES[hue - 1] ? `ink-${HUES[hue - 1]}` : "", isBold ? "ink-bold" : ""].filter(Boolean).join(" ");
    if (to > from) pieces.push({ text: line.slice(from, to), ink });
  };
  for (const found of line.matchAll(SEQUENCE)) {
    put(found.index);
    from = found.index + found[0].length;
    if (found[1] === undefined) continue;
    const codes = found[1].split(/[;:]/).map(Number);
    for (let at = 0; at < codes.length; at += 1) {
      const code = codes[at] ?? 0;
      if (code === 0) [hue, isBold] = [-1, false];
      else if (code === 1) isBold = true;
      else if (code === 22) isBold = false;
      else if (code >= 30 && code <= 37) hue = code - 30;
      else if (code >= 90 && code <= 97) hue = code - 90;
      else if (code === 39) hue = -1;
      else if (code === 38 || code === 48) {
        // One of 256, or a colour of its own: of those the first sixteen have a name.
        const isOf256 = codes[at + 1] === 5;
        const number = codes[at + 2] ?? -1;
        if (code === 38) hue = isOf256 && number < 16 ? number % 8 : -1;
        at += isOf256 ? 2 : 4;
      }
    }
  }
  put(line.length);
  return pieces;
}
