//! Portable sessions: checkpoints of the live process tree, and a session's life from one.

use crate::params::SessionView;
use holdfast_types::{Proof, SessionId, SessionName, Size, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that a checkpoint cannot keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Obstacle {
    /// The process.
    pub pid: u32,
    /// Its program.
    pub program: String,
    /// The descriptor, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fd: Option<u32>,
    /// What it is.
    pub what: String,
}

/// What a checkpoint of a session would refuse, cut and disturb now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckAnswer {
    /// How many processes it has.
    pub processes: u32,
    /// Why there can be no checkpoint now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Obstacle>,
    /// Connections that would be cut in the copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<Obstacle>,
    /// What else a person should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noted: Vec<Obstacle>,
}

/// Which session to make a checkpoint of.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointParams {
    /// Name or id.
    pub session: String,
    /// The session goes on. Left out: it stops, until it is restored. That needs the right `end` too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_running: bool,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl CheckpointParams {
    /// As it is signed and recorded.
    #[must_use]
    pub fn detail(&self) -> String {
        if self.keep_running { "keep running".into() } else { "stop".into() }
    }
}

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointView {
    /// Its id, `ckp_…`.
    pub id: String,
    /// Of which session.
    pub session: SessionId,
    /// The session's name then.
    pub name: SessionName,
    /// When it was made.
    pub at_ms: TimeMs,
    /// In which of the session's lives.
    pub incarnation: u32,
    /// The terminal's size then.
    pub size: Size,
    /// What it takes up on disk.
    pub bytes: u64,
    /// How long the processes stood still for it.
    pub still_ms: u64,
    /// The programs in it, at most 64.
    pub programs: Vec<String>,
    /// Connections that are cut once it is restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// Mounts of the machine that the session sees: they must be there when it is restored.
    pub mounts: Vec<String>,
    /// The kernel it was made on.
    pub kernel: String,
    /// The version of CRIU that made it.
    pub criu: String,
    /// The host made it by itself, and replaces it by later ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
    /// Why it cannot be used, where it cannot: damaged, or made by a later version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
}

/// Whose checkpoints to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointListParams {
    /// Name or id; left out: of all sessions you may observe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// A checkpoint to remove.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointRemoveParams {
    /// Name or id of its session.
    pub session: String,
    /// Its id.
    pub checkpoint: String,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// Which session to restore.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreParams {
    /// Name or id.
    pub session: String,
    /// The checkpoint; left out: the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl RestoreParams {
    /// As it is signed and recorded.
    #[must_use]
    pub fn detail(&self) -> String {
        self.checkpoint.clone().unwrap_or_else(|| "newest".into())
    }
}

/// A session that was restored.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RestoreAnswer {
    /// The session.
    pub session: SessionView,
    /// From what.
    pub checkpoint: CheckpointView,
}

/// What a session's life began from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoredView {
    /// The checkpoint.
    pub checkpoint: String,
    /// When that was made.
    pub made_ms: TimeMs,
    /// Connections that were cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
}
