// What a session does, in a word and a colour; the word says it all.

import { isAsked, type LiveSession } from "../lib/store.js";
import type { Exit } from "@holdfast/client";

export interface Shown {
  word: string;
  tone: "busy" | "waits" | "calm" | "frozen" | "good" | "bad" | "over";
}

/** How a command ended. */
export function exitShown(exit: Exit | null | undefined): Shown {
  if (exit === "lost" || !exit) return { word: "ended", tone: "over" };
  if ("signal" in exit) return { word: `ended by signal ${exit.signal}`, tone: "bad" };
  return exit.code === 0 ? { word: "ended", tone: "good" } : { word: `ended with ${exit.code}`, tone: "bad" };
}

export function stateShown(live: LiveSession): Shown {
  const { life, exit, turn } = live.view.value;
  if (life === "ended") return exitShown(exit);
  if (life === "lost") return { word: "lost", tone: "bad" };
  if (life !== "running") return { word: life, tone: "over" };
  if (turn.frozen) return { word: "frozen", tone: "frozen" };
  switch (live.doing.value?.state) {
    case "waiting":
      if (!isAsked(live.doing.value)) return { word: "reads input", tone: "calm" };
      return { word: live.doing.value.kind === "password" ? "waits for a password" : "waits for input", tone: "waits" };
    case "idle_prompt":
      return { word: "idle", tone: "calm" };
    case "full_screen":
      return { word: "full screen", tone: "calm" };
    case "blocked_elsewhere":
      return { word: "running", tone: "busy" };
    case "stopped":
      return { word: "stopped", tone: "frozen" };
    case "frozen":
      return { word: "frozen", tone: "frozen" };
    case "ended":
      return exitShown(exit);
    default:
      return { word: "running", tone: "busy" };
  }
}

export function StatePill({ live }: { live: LiveSession }) {
  const { word, tone } = stateShown(live);
  return (
    <span class={`state ${tone}`}>
      <span class="dot" aria-hidden="true" />
      {word}
    </span>
  );
}
