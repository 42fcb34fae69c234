// Packs the page Vite built, in `build`, into `dist`, which is committed and goes into the program: texts as Brotli and gzip,
// everything else as it is. With `--check` nothing is written; it fails where `dist` is not what was built.

import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from "node:zlib";

const BUILT = new URL("../build", import.meta.url).pathname;
const PACKED = new URL("../dist", import.meta.url).pathname;
/** Of which sources it is; `cargo xtask web-build` writes it. */
const STAMP = "stamp";
/** A shorter text is one packet either way. */
const MIN_BYTES = 1024;
const TEXTS = new Set([".css", ".html", ".js", ".svg", ".webmanifest"]);

/** Paths of all files below a directory. */
function files(dir, below = "") {
  return readdirSync(join(dir, below)).flatMap((name) => {
    const path = join(below, name);
    return statSync(join(dir, path)).isDirectory() ? files(dir, path) : [path];
  });
}

/** What `dist` has of a file: names and contents. */
function packed(path) {
  const plain = readFileSync(join(BUILT, path));
  // The shell is small, and a relay serves it as it is. The page in one piece is unpacked by the shell, which knows one form.
  if (path.startsWith("i/")) return [[path, plain]];
  if (path.startsWith("phone/")) return [[`${path}.gz`, gzipSync(plain, { level: 9 })]];
  if (!TEXTS.has(extname(path)) || plain.length < MIN_BYTES) return [[path, plain]];
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length };
  return [
    [`${path}.br`, brotliCompressSync(plain, { params })],
    [`${path}.gz`, gzipSync(plain, { level: 9 })],
  ];
}

/** What a file of `dist` says. */
function unpacked(path) {
  const content = readFileSync(join(PACKED, path));
  if (path.endsWith(".br")) return brotliDecompressSync(content);
  return path.endsWith(".gz") ? gunzipSync(content) : content;
}

function pack() {
  rmSync(PACKED, { recursive: true, force: true });
  for (const [path, content] of files(BUILT).flatMap(packed)) {
    mkdirSync(dirname(join(PACKED, path)), { recursive: true });
    writeFileSync(join(PACKED, path), content);
  }
}

/** Files that are there and should not be, the other way round, or say something else. Another zlib may pack otherwise. */
function differences() {
  const there = files(PACKED).filter((path) => path !== STAMP);
  const wanted = files(BUILT).flatMap(packed).map(([path]) => path);
  const says = (path) => readFileSync(join(BUILT, path.replace(/\.(br|gz)$/, "")));
  const odd = there.filter((path) => !wanted.includes(path) || !unpacked(path).equals(says(path)));
  return [...odd, ...wanted.filter((path) => !there.includes(path))];
}

if (process.argv[2] === "--check") {
  const odd = differences();
  if (odd.length > 0) {
    console.error(`web/dist is not what web/src makes: ${odd.join(" ")}; run cargo xtask web-build`);
    process.exit(1);
  }
} else {
  pack();
}
