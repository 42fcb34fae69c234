//! `overview`: everything an agent needs to know that has lost its memory.

use super::ask_human::QuestionLine;
use super::runs::RunLine;
use super::views::{Doing, Session, holder};
use super::{Hints, LOOKS, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_graph::Depth;
use holdfast_types::{Offset, TimeMs};
use holdfast_wire::graphs::{GraphParams, PortView, PortsParams};
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, ListParams, SessionParams, SessionView};
use holdfast_wire::questions::{QuestionListParams, QuestionState};
use holdfast_wire::runs::{RunListParams, RunView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sessions in one answer, the latest first: each costs a look at its processes.
const SESSIONS_MAX: usize = 40;
/// Runs since a moment.
const RUNS_MAX: usize = 50;
/// Answers to one's own questions, and sessions that are gone: those of the last hour, unless it is said since when.
const LATELY_MS: u64 = 60 * 60 * 1000;
const ANSWERED_MAX: usize = 10;
const GONE_MAX: usize = 20;

/// Since when.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverviewIn {
    /// Also list runs that were active after this time, in milliseconds since the epoch: the `now_ms` of an earlier answer.
    #[serde(default)]
    since_ms: Option<TimeMs>,
    /// Offsets you read up to, by session name: the answer counts the output behind each.
    #[serde(default)]
    offsets: BTreeMap<String, Offset>,
}

/// How everything stands.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OverviewOut {
    /// Who you are here: the name of your own sessions.
    you: String,
    /// The time of this answer: the next one's `since_ms`.
    now_ms: TimeMs,
    /// Live sessions, the latest first.
    sessions: Vec<SessionLine>,
    /// Sessions that are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
    /// Questions that wait for a person, and yours that were answered since then, or in the last hour.
    questions: Vec<QuestionLine>,
    /// Sessions that ended since then, or in the last hour, and those that were lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<GoneLine>,
    /// What ran since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Vec<RunLine>>,
}

/// A session that is no more.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GoneLine {
    /// Its name.
    session: String,
    /// `ended` or `lost`.
    life: String,
    /// The status of its command.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
}

impl GoneLine {
    fn of(view: &SessionView) -> GoneLine {
        let Session { name, life, exit_code, .. } = Session::from(view);
        GoneLine { session: name, life, exit_code }
    }

    fn text(&self) -> String {
        let status = self.exit_code.map(|code| format!(" with {code}")).unwrap_or_default();
        format!("{} is {}{status}", self.session, self.life)
    }
}

/// One session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionLine {
    /// Its name.
    session: String,
    /// Its command.
    command: String,
    /// What it is doing.
    doing: Doing,
    /// Where its shell is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd_now: Option<String>,
    /// The last run in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_run: Option<RunLine>,
    /// Ports on which its processes listen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports: Vec<u16>,
    /// Who has the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<String>,
    /// Offset of the next output byte.
    head: Offset,
    /// Bytes behind the offset you gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_bytes: Option<u64>,
}

impl SessionLine {
    fn text(&self) -> String {
        let mut text = format!("{}: {} ({})", self.session, self.doing.line(), self.command);
        if let Some(cwd) = &self.cwd_now {
            text.push_str(&format!(" in {cwd}"));
        }
        if !self.ports.is_empty() {
            text.push_str(&format!(", listens on {:?}", self.ports));
        }
        if let Some(turn) = &self.turn {
            text.push_str(&format!(", {turn} has the turn"));
        }
        if let Some(new) = self.new_bytes {
            text.push_str(&format!(", {new} new bytes"));
        }
        if let Some(run) = &self.last_run {
            text.push_str(&format!("\n  last run {}", run.line()));
        }
        text
    }
}

impl Shown for OverviewOut {
    fn text(&self) -> String {
        let mut lines =
            vec![format!("you are {}; {} sessions", self.you, self.sessions.len() + self.more.unwrap_or(0))];
        lines.extend(self.sessions.iter().map(SessionLine::text));
        lines.extend(self.gone.iter().map(GoneLine::text));
        lines.extend(self.questions.iter().map(QuestionLine::line));
        lines.extend(self.runs.iter().flatten().map(|run| format!("since then {}", run.line())));
        lines.join("\n")
    }
}

