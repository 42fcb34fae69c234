//! The gate: what the host's policy says of an act, and the approvals of acts that wait for a human.
//!
//! An act that a rule asks about is held by the host as data. Only a human with the right `approve` releases it, and never the
//! actor that asked. It is judged anew before it happens.

use crate::runs::RunId;
use holdfast_types::{Actor, Handle, Hash, Places, Proof, SessionId, SessionName, Shaper, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Acts that wait for a human at once: more than anybody reads. One actor leaves room for others.
pub const OPEN: Places = Places { all: 64, not_human: 56, of_one: 8, of_human: 16 };
/// Longest reason of an answer: a paragraph.
pub const REASON_BYTES_MAX: usize = 1024;
/// Without an answer an act is denied after this long: a person who is near has answered, and nobody is surprised hours later.
pub const EXPIRES_MS: u64 = 600_000;
/// Longest that one answer counts for the same command again: a working day.
pub const MINUTES_MAX: u32 = 480;

/// An approval's identity for all time: `apr_` and 26 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct ApprovalId(SessionId);

/// A text that is no [`ApprovalId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid approval id {0:?}; expected `apr_` and 26 characters (see `holdfast approvals ls`)")]
pub struct ApprovalIdError(String);

impl ApprovalId {
    /// An id from 128 bits that the caller drew from a good source.
    #[must_use]
    pub fn from_random_bits(bits: u128) -> ApprovalId {
        ApprovalId(SessionId::from_random_bits(bits))
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string().replacen("ses_", "apr_", 1))
    }
}

impl fmt::Debug for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ApprovalId {
    type Err = ApprovalIdError;

    fn from_str(text: &str) -> Result<ApprovalId, ApprovalIdError> {
        let session = text.strip_prefix("apr_").and_then(|digits| format!("ses_{digits}").parse().ok());
        session.map(ApprovalId).ok_or_else(|| ApprovalIdError(text.chars().take(64).collect()))
    }
}

impl From<ApprovalId> for String {
    fn from(id: ApprovalId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for ApprovalId {
    type Error = ApprovalIdError;

    fn try_from(text: String) -> Result<ApprovalId, ApprovalIdError> {
        text.parse()
    }
}

/// Where a held act stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// It waits for a human.
    Open,
    /// A human approved it, and the host is about to do it.
    Approved,
    /// It was approved and done. For a run: it is in the shell.
    Done,
    /// It was approved, and could not be done.
    Failed,
    /// A human denied it.
    Denied,
    /// Nobody answered in time, or its session ended: it is denied.
    Expired,
}

impl ApprovalState {
    /// Nothing more will become of it.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            ApprovalState::Open | ApprovalState::Approved => false,
            ApprovalState::Done | ApprovalState::Failed | ApprovalState::Denied | ApprovalState::Expired => true,
        }
    }

    /// Its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ApprovalState::Open => "open",
            ApprovalState::Approved => "approved",
            ApprovalState::Done => "done",
            ApprovalState::Failed => "failed",
            ApprovalState::Denied => "denied",
            ApprovalState::Expired => "expired",
        }
    }
}

/// A held act as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// Identity.
    pub id: ApprovalId,
    /// Its session; none where the act would start one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// That session's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<SessionName>,
    /// Who wants it.
    pub by: Actor,
    /// What kind of act: `run`, `start`, `signal`, `end`, `exec`.
    pub act: String,
    /// The command line, as it was written: what shows it makes it harmless first.
    pub command: String,
    /// Where it would run.
    pub cwd: String,
    /// The rule that asks.
    pub rule: String,
    /// What the rule asks.
    pub why: String,
    /// What the command risks, in the words of policies.
    pub risks: Vec<String>,
    /// Paths it would write; `?` stands for what is not known.
    pub writes: Vec<String>,
    /// Paths it would delete; likewise.
    pub deletes: Vec<String>,
    /// Who else shaped what it would run, and by what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shapers: Vec<Shaper>,
    /// The hash of all that, which an answer carries.
    pub hash: Hash,
    /// It was approved before, and what it was about has changed since.
    pub again: bool,
    /// When it was asked for.
    pub asked_ms: TimeMs,
    /// When it is denied without an answer.
    pub expires_at_ms: TimeMs,
    /// Where it stands.
    pub state: ApprovalState,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<Actor>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_ms: Option<TimeMs>,
    /// What the human said to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Until when the same actor may do the same again under the same rule without being asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<TimeMs>,
    /// For a run: its id, which it has once it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Which held act.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalParams {
    /// Its id.
    pub approval: ApprovalId,
    /// Answer when it stands otherwise than now, or nothing more will become of it; at the latest after this long.
    #[serde(default)]
    pub wait_ms: u64,
}

