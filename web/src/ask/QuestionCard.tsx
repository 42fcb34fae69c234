// A question of an operator, answered with one tap, which can be taken back for a moment, or a line of text.

import { useState } from "preact/hooks";
import type { QuestionView as Question } from "@holdfast/client";
import { myActor } from "../lib/login.js";
import { follow, sessionPath } from "../lib/route.js";
import { span } from "../lib/text.js";
import { ActorChip } from "../ui/Actor.js";
import { Line, Lines } from "../ui/Text.js";
import { answer, answerOpen, held, hold, sendHeld, takeBack } from "./held.js";

interface Props {
  question: Question;
  /** Its session is named: it is not the one that is looked at. */
  where?: boolean;
  /** It stands in the way, and can be made small. */
  folds?: boolean;
}

export function QuestionCard({ question, where, folds }: Props) {
  const [busy, setBusy] = useState(false);
  const [isFolded, setFolded] = useState(false);
  const chosen = held.value.get(question.id)?.said;
  const say = async (said: string | number) => {
    if (typeof said === "number") return hold(question.id, said, question.expires_at_ms ?? undefined, () => answerOpen(question, said));
    setBusy(true);
    await answer(question, said);
    setBusy(false);
  };
  return (
    <section class="question" aria-label={`Question from ${question.by.handle}`}>
      <p class="who">
        <ActorChip handle={question.by.handle} />
        <span class="muted">
          asks
          {where && (
            <>
              {" in "}
              <a href={sessionPath(question.name)} onClick={follow}>
                <Line text={question.name} />
              </a>
            </>
          )}
          {` · ${span(Date.now() - question.asked_ms)}`}
        </span>
        {folds && (
          <button type="button" class="quiet small fold" aria-expanded={!isFolded} onClick={() => setFolded(!isFolded)}>
            {isFolded ? "Show" : "Later"}
          </button>
        )}
      </p>
      {chosen !== undefined && <Chosen id={question.id} said={question.options[chosen] ?? ""} />}
      {chosen === undefined && !isFolded && <Asked text={question.text} options={question.options} mayAnswer={isHuman()} busy={busy} onAnswer={(said) => void say(said)} />}
    </section>
  );
}

function isHuman(): boolean {
  return myActor()?.handle.startsWith("human:") ?? false;
}

/** What was tapped, while it can be taken back. */
export function Chosen({ id, said }: { id: string; said: string }) {
  return (
    <div class="answers chosen" role="status">
      <span>
        Answering “<Line text={said} />” …
      </span>
      <button type="button" class="primary" onClick={() => void takeBack(id)}>
        Undo
      </button>
      <button type="button" onClick={() => void sendHeld(id)}>
        Send now
      </button>
    </div>
  );
}

interface AskedProps {
  text: string;
  options: readonly string[];
  mayAnswer: boolean;
  busy: boolean;
  onAnswer: (said: string | number) => void;
}

/** The question, and what can be answered. */
export function Asked({ text: asked, options, mayAnswer, busy, onAnswer }: AskedProps) {
  const [text, setText] = useState("");
  return (
    <>
      <p class="asked">
        <Lines text={asked} />
      </p>
      {!mayAnswer ? (
        <p class="muted">Only people answer questions.</p>
      ) : options.length > 0 ? (
        <div class="answers">
          {options.map((option, number) => (
            <button type="button" class="answer" key={number} disabled={busy} onClick={() => onAnswer(number)}>
              <Line text={option} />
            </button>
          ))}
        </div>
      ) : (
        <form
          class="answers"
          onSubmit={(event) => {
            event.preventDefault();
            if (text !== "") onAnswer(text);
          }}
        >
          <input
            class="field"
            aria-label="Your answer"
            placeholder="Your answer"
            value={text}
            disabled={busy}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <button type="submit" class="primary" disabled={busy || text === ""}>
            Answer
          </button>
        </form>
      )}
    </>
  );
}
