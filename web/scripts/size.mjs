// The JavaScript of the built page as it goes over a line: gzipped. Fails where it has grown too large.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** What counts together, by where it lies, and its most in kB: the page of a host, the same in one piece, and the shell around that. */
const PARTS = [
  { below: "phone/", max: 250 },
  { below: "i/", max: 20 },
  { below: "", max: 250 },
];
const built = new URL("../build", import.meta.url).pathname;

function* files(dir) {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) yield* files(path);
    else if (name.endsWith(".js")) yield path.slice(built.length + 1);
  }
}

const totals = new Map(PARTS.map((part) => [part, 0]));
for (const path of files(built)) {
  const bytes = gzipSync(readFileSync(join(built, path)), { level: 9 }).length;
  const part = PARTS.find(({ below }) => path.startsWith(below));
  totals.set(part, totals.get(part) + bytes);
  console.log(`${(bytes / 1000).toFixed(1).padStart(7)} kB  ${path}`);
}
for (const [{ below, max }, total] of totals) console.log(`${(total / 1000).toFixed(1).padStart(7)} kB  of at most ${max}${below && ` in ${below}`}`);
if ([...totals].some(([{ max }, total]) => total > max * 1000)) process.exit(1);
