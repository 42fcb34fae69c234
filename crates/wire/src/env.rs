//! Parameters and answers about what a session's shell is made of, and who changed it: names and hashes, never a value.

use crate::runs::RunId;
use holdfast_types::{Actor, Channel, SessionId, SessionName, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of thing a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// An exported variable, and those that shape a shell without being exported: `PS1`, `PROMPT_COMMAND`, `IFS`, `CDPATH`.
    Variable,
    /// An alias, or an abbreviation of fish. What fish calls an alias is a function.
    Alias,
    /// A function.
    Function,
    /// An option that is on; those of zsh are all there, with `on` or `off`.
    Option,
    /// The working directory; there is one.
    Cwd,
    /// A directory in `PATH`.
    Path,
    /// A trap.
    Trap,
    /// A key of the line editor that runs a command or types a text.
    Binding,
    /// A builtin that is switched off.
    Builtin,
    /// A name under which the shell remembers a program that is in no directory of `PATH` (`hash -p`).
    Hash,
    /// A limit: `umask`.
    Setting,
}

impl Category {
    /// By what a change of it shapes what is run.
    #[must_use]
    pub fn channel(self) -> Channel {
        match self {
            Category::Variable => Channel::Variable,
            Category::Alias => Channel::Alias,
            Category::Function => Channel::Function,
            Category::Option => Channel::Option,
            Category::Cwd => Channel::Directory,
            Category::Path => Channel::Path,
            Category::Trap => Channel::Trap,
            Category::Binding => Channel::Binding,
            Category::Builtin => Channel::Builtin,
            Category::Hash => Channel::Hash,
            Category::Setting => Channel::Setting,
        }
    }
}

/// Which session's shell, and how much of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvParams {
    /// Name or id.
    pub session: String,
    /// Also what is as it was when the shell started.
    #[serde(default)]
    pub all: bool,
}

/// What a session's shell is made of, against what it started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvAnswer {
    /// Whose.
    pub session: SessionId,
    /// Its name.
    pub name: SessionName,
    /// Its command is a shell that reports its names.
    pub integration: bool,
    /// When it first reported: later changes are compared with that. None: it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<TimeMs>,
    /// It has more names than the host keeps: some changes may be missing.
    #[serde(default)]
    pub partial: bool,
    /// By category and name.
    pub entries: Vec<EnvEntry>,
}

/// One name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvEntry {
    /// Its kind.
    pub category: Category,
    /// Its name; `cwd` for the working directory.
    pub name: String,
    /// Of its value, under a key that only this session's files have: tells two values apart and nothing else. None: it is
    /// gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// It was there when the shell started, and is no more.
    pub gone: bool,
    /// Who made it what it is now. None: it is as it was when the shell started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Changed>,
}

/// The act that changed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// How that is known.
    pub known: Known,
    /// The act's number in the session's journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    /// The run it was done by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// That run's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// When the shell reported it.
    pub at_ms: TimeMs,
}

impl Changed {
    /// The actor is unknown; the shell reported it at that time.
    #[must_use]
    pub fn unknown(at_ms: TimeMs) -> Changed {
        Changed { known: Known::Unknown, act: None, run: None, key: None, actor: None, at_ms }
    }
}

/// How it is known who changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// A run did it: the shell reported its end.
    Run,
    /// The last writer before the command started.
    Time,
    /// It is not: the journal does not reach back so far, or has no name.
    Unknown,
}

impl Known {
    /// Its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Known::Run => "run",
            Known::Time => "time",
            Known::Unknown => "unknown",
        }
    }
}
