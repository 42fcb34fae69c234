//! A wall around a session's processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the processes of a session can write and connect to, and nothing else. They also cannot signal processes outside, and get no
/// other rights by set-user-id programs (`sudo`). What they can read does not change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wall {
    /// Directories, from the root on. What lies in them can be written; and a temporary directory of the session's own (`$TMPDIR`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Ports that TCP connections can be made to; left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<Vec<u16>>,
}
