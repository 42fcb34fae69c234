//! What a host says of itself.

use holdfast_types::TimeMs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The host. A guest, a device that was invited to one session, is told the version alone: numbers are 0 and texts empty.
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

impl HostStatus {
    /// What a guest is told.
    #[must_use]
    pub fn for_guests(self) -> HostStatus {
        HostStatus {
            version: self.version,
            pid: 0,
            started_ms: 0,
            state: String::new(),
            socket: String::new(),
            running: 0,
            ended: 0,
            clients: 0,
            http: None,
            http_error: None,
        }
    }
}
