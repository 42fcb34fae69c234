// Looks for a text in what all sessions printed, as far as the host keeps it as lines.

import { client, sessions, type LiveSession } from "../lib/store.js";

/** Lines of each session that are looked through, the newest. */
const LINES = 5_000;
/** Found lines shown of each session. */
const OF_EACH = 5;
/** Sessions that are asked at a time: others ask this host for something, too. */
const AT_ONCE = 3;

export interface FoundLine {
  live: LiveSession;
  line: string;
}

/** The newest lines that have it, of each session; told as they are found. */
export async function searchOutput(text: string, found: (lines: FoundLine[]) => void, signal: AbortSignal): Promise<void> {
  const left = [...sessions.peek()];
  const sought = text.toLowerCase();
  const all: FoundLine[] = [];
  const one = async () => {
    for (let live = left.shift(); live && !signal.aborted; live = left.shift()) {
      const session = live;
      const screen = await client.call("session.screen", { session: session.id, history: LINES }, { signal }).catch(() => undefined);
      const lines = screen ? [...screen.history, ...screen.rows] : [];
      const fitting = lines.filter((line) => line.toLowerCase().includes(sought)).slice(-OF_EACH).reverse();
      all.push(...fitting.map((line) => ({ live: session, line: line.trim() })));
      if (fitting.length > 0 && !signal.aborted) found([...all]);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}
