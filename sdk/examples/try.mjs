// The example of the Vercel AI SDK with a model that says what it is told to: first a command, then what came of it.

import { MockLanguageModelV3 } from "ai/test";
import { connect } from "@holdfast/client/node";
import { answer } from "./vercel_ai.mjs";

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const results = prompt.filter(({ role }) => role === "tool").flatMap(({ content }) => content.map(({ output }) => output.value));
    const input = JSON.stringify({ command: "echo from $((40 + 2))" });
    return results.length > 0
      ? { content: [{ type: "text", text: results[0] }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] }
      : { content: [{ type: "tool-call", toolCallId: "1", toolName: "run_command", input }], finishReason: { unified: "tool-calls", raw: "tool-calls" }, usage, warnings: [] };
  },
});
const client = await connect();
const session = await client.open({ name: "vercel-ai" });
const { text } = await answer(model, session, "go");
await session.end({ graceMs: 0 });
client.close();
if (text !== "exit 0\nfrom 42\n") throw new Error(JSON.stringify(text));
console.log("vercel-ai: ran");
