//! Notifications for subscribers: a resource changed, sessions came or went.
//!
//! Asks the host by long polls, and only while somebody wants to know.

use crate::desk::ASK_MS;
use crate::host::{Host, ask, ask_with_bytes};
use crate::resources::{Address, Part};
use holdfast_types::SessionId;
use holdfast_wire::graphs::WatchGraphParams;
use holdfast_wire::operations::op;
use holdfast_wire::params::{ListParams, ReadParams, SessionParams};
use holdfast_wire::runs::RunParams;
use holdfast_wire::{Code, Fault};
use std::time::Duration;

/// Between two words of the same resource: a flood of output is one change after the other.
const PAUSE: Duration = Duration::from_millis(250);
/// Before the host is asked again after it failed.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// Between two looks at which sessions there are: soon enough for a list that a person has before them.
const LOOK_PAUSE: Duration = Duration::from_secs(2);

/// Where changes are followed from.
enum Mark {
    /// A run: its end.
    Run,
    Head(u64),
    Graph(Option<u64>),
}

/// Follows one resource: each call of [`Follow::changed`] comes back at its next change.
pub struct Follow<H> {
    host: H,
    session: String,
    mark: Mark,
}

impl<H: Host> Follow<H> {
    /// From now on.
    pub async fn new(host: &H, address: &Address) -> Result<Follow<H>, Fault> {
        if address.part == Part::Run {
            let run = address.session.clone();
            ask::<op::RunGet>(host, RunParams { run: run.clone().into(), wait_ms: 0 }).await?;
            return Ok(Follow { host: host.quietly(), session: run, mark: Mark::Run });
        }
        let view = ask::<op::Get>(host, SessionParams { session: address.session.clone() }).await?;
        let mark = match address.part {
            Part::Screen | Part::Log => Mark::Head(view.head),
            Part::Graph => Mark::Graph(None),
            Part::Run => Mark::Run,
        };
        Ok(Follow { host: host.quietly(), session: view.id.to_string(), mark })
    }

    /// Waits for a change. False: there will be none any more.
    pub async fn changed(&mut self) -> bool {
        loop {
            match self.once().await {
                Ok(Some(goes_on)) => {
                    tokio::time::sleep(PAUSE).await;
                    return goes_on;
                }
                Ok(None) => {}
                Err(gone)
                    if is_over(&gone)
                        || matches!(gone.code, Code::NotFound | Code::NoSuchRun | Code::Ended | Code::Denied) =>
                {
                    return false;
                }
                Err(_) => tokio::time::sleep(FAILED_PAUSE).await,
            }
        }
    }

    /// One question: none where nothing has changed.
    async fn once(&mut self) -> Result<Option<bool>, Fault> {
        let session = self.session.clone();
        match &mut self.mark {
            Mark::Run => {
                let params = RunParams { run: session.into(), wait_ms: ASK_MS };
                let answer = ask::<op::RunGet>(&self.host, params).await?;
                Ok(answer.run.state.is_over().then_some(false))
            }
            Mark::Head(head) => {
                let params = ReadParams { session, from: Some(*head), max: Some(1), wait_ms: ASK_MS };
                let (answer, _) = ask_with_bytes::<op::Read>(&self.host, params, Vec::new()).await?;
                let moved = answer.head > *head;
                *head = answer.head;
                Ok((moved || answer.end).then_some(!answer.end))
            }
            Mark::Graph(after) => {
                let params = WatchGraphParams { session, after: *after, wait_ms: ASK_MS };
                let answer = ask::<op::WatchGraph>(&self.host, params).await?;
                let begins = after.is_none();
                *after = Some(answer.to);
                Ok((!begins && !answer.events.is_empty()).then_some(true))
            }
        }
    }
}

/// Follows which sessions there are. By looking now and then: immediate notifications would make the host follow every process of
/// every session, for a list that few clients look at again.
pub struct FollowSessions<H> {
    host: H,
    known: Option<Vec<SessionId>>,
}

impl<H: Host> FollowSessions<H> {
    /// From now on.
    pub fn new(host: &H) -> FollowSessions<H> {
        FollowSessions { host: host.quietly(), known: None }
    }

    /// Waits until a session has come or gone.
    pub async fn changed(&mut self) {
        loop {
            match ask::<op::List>(&self.host, ListParams::default()).await {
                Ok(sessions) => {
                    let now: Vec<SessionId> = sessions.iter().map(|session| session.id).collect();
                    let before = self.known.replace(now);
                    if before.is_some() && before != self.known {
                        return;
                    }
                }
                Err(fault) if is_over(&fault) => return std::future::pending().await,
                // Where there is no host, nothing comes or goes.
                Err(_) => {}
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }
}

/// The token that asks is good no more, or its actor is forgotten: it asks in vain from now on.
fn is_over(fault: &Fault) -> bool {
    fault.code == Code::Unidentified
}
