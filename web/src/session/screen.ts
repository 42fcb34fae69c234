// A session's terminal in the page: xterm.js, painted and fed by an attachment.
//
// It always has the session's size, so that what it shows is exact; a window that is smaller pans over it. Where the turn is free
// the first key takes it. While somebody else has it the terminal is read-only: a key is given to `refused` and goes nowhere.

import { effect } from "@preact/signals";
import { Terminal, type IMarker } from "@xterm/xterm";
import { SearchAddon } from "@xterm/addon-search";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { WebglAddon } from "@xterm/addon-webgl";
import type { AttachEvents, Attachment } from "@holdfast/client";
import "@xterm/xterm/css/xterm.css";
import { connections, type LiveSession } from "../lib/store.js";
import { sizeOf } from "../lib/text.js";
import { isDark } from "../lib/theme.js";
import { isPaletteKey } from "../palette/commands.js";
import { clipboardText } from "./clipboard.js";
import { Fit } from "./fit.js";
import { family, font, SIZE_MAX, SIZE_MIN, type Font } from "./font.js";
import { hasGpu } from "./gpu.js";
import { cellOf, knowScroll } from "./internals.js";
import { allowStyles } from "./styles.js";
import { DARK, FOUND, LIGHT } from "./themes.js";
import { onTouch } from "./touch.js";

export interface Hooks {
  /** A key was pressed that may not be typed now. */
  refused(event?: KeyboardEvent): void;
  /** A link in the output was clicked. */
  link(url: string): void;
  /** A program wants to set the clipboard. */
  clipboard(text: string): void;
  /** The focus wants to leave the terminal. */
  leave(): void;
  /** A text is to be found. */
  find(): void;
  /** The command before, or after, is to be shown. */
  step(by: -1 | 1): void;
  fontSize(size: number): void;
}

