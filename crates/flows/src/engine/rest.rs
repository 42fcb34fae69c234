//! Flows at rest: all that is in memory of them are their ids and timers. Their histories are read once something wakes them.
//!
//! That a flow is at rest, and what wakes it, is written to its row in the commit that brought it there, so that a service that
//! starts reads no history of it.

use super::{Engine, Timer};
use crate::store::StoreError;
use holdfast_flow::Wakes;
use std::collections::{HashSet, VecDeque};

/// Flows at rest that stay in memory, the last to change: who sleeps for a moment is not read again for it, and its worker need
/// not see the whole history. Few in tests, so that they see flows go and come back.
const WARM_MAX: usize = if cfg!(test) { 2 } else { 1_000 };

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Resting {
    ids: HashSet<String>,
    /// Those in memory, the longest at rest first, and where their histories were.
    warm: VecDeque<(String, u64)>,
}

impl Resting {
    pub(super) fn remove(&mut self, id: &str) -> bool {
        self.ids.remove(id)
    }
}

impl Engine {
    /// Flows whose histories were read.
    pub(super) fn flows_in_memory(&self) -> usize {
        self.live.len()
    }

    /// Flows that have not ended.
    pub(super) fn open_flows(&self) -> usize {
        self.live.len() + self.resting.ids.len()
    }

    /// A flow that was at rest when the last service ended.
    pub(super) fn leave_asleep(&mut self, id: String, wakes: &[Wakes]) {
        for Wakes { n, generation, fires, due } in wakes {
            self.clock.set(*due, Timer::Flow(id.clone(), *generation, *n, *fires));
        }
        self.resting.ids.insert(id);
    }

    /// Reads a flow at rest. Its timers are set already.
    pub(super) fn awaken(&mut self, id: &str) {
        if self.resting.remove(id) {
            // One that does not read is said when it is asked for.
            let _ = self.load(id);
            self.keep_warm(id);
        }
    }

    /// Writes which of the flows that changed are at rest now, as part of the same commit.
    pub(super) fn lay(&mut self) -> Result<(), StoreError> {
        for id in &self.touched {
            let Some(live) = self.live.get_mut(id) else { continue };
            let wakes = live.flow.at_rest();
            let laid = wakes.is_some().then_some(live.flow.seq);
            if laid != live.laid {
                self.store.lay(id, wakes.as_deref())?;
                live.laid = laid;
            }
        }
        Ok(())
    }

    /// A flow that came to rest stays in memory for a while.
    pub(super) fn keep_warm(&mut self, id: &str) {
        if let Some(seq) = self.live.get(id).and_then(|live| live.laid) {
            // One that sleeps again and again is one place further, and no further than that.
            if self.resting.warm.back().is_some_and(|(last, _)| last == id) {
                self.resting.warm.pop_back();
            }
            self.resting.warm.push_back((id.to_owned(), seq));
        }
    }

    /// Lets go of those that are at rest for the longest. Only once everything is committed and performed.
    pub(super) fn let_rest(&mut self) {
        while self.resting.warm.len() > WARM_MAX {
            let Some((id, seq)) = self.resting.warm.pop_front() else { return };
            let rests = self.live.get(&id).is_some_and(|live| live.laid == Some(seq) && live.leased.is_none());
            if rests {
                self.live.remove(&id);
                self.resting.ids.insert(id);
            }
        }
    }
}
