// A question of an operator, answered with one tap or a line of text. Approvals will look like this, too.

import { useState } from "preact/hooks";
import type { QuestionView as Question } from "@holdfast/client";
import { client, questions } from "../lib/store.js";
import { follow, sessionPath } from "../lib/route.js";
import { span } from "../lib/text.js";
import { ActorChip } from "../ui/Actor.js";
import { Line, Lines } from "../ui/Text.js";
import { attempt } from "../ui/told.js";

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
  const answer = async (said: string | number) => {
    setBusy(true);
    const done = await attempt(() => client.answer(question, said));
    if (done) questions.value = questions.value.filter((one) => one.id !== question.id);
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
      {!isFolded && <Asked question={question} busy={busy} onAnswer={(said) => void answer(said)} />}
    </section>
  );
}

function Asked({ question, busy, onAnswer }: { question: Question; busy: boolean; onAnswer: (said: string | number) => void }) {
  const [text, setText] = useState("");
  return (
    <>
      <p class="asked">
        <Lines text={question.text} />
      </p>
      {question.options.length > 0 ? (
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
