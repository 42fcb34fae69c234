//! What a button does: keys, screens, runs, answers and decisions. A button carries ids and what was read, never a right.

use crate::act::Done;
use crate::chat::Inbound;
use crate::desk::Refused;
use crate::engine::Engine;
use crate::state::{Reply, User};
use crate::text::line;
use holdfast_authority::Ask;
use holdfast_types::{SessionId, terms_of};
use holdfast_wire::Code;
use holdfast_wire::gate::{ApprovalAnswerParams, ApprovalId, ApprovalParams, ApprovalState};
use holdfast_wire::operations::op;
use holdfast_wire::questions::{
    QuestionAnswerParams, QuestionId, QuestionParams, QuestionState, QuestionView, chosen, detail,
};
use holdfast_wire::runs::{RunCancelParams, RunId, RunRef};

impl Engine {
    pub fn press(&mut self, user: &User, inbound: &Inbound, data: &str, message: &str) -> Done {
        let mut parts = data.split(':');
        let (kind, id) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (third, fourth) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let odd = || Refused::Said("that button is of another version".into());
        let session = || format!("ses_{id}").parse::<SessionId>().map_err(|_| odd());
        match kind {
            "k" => {
                let session = session()?;
                self.keys(user, inbound, session, third)?;
                self.refresh(inbound, session, message);
            }
            "s" => {
                let session = session()?;
                self.desk.session(user, Some(&session.to_string()))?;
                self.set(&inbound.user, |user| user.current = Some(session));
                self.tell_user(inbound, Reply::Screen(session), Vec::new());
            }
            "p" => {
                let session = session()?;
                self.desk.session(user, Some(&session.to_string()))?;
                self.tell_user(inbound, Reply::Picture(session), Vec::new());
            }
            "x" => {
                let run: RunId = format!("run_{id}").parse().map_err(|_| odd())?;
                let session: SessionId = format!("ses_{third}").parse().map_err(|_| odd())?;
                self.run_card(user, run, session, 0)?;
                let ask = Ask::other(terms_of("run.cancel"), run.to_string());
                let params = |proof| RunCancelParams { run: RunRef::Id(run), wait_ms: 0, proof: Some(proof) };
                self.desk.act::<op::RunCancel>(user, session, &ask, params)?;
            }
            "o" => {
                let run: RunId = format!("run_{id}").parse().map_err(|_| odd())?;
                let session: SessionId = format!("ses_{third}").parse().map_err(|_| odd())?;
                self.run_card(user, run, session, 0)?;
                self.tell_user(inbound, Reply::Output(run, session), Vec::new());
            }
            "q" => {
                let question: QuestionId = format!("que_{id}").parse().map_err(|_| odd())?;
                let view = self.question(user, question)?;
                let option: u32 = third.parse().map_err(|_| odd())?;
                if !view.hash.to_string().starts_with(fourth) || fourth.len() < 16 {
                    return Err(odd());
                }
                let (text, _) = chosen(&view.options, None, Some(option)).map_err(Refused::Fault)?;
                self.answer(user, inbound, &view, &text)?;
            }
            "a" => self.decide(user, inbound, id, third, fourth)?,
            _ => return Err(odd()),
        }
        Ok(())
    }

    /// Shows the screen again in the message whose key was pressed. A picture has text beside it only, so a new message follows it.
    fn refresh(&mut self, inbound: &Inbound, session: SessionId, message: &str) {
        self.tell_user(inbound, Reply::Screen(session), Vec::new());
        if let Some(item) = self.state.outbox.back_mut() {
            item.edit = Some(message.to_owned());
        }
    }

    /// A question of the user's envelope.
    pub fn question(&mut self, user: &User, question: QuestionId) -> Result<QuestionView, Refused> {
        let params = QuestionParams { question, wait_ms: 0 };
        let (view, _) = self.desk.ask::<op::QuestionGet>(user, None, &params, &[])?;
        self.desk.allows(user, Some(view.session), terms_of("question.get"))?;
        Ok(view)
    }

