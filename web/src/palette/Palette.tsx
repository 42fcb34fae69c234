// Goes to any session, does anything that the open view offers, and finds what sessions printed: by a few letters and Enter.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { go, route, sessionPath } from "../lib/route.js";
import { find, sessions, type LiveSession } from "../lib/store.js";
import { commandLine } from "../lib/text.js";
import { themeCommands } from "../lib/theme.js";
import { pages } from "../panels/index.js";
import { stateShown } from "../ui/State.js";
import { Line } from "../ui/Text.js";
import { isPaletteKey, isPaletteOpen, offered, wanted } from "./commands.js";
import { searchOutput, type FoundLine } from "./output.js";
import { visited } from "./visited.js";

interface Item {
  key: string;
  group: "Sessions" | "Commands" | "Output";
  name: string;
  note: string;
  /** Where letters are looked for. */
  text: string;
  run: () => void;
}

/** A shorter text is everywhere. */
const SEARCHED_CHARS_MIN = 3;
const SHOWN_MAX = 60;

export function Palette({ onNew }: { onNew: (() => void) | undefined }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const output = useOutput();
  // Not after the next frame: a quick person would type into the session.
  useLayoutEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => current?.close();
  }, []);
  const close = () => (isPaletteOpen.value = false);
  const here = route.value.view === "session" ? find(route.value.name) : undefined;
  const commands = commandItems(onNew);
  const items = [...fitting([...sessionItems(here), ...commands], text), ...output.items, ...output.offer(text)].slice(0, SHOWN_MAX);
  const chosen = Math.min(at, items.length - 1);
  useEffect(() => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }), [chosen]);
  const run = (item: Item | undefined) => {
    if (!item) return;
    // A search goes on in here.
    if (item.key !== "search") close();
    item.run();
  };
  const onKey = (event: KeyboardEvent) => {
    if (isPaletteKey(event)) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setAt((chosen + step + items.length) % Math.max(1, items.length));
    else if (event.key === "Enter") run(items[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Go to a session, or do something" onClose={close} onClick={(event) => event.target === dialog.current && close()}>
      <input
        class="palette-field"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={items[chosen] ? `palette-${chosen}` : undefined}
        aria-label="Session or command"
        placeholder="Session or command"
        value={text}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
          output.clear();
        }}
        onKeyDown={onKey}
      />
      <ul class="palette-list" id="palette-list" role="listbox" aria-label="What there is" ref={list}>
        {items.map((item, row) => (
          <li key={item.key} id={`palette-${row}`} role="option" aria-selected={row === chosen} onClick={() => run(item)} onPointerMove={() => setAt(row)}>
            <Line class="palette-name" text={item.name} />
            <Line class="palette-note muted" text={item.note} />
          </li>
        ))}
      </ul>
      {items.length === 0 && <p class="palette-none muted">Nothing fits.</p>}
    </dialog>
  );
}

/** Sessions: those that were looked at last first, without the one that is. */
function sessionItems(here: LiveSession | undefined): Item[] {
  const order = visited();
  const rank = ({ id }: LiveSession) => (order.includes(id) ? order.indexOf(id) : order.length);
  return sessions.value
    .filter((live) => live !== here)
    .sort((a, b) => Number(a.need.value === "ended") - Number(b.need.value === "ended") || rank(a) - rank(b))
    .map((live) => {
      const { name, command, cwd, title, life } = live.view.value;
      const note = `${stateShown(live).word} · ${commandLine(command)}`;
      const open = () => go(sessionPath(life === "running" ? name : live.id));
      return { key: live.id, group: "Sessions", name, note, text: [name, note, cwd, title ?? ""].join(" "), run: open };
    });
}

function commandItems(onNew: (() => void) | undefined): Item[] {
  const all = [...offered(), ...(onNew ? [{ name: "New session", run: onNew }] : [])];
  if (route.value.view !== "home") all.push({ name: "All sessions", run: () => go("/") });
  all.push(...pages.map(({ id, title }) => ({ name: title, run: () => go(`/${id}`) })));
  all.push(...themeCommands());
  return all.map(({ name, note = "", run }) => ({ key: `do ${name}`, group: "Commands", name, note, text: name, run }));
}

/** Every word is in it; where the name begins with them they come first. */
function fitting(items: Item[], text: string): Item[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return items;
  const fits = items.filter((item) => words.every((word) => item.text.toLowerCase().includes(word)));
  const rank = ({ name }: Item) => (name.toLowerCase().startsWith(words[0] ?? "") ? 0 : name.toLowerCase().includes(words[0] ?? "") ? 1 : 2);
  return fits.sort((a, b) => rank(a) - rank(b));
}

/** What was found in the output, and the offer to look there. */
function useOutput() {
  const [found, setFound] = useState<{ text: string; lines: FoundLine[]; isOver: boolean } | undefined>(undefined);
  const searching = useRef<AbortController | undefined>(undefined);
  const stop = () => searching.current?.abort();
  useEffect(() => stop, []);
  const search = (text: string) => {
    stop();
    const mine = new AbortController();
    searching.current = mine;
    setFound({ text, lines: [], isOver: false });
    void searchOutput(text, (lines) => setFound({ text, lines, isOver: false }), mine.signal).then(
      () => mine.signal.aborted || setFound((now) => now && { ...now, isOver: true }),
    );
  };
  const items = (found?.lines ?? []).map(({ live, line }, row): Item => {
    const open = () => {
      wanted.value = { session: live.id, text: found?.text ?? "" };
      go(sessionPath(live.view.value.life === "running" ? live.name : live.id));
    };
    return { key: `line ${row}`, group: "Output", name: line, note: live.name, text: line, run: open };
  });
  const offer = (text: string): Item[] => {
    const sought = text.trim();
    if (sought.length < SEARCHED_CHARS_MIN) return [];
    const state = found ? (found.isOver ? (found.lines.length === 0 ? "nothing found" : "all found") : "searching …") : "the newest 5,000 lines of each";
    return [{ key: "search", group: "Output", name: `Search all output for “${sought}”`, note: state, text: sought, run: () => search(sought) }];
  };
  const clear = () => {
    stop();
    setFound(undefined);
  };
  return { items, offer, clear };
}
