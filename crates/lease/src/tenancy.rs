//! A host's side: one lease, renewed for all of its sessions, and what that means for each of them.
//!
//! A session that lives here is *held* while the host knows that its lease lives and the record is its own. When the deadline passes without
//! a renewal the lease is *unknown*: the keeper has stopped the tree by itself. A renewal that comes through after all says that nobody
//! could have claimed it, and the tree goes on. Where the store says that the lease is over, the host gets another one and takes each record
//! anew, on the condition that it is still as it wrote it; where it is not, the session was *claimed*, and its old life here is ended.

use crate::record::{Answer, Change, Expect, Found, LeaseId, Record};
use holdfast_types::SessionId;
use std::collections::BTreeMap;

/// Renewals within one lease: two may fail.
const RENEWALS: u64 = 3;
/// Between two tries while the store is away, in parts of a lease.
const TRIES: u64 = 12;

/// What the host was configured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The host's name, for people.
    pub host: String,
    /// How long a lease lives without a renewal.
    pub ttl_ms: u64,
    /// So much before its end the holder takes it to be over: what a keeper is late under load, and what a slow clock loses.
    pub margin_ms: u64,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Time passed, or nothing.
    Tick,
    /// The store gave this host a lease for so long; asked for at `sent_ms`.
    Granted {
        /// The lease.
        lease: LeaseId,
        /// When it was asked for.
        sent_ms: u64,
        /// For how long it is, which may be more than was asked for.
        ttl_ms: u64,
    },
    /// The store renewed it.
    Renewed {
        /// When that was asked for.
        sent_ms: u64,
        /// For how long.
        ttl_ms: u64,
    },
    /// The store did not answer when a lease was asked for, or its renewal.
    Failed,
    /// The store says that the lease is over.
    Over,
    /// A life that began under an earlier host of this home goes on here; its record was written under this fence.
    TakenUp {
        /// The session.
        session: SessionId,
        /// The fence.
        fence: u64,
        /// Which life it is.
        incarnation: u32,
    },
    /// This host claimed a session, and a life of it begins.
    Claimed {
        /// The session.
        session: SessionId,
        /// The fence.
        fence: u64,
        /// Which life it is.
        incarnation: u32,
    },
    /// What a session's record is.
    Looked {
        /// The session.
        session: SessionId,
        /// The record; none: there is none.
        found: Option<Found>,
    },
    /// What became of a change.
    Changed {
        /// The session.
        session: SessionId,
        /// The answer.
        answer: Answer,
    },
    /// A session that lived here has ended for good: nobody needs its record.
    Ended {
        /// The session.
        session: SessionId,
    },
    /// A session is about to be given to another host, and stands still: no renewal lets it go on before that is known. What came of it is
    /// [`Input::Passed`], or [`Input::Changed`] where it may not have happened: then the record is looked at.
    Passing {
        /// The session.
        session: SessionId,
    },
    /// A session was given to another host: its record is that one's.
    Passed {
        /// The session.
        session: SessionId,
    },
}

/// What to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Ask the store for a lease.
    Grant,
    /// Ask it to renew this one.
    Renew(LeaseId),
    /// Look at a session's record.
    Look(SessionId),
    /// Do a transaction.
    Change(Change),
    /// Tell a session's keeper until when it may run.
    Deadline {
        /// The session.
        session: SessionId,
        /// The lease's fence.
        fence: u64,
        /// Until when, by the clock of the inputs.
        until_ms: u64,
    },
    /// End a session's life here: another host has claimed it.
    End {
        /// The session.
        session: SessionId,
        /// Who; none where the record is gone.
        by: Option<Found>,
    },
}

