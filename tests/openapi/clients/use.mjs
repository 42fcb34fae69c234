// Clients that openapi-typescript and hey-api made from the document, type-checked and used against the host that serves it.
//
//     node use.mjs ADDRESS TOKEN DIRECTORY

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createClient } from "@hey-api/openapi-ts";
import openapiTS, { astToString } from "openapi-typescript";

const [address, token, directory] = process.argv.slice(2);
const here = fileURLToPath(new URL(".", import.meta.url));
const at = join(directory, "node");
mkdirSync(at, { recursive: true });
symlinkSync(join(here, "node_modules"), join(at, "node_modules"));
writeFileSync(join(at, "package.json"), '{"type":"module"}');

const document = await (await fetch(`${address}/v1/openapi.json`)).json();
writeFileSync(join(at, "openapi.json"), JSON.stringify(document));
writeFileSync(join(at, "types.ts"), astToString(await openapiTS(document)));
await createClient({ input: join(at, "openapi.json"), output: join(at, "hey"), logs: { level: "silent" } });

// What a user writes, as a strict compiler takes it.
for (const name of ["fetch.ts", "hey.ts"]) cpSync(join(here, name), join(at, name));
const tsc = join(here, "node_modules/typescript/bin/tsc");
const options = ["--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext"];
execFileSync(process.execPath, [tsc, ...options, "--moduleResolution", "bundler", "--outDir", "out", "fetch.ts", "hey.ts"], {
  cwd: at,
  stdio: "inherit",
});
writeFileSync(join(at, "out/package.json"), '{"type":"module"}');
// Node wants the ends of file names that bundlers add.
const hooks = `export async function resolve(name, context, next) {
  for (const end of ["", ".js", "/index.js"]) {
    try { return await next(name + end, context); } catch (error) { if (!/^\\.{1,2}\\//.test(name)) throw error; }
  }
  throw new Error("not found: " + name);
}`;
const { register } = await import("node:module");
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
for (const name of ["fetch", "hey"]) {
  const { use } = await import(pathToFileURL(join(at, `out/${name}.js`)).href);
  await use(address, token);
  console.log(`${name === "fetch" ? "openapi-typescript" : "hey-api"}: made and used`);
}
