//! Doing what a human approved: once, judged anew, also where the host was killed in between.
//!
//! The answer is on disk as `approved` before anything is done, and `done` is written behind it. What a killed host left in between
//! its successor takes up: a run is known by its id and is not entered twice, a session likewise; an end is done again, and so is a
//! recovery, which finds the session running; a signal
//! may have been sent, so it is not sent again.

use super::{Act, Holding};
use crate::birth::Birth;
use crate::serve::Server;
use holdfast_wire::gate::{ApprovalId, ApprovalState};
use holdfast_wire::params::Life;
use holdfast_wire::runs::RunStartParams;
use holdfast_wire::{Code, Fault};
use std::rc::Rc;
use std::time::Duration;

/// Releases what was approved and closes what nobody answered, as long as the host lives. An earlier host may have left both.
pub(crate) async fn follow(server: Rc<Server>) {
    let left: Vec<Holding> = server.gate().held.borrow().iter().filter(|one| !one.state.is_over()).cloned().collect();
    for holding in left.into_iter().filter(|one| one.state == ApprovalState::Approved) {
        if matches!(holding.act, Act::Signal(_)) {
            let error = Some("the host stopped before it was done; it was not done again".to_owned());
            server.closed(Holding { state: ApprovalState::Failed, error, ..holding });
        } else {
            server.gate().released.borrow_mut().push(holding.id);
        }
    }
    loop {
        let stirred = server.gate().stirred.notified();
        tokio::pin!(stirred);
        stirred.as_mut().enable();
        let due = std::mem::take(&mut *server.gate().released.borrow_mut());
        for id in due {
            let server = Rc::clone(&server);
            tokio::task::spawn_local(async move { server.release(id).await });
        }
        server.lapse_approvals();
        match server.gate().next_lapse() {
            None => stirred.await,
            Some(at) => {
                let left = Duration::from_millis(at.saturating_sub(crate::now_ms()).saturating_add(1));
                let _ = tokio::time::timeout(left, stirred).await;
            }
        }
    }
}

impl Server {
    /// Those whose time is over, or whose session is.
    pub(crate) fn lapse_approvals(&self) {
        let now = crate::now_ms();
        let is_gone = |holding: &Holding| {
            let session = holding.session.map(|id| self.registry.find(&id.to_string()));
            session.is_some_and(|found| found.is_err() || found.is_ok_and(|session| session.view_life() == Life::Ended))
        };
        let over = |holding: &&Holding| {
            holding.state == ApprovalState::Open && (holding.expires_at_ms <= now || is_gone(holding))
        };
        let lapsed: Vec<Holding> = self.gate().held.borrow().iter().filter(over).cloned().collect();
        for holding in lapsed {
            self.closed(Holding { state: ApprovalState::Expired, ..holding });
        }
    }

    /// Keeps what became of one, and tells.
    pub(crate) fn closed(&self, holding: Holding) {
        if let Err(fault) = self.gate().keep(holding.clone()) {
            tracing::error!("{}", fault.message);
        }
        self.tell_held(&holding);
    }

    /// Does what was approved, and keeps what became of it.
    async fn release(&self, id: ApprovalId) {
        let Some(holding) = self.gate().held.borrow().get(id).cloned() else { return };
        let is_human = self.registry.shared.policy_is_human(&holding.by);
        let done = crate::shares::by(&holding.by, is_human, self.perform(&holding)).await;
        holdfast_pause::task_point("approval.released").await;
        let Some(known) = self.gate().held.borrow().get(id).cloned() else { return };
        match done {
            Ok(()) => self.closed(Holding { state: ApprovalState::Done, ..known }),
            // What it was about has changed: it was put back, and waits again.
            Err(_) if known.state == ApprovalState::Open => {}
            Err(fault) => self.closed(Holding { state: ApprovalState::Failed, error: Some(fault.message), ..known }),
        }
    }

    async fn perform(&self, holding: &Holding) -> Result<(), Fault> {
        let (by, id) = (&holding.by, Some(holding.id));
        let session = match holding.session {
            Some(session) => Some(self.registry.find_acting(&session.to_string(), by)?),
            None => None,
        };
        match (&holding.act, session) {
            (Act::Run(params), _) => {
                // Whoever wants its end asks for that.
                let params = RunStartParams { wait_ms: 0, approval_wait_ms: 0, ..(**params).clone() };
                self.run_begin(&params, by, id).await.map(drop)
            }
            (Act::Start(id_of, params), _) => {
                if self.registry.find(&id_of.to_string()).is_ok() {
                    return Ok(());
                }
                self.registry.may_start(by)?;
                let birth = Birth::of((**params).clone(), None, &self.registry.shared.config)?;
                self.registry.judge_start(by, &birth, holding.act.clone(), None, id).await?;
                self.registry.start_as(*id_of, None, birth, by).await.map(drop)
            }
            (Act::Signal(params), Some(session)) => session.signal(params, by, id).await,
            (Act::End(params), Some(session)) => session.end(params, by, id).await,
            // Who waits for it goes on by itself.
            (Act::Exec(_), _) => Ok(()),
            (Act::Recover(params), Some(_)) => self.registry.recover_one(params, by, id).await.map(drop),
            (Act::Checkpoint(params), Some(_)) => self.registry.checkpoint_make(params, by, id).await.map(drop),
            (Act::Restore(params), Some(_)) => self.registry.restore(params, by, id).await.map(drop),
            (Act::Write(held), Some(session)) => session.files_release(held, by, id).await,
            (Act::Fork(params), Some(_)) => self.registry.fork(params, by, id).await.map(drop),
            (Act::Discard(params), Some(_)) => self.registry.fork_discard(params, by, id).await.map(drop),
            (
                Act::Signal(_)
                | Act::End(_)
                | Act::Recover(_)
                | Act::Checkpoint(_)
                | Act::Restore(_)
                | Act::Write(_)
                | Act::Fork(_)
                | Act::Discard(_),
                None,
            ) => Err(Fault::new(Code::Internal, "it has no session")),
        }
    }
}
