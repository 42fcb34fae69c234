// The place beside the terminal: loads a panel when it is opened.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { follow, sessionPath } from "../lib/route.js";
import { Icon } from "../ui/icons.js";
import { panels, type PanelProps } from "./index.js";

export function PanelFrame({ id, live, screen }: PanelProps & { id: string }) {
  const panel = panels.find((one) => one.id === id);
  const [loaded, setLoaded] = useState<{ id: string; Body: ComponentType<PanelProps> } | undefined>();
  useEffect(() => {
    let isGone = false;
    void panel?.load().then(({ default: Body }) => isGone || setLoaded({ id, Body }));
    return () => (isGone = true);
  }, [id]);
  if (!panel) return null;
  const Body = loaded?.id === id ? loaded.Body : undefined;
  return (
    <aside class="panel" aria-label={panel.title}>
      <header class="panel-bar">
        <h2>{panel.title}</h2>
        <a class="button quiet icon-only" href={sessionPath(live.name)} onClick={follow} aria-label={`Close ${panel.title}`}>
          <Icon name="close" size={16} />
        </a>
      </header>
      <div class="panel-body">{Body && <Body live={live} screen={screen} />}</div>
    </aside>
  );
}
