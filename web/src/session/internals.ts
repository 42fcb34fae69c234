// What xterm.js knows and has no public word for. Where another version has it otherwise, each falls back to something near.

import type { Terminal } from "@xterm/xterm";

interface Core {
  _viewport?: { queueSync?: () => void };
  _renderService?: { dimensions?: { device?: { cell?: { width: number; height: number } } } };
}

function core(term: Terminal): Core | undefined {
  return (term as unknown as { _core?: Core })._core;
}

/** A terminal that was written to before it was opened does not know how far it can be scrolled. This tells it. */
export function knowScroll(term: Terminal): void {
  core(term)?._viewport?.queueSync?.();
}

/** The size of a cell. Not that of the whole terminal by its columns, which is rounded: its columns would decide how many columns fit. */
export function cellOf(term: Terminal): { width: number; height: number } {
  const cell = core(term)?._renderService?.dimensions?.device?.cell;
  if (cell && cell.width > 0 && cell.height > 0) return { width: cell.width / devicePixelRatio, height: cell.height / devicePixelRatio };
  const box = term.element?.querySelector(".xterm-screen")?.getBoundingClientRect();
  return { width: (box?.width ?? 0) / term.cols || 8, height: (box?.height ?? 0) / term.rows || 17 };
}
