// The keys a phone's keyboard lacks. Tapping one leaves the keyboard as it is.

import { useEffect, useState } from "preact/hooks";
import { Icon } from "../ui/icons.js";
import { Compose } from "./Compose.js";
import type { Screen } from "./screen.js";

const KEYS: { name: string; label: string; keys: string }[] = [
  { name: "Esc", label: "Esc", keys: "\x1b" },
  { name: "Tab", label: "Tab", keys: "\t" },
];
const ARROWS = [
  ["←", "Left", "D"],
  ["↓", "Down", "B"],
  ["↑", "Up", "A"],
  ["→", "Right", "C"],
] as const;
const MORE: { name: string; label: string; keys: string }[] = [
  { name: "^C", label: "^C Control C", keys: "\x03" },
  { name: "^D", label: "^D Control D", keys: "\x04" },
  { name: "|", label: "Pipe", keys: "|" },
  { name: "/", label: "Slash", keys: "/" },
  { name: "-", label: "Hyphen", keys: "-" },
  { name: "~", label: "Tilde", keys: "~" },
];

interface Props {
  screen: Screen;
  pane: HTMLElement;
  /** Keys are typed. */
  types: boolean;
  refused: () => void;
  /** The browser does not let us read its clipboard: the person puts the text in by hand. */
  askText: () => void;
}

export function KeyRow({ screen, pane, types, refused, askText }: Props) {
  const [ctrl, setCtrl] = useState(false);
  const [isComposing, setComposing] = useState(false);
  useEffect(() => {
    const used = () => setCtrl(false);
    pane.addEventListener("ctrl-used", used);
    return () => pane.removeEventListener("ctrl-used", used);
  }, [pane]);
  const press = (keys: string) => (types ? screen.type(keys) : refused());
  const hold = () => {
    screen.ctrl = !ctrl;
    setCtrl(!ctrl);
    screen.focus();
  };
  const paste = async () => {
    if (!types) return refused();
    const text = await navigator.clipboard?.readText().catch(() => undefined);
    if (text === undefined) askText();
    else if (text) screen.paste(text);
  };
  const key = (name: string, label: string, act: () => void) => (
    <button type="button" key={name} aria-label={label} onClick={act}>
      {name}
    </button>
  );
  return (
    <div class="keys">
      {isComposing && <Compose screen={screen} types={types} refused={refused} />}
      <div
        class="key-row"
        role="toolbar"
        aria-label="Keys"
        // The focus stays where it is, and with it the phone's keyboard.
        onPointerDown={(event) => event.preventDefault()}
        onMouseDown={(event) => event.preventDefault()}
      >
        {KEYS.map(({ name, label, keys }) => key(name, label, () => press(keys)))}
        <button type="button" aria-pressed={ctrl} aria-label="Ctrl, for the next key" onClick={hold}>
          Ctrl
        </button>
        {ARROWS.map(([name, label, letter]) => key(name, label, () => screen.arrow(letter)))}
        {key("Paste", "Paste", () => void paste())}
        <button type="button" aria-pressed={isComposing} onClick={() => setComposing(!isComposing)}>
          Write
        </button>
        {MORE.map(({ name, label, keys }) => key(name, label, () => press(keys)))}
        {key("A−", "A− smaller text", () => screen.setFontSize(screen.fontSize - 1))}
        {key("A+", "A+ larger text", () => screen.setFontSize(screen.fontSize + 1))}
        <button type="button" aria-label="Show the keyboard" onClick={() => screen.focus()}>
          <Icon name="keyboard" />
        </button>
      </div>
    </div>
  );
}
