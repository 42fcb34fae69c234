/** A host behind a relay, from a browser: the sealed channel of spec/channel.md, invites, and a page that speaks through another window. */

export { accept, relayDialer } from "./channel/dialer.js";
export { readInvite, isRelay } from "./channel/invite.js";
export type { Invite } from "./channel/invite.js";
export { newDeviceKey } from "./channel/keys.js";
export type { DeviceKey } from "./channel/keys.js";
export { checkPage, fetchPage } from "./channel/page.js";
export type { SignedPage } from "./channel/page.js";
export type { Way } from "./channel/reach.js";
export { HoldfastError } from "./errors.js";
export { servePort } from "./port.js";
