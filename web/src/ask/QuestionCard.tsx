// A question of an operator, answered with one tap, which can be taken back for a moment, or a line of text.

import { useState } from "preact/hooks";
import type { QuestionView as Question } from "@holdfast/client";
import { myActor } from "../lib/login.js";
import { follow, sessionPath } from "../lib/route.js";
import { span } from "../lib/text.js";
import { ActorChip } from "../ui/Actor.js";
import { Line, Lines } from "../ui/Text.js";
import { answer, held, hold, sendHeld, takeBack } from "./held.js";

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
    if (typeof said === "number") return hold(question, said);
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
      {chosen !== undefined && <Chosen question={question} said={chosen} />}
      {chosen === undefined && !isFolded && <Asked question={question} busy={busy} onAnswer={(said) => void say(said)} />}
    </section>
  );
}

function isHuman(): boolean {
  return myActor()?.handle.startsWith("human:") ?? false;
}

/** What was tapped, while it can be taken back. */
function Chosen({ question, said }: { question: Question; said: number }) {
  return (
    <div class="answers chosen" role="status">
      <span>
        Answering “<Line text={question.options[said] ?? ""} />” …
      </span>
      <button type="button" class="primary" onClick={() => void takeBack(question.id)}>
        Undo
      </button>
      <button type="button" onClick={() => void sendHeld(question.id)}>
        Send now
      </button>
    </div>
  );
}

function Asked({ question, busy, onAnswer }: { question: Question; busy: boolean; onAnswer: (said: string | number) => void }) {
  const [text, setText] = useState("");
  return (
    <>
      <p class="asked">
        <Lines text={question.text} />
      </p>
      {!isHuman() ? (
        <p class="muted">Only people answer questions.</p>
      ) : question.options.length > 0 ? (
        <div class="answers">
          {question.options.map((option, number) => (
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
