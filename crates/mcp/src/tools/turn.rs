//! `turn`: who may write now.

use super::views::holder;
use super::{Hints, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_authority::Ask;
use holdfast_types::{Actor, Handle};
use holdfast_wire::operations::op;
use holdfast_wire::params::{Nothing, SessionParams, SessionView};
use holdfast_wire::turns::{GiveParams, TurnParams, TurnView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to do about the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Say who has it, and who waits.
    Get,
    /// Take it if it is free.
    Take,
    /// Ask for it: it comes when its holder lets go or is idle.
    Request,
    /// No longer wait for it.
    Withdraw,
    /// Hand it over, `to` somebody.
    Give,
    /// Let go of it.
    Release,
}

/// Whose turn, and what about it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnIn {
    /// Name or id of the session.
    session: String,
    /// `get` shows who has it; `take` takes it if it is free; `request` requests it; `withdraw` withdraws the request; `give` gives it to `to`; `release` releases it.
    action: Action,
    /// With `give`: the handle of the new holder, for example human:ann.
    #[serde(default)]
    to: Option<String>,
}

/// How the turn stands.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TurnOut {
    /// The session.
    session: String,
    /// Who has it; left out: it is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    /// Who waits for it, the next first.
    queue: Vec<String>,
    /// It is yours. Left out where only `get` was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    yours: Option<bool>,
    /// You wait behind so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u32>,
    /// Who froze the session, if it is frozen.
    #[serde(skip_serializing_if = "Option::is_none")]
    frozen_by: Option<String>,
}

impl Shown for TurnOut {
    fn text(&self) -> String {
        let mut text = match &self.holder {
            Some(holder) => format!("{holder} has the turn in {}", self.session),
            None => format!("the turn in {} is free", self.session),
        };
        if let Some(before) = self.before {
            text.push_str(&format!("; you are waiting, {before} before you"));
        } else if !self.queue.is_empty() {
            text.push_str(&format!("; waiting: {}", self.queue.join(", ")));
        }
        if let Some(by) = &self.frozen_by {
            text.push_str(&format!("; frozen by {by}"));
        }
        text
    }
}

impl TurnOut {
    fn of(session: &SessionView, turn: &TurnView) -> TurnOut {
        TurnOut {
            session: session.name.to_string(),
            holder: holder(turn),
            queue: turn.queue.iter().map(Handle::to_string).collect(),
            yours: None,
            before: None,
            frozen_by: turn.frozen.as_ref().map(|frozen| frozen.by.handle.to_string()),
        }
    }
}

/// The tool.
pub struct Turn;

impl Operate for Turn {
    const NAME: &'static str = "turn";
    const TITLE: &'static str = "Take, request or give the turn";
    const DESCRIPTION: &'static str = "One actor at a time may type into a session: the one with the turn. Typing \
        takes a free turn, so you need this tool only where others work too: `get` shows who has it, `request` waits \
        in line, `give` gives it to another actor, `release` releases it. A person can take it back at any time; \
        then stop and look.";
    const HINTS: Hints = Hints { reads: false, destroys: false, once: true, open: false };
    type In = TurnIn;
    type Out = TurnOut;

    async fn call<H: Host>(desk: &Desk<H>, input: TurnIn) -> Result<TurnOut, Trouble> {
        let session = desk.find(&input.session).await?;
        let params = || TurnParams { session: session.id.to_string(), client: None, proof: None };
        let answer = match input.action {
            Action::Get => {
                let turn = desk.ask::<op::Turn>(SessionParams { session: session.id.to_string() }).await?;
                return Ok(TurnOut::of(&session, &turn));
            }
            Action::Take => desk.act::<op::Take>(session.id, Ask::Take, params()).await?,
            Action::Request => desk.act::<op::Request>(session.id, Ask::Request, params()).await?,
            Action::Withdraw => desk.act::<op::Withdraw>(session.id, Ask::Withdraw, params()).await?,
            Action::Release => desk.act::<op::Release>(session.id, Ask::Release, params()).await?,
            Action::Give => {
                let to = receiver(desk, input.to.as_deref()).await?;
                let params = GiveParams { session: session.id.to_string(), client: None, to: to.clone(), proof: None };
                desk.act::<op::Give>(session.id, Ask::Give { to }, params).await?
            }
        };
        let out = TurnOut::of(&session, &answer.turn);
        Ok(TurnOut { yours: Some(answer.fence.is_some()), before: answer.before, ..out })
    }
}

/// The actor that is meant by a handle.
async fn receiver<H: Host>(desk: &Desk<H>, to: Option<&str>) -> Result<Actor, Trouble> {
    let to: Handle = to
        .ok_or_else(|| Trouble::bad("`give` needs `to`, for example human:ann"))?
        .parse()
        .map_err(|error| Trouble::bad(format!("to: {error}")))?;
    let known = desk.ask::<op::Actors>(Nothing {}).await?;
    let found = known.into_iter().map(|view| view.actor).find(|actor| actor.handle == to);
    found.ok_or_else(|| {
        Trouble::new("no_such_actor", format!("this host does not know {to}")).hint("`sessions` shows who is attached.")
    })
}
