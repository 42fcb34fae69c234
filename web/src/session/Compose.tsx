// A line written with all that a phone's keyboard can do, words suggested and mended, and sent at once when it is ready.

import { useState } from "preact/hooks";
import type { Screen } from "./screen.js";

interface Props {
  screen: Screen;
  /** Keys are typed. */
  types: boolean;
  refused: () => void;
}

export function Compose({ screen, types, refused }: Props) {
  const [text, setText] = useState("");
  const send = () => {
    if (!types) return refused();
    screen.paste(text);
    screen.type("\r");
    setText("");
  };
  return (
    <form
      class="compose"
      aria-label="Compose"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        class="field mono"
        rows={2}
        aria-label="Text to send"
        placeholder="Write, then send"
        value={text}
        autocapitalize="off"
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit" class="primary" disabled={text === ""}>
        Send
      </button>
    </form>
  );
}
