//! Questions: an operator, most often an agent, asks the humans of a session something and waits; a human answers.
//!
//! The host gives each question an id that no other ever has. Its asker may draw a key, so that it is not asked twice when an answer of
//! the host is lost. Nobody but a human answers, and an answer says by a hash which text was read.

use crate::fault::{Code, Fault};
use holdfast_types::{Actor, Hash, Places, Proof, SessionId, SessionName, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest question, and longest answer: a page, which is more than anybody reads before a decision.
pub const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Options of one question: what still fits a screen.
pub const OPTIONS_MAX: usize = 16;
/// Longest option: a line or two.
pub const OPTION_BYTES_MAX: usize = 200;
/// Open questions of one session: a person cannot answer more, and an asker of so many does not wait for answers. One that asks
/// and asks leaves room for others.
pub const OPEN: Places = Places { all: 64, not_human: 56, of_one: 16, of_human: 32 };

/// Longest key of a question: a random id with a few words.
pub const KEY_BYTES_MAX: usize = 64;

/// A question's identity for all time: `que_` and 26 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct QuestionId(SessionId);

/// A text that is no [`QuestionId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid question id {0:?}; expected `que_` and 26 characters (see `holdfast questions`)")]
pub struct QuestionIdError(String);

impl QuestionId {
    /// An id from 128 bits that the caller drew from a good source.
    #[must_use]
    pub fn from_random_bits(bits: u128) -> QuestionId {
        QuestionId(SessionId::from_random_bits(bits))
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string().replacen("ses_", "que_", 1))
    }
}

impl fmt::Debug for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for QuestionId {
    type Err = QuestionIdError;

    fn from_str(text: &str) -> Result<QuestionId, QuestionIdError> {
        let session = text.strip_prefix("que_").and_then(|digits| format!("ses_{digits}").parse().ok());
        session.map(QuestionId).ok_or_else(|| QuestionIdError(text.chars().take(64).collect()))
    }
}

impl From<QuestionId> for String {
    fn from(id: QuestionId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for QuestionId {
    type Error = QuestionIdError;

    fn try_from(text: String) -> Result<QuestionId, QuestionIdError> {
        text.parse()
    }
}

/// Where a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionState {
    /// It waits for an answer.
    Open,
    /// A human has answered.
    Answered,
    /// Its asker, or a human, withdrew it.
    Withdrawn,
    /// Its time is over, or its session is.
    Expired,
}

impl QuestionState {
    /// Its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            QuestionState::Open => "open",
            QuestionState::Answered => "answered",
            QuestionState::Withdrawn => "withdrawn",
            QuestionState::Expired => "expired",
        }
    }
}

/// What to ask.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionAskParams {
    /// Name or id of the session it is about, whose humans are asked.
    pub session: String,
    /// The question.
    pub text: String,
    /// What can be answered; none: any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Answer when it is no longer open, at the latest after this long.
    #[serde(default)]
    pub wait_ms: u64,
    /// A key of the asker's own, drawn at random, at most 64 bytes: asked again with the same one after an answer was lost, it is not
    /// asked twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Close the question after this long; none: it is open as long as its session lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// Which question.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionParams {
    /// Its id.
    pub question: QuestionId,
    /// Answer when it is no longer open, at the latest after this long.
    #[serde(default)]
    pub wait_ms: u64,
}

/// Which questions.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionListParams {
    /// Those of one session; none: of all sessions the caller may observe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Those that are no longer open too, as far as they are remembered.
    #[serde(default)]
    pub all: bool,
}

/// What to answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionAnswerParams {
    /// The question's id.
    pub question: QuestionId,
    /// The `hash` of the question that was read: an answer to another text is refused.
    pub seen: Hash,
    /// The answer; where there are options, one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// In place of a text: the number of an option, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<u32>,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// Which question to take back.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionWithdrawParams {
    /// Its id.
    pub question: QuestionId,
}

