//! Grants: what was passed on by whom, and what an actor therefore holds at a moment.
//!
//! An actor holds its class default less what was revoked from it, and its live grants. A giver passes on at most what it
//! holds, for at most as long; a grant its giver could no longer make after a revocation is dropped with it.

use holdfast_types::TimeMs;
use holdfast_types::{Actor, ActorClass, ActorId, Handle};
use holdfast_types::{Defaults, Envelope, FOREVER, Right, Rights};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A grant's number in its session; never used twice there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrantId(pub u32);

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Rights passed on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Grant {
    /// Its number.
    pub id: GrantId,
    /// To whom.
    pub to: Actor,
    /// By whom; none: the first grant, made when the session started.
    pub by: Option<Actor>,
    /// What.
    pub rights: Rights,
    /// Until when.
    pub until: Option<TimeMs>,
    /// The giver's grant of the right to grant, where its class does not hold that by itself.
    pub parent: Option<GrantId>,
    /// When it was made.
    pub at: TimeMs,
    /// The token through which it was given, and with which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl Grant {
    /// When it ends.
    #[must_use]
    pub fn ends(&self) -> TimeMs {
        self.until.unwrap_or(FOREVER)
    }
}

/// What the host says: the defaults, and whom it vouches for. It may change at any time; every act is checked against what
/// it is at that moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// What actors hold before anything is granted.
    pub defaults: Defaults,
    /// Actors whose keys the host knows under these handles.
    pub vouched: BTreeMap<ActorId, Handle>,
}

impl Policy {
    /// Whether the host knows this key under this handle.
    #[must_use]
    pub fn vouches(&self, actor: &Actor) -> bool {
        self.vouched.get(&actor.id) == Some(&actor.handle)
    }

    /// Whether this is a human for certain: calling oneself one is not enough.
    #[must_use]
    pub fn is_human(&self, actor: &Actor) -> bool {
        actor.handle.class() == ActorClass::Human && self.vouches(actor)
    }

    /// What an actor holds before anything is granted or revoked.
    #[must_use]
    pub fn default_of(&self, actor: &Actor) -> Rights {
        // The host itself, which ends what nobody uses, and makes checkpoints that are due. No other actor is believed to be it.
        if actor.is_hosts_own() {
            return Rights::of(&[Right::End, Right::Checkpoint]);
        }
        if self.vouches(actor) { self.defaults.of(actor.handle.class()) } else { self.defaults.unknown }
    }
}

/// All grants of a session, and what was revoked from classes' defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) grants: BTreeMap<GrantId, Grant>,
    /// These actors' class defaults count no longer.
    pub(crate) barred: BTreeSet<ActorId>,
    /// And no class default but that of humans: the journal was damaged, and who was barred before is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) humans_only: bool,
    pub(crate) last: u32,
}

impl Ledger {
    pub(crate) fn envelope(&self, policy: &Policy, actor: &Actor) -> Envelope {
        self.envelope_by(policy, actor, self.grants.values())
    }

    fn envelope_by<'a>(&self, policy: &Policy, actor: &Actor, grants: impl Iterator<Item = &'a Grant>) -> Envelope {
        let mut envelope = Envelope::NONE;
        envelope.add(self.default_of(policy, actor), FOREVER);
        grants.filter(|grant| grant.to.id == actor.id).for_each(|grant| envelope.add(grant.rights, grant.ends()));
        envelope
    }

    /// What is left of an actor's class default.
    fn default_of(&self, policy: &Policy, actor: &Actor) -> Rights {
        let counts = !self.barred.contains(&actor.id) && (!self.humans_only || policy.is_human(actor));
        if counts { policy.default_of(actor) } else { Rights::NONE }
    }

    /// The giver's live grant of `grant` that lasts longest, where its default does not have it.
    pub(crate) fn parent(&self, policy: &Policy, giver: &Actor, now: TimeMs) -> Option<GrantId> {
        if self.default_of(policy, giver).has(Right::Grant) {
            return None;
        }
        let passes = |grant: &&Grant| grant.to.id == giver.id && grant.rights.has(Right::Grant) && grant.ends() > now;
        self.grants.values().filter(passes).max_by_key(|grant| grant.ends()).map(|grant| grant.id)
    }

    /// Grants that their givers could not make now. A grant stands on older ones only, so a circle holds nothing up.
    pub(crate) fn unsupported(&self, policy: &Policy) -> BTreeSet<GrantId> {
        let mut sound: Vec<&Grant> = Vec::new();
        let mut unsupported = BTreeSet::new();
        for grant in self.grants.values() {
            let stands = grant.by.as_ref().is_none_or(|giver| {
                let needed = grant.rights.and(Right::Grant.into());
                self.envelope_by(policy, giver, sound.iter().copied()).until(needed) >= grant.ends()
            });
            if stands {
                sound.push(grant);
            } else {
                unsupported.insert(grant.id);
            }
        }
        unsupported
    }

    /// What falls when these grants and this actor's default are revoked: they and everything that stood on them.
    pub(crate) fn fall(&self, policy: &Policy, revoked: &[GrantId], barred: Option<ActorId>) -> Vec<GrantId> {
        let mut after = self.clone();
        after.grants.retain(|id, _| !revoked.contains(id));
        after.barred.extend(barred);
        let before = self.unsupported(policy);
        let fallen = after.unsupported(policy);
        revoked.iter().copied().chain(fallen.into_iter().filter(|id| !before.contains(id))).collect()
    }

    /// The handle an actor is known by here.
    pub(crate) fn handle(&self, id: ActorId) -> Option<&Handle> {
        self.grants.values().find(|grant| grant.to.id == id).map(|grant| &grant.to.handle)
    }
}
