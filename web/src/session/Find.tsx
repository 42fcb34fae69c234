// Finds a text in what the terminal holds, the newest first.

import type { ISearchOptions, SearchAddon } from "@xterm/addon-search";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../ui/icons.js";
import type { Screen } from "./screen.js";

/** More than this are found, and not counted. */
const COUNTED_MAX = 1_000;

/** All but the one that is selected. */
const SHOWN = {
  decorations: {
    matchBackground: "#b98a1e",
    matchOverviewRuler: "#b98a1e",
    activeMatchColorOverviewRuler: "#e2692b",
  },
} satisfies ISearchOptions;

interface Found {
  at: number;
  all: number;
}

export function Find({ sought, screen, onClose }: { sought: string; screen: Screen; onClose: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const search = useRef<SearchAddon>(undefined);
  const [text, setText] = useState(sought);
  const [found, setFound] = useState<Found | undefined>(undefined);
  // Not after the next frame: a quick person would type the text into the session.
  useLayoutEffect(() => {
    const addon = screen.finder(COUNTED_MAX);
    screen.setFinding(true);
    addon.onDidChangeResults(({ resultIndex, resultCount }) => setFound({ at: resultIndex + 1, all: resultCount }));
    search.current = addon;
    field.current?.focus();
    if (sought !== "") seek(sought);
    return () => {
      addon.dispose();
      screen.setFinding(false);
    };
  }, [screen]);
  const older = (wanted: string) => {
    search.current?.findPrevious(wanted, SHOWN);
    screen.showFound();
  };
  const newer = () => {
    search.current?.findNext(text, SHOWN);
    screen.showFound();
  };
  const seek = (wanted: string) => {
    setText(wanted);
    // From the end again: a longer word may stand behind where the shorter one was found.
    screen.term.clearSelection();
    search.current?.clearDecorations();
    setFound(undefined);
    if (wanted !== "") older(wanted);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
    if (event.key !== "Enter" || text === "") return;
    event.preventDefault();
    if (event.shiftKey) newer();
    else older(text);
  };
  return (
    <div class="find" role="search" aria-label="Find in the terminal">
      <input
        ref={field}
        type="search"
        aria-label="Find"
        placeholder="Find"
        value={text}
        autocapitalize="off"
        spellcheck={false}
        onInput={(event) => seek(event.currentTarget.value)}
        onKeyDown={onKey}
      />
      <span class="muted found" role="status">
        {text !== "" && found && said(found)}
      </span>
      <button type="button" class="quiet icon-only" aria-label="Older" title="Older (Enter)" disabled={text === ""} onClick={() => older(text)}>
        <Icon name="up" size={16} />
      </button>
      <button type="button" class="quiet icon-only" aria-label="Newer" title="Newer (Shift+Enter)" disabled={text === ""} onClick={newer}>
        <Icon name="down" size={16} />
      </button>
      <button type="button" class="quiet icon-only" aria-label="Close find" onClick={onClose}>
        <Icon name="close" size={16} />
      </button>
    </div>
  );
}

function said({ at, all }: Found): string {
  if (all === 0) return "nothing";
  if (all >= COUNTED_MAX) return `over ${COUNTED_MAX}`;
  return at > 0 ? `${at} of ${all}` : `${all}`;
}
