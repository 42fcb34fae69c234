//! Contracts: what a run promises before it runs, what it did as far as that was measured, and what both say of its actor.
//!
//! What a contract leaves out is not promised, and not compared. A contract that promises nothing has the effects measured.

use crate::runs::{RunId, RunRef, RunView};
use holdfast_types::{Actor, Handle, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Patterns of one kind: a person reads no more.
pub const PATTERNS_MAX: usize = 64;
/// Longest pattern.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// Exit statuses that count as success.
pub const EXITS_MAX: usize = 16;
/// Ports that may be opened.
pub const PORTS_MAX: usize = 64;
/// Longest intent: a sentence or two.
pub const INTENT_BYTES_MAX: usize = 1024;
/// Most attempts behind the first: what failed so often fails again.
pub const RETRIES_MAX: u32 = 10;
/// The pause before the first retry, unless said otherwise. It doubles with each.
pub const BACKOFF_MS: u64 = 1_000;
/// Longest pause before the first retry.
pub const BACKOFF_MS_MAX: u64 = 600_000;
/// Longest pause before any retry.
pub const PAUSE_MS_MAX: u64 = 3_600_000;

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a run promises.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// Why it is run, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// What it may do. What is left out is not promised.
    #[serde(default, skip_serializing_if = "Expectations::is_default")]
    pub expect: Expectations,
    /// Running it twice does no more than running it once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// How often it is run again after it failed, at most 10; only where it is idempotent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// The pause before the first retry, in milliseconds (1000); it doubles with each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
}

/// What a run may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// Exit statuses that count as success; empty: 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit: Vec<i32>,
    /// Files it may create, change, delete or move: patterns relative to its directory, or absolute. `*` stands for part of a name,
    /// `**` for any directories. Empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_change: Option<Vec<String>>,
    /// Ports it may listen on. Empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<u16>>,
    /// How many processes it may leave running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Where it may connect to beyond this machine: patterns of `ADDRESS:PORT`, such as `*:443`. Empty: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Vec<String>>,
}

impl Expectations {
    fn is_default(&self) -> bool {
        *self == Expectations::default()
    }
}

impl Contract {
    /// The kinds of effects it promises something about: `files`, `ports`, `processes`, `network`.
    #[must_use]
    pub fn promises(&self) -> Vec<&'static str> {
        let Expectations { may_change, ports, processes, network, .. } = &self.expect;
        let all = [
            ("files", may_change.is_some()),
            ("ports", ports.is_some()),
            ("processes", processes.is_some()),
            ("network", network.is_some()),
        ];
        all.into_iter().filter(|(_, is)| *is).map(|(word, _)| word).collect()
    }

    /// Whether an exit status is one that it expects.
    #[must_use]
    pub fn expects_exit(&self, code: i32) -> bool {
        if self.expect.exit.is_empty() { code == 0 } else { self.expect.exit.contains(&code) }
    }

    /// The pause before attempt `number`, where the first retry is 1.
    #[must_use]
    pub fn pause_ms(&self, number: u32) -> u64 {
        let first = self.backoff_ms.unwrap_or(BACKOFF_MS);
        first.saturating_mul(1 << (number.saturating_sub(1)).min(20)).min(PAUSE_MS_MAX)
    }

    /// What is wrong with it; none: nothing.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let Expectations { exit, may_change, ports, network, .. } = &self.expect;
        if self.intent.as_ref().is_some_and(|intent| intent.len() > INTENT_BYTES_MAX) {
            return Some(format!("`intent` may have at most {INTENT_BYTES_MAX} bytes"));
        }
        if exit.len() > EXITS_MAX || exit.iter().any(|code| !(0..=255).contains(code)) {
            return Some(format!("`exit` takes at most {EXITS_MAX} statuses from 0 to 255"));
        }
        if ports.as_ref().is_some_and(|ports| ports.len() > PORTS_MAX || ports.contains(&0)) {
            return Some(format!("`ports` takes at most {PORTS_MAX} ports from 1 to 65535"));
        }
        for (name, patterns) in [("may_change", may_change), ("network", network)] {
            let patterns = patterns.as_deref().unwrap_or_default();
            if patterns.len() > PATTERNS_MAX {
                return Some(format!("`{name}` takes at most {PATTERNS_MAX} patterns"));
            }
            let is_bad = |pattern: &&String| {
                pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX || pattern.chars().any(char::is_control)
            };
            if let Some(bad) = patterns.iter().find(is_bad) {
                let shown: String = bad.chars().take(40).collect();
                return Some(format!(
                    "`{name}`: invalid pattern {shown:?}; expected 1 to {PATTERN_BYTES_MAX} bytes without control characters"
                ));
            }
        }
        let climbs = |pattern: &&String| pattern.split('/').any(|part| part == "..");
        if let Some(bad) = may_change.iter().flatten().find(climbs) {
            return Some(format!("`may_change`: {bad:?} has `..` in it; write the path out"));
        }
        let lacks_port =
            |pattern: &&String| pattern.rsplit_once(':').is_none_or(|(at, port)| at.is_empty() || port.is_empty());
        if let Some(bad) = network.iter().flatten().find(lacks_port) {
            return Some(format!("`network`: {bad:?} is not ADDRESS:PORT; for example *:443"));
        }
        if self.retries > 0 && !self.idempotent {
            return Some("`retries` needs `idempotent`: what is not may be done twice".into());
        }
        if self.retries > RETRIES_MAX {
            return Some(format!("at most {RETRIES_MAX} `retries`"));
        }
        if self.backoff_ms.is_some_and(|pause| self.retries == 0 || pause > BACKOFF_MS_MAX) {
            return Some(format!("`backoff_ms` goes with `retries`, up to {BACKOFF_MS_MAX}"));
        }
        None
    }
}

