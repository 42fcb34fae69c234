//! One run, as it is kept on disk.

use holdfast_types::{Actor, Offset, TimeMs};
use holdfast_wire::runs::{RunEnd, RunId, RunState};
use serde::{Deserialize, Serialize};

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its identity.
    pub id: RunId,
    /// What makes it happen once, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its beginning, where it is long.
    pub command: String,
    /// Who runs it.
    pub actor: Actor,
    /// Its act's number in the session's journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    /// What the shell says its end under; empty where it does not tell.
    pub token: String,
    /// Where it stands.
    pub state: RunState,
    /// Its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How its end is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEnd>,
    /// When it was begun.
    pub started_ms: TimeMs,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<TimeMs>,
    /// Where the output stood before it was typed.
    pub typed_at: Offset,
    /// Where its output begins.
    pub from: Offset,
    /// Where its output ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Offset>,
    /// Where the shell was before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd_before: Option<String>,
    /// Where the shell was behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd_after: Option<String>,
    /// The shell reads it from a file, and tells its start twice.
    #[serde(default)]
    pub by_file: bool,
    /// It is the session's own command.
    #[serde(default)]
    pub own: bool,
    /// Somebody interrupted it.
    #[serde(default)]
    pub cancelled: bool,
    /// Its key is everybody's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

impl Run {
    /// The output that is this run's for certain, where output up to `seen` was parsed: from its first byte to behind its last so
    /// far. It only grows at its end, once it is not empty.
    ///
    /// Until the shell has said where the output begins there is none: what lies there is the echo of what was typed.
    pub fn range(&self, seen: Offset) -> (Offset, Offset) {
        let awaits_start = !self.token.is_empty() && (self.state == RunState::Starting || self.by_file);
        let to = self.to.unwrap_or(if awaits_start { self.from } else { seen });
        (self.from, to.max(self.from))
    }

    /// It is over, and the shell never told where its output begins: that of what was typed comes first.
    pub fn was_never_told(&self) -> bool {
        self.state.is_over() && !self.own && !self.token.is_empty() && self.from == self.typed_at
    }

    pub(super) fn over(&mut self, end: RunEnd, exit_code: Option<i32>, to: Offset, now: TimeMs) {
        self.state = if self.cancelled { RunState::Cancelled } else { RunState::Ended };
        self.end = Some(end);
        self.exit_code = exit_code;
        self.to = Some(to.max(self.from));
        self.ended_ms = Some(now);
    }
}
