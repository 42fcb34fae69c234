// What the session looked like at an offset of its output: replayed from the oldest byte that is kept, and plainly marked as past.

import { effect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Terminal } from "@xterm/xterm";
import type { LiveSession } from "../../lib/store.js";
import { isDark } from "../../lib/theme.js";
import { allowStyles } from "../../session/styles.js";
import { fontOf } from "../../session/font.js";
import { DARK, LIGHT } from "../../session/themes.js";
import { ActorChip } from "../../ui/Actor.js";
import { Icon } from "../../ui/icons.js";
import { Line } from "../../ui/Text.js";
import type { Kept } from "./replay.js";
import { quietTerminal, resizeTo, write } from "./replay.js";
import { clock, type Entry } from "./tell.js";

interface Props {
  live: LiveSession;
  kept: Kept;
  offset: number;
  /** The act before that offset. */
  act: Entry | undefined;
  /** Where acts stand, ascending. */
  stops: readonly number[];
  onOffset: (offset: number) => void;
  onClose: () => void;
}

export function Past({ live, kept, offset, act, stops, onOffset, onClose }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const replayer = useRef<Replayer | undefined>(undefined);
  const slider = useRef<HTMLInputElement>(null);
  const [range] = useState({ oldest: kept.oldest, head: kept.head });
  useEffect(() => {
    if (!place.current) return;
    const made = new Replayer(kept, place.current, live.view.value.size, fontOf(live.id));
    replayer.current = made;
    slider.current?.focus();
    return () => made.close();
  }, []);
  useEffect(() => replayer.current?.seek(offset), [offset]);
  const before = stops.findLast((stop) => stop < offset && stop >= range.oldest);
  const after = stops.find((stop) => stop > offset && stop <= range.head);
  const step = (to: number | undefined) => to !== undefined && onOffset(to);
  return (
    <section class="past" aria-label="The past" onKeyDown={(event) => event.key === "Escape" && onClose()}>
      <header class="past-bar">
        <Icon name="past" size={16} />
        <strong>The past, replayed</strong>
        {act ? (
          <span class="past-act">
            {clock(act.timeMs)} · {act.by ? <ActorChip handle={act.by.handle} /> : "host"} {act.words}{" "}
            {act.quoted && <Line class={act.isCode ? "mono" : ""} text={act.quoted} />}
          </span>
        ) : (
          <span class="past-act">no earlier input in the journal</span>
        )}
        <button type="button" class="small primary" onClick={onClose}>
          Back to now
        </button>
      </header>
      <div class="past-pane" ref={place} tabIndex={0} role="region" aria-label="Terminal, in the past, read-only" />
      <footer class="past-foot">
        <button type="button" class="small quiet" disabled={before === undefined} aria-label="Previous act" onClick={() => step(before)}>
          ‹ Act
        </button>
        <input
          ref={slider}
          type="range"
          min={range.oldest}
          max={range.head}
          step={1}
          value={offset}
          aria-label="Position in the output"
          aria-valuetext={`byte ${offset} of ${range.head}`}
          onInput={(event) => onOffset(Number(event.currentTarget.value))}
        />
        <button type="button" class="small quiet" disabled={after === undefined} aria-label="Next act" onClick={() => step(after)}>
          Act ›
        </button>
        <span class="past-place muted">
          {bytes(offset - range.oldest)} of {bytes(range.head - range.oldest)}
          {range.oldest > 0 && `; ${bytes(range.oldest)} before that are gone`}
        </span>
      </footer>
    </section>
  );
}

/** Puts a terminal at an offset: onwards by what lies between, back by beginning again. Only the last wish counts. */
class Replayer {
  private readonly kept: Kept;
  private readonly term: Terminal;
  private readonly uncolour: () => void;
  private at: number;
  private wanted: number | undefined;
  private isBusy = false;
  private isOver = false;

  constructor(kept: Kept, place: HTMLElement, size: string, fontSize: number) {
    allowStyles();
    this.kept = kept;
    this.at = kept.oldest;
    this.term = quietTerminal(size, { fontFamily: getComputedStyle(place).fontFamily, fontSize, lineHeight: 1.15 });
    this.uncolour = effect(() => void (this.term.options.theme = isDark.value ? DARK : LIGHT));
    const sheet = document.createElement("div");
    sheet.className = "sheet";
    place.append(sheet);
    this.term.open(sheet);
    this.term.textarea?.setAttribute("tabindex", "-1");
    // For tests, and for debugging in the browser.
    Object.assign(window, { holdfastPast: this.term });
  }

  seek(offset: number): void {
    this.wanted = offset;
    if (!this.isBusy) void this.work();
  }

  close(): void {
    this.isOver = true;
    this.uncolour();
    this.term.dispose();
  }

  private async work(): Promise<void> {
    this.isBusy = true;
    while (this.wanted !== undefined && !this.isOver) {
      const to = this.wanted;
      this.wanted = undefined;
      if (to < this.at) {
        this.term.reset();
        this.at = this.kept.oldest;
      }
      for (const piece of this.kept.between(this.at, to)) {
        resizeTo(this.term, piece.size);
        await write(this.term, piece.bytes);
        if (this.isOver) return;
      }
      this.at = to;
      this.term.scrollToBottom();
    }
    this.isBusy = false;
  }
}

function bytes(count: number): string {
  if (count < 1_000) return `${count} B`;
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)} kB` : `${(count / 1_000_000).toFixed(1)} MB`;
}
