// Runs a TypeScript file: `node scripts/run.mjs FILE`.

import { createServer } from "vite";

const [file] = process.argv.slice(2);
const server = await createServer({ server: { middlewareMode: true, ws: false, watch: null }, appType: "custom", logLevel: "error" });
try {
  await server.ssrLoadModule(new URL(`../${file}`, import.meta.url).pathname);
} finally {
  await server.close();
}
