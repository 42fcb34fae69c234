import { dialogs, told } from "./told.js";
import { Line } from "./Text.js";

export function Toast() {
  // A dialog says itself what goes wrong in it.
  const now = told.value?.tone === "bad" && dialogs.value > 0 ? undefined : told.value;
  return (
    <div class="toasts" role="status" aria-live="polite">
      {now && (
        <div class={`toast ${now.tone}`}>
          <Line text={now.text} />
          {now.hint && <Line class="muted" text={now.hint} />}
        </div>
      )}
    </div>
  );
}
