//! What is said on the flow service's socket: one JSON object a line. `spec/flows.md` is its description.
//!
//! The service speaks first, with a challenge; the client proves its key by signing it; then it asks, and each answer carries the
//! number of its question.

use holdfast_flow::{Command, Hosted, Recorded, State, Waits};
use holdfast_types::{Actor, Challenge, Signature, TimeMs};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// What this program speaks.
pub const VERSION: u32 = 1;
/// What a client signs is bound to this socket's protocol: a signature for the flow service proves nothing to a host.
pub const BINDING: &[u8] = b"flows";
/// Longest line: a definition of 64 KiB with every byte escaped, and a history page.
pub const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest wait of one question.
pub const WAIT_MS_MAX: u64 = 600_000;

/// The service's first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol's version.
    pub flows: u32,
    /// The program's version.
    pub program: String,
    /// Its process.
    pub pid: u32,
    /// What a client signs.
    pub challenge: Challenge,
}

/// The client's first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Prove {
    /// Who speaks.
    pub actor: Actor,
    /// Its signature over the challenge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// In place of a signature: what the service gave to a worker that it started. Such a worker decides, and asks for nothing else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ticket: String,
    /// The host speaks for this actor, which it has seen proof of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
}

/// A question and its number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Asked {
    /// The client's own.
    pub id: u64,
    /// What is asked.
    #[serde(flatten)]
    pub request: Request,
}

/// The answer to a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answered {
    /// The question's number.
    pub id: u64,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Value>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Trouble>,
}

/// What can be asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Starts a flow: a definition in YAML, or the name of a flow in code that a worker has.
    Start {
        /// Its id; none: its name and a number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<String>,
        /// A definition in YAML.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        definition: Option<String>,
        /// The name of a flow in code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What it is given.
        #[serde(default)]
        input: Value,
        /// Where its new sessions start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// It does not wait for `sleep` and `until`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        skip_timers: bool,
        /// The digest of a file that was kept: the service starts workers with it whenever the flow is to be decided about.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        code: String,
        /// How.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hosted: Option<Hosted>,
    },
    /// Lists flows, the newest first; can wait for a change.
    List {
        /// Those that have ended too.
        #[serde(default)]
        all: bool,
        /// Only those that changed later than this.
        #[serde(default, skip_serializing_if = "is_zero")]
        after: u64,
        /// Answer once there are some; at the latest after this long.
        #[serde(default, skip_serializing_if = "is_zero")]
        wait_ms: u64,
    },
    /// All histories, the oldest first: also of flows that have ended, and older ones of those that were replaced.
    Histories {
        /// Those behind this number.
        #[serde(default)]
        after: u64,
    },
    /// One flow, and its history behind `after`; can wait for more of it.
    Get {
        /// Its id.
        flow: String,
        /// Events that are known already.
        #[serde(default)]
        after: u64,
        /// Answer once there are more than that, or it has ended; at the latest after this long.
        #[serde(default)]
        wait_ms: u64,
        /// Which of its histories, from 1; by default the one that goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generation: Option<u32>,
    },
    /// Takes a flow's history back to a step; the old one is kept.
    Rewind {
        /// Which.
        flow: String,
        /// The step that is asked for anew: its number from 1, or its name.
        to: String,
        /// What was done may be done a second time.
        #[serde(default)]
        again: bool,
    },
    /// Sends a signal.
    Signal {
        /// To which flow.
        flow: String,
        /// Its name.
        name: String,
        /// What it says.
        #[serde(default)]
        value: Value,
        /// The same id counts once.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        signal: String,
    },
    /// Answers a question; only humans may.
    Answer {
        /// Of which flow.
        flow: String,
        /// Which question, if several are open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        n: Option<u32>,
        /// The answer.
        text: String,
    },
    /// Cancels a flow: what runs is stopped, what was done is undone.
    Cancel {
        /// Which.
        flow: String,
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Lets a blocked flow go on, or decides about a stuck step.
    Retry {
        /// Which.
        flow: String,
        /// `again`, `failed`, `done`, or `code`: the newest code decides from here on, also where nothing is blocked.
        #[serde(default = "again")]
        verdict: String,
        /// With `done`: what the step gave; with `code`: the digest of a file that was kept, if the service starts workers with it.
        #[serde(default)]
        value: Value,
        /// How.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hosted: Option<Hosted>,
    },
    /// A worker asks for flows of its actor to decide about.
    Tasks {
        /// Names of flows whose code it has.
        names: Vec<String>,
        /// At most so many.
        #[serde(default = "one")]
        max: usize,
        /// Wait this long for the first.
        #[serde(default)]
        wait_ms: u64,
        /// The digest of its file; with it, flows come too that go on with an older one, which it gets by `code`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        code: String,
    },
    /// Keeps a worker's file under its digest, for the flows that go on with it.
    Keep {
        /// What is in it.
        text: String,
        /// Its name: how it ends says in which language it is.
        file: String,
    },
    /// A file that was kept.
    Code {
        /// Its digest.
        code: String,
    },
    /// A worker's decision.
    Turn {
        /// About which flow.
        flow: String,
        /// How many events it knew.
        at: u64,
        /// New commands, in order.
        #[serde(default)]
        commands: Vec<(u32, Command)>,
        /// Why it cannot decide.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blocked: Option<String>,
        /// The digest of the file by which it decided.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        code: String,
    },
    /// What the service is doing.
    Status {},
    /// Ends the service; flows go on with the next one.
    Stop {},
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn again() -> String {
    "again".into()
}

fn first() -> u32 {
    1
}

fn is_first(generation: &u32) -> bool {
    *generation == 1
}

fn one() -> usize {
    1
}

/// A flow as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowView {
    /// Its id.
    pub id: String,
    /// What kind of flow it is.
    pub name: String,
    /// Who started it.
    pub by: String,
    /// When.
    pub started_ms: TimeMs,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<TimeMs>,
    /// How many events its history has.
    pub events: u64,
    /// Grows with each change of any flow.
    #[serde(default)]
    pub changed: u64,
    /// Which history under this id it is, from 1.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub generation: u32,
    /// The flow whose step started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What it is doing.
    #[serde(flatten)]
    pub state: State,
    /// The same in words, with what it waits for.
    pub status: String,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<Waits>,
}

