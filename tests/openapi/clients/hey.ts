// With the client of hey-api.

import { client } from "./hey/client.gen";
import { runStartPut, sessionEnd, sessionGet, sessionNew } from "./hey/sdk.gen";

export async function use(baseUrl: string, token: string): Promise<void> {
  client.setConfig({ baseUrl, auth: () => token });
  const made = await sessionNew({ body: { name: "generated-hey", command: ["bash"] } });
  if (!made.data) throw new Error(JSON.stringify(made.error));
  const session = made.data.id;
  const run = { path: { run: "once-hey" }, body: { session, command: "echo from hey", wait_ms: 20_000 } };
  const first = await runStartPut(run);
  const again = await runStartPut(run);
  if (first.data?.output !== "from hey\n" || again.data?.id !== first.data.id || !again.data.existing) {
    throw new Error(JSON.stringify([first, again]));
  }
  const missing = await sessionGet({ path: { session: "no-such-session" } });
  if (missing.error?.code !== "not_found") throw new Error(JSON.stringify(missing.error));
  await sessionEnd({ path: { session } });
}
