// Runs a host's page in a frame of its own: without an origin, so that it reaches neither keys nor other hosts, and without a network but
// the connections that it is given here.

import { relayDialer, servePort, type SignedPage, type Way } from "@holdfast/client/channel";
import bootstrap from "./frame.js?raw";
import { keepHost, type Host } from "./kept.js";
import { harmless } from "./view.js";

/** Connections of one page at once: a terminal has one, a wall of them a dozen. */
const CONNECTIONS_MAX = 64;
/** What a page may have remembered, in characters. */
const STORED_MAX = 64 * 1024;
const PATH_MAX = 512;

/** What a page asks for besides connections. */
export interface Asks {
  /** To be shown at this path. */
  path(path: string, how: "push" | "replace"): void;
  /** To be forgotten by this browser. */
  leave(): void;
  /** The other hosts. */
  hosts(): void;
}

export interface Running {
  /** Goes to a path. */
  go(path: string): void;
  end(): void;
}

/** What the page runs under besides the shell's own policy, which it inherits. */
const POLICY = `default-src 'none'; script-src blob: '${__FRAME_HASH__}'; style-src 'none'; img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'`;

/** Runs a page that was checked. */
export async function run(host: Host, page: SignedPage, way: Way, path: string, asks: Asks): Promise<Running> {
  const [script, style] = await Promise.all([part(page, "page.js.gz"), part(page, "page.css.gz")]);
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-forms allow-modals allow-downloads allow-popups allow-popups-to-escape-sandbox");
  frame.setAttribute("allow", "clipboard-read; clipboard-write; fullscreen");
  frame.title = `Sessions of ${harmless(host.name)}`;
  frame.srcdoc = document_();
  const { port1: port, port2 } = new MessageChannel();
  const fit = followKeyboard(frame);
  frame.addEventListener("load", () => {
    const begin = { script, style, path, stored: host.stored, host: { name: host.name } };
    // A frame without an origin can be addressed in no other way; it is the one that was just made.
    frame.contentWindow?.postMessage(begin, "*", [port2]);
    frame.contentWindow?.focus();
  }, { once: true });
  const open = new Set<() => void>();
  const dialer = relayDialer(way);
  port.onmessage = ({ data, ports: [own] }: MessageEvent<Record<string, unknown>>) => {
    if (data["dial"] === true && own) {
      if (open.size >= CONNECTIONS_MAX) return own.postMessage({ closed: "too many connections" });
      const end = servePort(own, dialer, () => open.delete(end));
      open.add(end);
    } else if (typeof data["path"] === "string") {
      const wanted = data["path"];
      if (wanted.startsWith("/") && wanted.length <= PATH_MAX) asks.path(wanted, data["how"] === "replace" ? "replace" : "push");
    } else if (typeof data["title"] === "string") {
      document.title = harmless(data["title"].slice(0, 120));
    } else if (Array.isArray(data["store"])) {
      remember(host, data["store"] as unknown[]);
    } else if (data["leave"] === true) {
      asks.leave();
    } else if (data["hosts"] === true) {
      asks.hosts();
    }
  };
  document.body.append(frame);
  return {
    go: (path) => port.postMessage({ path }),
    end: () => {
      fit();
      port.close();
      for (const end of open) end();
      frame.remove();
    },
  };
}

function document_(): string {
  const view = "width=device-width, initial-scale=1, viewport-fit=cover, interactive-widget=resizes-content";
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${POLICY}"><meta name="viewport" content="${view}"><meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer"><title>Holdfast</title></head><body><div id="app"></div><script>${bootstrap}</script></body></html>`;
}

/** A file of the page as text. */
async function part({ files, contents }: SignedPage, name: string): Promise<string> {
  const bytes = contents[files.findIndex((file) => file.name === name)];
  if (!bytes) throw new Error(`the host's page has no ${name}`);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

function remember(host: Host, [key, value]: unknown[]): void {
  if (typeof key !== "string" || !(value === null || typeof value === "string")) return;
  const { [key]: _, ...others } = host.stored;
  const next = value === null ? others : { ...others, [key]: value };
  if (JSON.stringify(next).length > STORED_MAX) return;
  host.stored = next;
  void keepHost(host);
}

/** A phone's keyboard covers the page without saying so to the layout: the frame ends above it. */
function followKeyboard(frame: HTMLIFrameElement): () => void {
  const view = window.visualViewport;
  const apply = () => {
    if (!view || view.scale > 1.01) return;
    frame.style.height = `${view.height}px`;
    frame.style.top = `${view.offsetTop}px`;
  };
  view?.addEventListener("resize", apply);
  view?.addEventListener("scroll", apply);
  apply();
  return () => {
    view?.removeEventListener("resize", apply);
    view?.removeEventListener("scroll", apply);
  };
}
