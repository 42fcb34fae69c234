// Who looks at this page. What says so is in two halves: a cookie, which is the browser's to keep and this code never sees; and a key
// that this page's origin keeps. A browser sends a cookie to every port of a machine, to whatever listens there; the key
// it sends to nobody: it only shows its host that it has it.

import { signal } from "@preact/signals";
import { HoldfastError, pageKey, showPage, type Actor, type Challenge, type Client } from "@holdfast/client";
import { forget, keep, kept } from "./keys.js";
import { askShell, phoneClient } from "./phone.js";
import { go } from "./route.js";

/** For whom the host takes this browser. */
export interface Me {
  actor: Actor;
  /** The host knows this actor: a guest of one session it does not. */
  known?: boolean;
  /** By what it was let in. */
  token?: {
    /** The most it may do, `observe,type`; none: whatever the actor may. */
    can?: string | null;
    until_ms?: number | null;
  } | null;
}

/** How long a host behind a relay may take to answer before the page says that it is cut off. */
const LOOK_MS = 5_000;

export type Login =
  | { state: "asking" }
  | { state: "in"; me: Me }
  /** A link is somebody else's: who one is changes with one's own word alone. */
  | { state: "choosing"; me: Me; other: string; become: () => Promise<void> }
  /** `why` is for a person; none: no attempt yet. */
  | { state: "out"; why?: string }
  | { state: "cut off" };

export const login = signal<Login>({ state: "asking" });

/** What to show in place of a token, for `Authorization` and for the WebSocket: fails where what answers is not our host. */
export async function pass(): Promise<string | undefined> {
  const key = await kept();
  return key === undefined || typeof key === "string" ? key : show(key);
}

/** Nothing where the host does not know this browser any more: it says the same of everything else. */
async function show(key: CryptoKey): Promise<string | undefined> {
  let answer: Response | undefined;
  const ask = async (nonce: string): Promise<Challenge> => {
    answer = await send("/v1/challenge", { nonce }).catch((error: unknown) => {
      throw new HoldfastError("disconnected", "no host answers", { cause: error });
    });
    if (!answer.ok) throw new HoldfastError("disconnected", `the host answers with ${answer.status}`);
    return (await answer.json()) as Challenge;
  };
  try {
    return await showPage(key, ask);
  } catch (error) {
    if (answer?.status === 401) return undefined;
    throw error;
  }
}

async function authorization(): Promise<Record<string, string>> {
  const shown = await pass();
  return shown === undefined ? {} : { authorization: `Bearer ${shown}` };
}

/** Asks the host for whom it takes this browser. */
export async function whoAmI(): Promise<Response> {
  return fetch("/v1/me", { credentials: "same-origin", cache: "no-store", headers: await authorization() });
}

/** Asks the host for something as whoever is in; what it refuses is thrown as it says it. */
export async function post<T>(path: string, body: object): Promise<T> {
  const answer = await send(path, body, await authorization());
  const said: unknown = await answer.json().catch(() => undefined);
  if (answer.ok) return said as T;
  throw said ? HoldfastError.from(said as Parameters<typeof HoldfastError.from>[0]) : new HoldfastError("disconnected", `the host answers with ${answer.status}`);
}

/** What the address asks for: a code or a token to show once, and the session to open. */
interface Ticket {
  body: { code: string } | { token: string };
  session?: string;
}

function ticket(): Ticket | undefined {
  const params = new URLSearchParams(location.hash.slice(1));
  const code = params.get("code");
  const token = params.get("token");
  const session = params.get("session");
  const body = code ? { code } : token ? { token } : undefined;
  return body && { body, ...(session ? { session } : {}) };
}

/** Shows the host what the address brought, and asks who we are. */
export async function enter(): Promise<void> {
  const brought = ticket();
  if (!brought) return look();
  // Before anything else: it must not stay in the address, the history or a screenshot.
  const path = brought.session ? `/s/${encodeURIComponent(brought.session)}` : location.pathname;
  go(path, "replace");
  const me = await known();
  const { why, other } = await exchange(brought.body, me);
  if (!me || !other) return look(why);
  const become = async () => look((await exchange(brought.body)).why);
  login.value = { state: "choosing", me, other, become };
}

/** Who this browser is, where it is somebody. */
async function known(): Promise<Me | undefined> {
  if ((await kept()) === undefined) return undefined;
  const answer = await whoAmI().catch(() => undefined);
  return answer?.ok ? ((await answer.json()) as Me) : undefined;
}

/** Shows a link to the host. With `as` one that is for `other` is not taken. */
async function exchange(body: Ticket["body"], as?: Me): Promise<{ why?: string; other?: string }> {
  try {
    const answer = await send("/v1/login", as ? { ...body, as: as.actor.handle } : body);
    if (answer.ok) {
      const { page } = (await answer.json()) as { page: string };
      // Browsers have ciphers for private connections alone. Elsewhere everybody on the way reads what is said anyway.
      await keep(isSecureContext ? await pageKey(page) : page);
      return {};
    }
    const fault = (await answer.json().catch(() => ({}))) as { message?: string; details?: { actor?: string } };
    const other = fault.details?.actor;
    return { why: fault.message ?? "the host did not accept this link", ...(other ? { other } : {}) };
  } catch {
    return {};
  }
}

/** Asks the host who we are. */
export async function look(why?: string): Promise<void> {
  if (phoneClient) return lookThrough(phoneClient);
  try {
    const answer = await whoAmI();
    if (answer.ok) login.value = { state: "in", me: (await answer.json()) as Me };
    else login.value = { state: "out", ...(why ? { why } : {}) };
  } catch {
    if (login.value.state !== "in") login.value = { state: "cut off" };
  }
}

/** The host said that it does not know this browser: behind a relay that is its word, elsewhere a cookie may be the reason. */
export async function unknown(): Promise<void> {
  if (phoneClient) login.value = { state: "out" };
  else await look();
}

/** The same behind a relay: the channel says who speaks. */
async function lookThrough(client: Client): Promise<void> {
  try {
    const me = await client.call("actor.me", {}, { signal: AbortSignal.timeout(LOOK_MS) });
    login.value = { state: "in", me };
  } catch (error) {
    const isOut = error instanceof HoldfastError && error.code === "unidentified";
    if (isOut) login.value = { state: "out" };
    // A later look may fail for another reason; what the host said stays.
    else if (!["in", "out"].includes(login.value.state)) login.value = { state: "cut off" };
  }
}

/** A link that is opened in a page that is already there begins anew, with what it brings. */
export function followLinks(): void {
  addEventListener("hashchange", () => {
    if (ticket()) location.reload();
  });
}

/** Gives both halves back. Where the host is not reached they are forgotten here. */
export async function leave(): Promise<void> {
  if (phoneClient) return askShell({ leave: true });
  await authorization()
    .then((headers) => send("/v1/logout", {}, headers))
    .catch(() => undefined);
  await forget();
  login.value = { state: "out" };
}

function send(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  const all = { "content-type": "application/json", ...headers };
  return fetch(path, { method: "POST", credentials: "same-origin", headers: all, body: JSON.stringify(body) });
}

/** The actor; only where somebody is in. */
export function myActor(): Actor | undefined {
  return login.value.state === "in" ? login.value.me.actor : undefined;
}
