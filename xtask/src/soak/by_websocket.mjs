// An operator of the soak by the TypeScript client over a WebSocket, as the page uses it: a request a line on standard input, an
// answer a line on standard output. Arguments: the built client, and the host's address; the token is in the environment.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [built, address] = process.argv.slice(2);
const { connect, HoldfastError } = await import(pathToFileURL(built).href);
const client = await connect(address, { token: process.env.HOLDFAST_TOKEN });

async function done(asked) {
  const session = await client.session(asked.session);
  if (asked.do === "look") return { state: (await session.state()).state, tail: await session.tail(3) };
  if (asked.do === "type") return { written: (await session.send(`${asked.text}\r`)).written };
  const run = await session.run(asked.command, { key: asked.key, timeoutMs: 20_000 });
  return { exit_code: run.exit_code, state: run.state };
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await done(JSON.parse(line)).catch((error) => {
    if (error instanceof HoldfastError) return { error: { code: error.code } };
    throw error;
  });
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
client.close();
