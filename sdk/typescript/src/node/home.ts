// Where Holdfast keeps its things, as the program finds them: HOLDFAST_HOME, or the XDG directories.

import { isAbsolute, join } from "node:path";
import { HoldfastError } from "../errors.js";

export interface Home {
  /** Sessions, keys, the host's log. */
  state: string;
  /** Sockets. */
  run: string;
}

export function homeUnder(dir: string): Home {
  return { state: dir, run: join(dir, "run") };
}

/** The directories that an environment names. */
export function homeFrom(env: NodeJS.ProcessEnv = process.env): Home {
  if (env["HOLDFAST_HOME"]) return homeUnder(env["HOLDFAST_HOME"]);
  // The XDG rules: a relative path is to be ignored.
  const xdg = (key: string) => (isAbsolute(env[key] ?? "") ? env[key] : undefined);
  const base = xdg("XDG_STATE_HOME") ?? (env["HOME"] ? join(env["HOME"], ".local/state") : undefined);
  if (base === undefined) {
    throw new HoldfastError("not_found", "cannot find a directory for sessions: neither HOLDFAST_HOME nor HOME is set");
  }
  const state = join(base, "holdfast");
  const runtime = xdg("XDG_RUNTIME_DIR");
  return { state, run: runtime === undefined ? join(state, "run") : join(runtime, "holdfast") };
}
