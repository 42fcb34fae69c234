// Links that let somebody into one session: each an actor of its own, a token that is that actor, and a grant in the session.
//
// Devices hold nothing by themselves, so the token opens this session and no other, and both end at the same time.

import { signal } from "@preact/signals";
import type { Actor } from "@holdfast/client";
import { SHARED, UNNAMED } from "../../lib/names.js";
import { client, type LiveSession } from "../../lib/store.js";

export interface SharedLink {
  handle: string;
  actor: Actor;
  rights: string;
  note: string;
  by: string | undefined;
  untilMs: number | undefined;
  /** None: the token is gone, and the grant is left over. */
  token: string | undefined;
  grants: number[];
}

export class Links {
  /** Links into this session that are good. */
  readonly all = signal<readonly SharedLink[]>([]);
  /** Whether this person may pass rights on here. */
  readonly may = signal<ReadonlySet<string> | undefined>(undefined);
  private readonly live: LiveSession;

  constructor(live: LiveSession) {
    this.live = live;
  }

  async read(): Promise<void> {
    const [granted, tokens] = await Promise.all([
      client.call("grant.list", { session: this.live.id }),
      client.call("token.list", {}).catch(() => []),
    ]);
    this.may.value = new Set(granted.yours.split(","));
    const links = new Map<string, SharedLink>();
    for (const { to, id, rights, until_ms, by } of granted.grants.filter(({ to }) => to.handle.startsWith(SHARED))) {
      const token = tokens.find(({ actor }) => actor === to.handle);
      const known = links.get(to.id);
      if (known) known.grants.push(id);
      else
        links.set(to.id, {
          handle: to.handle,
          actor: to,
          rights,
          note: token?.note ?? "",
          by: by?.handle,
          untilMs: token?.until_ms ?? until_ms ?? undefined,
          token: token?.id,
          grants: [id],
        });
    }
    this.all.value = [...links.values()];
  }

  /** Makes a link; what it opens with is shown this once. */
  async make(rights: string, forMs: number, note: string): Promise<{ url: string; handle: string; untilMs: number }> {
    const handle = `${SHARED}${random()}`;
    const made = await client.call("token.new", { actor: handle, can: rights, for_ms: forMs, note: note || `${UNNAMED}${this.live.name}` });
    const untilMs = made.token.until_ms;
    try {
      const actor = (await client.call("actor.list", {})).find((one) => one.actor.handle === handle)?.actor;
      if (!actor) throw new Error("the host does not know the link's actor");
      await client.call("grant.add", { session: this.live.id, to: actor, rights, until_ms: untilMs });
    } catch (error) {
      await client.call("token.revoke", { token: made.token.id }).catch(() => undefined);
      throw error;
    }
    await this.read();
    const url = `${location.origin}/#token=${made.text}&session=${encodeURIComponent(this.live.name)}`;
    return { url, handle, untilMs };
  }

  async revoke(link: SharedLink): Promise<void> {
    // The token first: it is what opens the door.
    if (link.token) await client.call("token.revoke", { token: link.token });
    for (const grant of link.grants) await client.call("grant.revoke", { session: this.live.id, grant });
    await this.read();
  }
}

function random(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(4)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
