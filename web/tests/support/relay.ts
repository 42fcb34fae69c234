// A relay of its own for a test, and a phone that opens an invite through it.

import { spawn, type ChildProcess } from "node:child_process";
import type { Frame, Page } from "playwright-core";
import { until, HUMAN, type Home } from "./home.js";

export class Relay {
  private constructor(
    private readonly child: ChildProcess,
    readonly url: string,
  ) {}

  /** Starts one on this machine, at a port of its own or at that of one that is gone. */
  static start(home: Home, port = 0): Promise<Relay> {
    return Relay.at(home, [], `127.0.0.1:${port}`);
  }

  /** Starts one behind a command that says where it runs. */
  static async at(home: Home, within: readonly string[], listen: string, ...more: string[]): Promise<Relay> {
    const [program = "", ...args] = [...within, home.program, "relay", "--listen", listen, ...more];
    const child = spawn(program, args, { env: home.env, stdio: ["ignore", "pipe", "ignore"] });
    let text = "";
    child.stdout?.on("data", (chunk) => (text += String(chunk)));
    const url = await until("the relay", () => /https?:\/\/[\d.]+:\d+/.exec(text)?.[0]);
    return new Relay(child, url);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Ends it at once. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await gone;
  }
}

/** The link of an invite that a human made. */
export async function invite(home: Home, ...args: string[]): Promise<string> {
  return (await home.json<{ link: string }>(HUMAN, "invite", ...args)).link;
}

/** Opens a link in a browser, as the person who got it does. The answer is the frame in which the host's page runs. */
export async function accept(opened: Page, link: string, name?: string): Promise<Frame> {
  await opened.goto(link);
  if (name) await opened.getByLabel("Name of this device").fill(name);
  await opened.getByRole("button", { name: /^Open / }).click();
  return inside(opened);
}

/** The frame of the host's page, once it is there. */
export async function inside(opened: Page): Promise<Frame> {
  await opened.locator("iframe").waitFor();
  const frame = await (await opened.locator("iframe").elementHandle())?.contentFrame();
  if (!frame) throw new Error("the frame has no page");
  await frame.locator("#app > *").first().waitFor();
  return frame;
}
