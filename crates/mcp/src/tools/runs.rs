//! `runs`: commands that were run, by whom, and how they ended.

use super::{Hints, LOOKS, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_types::TimeMs;
use holdfast_wire::operations::op;
use holdfast_wire::runs::{RunListParams, RunState, RunView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Runs in one answer, unless said otherwise: a day's work of an agent.
const RUNS: usize = 20;
/// And at most.
const RUNS_MAX: usize = 200;
/// Characters of a command: enough to know it again.
const COMMAND_CHARS_MAX: usize = 200;

/// Which runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunsIn {
    /// Name or id of a session. Omitted: all you may observe.
    #[serde(default)]
    session: Option<String>,
    /// Only those in this state.
    #[serde(default)]
    state: Option<RunState>,
    /// Only those of this actor, for example agent:codex.
    #[serde(default)]
    by: Option<String>,
    /// At most so many, the newest first (default 20, at most 200).
    #[serde(default)]
    limit: Option<usize>,
}

/// Runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunsOut {
    /// The newest first.
    runs: Vec<RunLine>,
    /// So many more are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

/// One run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunLine {
    /// Its handle.
    pub run: String,
    /// Its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its session.
    pub session: String,
    /// Its command.
    pub command: String,
    /// `starting`, `running`, `ended`, `cancelled` or `lost`.
    pub state: String,
    /// Its status, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Who ran it.
    pub by: String,
    /// When it started, in milliseconds since the epoch.
    pub started_ms: TimeMs,
    /// How long it took so far.
    pub duration_ms: u64,
}

impl From<&RunView> for RunLine {
    fn from(view: &RunView) -> RunLine {
        RunLine {
            run: view.id.to_string(),
            key: view.key.clone(),
            session: view.name.to_string(),
            command: view.command.chars().take(COMMAND_CHARS_MAX).collect(),
            state: view.state.word().into(),
            exit_code: view.exit_code,
            by: view.actor.handle.to_string(),
            started_ms: view.started_ms,
            duration_ms: view.duration_ms,
        }
    }
}

impl RunLine {
    /// One line.
    pub fn line(&self) -> String {
        let status = self.exit_code.map_or_else(|| self.state.clone(), |code| format!("{} {code}", self.state));
        let key = self.key.as_ref().map(|key| format!("  key {key}")).unwrap_or_default();
        format!(
            "{}  {status}  {} ms  {}  {}{key}  {:?}",
            self.run, self.duration_ms, self.session, self.by, self.command
        )
    }
}

impl Shown for RunsOut {
    fn text(&self) -> String {
        match self.runs.as_slice() {
            [] => "no runs".into(),
            runs => runs.iter().map(RunLine::line).collect::<Vec<_>>().join("\n"),
        }
    }
}

/// The tool.
pub struct Runs;

impl Operate for Runs {
    const NAME: &'static str = "runs";
    const TITLE: &'static str = "List runs";
    const DESCRIPTION: &'static str = "Lists commands that were run, newest first: handle, key, state, exit code, \
        session, actor. Filter by session, state or actor. Use it to find a run whose handle you lost.";
    const HINTS: Hints = LOOKS;
    type In = RunsIn;
    type Out = RunsOut;

    async fn call<H: Host>(desk: &Desk<H>, input: RunsIn) -> Result<RunsOut, Trouble> {
        let mut views = desk.ask::<op::RunList>(RunListParams { session: input.session }).await?;
        views.retain(|view| input.state.is_none_or(|state| view.state == state));
        views.retain(|view| input.by.as_ref().is_none_or(|by| view.actor.handle.to_string() == *by));
        views.sort_by_key(|view| std::cmp::Reverse(view.started_ms));
        let limit = input.limit.unwrap_or(RUNS).min(RUNS_MAX);
        let more = views.len().checked_sub(limit).filter(|more| *more > 0);
        Ok(RunsOut { runs: views.iter().take(limit).map(RunLine::from).collect(), more })
    }
}
