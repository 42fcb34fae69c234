//! `recover_session`: another life for a session that was lost.

use super::{Hints, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_authority::Ask;
use holdfast_wire::lives::RecoverParams;
use holdfast_wire::operations::op;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which session, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecoverIn {
    /// Name or id of the session.
    session: String,
    /// Run the session's command again. Without it, a command that is not a shell gets a shell in its place.
    #[serde(default)]
    run: bool,
}

/// A session that runs again.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RecoverOut {
    /// The session.
    session: String,
    /// Which life of it this is.
    incarnation: u32,
    /// It was lost, and this call began its life; false: it was running already.
    began: bool,
    /// The shell that runs in place of its command.
    #[serde(skip_serializing_if = "Option::is_none")]
    stand_in: Option<String>,
}

impl Shown for RecoverOut {
    fn text(&self) -> String {
        let RecoverOut { session, incarnation, began, stand_in } = self;
        if !began {
            return format!("{session} is running (life {incarnation}); nothing to recover");
        }
        let instead =
            stand_in.as_ref().map_or_else(String::new, |shell| format!("; {shell} runs in place of its command"));
        format!("{session} is running again (life {incarnation}){instead}; nothing that ran before was run again")
    }
}

/// The tool.
pub struct Recover;

impl Operate for Recover {
    const NAME: &'static str = "recover_session";
    const TITLE: &'static str = "Recover a lost session";
    const DESCRIPTION: &'static str = "Gives a session whose `life` is `lost` (after a reboot, or when its keeper was killed) \
        another life: same name, history, directory and environment, new processes. Programs and runs that were on are gone; \
        nothing is run again unless `run` is set.";
    const HINTS: Hints = Hints { reads: false, destroys: false, once: true, open: false };
    type In = RecoverIn;
    type Out = RecoverOut;

    async fn call<H: Host>(desk: &Desk<H>, input: RecoverIn) -> Result<RecoverOut, Trouble> {
        let session = desk.find_or_there(Some(&input.session)).await?;
        let run = input.run;
        let params = RecoverParams { session: session.id.to_string(), run, ..RecoverParams::default() };
        let answer = desk.act::<op::Recover>(session.id, Ask::Recover { run }, params).await?;
        let view = answer.session;
        Ok(RecoverOut {
            session: view.name.to_string(),
            incarnation: view.incarnation,
            began: answer.began,
            stand_in: view.stand_in,
        })
    }
}
