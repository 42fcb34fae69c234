//! How fast one actor may fill a journal.
//!
//! A journal is bounded, so whoever records much pushes older records out. What is cheap to ask for has a pace for each actor:
//! acts, coming and going, and refusals, of which the rest is counted and told in one record. Humans are not held up; for a
//! refusal that is repeated they are as others.
//!
//! No part of the state: a host that comes back begins with no debts.

use holdfast_types::{Actor, ActorId, TimeMs};
use std::collections::BTreeMap;

/// So many at once, and then one in each interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) burst: u32,
    interval_ms: u64,
}

/// What others than humans ask for: more than a program does that waits for its answers, for ten minutes and more.
pub(crate) const ACTS: Pace = Pace { burst: 600, interval_ms: 100 };
/// Attaching and coming back: as many at once as can be attached, and then a network that breaks all the time.
pub(crate) const COMING: Pace = Pace { burst: 300, interval_ms: 1_000 };
/// The same for humans, who may open many windows.
pub(crate) const HUMANS_COMING: Pace = Pace { burst: 600, interval_ms: 100 };
/// Refusals that are recorded one by one.
const REFUSALS: Pace = Pace { burst: 16, interval_ms: 10_000 };
/// After so long those that were only counted are told.
const FOLD_MS: u64 = 60_000;
/// Actors whose refusals are counted at once: each is a record in a minute.
const FOLDED_MAX: usize = 64;
/// Actors that are remembered before those without debts are forgotten.
const ACTORS_MAX: usize = 256;

/// What an actor has used up: each is the moment at which nothing is used up any more.
#[derive(Clone, Copy, Debug, Default)]
struct Debts {
    acts: TimeMs,
    coming: TimeMs,
    refusals: TimeMs,
}

/// Everybody's debts, and refusals that were not recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paces {
    debts: BTreeMap<ActorId, Debts>,
    folded: BTreeMap<ActorId, (Actor, u64, TimeMs)>,
}

/// Two authorities with the same state are the same, however busy they are.
impl PartialEq for Paces {
    fn eq(&self, _: &Paces) -> bool {
        true
    }
}

impl Eq for Paces {}

impl Paces {
    /// Whether an actor may act now; then it has.
    pub(crate) fn acts(&mut self, actor: ActorId, now: TimeMs) -> bool {
        take(&mut self.of(actor, now).acts, ACTS, now)
    }

    /// Whether an actor may attach now, at this pace; then it has.
    pub(crate) fn comes(&mut self, actor: ActorId, pace: Pace, now: TimeMs) -> bool {
        take(&mut self.of(actor, now).coming, pace, now)
    }

    /// Whether a refusal of this actor is recorded; otherwise it is counted.
    pub(crate) fn records_refusal(&mut self, actor: &Actor, now: TimeMs) -> bool {
        if take(&mut self.of(actor.id, now).refusals, REFUSALS, now) {
            return true;
        }
        if self.folded.len() < FOLDED_MAX || self.folded.contains_key(&actor.id) {
            self.folded.entry(actor.id).or_insert_with(|| (actor.clone(), 0, now)).1 += 1;
        }
        false
    }

    /// An actor's refusals that were counted long enough, and how many.
    pub(crate) fn due(&mut self, now: TimeMs) -> Option<(Actor, u64)> {
        let is_due = |(_, _, since): &(Actor, u64, TimeMs)| since.saturating_add(FOLD_MS) <= now;
        let id = self.folded.iter().find(|(_, folded)| is_due(folded)).map(|(id, _)| *id)?;
        self.folded.remove(&id).map(|(actor, count, _)| (actor, count))
    }

    /// When the next of them is due.
    pub(crate) fn next_due(&self) -> Option<TimeMs> {
        self.folded.values().map(|(_, _, since)| since.saturating_add(FOLD_MS)).min()
    }

    fn of(&mut self, actor: ActorId, now: TimeMs) -> &mut Debts {
        if self.debts.len() >= ACTORS_MAX {
            self.debts.retain(|_, debts| debts.acts.max(debts.coming).max(debts.refusals) > now);
        }
        self.debts.entry(actor).or_default()
    }
}

fn take(debt: &mut TimeMs, pace: Pace, now: TimeMs) -> bool {
    let used_up = (*debt).max(now);
    if used_up - now > u64::from(pace.burst - 1) * pace.interval_ms {
        return false;
    }
    *debt = used_up + pace.interval_ms;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bot() -> Actor {
        Actor { id: ActorId([1; 32]), handle: "agent:bot".parse().unwrap() }
    }

    #[test]
    fn a_burst_is_let_through_and_then_one_in_each_interval() {
        let mut paces = Paces::default();
        let (id, now) = (bot().id, 1_000_000);
        let burst = (0..10_000).filter(|_| paces.acts(id, now)).count();
        assert_eq!(burst, ACTS.burst as usize);
        assert!(!paces.acts(id, now + ACTS.interval_ms - 1) && paces.acts(id, now + ACTS.interval_ms));
        assert!(!paces.acts(id, now + ACTS.interval_ms));
        assert!(paces.acts(ActorId([2; 32]), now), "everybody has a pace of its own");
        assert_eq!((0..1000).filter(|_| paces.comes(id, COMING, now)).count(), COMING.burst as usize);
        let later = now + 10_000_000;
        assert_eq!((0..10_000).filter(|_| paces.acts(id, later)).count(), ACTS.burst as usize);
    }

    #[test]
    fn refusals_beyond_the_pace_are_counted_and_told_once() {
        let mut paces = Paces::default();
        let recorded = (0..1000).filter(|_| paces.records_refusal(&bot(), 5)).count();
        assert_eq!(recorded, REFUSALS.burst as usize);
        assert_eq!((paces.due(5), paces.next_due()), (None, Some(5 + FOLD_MS)));
        assert_eq!(paces.due(5 + FOLD_MS), Some((bot(), 1000 - recorded as u64)));
        assert_eq!((paces.due(u64::MAX), paces.next_due()), (None, None));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut paces = Paces::default();
        for n in 0..100_000u32 {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&n.to_le_bytes());
            let actor = Actor { id: ActorId(id), ..bot() };
            let now = u64::from(n) * 1_000;
            for _ in 0..20 {
                paces.records_refusal(&actor, now);
            }
        }
        assert!(paces.debts.len() <= 2 * ACTORS_MAX && paces.folded.len() <= FOLDED_MAX);
    }
}
