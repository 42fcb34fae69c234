//! A session's record, and the transactions by which it changes.

use holdfast_types::SessionId;
use serde::{Deserialize, Serialize};

/// The number that the store gave a host's lease. No two leases ever have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseId(pub i64);

/// Where a session's home is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The home's name, for people.
    pub host: String,
    /// The lease that makes it so.
    pub lease: LeaseId,
    /// Which life of the session this is.
    pub incarnation: u32,
}

/// A record as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it says.
    pub record: Record,
    /// The revision of the store at which it was written: larger with each change of any record.
    pub fence: u64,
}

/// What must be true of a record for a change to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// There is none.
    Absent,
    /// It is as it was written under this fence.
    Same {
        /// The fence.
        fence: u64,
    },
    /// The same, and the lease it names is over.
    Over {
        /// The fence.
        fence: u64,
        /// The lease.
        lease: LeaseId,
    },
}

/// One transaction. It happens whole, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Whose record.
    pub session: SessionId,
    /// What must be true of it.
    pub expect: Expect,
    /// Leases that must live: the asker's own, and that of who is given the session.
    pub live: Vec<LeaseId>,
    /// What it says then; none: it is removed.
    pub put: Option<Record>,
}

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It happened, at this revision.
    Done {
        /// The fence that the record has now.
        fence: u64,
    },
    /// It did not: the record is this.
    Differs(Option<Found>),
    /// Nobody answered: it may have happened or not.
    Failed,
}

/// Why a session cannot have a life here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// This host has no lease of its own, or does not know whether it has.
    NoLease,
    /// Another host has it, and its lease lives.
    Held {
        /// Who.
        by: Found,
    },
}

impl Change {
    /// The change by which a lease takes a session for a new life, given what was found.
    ///
    /// # Errors
    ///
    /// Another lease has it, and `is_live` says that it lives.
    pub fn claim(
        session: SessionId,
        own: LeaseId,
        host: &str,
        incarnation: u32,
        found: Option<Found>,
        is_live: bool,
    ) -> Result<Change, Refusal> {
        let expect = match found {
            None => Expect::Absent,
            Some(Found { record, fence }) if record.lease == own => Expect::Same { fence },
            Some(by) if is_live => return Err(Refusal::Held { by }),
            Some(Found { record, fence }) => Expect::Over { fence, lease: record.lease },
        };
        let put = Some(Record { host: host.to_owned(), lease: own, incarnation });
        Ok(Change { session, expect, live: vec![own], put })
    }

    /// The change by which a holder gives a session to another lease: at no moment has it no home, or two.
    #[must_use]
    pub fn pass(session: SessionId, own: LeaseId, fence: u64, to: Record) -> Change {
        Change { session, expect: Expect::Same { fence }, live: vec![own, to.lease], put: Some(to) }
    }

    /// The change by which a holder keeps a session that it may have given away: once it has happened, an earlier [`Change::pass`] under
    /// this fence, whose answer was lost, happens no more.
    #[must_use]
    pub fn keep(session: SessionId, own: LeaseId, fence: u64, host: &str, incarnation: u32) -> Change {
        let put = Some(Record { host: host.to_owned(), lease: own, incarnation });
        Change { session, expect: Expect::Same { fence }, live: vec![own], put }
    }

    /// The change by which a holder lets go of a session that has ended.
    #[must_use]
    pub fn release(session: SessionId, own: LeaseId, fence: u64) -> Change {
        Change { session, expect: Expect::Same { fence }, live: vec![own], put: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Book;

    #[test]
    fn of_passing_on_and_keeping_under_one_fence_one_happens_in_whichever_order_they_arrive() {
        let session = SessionId::from_random_bits(1);
        for keeps_first in [false, true] {
            let mut book = Book::default();
            let (own, other) = (book.grant(5000, 0), book.grant(5000, 0));
            let claim = Change::claim(session, own, "a", 1, None, false).unwrap();
            let Answer::Done { fence } = book.change(&claim, 0) else { panic!("it is free") };
            let to = Record { host: "b".into(), lease: other, incarnation: 1 };
            let pass = Change::pass(session, own, fence, to);
            let keep = Change::keep(session, own, fence, "a", 1);
            let order = if keeps_first { [&keep, &pass] } else { [&pass, &keep] };
            let [first, second] = order.map(|change| book.change(change, 1));
            assert!(
                matches!(first, Answer::Done { .. }) && matches!(second, Answer::Differs(_)),
                "{first:?} {second:?}"
            );
            let holder = book.look(session).unwrap().record.lease;
            assert_eq!(holder, if keeps_first { own } else { other });
        }
    }
}
