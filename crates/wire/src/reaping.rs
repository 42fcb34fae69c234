//! Sessions that nobody uses: when they are ended, who keeps one, and what each takes up.

use holdfast_types::{Handle, Proof, SessionId, SessionName, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a session may be idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReapAfter {
    /// For as long as it likes: it is never reaped, whatever limits the host has.
    Never,
    /// For so many milliseconds.
    Idle(u64),
}

/// Why a session is reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReapWhy {
    /// It was idle for as long as it may be.
    Idle,
    /// The host has more sessions than it may have, and nobody has used this one for longest.
    Sessions,
    /// Its sessions take more memory than they may, and nobody has used this one for longest.
    Memory,
}

impl ReapWhy {
    /// In words: why a session is, or was, reaped.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            ReapWhy::Idle => "it is idle",
            ReapWhy::Sessions => "there are more sessions than reap_sessions_max",
            ReapWhy::Memory => "the sessions take more memory than reap_memory_max",
        }
    }
}

/// Whether and when a session is reaped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReapView {
    /// How long it may be idle; none: only the host's limits concern it, or nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// It is never reaped, as whoever started it said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never: bool,
    /// Since when it is idle, as the host saw it; none: it is not, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since_ms: Option<TimeMs>,
    /// When it is ended, if nobody uses or keeps it until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_ms: Option<TimeMs>,
    /// Its users were warned, for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned: Option<ReapWhy>,
    /// Who keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptView>,
    /// It was reaped, for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaped: Option<ReapWhy>,
}

/// Somebody keeps a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptView {
    /// Who.
    pub by: Handle,
    /// Until when; none: until somebody says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<TimeMs>,
}

/// Which session to keep.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepParams {
    /// Name or id.
    pub session: String,
    /// Keep it this long; left out: until somebody says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// Keep it no longer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub off: bool,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl KeepParams {
    /// What is signed and recorded of it.
    #[must_use]
    pub fn detail(&self) -> String {
        match (self.off, self.for_ms) {
            (true, _) => "off".into(),
            (false, Some(ms)) => format!("for {ms} ms"),
            (false, None) => "until further notice".into(),
        }
    }
}

/// Of which sessions.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostParams {
    /// Name or id; none: of every session the caller may observe that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// What a session takes up, and when somebody last used it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostView {
    /// Which session.
    pub session: SessionId,
    /// Its name.
    pub name: SessionName,
    /// Memory of its keeper and its processes. What is shared with others counts in parts, where the kernel tells.
    pub memory_bytes: u64,
    /// The kernel told of some processes only what they have resident, or nothing: the true number is another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_estimated: bool,
    /// Its processes, without the keeper.
    pub processes: u32,
    /// Blocks on disk of its ring, history, journal and other files.
    pub disk_bytes: u64,
    /// When it started.
    pub created_ms: TimeMs,
    /// When somebody was attached last; none: nobody was, as far as the host knows. Somebody who is attached counts as now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_ms: Option<TimeMs>,
    /// When somebody last looked at its screen, its output or its journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_ms: Option<TimeMs>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_a_word_and_a_time_an_object_of_one_field() {
        let json = |after| serde_json::to_value(after).unwrap();
        assert_eq!(json(ReapAfter::Never), serde_json::json!("never"));
        assert_eq!(json(ReapAfter::Idle(5)), serde_json::json!({"idle": 5}));
    }

    #[test]
    fn what_is_signed_tells_one_wish_from_another() {
        let keep = |for_ms, off| KeepParams { session: "s".into(), for_ms, off, proof: None }.detail();
        assert_eq!(
            [keep(None, false), keep(Some(5), false), keep(None, true)],
            ["until further notice", "for 5 ms", "off"]
        );
    }
}