/// Whether what was measured is all there was, and by what it was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// Everything of this kind was seen, and nothing of others.
    pub complete: bool,
    /// `fanotify`, `ctime`, `lineage`, `graph`, `counters`, `samples`; `none`: not measured.
    pub by: String,
    /// What may be missing or foreign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A file that was moved.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// Where it was.
    pub from: String,
    /// Where it is.
    pub to: String,
}

/// What became of files. Of long lists the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEffects {
    /// New ones.
    #[serde(default)]
    pub created: Vec<String>,
    /// Written to, replaced, or with other attributes.
    #[serde(default)]
    pub changed: Vec<String>,
    /// Gone.
    #[serde(default)]
    pub deleted: Vec<String>,
    /// Under another name.
    #[serde(default)]
    pub moved: Vec<Moved>,
    /// How many in all.
    #[serde(default)]
    pub count: u64,
    /// Created and deleted again; not in the lists.
    #[serde(default)]
    pub passing: u64,
}

/// A process that a run left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftProcess {
    /// Its pid.
    pub pid: u32,
    /// Its words.
    pub argv: Vec<String>,
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Effects {
    /// To files.
    pub files: FileEffects,
    /// Processes it left behind.
    pub processes: Vec<LeftProcess>,
    /// Ports it listens on at its end, or was seen to listen on before.
    pub ports: Vec<u16>,
    /// Connections beyond this machine, as `ADDRESS:PORT`.
    pub connections: Vec<String>,
    /// How files were measured.
    pub files_measured: Measure,
    /// How processes were.
    pub processes_measured: Measure,
    /// How ports were: those at its end.
    pub ports_measured: Measure,
    /// How connections were.
    pub network_measured: Measure,
}

/// Whether effects stayed within the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// They did.
    Valid,
    /// Some are beyond it.
    Invalid,
    /// None was seen beyond it, and something it promises could not be measured completely.
    Unknown,
}

impl Validity {
    /// Its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Validity::Valid => "valid",
            Validity::Invalid => "invalid",
            Validity::Unknown => "unknown",
        }
    }
}

/// An effect beyond the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unexpected {
    /// `file`, `port`, `process` or `network`.
    pub kind: String,
    /// Which.
    pub what: String,
}

/// A run held against its contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Whether its effects stayed within it.
    pub validity: Validity,
    /// It ended with an exit status that was expected.
    pub success: bool,
    /// Effects beyond the contract; of many the first.
    #[serde(default)]
    pub unexpected: Vec<Unexpected>,
    /// How many there are.
    #[serde(default)]
    pub unexpected_count: u64,
    /// What it promises and could not be told: `files`, `network`, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
}

