//! How a connection begins: the version both speak, and where the host finds the process at the other end.

use holdfast_types::Challenge;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Versions the client speaks, and what it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HelloParams {
    /// Protocol versions, any order.
    pub versions: Vec<u32>,
    /// Program and version, for the host's log.
    #[serde(default)]
    pub program: String,
}

/// The version both will speak.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HelloAnswer {
    /// The newest both know.
    pub version: u32,
    /// The host program's version.
    pub program: String,
    /// What an actor signs to prove on this connection that it is itself (`identify`).
    pub challenge: Challenge,
    /// Where the host found the process that connected, if that is no place of a person: no human is taken at its word there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Inside>,
    /// Addresses, as `NAME:PORT`, where the host can be reached without a relay: for devices of the whole host that came through one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub direct: Vec<String>,
}

/// Where a process was found. Neither of the two: where it comes from is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inside {
    /// It runs inside this session; empty where it is none of this host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// This agent started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}