/// A question as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionView {
    /// Identity.
    pub id: QuestionId,
    /// Its session.
    pub session: SessionId,
    /// That session's name.
    pub name: SessionName,
    /// Who asks.
    pub by: Actor,
    /// The question, as it was written: what shows it makes it harmless first.
    pub text: String,
    /// What can be answered; none: any text.
    pub options: Vec<String>,
    /// The hash of text and options, which an answer carries.
    pub hash: Hash,
    /// When it was asked.
    pub asked_ms: TimeMs,
    /// When the question closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<TimeMs>,
    /// Where it stands.
    pub state: QuestionState,
    /// The answer.
    pub answer: Option<QuestionAnswer>,
    /// Who took it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_by: Option<Actor>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswer {
    /// What was answered.
    pub text: String,
    /// Which option that is, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<u32>,
    /// Who answered.
    pub by: Actor,
    /// When.
    pub at_ms: TimeMs,
}

/// The answer that a text or the number of an option stands for, given what can be answered.
pub fn chosen(options: &[String], text: Option<&str>, option: Option<u32>) -> Result<(String, Option<u32>), Fault> {
    let bad = |message: String| Fault::new(Code::BadRequest, message);
    let listed = || format!("options: {}", options.join(", "));
    match (text, option) {
        (None, None) | (Some(_), Some(_)) => Err(bad("an answer is either a text or an option".into())),
        (None, Some(_)) if options.is_empty() => Err(bad("this question has no options; answer with text".into())),
        (None, Some(n)) => match options.get(n as usize) {
            Some(text) => Ok((text.clone(), Some(n))),
            None => Err(bad("the question has fewer options".into()).hint(listed())),
        },
        (Some(text), None) if text.trim().is_empty() || text.len() > TEXT_BYTES_MAX => {
            Err(bad(format!("an answer must have 1 to {TEXT_BYTES_MAX} bytes")))
        }
        (Some(text), None) if options.is_empty() => Ok((text.to_owned(), None)),
        (Some(text), None) => match options.iter().position(|one| one == text) {
            Some(n) => Ok((text.to_owned(), Some(n as u32))),
            None => Err(bad(format!("invalid answer {text:?}: it is not one of the options")).hint(listed())),
        },
    }
}

/// The answer that a person means by what was typed: an option's number, from 1, unless one is called so; else the text.
pub fn meant(options: &[String], typed: &str) -> Result<(String, Option<u32>), Fault> {
    let number = typed.parse::<u32>().ok().and_then(|n| n.checked_sub(1));
    match number.filter(|_| !options.is_empty() && !options.iter().any(|one| one == typed)) {
        Some(number) => chosen(options, None, Some(number)),
        None => chosen(options, Some(typed), None),
    }
}

/// What is signed and recorded of an answer: which question, the answer, and what it answers.
#[must_use]
pub fn detail(question: QuestionId, answer: &str, asked: &str) -> String {
    format!("{question}: {answer} (asked: {asked})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_questions_id_reads_back_and_is_nothing_elses() {
        let id = QuestionId::from_random_bits(77);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.to_string().starts_with("que_") && id.to_string().len() == 30);
        assert!("run_00000000000000000000000000".parse::<QuestionId>().is_err());
    }

    #[test]
    fn an_answer_is_one_of_the_options_or_where_there_are_none_any_text() {
        let options = ["yes".to_owned(), "no".to_owned()];
        assert_eq!(chosen(&options, Some("no"), None).unwrap(), ("no".into(), Some(1)));
        assert_eq!(chosen(&options, None, Some(0)).unwrap(), ("yes".into(), Some(0)));
        assert_eq!(chosen(&[], Some("later"), None).unwrap(), ("later".into(), None));
        let wrong: [(&[String], _, _); 6] = [
            (&options, Some("No"), None),
            (&options, None, Some(2)),
            (&options, None, None),
            (&options, Some("no"), Some(1)),
            (&[], None, Some(0)),
            (&[], Some("  "), None),
        ];
        for (options, text, option) in wrong {
            assert_eq!(chosen(options, text, option).unwrap_err().code, Code::BadRequest, "{text:?} {option:?}");
        }
        assert_eq!(meant(&options, "2").unwrap(), ("no".into(), Some(1)));
        assert_eq!(meant(&options, "yes").unwrap(), ("yes".into(), Some(0)));
        assert_eq!(meant(&["2".into(), "1".into()], "1").unwrap(), ("1".into(), Some(1)), "its name comes first");
        assert_eq!(meant(&[], "3").unwrap(), ("3".into(), None));
        assert!(meant(&options, "0").is_err() && meant(&options, "3").is_err());
        assert_eq!(chosen(&options, Some("x"), None).unwrap_err().hint, "options: yes, no");
    }
}
