//! Flows, as the host passes them on: a service of its own has them, and the host says who asks.

use holdfast_types::TimeMs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest wait of one question about a flow.
pub const WAIT_MS_MAX: u64 = 60_000;

/// What is started.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowStartParams {
    /// A definition in YAML; or else a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The name of a flow in code, which a worker of the same actor decides about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its id; the same id, code and input find the flow that was started before. None: its name and a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// What it is given, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Where its new sessions start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// It does not wait for its timers: somebody tries it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_timers: bool,
}

/// Which flows.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowListParams {
    /// Those that have ended too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only those that changed later than this: the largest `changed` that is known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after: u64,
    /// Answer once there are some; at the latest after this long, a minute at most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
}

/// Which flow, and how much of its history.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowGetParams {
    /// Its id.
    pub flow: String,
    /// Events of its history that are known already.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after: u64,
    /// Answer once there are more than that, or it has ended; at the latest after this long, a minute at most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
    /// Which of its histories, from 1; by default the one that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A signal.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSignalParams {
    /// To which flow.
    pub flow: String,
    /// Its name.
    pub name: String,
    /// What it says, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The same id counts once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
}

/// An answer to a flow's question.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowAnswerParams {
    /// Of which flow.
    pub flow: String,
    /// The step that asks, from 1; none: the only one that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The answer.
    pub text: String,
}

/// Which flow, and why.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowCancelParams {
    /// Its id.
    pub flow: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Which flow, and what is decided about it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowRetryParams {
    /// Its id.
    pub flow: String,
    /// About a stuck step: `again` (the default), `failed` or `done`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verdict: String,
    /// With `done`: what the step gave, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// A flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// `deciding`, `waiting`, `blocked`, `undoing`, `completed`, `failed`, `cancelled` or `continued`.
    pub state: String,
    /// The same for people, with what it waits for.
    pub status: String,
    /// What it gave, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Why it is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many events its history has.
    pub events: u64,
    /// Grows with each change of any flow; a question for what is new names the largest.
    #[serde(default)]
    pub changed: u64,
    /// Which history under this id it is, from 1.
    #[serde(default = "first")]
    pub generation: u32,
    /// The flow whose step started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// It was there before, and nothing was started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub existing: bool,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<FlowWait>,
    /// Flows that its steps started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<FlowChild>,
    /// Events of its history, as `spec/flows.md` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub history: Vec<Value>,
}

fn first() -> u32 {
    1
}

/// One thing that a flow waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowWait {
    /// The command's number, from 0.
    pub n: u32,
    /// The step's name.
    pub name: String,
    /// `run`, `sleep`, `until`, `ask`, `signal`, `wait` or `child`.
    pub kind: String,
    /// Since when.
    pub since_ms: TimeMs,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<TimeMs>,
    /// Which attempt, from 1.
    #[serde(default = "first")]
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
    /// The session it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The flow that the step started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Why it does not go on for the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_up: Option<String>,
}

/// A flow that a step started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowChild {
    /// The step's number, from 0.
    pub n: u32,
    /// The flow.
    pub id: String,
    /// What kind of flow it is.
    pub name: String,
    /// What it is doing.
    pub status: String,
}
