//! A session whose home is a lease: how that stands.

use holdfast_types::TimeMs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// That a session is to have its home by a lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Leasing {
    /// Where the keeper cannot stop the session in time, because it is stopped itself, the kernel kills it. For portable sessions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hard: bool,
}

/// How a session's lease stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseState {
    /// This host has it: the session may run.
    Held,
    /// This host does not know whether it still has it: the session stands still, and goes on once the lease is renewed.
    Unknown,
    /// Another host has it: the life here is over.
    Claimed,
}

/// A session's lease, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseView {
    /// How it stands.
    pub state: LeaseState,
    /// The host that has it, as far as this one knows.
    pub host: String,
    /// The number that grows with each change of home: no two lives of a session have the same.
    pub fence: u64,
    /// Until when the session runs if the lease is not renewed; left out where it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<TimeMs>,
    /// Its keeper stopped it because the lease was over, and this many milliseconds after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_late_ms: Option<u32>,
    /// A keeper that cannot stop the session in time is killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hard: bool,
    /// Why it is not renewed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
