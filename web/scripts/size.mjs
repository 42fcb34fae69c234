// All JavaScript of the built page, as it goes over a line: gzipped. Fails where it has grown too large.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const MAX_KB = 250;
const built = new URL("../build", import.meta.url).pathname;

function* files(dir) {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) yield* files(path);
    else if (name.endsWith(".js")) yield path;
  }
}

let total = 0;
for (const path of files(built)) {
  const bytes = gzipSync(readFileSync(path), { level: 9 }).length;
  total += bytes;
  console.log(`${(bytes / 1000).toFixed(1).padStart(7)} kB  ${path.slice(built.length + 1)}`);
}
console.log(`${(total / 1000).toFixed(1).padStart(7)} kB  of at most ${MAX_KB}`);
if (total > MAX_KB * 1000) process.exit(1);
