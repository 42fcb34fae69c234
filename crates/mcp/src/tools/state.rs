//! `state`: what a session is doing.

use super::views::{Doing, holder};
use super::{Hints, LOOKS, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_wire::operations::op;
use holdfast_wire::params::SessionParams;
use holdfast_wire::runs::{RunListParams, RunState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateIn {
    /// Name or id of the session. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
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
        text
    }
}

/// The tool.
pub struct State;

impl Operate for State {
    const NAME: &'static str = "state";
    const TITLE: &'static str = "Show what a session is doing";
    const DESCRIPTION: &'static str = "Reports, according to the operating system, whether a session is at its \
        prompt, working, waiting for input (a line, a password, a choice: with the prompt's text), showing a \
        full-screen program, or ended; and which run is active and who has the turn to type. What cannot be known is \
        `unknown`.";
    const HINTS: Hints = LOOKS;
    type In = StateIn;
    type Out = StateOut;

    async fn call<H: Host>(desk: &Desk<H>, input: StateIn) -> Result<StateOut, Trouble> {
        let session = desk.find_or_there(input.session.as_deref()).await?;
        let id = session.id.to_string();
        let state = desk.ask::<op::State>(SessionParams { session: id.clone() }).await?;
        let runs = desk.ask::<op::RunList>(RunListParams { session: Some(id) }).await?;
        let on = runs.iter().find(|run| matches!(run.state, RunState::Starting | RunState::Running));
        Ok(StateOut {
            session: session.name.to_string(),
            doing: Doing::from(&state),
            run: on.map(|run| run.id.to_string()),
            turn: holder(&session.turn),
            head: state.at,
        })
    }
}
