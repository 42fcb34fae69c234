// From one command to the one before or after it, in the terminal's scrollback.

import type { LiveSession } from "../../lib/store.js";
import type { Screen } from "../../session/screen.js";
import { tell } from "../../ui/told.js";
import { markedCommands } from "./marks.js";
import { Places } from "./places.js";

export class Steps {
  private readonly places: Places;
  private readonly live: LiveSession;
  /** Where the last step went. */
  private at: number | undefined;

  constructor(live: LiveSession) {
    this.live = live;
    this.places = new Places(live);
  }

  /** Scrolls to the command before, or after, the one it went to last; from the end of the output the last one. */
  step(screen: Screen, by: -1 | 1): Promise<void> {
    // One after the other: keys come faster than output is read.
    const done = this.before.then(() => this.stepNow(screen, by));
    this.before = done.catch(() => undefined);
    return done;
  }
  private before: Promise<void> = Promise.resolve();

  private async stepNow(screen: Screen, by: -1 | 1): Promise<void> {
    const { baseY, viewportY } = screen.term.buffer.active;
    if (viewportY >= baseY) this.at = undefined;
    await this.places.kept.read(this.live);
    const prompts = markedCommands(this.places.kept).map(({ prompt }) => prompt);
    const here = this.at ?? Infinity;
    const next = by < 0 ? prompts.findLast((prompt) => prompt < here) : prompts.find((prompt) => prompt > here);
    if (next === undefined && by < 0) return tell(prompts.length === 0 ? "This session's shell does not mark its commands." : "No earlier command is kept.");
    this.at = next;
    if (next === undefined) screen.term.scrollToBottom();
    else await this.places.jump(screen, next);
  }

  close(): void {
    this.places.close();
  }
}
