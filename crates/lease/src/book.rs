//! The least that a store of leases must do, in memory.

use crate::record::{Answer, Change, Expect, Found, LeaseId};
use holdfast_types::SessionId;
use std::collections::BTreeMap;

/// Records and leases. Its clock is the caller's.
#[derive(Debug, Default)]
pub struct Book {
    revision: u64,
    leases: BTreeMap<LeaseId, (u64, u64)>,
    records: BTreeMap<SessionId, Found>,
}

impl Book {
    /// A new lease for so long.
    pub fn grant(&mut self, ttl_ms: u64, now_ms: u64) -> LeaseId {
        self.revision += 1;
        let id = LeaseId(self.revision as i64);
        self.leases.insert(id, (now_ms + ttl_ms, ttl_ms));
        id
    }

    /// Lets a lease go on; false where it is over.
    pub fn renew(&mut self, lease: LeaseId, now_ms: u64) -> bool {
        self.pass_time(now_ms);
        let Some((until, ttl)) = self.leases.get_mut(&lease) else { return false };
        *until = now_ms + *ttl;
        true
    }

    /// Whether a lease lives.
    pub fn is_live(&mut self, lease: LeaseId, now_ms: u64) -> bool {
        self.pass_time(now_ms);
        self.leases.contains_key(&lease)
    }

    /// A session's record.
    #[must_use]
    pub fn look(&self, session: SessionId) -> Option<Found> {
        self.records.get(&session).cloned()
    }

    /// Does a transaction.
    pub fn change(&mut self, change: &Change, now_ms: u64) -> Answer {
        self.pass_time(now_ms);
        let found = self.look(change.session);
        let is_as_expected = match (&change.expect, &found) {
            (Expect::Absent, found) => found.is_none(),
            (Expect::Same { fence }, Some(found)) => found.fence == *fence,
            (Expect::Over { fence, lease }, Some(found)) => {
                found.fence == *fence && !self.leases.contains_key(lease) && found.record.lease == *lease
            }
            (Expect::Same { .. } | Expect::Over { .. }, None) => false,
        };
        if !is_as_expected || !change.live.iter().all(|lease| self.leases.contains_key(lease)) {
            return Answer::Differs(found);
        }
        self.revision += 1;
        let fence = self.revision;
        match &change.put {
            Some(record) => self.records.insert(change.session, Found { record: record.clone(), fence }),
            None => self.records.remove(&change.session),
        };
        Answer::Done { fence }
    }

    fn pass_time(&mut self, now_ms: u64) {
        self.leases.retain(|_, (until, _)| now_ms < *until);
    }
}
