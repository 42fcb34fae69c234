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
    /// The rule.
    rule: String,
    /// Its reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    /// What would be allowed instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    instead: Vec<String>,
}

impl Shown for MayOut {
    fn text(&self) -> String {
        let why = if self.why.is_empty() { String::new() } else { format!(": {}", self.why) };
        let mut text = format!("{} by {}{why}", self.outcome, self.rule);
        self.instead.iter().for_each(|one| text.push_str(&format!("\ninstead: {one}")));
        text
    }
}

/// The tool.
pub struct May;

impl Operate for May {
    const NAME: &'static str = "may";
    const TITLE: &'static str = "Check a command";
    const DESCRIPTION: &'static str = "Tells whether you may run a command, without running it: allow, ask (a person \
        decides) or deny, and what would be allowed instead.";
    const HINTS: Hints = LOOKS;
    type In = MayIn;
    type Out = MayOut;

    async fn call<H: Host>(desk: &Desk<H>, input: MayIn) -> Result<MayOut, Trouble> {
        let session = desk.find_or_there(input.session.as_deref()).await?;
        let params =
            MayParams { command: input.command, session: Some(session.id.to_string()), ..MayParams::default() };
        let MayAnswer { outcome, rule, why, instead, .. } = desk.ask::<op::PolicyMay>(params).await?;
        Ok(MayOut { outcome, rule, why, instead })
    }
}
