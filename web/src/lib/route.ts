// Which view the address names: `/`, `/s/NAME`, `/s/NAME/PANEL`, `/watch`, `/flows/ID`.

import { signal } from "@preact/signals";
import { askShell, followShell, phone } from "./phone.js";

export type Route = { view: "home" } | { view: "session"; name: string; panel?: string } | { view: "page"; page: string; item?: string };

function read(path: string): Route {
  const [first, name, panel] = path.split("/").filter(Boolean).map(decode);
  if (first === "s" && name) return { view: "session", name, ...(panel ? { panel } : {}) };
  if (first) return { view: "page", page: first, ...(name ? { item: name } : {}) };
  return { view: "home" };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Where we are. In the shell's frame the shell has the address. */
let path = phone?.path ?? location.pathname;

export const route = signal<Route>(read(path));

function arrive(at: string): void {
  path = at;
  route.value = read(at);
}

addEventListener("popstate", () => arrive(location.pathname));
followShell(arrive);

/** The address of a session, and of a panel beside it. */
export function sessionPath(name: string, panel?: string): string {
  return `/s/${encodeURIComponent(name)}${panel ? `/${panel}` : ""}`;
}

/** The address of a flow. */
export function flowPath(id: string): string {
  return `/flows/${encodeURIComponent(id)}`;
}

/** Goes to a view. */
export function go(to: string, how: "push" | "replace" = "push"): void {
  if (phone) {
    if (to !== path) askShell({ path: to, how });
    // A fragment goes, too: it may have been a login code.
  } else if (to !== path || location.hash !== "") history[how === "push" ? "pushState" : "replaceState"](null, "", to);
  arrive(to);
}

/** For links: goes there without loading the page anew. */
export function follow(event: MouseEvent): void {
  const link = event.currentTarget as HTMLAnchorElement;
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.pathname);
}