/// How a session's lease stands, as far as the host knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may run until then.
    Held {
        /// Until when.
        until_ms: u64,
    },
    /// The host does not know: it stands still.
    Unknown,
    /// Another host has it.
    Claimed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hold {
    /// The record says our lease.
    Held,
    /// It did when it was written; it must be looked at.
    Unsure,
    /// It said a lease of ours that is over: it must be taken anew.
    Lapsed,
    /// Somebody else's.
    Claimed,
    /// Its life is over: the record is to go.
    Leaving,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Tenant {
    hold: Hold,
    fence: u64,
    incarnation: u32,
    /// A question about it is on its way.
    is_asked: bool,
}

/// A host's lease, and its sessions.
#[derive(Debug)]
pub struct Tenancy {
    terms: Terms,
    lease: Option<LeaseId>,
    until_ms: u64,
    /// A question about the lease is on its way.
    is_asked: bool,
    next_ms: u64,
    tenants: BTreeMap<SessionId, Tenant>,
}

impl Tenancy {
    /// Of a host that begins; with the lease that an earlier one of the same home had, where there was one.
    #[must_use]
    pub fn new(terms: Terms, before: Option<LeaseId>) -> Tenancy {
        Tenancy { terms, lease: before, until_ms: 0, is_asked: false, next_ms: 0, tenants: BTreeMap::new() }
    }

    /// The lease this host has, if it knows at this moment that it lives.
    #[must_use]
    pub fn lease(&self, now_ms: u64) -> Option<LeaseId> {
        self.lease.filter(|_| now_ms < self.until_ms)
    }

    /// Until when a life that begins now may run.
    #[must_use]
    pub fn until_ms(&self) -> u64 {
        self.until_ms
    }

    /// The fence under which a session is held.
    #[must_use]
    pub fn fence(&self, session: SessionId) -> Option<u64> {
        self.tenants.get(&session).filter(|tenant| tenant.hold == Hold::Held).map(|tenant| tenant.fence)
    }

    /// How a session's lease stands; none: it has none here.
    #[must_use]
    pub fn standing(&self, session: SessionId, now_ms: u64) -> Option<Standing> {
        Some(match self.tenants.get(&session)?.hold {
            Hold::Held if now_ms < self.until_ms => Standing::Held { until_ms: self.until_ms },
            Hold::Held | Hold::Unsure | Hold::Lapsed => Standing::Unknown,
            Hold::Claimed => Standing::Claimed,
            Hold::Leaving => return None,
        })
    }

    /// When [`Input::Tick`] is due.
    #[must_use]
    pub fn wakes_ms(&self) -> Option<u64> {
        (!self.is_asked).then_some(self.next_ms)
    }

    /// Takes an input; gives what to do.
    pub fn handle(&mut self, input: Input, now_ms: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Tick => {}
            Input::Granted { lease, sent_ms, ttl_ms } => {
                self.lease = Some(lease);
                self.renewed(sent_ms, ttl_ms, &mut effects);
            }
            Input::Renewed { sent_ms, ttl_ms } => self.renewed(sent_ms, ttl_ms, &mut effects),
            Input::Failed => {
                self.is_asked = false;
                self.next_ms = now_ms + (self.terms.ttl_ms / TRIES).max(1);
            }
            Input::Over => {
                (self.lease, self.is_asked, self.until_ms, self.next_ms) = (None, false, 0, now_ms);
                for tenant in self.tenants.values_mut().filter(|tenant| tenant.hold == Hold::Held) {
                    tenant.hold = Hold::Lapsed;
                }
            }
            Input::TakenUp { session, fence, incarnation } => {
                self.tenants.insert(session, Tenant { hold: Hold::Unsure, fence, incarnation, is_asked: false });
                self.ask_all(now_ms, &mut effects);
            }
            Input::Claimed { session, fence, incarnation } => {
                self.tenants.insert(session, Tenant { hold: Hold::Held, fence, incarnation, is_asked: false });
            }
            Input::Looked { session, found } => self.looked(session, found, now_ms, &mut effects),
            Input::Changed { session, answer } => self.changed(session, answer, now_ms, &mut effects),
            Input::Ended { session } => {
                if let Some(tenant) = self.tenants.get_mut(&session) {
                    if tenant.hold == Hold::Claimed {
                        self.tenants.remove(&session);
                    } else {
                        tenant.hold = Hold::Leaving;
                        self.ask_all(now_ms, &mut effects);
                    }
                }
            }
            Input::Passing { session } => {
                if let Some(tenant) = self.tenants.get_mut(&session) {
                    (tenant.hold, tenant.is_asked) = (Hold::Unsure, true);
                }
            }
            Input::Passed { session } => {
                self.tenants.remove(&session);
            }
        }
        self.ask_store(now_ms, &mut effects);
        effects
    }

    /// The question about the lease that is due.
    fn ask_store(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        if !self.is_asked && now_ms >= self.next_ms {
            self.is_asked = true;
            effects.push(self.lease.map_or(Effect::Grant, Effect::Renew));
        }
    }

    fn renewed(&mut self, sent_ms: u64, ttl_ms: u64, effects: &mut Vec<Effect>) {
        self.is_asked = false;
        self.until_ms = self.until_ms.max((sent_ms + ttl_ms).saturating_sub(self.terms.margin_ms));
        self.next_ms = sent_ms + ttl_ms / RENEWALS;
        for (session, tenant) in &self.tenants {
            if tenant.hold == Hold::Held {
                effects.push(Effect::Deadline { session: *session, fence: tenant.fence, until_ms: self.until_ms });
            }
        }
        self.ask_all(sent_ms, effects);
    }

    /// What is to be asked about sessions, once there is a lease.
    fn ask_all(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        let Some(own) = self.lease.filter(|_| now_ms < self.until_ms) else { return };
        for (session, tenant) in self.tenants.iter_mut().filter(|(_, tenant)| !tenant.is_asked) {
            let effect = match tenant.hold {
                Hold::Held | Hold::Claimed => continue,
                Hold::Unsure => Effect::Look(*session),
                Hold::Lapsed => Effect::Change(Change {
                    session: *session,
                    expect: Expect::Same { fence: tenant.fence },
                    live: vec![own],
                    put: Some(Record { host: self.terms.host.clone(), lease: own, incarnation: tenant.incarnation }),
                }),
                Hold::Leaving => Effect::Change(Change::release(*session, own, tenant.fence)),
            };
            tenant.is_asked = true;
            effects.push(effect);
        }
    }

    /// What a look found says of a session that lives here.
    fn looked(&mut self, session: SessionId, found: Option<Found>, now_ms: u64, effects: &mut Vec<Effect>) {
        let (own, until_ms) = (self.lease, self.until_ms);
        let Some(tenant) = self.tenants.get_mut(&session) else { return };
        tenant.is_asked = false;
        if !matches!(tenant.hold, Hold::Unsure | Hold::Lapsed) {
            return;
        }
        match found {
            Some(found) if Some(found.record.lease) == own => {
                (tenant.hold, tenant.fence) = (Hold::Held, found.fence);
                effects.push(Effect::Deadline { session, fence: found.fence, until_ms });
            }
            // As it was written, by a lease of ours that is over.
            Some(found) if found.fence == tenant.fence => {
                tenant.hold = Hold::Lapsed;
                self.ask_all(now_ms, effects);
            }
            by => {
                tenant.hold = Hold::Claimed;
                effects.push(Effect::End { session, by });
            }
        }
    }

    fn changed(&mut self, session: SessionId, answer: Answer, now_ms: u64, effects: &mut Vec<Effect>) {
        let until_ms = self.until_ms;
        let Some(tenant) = self.tenants.get_mut(&session) else { return };
        tenant.is_asked = false;
        match (&tenant.hold, answer) {
            // It may have happened: the next renewal asks again, and finds out.
            (_, Answer::Failed) => {}
            (Hold::Leaving, Answer::Done { .. } | Answer::Differs(_)) => {
                self.tenants.remove(&session);
            }
            (Hold::Lapsed, Answer::Done { fence }) => {
                (tenant.hold, tenant.fence) = (Hold::Held, fence);
                effects.push(Effect::Deadline { session, fence, until_ms });
            }
            // The record may be as it was, and our new lease over already: then it is the same as before.
            (Hold::Lapsed, Answer::Differs(Some(found))) if found.fence == tenant.fence => {}
            (Hold::Lapsed, Answer::Differs(found)) => self.looked(session, found, now_ms, effects),
            (Hold::Held | Hold::Unsure | Hold::Claimed, Answer::Done { .. } | Answer::Differs(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: LeaseId = LeaseId(1);
    const OTHER: LeaseId = LeaseId(2);

    fn ses(n: u128) -> SessionId {
        SessionId::from_random_bits(n)
    }

    fn host() -> Tenancy {
        let terms = Terms { host: "a".into(), ttl_ms: 6000, margin_ms: 1000 };
        let mut host = Tenancy::new(terms, None);
        assert_eq!(host.handle(Input::Tick, 0), [Effect::Grant]);
        assert_eq!(host.handle(Input::Granted { lease: MINE, sent_ms: 0, ttl_ms: 6000 }, 40), []);
        host
    }

    fn found(lease: LeaseId, fence: u64) -> Option<Found> {
        Some(Found { record: Record { host: "b".into(), lease, incarnation: 1 }, fence })
    }

    fn claimed(n: u128) -> Input {
        Input::Claimed { session: ses(n), fence: 7, incarnation: 1 }
    }

    #[test]
    fn what_is_being_passed_on_is_not_let_go_on_by_a_renewal_and_looked_at_where_it_may_have_failed() {
        let mut host = host();
        host.handle(claimed(1), 50);
        assert_eq!(host.handle(Input::Passing { session: ses(1) }, 100), []);
        assert_eq!(host.handle(Input::Tick, 2000), [Effect::Renew(MINE)]);
        assert_eq!(
            host.handle(Input::Renewed { sent_ms: 2000, ttl_ms: 6000 }, 2010),
            [],
            "no deadline, and no question"
        );
        host.handle(Input::Changed { session: ses(1), answer: Answer::Failed }, 2020);
        assert_eq!(host.handle(Input::Tick, 4000), [Effect::Renew(MINE)]);
        let asked = host.handle(Input::Renewed { sent_ms: 4000, ttl_ms: 6000 }, 4010);
        assert_eq!(asked, [Effect::Look(ses(1))]);
        let ended = host.handle(Input::Looked { session: ses(1), found: found(OTHER, 9) }, 4020);
        assert_eq!(ended, [Effect::End { session: ses(1), by: found(OTHER, 9) }]);
    }

    #[test]
    fn one_renewal_serves_a_thousand_sessions() {
        let mut host = host();
        for n in 0..1000 {
            assert_eq!(host.handle(claimed(n), 50), []);
        }
        assert_eq!(host.handle(Input::Tick, 2000), [Effect::Renew(MINE)]);
        assert_eq!(host.handle(Input::Tick, 2500), [], "asked already");
        let effects = host.handle(Input::Renewed { sent_ms: 2000, ttl_ms: 6000 }, 2600);
        assert_eq!(effects.len(), 1000);
        assert!(effects.iter().all(|e| matches!(e, Effect::Deadline { until_ms: 7000, .. })), "counted from the send");
    }

    #[test]
    fn a_lease_that_is_renewed_late_was_unknown_and_goes_on() {
        let mut host = host();
        host.handle(claimed(1), 50);
        assert_eq!(host.standing(ses(1), 4999), Some(Standing::Held { until_ms: 5000 }));
        host.handle(Input::Tick, 2000);
        host.handle(Input::Failed, 4000);
        assert_eq!(host.standing(ses(1), 5000), Some(Standing::Unknown));
        assert_eq!(host.lease(5000), None, "nothing is claimed with it");
        assert_eq!(host.handle(Input::Tick, 5500), [Effect::Renew(MINE)]);
        let effects = host.handle(Input::Renewed { sent_ms: 5500, ttl_ms: 6000 }, 5600);
        assert_eq!(effects, [Effect::Deadline { session: ses(1), fence: 7, until_ms: 10_500 }]);
    }

    #[test]
    fn what_nobody_claimed_is_taken_anew_and_what_somebody_did_is_ended() {
        let mut host = host();
        (1..=3).for_each(|n| drop(host.handle(claimed(n), 50)));
        host.handle(Input::Tick, 2000);
        assert_eq!(host.handle(Input::Over, 9000), [Effect::Grant]);
        let lease = LeaseId(3);
        let asked = host.handle(Input::Granted { lease, sent_ms: 9000, ttl_ms: 6000 }, 9010);
        assert_eq!(asked.len(), 3);
        assert!(asked.iter().all(|e| matches!(e, Effect::Change(c) if c.expect == Expect::Same { fence: 7 })));
        let done = host.handle(Input::Changed { session: ses(1), answer: Answer::Done { fence: 20 } }, 9020);
        assert_eq!(done, [Effect::Deadline { session: ses(1), fence: 20, until_ms: 14_000 }]);
        let differs = Answer::Differs(found(OTHER, 12));
        let ended = host.handle(Input::Changed { session: ses(2), answer: differs }, 9020);
        assert_eq!(ended, [Effect::End { session: ses(2), by: found(OTHER, 12) }]);
        assert_eq!(host.standing(ses(2), 9020), Some(Standing::Claimed));
        // The answer was lost, though it happened: found to be ours when it is asked again.
        assert_eq!(host.handle(Input::Changed { session: ses(3), answer: Answer::Failed }, 9020), []);
        host.handle(Input::Tick, 11_000);
        let again = host.handle(Input::Renewed { sent_ms: 11_000, ttl_ms: 6000 }, 11_010);
        assert!(matches!(&again[..], [Effect::Deadline { .. }, Effect::Change(change)] if change.session == ses(3)));
        let differs = Answer::Differs(found(lease, 21));
        let held = host.handle(Input::Changed { session: ses(3), answer: differs }, 11_020);
        assert_eq!(held, [Effect::Deadline { session: ses(3), fence: 21, until_ms: 16_000 }]);
    }

    #[test]
    fn a_host_that_comes_back_believes_the_record_and_not_its_disk() {
        let terms = Terms { host: "a".into(), ttl_ms: 6000, margin_ms: 1000 };
        let mut host = Tenancy::new(terms, Some(MINE));
        let taken = Input::TakenUp { session: ses(1), fence: 7, incarnation: 1 };
        assert_eq!(host.handle(taken.clone(), 0), [Effect::Renew(MINE)]);
        assert_eq!(
            host.handle(Input::Renewed { sent_ms: 0, ttl_ms: 6000 }, 10),
            [Effect::Look(ses(1))],
            "it may have been passed on by a host that died then"
        );
        assert_eq!(host.standing(ses(1), 10), Some(Standing::Unknown));
        let ended = host.handle(Input::Looked { session: ses(1), found: found(OTHER, 9) }, 20);
        assert_eq!(ended, [Effect::End { session: ses(1), by: found(OTHER, 9) }]);
        assert_eq!(host.handle(taken, 30), [Effect::Look(ses(1))]);
        let held = host.handle(Input::Looked { session: ses(1), found: found(MINE, 7) }, 40);
        assert_eq!(held, [Effect::Deadline { session: ses(1), fence: 7, until_ms: 5000 }]);
    }

    #[test]
    fn nobody_takes_a_record_from_a_lease_that_lives() {
        let claim = |found, is_live| Change::claim(ses(1), MINE, "a", 2, found, is_live);
        let by = found(OTHER, 9);
        assert_eq!(claim(by.clone(), true), Err(crate::Refusal::Held { by: by.clone().unwrap() }));
        assert_eq!(claim(by, false).unwrap().expect, Expect::Over { fence: 9, lease: OTHER });
        assert_eq!(claim(found(MINE, 9), true).unwrap().expect, Expect::Same { fence: 9 });
        assert_eq!(claim(None, false).unwrap().expect, Expect::Absent);
    }

    #[test]
    fn what_has_ended_is_released_once_the_store_answers() {
        let mut host = host();
        host.handle(claimed(1), 50);
        let released = Change::release(ses(1), MINE, 7);
        assert_eq!(host.handle(Input::Ended { session: ses(1) }, 60), [Effect::Change(released.clone())]);
        host.handle(Input::Changed { session: ses(1), answer: Answer::Failed }, 70);
        host.handle(Input::Tick, 2000);
        let again = host.handle(Input::Renewed { sent_ms: 2000, ttl_ms: 6000 }, 2010);
        assert_eq!(again, [Effect::Change(released)]);
        host.handle(Input::Changed { session: ses(1), answer: Answer::Done { fence: 9 } }, 2020);
        assert_eq!(host.standing(ses(1), 2020), None);
    }
}
