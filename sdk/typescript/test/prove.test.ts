import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("`holdfast prove` counts this SDK among the clients of one live execution", async () => {
  const env = { ...process.env, HOLDFAST_PROVE_TYPESCRIPT: fileURLToPath(new URL("..", import.meta.url)) };
  const words = ["prove", "--only", "any-client", "--json"];
  const { stdout } = await promisify(execFile)(process.env.HOLDFAST_BIN ?? "holdfast", words, { env });
  const { findings } = JSON.parse(stdout) as { findings: { outcome: string; steps: { saw: string }[] }[] };
  expect(findings.map((finding) => finding.outcome)).toEqual(["held"]);
  expect(findings[0]?.steps.map((step) => step.saw)).toContain("the TypeScript SDK gives the same bytes");
});
