//! What clients ask about questions: which session is meant, whether they may, and the answer.

use super::Question;
use crate::connection::while_asked;
use crate::serve::Server;
use crate::session::{Session, fault};
use holdfast_authority::{Refusal, Rule};
use holdfast_types::{Actor, Right};
use holdfast_wire::questions::{
    KEY_BYTES_MAX, OPTION_BYTES_MAX, OPTIONS_MAX, QuestionAnswerParams, QuestionAskParams, QuestionId,
    QuestionListParams, QuestionParams, QuestionState, QuestionView, QuestionWithdrawParams, TEXT_BYTES_MAX,
};
use holdfast_wire::{Code, Fault};
use std::rc::Rc;

impl Server {
    /// Asks the humans something, or finds the question that was asked when its answer was lost.
    pub(crate) async fn question_ask(&self, params: &QuestionAskParams, actor: &Actor) -> Result<QuestionView, Fault> {
        check(params)?;
        let session = self.registry.find_for(&params.session, actor, Right::Observe)?;
        let mut asked = was_asked(&session, params, actor)?;
        if asked.is_none() {
            // One that ended takes no questions.
            session.running().await?;
            // The same may have been asked on another connection meanwhile.
            asked = was_asked(&session, params, actor)?;
        }
        let id = match asked {
            Some(id) => id,
            None => {
                // Ours, of 128 random bits: no other question ever has it.
                let id = QuestionId::from_random_bits(u128::from_le_bytes(crate::random_token()));
                let asked_ms = crate::now_ms();
                let question = Question {
                    id,
                    by: actor.clone(),
                    text: params.text.clone(),
                    options: params.options.clone(),
                    key: params.key.clone(),
                    asked_ms,
                    expires_at_ms: params.expires_ms.map(|ms| asked_ms.saturating_add(ms)),
                    state: QuestionState::Open,
                    answer: None,
                    withdrawn_by: None,
                };
                session.ask_humans(question, &self.registry.shared.policy())?;
                id
            }
        };
        question_view(&session, id, params.wait_ms).await
    }

    /// A question.
    pub(crate) async fn question_get(&self, params: &QuestionParams, actor: &Actor) -> Result<QuestionView, Fault> {
        let session = self.find_question(params.question, actor, Some(Right::Observe))?;
        let view = question_view(&session, params.question, params.wait_ms).await?;
        self.find_question(params.question, actor, Some(Right::Observe))?;
        Ok(view)
    }

    /// The questions of one session, or of all one may observe.
    pub(crate) fn question_list(&self, params: &QuestionListParams, actor: &Actor) -> Result<Vec<QuestionView>, Fault> {
        let sessions = match &params.session {
            Some(session) => vec![self.registry.find_for(session, actor, Right::Observe)?],
            None => self.registry.all().into_iter().filter(|s| s.rights(actor).has(Right::Observe)).collect(),
        };
        let mut views: Vec<QuestionView> = sessions.iter().flat_map(|session| session.question_views()).collect();
        views.retain(|view| params.all || view.state == QuestionState::Open);
        views.sort_by_key(|view| view.asked_ms);
        Ok(views)
    }

    /// Answers a question.
    pub(crate) async fn question_answer(
        &self,
        params: &QuestionAnswerParams,
        actor: &Actor,
    ) -> Result<QuestionView, Fault> {
        let session = self.find_question(params.question, actor, None)?;
        if !self.registry.shared.policy().is_human(actor) {
            return Err(self.denied(Right::Type, Rule::HumansAnswer));
        }
        session.answer_question(params, actor)?;
        question_view(&session, params.question, 0).await
    }

    /// Takes a question back.
    pub(crate) async fn question_withdraw(
        &self,
        params: &QuestionWithdrawParams,
        actor: &Actor,
    ) -> Result<QuestionView, Fault> {
        let session = self.find_question(params.question, actor, Some(Right::Observe))?;
        let is_its = session.question(params.question).is_some_and(|question| question.by == *actor);
        if !is_its && !self.registry.shared.policy().is_human(actor) {
            return Err(self.denied(Right::Observe, Rule::Asker));
        }
        session.withdraw_question(params, actor)?;
        question_view(&session, params.question, 0).await
    }

    fn denied(&self, right: Right, rule: Rule) -> Fault {
        self.registry.shared.metrics.refused("denied");
        fault(&Refusal::Denied { right, rule })
    }

    /// A question's session. Without a right: whether it may is the session's authority's to say.
    fn find_question(&self, id: QuestionId, actor: &Actor, right: Option<Right>) -> Result<Rc<Session>, Fault> {
        let found = self.registry.all().into_iter().find(|session| session.question(id).is_some());
        let session = found.ok_or_else(|| no_such(id))?;
        let name = session.id.to_string();
        let known = match right {
            Some(right) => self.registry.find_for(&name, actor, right),
            None => self.registry.find_acting(&name, actor),
        };
        // Who may not know the session does not learn that there is such a question.
        known.map_err(|fault| if fault.code == Code::NotFound { no_such(id) } else { fault })
    }
}

/// The question that this actor asked in the session by this key already. Keys are each actor's own. Without a key the same text is
/// the same question while it is open: a program that lost its memory does not ask again and again.
fn was_asked(session: &Session, params: &QuestionAskParams, actor: &Actor) -> Result<Option<QuestionId>, Fault> {
    let Some(key) = &params.key else {
        let is_it = |view: &QuestionView| {
            let is_same = view.text == params.text && view.options == params.options;
            view.state == QuestionState::Open && view.by == *actor && is_same
        };
        return Ok(session.question_views().into_iter().find(is_it).map(|view| view.id));
    };
    let Some(question) = session.question_by(actor, key) else { return Ok(None) };
    if question.text == params.text && question.options == params.options {
        return Ok(Some(question.id));
    }
    Err(Fault::new(Code::BadRequest, "you asked another question with this key").hint("use another random key"))
}

async fn question_view(session: &Session, id: QuestionId, wait_ms: u64) -> Result<QuestionView, Fault> {
    while_asked(session.question_over(id, wait_ms)).await;
    let view = session.question_views().into_iter().find(|view| view.id == id);
    view.ok_or_else(|| no_such(id))
}

fn no_such(id: QuestionId) -> Fault {
    Fault::new(Code::NoSuchQuestion, format!("no question {id}")).hint("see `holdfast questions --all`")
}

/// Whether a question is one, within the bounds.
fn check(params: &QuestionAskParams) -> Result<(), Fault> {
    let bad = |message: String| Err(Fault::new(Code::BadRequest, message));
    let QuestionAskParams { text, options, .. } = params;
    if text.trim().is_empty() || text.len() > TEXT_BYTES_MAX {
        return bad(format!("a question must have 1 to {TEXT_BYTES_MAX} bytes"));
    }
    if params.key.as_ref().is_some_and(|key| key.is_empty() || key.len() > KEY_BYTES_MAX) {
        return bad(format!("a key must have 1 to {KEY_BYTES_MAX} bytes"));
    }
    if options.len() > OPTIONS_MAX {
        return bad(format!("a question may have at most {OPTIONS_MAX} options"));
    }
    if options.iter().any(|option| option.trim().is_empty() || option.len() > OPTION_BYTES_MAX) {
        return bad(format!("an option must have 1 to {OPTION_BYTES_MAX} bytes"));
    }
    if options.iter().enumerate().any(|(n, option)| options[..n].contains(option)) {
        return bad("two options are the same".into());
    }
    Ok(())
}
