//! Runs: commands with a beginning, an end and a status.
//!
//! A run is entered into a session's shell at an idle prompt, or has a session of its own. Its key, where it has one, makes it
//! happen once: the same key and command give the same run again, whatever happened to the host in between.

use crate::contracts::{Contract, Outcome};
use crate::params::{Gap, NewParams};
use holdfast_types::{Actor, Offset, Proof, SessionId, SessionName, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest key: in hexadecimal it is the name of a file.
pub const KEY_BYTES_MAX: usize = 120;

/// Bytes of output shown from its beginning.
pub const OUTPUT_HEAD_BYTES: u64 = 4 * 1024;
/// Bytes of output shown from its end: errors stand there.
pub const OUTPUT_TAIL_BYTES: u64 = 12 * 1024;

/// A run's identity for all time: `run_` and 26 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(extend("pattern" = "^run_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
pub struct RunId(SessionId);

/// A text that is no [`RunId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid run id {0:?}; expected `run_` and 26 characters (see `holdfast run ls`)")]
pub struct RunIdError(String);

impl RunId {
    /// An id from 128 bits that the caller drew from a good source.
    #[must_use]
    pub fn from_random_bits(bits: u128) -> RunId {
        RunId(SessionId::from_random_bits(bits))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string().replacen("ses_", "run_", 1))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<RunId, RunIdError> {
        let session = text.strip_prefix("run_").and_then(|digits| format!("ses_{digits}").parse().ok());
        session.map(RunId).ok_or_else(|| RunIdError(text.chars().take(64).collect()))
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for RunId {
    type Error = RunIdError;

    fn try_from(text: String) -> Result<RunId, RunIdError> {
        text.parse()
    }
}

/// Which run is meant: its id, or the key it was started under. What reads as an id is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", from = "String")]
pub enum RunRef {
    /// Its id.
    Id(RunId),
    /// Its key.
    Key(String),
}

impl fmt::Display for RunRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunRef::Id(id) => fmt::Display::fmt(id, f),
            RunRef::Key(key) => f.pad(key),
        }
    }
}

impl From<RunId> for RunRef {
    fn from(id: RunId) -> RunRef {
        RunRef::Id(id)
    }
}

impl From<String> for RunRef {
    fn from(text: String) -> RunRef {
        text.parse().map_or_else(|_| RunRef::Key(text), RunRef::Id)
    }
}

impl From<RunRef> for String {
    fn from(run: RunRef) -> String {
        run.to_string()
    }
}

impl FromStr for RunRef {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<RunRef, Self::Err> {
        Ok(text.to_owned().into())
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Typed; the shell has not said yet that it runs.
    Starting,
    /// It runs.
    Running,
    /// It ended.
    Ended,
    /// It was interrupted, and ended.
    Cancelled,
    /// Its outcome is unknown, and it is not run again. `end` says whether the command can have started: `not_started` or `unknown`.
    Lost,
}

impl RunState {
    /// Nothing more will become of it.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            RunState::Starting | RunState::Running => false,
            RunState::Ended | RunState::Cancelled | RunState::Lost => true,
        }
    }

    /// Its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            RunState::Starting => "starting",
            RunState::Running => "running",
            RunState::Ended => "ended",
            RunState::Cancelled => "cancelled",
            RunState::Lost => "lost",
        }
    }
}

/// How the end is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// The shell said so under the run's token, or the session's command was the run and ended.
    Exact,
    /// Taken from what the terminal showed: there is no status.
    Inferred,
    /// It did not start: the shell did not accept it as a command (a syntax error), or its host was gone before it was typed.
    NotStarted,
    /// It has ended, and its status is unknown.
    Unknown,
}

/// How to detect the end in a shell that does not report it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detect {
    /// No output for this long, in milliseconds.
    Quiet(u64),
    /// The last line fits this regular expression.
    Prompt(String),
}

/// Where to post the outcome of a run.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnExit {
    /// Where to: `http://` or `https://`.
    pub url: String,
    /// What it is signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl fmt::Debug for OnExit {
    /// Without the secret, and without what an address may carry of one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnExit")
    }
}

fn is_zero(ms: &u64) -> bool {
    *ms == 0
}

