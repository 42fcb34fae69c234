//! Questions to the humans of a session: asked, answered, taken back.
//!
//! An answer steers what happens in the session: it is an act, in the journal with its question. Who only asks changes nothing
//! there, and must not fill the journal: that is in the file of questions alone.

use super::Session;
use crate::questions::{Question, kept};
use holdfast_authority::{Ask, Audience, Policy};
use holdfast_types::{Actor, Notice, TimeMs, terms_of};
use holdfast_wire::attention::{PROMPT_CHARS_MAX, What};
use holdfast_wire::params::Life;
use holdfast_wire::questions::{
    OPEN, QuestionAnswer, QuestionAnswerParams, QuestionId, QuestionState, QuestionView, QuestionWithdrawParams,
    chosen, detail,
};
use holdfast_wire::{Code, Fault};
use std::time::Duration;
use tokio::time::Instant;

impl Session {
    /// A question as it is now.
    pub(crate) fn question(&self, id: QuestionId) -> Option<Question> {
        self.lapse_questions();
        self.state.borrow().questions.get(id).cloned()
    }

    /// The one that an actor asked by a key of its own.
    pub(crate) fn question_by(&self, actor: &Actor, key: &str) -> Option<Question> {
        self.lapse_questions();
        let state = self.state.borrow();
        state.questions.iter().find(|one| one.by == *actor && one.key.as_deref() == Some(key)).cloned()
    }

    /// All that are remembered.
    pub(crate) fn question_views(&self) -> Vec<QuestionView> {
        self.lapse_questions();
        let state = self.state.borrow();
        state.questions.iter().map(|question| question.view(self.id, state.spec.name.clone())).collect()
    }

    /// Asks the humans.
    pub(crate) fn ask_humans(&self, question: Question, policy: &Policy) -> Result<(), Fault> {
        self.lapse_questions();
        let askers: Vec<_> = {
            let state = self.state.borrow();
            state.questions.askers().map(|asker| (asker.id, policy.is_human(asker))).collect()
        };
        OPEN.admit(&question.by.id, policy.is_human(&question.by), askers).map_err(|full| {
            let what = full.of("open questions");
            let max = full.max();
            Fault::new(Code::TooMany, format!("too many {what}, at most {max}"))
                .hint("withdraw one of yours first, or wait until one is answered: holdfast questions")
        })?;
        self.keep_question(question.clone())?;
        let Question { id, by, options, .. } = question;
        let (by, text) = (by.handle, beginning(&question.text));
        let notice =
            Notice::Asked { question: id.to_string(), by: by.clone(), text: text.clone(), options: options.clone() };
        self.tell(Audience::All, &notice);
        self.tell_watchers(What::Asked { question: id, by, text, options });
        self.lapse_in_time(id, question.expires_at_ms);
        Ok(())
    }

    /// Questions of an earlier host lapse in time too.
    pub(super) fn take_up_questions(&self) {
        let open: Vec<_> = {
            let mut state = self.state.borrow_mut();
            state.core.asks_humans = state.questions.open() > 0;
            state.questions.iter().filter(|one| one.is_open()).map(|one| (one.id, one.expires_at_ms)).collect()
        };
        open.into_iter().for_each(|(id, at)| self.lapse_in_time(id, at));
    }

    fn lapse_in_time(&self, id: QuestionId, at_ms: Option<TimeMs>) {
        let Some((at_ms, this)) = at_ms.zip(self.this.upgrade()) else { return };
        let left = at_ms.saturating_sub(crate::now_ms()).saturating_add(1);
        tokio::task::spawn_local(async move {
            this.question_over(id, left).await;
            this.lapse_questions();
        });
    }

    /// A human answers.
    pub(crate) fn answer_question(&self, params: &QuestionAnswerParams, actor: &Actor) -> Result<(), Fault> {
        let question = self.open_question(params.question)?;
        if params.seen != question.hash() {
            return Err(Fault::new(Code::BadRequest, "this is not the question that was read")
                .hint("look at it again, and answer with its hash: see `holdfast questions`"));
        }
        let (text, option) = chosen(&question.options, params.text.as_deref(), params.option)?;
        let ask = Ask::other(const { terms_of("question.answer") }, detail(question.id, &text, &question.text));
        let decided = self.ask(actor, None, ask, params.proof)?;
        let mut deed = self.begun(&decided);
        let answer = QuestionAnswer { text, option, by: actor.clone(), at_ms: crate::now_ms() };
        let told = beginning(&answer.text);
        let kept = self.keep_question(Question { state: QuestionState::Answered, answer: Some(answer), ..question });
        deed.over(&kept);
        kept?;
        self.tell_watchers(What::Answered { question: params.question, by: actor.handle.clone(), text: told, option });
        Ok(())
    }