    fn answer(&mut self, user: &User, inbound: &Inbound, question: &QuestionView, text: &str) -> Done {
        // A process in a session that wants to act in this user's name: it would have all of a human's rights, and not this envelope.
        if question.by.handle == user.handle {
            return Err(Refused::Said("nobody confirms here to be at a process in a session; use a terminal".into()));
        }
        let ask = Ask::other(terms_of("question.answer"), detail(question.id, text, &question.text));
        let params = |proof| QuestionAnswerParams {
            question: question.id,
            seen: question.hash,
            text: Some(text.to_owned()),
            option: None,
            proof: Some(proof),
        };
        let answered = self.desk.act::<op::QuestionAnswer>(user, question.session, &ask, params);
        match answered {
            Ok(_) => {}
            Err(Refused::Fault(fault)) if fault.code == Code::QuestionClosed => {
                let now = self.question(user, question.id)?;
                // It may have been this very answer, before the bot was interrupted.
                let mine =
                    now.answer.as_ref().is_some_and(|answer| answer.by.handle == user.handle && answer.text == text);
                if now.state != QuestionState::Answered || !mine {
                    return Err(Refused::Fault(fault));
                }
            }
            Err(refused) => return Err(refused),
        }
        self.reply(inbound, format!("Answered {} in {}: {}", question.by.handle, question.name, line(text, 200)));
        Ok(())
    }

    fn decide(&mut self, user: &User, inbound: &Inbound, id: &str, how: &str, seen: &str) -> Done {
        let odd = || Refused::Said("that button is of another version".into());
        let approval: ApprovalId = format!("apr_{id}").parse().map_err(|_| odd())?;
        let params = ApprovalParams { approval, wait_ms: 0 };
        let (view, _) = self.desk.ask::<op::ApprovalGet>(user, None, &params, &[])?;
        if !user.envelope.covers(view.session) {
            return Err(crate::envelope::Outside::Elsewhere.into());
        }
        self.desk.allows(user, view.session, terms_of("approval.answer"))?;
        if !view.hash.to_string().starts_with(seen) || seen.len() < 16 {
            return Err(Refused::Said("what it is about has changed; look again: /approvals".into()));
        }
        let approve = match how {
            "y" => true,
            "n" => false,
            _ => return Err(odd()),
        };
        let answer =
            |proof| ApprovalAnswerParams { approval, seen: view.hash, approve, reason: None, minutes: None, proof };
        let decided = match view.session {
            Some(session) => {
                let said = holdfast_wire::gate::detail(approval, approve, None, view.hash, &view.command);
                let ask = Ask::other(terms_of("approval.answer"), said);
                self.desk.act::<op::ApprovalAnswer>(user, session, &ask, |proof| answer(Some(proof)))
            }
            None => self.desk.ask::<op::ApprovalAnswer>(user, None, &answer(None), &[]).map(|(view, _)| view),
        };
        match decided {
            Ok(_) => {}
            Err(Refused::Fault(fault)) if fault.code == Code::ApprovalClosed => {
                let (now, _) = self.desk.ask::<op::ApprovalGet>(user, None, &params, &[])?;
                let mine = now.answered_by.as_ref().is_some_and(|by| by.handle == user.handle);
                if !mine || approve == matches!(now.state, ApprovalState::Denied | ApprovalState::Expired) {
                    return Err(Refused::Fault(fault));
                }
            }
            Err(refused) => return Err(refused),
        }
        let word = if approve { "Approved" } else { "Denied" };
        self.reply(inbound, format!("{word} for {}: {}", view.by.handle, line(&view.command, 200)));
        Ok(())
    }

    /// Answers the one question that waits for words.
    pub fn answer_in_words(&mut self, user: &User, inbound: &Inbound, text: &str) -> Done {
        let mut open = self.desk.questions(user)?;
        open.retain(|question| question.options.is_empty() && question.by.handle != user.handle);
        match (open.pop(), open.is_empty()) {
            (Some(question), true) => self.answer(user, inbound, &question, text),
            (None, _) => Err(Refused::Said("no question waits for an answer in words".into())),
            (Some(_), false) => {
                Err(Refused::Said("several questions wait; answer them at a terminal or on the page".into()))
            }
        }
    }
}
