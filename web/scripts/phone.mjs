// Builds what browsers behind a relay need, beside the page in `build`: the shell that a relay serves (`i`), with its policy, and the
// page in one piece (`phone`), which the host signs.

import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const path = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const text = (name) => readFileSync(path(name), "utf8");
const digest = (content) => `sha256-${createHash("sha256").update(content).digest("base64")}`;

const frameHash = digest(text("phone/frame.js"));
const alias = [
  { find: /^@holdfast\/client\/channel$/, replacement: path("../sdk/typescript/src/channel.ts") },
  { find: /^@holdfast\/client$/, replacement: path("../sdk/typescript/src/index.ts") },
];
const common = { configFile: false, root: path("."), publicDir: false, logLevel: "error", resolve: { alias } };

/** One script, and one style sheet where it has styles. */
function one(input, outDir, name, format) {
  return build({
    ...common,
    define: { __FRAME_HASH__: JSON.stringify(frameHash) },
    build: {
      target: "es2022",
      outDir: path(outDir),
      emptyOutDir: true,
      assetsInlineLimit: 0,
      cssCodeSplit: false,
      modulePreload: false,
      chunkSizeWarningLimit: 1000,
      rollupOptions: {
        input: path(input),
        output: { format, inlineDynamicImports: true, entryFileNames: `${name}.js`, assetFileNames: `${name}[extname]` },
      },
    },
  });
}

await one("src/main.tsx", "build/phone", "page", "iife");
await one("phone/shell.ts", "build/i", "shell", "es");

const shell = path("build/i");
for (const name of ["index.html", "shell.css", "manifest.webmanifest"]) copyFileSync(path(`phone/${name}`), `${shell}/${name}`);
for (const name of ["icon.svg", "icon-192.png"]) copyFileSync(path(`public/${name}`), `${shell}/${name}`);

// The worker knows the files by their digests, so that no two versions are mixed.
const served = (name) => (name === "index.html" ? "/i" : `/i/${name}`);
const files = Object.fromEntries(readdirSync(shell).sort().map((name) => [served(name), digest(readFileSync(`${shell}/${name}`))]));
const version = createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 16);
writeFileSync(`${shell}/sw.js`, text("phone/sw.js").replace("__FILES__", JSON.stringify(files, null, 2)).replace("__VERSION__", version));

// Channels go to other relays than the one that served the shell, too. The frame inherits all of this.
const here = ["127.0.0.1", "localhost"].flatMap((name) => [`http://${name}:*`, `ws://${name}:*`]);
const policy = [
  "default-src 'none'",
  `script-src 'self' blob: '${frameHash}'`,
  "style-src 'self'",
  "img-src 'self' data: blob:",
  `connect-src 'self' https: wss: ${here.join(" ")}`,
  "manifest-src 'self'",
  "worker-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
];
writeFileSync(`${shell}/policy`, policy.join("; "));
mkdirSync(path("build/phone"), { recursive: true });
rmSync(path("build/phone/.vite"), { recursive: true, force: true });
