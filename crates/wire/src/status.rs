//! What a host says of itself.

use holdfast_types::TimeMs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The host.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HostStatus {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Since when.
    pub started_ms: TimeMs,
    /// Where its sessions lie.
    pub state: String,
    /// Its socket.
    pub socket: String,
    /// Live sessions.
    pub running: u32,
    /// Ended ones still shown.
    pub ended: u32,
    /// Attached clients.
    pub clients: u32,
    /// Where it listens for HTTP, as a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Why it does not, although it should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_error: Option<String>,
}
