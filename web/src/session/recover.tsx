// Another life for a session that was lost.

import { login } from "../lib/login.js";
import { refresh, type LiveSession } from "../lib/store.js";
import { attempt } from "../ui/told.js";

/** Whether this login may ask for it; the host decides. */
export function mayRecover(live: LiveSession): boolean {
  if (live.view.value.life !== "lost" || login.value.state !== "in") return false;
  const can = login.value.me.token?.can;
  return can === undefined || can === null || can.split(/[ ,]+/).includes("run");
}

export async function recover(live: LiveSession): Promise<void> {
  await attempt(() => live.session.recover());
  refresh(live);
}

/** The button. On a card, which is a link, it opens nothing. */
export function Recover({ live }: { live: LiveSession }) {
  if (!mayRecover(live)) return null;
  const press = (event: Event) => {
    event.preventDefault();
    event.stopPropagation();
    void recover(live);
  };
  return (
    <button type="button" class="small primary" title={live.view.value.lost?.why ?? "This session was lost"} onClick={press}>
      Recover
    </button>
  );
}
