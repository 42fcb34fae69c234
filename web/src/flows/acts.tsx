// What a person can do about a flow: send the signal it waits for, cancel it, let it go on, decide about a stuck step.

import { useState } from "preact/hooks";
import { newKey, type FlowView } from "@holdfast/client";
import { isHuman, maySteer, needOf, takeFlow } from "../lib/flows.js";
import { client } from "../lib/store.js";
import { Dialog } from "../ui/Dialog.js";
import { Line, Lines } from "../ui/Text.js";
import { attempt } from "../ui/told.js";

async function act(ask: () => Promise<FlowView>): Promise<boolean> {
  const now = await attempt(ask);
  if (now) takeFlow(now);
  return now !== undefined;
}

export function Acts({ flow }: { flow: FlowView }) {
  const [isAsked, setIsAsked] = useState(false);
  if (needOf(flow) === "ended" || flow.state === "undoing" || !maySteer(flow)) return null;
  return (
    <>
      <button type="button" class="small danger" onClick={() => setIsAsked(true)}>
        Cancel flow
      </button>
      {isAsked && <Cancel flow={flow} onClose={() => setIsAsked(false)} />}
    </>
  );
}

function Cancel({ flow, onClose }: { flow: FlowView; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const cancel = async () => {
    if (await act(() => client.call("flow.cancel", { flow: flow.id, reason: reason.trim() }))) onClose();
  };
  return (
    <Dialog title="Cancel this flow" onClose={onClose}>
      <p>
        <Line text={flow.id} /> stops what runs, and then undoes what was done.
      </p>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void cancel();
        }}
      >
        <label>
          Reason
          <input class="field" value={reason} placeholder="shown in the history" onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        <p class="buttons">
          <button type="button" onClick={onClose}>
            Keep it
          </button>
          <button type="submit" class="danger solid">
            Cancel flow
          </button>
        </p>
      </form>
    </Dialog>
  );
}

/** Why it is blocked, and that it was mended. */
export function Blocked({ flow }: { flow: FlowView }) {
  const [busy, setBusy] = useState(false);
  if (flow.state !== "blocked") return null;
  const retry = async () => {
    setBusy(true);
    await act(() => client.call("flow.retry", { flow: flow.id }));
    setBusy(false);
  };
  return (
    <section class="question" aria-label="Blocked">
      <p class="who">
        <strong>Blocked</strong> <span class="muted">Nothing has failed: it goes on once the reason is mended.</span>
      </p>
      <p class="quoted">
        <Lines text={flow.why ?? ""} />
      </p>
      {maySteer(flow) && (
        <div class="answers">
          <button type="button" class="primary" disabled={busy} onClick={() => void retry()}>
            Try again
          </button>
        </div>
      )}
    </section>
  );
}

/** What only a human can decide. */
export function Stuck({ flow }: { flow: FlowView }) {
  const [busy, setBusy] = useState(false);
  const [value, setValue] = useState<string | undefined>(undefined);
  const stuck = (flow.waits_for ?? []).filter((wait) => wait.stuck);
  if (stuck.length === 0) return null;
  const decide = async (verdict: string, done?: string) => {
    setBusy(true);
    await act(() => client.call("flow.retry", { flow: flow.id, verdict, ...(done === undefined ? {} : { value: done }) }));
    setBusy(false);
  };
  return (
    <section class="question" aria-label="Stuck">
      {stuck.map(({ n, name, stuck }) => (
        <p key={n} class="asked">
          <Line text={name} />: <Line text={stuck ?? ""} />
        </p>
      ))}
      {!isHuman() && <p class="muted">Only people decide about this.</p>}
      {isHuman() && maySteer(flow) && value === undefined && (
        <div class="answers">
          <button type="button" class="answer" disabled={busy} onClick={() => void decide("again")}>
            Run it again
          </button>
          <button type="button" class="answer" disabled={busy} onClick={() => void decide("failed")}>
            It failed
          </button>
          <button type="button" class="answer" disabled={busy} onClick={() => setValue("")}>
            It was done …
          </button>
        </div>
      )}
      {value !== undefined && (
        <form
          class="answers"
          onSubmit={(event) => {
            event.preventDefault();
            void decide("done", value).then(() => setValue(undefined));
          }}
        >
          <input class="field" aria-label="What it gave" placeholder="What it gave" value={value} onInput={(event) => setValue(event.currentTarget.value)} />
          <button type="submit" class="primary" disabled={busy}>
            It was done
          </button>
        </form>
      )}
    </section>
  );
}

/** The signals it waits for. */
export function Signal({ flow }: { flow: FlowView }) {
  const waits = (flow.waits_for ?? []).filter(({ kind }) => kind === "signal");
  if (waits.length === 0 || !maySteer(flow)) return null;
  return (
    <>
      {waits.map(({ n, name }) => (
        <SignalForm key={n} flow={flow} name={name} />
      ))}
    </>
  );
}

function SignalForm({ flow, name }: { flow: FlowView; name: string }) {
  const [value, setValue] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async () => {
    setBusy(true);
    // The same id counts once, though an answer is lost and it is sent again.
    await act(() => client.call("flow.signal", { flow: flow.id, name, value: read(value), id: newKey() }));
    setBusy(false);
  };
  return (
    <section class="question calm" aria-label={`Signal ${name}`}>
      <p class="who">
        It waits for the signal <Line class="mono" text={name} />
      </p>
      <form
        class="answers"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <input class="field" aria-label="Value of the signal" placeholder="Value (text or JSON)" value={value} onInput={(event) => setValue(event.currentTarget.value)} />
        <button type="submit" class="primary" disabled={busy}>
          Send signal
        </button>
      </form>
    </section>
  );
}

/** JSON where it is some; else the text itself, as `holdfast flow signal` takes it. */
function read(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
