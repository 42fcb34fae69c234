//! What a decider can ask for.

use crate::{NAME_BYTES_MAX, VALUE_BYTES_MAX, is_flow_name};
use holdfast_types::TimeMs;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest text of a question: a page.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Options of one question: what still fits a screen.
const OPTIONS_MAX: usize = 16;
/// Attempts of one step: more is a loop, which is written as one.
const RETRIES_MAX: u32 = 1_000;

/// What happens to a step whose outcome nobody can know: its machine was rebooted, or its keeper was killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLost {
    /// A human decides.
    #[default]
    Ask,
    /// It runs again: for commands that may run twice.
    Again,
    /// It has failed.
    Fail,
}

/// What is waited for in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// Its command ends.
    #[default]
    Exit,
    /// Its shell waits for a command.
    Idle,
    /// A program in it waits for input.
    Waiting,
    /// Something in it takes connections at this port.
    Port(u16),
}

/// A command in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What the step is called.
    pub name: String,
    /// What the shell executes.
    pub command: String,
    /// The session whose shell runs it; none: a new one for this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How often it is tried again after a failure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// The pause before the first retry; it doubles with each.
    #[serde(default, skip_serializing_if = "is_zero_64")]
    pub backoff_ms: u64,
    /// It is interrupted after this long, which is a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The command that undoes it if the flow fails later; `{{ output }}` is this step's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// What happens if its outcome is lost.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_lost: OnLost,
    /// The step that this one undoes. Only the engine sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u32>,
}