/// The tool.
pub struct Overview;

impl Operate for Overview {
    const NAME: &'static str = "overview";
    const TITLE: &'static str = "Show everything at once";
    const DESCRIPTION: &'static str = "Shows every live session with what it is doing now, its directory, last run, \
        ports and turn, open questions, late answers and ended sessions. Call this first when you start or lost your \
        memory.";
    const HINTS: Hints = LOOKS;
    type In = OverviewIn;
    type Out = OverviewOut;

    async fn call<H: Host>(desk: &Desk<H>, input: OverviewIn) -> Result<OverviewOut, Trouble> {
        let now_ms = super::run::now_ms();
        let lately = input.since_ms.unwrap_or_else(|| now_ms.saturating_sub(LATELY_MS));
        let mut views = desk.ask::<op::List>(ListParams { all: true }).await?;
        views.sort_by_key(|view| std::cmp::Reverse(view.created_ms));
        let is_gone = |view: &&SessionView| match view.life {
            Life::Lost => true,
            Life::Ended => view.ended_ms.is_some_and(|at| at > lately),
            Life::Running | Life::Unknown | Life::Damaged => false,
        };
        let gone = views.iter().filter(is_gone).take(GONE_MAX).map(GoneLine::of).collect();
        views.retain(|view| view.life == Life::Running);
        let more = views.len().checked_sub(SESSIONS_MAX).filter(|more| *more > 0);
        let mut runs = desk.ask::<op::RunList>(RunListParams::default()).await?;
        runs.sort_by_key(|run| std::cmp::Reverse(run.started_ms));
        let ports = desk.ask::<op::Ports>(PortsParams { session: None }).await?;
        let mut sessions = Vec::new();
        for view in views.iter().take(SESSIONS_MAX) {
            let new_bytes = input.offsets.get(view.name.as_str()).map(|from| view.head.saturating_sub(*from));
            match line(desk, view, &runs, &ports).await {
                Ok(line) => sessions.push(SessionLine { new_bytes, ..line }),
                // It ended this moment.
                Err(gone) if gone.code == "not_found" => {}
                Err(error) => return Err(error),
            }
        }
        let mut questions = desk.ask::<op::QuestionList>(QuestionListParams { all: true, session: None }).await?;
        let you = desk.host.own_name();
        let mut answered = 0;
        // The newest last, of which the most are wanted.
        questions.reverse();
        questions.retain(|question| {
            let is_late = question.answer.as_ref().is_some_and(|answer| answer.at_ms > lately);
            let is_yours = is_late && question.by.handle.name() == you && answered < ANSWERED_MAX;
            answered += usize::from(is_yours);
            question.state == QuestionState::Open || is_yours
        });
        let since = |since: TimeMs| {
            let is_news = |run: &&RunView| run.ended_ms.unwrap_or(TimeMs::MAX) > since;
            runs.iter().filter(is_news).take(RUNS_MAX).map(RunLine::from).collect()
        };
        Ok(OverviewOut {
            you,
            now_ms,
            sessions,
            more,
            gone,
            questions: questions.iter().map(QuestionLine::from).collect(),
            runs: input.since_ms.map(since),
        })
    }
}

async fn line<H: Host>(
    desk: &Desk<H>,
    view: &SessionView,
    runs: &[RunView],
    ports: &[PortView],
) -> Result<SessionLine, Trouble> {
    let session = view.id.to_string();
    let state = desk.ask::<op::State>(SessionParams { session: session.clone() }).await?;
    let graph = desk.ask::<op::Graph>(GraphParams { session, depth: Depth::Processes }).await.ok();
    let shell = graph.as_ref().and_then(|graph| graph.graph.processes.iter().find(|node| node.pid == view.pid));
    Ok(SessionLine {
        session: view.name.to_string(),
        command: view.command.join(" ").chars().take(100).collect(),
        doing: Doing::from(&state),
        cwd_now: shell.and_then(|node| node.cwd.clone()),
        last_run: runs.iter().find(|run| run.session == view.id).map(RunLine::from),
        ports: ports.iter().filter(|port| port.name == view.name).map(|port| port.port.address.port()).collect(),
        turn: holder(&view.turn),
        head: state.at,
        new_bytes: None,
    })
}
