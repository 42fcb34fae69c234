// The ports that a session listens on. Who may type there opens one in a tab: the host shows it at an origin of its own.

import { post } from "../lib/login.js";
import { phone } from "../lib/phone.js";
import type { LiveSession, Port } from "../lib/store.js";
import { shownLine } from "../lib/text.js";
import { attempt, tell } from "../ui/told.js";

/** The ports that can be opened, each once: a server often listens at several addresses. */
export function previewed(live: LiveSession): Port[] {
  // A preview is a tab at the host's own address, which is not reached from behind a relay.
  const open = phone ? [] : live.ports.value.filter(({ kind }) => kind === "stream");
  return open.filter(({ port }, at) => open.findIndex((one) => one.port === port) === at);
}

/** Opens what listens on a port in a tab. */
export async function openPreview(live: LiveSession, port: number): Promise<void> {
  // By the click itself: a tab that is opened after an answer is taken for a popup.
  const tab = window.open("about:blank", "_blank");
  if (!tab) return tell("The browser did not open a tab. Allow popups for this page.", "bad");
  const opened = await attempt(() => post<{ url: string }>("/v1/previews", { session: live.id, port }));
  if (!opened) return tab.close();
  // What is shown there learns nothing of this page.
  tab.opener = null;
  tab.location.replace(opened.url);
}

export function Ports({ live, mayOpen }: { live: LiveSession; mayOpen: boolean }) {
  return (
    <>
      {live.ports.value.map((port) => (
        <PortChip key={port.socket} live={live} port={port} mayOpen={mayOpen} />
      ))}
    </>
  );
}

function PortChip({ live, port, mayOpen }: { live: LiveSession; port: Port; mayOpen: boolean }) {
  const title = shownLine(port.address);
  if (phone || !mayOpen || port.kind !== "stream" || live.view.value.life !== "running") {
    return (
      <span class="port" title={title}>
        <span class="visually-hidden">listens on port </span>:{port.port}
      </span>
    );
  }
  return (
    <button type="button" class="port" title={`Open ${title} in a new tab`} onClick={() => void openPreview(live, port.port)}>
      <span class="visually-hidden">Open port </span>:{port.port}
      <span aria-hidden="true"> ↗</span>
    </button>
  );
}

/** The same for a menu: a phone's bar has no room for ports. */
export function PortItems({ live }: { live: LiveSession }) {
  return (
    <>
      {previewed(live).map(({ port }) => (
        <button key={port} type="button" onClick={() => void openPreview(live, port)}>
          Open port {port} …
        </button>
      ))}
    </>
  );
}
