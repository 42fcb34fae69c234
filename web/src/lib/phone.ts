// Where the page runs in the shell's frame, for a host behind a relay: it has no address, no storage and no network of its own, and asks the
// shell around it (web/phone, spec/phone.md).

import { Client, portDialer } from "@holdfast/client";

/** What the shell gives. */
interface Phone {
  port: MessagePort;
  /** Where to begin. */
  path: string;
  host: { name: string };
}

/** Present in the shell's frame alone. */
export const phone = (globalThis as { holdfastPhone?: Phone }).holdfastPhone;

/** Asks the shell for something. */
export function askShell(message: object, ...transfer: Transferable[]): void {
  phone?.port.postMessage(message, transfer);
}

/** The client of the host behind the relay. */
export const phoneClient = phone && new Client(portDialer(phone.host.name, channel), { name: "holdfast-web", retry: { forMs: Number.POSITIVE_INFINITY, maxDelayMs: 2_000 } });

/** A port for one connection. */
function channel(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  askShell({ dial: true }, port2);
  return port1;
}

/** Hears where the browser's own way back leads. */
export function followShell(go: (path: string) => void): void {
  if (!phone) return;
  phone.port.onmessage = ({ data }: MessageEvent<{ path?: unknown }>) => {
    if (typeof data.path === "string") go(data.path);
  };
}
