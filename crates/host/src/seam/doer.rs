//! Whose a process is that wants to start a program: by the same rules as in the graph ([`holdfast_graph::bind()`]), and kept, so that
//! most are known by their parent.

use crate::session::{Owned, Session};
use holdfast_graph::ProcessId;
use holdfast_observe::ancestry::{self, Kin};
use holdfast_types::{Actor, ActorId};
use std::cell::RefCell;
use std::collections::HashMap;

/// Processes that are remembered. When there are more, all are looked up anew.
const KNOWN_MAX: usize = 8192;

/// Whose a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Doer {
    pub actor: Actor,
    /// The act that started it, where that is known.
    pub act: Option<u64>,
}

impl Doer {
    /// Of a process of which nobody knows whose it is. No human: it is judged as a program.
    fn nobody() -> Doer {
        let handle = "service:unknown".parse().expect("a handle");
        Doer { actor: Actor { id: ActorId([0; 32]), handle }, act: None }
    }
}

/// What is known of a session's processes.
#[derive(Debug, Default)]
pub(super) struct Doers(RefCell<HashMap<ProcessId, (Doer, u32)>>);

impl Doers {
    fn put(&self, process: ProcessId, doer: Doer, group: u32) {
        let mut known = self.0.borrow_mut();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(process, (doer, group));
    }

    fn get(&self, process: ProcessId) -> Option<(Doer, u32)> {
        self.0.borrow().get(&process).cloned()
    }

    /// A process shares its parent's act, unless a shell started it as a job: `root` is the session's own shell.
    fn by_parent(&self, kin: &Kin, root: u32) -> Option<Doer> {
        if kin.parent == root || kin.id.pid == root {
            return None;
        }
        let (doer, group) = self.get(holdfast_observe::process_id(kin.parent)?)?;
        let is_job = kin.session == root && kin.group != group;
        (!is_job).then_some(doer)
    }
}

impl Session {
    /// Whose a process is, as far as that is at hand. Costs a look at `/proc` at most.
    pub(super) fn doer_at_hand(&self, pid: u32) -> Option<Doer> {
        let (alone, root) = {
            let state = self.state.borrow();
            (state.place.alone().cloned(), state.pid)
        };
        // Nobody else ever wrote here.
        if let Some(actor) = alone {
            return Some(Doer { actor, act: None });
        }
        let kin = ancestry::kin(pid)?;
        if let Some((doer, _)) = self.seam.doers.get(kin.id).filter(|_| pid != root) {
            return Some(doer);
        }
        let doer = self.seam.doers.by_parent(&kin, root)?;
        self.seam.doers.put(kin.id, doer.clone(), kin.group);
        Some(doer)
    }

    /// Whose a process is, and by which act: reads the session's processes and its journal, on another thread.
    pub(super) async fn doer(&self, pid: u32) -> Doer {
        // One look tells of all: whoever waited for it finds its own there.
        let _one_at_a_time = self.seam.looking.lock().await;
        if let Some(doer) = self.doer_at_hand(pid).filter(|doer| doer.act.is_some()) {
            return doer;
        }
        let Ok(tree) = self.tree().await else { return Doer::nobody() };
        let looked = crate::off_thread(move || {
            // It may be a thread of it that asks.
            let process = ancestry::process_of(pid).unwrap_or(pid);
            tree.belongings().map(|found| (process, found))
        });
        let Ok((process, found)) = looked.await else { return Doer::nobody() };
        let mut wanted = None;
        for Owned { id, group, actor, act, .. } in found {
            let doer = Doer { actor, act };
            if id.pid == process {
                wanted = Some(doer.clone());
            }
            self.seam.doers.put(id, doer, group);
        }
        wanted.unwrap_or_else(Doer::nobody)
    }
}
