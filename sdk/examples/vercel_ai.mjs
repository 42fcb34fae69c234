// An agent of the Vercel AI SDK whose commands run in a Holdfast session.

import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

export function answer(model, session, prompt) {
  const runCommand = tool({
    description: "Run a shell command; its directory, variables and jobs stay for the next one.",
    inputSchema: z.object({ command: z.string() }),
    execute: async ({ command }, { abortSignal }) => {
      const { exit_code, output } = await session.run(command, { timeoutMs: 60_000, ...(abortSignal ? { signal: abortSignal } : {}) });
      return `exit ${exit_code}\n${output}`;
    },
  });
  return generateText({ model, prompt, tools: { run_command: runCommand }, stopWhen: stepCountIs(5) });
}
