//! A session's questions: what was asked, and what became of it. What clients ask about them is in [`answer`], the file in
//! [`kept`].
//!
//! A change is written before it is known here, and so before anybody is told of it.

mod answer;
pub(crate) mod kept;

use holdfast_authority::proof;
use holdfast_types::{Actor, Hash, SessionId, SessionName, TimeMs};
use holdfast_wire::questions::{QuestionAnswer, QuestionId, QuestionState, QuestionView};
use serde::{Deserialize, Serialize};

/// Questions that are over and still remembered: an asker that was away for long finds its answer.
const CLOSED_MAX: usize = 64;

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Question {
    pub id: QuestionId,
    pub by: Actor,
    pub text: String,
    #[serde(default)]
    pub options: Vec<String>,
    /// Its asker's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub asked_ms: TimeMs,
    #[serde(default)]
    pub expires_at_ms: Option<TimeMs>,
    pub state: QuestionState,
    #[serde(default)]
    pub answer: Option<QuestionAnswer>,
    #[serde(default)]
    pub withdrawn_by: Option<Actor>,
}

impl Question {
    pub fn is_open(&self) -> bool {
        self.state == QuestionState::Open
    }

    /// As clients see it.
    pub fn view(&self, session: SessionId, name: SessionName) -> QuestionView {
        let hash = self.hash();
        let Question { id, by, text, options, asked_ms, expires_at_ms, state, answer, withdrawn_by, .. } = self.clone();
        QuestionView {
            id,
            session,
            name,
            by,
            text,
            options,
            hash,
            asked_ms,
            expires_at_ms,
            state,
            answer,
            withdrawn_by,
        }
    }

    /// What an answer to it carries.
    pub fn hash(&self) -> Hash {
        proof::question_hash(&self.text, &self.options)
    }
}

/// The questions of a session, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    all: Vec<Question>,
    /// Length of the file from which it is looked at whether most of it is the past.
    look_at: u64,
}

impl Questions {
    /// Those an earlier host left.
    pub fn resume(all: Vec<Question>) -> Questions {
        let mut questions = Questions::default();
        all.into_iter().for_each(|question| questions.put(question));
        questions
    }

    pub fn get(&self, id: QuestionId) -> Option<&Question> {
        self.all.iter().find(|question| question.id == id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Question> {
        self.all.iter()
    }

    pub fn open(&self) -> usize {
        self.all.iter().filter(|question| question.is_open()).count()
    }

    /// Who asked those that are open.
    pub fn askers(&self) -> impl Iterator<Item = &Actor> {
        self.all.iter().filter(|question| question.is_open()).map(|question| &question.by)
    }

    /// A new question, or what became of one. Of those that are over the oldest is forgotten when there are too many.
    pub fn put(&mut self, question: Question) {
        match self.all.iter_mut().find(|known| known.id == question.id) {
            Some(known) => *known = question,
            None => self.all.push(question),
        }
        if self.all.len() - self.open() > CLOSED_MAX
            && let Some(oldest) = self.all.iter().position(|question| !question.is_open())
        {
            self.all.remove(oldest);
        }
    }

    /// The open ones whose time is over, as they are now; all of them where the session is.
    pub fn lapsed(&self, now_ms: TimeMs, session_ended: bool) -> Vec<Question> {
        let is_over = |question: &&Question| {
            question.is_open() && (session_ended || question.expires_at_ms.is_some_and(|at| at <= now_ms))
        };
        let expired = |question: &Question| Question { state: QuestionState::Expired, ..question.clone() };
        self.all.iter().filter(is_over).map(expired).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use holdfast_types::ActorId;

    pub(crate) fn question(number: u128) -> Question {
        Question {
            id: QuestionId::from_random_bits(number),
            by: Actor { id: ActorId([1; 32]), handle: "agent:bot".parse().unwrap() },
            text: format!("question {number}"),
            options: vec!["yes".into(), "no".into()],
            key: None,
            asked_ms: 5,
            expires_at_ms: None,
            state: QuestionState::Open,
            answer: None,
            withdrawn_by: None,
        }
    }

    #[test]
    fn open_ones_are_never_forgotten_and_of_the_others_the_oldest_first() {
        let mut questions = Questions::default();
        questions.put(question(1));
        for number in 2..200 {
            questions.put(Question { state: QuestionState::Withdrawn, ..question(number) });
        }
        assert_eq!(questions.iter().count(), CLOSED_MAX + 1);
        assert!(questions.get(question(1).id).is_some_and(Question::is_open));
        assert!(questions.get(question(199).id).is_some());
        assert!(questions.get(question(2).id).is_none());
    }

    #[test]
    fn an_answer_makes_room() {
        let mut questions = Questions::default();
        (0..5).for_each(|number| questions.put(question(number)));
        assert_eq!(questions.askers().count(), 5);
        questions.put(Question { state: QuestionState::Answered, ..question(3) });
        assert_eq!(questions.askers().count(), 4);
    }

    #[test]
    fn a_question_lapses_at_its_time_or_with_its_session() {
        let mut questions = Questions::default();
        questions.put(question(1));
        questions.put(Question { expires_at_ms: Some(100), ..question(2) });
        assert!(questions.lapsed(99, false).is_empty());
        let lapsed = questions.lapsed(100, false);
        assert_eq!(
            lapsed.iter().map(|one| (one.id, one.state)).collect::<Vec<_>>(),
            [(question(2).id, QuestionState::Expired)]
        );
        assert_eq!(questions.lapsed(0, true).len(), 2);
        questions.put(Question { state: QuestionState::Answered, ..question(1) });
        assert_eq!(questions.lapsed(0, true).len(), 1, "what was answered stays so");
    }
}
