// The session an address names; a session that gets another name takes the address with it.

import { useEffect, useRef } from "preact/hooks";
import { follow, go, sessionPath } from "../lib/route.js";
import { find, loaded } from "../lib/store.js";
import { Line } from "../ui/Text.js";
import { startedHere } from "./started.js";
import { Workspace } from "./Workspace.js";

export function SessionPage({ name, panel }: { name: string; panel?: string | undefined }) {
  const before = useRef<{ name: string; id: string } | undefined>(undefined);
  const known = before.current?.name === name ? find(before.current.id) : undefined;
  // What was just started here is meant, though one of that name that has ended was looked at.
  const named = find(name);
  const live = named && startedHere.has(named.id) ? named : (known ?? named);
  if (live) before.current = { name, id: live.id };
  const renamed = live && live.id !== name && live.name !== name ? live.name : undefined;
  useEffect(() => {
    if (!renamed || !live) return;
    before.current = { name: renamed, id: live.id };
    go(sessionPath(renamed, panel), "replace");
  }, [renamed]);
  if (live) return <Workspace key={`${live.id}.${live.view.value.incarnation ?? 1}`} live={live} panel={panel} />;
  if (!loaded.value) return <main class="notice" aria-busy="true" />;
  return (
    <main class="notice">
      <h1>No such session</h1>
      <p class="muted">
        No session here is called <Line text={name} />. It may have ended and been cleared away.
      </p>
      <p>
        <a class="button" href="/" onClick={follow}>
          All sessions
        </a>
      </p>
    </main>
  );
}
