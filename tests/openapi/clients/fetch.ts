// With the types of openapi-typescript, through openapi-fetch.

import createClient from "openapi-fetch";
import type { paths } from "./types";

export async function use(baseUrl: string, token: string): Promise<void> {
  const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
  const made = await client.POST("/v1/sessions", { body: { name: "generated-fetch", command: ["bash"] } });
  if (!made.data) throw new Error(JSON.stringify(made.error));
  const session = made.data.id;
  const params = { path: { run: "once-fetch" } };
  const body = { session, command: "echo from fetch", wait_ms: 20_000 };
  const first = await client.PUT("/v1/runs/{run}", { params, body });
  const again = await client.PUT("/v1/runs/{run}", { params, body });
  const output: string | undefined = first.data?.output;
  if (output !== "from fetch\n" || again.data?.id !== first.data?.id || !again.data?.existing) {
    throw new Error(JSON.stringify([first, again]));
  }
  const missing = await client.GET("/v1/sessions/{session}", { params: { path: { session: "no-such-session" } } });
  if (missing.error?.code !== "not_found") throw new Error(JSON.stringify(missing));
  await client.DELETE("/v1/sessions/{session}", { params: { path: { session } } });
}
