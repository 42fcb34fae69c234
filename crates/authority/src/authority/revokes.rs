//! Passing rights on and taking them back.

use super::*;
use crate::act::Revoke;
use holdfast_types::{ActorId, FOREVER, terms_of};

impl Authority {
    pub(super) fn grant(
        &mut self,
        step: &mut Step,
        by: &Caller,
        to: &Actor,
        rights: Rights,
        until: Option<TimeMs>,
    ) -> Result<Reply, Refusal> {
        let now = step.now.time_ms;
        if rights.is_empty() || until.is_some_and(|until| until <= now) {
            return Err(Refusal::EmptyGrant);
        }
        let held = self.envelope(&by.actor);
        let missing = rights.without(held.rights(now));
        if !missing.is_empty() {
            return Err(Refusal::TooWide { missing });
        }
        let longest = held.until(rights.and(Right::Grant.into()));
        if until.is_some_and(|until| until > longest) {
            return Err(Refusal::TooLong { until: longest });
        }
        self.must_fit(GRANTS, "grants", &by.actor, self.state.ledger.grants.values().filter_map(|g| g.by.as_ref()))?;
        // What is given through a token does not outlast it, whatever was asked for.
        let token_ends = by.token.as_ref().map_or(FOREVER, |token| token.until);
        let ends = until.unwrap_or(FOREVER).min(longest).min(token_ends);
        if ends <= now {
            return Err(Refusal::EmptyGrant);
        }
        let id = GrantId(self.state.ledger.last + 1);
        let grant = Grant {
            id,
            to: to.clone(),
            by: Some(by.actor.clone()),
            rights,
            until: (ends != FOREVER).then_some(ends),
            parent: self.state.ledger.parent(&self.policy, &by.actor, now),
            at: now,
            token: by.token.as_ref().map(|token| token.id.clone()),
        };
        let act = Act::Asked(Ask::Grant { to: to.clone(), rights, until });
        self.commit(step, By::Actor(by.actor.clone()), act, self.state.fence, vec![Change::Granted(grant)]);
        self.tell_rights(step, to);
        Ok(Reply::Granted(id))
    }

    pub(super) fn revoke(&mut self, step: &mut Step, by: &Caller, what: Revoke) -> Result<Reply, Refusal> {
        let (revoked, barred) = match what {
            Revoke::Grant(id) => {
                let grant = self.state.ledger.grants.get(&id).ok_or(Refusal::NoSuchGrant { grant: id })?;
                let gave = grant.by.as_ref().is_some_and(|giver| giver.id == by.actor.id);
                if !gave && grant.to.id != by.actor.id {
                    self.must_outrank(step, by, grant.rights)?;
                }
                (vec![id], None)
            }
            Revoke::Actor(actor) => {
                if actor != by.actor.id {
                    self.must_outrank(step, by, self.held_by(actor, step.now.time_ms))?;
                }
                let grants = self.state.ledger.grants.values().filter(|grant| grant.to.id == actor);
                (grants.map(|grant| grant.id).collect(), Some(actor))
            }
        };
        let fallen = self.state.ledger.fall(&self.policy, &revoked, barred);
        // Whatever falls counts, also what only stood on the grant that was named.
        let mut losers: Vec<Actor> =
            fallen.iter().filter_map(|id| self.state.ledger.grants.get(id)).map(|g| g.to.clone()).collect();
        losers.extend(barred.and_then(|id| self.actor(id)));
        if losers.iter().any(|loser| !self.may_take_from(&by.actor, loser)) {
            return Err(Refusal::Denied { right: Right::Grant, rule: Rule::HumansFirst });
        }
        let mut changes: Vec<Change> = fallen.iter().map(|id| Change::Dropped(*id)).collect();
        changes.extend(barred.map(Change::Barred));
        let act = Act::Asked(Ask::Revoke(what));
        self.commit(step, By::Actor(by.actor.clone()), act, self.state.fence, changes);
        losers.sort();
        losers.dedup();
        losers.iter().for_each(|loser| self.tell_rights(step, loser));
        Ok(Reply::Revoked(fallen))
    }

    /// The host no longer knows a key: it holds nothing any more, and neither does what stood on it.
    pub(super) fn forgotten(&mut self, step: &mut Step, actor: ActorId) -> Result<Reply, Refusal> {
        Ok(self.drop_grants(step, Act::Forgotten(actor), |grant| grant.to.id == actor, Some(actor)))
    }

    /// Tokens are good no more, and neither is what was given through them.
    pub(super) fn tokens_ended(&mut self, step: &mut Step, tokens: &[String]) -> Result<Reply, Refusal> {
        let through = |grant: &Grant| grant.token.as_ref().is_some_and(|token| tokens.contains(token));
        if !self.state.grants().any(through) {
            return Ok(Reply::Revoked(Vec::new()));
        }
        Ok(self.drop_grants(step, Act::Lapsed(Lapse::Tokens), through, None))
    }

    /// The host takes these grants back, and this actor's default; and everything that stood on them.
    fn drop_grants(
        &mut self,
        step: &mut Step,
        act: Act,
        which: impl Fn(&Grant) -> bool,
        barred: Option<ActorId>,
    ) -> Reply {
        let revoked: Vec<GrantId> = self.state.grants().filter(|grant| which(grant)).map(|grant| grant.id).collect();
        let fallen = self.state.ledger.fall(&self.policy, &revoked, barred);
        let mut losers: Vec<Actor> =
            fallen.iter().filter_map(|id| self.state.ledger.grants.get(id)).map(|g| g.to.clone()).collect();
        let mut changes: Vec<Change> = fallen.iter().map(|id| Change::Dropped(*id)).collect();
        changes.extend(barred.map(Change::Barred));
        self.commit(step, By::Host, act, self.state.fence, changes);
        losers.sort();
        losers.dedup();
        losers.iter().for_each(|loser| self.tell_rights(step, loser));
        Reply::Revoked(fallen)
    }

    /// Whoever neither gave nor holds it must hold `grant` and everything it takes away.
    fn must_outrank(&self, step: &Step, by: &Caller, rights: Rights) -> Result<(), Refusal> {
        self.must(step, &by.actor, const { terms_of("grant.revoke") }.rights)?;
        let covers = self.rights(&by.actor, step.now.time_ms).covers(rights);
        if covers { Ok(()) } else { Err(Refusal::Denied { right: Right::Grant, rule: Rule::OwnGrants }) }
    }

    /// An actor by its key, as it is known here.
    fn actor(&self, id: ActorId) -> Option<Actor> {
        let attached = self.state.operators.values().find(|operator| operator.actor.id == id).map(|o| &o.actor.handle);
        let handle = self.policy.vouched.get(&id).or(attached).or_else(|| self.state.ledger.handle(id))?;
        Some(Actor { id, handle: handle.clone() })
    }

    fn held_by(&self, id: ActorId, now: TimeMs) -> Rights {
        self.actor(id).map_or(Rights::NONE, |actor| self.rights(&actor, now))
    }
}
