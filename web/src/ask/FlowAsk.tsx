// A question of a flow. A tapped answer can be taken back for a moment, as everywhere.

import { useState } from "preact/hooks";
import type { FlowView, FlowWait } from "@holdfast/client";
import { isHuman, takeFlow } from "../lib/flows.js";
import { flowPath, follow } from "../lib/route.js";
import { client } from "../lib/store.js";
import { span } from "../lib/text.js";
import { ActorChip } from "../ui/Actor.js";
import { Line } from "../ui/Text.js";
import { attempt } from "../ui/told.js";
import { held, hold } from "./held.js";
import { Asked, Chosen } from "./QuestionCard.js";

export function FlowAsk({ flow, wait, where }: { flow: FlowView; wait: FlowWait; where?: boolean }) {
  const [busy, setBusy] = useState(false);
  const id = `flow ${flow.id} ${flow.generation ?? 1} ${wait.n}`;
  const options = wait.options ?? [];
  const chosen = held.value.get(id)?.said;
  const send = async (text: string) => {
    setBusy(true);
    const now = await attempt(() => client.call("flow.answer", { flow: flow.id, step: wait.n + 1, text }));
    if (now) takeFlow(now);
    setBusy(false);
  };
  const say = (said: string | number) => {
    if (typeof said === "string") return void send(said);
    hold(id, said, wait.until_ms ?? undefined, () => send(options[said] ?? ""));
  };
  return (
    <section class="question" aria-label={`Question from ${flow.id}`}>
      <p class="who">
        <ActorChip handle={flow.by} />
        <span class="muted">
          asks
          {where && (
            <>
              {" in flow "}
              <a href={flowPath(flow.id)} onClick={follow}>
                <Line text={flow.id} />
              </a>
            </>
          )}
          {` · ${span(Date.now() - wait.since_ms)}`}
        </span>
      </p>
      {chosen !== undefined && <Chosen id={id} said={options[chosen] ?? ""} />}
      {chosen === undefined && <Asked text={wait.question ?? wait.name} options={options} mayAnswer={isHuman()} busy={busy} onAnswer={say} />}
    </section>
  );
}
