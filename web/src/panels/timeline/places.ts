// Between the acts and the terminal beside them: where an offset stands in the scrollback, and whose a line of it is.

import type { LiveSession } from "../../lib/store.js";
import type { Screen } from "../../session/screen.js";
import { Kept, LineIndex } from "./replay.js";

/** How far a line may stand from where it was counted: output goes on while it is counted. */
const NEAR_LINES = 400;
const SHOWN_MS = 2_600;

export class Places {
  readonly kept = new Kept();
  private readonly index = new LineIndex();
  private readonly live: LiveSession;
  private building: Promise<void> | undefined;

  constructor(live: LiveSession) {
    this.live = live;
  }

  close(): void {
    this.index.close();
  }

  /** Scrolls the terminal to the output at an offset. `lost`: it is kept, but stands in no scrollback; `gone`: it is not kept. */
  async jump(screen: Screen, offset: number): Promise<"here" | "lost" | "gone"> {
    await this.renew();
    if (offset < this.kept.oldest) return "gone";
    // A full-screen program hides the scrollback.
    if (screen.term.buffer.active.type !== "normal") return "lost";
    const found = this.index.locate(offset);
    const line = found && match(screen, found.up, found.text);
    if (line !== undefined) {
      show(screen, line);
      return "here";
    }
    return screen.jump(offset) ? "here" : "lost";
  }

  /** The offset of the last byte of a line of the terminal beside. */
  async offsetOf(screen: Screen, line: number): Promise<number | undefined> {
    await this.renew();
    const buffer = screen.term.buffer.normal;
    const text = textOf(screen, line);
    const up = buffer.baseY + buffer.cursorY - line;
    for (let away = 0; away < NEAR_LINES; away += 1) {
      for (const near of away === 0 ? [up] : [up + away, up - away]) {
        const found = this.index.offsetAt(near);
        if (found && found.text === text) return found.offset;
      }
    }
    return screen.offsetAt(line);
  }

  /** Reads and counts what has come since; calls that come together do so once. */
  private renew(): Promise<void> {
    this.building ??= (async () => {
      await this.kept.read(this.live);
      if (this.kept.head !== this.index.head) await this.index.build(this.kept);
    })().finally(() => (this.building = undefined));
    return this.building;
  }
}

/** The line of the terminal that has this text, nearest to where it was counted. */
function match(screen: Screen, up: number, text: string): number | undefined {
  const buffer = screen.term.buffer.normal;
  const counted = buffer.baseY + buffer.cursorY - up;
  // Empty lines are all alike.
  if (text === "") return Math.min(Math.max(0, counted), buffer.length - 1);
  for (let away = 0; away < NEAR_LINES; away += 1) {
    for (const line of away === 0 ? [counted] : [counted - away, counted + away]) {
      if (line >= 0 && line < buffer.length && textOf(screen, line) === text) return line;
    }
  }
  return undefined;
}

function textOf(screen: Screen, line: number): string {
  return screen.term.buffer.normal.getLine(line)?.translateToString(true) ?? "";
}

let unmark = () => {};

/** Scrolls there, and marks the line for a moment. */
function show({ term }: Screen, line: number): void {
  unmark();
  const { baseY, cursorY } = term.buffer.active;
  term.scrollToLine(Math.max(0, line - 2));
  const marker = term.registerMarker(line - (baseY + cursorY));
  const decoration = marker && term.registerDecoration({ marker, width: term.cols, layer: "top" });
  decoration?.onRender((element) => element.classList.add("jumped"));
  unmark = () => {
    decoration?.dispose();
    marker?.dispose();
  };
  setTimeout(unmark, SHOWN_MS);
}
