// A scripted model on loopback: it speaks the APIs of four vendors, and says what a script says.
//
// Nothing is remembered between requests: how many results of tools the conversation has is how far the script is. So a client that
// asks twice, cuts its history or asks something beside gets a sound answer.

import { createServer } from "node:http";

/** The call by which a client is asked to wait for its servers; no step of a script. */
const WAITS = "call_wait";

/** What each API's requests hold, and how its answers look. */
const APIS = [
  {
    // OpenAI, chat completions.
    fits: (path) => path.endsWith("/chat/completions"),
    tools: (body) => (body.tools ?? []).map((tool) => tool.function?.name),
    results: (body) => body.messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content)),
    answer: ({ call, say }, body) => {
      const message = call
        ? { role: "assistant", content: null, tool_calls: [{ index: 0, id: call.id, type: "function", function: { name: call.name, arguments: JSON.stringify(call.args) } }] }
        : { role: "assistant", content: say };
      const finish_reason = call ? "tool_calls" : "stop";
      const base = { id: "chat", created: 1, model: body.model ?? "scripted" };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      if (!body.stream) return { json: { ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage } };
      const chunk = (delta, finish = null) => ({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] });
      return { events: [chunk(message), chunk({}, finish_reason), { ...base, object: "chat.completion.chunk", choices: [], usage }, "[DONE]"] };
    },
  },
  {
    // Anthropic, messages.
    fits: (path) => path.includes("/messages") && !path.includes("count_tokens"),
    tools: (body) => (body.tools ?? []).map((tool) => tool.name),
    results: (body) =>
      body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : [])).filter(({ type, tool_use_id }) => type === "tool_result" && tool_use_id !== WAITS).map(({ content }) => textOf(content)),
    answer: ({ call, say }, body) => {
      const block = call ? { type: "tool_use", id: call.id, name: call.name, input: call.args } : { type: "text", text: say };
      const stop_reason = call ? "tool_use" : "end_turn";
      const message = { id: "msg_1", type: "message", role: "assistant", model: body.model ?? "scripted", content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
      if (!body.stream) return { json: { ...message, content: [block], stop_reason } };
      const empty = call ? { ...block, input: {} } : { ...block, text: "" };
      const delta = call ? { type: "input_json_delta", partial_json: JSON.stringify(call.args) } : { type: "text_delta", text: say };
      const events = [
        { type: "message_start", message },
        { type: "content_block_start", index: 0, content_block: empty },
        { type: "content_block_delta", index: 0, delta },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 1 } },
        { type: "message_stop" },
      ];
      return { events, named: true };
    },
  },
  {
    // OpenAI, responses.
    fits: (path) => path.endsWith("/responses"),
    tools: (body) => (body.tools ?? []).flatMap((tool) => (tool.type === "namespace" ? tool.tools.map(({ name }) => `${tool.name}/${name}`) : [tool.name])),
    results: (body) =>
      (Array.isArray(body.input) ? body.input : []).filter(({ type }) => type === "function_call_output").map(({ output }) => textOf(output)),
    answer: ({ call, say }) => {
      const [namespace, name] = call?.name.includes("/") ? call.name.split("/") : [undefined, call?.name];
      const item = call
        ? { type: "function_call", id: `fc_${call.id}`, call_id: call.id, name, ...(namespace ? { namespace } : {}), arguments: JSON.stringify(call.args), status: "completed" }
        : { type: "message", id: "msg_1", role: "assistant", status: "completed", content: [{ type: "output_text", text: say, annotations: [] }] };
      const response = { id: "resp_1", object: "response", created_at: 1, model: "scripted", status: "completed", output: [item], usage: { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 } };
      const events = [
        { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
        { type: "response.output_item.added", output_index: 0, item },
        { type: "response.output_item.done", output_index: 0, item },
        { type: "response.completed", response },
      ];
      return { events, named: true };
    },
  },
  {
    // Google, generateContent.
    fits: (path) => /:(stream)?generateContent$/i.test(path),
    tools: (body) => (body.tools ?? []).flatMap((tool) => (tool.functionDeclarations ?? []).map(({ name }) => name)),
    results: (body) =>
      body.contents.flatMap(({ parts }) => parts ?? []).filter((part) => part.functionResponse).map((part) => textOf(part.functionResponse.response)),
    answer: ({ call, say }, _body, path) => {
      const part = call ? { functionCall: { name: call.name, args: call.args } } : { text: say };
      const answer = {
        candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      };
      return /:stream/i.test(path) ? { events: [answer] } : { json: answer };
    },
  },
];

/** The text of a tool's result, in whatever a client wraps it. */
function textOf(content) {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((part) => (typeof part === "string" ? part : (part.text ?? textOf(part.output ?? "")))).join("");
  if (content && typeof content === "object") return textOf(content.output ?? content.error ?? content.content ?? content.result ?? JSON.stringify(content));
  return "";
}

/** A conversation longer than this has waited often enough. */
const WAIT_CHARS_MAX = 200_000;

/**
 * Serves one script: `steps` are functions from the results so far to the next call, `[tool, args]`, or to `undefined` where it is done.
 * `seen` has all results that reached the model.
 */
export async function serve(steps) {
  const seen = { results: [], tools: [], offered: [], asked: [], missing: [] };
  const next = (api, body) => {
    const tools = api.tools(body);
    const results = api.results(body);
    seen.offered = tools;
    // A title, a summary, a check of the connection: not the conversation.
    if (!tools.some((name) => name?.endsWith("run_command"))) {
      const waits = tools.find((name) => name === "WaitForMcpServers");
      return waits && JSON.stringify(body.messages).length < WAIT_CHARS_MAX ? { call: { id: WAITS, name: waits, args: {} } } : { say: "ok" };
    }
    seen.tools = tools;
    if (results.length > seen.results.length) seen.results = results;
    const wanted = steps[results.length]?.(results);
    if (!wanted) return { say: "done" };
    const [base, args] = wanted;
    // Clients have tools of their own, also of the same name: ours says whose it is wherever the client lets it.
    const fits = (tool) => tool === base || tool?.endsWith(`_${base}`) || tool?.endsWith(`/${base}`);
    const name = tools.find((tool) => fits(tool) && tool.includes("holdfast")) ?? tools.find(fits);
    if (!name) {
      seen.missing.push(base);
      return { say: `there is no tool ${base}` };
    }
    return { call: { id: `call_${results.length + 1}`, name, args } };
  };
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const path = new URL(request.url, "http://model").pathname;
      const api = APIS.find((one) => one.fits(path));
      seen.asked.push(`${request.method} ${path}`);
      let body = {};
      try {
        body = JSON.parse(Buffer.concat(parts).toString() || "{}");
      } catch {
        // Not for us.
      }
      if (!api || request.method !== "POST") {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ data: [{ id: "scripted", object: "model" }], models: [], input_tokens: 1, totalTokens: 1 }));
        return;
      }
      const { json, events, named } = api.answer(next(api, body), body, path);
      if (json) {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(json));
        return;
      }
      response.setHeader("content-type", "text/event-stream");
      for (const event of events) {
        if (named) response.write(`event: ${event.type}\n`);
        response.write(`data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
      }
      response.end();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url, seen, close };
}
