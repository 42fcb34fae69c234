// What a terminal holds, as plain text: to be selected, copied and read aloud where the terminal itself cannot be.

import type { Terminal } from "@xterm/xterm";

/** All lines, those above the screen too. What was wrapped is one line again; empty ones at the end are left out. */
export function textOf({ buffer: { active } }: Terminal): string {
  const lines: string[] = [];
  for (let row = 0; row < active.length; row += 1) {
    const line = active.getLine(row);
    if (!line) continue;
    const goesOn = active.getLine(row + 1)?.isWrapped === true;
    const text = line.translateToString(!goesOn);
    if (line.isWrapped && lines.length > 0) lines[lines.length - 1] += text;
    else lines.push(text);
  }
  while (lines.at(-1)?.trim() === "") lines.pop();
  return lines.join("\n");
}
