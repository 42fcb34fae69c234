//! What users are told unasked: questions, acts that wait for a human, and what they wanted to be told.

use crate::card::bare;
use crate::chat::Button;
use crate::desk::Refused;
use crate::engine::Engine;
use crate::state::{Reply, User};
use crate::text::line;
use holdfast_types::{Exit, terms_of};
use holdfast_wire::attention::{Event, Kind, Now, What};
use holdfast_wire::gate::{ApprovalState, ApprovalView};
use holdfast_wire::questions::{QuestionState, QuestionView};

/// Characters of a button: a phone's width.
const BUTTON_CHARS: usize = 40;
/// Characters of a question or a command in a message; the page has all of it.
const TEXT_CHARS: usize = 1_000;
/// Digits of a hash that a button carries.
const HASH_DIGITS: usize = 16;

/// What a session is doing, in a few words.
pub fn doing(now: &Now) -> String {
    match now {
        Now::IdlePrompt => "at its prompt".into(),
        Now::Running => "working".into(),
        Now::Waiting { kind: Kind::Password, prompt } => format!("asks for a password: {}", line(prompt, 60)),
        Now::Waiting { prompt, .. } => format!("waits for input: {}", line(prompt, 60)),
        Now::FullScreen => "a full-screen program".into(),
        Now::BlockedElsewhere => "waits for something else".into(),
        Now::Stopped => "stopped".into(),
        Now::Frozen { by } => format!("frozen by {by}"),
        Now::Ended { exit } => ended(*exit),
        Now::Unknown { .. } => "unknown".into(),
    }
}

fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("ended with status {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
        Exit::Lost => "lost".into(),
    }
}

/// Whether a state is what somebody wanted to be told.
pub fn fits(ends: bool, now: &Now) -> bool {
    match now {
        Now::Ended { .. } => true,
        Now::IdlePrompt => ends,
        Now::Waiting { .. } => !ends,
        Now::Running
        | Now::FullScreen
        | Now::BlockedElsewhere
        | Now::Stopped
        | Now::Frozen { .. }
        | Now::Unknown { .. } => false,
    }
}

impl Engine {
    /// What is open now and the user was not told of.
    pub fn catch_up(&mut self, id: &str) {
        let Some(user) = self.user(id) else { return };
        match self.open(id, &user) {
            Ok(()) => self.save(),
            Err(Refused::Removed) => self.forget(id),
            // Nobody asked: it is said when there is somebody to say it.
            Err(_) => {}
        }
    }

    fn open(&mut self, id: &str, user: &User) -> Result<(), Refused> {
        for question in self.desk.questions(user)? {
            if !self.state.is_told(id, &question.id.to_string()) {
                self.show_question(id, user, &question);
            }
        }
        for approval in self.desk.approvals(user)? {
            if !self.state.is_told(id, &approval.id.to_string()) {
                self.show_approval(id, user, &approval);
            }
        }
        Ok(())
    }

    /// Something happened in a session.
    pub fn happened(&mut self, id: &str, event: &Event) {
        let Some(user) = self.user(id) else { return };
        if !user.envelope.covers(Some(event.session)) {
            return;
        }
        let before = (self.state.last, self.state.tells.len());
        match &event.what {
            What::State { now, .. } => self.tell_if(id, &user, event, now),
            What::Exit { exit } => self.tell_if(id, &user, event, &Now::Ended { exit: *exit }),
            What::Asked { question, .. } => {
                if !self.state.is_told(id, &question.to_string())
                    && let Ok(question) = self.question(&user, *question)
                    && question.state == QuestionState::Open
                {
                    self.show_question(id, &user, &question);
                }
            }
            What::Held { .. } => {
                for approval in self.desk.approvals(&user).unwrap_or_default() {
                    if !self.state.is_told(id, &approval.id.to_string()) {
                        self.show_approval(id, &user, &approval);
                    }
                }
            }
            What::Answered { question, by, text, .. } => {
                self.close(id, &question.to_string(), &format!("{by} answered: {}", line(text, 200)));
            }
            What::QuestionClosed { question, state, .. } => self.close(id, &question.to_string(), state.word()),
            What::HeldClosed { approval, state, by, .. } => {
                let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
                self.close(id, &approval.to_string(), &format!("{}{by}", state.word()));
            }
            _ => {}
        }
        if (self.state.last, self.state.tells.len()) != before {
            self.save();
        }
    }

