//! `interrupt`: Ctrl-C.

use super::run::{RunOut, shown};
use super::write::type_bytes;
use super::{Hints, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_authority::Ask;
use holdfast_types::terms_of;
use holdfast_wire::operations::op;
use holdfast_wire::runs::{RunAnswer, RunCancelParams, RunListParams, RunParams, RunState};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long an interrupted run may take to end before we say that it goes on.
const CANCEL_MS: u64 = 5_000;

/// What to interrupt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterruptIn {
    /// The run's handle or key.
    #[serde(default)]
    run: Option<String>,
    /// Or name or id of a session: its foreground program.
    #[serde(default)]
    session: Option<String>,
}

/// What came of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InterruptOut {
    /// The session.
    session: String,
    /// The run, if it was one: `state` says whether it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<JsonObject>")]
    run: Option<RunOut>,
}

impl Shown for InterruptOut {
    fn text(&self) -> String {
        match &self.run {
            Some(run) => run.text(),
            None => format!("pressed Ctrl-C in {}: `session_state` shows the result", self.session),
        }
    }
}

/// The tool.
pub struct Interrupt;

impl Operate for Interrupt {
    const NAME: &'static str = "interrupt";
    const TITLE: &'static str = "Interrupt a command";
    const DESCRIPTION: &'static str = "Presses Ctrl-C: interrupts a run by its handle or key, or the foreground program of \
        a session. A program may ignore it; if it keeps running, the answer says so.";
    const HINTS: Hints = Hints { reads: false, destroys: true, once: false, open: false };
    type In = InterruptIn;
    type Out = InterruptOut;

    async fn call<H: Host>(desk: &Desk<H>, input: InterruptIn) -> Result<InterruptOut, Trouble> {
        let (session, run) = match (&input.run, &input.session) {
            (Some(run), None) => {
                let answer = desk.ask::<op::RunGet>(RunParams { run: run.clone().into(), wait_ms: 0 }).await?;
                let run = answer.run.id;
                if answer.run.state.is_over() {
                    let session = answer.run.name.to_string();
                    return Ok(InterruptOut { session, run: Some(shown(desk, answer, None, None).await?) });
                }
                (desk.find(&answer.run.session.to_string()).await?, Some(run))
            }
            (None, session) => {
                let session = desk.find_or_own(session.as_deref()).await?;
                let runs = desk.ask::<op::RunList>(RunListParams { session: Some(session.id.to_string()) }).await?;
                let on = runs.iter().find(|run| matches!(run.state, RunState::Starting | RunState::Running));
                (session, on.map(|run| run.id))
            }
            (Some(_), Some(_)) => return Err(Trouble::bad("give either `run` or `session`")),
        };
        let name = session.name.to_string();
        let Some(run) = run else {
            type_bytes(desk, &session, b"\x03".to_vec()).await?;
            return Ok(InterruptOut { session: name, run: None });
        };
        let ask = Ask::other(const { terms_of("run.cancel") }, run.to_string());
        let params = RunCancelParams { run: run.into(), wait_ms: CANCEL_MS, proof: None };
        let answer = desk.act::<op::RunCancel>(session.id, ask, params).await?;
        Ok(InterruptOut {
            session: name,
            run: Some(shown(desk, RunAnswer { existing: false, ..answer }, None, None).await?),
        })
    }
}
