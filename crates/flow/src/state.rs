//! What a flow is doing, in words.

use crate::command::Command;
use crate::flow::{Flow, Phase};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that a flow waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// The command's number.
    pub n: u32,
    /// The step's name.
    pub name: String,
    /// `run`, `sleep`, `until`, `ask`, `signal`, `wait` or `child`.
    pub kind: String,
    /// Since when.
    pub since_ms: u64,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Which attempt, from 1.
    #[serde(default, skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// What only a human can decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<String>,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// What can be answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The session it runs in, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The flow that the step started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Why it does not go on for the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_up: Option<String>,
}

/// What a flow is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Its decider is to look at it.
    Deciding,
    /// It waits.
    Waiting,
    /// Somebody has to mend something.
    Blocked {
        /// What.
        why: String,
    },
    /// It failed or was cancelled, and what was done is being undone.
    Undoing,
    /// It succeeded.
    Completed {
        /// What it gave.
        value: Value,
    },
    /// It failed.
    Failed {
        /// Why.
        value: Value,
    },
    /// Somebody cancelled it.
    Cancelled {
        /// Who, and why.
        value: Value,
    },
    /// An older history: the flow goes on in the next one.
    Continued,
}

impl State {
    /// As people read it.
    #[must_use]
    pub fn words(&self, waits: &[Waits]) -> String {
        let names: Vec<&str> = waits.iter().map(|one| one.name.as_str()).collect();
        match self {
            State::Deciding => "RUNNING".into(),
            State::Waiting if waits.iter().any(|one| one.stuck.is_some()) => format!("STUCK({})", names.join(", ")),
            State::Waiting => format!("WAITING_FOR({})", names.join(", ")),
            State::Blocked { .. } => "BLOCKED".into(),
            State::Undoing if waits.iter().any(|one| one.stuck.is_some()) => format!("STUCK({})", names.join(", ")),
            State::Undoing => format!("UNDOING({})", names.join(", ")),
            State::Completed { .. } => "COMPLETED".into(),
            State::Failed { .. } => "FAILED".into(),
            State::Cancelled { .. } => "CANCELLED".into(),
            State::Continued => "CONTINUED".into(),
        }
    }

    /// Nothing more will happen in this history.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, State::Completed { .. } | State::Failed { .. } | State::Cancelled { .. } | State::Continued)
    }
}

impl Flow {
    /// What it is doing.
    #[must_use]
    pub fn state(&self) -> State {
        match (&self.phase, &self.blocked) {
            (Phase::Continued, _) => State::Continued,
            (Phase::Ended { ok: true, value, .. }, _) => State::Completed { value: value.clone() },
            (Phase::Ended { cancelled: true, value, .. }, _) => State::Cancelled { value: value.clone() },
            (Phase::Ended { value, .. }, _) => State::Failed { value: value.clone() },
            (_, Some(why)) => State::Blocked { why: why.clone() },
            (Phase::Ending { .. }, None) => State::Undoing,
            (Phase::Going, None) if self.wants || self.open.is_empty() => State::Deciding,
            (Phase::Going, None) => State::Waiting,
        }
    }

    /// What it waits for.
    #[must_use]
    pub fn waits(&self) -> Vec<Waits> {
        let waits = self.open.iter().map(|(n, open)| {
            let (mut question, mut choices, mut until_ms, mut session) = (None, Vec::new(), None, None);
            match &open.command {
                Command::Sleep { ms, .. } => until_ms = Some(open.since_ms.saturating_add(*ms)),
                Command::Until { at_ms, .. } => until_ms = Some(*at_ms),
                Command::Ask { text, options, expires_ms, .. } => {
                    (question, choices) = (Some(text.clone()), options.clone());
                    until_ms = expires_ms.map(|ms| open.since_ms.saturating_add(ms));
                }
                Command::Signal { timeout_ms, .. } => {
                    until_ms = timeout_ms.map(|ms| open.since_ms.saturating_add(ms));
                }
                Command::Wait { session: at, timeout_ms, .. } => {
                    session = Some(at.clone());
                    until_ms = timeout_ms.map(|ms| open.since_ms.saturating_add(ms));
                }
                Command::Run(run) => session = run.session.clone(),
                Command::Child { .. }
                | Command::Step { .. }
                | Command::Undo { .. }
                | Command::Continue { .. }
                | Command::End { .. } => {}
            }
            Waits {
                n: *n,
                name: open.command.name().to_owned(),
                kind: open.command.word().to_owned(),
                since_ms: open.since_ms,
                until_ms,
                attempt: open.attempt + 1,
                stuck: open.stuck.as_ref().map(|outcome| outcome.words()),
                question,
                options: choices,
                session,
                flow: matches!(open.command, Command::Child { .. }).then(|| self.child_id(*n, open.generation)),
                held_up: None,
            }
        });
        waits.collect()
    }
}

fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}
