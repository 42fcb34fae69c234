//! A session that was lost, and another life for it.

use crate::params::SessionView;
use crate::runs::RunId;
use holdfast_types::{Proof, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a session that was lost gets another life by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Somebody asks for it.
    #[default]
    Manual,
    /// The host begins it, as often as its limit allows.
    Auto,
}

/// Which session to give another life, and how.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecoverParams {
    /// Name or id.
    pub session: String,
    /// Run the session's command again. Left out: a session whose command is a shell gets that shell, any other one a shell in its
    /// place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    /// Variables of the caller, `K=V` each. Used for those the session had whose values are not kept on disk, and for no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// A session with a life.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecoverAnswer {
    /// The session.
    pub session: SessionView,
    /// Its life began with this request; otherwise it was running already.
    pub began: bool,
}

/// Why a session was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Cause {
    /// The machine was started anew since.
    Reboot,
    /// The kernel killed its keeper because memory ran out.
    OutOfMemory,
    /// Its keeper was killed by a signal.
    Signal {
        /// The signal.
        number: u8,
    },
    /// It was stopped when a checkpoint of it was made.
    Checkpoint,
    /// Nothing says why. Its keeper is gone.
    Unknown,
}

/// What was lost, as far as the host knew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostView {
    /// When the host noticed.
    pub at_ms: TimeMs,
    /// Why.
    pub cause: Cause,
    /// The same for people, with what else is known.
    pub why: String,
    /// Where its command was last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// When the host last looked at its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_ms: Option<TimeMs>,
    /// Its processes then, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<LostProcess>,
    /// Where they listened, for example `tcp 127.0.0.1:5173`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listened: Vec<String>,
    /// Their connections to others, for example `tcp 10.0.0.2:5432`. Those are cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connected: Vec<String>,
    /// Runs that were on. None is run again by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
    /// Its newest checkpoint: `restore` brings its processes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// Variables of its environment whose values are not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

/// A process of a session that was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostProcess {
    /// Its number.
    pub pid: u32,
    /// Its program, without arguments: those may be secret.
    pub program: String,
    /// It still runs, without the session's terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub survives: bool,
}
