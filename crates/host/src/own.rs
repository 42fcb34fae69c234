//! Holdfast's own processes: this host, the keepers it is or was connected to, and what holds the HTTP port for the next host.
//!
//! A host that a program in a session started is a descendant of that session's keeper, and so are the keepers it starts. They
//! are no part of the session: it is frozen, looked at and ended without them. Known are they by pid and start time, from the
//! kernel's word on who listens at a keeper's socket; never by a name, which every program chooses for itself.

use holdfast_graph::ProcessId;
use holdfast_observe::{Spared, process_id};
use holdfast_types::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Which processes are Holdfast's own now.
#[derive(Debug, Default)]
pub(crate) struct Own(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    keepers: HashMap<SessionId, ProcessId>,
    holder: Option<ProcessId>,
    /// A keeper that has no session yet.
    spare: Option<ProcessId>,
    spared: Arc<Spared>,
}

impl Own {
    /// The keepers that are known; the caller itself always is.
    pub fn spared(&self) -> Arc<Spared> {
        Arc::clone(&self.known().spared)
    }

    /// Which session each of them keeps.
    pub fn keepers(&self) -> HashMap<ProcessId, SessionId> {
        self.known().keepers.iter().map(|(session, keeper)| (*keeper, *session)).collect()
    }

    /// The process that keeps a session now.
    pub fn keeps(&self, session: SessionId, pid: u32) {
        let Some(keeper) = process_id(pid) else { return };
        let mut known = self.known();
        let former = known.keepers.insert(session, keeper);
        if former != Some(keeper) {
            let spared = Arc::make_mut(&mut known.spared);
            former.into_iter().for_each(|former| spared.remove(former));
            spared.add(keeper);
        }
    }

    /// The process that holds the HTTP port now.
    pub fn holds(&self, pid: Option<u32>) {
        let holder = pid.and_then(process_id);
        let mut known = self.known();
        let former = std::mem::replace(&mut known.holder, holder);
        let spared = Arc::make_mut(&mut known.spared);
        former.into_iter().for_each(|former| spared.remove(former));
        holder.into_iter().for_each(|holder| spared.add(holder));
    }

    /// The keeper that waits for a session now. One that got its session is known by that.
    pub fn spares(&self, pid: Option<u32>) {
        let spare = pid.and_then(process_id);
        let mut known = self.known();
        let former = std::mem::replace(&mut known.spare, spare);
        let is_kept = former.is_some_and(|former| known.keepers.values().any(|keeper| *keeper == former));
        let spared = Arc::make_mut(&mut known.spared);
        former.into_iter().filter(|_| !is_kept).for_each(|former| spared.remove(former));
        spare.into_iter().for_each(|spare| spared.add(spare));
    }

    /// A session's keeper is gone.
    pub fn ended(&self, session: SessionId) {
        let mut known = self.known();
        if let Some(former) = known.keepers.remove(&session) {
            Arc::make_mut(&mut known.spared).remove(former);
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
