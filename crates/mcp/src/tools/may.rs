//! `may`: what the policy says of a command, before it is run.

use super::{Hints, LOOKS, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_wire::gate::{MayAnswer, MayParams};
use holdfast_wire::operations::op;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to judge.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MayIn {
    /// The command.
    command: String,
    /// Session. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
}

/// What the policy says.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MayOut {
    /// `allow`, `ask` or `deny`.
    outcome: String,
    /// By which rule, why, and what would be allowed instead.
    why: String,
}

impl Shown for MayOut {
    fn text(&self) -> String {
        format!("{} by {}", self.outcome, self.why)
    }
}

/// The tool.
pub struct May;

impl Operate for May {
    const NAME: &'static str = "may";
    const TITLE: &'static str = "Check a command";
    const DESCRIPTION: &'static str =
        "Tells whether a command would be allowed, asked about (a person decides) or denied.";
    const HINTS: Hints = LOOKS;
    type In = MayIn;
    type Out = MayOut;

    async fn call<H: Host>(desk: &Desk<H>, input: MayIn) -> Result<MayOut, Trouble> {
        let session = desk.find_or_there(input.session.as_deref()).await?;
        let params =
            MayParams { command: input.command, session: Some(session.id.to_string()), ..MayParams::default() };
        let MayAnswer { outcome, rule, why, instead, .. } = desk.ask::<op::PolicyMay>(params).await?;
        let why = if why.is_empty() { rule } else { format!("{rule}: {why}") };
        let why = std::iter::once(why).chain(instead.into_iter().map(|one| format!("instead: {one}")));
        Ok(MayOut { outcome, why: why.collect::<Vec<_>>().join("; ") })
    }
}
