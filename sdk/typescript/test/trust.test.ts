// A home that somebody else decides over is not used.

import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { connect } from "../src/node.js";
import { mustBeOurs } from "../src/node/trust.js";

function scratch(): string {
  const dir = mkdtempSync(join(tmpdir(), "hftrust"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

it("believes what is this user's, also by a link, and what is not there yet", () => {
  const dir = scratch();
  mkdirSync(join(dir, "home"), { mode: 0o700 });
  symlinkSync("home", join(dir, "link"));
  for (const path of ["home", "link", "link/../home", "link/none/at/all"]) mustBeOurs(join(dir, path));
});

it("refuses a home that others can write, or that another user owns, before it reads or makes anything there", async () => {
  const dir = scratch();
  const home = join(dir, "home");
  mkdirSync(home);
  chmodSync(home, 0o777);
  const refused = connect({ home, start: false });
  await expect(refused).rejects.toMatchObject({ code: "untrusted_home", hint: expect.stringContaining(`chmod go-w ${home}`) as string });
  expect(() => mustBeOurs(join(home, "below"))).toThrow(/other users can write/);
  chmodSync(home, 0o700);
  symlinkSync(home, join(dir, "link"));
  if (process.geteuid?.() !== 0) return;
  chownSync(home, 4711, 4711);
  for (const path of [home, join(dir, "link")]) {
    await expect(connect({ home: path, start: false })).rejects.toMatchObject({ code: "untrusted_home", message: `${home} belongs to another user (uid 4711)` });
  }
});
