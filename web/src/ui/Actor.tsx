// An actor: its class as a picture and in words, its name as text.

import { Icon, type IconName } from "./icons.js";
import { nameOf } from "../lib/names.js";
import { shownLine } from "../lib/text.js";

const CLASSES = ["human", "agent", "service", "device"] as const;

/** Class and name of a handle like `agent:claude`. */
export function parts(handle: string): { kind: (typeof CLASSES)[number] | undefined; name: string } {
  const at = handle.indexOf(":");
  const kind = CLASSES.find((one) => one === handle.slice(0, at));
  return { kind, name: at < 0 ? handle : handle.slice(at + 1) };
}

export function ActorChip({ handle, note, you, whole }: { handle: string; note?: string; you?: boolean; whole?: boolean }) {
  const { kind, name: own } = parts(handle);
  const given = nameOf(handle);
  const name = given ?? own;
  const said = `${shownLine(handle)}${you ? " (you)" : ""}${note ? `, ${note}` : ""}`;
  return (
    <span class={`actor ${kind ?? "unknown"}`} title={said}>
      <Icon name={(kind ?? "device") satisfies IconName} size={14} />
      <bdi>{shownLine(whole && !given ? handle : name)}</bdi>
      <span class="visually-hidden">{`${whole ? "" : ` ${kind ?? "actor"}`}${you ? ", you" : ""}${note ? `, ${note}` : ""}`}</span>
      {you && (
        <span class="you" aria-hidden="true">
          you
        </span>
      )}
    </span>
  );
}
