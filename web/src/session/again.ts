// Starts what a session ran once more, in a session of the same name and directory.

import { login } from "../lib/login.js";
import { mayStart } from "../lib/guest.js";
import { go, sessionPath } from "../lib/route.js";
import { client, take, type LiveSession } from "../lib/store.js";
import { attempt } from "../ui/told.js";
import { startedHere } from "./started.js";

/** Whether that can be done: the session is over, and this login may start others. */
export function mayStartAgain(live: LiveSession): boolean {
  return live.view.value.life === "ended" && login.value.state === "in" && mayStart(login.value.me);
}

export async function startAgain(live: LiveSession): Promise<void> {
  const { name, command, cwd } = live.view.value;
  const session = await attempt(() => client.open({ name, command, cwd, existing: false }));
  if (!session) return;
  const next = take(session.view);
  startedHere.add(next.id);
  go(sessionPath(next.name));
}
