import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

// `npm run dev` serves the sources, and passes /v1 on to a host; the page must be told a login code by hand then.
const HOST = process.env["HOLDFAST_URL"] ?? "http://127.0.0.1:7433";

export default defineConfig({
  resolve: {
    alias: [
      { find: /^@holdfast\/client\/channel$/, replacement: fileURLToPath(new URL("../sdk/typescript/src/channel.ts", import.meta.url)) },
      { find: /^@holdfast\/client$/, replacement: fileURLToPath(new URL("../sdk/typescript/src/index.ts", import.meta.url)) },
    ],
  },
  build: {
    target: "es2022",
    // What is committed and served is `dist`, packed from this: `cargo xtask web-build`.
    outDir: "build",
    // A font or picture inside a style sheet would be a `data:` address, which the page's policy does not allow there.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/v1": { target: HOST, changeOrigin: true, ws: true } } },
  test: { include: ["tests/**/*.test.ts"], testTimeout: 90_000, hookTimeout: 60_000, fileParallelism: false },
} as Parameters<typeof defineConfig>[0]);
