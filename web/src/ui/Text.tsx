// Words of others: as text, what does not show made visible, and turned by nothing beside it.

import { shown, shownLine } from "../lib/text.js";

/** One line of it. */
export function Line({ text, class: name }: { text: string; class?: string }) {
  return <bdi class={name ?? ""}>{shownLine(text)}</bdi>;
}

/** Several lines, as they were written. */
export function Lines({ text, class: name }: { text: string; class?: string }) {
  return <bdi class={`lines ${name ?? ""}`}>{shown(text)}</bdi>;
}
