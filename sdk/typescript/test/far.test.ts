// Commands on another machine: what stands for ssh starts programs in another home.

import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { HoldfastError } from "../src/node.js";
import { Home, program } from "./home.js";

const SSH = `#!/bin/sh
while [ "$1" != -- ]; do
    [ "$1" = -O ] && exit 0
    shift
done
[ -e "FAR/away" ] && { echo "ssh: connect to host $2 port 22: Connection refused" >&2; exit 255; }
cd FAR && exec env -i HOLDFAST_HOME=FAR HOME=FAR HOLDFAST_TEST_TOP="$HOLDFAST_TEST_TOP" PATH="$PATH" SHELL=/bin/bash sh -c "$3"
`;

/** A machine, and another one that it knows as `gpu`. */
async function two(): Promise<[Home, Home]> {
  const [near, far] = [Home.make(), Home.make()];
  const ssh = near.join("ssh");
  writeFileSync(ssh, SSH.replaceAll("FAR", far.dir));
  chmodSync(ssh, 0o755);
  near.env["HOLDFAST_SSH"] = ssh;
  await near.holdfast("hosts", "add", "gpu", "--ssh", "gpu", "--program", program());
  return [near, far];
}

it("a command runs on another machine in one call", async () => {
  const [near, far] = await two();
  const client = await near.client();
  const told: string[] = [];
  const ran = await client.run("pwd; echo err >&2; exit 3", { host: "gpu", separateStderr: true, onOutput: (text) => told.push(text) });
  expect([ran.exit_code, ran.output, ran.stderr]).toEqual([3, `${far.dir}\n`, "err\n"]);
  expect(told.join("").trim()).toBe(far.dir);
  // An actor of its own there.
  expect(ran.actor.handle).toMatch(/^agent:node\./);
  const once = await client.run(["sh", "-c", "echo x >> once"], { host: "gpu", key: "k" });
  expect((await client.run(["sh", "-c", "echo x >> once"], { host: "gpu", key: "k" })).id).toBe(once.id);
  expect(readFileSync(far.join("once"), "utf8")).toBe("x\n");
  const there = await client.at("gpu");
  expect(await client.at("gpu")).toBe(there);
  const session = await there.open({ name: "work", command: ["bash", "--norc"] });
  expect((await session.run("echo $((6 * 7))")).output).toBe("42\n");
  expect((await there.sessions()).map(({ name }) => name)).toEqual(["work"]);
  expect(await client.sessions()).toEqual([]);
  // The host there is killed: the way comes back.
  await far.killHost(there);
  expect((await session.run("echo on")).output).toBe("on\n");
  await session.end({ graceMs: 0 });
});

it("a machine that is away or unknown is told", async () => {
  const [near, far] = await two();
  const client = await near.client();
  const failure = (host: string) => client.run("true", { host }).then(() => undefined, (error: HoldfastError) => error);
  expect((await failure("nowhere"))?.message).toContain("nowhere");
  writeFileSync(far.join("away"), "");
  expect((await failure("gpu"))?.message).toContain("Connection refused");
});