/// What to run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunStartParams {
    /// Name or id of the session whose shell runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// In place of a session: the one that is made for it, with the command as it is; where that has none, the shell of the
    /// host's user executes the text in `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Box<NewParams>>,
    /// With `new`: the session stays listed when it has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// With `new`: what it writes to its standard error does not go to the terminal; the answer has it as `stderr`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub separate_stderr: bool,
    /// The same key runs once. Keys are each actor's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The key is everybody's: whoever uses it with the same command finds the same run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// The id it shall have, drawn at random: asked again with the same one after an answer was lost, in the same session, it
    /// is not run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// What the shell is to execute; with a command in `new` it is left out.
    #[serde(default)]
    pub command: String,
    /// Answer when it has ended, at the latest after this long.
    #[serde(default)]
    pub wait_ms: u64,
    /// Where a human must approve it: wait for the answer for so long before `approval_needed`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub approval_wait_ms: u64,
    /// Why it is to be run, in a sentence: for policies, and for the human who is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// What it promises. With one its effects are measured, and held against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Box<Contract>>,
    /// How to detect its end if the shell does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detect: Option<Detect>,
    /// Where to post its outcome; for an existing run, what was given at its start applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exit: Option<OnExit>,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// Which run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunParams {
    /// Its id, or its key.
    pub run: RunRef,
    /// Answer when it has ended, at the latest after this long.
    #[serde(default)]
    pub wait_ms: u64,
}

/// Which part of a run's output.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunOutputParams {
    /// Its id, or its key.
    pub run: RunRef,
    /// First offset wanted; none: the run's first.
    #[serde(default)]
    pub from: Option<Offset>,
    /// At most this many bytes.
    #[serde(default)]
    pub max: Option<u32>,
    /// Wait this long for the first byte, or the run's end.
    #[serde(default)]
    pub wait_ms: u64,
}

/// Which runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunListParams {
    /// Those of one session; none: of all sessions the caller may observe. The newest 1,000.
    #[serde(default)]
    pub session: Option<String>,
}

/// Which run to interrupt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCancelParams {
    /// Its id, or its key.
    pub run: RunRef,
    /// Answer when it has ended, at the latest after this long.
    #[serde(default)]
    pub wait_ms: u64,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// A run as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// Identity.
    pub id: RunId,
    /// Its session.
    pub session: SessionId,
    /// That session's name.
    pub name: SessionName,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What was entered.
    pub command: String,
    /// Who.
    pub actor: Actor,
    /// The act's number in the session's journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    /// Where it stands.
    pub state: RunState,
    /// Its status, where it is known.
    pub exit_code: Option<i32>,
    /// How the end is known.
    pub end: Option<RunEnd>,
    /// When it was entered.
    pub started_ms: TimeMs,
    /// When it ended, as the host noticed.
    pub ended_ms: Option<TimeMs>,
    /// How long it took so far.
    pub duration_ms: u64,
    /// Offset of its first output byte. Until the shell has said where that is, there is no output, and it may lie further on.
    pub from: Offset,
    /// Offset behind its last output byte, or behind the last one so far.
    pub to: Offset,
    /// The shell's directory before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd_before: Option<String>,
    /// And after it.
    pub cwd: Option<String>,
    /// It is its session's own command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_session: bool,
    /// How it came out against its contract, once it is over; `run.trace` has the effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Box<Outcome>>,
    /// Of a run with retries: which attempt this is, from 1 on. It is over when its last attempt is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// A run, and what it printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunAnswer {
    /// The run.
    #[serde(flatten)]
    pub run: RunView,
    /// It was there before, and nothing was started: the key, or the id, was used.
    #[serde(default)]
    pub existing: bool,
    /// Its output as text without escape sequences; of a long one the beginning and the end.
    pub output: String,
    /// The output is longer than what is shown, or part of it is no longer kept.
    pub truncated: bool,
    /// What is not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Gap>,
    /// What it wrote to its standard error, where that was asked to be separate: as text, of a long one the beginning and the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// The answer's bytes are output; this says where they stand.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunOutputAnswer {
    /// What was asked for and is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// Offset of the first byte given.
    pub from: Offset,
    /// Offset behind the last byte given: ask from here next.
    pub to: Offset,
    /// The run is over and everything was given.
    pub end: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_as_an_id_is_one_and_everything_else_is_a_key() {
        let id = RunId::from_random_bits(7);
        assert_eq!(RunRef::from(id.to_string()), RunRef::Id(id));
        for key in ["deploy-42", "", "run_1", "ses_00000000000000000000000000", "RUN_00000000000000000000000000"] {
            let run: RunRef = serde_json::from_value(key.into()).unwrap();
            assert_eq!(run, RunRef::Key(key.into()));
            assert_eq!(serde_json::to_value(run).unwrap(), key);
        }
    }

    #[test]
    fn a_runs_id_reads_back_and_is_no_sessions() {
        let id = RunId::from_random_bits(77);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.to_string().starts_with("run_") && id.to_string().len() == 30);
        assert!("ses_00000000000000000000000000".parse::<RunId>().is_err());
    }
}