/// One thing that a flow asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// Runs a command in a session.
    Run(Run),
    /// Waits for so much elapsed time.
    Sleep {
        /// What the step is called.
        name: String,
        /// How long.
        ms: u64,
    },
    /// Waits for a moment of the wall clock.
    Until {
        /// What the step is called.
        name: String,
        /// Which.
        at_ms: TimeMs,
    },
    /// Asks the humans.
    Ask {
        /// What the step is called.
        name: String,
        /// The question.
        text: String,
        /// What can be answered; none: any text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// How long it stays open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_ms: Option<u64>,
    },
    /// Waits for a signal; one that came early is there already.
    Signal {
        /// Its name.
        name: String,
        /// How long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// Waits for something in a session.
    Wait {
        /// What the step is called.
        name: String,
        /// The session's name or id.
        session: String,
        /// For what.
        until: WaitFor,
        /// How long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// Starts another flow and waits for its end.
    Child {
        /// What the step is called.
        name: String,
        /// What kind of flow it is.
        flow: String,
        /// What it is given.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        input: Value,
    },
    /// Records what the decider computed itself.
    Step {
        /// What the step is called.
        name: String,
        /// Whether it succeeded.
        ok: bool,
        /// What it gave.
        #[serde(default)]
        value: Value,
    },
    /// Registers a command that runs if the flow fails later.
    Undo {
        /// What it undoes.
        name: String,
        /// What the shell executes.
        command: String,
        /// The session whose shell runs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// Ends this history and goes on with a new one under the same id.
    Continue {
        /// What the code begins with there.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        input: Value,
    },
    /// Ends the flow; where it failed, what was done is undone first.
    End {
        /// Whether it succeeded.
        ok: bool,
        /// What it gave.
        #[serde(default)]
        value: Value,
    },
}

/// A command that is refused, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadCommand(String);

impl Command {
    /// What the step is called.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Command::Run(run) => &run.name,
            Command::Sleep { name, .. }
            | Command::Until { name, .. }
            | Command::Ask { name, .. }
            | Command::Signal { name, .. }
            | Command::Wait { name, .. }
            | Command::Child { name, .. }
            | Command::Step { name, .. }
            | Command::Undo { name, .. } => name,
            Command::Continue { .. } => "Continue",
            Command::End { .. } => "End",
        }
    }

    /// Its word, as in JSON.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Command::Run(_) => "run",
            Command::Sleep { .. } => "sleep",
            Command::Until { .. } => "until",
            Command::Ask { .. } => "ask",
            Command::Signal { .. } => "signal",
            Command::Wait { .. } => "wait",
            Command::Child { .. } => "child",
            Command::Step { .. } => "step",
            Command::Undo { .. } => "undo",
            Command::Continue { .. } => "continue",
            Command::End { .. } => "end",
        }
    }

    /// Whether a decider may ask for it: its texts have bounds, and it does not play the engine.
    pub fn check(&self) -> Result<(), BadCommand> {
        let bad = |why: String| Err(BadCommand(why));
        let name = self.name();
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            return bad(format!("a step's name has 1 to {NAME_BYTES_MAX} bytes and no control characters"));
        }
        match self {
            Command::Run(run) if run.undoes.is_some() => bad(format!("{name}: `undoes` is the engine's own field")),
            Command::Run(run) if run.command.trim().is_empty() => bad(format!("{name}: the command is empty")),
            Command::Run(run) if run.retries > RETRIES_MAX => bad(format!("{name}: at most {RETRIES_MAX} retries")),
            Command::Run(run) if run.command.len() + run.undo.as_ref().map_or(0, String::len) > VALUE_BYTES_MAX => {
                bad(format!("{name}: the command is longer than {VALUE_BYTES_MAX} bytes"))
            }
            Command::Ask { text, .. } if text.trim().is_empty() || text.len() > TEXT_BYTES_MAX => {
                bad(format!("{name}: a question has 1 to {TEXT_BYTES_MAX} bytes"))
            }
            Command::Ask { options, .. } if options.len() > OPTIONS_MAX => {
                bad(format!("{name}: at most {OPTIONS_MAX} options"))
            }
            Command::Ask { options, .. } if options.iter().any(|one| one.trim().is_empty() || one.len() > 200) => {
                bad(format!("{name}: an option has 1 to 200 bytes"))
            }
            Command::Wait { session, .. } if session.is_empty() || session.len() > NAME_BYTES_MAX => {
                bad(format!("{name}: a session's name or id has 1 to {NAME_BYTES_MAX} bytes"))
            }
            Command::Child { flow, .. } if !is_flow_name(flow) => {
                bad(format!("{name}: invalid flow name {flow:?}; use letters, digits, `-`, `_` and `.`, 48 at most"))
            }
            Command::Step { value, .. }
            | Command::End { value, .. }
            | Command::Child { input: value, .. }
            | Command::Continue { input: value }
                if value.to_string().len() > VALUE_BYTES_MAX =>
            {
                bad(format!(
                    "{name}: the value is longer than {VALUE_BYTES_MAX} bytes; keep it in a file and pass its path"
                ))
            }
            Command::Undo { command, .. } if command.trim().is_empty() || command.len() > VALUE_BYTES_MAX => {
                bad(format!("{name}: the command has 1 to {VALUE_BYTES_MAX} bytes"))
            }
            Command::Run(_)
            | Command::Sleep { .. }
            | Command::Until { .. }
            | Command::Ask { .. }
            | Command::Signal { .. }
            | Command::Wait { .. }
            | Command::Child { .. }
            | Command::Continue { .. }
            | Command::Step { .. }
            | Command::Undo { .. }
            | Command::End { .. } => Ok(()),
        }
    }

    /// What code asks for now against what the history has; none: the same. What a step gave is not compared: the recorded one holds.
    #[must_use]
    pub fn differs(&self, wanted: &Command) -> Option<String> {
        let bare = |command: &Command| match command {
            Command::Step { name, .. } => Command::Step { name: name.clone(), ok: true, value: Value::Null },
            other => other.clone(),
        };
        let (was, is) = (bare(self), bare(wanted));
        if was == is {
            return None;
        }
        let text = |command: &Command| serde_json::to_string(command).unwrap_or_default();
        Some(format!("the history has {}, the code asks for {}", text(&was), text(&is)))
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_zero_64(number: &u64) -> bool {
    *number == 0
}

fn is_default(on_lost: &OnLost) -> bool {
    *on_lost == OnLost::default()
}
