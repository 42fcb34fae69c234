//! `ask_human`: a question to the people of a session.

use super::{Hints, Operate, Shown};
use crate::desk::{Desk, in_ms, left_ms};
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_types::TimeMs;
use holdfast_wire::operations::op;
use holdfast_wire::questions::{QuestionAskParams, QuestionParams, QuestionState, QuestionView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long an answer is waited for, unless said otherwise: a person who is there needs about so long.
const ANSWER_MS: u64 = 60_000;
/// Longest that one call waits.
const ANSWER_MS_MAX: u64 = 600_000;

/// What to ask.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskIn {
    /// What to ask. Say what you want to do and why.
    #[serde(default)]
    question: Option<String>,
    /// Name or id of the session it is about. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
    /// Allowed answers. Omitted: any text.
    #[serde(default)]
    options: Vec<String>,
    /// How long to wait for the answer, in milliseconds (default 60000). Then the answer is `open`, and the question stays open.
    #[serde(default)]
    timeout_ms: Option<u64>,
    /// Instead of a question: the `id` of an earlier one, to keep waiting for its answer.
    #[serde(default)]
    id: Option<String>,
    /// A key of your own: the same key is the same question, also after its answer. Without one, the same text is the same question while it is open.
    #[serde(default)]
    key: Option<String>,
}

/// A question, and its answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AskOut {
    /// Its id: call again with it to keep waiting.
    id: String,
    /// `open`: no answer yet. `answered`, `withdrawn`, `expired`.
    state: String,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

impl Shown for AskOut {
    fn text(&self) -> String {
        match (&self.answer, &self.by) {
            (Some(answer), Some(by)) => format!("{by} answered: {answer}"),
            (Some(answer), None) => format!("answered: {answer}"),
            (None, _) if self.state == "open" => {
                format!("no answer yet: `ask_human` {{id: \"{}\"}} keeps waiting", self.id)
            }
            (None, _) => format!("{}: no answer", self.state),
        }
    }
}

/// The tool.
pub struct AskHuman;

impl Operate for AskHuman {
    const NAME: &'static str = "ask_human";
    const TITLE: &'static str = "Ask a person";
    const DESCRIPTION: &'static str = "Asks the people of a session and waits for their answer: a decision that is \
        not yours, a password they must type themselves, a turn you need. If no answer comes in time, the question \
        stays open: ask again with its id, or with the same text. `overview` lists open questions.";
    const HINTS: Hints = Hints { reads: false, destroys: false, once: true, open: true };
    type In = AskIn;
    type Out = AskOut;

    async fn call<H: Host>(desk: &Desk<H>, input: AskIn) -> Result<AskOut, Trouble> {
        let until = in_ms(input.timeout_ms.unwrap_or(ANSWER_MS).min(ANSWER_MS_MAX));
        let mut view = match (&input.id, input.question) {
            (Some(id), None) => {
                let question = id.parse().map_err(|error| Trouble::bad(format!("{error}")))?;
                desk.ask::<op::QuestionGet>(QuestionParams { question, wait_ms: 0 }).await?
            }
            (None, Some(text)) => {
                let session = desk.find_or_own(input.session.as_deref()).await?;
                let params = QuestionAskParams {
                    session: session.id.to_string(),
                    text,
                    options: input.options,
                    key: input.key,
                    ..QuestionAskParams::default()
                };
                desk.ask::<op::QuestionAsk>(params).await?
            }
            (None, None) | (Some(_), Some(_)) => return Err(Trouble::bad("give either `question` or `id`")),
        };
        while view.state == QuestionState::Open && left_ms(until) > 0 {
            let params = QuestionParams { question: view.id, wait_ms: desk.ask_ms(until) };
            view = desk.ask::<op::QuestionGet>(params).await?;
            desk.tell(|| "waiting for a person's answer".into()).await;
        }
        Ok(AskOut {
            id: view.id.to_string(),
            state: view.state.word().into(),
            by: view.answer.as_ref().map(|answer| answer.by.handle.to_string()),
            answer: view.answer.map(|answer| answer.text),
        })
    }
}

/// A question in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QuestionLine {
    /// Its id.
    id: String,
    /// Its session.
    session: String,
    /// Who asks.
    by: String,
    /// What is asked.
    question: String,
    /// Allowed answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
    /// When it was asked, in milliseconds since the epoch.
    asked_ms: TimeMs,
    /// The answer, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
}

impl From<&QuestionView> for QuestionLine {
    fn from(view: &QuestionView) -> QuestionLine {
        QuestionLine {
            id: view.id.to_string(),
            session: view.name.to_string(),
            by: view.by.handle.to_string(),
            question: view.text.clone(),
            options: view.options.clone(),
            asked_ms: view.asked_ms,
            answer: view.answer.as_ref().map(|answer| answer.text.clone()),
        }
    }
}

impl QuestionLine {
    /// One line.
    pub fn line(&self) -> String {
        let line = format!("question {} in {} by {}: {:?}", self.id, self.session, self.by, self.question);
        match &self.answer {
            None => format!("open {line}"),
            Some(answer) => format!("answered {line}: {answer:?}"),
        }
    }
}
