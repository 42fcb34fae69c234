//! Branches: copies of a portable session with an identity, files and a network of their own.

use crate::params::SessionView;
use holdfast_types::{Hash, Proof, SessionId, SessionName, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Branches of one fork: each has all the memory of the session again.
pub const BRANCHES_MAX: u32 = 8;

/// Which session to fork.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkParams {
    /// Name or id.
    pub session: String,
    /// How many branches, 1 to 8; left out: 2, or as many as names are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Their names; left out: the session's name with a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<SessionName>,
    /// The branches have the machine's network. Ports that the session listens on are taken, so this is for sessions without any. Left
    /// out: each has a network of its own, with nothing but a loopback.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub share_network: bool,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl ForkParams {
    /// How many branches are wanted.
    #[must_use]
    pub fn branches(&self) -> u32 {
        self.count.unwrap_or(if self.names.is_empty() { 2 } else { self.names.len() as u32 })
    }

    /// As it is signed and recorded.
    #[must_use]
    pub fn detail(&self) -> String {
        let count = self.branches();
        let names: Vec<&str> = self.names.iter().map(SessionName::as_str).collect();
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let network = if self.share_network { " with the machine's network" } else { "" };
        format!("{count} {}{names}{network}", if count == 1 { "branch" } else { "branches" })
    }
}

/// Branches that run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ForkAnswer {
    /// The branches.
    pub branches: Vec<SessionView>,
    /// Connections that are cut in them. What was sent before the fork was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// How long the session stood still for it.
    pub still_ms: u64,
}

/// What a branch is a copy of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkedView {
    /// The session.
    pub session: SessionId,
    /// Its name then.
    pub name: SessionName,
    /// When.
    pub at_ms: TimeMs,
    /// The number of the record in its journal by which the branch was asked for.
    pub seq: u64,
    /// That record's hash.
    pub hash: Hash,
    /// Connections that were cut in the branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// It has a network of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_network: bool,
}

/// Of which branch the changed files are wanted.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkDiffParams {
    /// Name or id of the branch.
    pub session: String,
    /// Another branch to compare with; left out: the real files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// Also what is in text files, as a unified diff. Needs the right `fork` in each branch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub patch: bool,
}

/// How a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HowChanged {
    /// It is there, and was not.
    Created,
    /// It has other content, another target or another kind.
    Changed,
    /// It has another mode or owner.
    Attributes,
    /// It is no longer there.
    Deleted,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchChange {
    /// Its path; that of a directory ends with a slash.
    pub path: String,
    /// How.
    pub how: HowChanged,
    /// Bytes of the new content.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Files that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkDiffAnswer {
    /// The files, by path.
    pub changes: Vec<BranchChange>,
    /// There are more than are listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// The unified diff, for `patch -p1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

/// Which branch's files to apply.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkKeepParams {
    /// Name or id of the branch.
    pub session: String,
    /// Copy created and changed files below this directory, and touch nothing else; it must be empty, or not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// Of conflicting files, those of which the branch's version is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub take: Vec<String>,
    /// Files that are left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave: Vec<String>,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl ForkKeepParams {
    /// As it is signed and recorded.
    #[must_use]
    pub fn detail(&self) -> String {
        let choice = |word: &str, list: &[String]| match list {
            [] => String::new(),
            list => format!(", {word} {}", list.join(" ")),
        };
        let to = self.into.as_deref().unwrap_or("the real files");
        let mut detail = format!("to {to}{}{}", choice("take", &self.take), choice("leave", &self.leave));
        if let Some((end, _)) = detail.char_indices().nth(1024) {
            detail.truncate(end);
        }
        detail
    }
}

/// A file that changed on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// Its path.
    pub path: String,
    /// Why.
    pub why: String,
}

/// What was applied of a branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkKeepAnswer {
    /// Files that were applied; none where some conflict.
    pub applied: Vec<BranchChange>,
    /// Files that changed since the fork, for each of which a choice is needed: `take` or `leave`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
}

/// A branch that nobody wants.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkDiscardParams {
    /// Name or id.
    pub session: String,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}
