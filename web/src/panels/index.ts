// What stands beside a session's terminal, and pages of the host. Each is a file of its own, loaded when it is opened.
//
// A panel is `/s/NAME/ID`: it gets the session, live, and the terminal beside it. A page is `/ID`. To add one, write the component
// and add a line here; nothing else has to know it.

import type { ComponentType } from "preact";
import { phone } from "../lib/phone.js";
import type { IconName } from "../ui/icons.js";
import type { LiveSession } from "../lib/store.js";
import type { Screen } from "../session/screen.js";

export interface PanelProps {
  live: LiveSession;
  /** The terminal beside it, once it is attached: to jump to an offset of the output. */
  screen: Screen | undefined;
}

export interface Panel {
  id: string;
  title: string;
  /** The right without which it is of no use. */
  needs?: string;
  load: () => Promise<{ default: ComponentType<PanelProps> }>;
}

export interface Page {
  id: string;
  title: string;
  icon: IconName;
  /** It takes all the width there is. */
  isWide?: boolean;
  load: () => Promise<{ default: ComponentType }>;
}

export const panels: Panel[] = [
  { id: "timeline", title: "Timeline", load: () => import("./timeline/Timeline.js") },
  { id: "graph", title: "Graph", load: () => import("./graph/Graph.js") },
  { id: "files", title: "Files", needs: "files:read", load: () => import("./files/Files.js") },
  // Links are tokens, which a device behind a relay cannot make.
  ...(phone ? [] : [{ id: "share", title: "Share", needs: "grant", load: () => import("./share/Share.js") }]),
];

export const pages: Page[] = [
  { id: "flows", title: "Flows", icon: "flow", load: () => import("../flows/Flows.js") },
  { id: "watch", title: "Watch several", icon: "grid", isWide: true, load: () => import("../watch/Watch.js") },
];
