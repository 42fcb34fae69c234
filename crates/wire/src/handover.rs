//! What others changed in a session since an actor wrote there last: what whoever takes over should know.

use holdfast_types::{Handle, SessionId, SessionName, Shaper, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What others changed since the caller wrote last before they did, or since the session started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoverAnswer {
    /// Which session.
    pub session: SessionId,
    /// Its name.
    pub name: SessionName,
    /// The caller's last act there; none: it never wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_act: Option<u64>,
    /// When that was, or when the session started.
    pub since_ms: TimeMs,
    /// Who else wrote since.
    pub from: Vec<Handle>,
    /// What they changed, and what goes on: the shell's names, the directory, files that will be executed, text at the prompt,
    /// processes in the background.
    pub changed: Vec<HandoverChange>,
    /// All of it in a line; empty: nothing changed.
    pub summary: String,
    /// What could not be looked at, or is not told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoverChange {
    /// What, and who.
    #[serde(flatten)]
    pub what: Shaper,
    /// It was there before, and is no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}
