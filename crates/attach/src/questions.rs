//! Answering a question where it was seen: in the last row of an attached terminal.
//!
//! Only a question that the row shows whole is answered there. A person must not decide about a text that was cut off.

use super::inputs::Request;
use super::machine::Attached;
use super::notice::{self, columns, visible};
use super::prompt::{Prompt, Purpose};
use super::turns::Asked;
use holdfast_authority::Ask;
use holdfast_types::terms_of;
use holdfast_wire::questions::{QuestionView, detail, meant};

/// Columns left to type a text into, and the number of an option.
const ANSWER_COLUMNS_MIN: usize = 16;
const NUMBER_COLUMNS_MIN: usize = 4;

impl Attached {
    /// The person wants to answer: what is open is asked for first.
    pub(crate) fn want_to_answer(&mut self) {
        self.ask(Request::Questions, Asked::Questions);
    }

    /// What is open: the oldest is shown, if it fits.
    pub(crate) fn questions_seen(&mut self, open: Vec<QuestionView>) {
        let Some(question) = open.into_iter().next() else { return self.say(" no open questions ") };
        if self.line.prompt.is_some() {
            return;
        }
        match label(&question, usize::from(self.size.cols())) {
            Some(label) => {
                self.turns.question = Some(question);
                self.show_prompt(Prompt::labelled(Purpose::Answer, label));
            }
            None => {
                let id = notice::short_id(&question.id.to_string());
                self.say(format!(" too long for this line · use: holdfast answer {id} "));
            }
        }
    }

    /// The person has answered.
    pub(crate) fn answer_question(&mut self, typed: &str) {
        let Some(question) = self.turns.question.take() else { return };
        let text = match meant(&question.options, typed) {
            Ok((text, _)) => text,
            Err(fault) => return self.say(format!(" {} {} ", fault.message, fault.hint)),
        };
        let ask = Ask::other(const { terms_of("question.answer") }, detail(question.id, &text, &question.text));
        self.ask(Request::Reply { question: question.id, seen: question.hash, text, ask }, Asked::Answer);
    }

    /// The answer was taken.
    pub(crate) fn answer_taken(&mut self, question: &QuestionView) {
        let text = question.answer.as_ref().map_or("", |answer| &answer.text);
        self.say(format!(" answered {}: {text} ", question.by));
    }
}

/// The question, before what is typed; none: it does not fit, or has lines.
fn label(question: &QuestionView, width: usize) -> Option<String> {
    let options: Vec<String> =
        question.options.iter().enumerate().map(|(n, option)| format!("{}: {option}", n + 1)).collect();
    let (options, room) = match options.is_empty() {
        true => (String::new(), ANSWER_COLUMNS_MIN),
        false => (format!(" [{}]", options.join(", ")), NUMBER_COLUMNS_MIN),
    };
    let label = visible(&format!(" {} asks: {}{options} ", question.by, question.text));
    (columns(&label) + room <= width).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_in_the_row_where_it_fits_whole_and_not_where_it_does_not() {
        let question: QuestionView = serde_json::from_value(serde_json::json!({
            "id": "que_00000000000000000000000000", "session": "ses_00000000000000000000000000", "name": "w",
            "by": {"id": "01".repeat(32), "handle": "agent:bot"}, "text": "Go\u{1b}[2J?", "options": ["yes", "no"], "hash": "02".repeat(32),
            "asked_ms": 0, "state": "open", "answer": null}))
        .unwrap();
        assert_eq!(label(&question, 80).unwrap(), " agent:bot asks: Go^[[2J? [1: yes, 2: no] ");
        assert_eq!(label(&question, 45), None);
        let open = QuestionView { options: Vec::new(), ..question.clone() };
        assert_eq!((label(&open, 45).is_some(), label(&open, 40)), (true, None), "an answer takes more than a number");
        let long = QuestionView { text: "x".repeat(200), ..question };
        assert_eq!(label(&long, 120), None);
    }
}
