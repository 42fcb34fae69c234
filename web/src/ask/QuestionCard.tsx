// A question of an operator, answered with one tap or a line of text. Approvals will look like this, too.

import { useState } from "preact/hooks";
import type { QuestionView as Question } from "@holdfast/client";
import { client, questions } from "../lib/store.js";
import { follow, sessionPath } from "../lib/route.js";
import { span } from "../lib/text.js";
import { ActorChip } from "../ui/Actor.js";
import { Line, Lines } from "../ui/Text.js";
import { attempt } from "../ui/told.js";

export function QuestionCard({ question, where }: { question: Question; where?: boolean }) {
  const [busy, setBusy] = useState(false);
  const [text, setText] = useState("");
  const answer = async (said: string | number) => {
    setBusy(true);
    const done = await attempt(() => client.answer(question.id, said));
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
      </p>
      <p class="asked">
        <Lines text={question.text} />
      </p>
      {question.options.length > 0 ? (
        <div class="answers">
          {question.options.map((option, number) => (
            <button type="button" class="answer" key={number} disabled={busy} onClick={() => void answer(number)}>
              <Line text={option} />
            </button>
          ))}
        </div>
      ) : (
        <form
          class="answers"
          onSubmit={(event) => {
            event.preventDefault();
            if (text !== "") void answer(text);
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
    </section>
  );
}
