// The agents: how each is installed, configured and started with a prompt, and the bare one that needs no package.

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { join } from "node:path";

/** Packages, pinned: what they do must not change under a comparison. */
export const PACKAGES = {
  claude: "@anthropic-ai/claude-code@2.1.197",
  codex: "@openai/codex@0.169.0",
  gemini: "@google/gemini-cli@0.61.0",
  opencode: "opencode-ai@1.18.33",
};

/** A program's end, with what it said. It is ended by its number where it takes too long. */
function ended(program, args, options, patience_ms) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    const hear = (part) => (said = (said + part).slice(-20_000));
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    const timer = setTimeout(() => child.kill("SIGKILL"), patience_ms);
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, said });
    });
  });
}

function write(path, content) {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content, null, 2));
}

/** What every client of `holdfast mcp` is told. */
const entry = (world) => ({ command: world.program, args: ["--as", world.actor, "mcp"], env: world.mcpEnv });

/** Each runs one prompt to its end. `world.home` is its HOME too, so that nobody's own settings count. */
export const CLIENTS = {
  async bare(world, model, prompt) {
    return bare(world, model, prompt);
  },
  async claude(world, model, prompt) {
    write(join(world.home, "mcp.json"), { mcpServers: { holdfast: entry(world) } });
    const args = ["-p", prompt, "--mcp-config", join(world.home, "mcp.json"), "--strict-mcp-config", "--allowedTools", "mcp__holdfast", "--model", "claude-sonnet-4-5"];
    const env = { ANTHROPIC_BASE_URL: model, ANTHROPIC_API_KEY: "none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", ENABLE_TOOL_SEARCH: "false", DISABLE_AUTOUPDATER: "1", MCP_TIMEOUT: "60000" };
    return ended(world.bin("claude"), args, { cwd: world.dir, env: { ...world.env, ...env } }, world.patience_ms);
  },
  async codex(world, model, prompt) {
    const { command, args, env } = entry(world);
    const table = Object.entries(env).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    const config = `model = "scripted"\nmodel_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\nbase_url = "${model}/v1"\nwire_api = "responses"\nenv_key = "NO_KEY"\nrequest_max_retries = 0\n`;
    const server = `[mcp_servers.holdfast]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\nstartup_timeout_sec = 60\ntool_timeout_sec = 120\ndefault_tools_approval_mode = "approve"\n[mcp_servers.holdfast.env]\n${table.join("\n")}\n`;
    write(join(world.home, ".codex/config.toml"), config + server);
    const words = ["exec", "--skip-git-repo-check", "--sandbox", "read-only", prompt];
    return ended(world.bin("codex"), words, { cwd: world.dir, env: { ...world.env, NO_KEY: "none", CODEX_HOME: join(world.home, ".codex") } }, world.patience_ms);
  },
  async gemini(world, model, prompt) {
    const settings = { mcpServers: { holdfast: { ...entry(world), trust: true, timeout: 120_000 } }, security: { auth: { selectedType: "gemini-api-key" } }, telemetry: { enabled: false } };
    write(join(world.home, ".gemini/settings.json"), settings);
    const env = { GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_TRUST_WORKSPACE: "true" };
    return ended(world.bin("gemini"), ["-p", prompt, "--yolo", "-m", "gemini-2.5-pro"], { cwd: world.dir, env: { ...world.env, ...env } }, world.patience_ms);
  },
  async opencode(world, model, prompt) {
    const { command, args, env } = entry(world);
    const config = {
      model: "scripted/scripted",
      small_model: "scripted/scripted",
      autoupdate: false,
      provider: { scripted: { npm: "@ai-sdk/openai-compatible", name: "scripted", options: { baseURL: `${model}/v1`, apiKey: "none" }, models: { scripted: { name: "scripted", tool_call: true } } } },
      mcp: { holdfast: { type: "local", command: [command, ...args], environment: env, enabled: true, timeout: 60_000 } },
    };
    write(join(world.dir, "opencode.json"), config);
    return ended(world.bin("opencode"), ["run", "-m", "scripted/scripted", prompt], { cwd: world.dir, env: { ...world.env, OPENCODE_DISABLE_MODELS_FETCH: "1" } }, world.patience_ms);
  },
};

/** The loop that every agent is: asks the model, calls the tool, gives the result back. */
async function bare(world, model, prompt) {
  const child = spawn(world.program, ["--as", world.actor, "mcp"], { cwd: world.dir, env: { ...world.env, ...world.mcpEnv }, stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  let number = 0;
  const ask = (method, params) =>
    new Promise((resolve) => {
      waiting.set(++number, resolve);
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: number, method, params })}\n`);
    });
  const client = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "bare", version: "1" } };
  await ask("initialize", client);
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
  const { result } = await ask("tools/list", {});
  const tools = result.tools.map(({ name, description, inputSchema }) => ({ type: "function", function: { name, description, parameters: inputSchema } }));
  const messages = [{ role: "user", content: prompt }];
  for (;;) {
    const body = JSON.stringify({ model: "scripted", messages, tools });
    const { choices } = await (await fetch(`${model}/v1/chat/completions`, { method: "POST", body })).json();
    const { message } = choices[0];
    messages.push(message);
    if (!message.tool_calls) break;
    for (const call of message.tool_calls) {
      const answer = await ask("tools/call", { name: call.function.name, arguments: JSON.parse(call.function.arguments) });
      messages.push({ role: "tool", tool_call_id: call.id, content: answer.result?.content?.[0]?.text ?? JSON.stringify(answer.error) });
    }
  }
  child.stdin.end();
  const code = await new Promise((resolve) => child.on("exit", resolve));
  return { code, said: messages.at(-1).content };
}
