//! What changed when: whoever watches all flows asks for those that changed since, and waits without a tick.
//!
//! The number is the time of the change in milliseconds, or one more than the last: it grows within one life of the service, and
//! from one life to the next unless somebody sets the clock back; who names a number that was never given gets everything.

use super::views::{in_json, unrecorded};
use super::{Awaited, Engine, LISTED_MAX, Waiter};
use crate::protocol::{FlowView, Trouble};
use holdfast_types::TimeMs;
use std::collections::{BTreeMap, HashMap};

/// Changes that are remembered: who is further behind gets the whole list, which is no longer.
const KEPT_MAX: usize = 2 * LISTED_MAX;

/// See the module.
#[derive(Debug)]
pub(super) struct Changes {
    /// Everything that is not below has not changed since.
    since: u64,
    last: u64,
    of: HashMap<String, u64>,
    order: BTreeMap<u64, String>,
}

impl Changes {
    pub(super) fn new(now_ms: TimeMs) -> Changes {
        Changes { since: now_ms, last: now_ms, of: HashMap::new(), order: BTreeMap::new() }
    }

    pub(super) fn note(&mut self, id: &str, now_ms: TimeMs) {
        self.last = now_ms.max(self.last + 1);
        if let Some(before) = self.of.insert(id.to_owned(), self.last) {
            self.order.remove(&before);
        }
        self.order.insert(self.last, id.to_owned());
        if self.order.len() > KEPT_MAX
            && let Some((oldest, id)) = self.order.pop_first()
        {
            self.of.remove(&id);
            self.since = oldest;
        }
    }

    /// When a flow changed last, as far as that is known.
    pub(super) fn of(&self, id: &str) -> u64 {
        self.of.get(id).copied().unwrap_or(self.since)
    }

    /// What changed later, the newest first; none: nobody knows.
    fn later(&self, after: u64) -> Option<Vec<&str>> {
        let is_known = (self.since..=self.last).contains(&after);
        is_known.then(|| self.order.range(after + 1..).rev().map(|(_, id)| id.as_str()).collect())
    }
}

impl Engine {
    /// Flows, the newest first, or those that changed later, also if they have ended by then; of one actor alone where it may see no
    /// others.
    pub(super) fn list(&self, all: bool, after: u64, only: Option<&str>) -> Result<Vec<FlowView>, Trouble> {
        let rows;
        let ids: Vec<&str> = match self.changes.later(after) {
            Some(ids) => ids,
            None => {
                rows = self.store.rows(all, LISTED_MAX).map_err(|error| unrecorded(&error))?;
                rows.iter().map(|row| row.id.as_str()).collect()
            }
        };
        let views = ids.into_iter().filter_map(|id| self.view_of(id).ok());
        Ok(views.filter(|view| only.is_none_or(|by| view.by == by)).take(LISTED_MAX).collect())
    }

    /// Something changed: those who wait for that are told.
    pub(super) fn tell_watchers(&mut self) {
        let watching: Vec<u64> = self
            .waiters
            .iter()
            .filter(|(_, waiter)| matches!(waiter.what, Awaited::Change { .. }))
            .map(|(number, _)| *number)
            .collect();
        for number in watching {
            let Some(Waiter { what: Awaited::Change { all, after, only }, .. }) = self.waiters.get(&number) else {
                continue;
            };
            let answer = self.list(*all, *after, only.as_deref());
            let is_new = answer.as_ref().map_or(true, |flows| !flows.is_empty());
            if is_new && let Some(Waiter { id, reply, .. }) = self.waiters.remove(&number) {
                let _ = reply.send((id, answer.and_then(|flows| in_json(&flows))));
            }
        }
    }
}