    /// Its asker or a human takes it back.
    pub(crate) fn withdraw_question(&self, params: &QuestionWithdrawParams, actor: &Actor) -> Result<(), Fault> {
        let question = self.open_question(params.question)?;
        let withdrawn_by = Some(actor.clone());
        self.keep_question(Question { state: QuestionState::Withdrawn, withdrawn_by, ..question })?;
        let (state, by) = (QuestionState::Withdrawn, Some(actor.handle.clone()));
        self.tell_watchers(What::QuestionClosed { question: params.question, state, by });
        Ok(())
    }

    /// Waits until a question is no longer open.
    pub(crate) async fn question_over(&self, id: QuestionId, wait_ms: u64) {
        let deadline = Instant::now() + Duration::from_millis(wait_ms);
        loop {
            let Some(question) = self.question(id).filter(Question::is_open) else { return };
            let mut left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            if let Some(at) = question.expires_at_ms {
                // Behind the moment, not at it.
                left = left.min(Duration::from_millis(at.saturating_sub(crate::now_ms()).saturating_add(1)));
            }
            let is_open = || self.state.borrow().questions.get(id).is_some_and(Question::is_open);
            self.until(Some(left), || (!is_open()).then_some(())).await;
        }
    }

    /// Those whose time, or whose session, is over. What cannot be written follows from the time again.
    pub(super) fn lapse_questions(&self) {
        let lapsed = {
            let state = self.state.borrow();
            state.questions.lapsed(crate::now_ms(), state.life == Life::Ended)
        };
        for question in lapsed {
            let _ = kept::append(&self.dir, std::slice::from_ref(&question));
            let what = What::QuestionClosed { question: question.id, state: QuestionState::Expired, by: None };
            self.put_question(question);
            self.tell_watchers(what);
            self.changed.notify_waiters();
        }
    }

    fn open_question(&self, id: QuestionId) -> Result<Question, Fault> {
        let Some(question) = self.question(id) else {
            return Err(Fault::new(Code::NoSuchQuestion, format!("no question {id}")));
        };
        let (message, by) = match (question.state, &question.answer, &question.withdrawn_by) {
            (QuestionState::Open, _, _) => return Ok(question),
            (QuestionState::Answered, Some(answer), _) => {
                (format!("{} already answered it", answer.by), Some(&answer.by))
            }
            (QuestionState::Withdrawn, _, Some(by)) => (format!("{by} withdrew it"), Some(by)),
            (QuestionState::Answered | QuestionState::Withdrawn | QuestionState::Expired, _, _) => {
                ("it has expired".to_owned(), None)
            }
        };
        let mut fault = Fault::new(Code::QuestionClosed, message).hint("see `holdfast questions --all`");
        let at_ms = question.answer.as_ref().map(|answer| answer.at_ms);
        fault.details = Some(Box::new(serde_json::json!({ "state": question.state, "by": by, "at_ms": at_ms })));
        Err(fault)
    }

    /// Known, also to the core: while one is open, a program's turn is lent to a human.
    fn put_question(&self, question: Question) {
        let mut state = self.state.borrow_mut();
        state.questions.put(question);
        state.core.asks_humans = state.questions.open() > 0;
        drop(state);
        self.used();
    }

    /// On disk, then known.
    fn keep_question(&self, question: Question) -> Result<(), Fault> {
        kept::append(&self.dir, std::slice::from_ref(&question)).map_err(|error| {
            Fault::new(Code::Unrecorded, format!("cannot write the questions of {}: {error}", self.name()))
                .hint("is the disk full? check with: holdfast doctor")
        })?;
        self.put_question(question);
        let mut state = self.state.borrow_mut();
        if let Err(error) = kept::tidy(&self.dir, &mut state.questions) {
            tracing::error!(session = %self.id, "its questions cannot be written anew: {error}");
        }
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }
}

/// As much of a text as an event or a notice has.
pub(crate) fn beginning(text: &str) -> String {
    match text.char_indices().nth(PROMPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
