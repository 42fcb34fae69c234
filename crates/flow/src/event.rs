//! What is recorded of a flow. Fields are added, never renamed: histories outlive versions.

use crate::Command;
use holdfast_types::TimeMs;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event, and when it was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// When.
    pub at_ms: TimeMs,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// The step that a flow was started by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Of which flow.
    pub flow: String,
    /// Its number there.
    pub n: u32,
    /// That flow's own: one that got the same id later is another.
    pub nonce: String,
}

/// Where a history comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// The step that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Histories under this id before: it continues them.
    #[serde(default, skip_serializing_if = "is_none_before")]
    pub before: u32,
    /// Ids of signals that came before: each still counts once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
}

fn is_none_before(before: &u32) -> bool {
    *before == 0
}

/// How the service starts workers with a file that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosted {
    /// The interpreter.
    pub program: String,
    /// Where the file lay: beside it is what it imports.
    pub file: String,
    /// The flows that are in it.
    pub names: Vec<String>,
}

/// Something that happened in a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// It began.
    Started {
        /// What kind of flow it is.
        name: String,
        /// What it was given.
        input: Value,
        /// The digest of its code: it goes on with the code it began with.
        code: String,
        /// Who started it: it acts by what this actor may do.
        by: String,
        /// Random: an id that is used again later is another flow, with other keys.
        nonce: String,
        /// Where its new sessions start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// It does not wait for `sleep` and `until`: somebody tries it out.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        skip_timers: bool,
        /// Where it comes from.
        #[serde(flatten)]
        lineage: Lineage,
    },
    /// A command was asked for.
    Asked {
        /// Its number.
        n: u32,
        /// What.
        command: Command,
    },
    /// An attempt is over, and another one follows.
    Tried {
        /// Which command.
        n: u32,
        /// Which attempt, from 0.
        attempt: u32,
        /// What came of it.
        outcome: Outcome,
        /// The pause before the next one.
        #[serde(default)]
        pause_ms: u64,
    },
    /// A human has to decide: the outcome is lost, or an undo failed.
    Stuck {
        /// Which command.
        n: u32,
        /// Which attempt.
        attempt: u32,
        /// What is known.
        outcome: Outcome,
    },
    /// A command is over.
    Done {
        /// Which.
        n: u32,
        /// Whether it succeeded.
        ok: bool,
        /// What came of it.
        value: Value,
    },
    /// A signal came.
    Signal {
        /// Its name.
        name: String,
        /// What it says.
        value: Value,
        /// The same id again is the same signal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        id: String,
        /// From whom.
        by: String,
    },
    /// It cannot go on until somebody mends something.
    Blocked {
        /// Why.
        why: String,
    },
    /// Somebody says that it was mended: code that a worker has decides anew, the newest from here on.
    Unblocked {
        /// Who.
        by: String,
    },
    /// A worker decides with this code, from the beginning or since it was mended. The flow goes on with it when newer code comes.
    Coded {
        /// The digest of the worker's file.
        code: String,
        /// The service starts workers with it by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hosted: Option<Hosted>,
    },
    /// Its history was taken back to a step: what follows is decided anew.
    Rewound {
        /// The number of that step.
        to: u32,
        /// By whom.
        by: String,
        /// Which history under this id this is, from 1.
        generation: u32,
    },
    /// This history is over, and the flow goes on with a new one under the same id.
    Continued {
        /// What the code begins with there.
        input: Value,
    },
    /// It is about to end: what runs is stopped, and if it failed, what was done is undone.
    Ending {
        /// Whether it succeeded.
        ok: bool,
        /// What it will have given.
        value: Value,
        /// Who cancelled it, if somebody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cancelled_by: Option<String>,
    },
    /// It has ended.
    Ended {
        /// Whether it succeeded.
        ok: bool,
        /// What it gave.
        value: Value,
    },
}

/// Where a run ended up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It ended.
    #[default]
    Ended,
    /// It was interrupted.
    Cancelled,
    /// Nobody knows what became of it.
    Lost,
    /// It did not start, and asking again does not help.
    Refused,
}

/// What came of one attempt of a run. Its output stays in the session; what is here is at most 64 KiB of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Where it ended up.
    pub state: RunState,
    /// Its status, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Of a lost one: nothing of it had started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_started: bool,
    /// What it printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// It printed more than that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Which run it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// In which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Offset of its first output byte there.
    #[serde(default)]
    pub from: u64,
    /// Offset behind its last one.
    #[serde(default)]
    pub to: u64,
    /// Why it did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Outcome {
    /// It ended with status 0.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.state == RunState::Ended && self.exit_code == Some(0)
    }

    /// In a few words.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.state, self.exit_code, &self.why) {
            (RunState::Refused, _, Some(why)) => why.clone(),
            (RunState::Refused, _, None) => "refused".into(),
            (RunState::Ended, Some(code), _) => format!("exit {code}"),
            (RunState::Ended, None, _) => "ended, status unknown".into(),
            (RunState::Cancelled, _, _) => "interrupted".into(),
            (RunState::Lost, _, _) if self.not_started => "lost before it started".into(),
            (RunState::Lost, _, _) => "lost: it may have run".into(),
        }
    }
}
