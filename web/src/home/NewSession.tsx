// Starts a session: a shell, unless a command is said.

import { useState } from "preact/hooks";
import { client, take } from "../lib/store.js";
import { go, sessionPath } from "../lib/route.js";
import { startedHere } from "../session/started.js";
import { Dialog } from "../ui/Dialog.js";
import { attempt } from "../ui/told.js";

export function NewSession({ onClose }: { onClose: () => void }) {
  const [busy, setBusy] = useState(false);
  const submit = async (form: HTMLFormElement) => {
    const said = (name: string) => String(new FormData(form).get(name) ?? "").trim();
    setBusy(true);
    const [name, command, cwd] = [said("name"), said("command"), said("cwd")];
    const session = await attempt(() =>
      client.open({ existing: false, ...(name ? { name } : {}), ...(command ? { command } : {}), ...(cwd ? { cwd } : {}) }),
    );
    setBusy(false);
    if (!session) return;
    const live = take(session.view);
    startedHere.add(live.id);
    onClose();
    go(sessionPath(live.name));
  };
  return (
    <Dialog title="New session" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <label>
          Name
          <input class="field" name="name" placeholder="generated" maxLength={64} pattern="[A-Za-z0-9._\-]*" autocomplete="off" />
        </label>
        <label>
          Command
          <input class="field mono" name="command" placeholder="your shell" autocomplete="off" autocapitalize="off" spellcheck={false} />
        </label>
        <label>
          Directory
          <input class="field mono" name="cwd" placeholder="your home directory" autocomplete="off" autocapitalize="off" spellcheck={false} />
        </label>
        <p class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy}>
            Start
          </button>
        </p>
      </form>
    </Dialog>
  );
}
