/** Sessions of a Holdfast host, from Node: over the unix socket of this machine's host, or over a WebSocket. */

import { join } from "node:path";
import { Client, type ClientOptions } from "./client.js";
import { HoldfastError } from "./errors.js";
import { connect as connectByUrl, type ConnectOptions } from "./index.js";
import { FarWay, type FarOptions } from "./node/far.js";
import { homeFrom, homeUnder } from "./node/home.js";
import { Identity } from "./node/identity.js";
import { mustBeOurs } from "./node/trust.js";
import { unixDialer } from "./node/unix.js";
import type { NewParams } from "./types.js";
import { TOKEN_SUBPROTOCOL, type WebSocketMaker } from "./websocket.js";

export * from "./index.js";
export { homeFrom, homeUnder } from "./node/home.js";
export type { Home } from "./node/home.js";
export { challengeBytes, Identity } from "./node/identity.js";

/** How to reach the host of this machine. */
export interface LocalOptions extends ClientOptions {
  /** Who acts: a handle whose key lies in the home (made there at first use), or the path of a key file. */
  actor?: string;
  /** The directory of the home; otherwise HOLDFAST_HOME, or the XDG directories. */
  home?: string;
  /** The program that starts a host where none runs; otherwise HOLDFAST_BIN, or `holdfast`. */
  program?: string;
  /** `false`: no host is started. */
  start?: boolean;
  /** The environment that all of this is looked up in. */
  env?: NodeJS.ProcessEnv;
}

/** Variables that belong to the caller alone: the session it is in itself, and who it is. What runs inside is somebody else. */
const OUTER = ["HOLDFAST_SESSION", "HOLDFAST_SESSION_NAME", "HOLDFAST_ENV", "HOLDFAST_LIFE", "HOLDFAST_ACTOR"];

/** A client of this machine's host, or of the one at an address, and connected to it. */
export async function connect(options?: LocalOptions): Promise<Client>;
export async function connect(url: string, options?: ConnectOptions): Promise<Client>;
export async function connect(where?: string | LocalOptions, options: ConnectOptions = {}): Promise<Client> {
  const client = typeof where === "string" ? await remote(where, options) : await local(where ?? {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.close();
    throw error;
  }
}

async function local(options: LocalOptions): Promise<Client> {
  const env = options.env ?? process.env;
  const home = options.home === undefined ? homeFrom(env) : homeUnder(options.home);
  mustBeOurs(home.state);
  mustBeOurs(home.run);
  const said = options.actor ?? (env["HOLDFAST_ACTOR"] || "agent:node");
  const prover = said.includes("/") ? Identity.fromFile(said) : await Identity.ofHandle(home, said);
  if (!prover) throw new HoldfastError("no_such_actor", `no key file ${said}`);
  const program = options.start === false ? undefined : (options.program ?? (env["HOLDFAST_BIN"] || "holdfast"));
  const hostEnv = options.home === undefined ? env : { ...env, HOLDFAST_HOME: options.home };
  const dialer = unixDialer({ home, socket: join(home.run, "host.sock"), prover, program, env: hostEnv });
  const client = new Client(dialer, options);
  client.defaults = () => sessionDefaults(env);
  client.reach = (host) => far({ home, identity: prover, program: options.program ?? (env["HOLDFAST_BIN"] || "holdfast"), host, env: hostEnv }, options);
  return client;
}

/** A client of another machine: what a session starts with is what that machine has. */
async function far(options: FarOptions, how: ClientOptions): Promise<Client> {
  const way = new FarWay(options);
  const client = new Client(way, how);
  client.onClose = () => way.close();
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.close();
    throw error;
  }
}

/** What a session starts with is what its caller has. */
function sessionDefaults(env: NodeJS.ProcessEnv): Partial<NewParams> {
  const variables: Record<string, string | undefined> = { ...env };
  for (const key of OUTER) delete variables[key];
  // Without a terminal of its own, `dumb` is what the caller has, not what the session will be attached to.
  if (!variables["TERM"] || variables["TERM"] === "dumb") variables["TERM"] = "xterm-256color";
  return {
    command: [env["SHELL"] || "/bin/sh"],
    cwd: process.cwd(),
    env: Object.entries(variables).flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}`])),
  };
}

async function remote(url: string, options: ConnectOptions): Promise<Client> {
  return connectByUrl(url, { ...options, webSocket: options.webSocket ?? (await nodeWebSocket()) });
}

/** That of `ws`, which can send a header; Node's own where `ws` is not installed. */
async function nodeWebSocket(): Promise<WebSocketMaker> {
  try {
    const { WebSocket } = await import("ws");
    return (url, subprotocols) => {
      const isToken = (subprotocol: string) => subprotocol.startsWith(TOKEN_SUBPROTOCOL);
      const token = subprotocols.find(isToken)?.slice(TOKEN_SUBPROTOCOL.length);
      const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      const others = subprotocols.filter((subprotocol) => !isToken(subprotocol));
      return new WebSocket(url, others, { headers, maxPayload: 64 * 1024 * 1024 }) as unknown as ReturnType<WebSocketMaker>;
    };
  } catch (error) {
    const native = (globalThis as { WebSocket?: new (url: string, subprotocols: string[]) => unknown }).WebSocket;
    if (!native) {
      const hint = "install it beside @holdfast/client: npm install ws";
      throw new HoldfastError("bad_request", "this version of Node has no WebSocket, and `ws` is not installed", { hint, cause: error });
    }
    return (url, subprotocols) => new native(url, subprotocols) as ReturnType<WebSocketMaker>;
  }
}
