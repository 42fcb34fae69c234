//! Where a session is judged below its acts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What of a session's processes is judged before it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Seam {
    /// Every program they start.
    Exec,
}

impl Seam {
    /// Its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Seam::Exec => "exec",
        }
    }
}