/// Which held acts.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalListParams {
    /// Those of one session; none: of all sessions the caller may observe, and its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Those that are over too, as far as they are remembered.
    #[serde(default)]
    pub all: bool,
}

/// What to answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalAnswerParams {
    /// The approval's id.
    pub approval: ApprovalId,
    /// The `hash` of what was read: an answer to something else is refused.
    pub seen: Hash,
    /// True: it may happen. False: it does not.
    pub approve: bool,
    /// What the actor that asked is to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With an approval: the same actor may do the same again under the same rule for so many minutes, at most 480.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u32>,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// What is signed and recorded of an answer.
#[must_use]
pub fn detail(approval: ApprovalId, approve: bool, minutes: Option<u32>, seen: Hash, command: &str) -> String {
    let word = if approve { "approve" } else { "deny" };
    let how_long = minutes.map_or_else(String::new, |minutes| format!(" for {minutes} minutes"));
    let seen = seen.to_string();
    let command: String = command.chars().take(200).collect();
    format!("{approval}: {word}{how_long} {} ({command})", &seen[..16.min(seen.len())])
}

/// What is to be judged, without doing it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MayParams {
    /// The command line.
    pub command: String,
    /// In which session's shell; none: in a session of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// In which directory; none: the session's, or the home directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// For which actor; none: the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Handle>,
}

/// What the policy says of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MayAnswer {
    /// `allow`, `ask` or `deny`.
    pub outcome: String,
    /// The rule that decides.
    pub rule: String,
    /// What that rule says; empty for an allow.
    pub why: String,
    /// What would be allowed instead, in sentences.
    pub instead: Vec<String>,
    /// Where it was judged.
    pub cwd: String,
    /// The command line was understood.
    pub parsed: bool,
    /// What only the live shell knows.
    pub opaque: Vec<String>,
    /// The commands in it.
    pub names: Vec<String>,
    /// What it risks.
    pub risks: Vec<String>,
    /// Paths it would write; `?` stands for what is not known.
    pub writes: Vec<String>,
    /// Paths it would delete; likewise.
    pub deletes: Vec<String>,
    /// Who else shaped what it would run, and by what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shapers: Vec<Shaper>,
}

/// The policy in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyView {
    /// `solo`, `careful`, `locked` or `off`.
    pub policy: String,
    /// The directory of files of one's own.
    pub dir: String,
    /// Those of them that are in force.
    pub files: Vec<String>,
    /// The rules in force.
    pub rules: Vec<RuleView>,
    /// Why newer files are not in force; empty where all are.
    pub problems: Vec<String>,
    /// Runs judged since the host began, and how many of them asked a human.
    pub judged: u64,
    /// Acts that were held.
    pub asked: u64,
    /// Acts that were denied by a rule.
    pub denied: u64,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// Its name.
    pub id: String,
    /// `permit`, `ask` or `forbid`.
    pub kind: String,
    /// What it asks, or why it denies.
    pub why: String,
    /// The file it is in.
    pub file: String,
    /// Where in it.
    pub line: u64,
    /// Its text in Cedar.
    pub text: String,
}
