// Whether a path is believed: whether this user alone decides, with root, what lies there. As the program does it (`store::trust`).
//
// Every step of the way counts: whoever can put another file, directory or link in its place decides what is read. A directory is passed
// if only its owner can change it, who is this user or root, or if it is sticky. What the path names is this user's or root's, and
// nobody else writes there.

import { lstatSync, readFileSync, readlinkSync, type Stats } from "node:fs";
import { join, resolve } from "node:path";
import { HoldfastError } from "../errors.js";

/** Links on the way, as the kernel allows. */
const LINKS_MAX = 40;
/** Who in a namespace of users stands for all that have no number there, root of the machine included. */
const OVERFLOW_UID = 65_534;
const STICKY = 0o1000;
const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;

/** Fails where anybody else decides what lies at a path. What is not there yet is believed if its place is. */
export function mustBeOurs(path: string): void {
  let at = "/";
  judge(at, lstatSync(at), true);
  const rest = steps(resolve(path));
  for (let links = 0; rest.length > 0; ) {
    const step = rest.pop() ?? "";
    if (step === "..") {
      at = join(at, "..");
      continue;
    }
    const next = join(at, step);
    const found = look(next);
    if (!found) return;
    if (found.isSymbolicLink()) {
      links += 1;
      if (links > LINKS_MAX) throw untrusted(`cannot check who can write to ${next}: too many links`, "use a directory of your own");
      // Its permissions mean nothing; who made it decided where it leads.
      judgeOwner(next, found);
      const target = readlinkSync(next);
      if (target.startsWith("/")) at = "/";
      rest.push(...steps(target));
      continue;
    }
    judge(next, found, rest.length > 0);
    at = next;
  }
}

function look(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw untrusted(`cannot check who can write to ${path}`, "use a directory of your own");
  }
}

/** A path's names, the first one last. */
function steps(path: string): string[] {
  return path.split("/").filter((step) => step !== "" && step !== ".").reverse();
}

function judgeOwner(path: string, { uid }: Stats): void {
  const isBelieved = uid === process.geteuid?.() || uid === 0 || (uid === OVERFLOW_UID && rootIsNobody());
  if (!isBelieved) throw untrusted(`${path} belongs to another user (uid ${uid})`, "use a directory of your own");
}

function judge(path: string, found: Stats, isWay: boolean): void {
  judgeOwner(path, found);
  // A group with the number of its user is, by custom, that user's alone.
  const isLoneGroup = found.gid === found.uid && (found.mode & OTHERS_WRITE) === 0;
  const isSpared = isWay && ((found.mode & STICKY) !== 0 || isLoneGroup);
  if ((found.mode & (GROUP_WRITES | OTHERS_WRITE)) === 0 || isSpared) return;
  const mode = (found.mode & 0o7777).toString(8);
  throw untrusted(`other users can write to ${path} (mode ${mode})`, `look whether what is there is yours, then: chmod go-w ${path}`);
}

/** Root has no number here: its files look like nobody's. */
function rootIsNobody(): boolean {
  try {
    const map = readFileSync("/proc/self/uid_map", "utf8").trim();
    return map !== "" && !map.split("\n").some((line) => line.trim().split(/\s+/)[1] === "0");
  } catch {
    return false;
  }
}

function untrusted(message: string, hint: string): HoldfastError {
  return new HoldfastError("untrusted_home", message, { hint });
}