/// One attempt of a run that may be retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// The run.
    pub run: RunId,
    /// When it began.
    pub started_ms: TimeMs,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<TimeMs>,
    /// Its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why there was none, where it could not be begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// By which rule a run was let through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// `allow`, or `off` where nothing is judged.
    pub outcome: String,
    /// The rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What a human approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// How long the decision took, facts and all, in microseconds.
    pub took_us: u64,
}

/// Everything that is known of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceView {
    /// The run; of one that was retried the last attempt.
    #[serde(flatten)]
    pub run: RunView,
    /// What it promised; none: it ran without a contract, and nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// By which rule it was let through, where the host remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// All its attempts, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// What it did, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// And what that says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// Which run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceParams {
    /// Its id, or its key.
    pub run: RunRef,
}

/// Whose record.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordParams {
    /// The actor.
    pub handle: Handle,
    /// Only runs of this command, such as `make`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

/// Counts of an actor's runs under contracts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Those that promised something about their effects.
    pub runs: u64,
    /// Those that stayed within what they promised.
    pub valid: u64,
    /// Those that ended with an exit status that was expected.
    pub succeeded: u64,
    /// Those with effects beyond the contract.
    pub unexpected: u64,
    /// Those of which it is not known.
    pub unknown: u64,
}

/// The counts of one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionCounts {
    /// The command, such as `make`.
    pub action: String,
    /// Its counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// The last run with effects beyond its contract, and the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_unexpected: Option<LastUnexpected>,
}

/// A run with effects beyond its contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastUnexpected {
    /// Which.
    pub run: RunId,
    /// When it was over.
    pub at_ms: TimeMs,
    /// The first of its unexpected effects.
    pub what: String,
}

/// An actor's record: of its newest runs under contracts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordView {
    /// Whose.
    pub actor: Actor,
    /// Of all its commands, or of the one that was asked for.
    #[serde(flatten)]
    pub counts: Counts,
    /// When the oldest of these runs was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<TimeMs>,
    /// By command.
    #[serde(default)]
    pub actions: Vec<ActionCounts>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contract_says_what_is_wrong_with_it() {
        let cases = [
            (r#"{}"#, None),
            (r#"{"expect": {"may_change": [], "ports": [], "processes": 0, "network": []}}"#, None),
            (r#"{"expect": {"exit": [0, 2], "may_change": ["src/**", "/tmp/*.o"], "network": ["*:443"]}}"#, None),
            (r#"{"idempotent": true, "retries": 3, "backoff_ms": 10}"#, None),
            (r#"{"retries": 1}"#, Some("idempotent")),
            (r#"{"idempotent": true, "retries": 11}"#, Some("at most 10")),
            (r#"{"idempotent": true, "backoff_ms": 10}"#, Some("goes with")),
            (r#"{"expect": {"may_change": [""]}}"#, Some("invalid pattern")),
            (r#"{"expect": {"may_change": ["../x"]}}"#, Some("`..`")),
            (r#"{"expect": {"may_change": ["a\nb"]}}"#, Some("control")),
            (r#"{"expect": {"exit": [256]}}"#, Some("from 0 to 255")),
            (r#"{"expect": {"ports": [0]}}"#, Some("ports from 1")),
            (r#"{"expect": {"network": ["example"]}}"#, Some("ADDRESS:PORT")),
        ];
        for (text, expected) in cases {
            let contract: Contract = serde_json::from_str(text).expect(text);
            let problem = contract.problem();
            match expected {
                None => assert_eq!(problem, None, "{text}"),
                Some(part) => assert!(problem.as_ref().is_some_and(|p| p.contains(part)), "{text}: {problem:?}"),
            }
        }
        for malformed in [r#"{"expects": {}}"#, r#"{"expect": {"files": []}}"#, r#"{"retries": -1}"#] {
            assert!(serde_json::from_str::<Contract>(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn pauses_double_and_have_an_end() {
        let contract = Contract { backoff_ms: Some(100), ..Contract::default() };
        assert_eq!([1, 2, 3].map(|number| contract.pause_ms(number)), [100, 200, 400]);
        assert_eq!(contract.pause_ms(u32::MAX), PAUSE_MS_MAX);
    }
}