/** Lines above the screen that can be scrolled to; what a host keeps at most. */
const HISTORY_LINES = 10_000;
/** Places in the output that can be jumped to. */
const MARKS_MAX = 4_000;
/** Commands whose time is kept. */
const TIMED_MAX = 500;
/** What a terminal says of a mouse. */
const MOUSE = /^\x1b\[[<M]/;
/** Who pans looks: the cursor is not followed for so long. */
const PANNED_MS = 4_000;

export class Screen {
  readonly term: Terminal;
  readonly attachment: Attachment;
  /** The turn is had. */
  private mine = false;
  /** Keys are typed: the turn is had, or is free to take. */
  private types = false;
  private readonly fit: Fit;
  private pannedAt = 0;
  private readonly marks: { offset: number; marker: IMarker }[] = [];
  private readonly live: LiveSession;
  private readonly pane: HTMLElement;
  private readonly hooks: Hooks;
  private readonly closing = new AbortController();
  /** Ctrl was tapped: it is for the next key. */
  ctrl = false;

  constructor(live: LiveSession, pane: HTMLElement, fontSize: number, hooks: Hooks) {
    allowStyles();
    this.live = live;
    this.own = fontSize;
    this.pane = pane;
    this.hooks = hooks;
    const size = sizeOf(live.view.value.size);
    this.term = new Terminal({
      ...size,
      allowProposedApi: true,
      // A page that nobody touches draws nothing; the cursor's colour says whether one types.
      cursorBlink: false,
      disableStdin: true,
      fontFamily: family(font.value),
      fontSize,
      lineHeight: 1.15,
      scrollback: HISTORY_LINES,
      macOptionIsMeta: true,
      linkHandler: { activate: (_, url) => hooks.link(url), allowNonHttpProtocols: false },
    });
    this.closing.signal.addEventListener("abort", effect(() => this.colour()));
    this.term.loadAddon(new Unicode11Addon());
    this.term.unicode.activeVersion = "11";
    this.term.loadAddon(new WebLinksAddon((_, url) => hooks.link(url)));
    this.term.parser.registerOscHandler(52, (data) => {
      const text = clipboardText(data);
      if (text !== undefined) hooks.clipboard(text);
      return true;
    });
    this.term.parser.registerOscHandler(133, (mark) => this.timed(mark));
    // For tests, and for debugging in the browser.
    Object.assign(window, { holdfastTerminal: this.term });
    this.attachment = live.session.attach({ size: live.view.value.size, history: true, tty: "web" });
    connections.add(this.attachment);
    const box = pane.parentElement ?? pane;
    this.fit = new Fit({ live, attachment: this.attachment, box, cell: () => cellOf(this.term), isMine: () => this.mine }, this.closing.signal);
    this.closing.signal.addEventListener("abort", effect(() => this.setFont(font.value)));
    this.attachment.on("paint", (paint) => this.paint(paint));
    this.attachment.on("output", (output) => this.write(output));
    this.attachment.on("detached", ({ why }) => why === "ended" && !this.isOpen && this.showEnd());
    // A mouse that moves takes no turn.
    this.term.onData((keys) => (this.mine || !MOUSE.test(keys)) && this.type(this.held(keys)));
    this.term.onBinary((keys) => this.mine && this.type(Uint8Array.from(keys, (character) => character.charCodeAt(0))));
  }

  /** Puts the terminal into the page. What it is written before costs a fraction of what it does after. */
  private open(): void {
    if (this.isOpen || this.closing.signal.aborted) return;
    this.isOpen = true;
    const sheet = document.createElement("div");
    sheet.className = "sheet";
    this.pane.append(sheet);
    this.term.open(sheet);
    if (hasGpu()) this.useWebgl();
    knowScroll(this.term);
    this.listen(sheet);
    this.allowKeys();
    this.fit.opened();
    if (document.activeElement === null || document.activeElement === document.body) this.term.focus();
  }
  private isOpen = false;

  /** Whether the turn is had, and whether what is typed goes to the session. */
  setTyping(mine: boolean, types: boolean): void {
    if (mine === this.mine && types === this.types) return;
    this.mine = mine;
    this.types = types;
    this.allowKeys();
    this.colour();
  }

  private allowKeys(): void {
    this.term.options.disableStdin = !this.types;
    // A phone shows its keyboard only where there is something to type.
    if (this.term.textarea) this.term.textarea.inputMode = this.types ? "text" : "none";
  }

  /** Types text, as the key row and a paste do. */
  type(keys: string | Uint8Array): void {
    if (!this.types) return;
    this.pannedAt = 0;
    this.fit.typed();
    void this.attachment.type(keys);
  }

  /** Pastes, in brackets where the program wants them. */
  paste(text: string): void {
    if (this.types) this.term.paste(text);
    else this.hooks.refused();
  }

  /** A cursor key, in the form the program wants. */
  arrow(letter: "A" | "B" | "C" | "D" | "H" | "F"): void {
    if (!this.types) return this.hooks.refused();
    this.type(`\x1b${this.term.modes.applicationCursorKeysMode ? "O" : "["}${letter}`);
  }

  /** Gives the session this window's size from now on; `false` stops that. */
  setFits(fits: boolean): void {
    this.fit.set(fits);
  }

  /** Somebody chose it here: at once. */
  fitNow(): void {
    this.fit.now();
  }

  get fontSize(): number {
    return this.term.options.fontSize ?? SIZE_MIN;
  }

  setFontSize(size: number): void {
    const next = Math.min(SIZE_MAX, Math.max(SIZE_MIN, Math.round(size)));
    if (next === this.term.options.fontSize) return;
    this.own = next;
    this.term.options.fontSize = next;
    this.hooks.fontSize(next);
    requestAnimationFrame(() => this.fit.now());
  }

  private setFont(chosen: Font): void {
    const next = family(chosen);
    if (next === this.term.options.fontFamily) return;
    this.term.options.fontFamily = next;
    // Its cells may have another size.
    requestAnimationFrame(() => this.fit.now());
  }

  /** The font size at which all columns are seen. */
  showWidth(): void {
    const { width } = cellOf(this.term);
    const room = this.pane.clientWidth - 18;
    const now = this.fontSize;
    this.setFontSize(Math.floor(now * (room / (width * this.term.cols))));
  }

  /** Shows a session that is smaller than its window as large as fits; never smaller than its own text. */
  setScales(isScaled: boolean): void {
    this.isScaled = isScaled;
    this.scale();
  }
  private isScaled = false;

  private scale(): void {
    if (!this.isOpen) return;
    const { width, height } = cellOf(this.term);
    const { clientWidth, clientHeight } = this.pane.parentElement ?? this.pane;
    const now = this.fontSize;
    const fitting = Math.floor(Math.min((clientWidth - 28) / (width * this.term.cols), (clientHeight - 16) / (height * this.term.rows)) * now);
    const next = this.isScaled ? Math.min(SIZE_MAX, Math.max(this.own, fitting)) : this.own;
    if (next !== now) this.term.options.fontSize = next;
  }
  /** The size somebody chose. */
  private own: number;

  focus(): void {
    this.term.focus();
  }

  /** Finds texts in what is here, until it is disposed of. */
  finder(highlightLimit: number): SearchAddon {
    const addon = new SearchAddon({ highlightLimit });
    this.term.loadAddon(addon);
    return addon;
  }

  /** Pans to what was found; the terminal itself scrolls to its line. */
  showFound(): void {
    const found = this.term.getSelectionPosition();
    if (!found) return;
    this.pannedAt = Date.now();
    this.bringIntoView(found.start.x, found.start.y - this.term.buffer.active.viewportY);
  }

  /** What is selected is what was found, and stands out. */
  setFinding(isFinding: boolean): void {
    this.isFinding = isFinding;
    if (!isFinding) this.term.clearSelection();
    this.colour();
  }
  private isFinding = false;

  /** Says lines to a screen reader, or stops that. */
  setAloud(isAloud: boolean): void {
    this.term.options.screenReaderMode = isAloud;
  }

  /** Scrolls to where some output stands. Says whether that is still known. */
  jump(offset: number): boolean {
    const before = this.marks.filter((mark) => mark.offset <= offset && !mark.marker.isDisposed).at(-1);
    if (!before) return false;
    this.term.scrollToLine(Math.max(0, before.marker.line - 1));
    return true;
  }

  /** The output offset behind which a line of the buffer was written, where that is known. */
  offsetAt(line: number): number | undefined {
    return this.marks.filter((mark) => !mark.marker.isDisposed && mark.marker.line <= line).at(-1)?.offset;
  }

  close(): void {
    this.closing.abort();
    connections.delete(this.attachment);
    void this.attachment.close();
    this.term.dispose();
    this.pane.replaceChildren();
  }

  /** Colours by day and night; a cursor that cannot be typed at is grey. */
  private colour(): void {
    const night = isDark.value;
    const theme = night ? DARK : LIGHT;
    const cursor = this.mine ? {} : { cursor: night ? "#5f6e6a" : "#a9b5b1" };
    this.term.options.theme = { ...theme, ...cursor, ...(this.isFinding ? FOUND : {}) };
    this.term.options.minimumContrastRatio = night ? 1 : 4.5;
  }

  private useWebgl(): void {
    try {
      const webgl = new WebglAddon();
      // The browser takes the context away when there are many; the slow way to draw needs none.
      webgl.onContextLoss(() => webgl.dispose());
      this.term.loadAddon(webgl);
    } catch {
      // Drawn by elements instead.
    }
  }

  private listen(sheet: HTMLElement): void {
    const { signal } = this.closing;
    this.term.attachCustomKeyEventHandler((event) => this.onKey(event));
    this.term.textarea?.addEventListener("beforeinput", () => this.types || this.hooks.refused(), { signal });
    this.term.textarea?.addEventListener("paste", () => this.types || this.hooks.refused(), { signal });
    this.term.onCursorMove(() => this.followCursor());
    const resized = new ResizeObserver(() => {
      this.scale();
      this.followCursor();
    });
    resized.observe(this.pane);
    signal.addEventListener("abort", () => resized.disconnect());
    onTouch(sheet, signal, {
      pan: (dx, dy) => this.pan(dx, dy),
      zoom: (factor) => this.setFontSize(this.fontSize * factor),
    });
  }

  private onKey(event: KeyboardEvent): boolean {
    const { key, ctrlKey, shiftKey } = event;
    const isDown = event.type === "keydown";
    if (ctrlKey && shiftKey && key === "ArrowUp") {
      if (isDown) this.hooks.leave();
      return false;
    }
    // The page's own: it bubbles.
    if (isPaletteKey(event)) return false;
    if (((ctrlKey && shiftKey) || event.metaKey) && key.toLowerCase() === "f") {
      if (isDown) this.hooks.find();
      event.preventDefault();
      return false;
    }
    if (event.altKey && !ctrlKey && (key === "PageUp" || key === "PageDown")) {
      if (isDown) this.hooks.step(key === "PageUp" ? -1 : 1);
      event.preventDefault();
      return false;
    }
    if (ctrlKey && shiftKey && key.toLowerCase() === "c" && this.term.hasSelection()) {
      if (isDown) void navigator.clipboard?.writeText(this.term.getSelection());
      event.preventDefault();
      return false;
    }
    if (this.types) return true;
    const isHarmless = ["Control", "Shift", "Alt", "Meta", "Tab", "CapsLock"].includes(key) || (shiftKey && key.startsWith("Page")) || event.metaKey;
    if (!isHarmless && isDown) this.hooks.refused(event);
    return isHarmless && key !== "Tab";
  }

  /** Ctrl of the key row, applied to what a phone's keyboard gives. */
  private held(keys: string): string {
    if (!this.ctrl || keys.length !== 1) return keys;
    const code = keys.toUpperCase().charCodeAt(0);
    this.ctrl = false;
    this.pane.dispatchEvent(new Event("ctrl-used"));
    if (keys === " ") return "\x00";
    return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : keys;
  }

  private paint({ bytes, size, offset }: AttachEvents["paint"]): Promise<void> {
    const { cols, rows } = sizeOf(size);
    const { baseY, viewportY } = this.term.buffer.active;
    this.marks.splice(0);
    this.term.reset();
    this.term.resize(cols, rows);
    return new Promise((done) =>
      this.term.write(bytes, () => {
        this.open();
        // Who reads further up goes on there.
        if (viewportY < baseY) this.term.scrollLines(viewportY - baseY);
        this.mark(offset);
        this.scale();
        this.followCursor();
        done();
      }),
    );
  }

  private write({ bytes, offset }: AttachEvents["output"]): Promise<void> {
    this.chunk = { from: offset, to: offset + bytes.length };
    this.mark(offset);
    return new Promise((done) => this.term.write(bytes, done));
  }

  /** The shell says that a command begins or ends: how long it took is known only to who is there. */
  private timed(mark: string): boolean {
    if (mark.startsWith("C")) this.began = { ...this.chunk, at: performance.now() };
    if (!mark.startsWith("D") || !this.began) return true;
    const { from, to, at } = this.began;
    this.timings.push({ from, to, ms: performance.now() - at });
    if (this.timings.length > TIMED_MAX) this.timings.shift();
    this.began = undefined;
    return true;
  }
  private chunk = { from: 0, to: 0 };
  private began: { from: number; to: number; at: number } | undefined;
  private readonly timings: { from: number; to: number; ms: number }[] = [];

  /** How long the command took whose output begins at an offset, where it began and ended while this terminal was here. */
  tookAt(start: number): number | undefined {
    return this.timings.find(({ from, to }) => from <= start && start <= to)?.ms;
  }

  /** A session that has ended cannot be attached to; its last screen is still there. */
  private async showEnd(): Promise<void> {
    const { rows, history } = await this.live.session.screen({ ansi: true, history: HISTORY_LINES });
    const lines = [...history, ...rows];
    while (lines.length > 0 && lines.at(-1)?.trim() === "") lines.pop();
    this.term.write(`${lines.join("\x1b[m\r\n")}\x1b[m\x1b[?25l`, () => this.open());
  }

  /** Remembers where an offset stands. */
  private mark(offset: number): void {
    const last = this.marks.at(-1);
    const { baseY, cursorY, type } = this.term.buffer.active;
    if (type !== "normal" || (last && !last.marker.isDisposed && last.marker.line === baseY + cursorY)) return;
    const marker = this.term.registerMarker(0);
    if (marker) this.marks.push({ offset, marker });
    if (this.marks.length > MARKS_MAX) this.marks.shift()?.marker.dispose();
  }

  private pan(dx: number, dy: number): void {
    this.pannedAt = Date.now();
    const { pane } = this;
    pane.scrollLeft -= dx;
    const top = pane.scrollTop;
    pane.scrollTop -= dy;
    const rest = dy + (pane.scrollTop - top);
    if (this.term.buffer.active.type === "alternate") {
      // As a wheel: the program scrolls, if it may be told.
      const wheel = { deltaY: -rest, deltaMode: WheelEvent.DOM_DELTA_PIXEL, bubbles: true, cancelable: true };
      this.term.element?.querySelector(".xterm-screen")?.dispatchEvent(new WheelEvent("wheel", wheel));
      return;
    }
    this.scrolled += rest / cellOf(this.term).height;
    const lines = Math.trunc(this.scrolled);
    this.scrolled -= lines;
    if (lines !== 0) this.term.scrollLines(-lines);
  }
  private scrolled = 0;

  /** Where the window is smaller than the terminal, the cursor stays in it. */
  private followCursor(): void {
    if (Date.now() - this.pannedAt < PANNED_MS) return;
    const { cursorX, cursorY } = this.term.buffer.active;
    this.bringIntoView(cursorX, cursorY);
  }

  private bringIntoView(column: number, row: number): void {
    const { pane } = this;
    if (pane.scrollWidth <= pane.clientWidth && pane.scrollHeight <= pane.clientHeight) return;
    const { width, height } = cellOf(this.term);
    const [x, y] = [column * width + 8, row * height + 8];
    if (x < pane.scrollLeft || x + 3 * width > pane.scrollLeft + pane.clientWidth) {
      pane.scrollLeft = x < pane.clientWidth * 0.8 ? 0 : x - pane.clientWidth / 2;
    }
    if (y < pane.scrollTop || y + 2 * height > pane.scrollTop + pane.clientHeight) {
      pane.scrollTop = y + 2 * height - pane.clientHeight;
    }
  }
}
