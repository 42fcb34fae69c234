// A program waits for a password: it is typed here, seen by nobody, and recorded as a length.

import { useState } from "preact/hooks";
import { follow, sessionPath } from "../lib/route.js";
import type { LiveSession } from "../lib/store.js";
import { Line } from "../ui/Text.js";
import { attempt } from "../ui/told.js";

/** Whether a session waits for one. */
export function waitsForSecret(live: LiveSession): boolean {
  const doing = live.doing.value;
  return live.view.value.life === "running" && doing?.state === "waiting" && doing.kind === "password";
}

interface Props {
  live: LiveSession;
  /** Its session is named: it is not the one that is looked at. */
  where?: boolean;
}

export function SecretCard({ live, where }: Props) {
  const [isBusy, setBusy] = useState(false);
  const [text, setText] = useState("");
  const send = async () => {
    setBusy(true);
    // The host types it only while the terminal does not show what is typed.
    await attempt(() => live.session.send(`${text}\r`, { secret: true }));
    setText("");
    setBusy(false);
  };
  return (
    <section class="question" aria-label={`${live.name} waits for a password`}>
      <p class="who">
        <span class="muted">
          {where ? (
            <a href={sessionPath(live.name)} onClick={follow}>
              <Line text={live.name} />
            </a>
          ) : (
            "This session"
          )}{" "}
          waits for a password
        </span>
      </p>
      <p class="asked">
        <Line text={live.doing.value?.prompt ?? ""} />
      </p>
      <form
        class="answers"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <input
          class="field"
          type="password"
          aria-label="Password"
          placeholder="typed and not shown"
          autocomplete="off"
          value={text}
          disabled={isBusy}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" class="primary" disabled={isBusy || text === ""}>
          Enter
        </button>
      </form>
    </section>
  );
}
