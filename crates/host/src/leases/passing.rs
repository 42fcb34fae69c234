//! A leased session is passed on to another host: its record changes hands in one transaction.
//!
//! What is to happen is on this host's disk before it is asked for. Where the answer is lost, this host or the next one makes sure: it writes
//! the record anew as its own, which can only happen if the other transaction has not, and which the other cannot follow.

use super::Leases;
use holdfast_lease::{Answer, Change, Found, Input, LeaseId, Record};
use holdfast_types::SessionId;
use holdfast_wire::moves::MoveHome;
use holdfast_wire::{Code, Fault};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Between two tries while the store is away: the session stands still meanwhile.
const AGAIN: Duration = Duration::from_millis(500);

/// To whom a session is about to be passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// What its record will say.
    pub to: Record,
    /// The fence under which it is this host's.
    pub fence: u64,
}

fn unsure() -> Fault {
    Fault::new(Code::Busy, "its lease is not certain at this moment")
        .hint("try again once `holdfast info` says that it is held")
}

impl Leases {
    /// This host, as one to which sessions can be passed on.
    pub async fn own_home(&self) -> Result<MoveHome, Fault> {
        let LeaseId(lease) = self.own().await?;
        Ok(MoveHome { host: self.host.clone(), lease: format!("{lease:016x}") })
    }

    /// What passing a session on to this host would be.
    pub async fn intent(&self, session: SessionId, incarnation: u32, home: &MoveHome) -> Result<Intent, Fault> {
        let lease = i64::from_str_radix(&home.lease, 16)
            .map_err(|_| Fault::new(Code::BadRequest, format!("{:?} is not the number of a lease", home.lease)))?;
        let lease = LeaseId(lease);
        if !super::store::is_live(&self.etcd, lease).await.map_err(|why| super::away(&why))? {
            return Err(Fault::new(Code::Busy, format!("{} has no lease in the store that this host uses", home.host))
                .hint("both hosts need the same etcd cluster under `lease` in config.toml"));
        }
        let (fence, _) = self.held(session).ok_or_else(unsure)?;
        Ok(Intent { to: Record { host: home.host.clone(), lease, incarnation }, fence })
    }

    /// Passes a session on that stands still. True: it is the other host's, for good. False: it is this host's as before.
    pub async fn pass(&self, session: SessionId, intent: &Intent) -> bool {
        let Ok(own) = self.own().await else { return false };
        // No renewal says anything about it before the answer is known.
        self.hear(Input::Passing { session });
        let change = Change::pass(session, own, intent.fence, intent.to.clone());
        match super::store::change(&self.etcd, &change).await {
            Answer::Done { .. } => {
                self.hear(Input::Passed { session });
                true
            }
            Answer::Differs(found) => self.is_passed(session, intent, found.as_ref()),
            Answer::Failed => self.settle_pass(session, intent).await,
        }
    }

    /// Whether it was passed on, where the answer was lost, perhaps with the host that asked. Asks until the store answers.
    pub async fn settle_pass(&self, session: SessionId, intent: &Intent) -> bool {
        loop {
            if let Ok(own) = self.own().await {
                let incarnation = intent.to.incarnation;
                let keep = Change::keep(session, own, intent.fence, &self.host, incarnation);
                match super::store::change(&self.etcd, &keep).await {
                    Answer::Done { fence } => {
                        self.hear(Input::Claimed { session, fence, incarnation });
                        return false;
                    }
                    Answer::Differs(found) => return self.is_passed(session, intent, found.as_ref()),
                    Answer::Failed => {}
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    fn is_passed(&self, session: SessionId, intent: &Intent, found: Option<&Found>) -> bool {
        let is_passed = found.is_some_and(|found| found.record.lease == intent.to.lease);
        // Where it is not, a look tells how it stands.
        self.hear(if is_passed {
            Input::Passed { session }
        } else {
            Input::Changed { session, answer: Answer::Failed }
        });
        is_passed
    }
}