    /// Tells a user what they wanted to be told, once.
    fn tell_if(&mut self, id: &str, user: &User, event: &Event, now: &Now) {
        let wanted =
            |tell: &crate::state::Tell| tell.user == id && tell.session == event.session && fits(tell.ends, now);
        if !self.state.tells.iter().any(wanted) {
            return;
        }
        self.state.tells.retain(|tell| !wanted(tell));
        if user.envelope.allows(terms_of("session.state"), Some(event.session), crate::desk::now_ms()).is_err() {
            return;
        }
        let buttons = match now {
            Now::Ended { .. } => Vec::new(),
            _ => vec![vec![Button("Screen".into(), format!("s:{}", bare(&event.session)))]],
        };
        let head = format!("{}: {}", event.name, doing(now));
        self.state.say(Some(id), &user.chat, Reply::Text { head, block: None }, buttons, None);
    }

    /// Shows a question to whoever may answer it.
    pub fn show_question(&mut self, id: &str, user: &User, question: &QuestionView) {
        if !user.envelope.can.rights().has(holdfast_types::Right::Type) || question.by.handle == user.handle {
            return;
        }
        let hash: String = question.hash.to_string().chars().take(HASH_DIGITS).collect();
        let option = |(n, text): (usize, &String)| {
            vec![Button(line(text, BUTTON_CHARS), format!("q:{}:{n}:{hash}", bare(&question.id)))]
        };
        let buttons: Vec<_> = question.options.iter().enumerate().map(option).collect();
        let how = if buttons.is_empty() { "\nAnswer in words, and no secrets: /answer TEXT" } else { "" };
        let head =
            format!("{} asks in {}: {}{how}", question.by.handle, question.name, line(&question.text, TEXT_CHARS));
        let tag = Some(question.id.to_string());
        self.state.say(Some(id), &user.chat, Reply::Text { head, block: None }, buttons, tag);
    }

    /// Shows an act that waits to whoever may decide about it. Nobody decides about their own.
    pub fn show_approval(&mut self, id: &str, user: &User, approval: &ApprovalView) {
        let may = user.envelope.can.rights().has(holdfast_types::Right::Approve);
        if !may || approval.by.handle == user.handle || approval.state != ApprovalState::Open {
            return;
        }
        let hash: String = approval.hash.to_string().chars().take(HASH_DIGITS).collect();
        let button = |text: &str, how: &str| Button(text.into(), format!("a:{}:{how}:{hash}", bare(&approval.id)));
        let name = approval.name.as_ref().map_or_else(|| "a new session".to_owned(), ToString::to_string);
        let risks =
            if approval.risks.is_empty() { String::new() } else { format!("\nrisks: {}", approval.risks.join(", ")) };
        let head = format!(
            "{} wants to {} in {name}.\n{}: {}{risks}",
            approval.by.handle,
            approval.act,
            approval.rule,
            line(&approval.why, 300)
        );
        // All of it, or it is no approval of what was read.
        let block = crate::text::harmless(&approval.command);
        let fits = block.chars().count() <= TEXT_CHARS;
        let (head, buttons) = if fits {
            (head, vec![vec![button("Approve", "y"), button("Deny", "n")]])
        } else {
            (
                format!("{head}\nThe command is too long to be approved here: holdfast approvals show"),
                vec![vec![button("Deny", "n")]],
            )
        };
        let block = if fits { block } else { line(&approval.command, TEXT_CHARS) };
        let tag = Some(approval.id.to_string());
        self.state.say(Some(id), &user.chat, Reply::Text { head, block: Some(block) }, buttons, tag);
    }

    /// A question or an act is over: its message says so, and has no buttons any more.
    fn close(&mut self, id: &str, tag: &str, how: &str) {
        let found = self.state.cards.iter().find(|card| card.tag == tag && card.user == id).cloned();
        if let Some(card) = found {
            self.state.change(&card, format!("{}\n→ {how}", card.text));
        }
    }
}
