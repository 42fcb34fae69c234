//! `session_state`: what a session is doing.

use super::views::{Doing, holder};
use super::{Hints, LOOKS, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_wire::env::{EnvEntry, EnvParams};
use holdfast_wire::operations::op;
use holdfast_wire::params::SessionParams;
use holdfast_wire::runs::{RunListParams, RunState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names in one answer.
const NAMES_MAX: usize = 200;

/// Which session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateIn {
    /// Name or id of the session. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
    /// Also what was changed in its shell since it started: variables, aliases, functions and options, each with who changed it.
    #[serde(default)]
    environment: bool,
}

/// What it does.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StateOut {
    /// The session.
    session: String,
    /// What it is doing.
    doing: Doing,
    /// The run that is on, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// Who has the turn: only this actor can write now.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<String>,
    /// Offset of the next output byte.
    head: u64,
    /// What was changed in its shell, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<Vec<ChangedOut>>,
    /// With `environment`: what others changed since you wrote there last.
    #[serde(skip_serializing_if = "Option::is_none")]
    handover: Option<String>,
}

/// A name of the shell that was changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangedOut {
    /// `variable`, `alias`, `function`, `option`, `path`, `trap`, `binding`, `builtin`, `hash` or `setting`.
    kind: String,
    /// The name.
    name: String,
    /// It was removed.
    gone: bool,
    /// Who changed it, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// By which run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

impl From<EnvEntry> for ChangedOut {
    fn from(entry: EnvEntry) -> ChangedOut {
        let kind = serde_json::to_value(entry.category).ok().and_then(|kind| kind.as_str().map(str::to_owned));
        let changed = entry.changed;
        ChangedOut {
            kind: kind.unwrap_or_default(),
            name: entry.name,
            gone: entry.gone,
            by: changed.as_ref().and_then(|changed| changed.actor.as_ref()).map(|actor| actor.handle.to_string()),
            run: changed.and_then(|changed| changed.run).map(|run| run.to_string()),
        }
    }
}

impl Shown for StateOut {
    fn text(&self) -> String {
        let mut text = format!("{} is {}", self.session, self.doing.line());
        if let Some(run) = &self.run {
            text.push_str(&format!("\nrun {run} is active"));
        }
        if let Some(turn) = &self.turn {
            text.push_str(&format!("\n{turn} has the turn"));
        }
        if let Some(handover) = &self.handover {
            text.push_str(&format!("\nsince you wrote last, changed by {handover}"));
        }
        for changed in self.environment.iter().flatten() {
            let (word, by) = (if changed.gone { "removed" } else { "changed" }, changed.by.as_deref().unwrap_or("?"));
            text.push_str(&format!("\n{word} {} {} by {by}", changed.kind, changed.name));
        }
        text
    }
}

/// The tool.
pub struct State;

impl Operate for State {
    const NAME: &'static str = "session_state";
    const TITLE: &'static str = "Show what a session is doing";
    const DESCRIPTION: &'static str = "Tells what a session is doing: at its prompt, working, waiting for input (with \
        the prompt's text), in a full-screen program, ended; the active run; who has the turn. It asks the operating \
        system; what cannot be known is `unknown`.";
    const HINTS: Hints = LOOKS;
    type In = StateIn;
    type Out = StateOut;

    async fn call<H: Host>(desk: &Desk<H>, input: StateIn) -> Result<StateOut, Trouble> {
        let session = desk.find_or_there(input.session.as_deref()).await?;
        let id = session.id.to_string();
        let state = desk.ask::<op::State>(SessionParams { session: id.clone() }).await?;
        let runs = desk.ask::<op::RunList>(RunListParams { session: Some(id) }).await?;
        let on = runs.iter().find(|run| matches!(run.state, RunState::Starting | RunState::Running));
        let environment = match input.environment {
            true => {
                let params = EnvParams { session: session.id.to_string(), all: false };
                let entries = desk.ask::<op::Env>(params).await?.entries;
                Some(entries.into_iter().take(NAMES_MAX).map(ChangedOut::from).collect())
            }
            false => None,
        };
        let handover = match input.environment {
            true => Some(desk.ask::<op::Handover>(SessionParams { session: session.id.to_string() }).await?.summary),
            false => None,
        };
        Ok(StateOut {
            session: session.name.to_string(),
            doing: Doing::from(&state),
            run: on.map(|run| run.id.to_string()),
            turn: holder(&session.turn),
            head: state.at,
            environment,
            handover: handover.filter(|summary| !summary.is_empty()),
        })
    }
}
