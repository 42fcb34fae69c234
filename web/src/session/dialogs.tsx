// What is asked before something happens that cannot be taken back, and what is shown over the terminal.

import { useEffect, useRef, useState } from "preact/hooks";
import { Dialog } from "../ui/Dialog.js";
import { Line, Lines } from "../ui/Text.js";
import { attempt } from "../ui/told.js";

export function Seize({ holder, onClose, onSeize }: { holder: string; onClose: () => void; onSeize: (reason: string, freeze: boolean) => void }) {
  const [reason, setReason] = useState("");
  const [freeze, setFreeze] = useState(false);
  return (
    <Dialog title="Seize the turn" onClose={onClose}>
      <p>
        <Line text={holder} /> loses the turn at once. What it has sent and the program has not read is dropped.
      </p>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          onSeize(reason.trim(), freeze);
        }}
      >
        <label>
          Reason
          <input
            class="field"
            required
            value={reason}
            placeholder="shown in the journal and to the holder"
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        <label class="check">
          <input type="checkbox" checked={freeze} onChange={(event) => setFreeze(event.currentTarget.checked)} />
          <span>
            Freeze every process of the session <span class="muted">until it is thawed</span>
          </span>
        </label>
        <p class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="danger solid" disabled={reason.trim() === ""}>
            Seize
          </button>
        </p>
      </form>
    </Dialog>
  );
}

export function Paste({ onClose, onText }: { onClose: () => void; onText: (text: string) => void }) {
  const [text, setText] = useState("");
  return (
    <Dialog title="Paste into the terminal" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          onText(text);
          onClose();
        }}
      >
        <label>
          Text
          <textarea
            class="field mono"
            rows={4}
            placeholder="paste or type the text here"
            value={text}
            autocapitalize="off"
            spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <p class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={text === ""}>
            Type it
          </button>
        </p>
      </form>
    </Dialog>
  );
}

export function Rename({ name, onClose, onName }: { name: string; onClose: () => void; onName: (name: string) => void }) {
  const [text, setText] = useState(name);
  return (
    <Dialog title="Rename this session" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          onName(text.trim());
        }}
      >
        <label>
          Name
          <input
            class="field"
            value={text}
            maxLength={64}
            pattern="[A-Za-z0-9._\-]+"
            required
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <p class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={text.trim() === "" || text.trim() === name}>
            Rename
          </button>
        </p>
      </form>
    </Dialog>
  );
}

interface ConfirmProps {
  title: string;
  text: string;
  /** What it is about, word for word. */
  quoted?: string;
  yes: string;
  danger?: boolean;
  onClose: () => void;
  onYes: () => void;
}

export function Confirm({ title, text, quoted, yes, danger, onClose, onYes }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      {quoted !== undefined && (
        <p class="quoted">
          <Lines text={quoted.length > 2000 ? `${quoted.slice(0, 2000)} …` : quoted} />
        </p>
      )}
      <p class="buttons">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          class={danger ? "danger solid" : "primary"}
          onClick={() => {
            onYes();
            onClose();
          }}
        >
          {yes}
        </button>
      </p>
    </Dialog>
  );
}

/** The terminal's text where it can be selected by touch, copied whole, and read by a screen reader. */
export function AsText({ text, onClose }: { text: string; onClose: () => void }) {
  const [isCopied, setIsCopied] = useState(false);
  const box = useRef<HTMLPreElement>(null);
  // What is new is at the end.
  useEffect(() => box.current?.scrollTo(0, box.current.scrollHeight), []);
  const copy = () => void attempt(() => navigator.clipboard.writeText(text).then(() => setIsCopied(true)));
  return (
    <Dialog title="The terminal as text" wide onClose={onClose}>
      <pre class="quoted as-text" ref={box} tabIndex={0} aria-label="Text of the terminal">
        <Lines text={text} />
      </pre>
      <p class="buttons">
        {navigator.clipboard && (
          <button type="button" onClick={copy}>
            {isCopied ? "Copied" : "Copy all"}
          </button>
        )}
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </p>
    </Dialog>
  );
}
