// Frames over the host's unix socket; the host is started where none listens.

import { spawn } from "node:child_process";
import { mkdirSync, openSync, closeSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { HoldfastError, disconnected } from "../errors.js";
import { encodeStreamFrame, FrameReader } from "../frame.js";
import { Backoff, pause } from "../signals.js";
import type { Dialer, Prover, Receiver, Transport } from "../transport.js";
import type { Home } from "./home.js";
import { mustBeOurs } from "./trust.js";

/** How long a host may take until it answers: it reads every session's files first, on a machine that may be busy. */
const HOST_READY_MS = 15_000;
/** How long after a host was started and still none answers another one is started. */
const START_AGAIN_MS = 500;

export interface UnixOptions {
  home: Home;
  socket: string;
  prover: Prover;
  /** The program that starts a host; none: it is not started. */
  program: string | undefined;
  env: NodeJS.ProcessEnv;
}

/** Opens connections to the host of a home. */
export function unixDialer(options: UnixOptions): Dialer {
  const { socket, prover } = options;
  return { where: socket, prover, dial: (receiver, signal) => dial(options, receiver, signal) };
}

async function dial(options: UnixOptions, receiver: Receiver, signal: AbortSignal): Promise<Transport> {
  const deadline = Date.now() + HOST_READY_MS;
  const backoff = new Backoff(2, 50);
  let startAt = 0;
  for (;;) {
    signal.throwIfAborted();
    // Again: what was not there when it was looked at may be somebody else's now.
    mustBeOurs(options.home.run);
    const socket = await open(options.socket);
    if (!(socket instanceof Error)) return carry(socket, receiver);
    const code = (socket as NodeJS.ErrnoException).code;
    const isAbsent = code === "ENOENT" || code === "ECONNREFUSED" || code === "ECONNRESET";
    if (!isAbsent) throw new HoldfastError("not_found", `cannot reach the host's socket ${options.socket}: ${socket.message}`);
    if (options.program === undefined || Date.now() > deadline) {
      throw disconnected(`no host is running (its socket would be ${options.socket})`, socket);
    }
    // Again after a while: the one we started may have yielded to another that died since. One too many yields.
    if (Date.now() >= startAt) {
      await start(options, options.program);
      startAt = Date.now() + START_AGAIN_MS;
    }
    await pause(backoff.delay(), signal);
  }
}

export function open(path: string): Promise<Socket | Error> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.removeAllListeners("error");
      resolve(socket);
    });
    socket.once("error", resolve);
  });
}

export function carry(socket: Socket, receiver: Receiver): Transport {
  const reader = new FrameReader();
  let why: unknown;
  socket.on("data", (bytes) => {
    try {
      for (const content of reader.push(bytes)) receiver.frame(content);
    } catch (error) {
      socket.destroy(error as Error);
    }
  });
  socket.on("error", (error) => (why = error));
  socket.on("close", () => receiver.closed(why));
  return {
    send: (json, bytes) => void socket.write(encodeStreamFrame({ json, bytes })),
    close: () => void socket.destroy(),
    hold: (isWaiting) => void (isWaiting ? socket.ref() : socket.unref()),
  };
}

/** Starts a host in the background. `host spawn` forks away and returns at once. */
function start(options: UnixOptions, program: string): Promise<void> {
  mkdirSync(options.home.state, { recursive: true, mode: 0o700 });
  const log = openSync(join(options.home.state, "host.log"), "a", 0o600);
  const started = new Promise<void>((resolve, reject) => {
    const failed = (why: string) =>
      reject(
        new HoldfastError("cannot_start", `cannot start the host from ${program}: ${why}`, {
          hint: "is `holdfast` installed? give its place as `program`, or as HOLDFAST_BIN",
        }),
      );
    const child = spawn(program, ["host", "spawn"], { cwd: "/", env: options.env, stdio: ["ignore", "ignore", log] });
    child.once("error", (error) => failed(error.message));
    child.once("exit", (code, name) => (code === 0 ? resolve() : failed(`it ended with ${code ?? name}`)));
  });
  return started.finally(() => closeSync(log));
}
