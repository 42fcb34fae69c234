// An act that waits for a person: who wants what, what it would touch, and the rule that asks. An approval can be taken back for a moment.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ApprovalView as Approval } from "@holdfast/client";
import { myActor } from "../lib/login.js";
import { follow, sessionPath } from "../lib/route.js";
import { approvals, client } from "../lib/store.js";
import { span } from "../lib/text.js";
import { ActorChip } from "../ui/Actor.js";
import { Line, Lines } from "../ui/Text.js";
import { attempt } from "../ui/told.js";

/** Time to see what was tapped. */
const UNDO_MS = 5_000;
/** Paths that are shown of each kind. */
const PATHS = 5;

interface Props {
  approval: Approval;
  /** Its session is named: it is not the one that is looked at. */
  where?: boolean;
}

export function ApprovalCard({ approval, where }: Props) {
  const [chosen, setChosen] = useState<boolean | undefined>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const send = async (approve: boolean) => {
    clearTimeout(timer.current);
    const done = await attempt(() => client.call("approval.answer", { approval: approval.id, seen: approval.hash, approve }));
    if (done) approvals.value = approvals.value.filter((one) => one.id !== approval.id);
    else setChosen(undefined);
  };
  const choose = (approve: boolean) => {
    setChosen(approve);
    timer.current = setTimeout(() => void send(approve), UNDO_MS);
  };
  const takeBack = () => {
    clearTimeout(timer.current);
    setChosen(undefined);
  };
  return (
    <section class="question approval" aria-label={`Approval for ${approval.by.handle}`}>
      <p class="who">
        <ActorChip handle={approval.by.handle} />
        <span class="muted">
          needs approval
          {where && approval.name && (
            <>
              {" in "}
              <a href={sessionPath(approval.name)} onClick={follow}>
                <Line text={approval.name} />
              </a>
            </>
          )}
          {` · ${span(Date.now() - approval.asked_ms)}`}
        </span>
      </p>
      <p class="asked">
        <code>
          <Lines text={approval.command || approval.act} />
        </code>
      </p>
      <p class="muted">
        in <Line text={approval.cwd} /> · <Line text={approval.rule} />: <Line text={approval.why} />
        {approval.again && " · approved before, and changed since"}
      </p>
      <Paths words="Writes" all={approval.writes} />
      <Paths words="Deletes" all={approval.deletes} />
      {!myActor()?.handle.startsWith("human:") ? (
        <p class="muted">Only people approve.</p>
      ) : chosen === undefined ? (
        <div class="answers">
          <button type="button" class="answer" onClick={() => choose(true)}>
            Approve
          </button>
          <button type="button" class="answer" onClick={() => choose(false)}>
            Deny
          </button>
        </div>
      ) : (
        <div class="answers chosen" role="status">
          <span>{chosen ? "Approving …" : "Denying …"}</span>
          <button type="button" class="primary" onClick={takeBack}>
            Undo
          </button>
          <button type="button" onClick={() => void send(chosen)}>
            Send now
          </button>
        </div>
      )}
    </section>
  );
}

function Paths({ words, all }: { words: string; all: string[] }) {
  if (all.length === 0) return null;
  const more = all.length - PATHS;
  return (
    <p class="muted">
      {words} <Line text={all.slice(0, PATHS).join(", ")} />
      {more > 0 && ` and ${more} more`}
    </p>
  );
}