/// A flow and a part of its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowAnswer {
    /// The flow.
    #[serde(flatten)]
    pub flow: FlowView,
    /// Flows that its steps started, 100 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildView>,
    /// Events behind those that were known.
    pub history: Vec<Recorded>,
}

/// One of all histories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Grows from history to history.
    pub number: u64,
    /// The flow.
    pub flow: String,
    /// Which history under its id, from 1; none: the one that goes on, or its last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// It has ended.
    pub ended: bool,
}

/// A flow that a step started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildView {
    /// The step's number.
    pub n: u32,
    /// The flow.
    pub id: String,
    /// What kind of flow it is.
    pub name: String,
    /// What it is doing.
    pub status: String,
}

/// The answer to a start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartAnswer {
    /// The flow.
    #[serde(flatten)]
    pub flow: FlowView,
    /// It was there before, and nothing was started.
    #[serde(default)]
    pub existing: bool,
}

/// A file of flows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its digest.
    pub code: String,
    /// What is in it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
}

/// A flow that wants to be decided about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub flow: String,
    /// What kind of flow it is.
    pub name: String,
    /// The digest of the file that it goes on with; empty: the worker's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// How many events there are: the turn says it back.
    pub at: u64,
    /// The history begins behind so many events: this connection had those before.
    pub from: u64,
    /// The history.
    pub history: Vec<Recorded>,
}

/// What the service is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Flows that have not ended.
    pub open: usize,
    /// Those of them whose histories were read: the others are at rest.
    #[serde(default)]
    pub in_memory: usize,
    /// Timers that are set.
    pub timers: usize,
    /// Where the histories lie.
    pub database: String,
    /// Why flows that ended long ago are still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Trouble {
    /// For programs; never renamed.
    pub code: String,
    /// For people.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Trouble {
    /// Without advice.
    pub fn new(code: &str, message: impl Into<String>) -> Trouble {
        Trouble { code: code.to_owned(), message: message.into(), hint: String::new() }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Trouble {
        self.hint = hint.into();
        self
    }
}
