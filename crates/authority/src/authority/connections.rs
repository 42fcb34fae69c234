//! Sessions and connections coming and going.

use super::*;
use crate::deed::Deed;
use crate::turn::TURN_GRACE_MS;
use holdfast_types::Exit;
use holdfast_types::{FOREVER, Terms, terms_of};

const ATTACH: &Terms = terms_of("session.attach");

impl Authority {
    /// The first grant is one like any other: it can be revoked, and nothing else remembers who spawned.
    pub(super) fn started(&mut self, step: &mut Step, by: Actor) -> Result<Reply, Refusal> {
        let rights = self.policy.defaults.spawner;
        let mut changes = vec![Change::Incarnation(1)];
        if !rights.is_empty() {
            let id = GrantId(self.state.ledger.last + 1);
            let at = step.now.time_ms;
            changes.push(Change::Granted(Grant {
                id,
                to: by.clone(),
                by: None,
                rights,
                until: None,
                parent: None,
                at,
                token: None,
            }));
        }
        self.commit(step, By::Actor(by), Act::Started, self.state.fence, changes);
        Ok(Reply::Done)
    }

    /// Who may do what is as in the session it is a copy of; who asked for the copy gets nothing by that. The turn is free.
    pub(super) fn forked(&mut self, step: &mut Step, by: Actor, of: Forked, parent: &State) -> Result<Reply, Refusal> {
        let mut changes = vec![Change::Incarnation(1)];
        changes.extend(parent.ledger.grants.values().cloned().map(Change::Granted));
        changes.extend(parent.ledger.barred.iter().copied().map(Change::Barred));
        changes.extend(parent.ledger.humans_only.then_some(Change::HumansOnly));
        self.commit(step, By::Actor(by), Act::Forked(of), self.state.fence, changes);
        Ok(Reply::Done)
    }

    pub(super) fn restored(&mut self, step: &mut Step, restored: Restored) -> Result<Reply, Refusal> {
        self.commit(step, By::Host, Act::Restored(restored), self.state.fence, vec![]);
        Ok(Reply::Done)
    }

    pub(super) fn leased(&mut self, step: &mut Step, leased: Leased) -> Result<Reply, Refusal> {
        self.commit(step, By::Host, Act::Leased(leased), self.state.fence, vec![]);
        Ok(Reply::Done)
    }

    /// The tree is another: nobody is attached, nothing is frozen, and no write of the life before may reach it.
    pub(super) fn began(&mut self, step: &mut Step, incarnation: u32) -> Result<Reply, Refusal> {
        let mut changes = vec![Change::Incarnation(incarnation), Change::Freeze(None)];
        changes.extend(self.state.operators.keys().map(|id| Change::Gone(*id)));
        changes.extend(self.state.queue.iter().map(|waiting| Change::WaitsNoMore(waiting.by.id)));
        changes.extend(self.over_with_its_life(true));
        self.pass(step, By::Host, Act::Began, changes, Turn::Free);
        Ok(Reply::Done)
    }

    /// Everybody is cut off until they come back. What was recorded and perhaps never done is done now.
    pub(super) fn restarted(&mut self, step: &mut Step, keeper: Fence, connection: u32) -> Result<Reply, Refusal> {
        // Those who were cut off before could not come back while there was no host: their grace begins again.
        let mut changes: Vec<Change> = self.state.operators.keys().map(|id| Change::Away(*id)).collect();
        changes.push(Change::Link(connection));
        let ours = self.state.fence;
        if keeper > ours {
            // The record of some change is lost, so nobody can be said to hold the turn.
            let fence = Fence(keeper.0 + 1);
            changes.push(Change::Turn(Turn::Free));
            self.commit(step, By::Host, Act::Restarted, fence, changes);
            step.effects.push(Effect::Fence { fence, writer: None });
        } else {
            if let Turn::Held(hold) = &self.state.turn {
                let ends = hold.grace(step.now.time_ms);
                changes.push(Change::Turn(Turn::Held(Hold { ends, ..hold.clone() })));
            }
            self.commit(step, By::Host, Act::Restarted, ours, changes);
            if keeper < ours {
                step.effects.push(Effect::Fence { fence: ours, writer: None });
            }
            if self.state.owes_flush(keeper) {
                step.effects.push(Effect::FlushInput { fence: ours });
            }
        }
        // Both may be so already; saying it again is harmless.
        step.effects.push(if self.state.frozen.is_some() { Effect::Freeze } else { Effect::Thaw });
        Ok(Reply::Done)
    }

    /// Records are lost, and with them perhaps a revocation: nothing that was granted counts any longer, nor what a class holds
    /// by itself, but for humans. They grant anew.
    pub(super) fn damaged(&mut self, step: &mut Step, what: String) -> Result<Reply, Refusal> {
        let mut changes: Vec<Change> = self.state.ledger.grants.keys().map(|id| Change::Dropped(*id)).collect();
        changes.push(Change::HumansOnly);
        self.pass(step, By::Host, Act::Damaged { what }, changes, Turn::Free);
        Ok(Reply::Done)
    }

    pub(super) fn linked(&mut self, step: &mut Step, connection: u32, log: u64) -> Result<Reply, Refusal> {
        self.commit(step, By::Host, Act::Linked, self.state.fence, vec![Change::Link(connection), Change::Logged(log)]);
        Ok(Reply::Done)
    }

    /// The keeper will read keys of a terminal by this connection: who typed them is known by it, also to a later host.
    pub(super) fn joined(&mut self, step: &mut Step, operator: OperatorId, connection: u32) -> Result<Reply, Refusal> {
        let Some(actor) = self.state.operators.get(&operator).map(|operator| operator.actor.clone()) else {
            return Err(Refusal::NotAttached);
        };
        if !self.state.is_client_of(actor.id, connection) {
            let changes = vec![Change::Joined(connection, actor.id)];
            self.commit(step, By::Actor(actor), Act::Joined(operator), self.state.fence, changes);
        }
        Ok(Reply::Done)
    }

    /// Nobody is attached to what is over, and nobody can write there.
    pub(super) fn ended(&mut self, step: &mut Step, exit: Exit) -> Result<Reply, Refusal> {
        let mut changes = vec![Change::Freeze(None)];
        changes.extend(self.state.operators.keys().map(|id| Change::Gone(*id)));
        changes.extend(self.state.queue.iter().map(|waiting| Change::WaitsNoMore(waiting.by.id)));
        changes.push(Change::Turn(Turn::Free));
        changes.extend(self.over_with_its_life(exit == Exit::Lost));
        self.commit(step, By::Host, Act::Ended(exit), self.state.fence, changes);
        Ok(Reply::Done)
    }

    /// What was to be done in a life that is over. That there be another one may still be wanted.
    fn over_with_its_life(&self, may_recover: bool) -> Vec<Change> {
        let is_over = |deed: &Deed| !(may_recover && matches!(deed, Deed::Recover { .. }));
        let over = self.state.open.iter().filter(|(_, open)| is_over(&open.deed));
        over.map(|(id, _)| Change::Closed(*id)).collect()
    }

    pub(super) fn attached(&mut self, step: &mut Step, by: Actor, operator: OperatorId) -> Result<Reply, Refusal> {
        self.must(step, &by, ATTACH.rights)?;
        self.may_come(step, &by)?;
        let others = self.state.operators.values().map(|operator| &operator.actor);
        self.must_fit(OPERATORS, "attached clients", &by, others)?;
        if operator.0 <= self.state.last_operator {
            return Err(Refusal::NotAttached);
        }
        let now = step.now.time_ms;
        let mut changes = vec![Change::Here(operator, by.clone())];
        if self.state.waits(by.id) {
            changes.push(Change::Waits(crate::turn::Waiting { by: by.clone(), operator: Some(operator) }));
        }
        let act = Act::Attached(operator);
        // A holder that was cut off, or only sent requests, is back. Under a new fence: what its old connection still has
        // queued must lose.
        let back = self.state.turn.hold().filter(|hold| hold.by.id == by.id && hold.ends.is_some());
        match back.map(|hold| Hold {
            operator: Some(operator),
            fence: self.mint(),
            active: now,
            ends: Hold::attached_until(hold.how, now),
            ..hold.clone()
        }) {
            Some(hold) => {
                self.pass(step, By::Actor(by), act, changes, Turn::Held(hold));
                self.tell_turn(step);
            }
            None => self.commit(step, By::Actor(by), act, self.state.fence, changes),
        }
        Ok(Reply::Done)
    }

    pub(super) fn resumed(&mut self, step: &mut Step, by: Actor, operator: OperatorId) -> Result<Reply, Refusal> {
        self.must(step, &by, ATTACH.rights)?;
        if self.state.operators.get(&operator).is_none_or(|was| was.actor != by) {
            return Err(Refusal::NotAttached);
        }
        self.may_come(step, &by)?;
        let mut changes = vec![Change::Here(operator, by.clone())];
        if let Some(hold) = self.state.turn.hold().filter(|hold| hold.operator == Some(operator)) {
            // Who comes back within the grace is not idle: otherwise the grace would give nothing.
            let (active, ends) = (step.now.time_ms, Hold::attached_until(hold.how, step.now.time_ms));
            changes.push(Change::Turn(Turn::Held(Hold { active, ends, ..hold.clone() })));
        }
        self.commit(step, By::Actor(by), Act::Resumed(operator), self.state.fence, changes);
        Ok(Reply::Done)
    }

    pub(super) fn left(&mut self, step: &mut Step, operator: OperatorId) -> Result<Reply, Refusal> {
        let Some(was) = self.state.operators.get(&operator) else { return Err(Refusal::NotAttached) };
        let (by, act) = (By::Actor(was.actor.clone()), Act::Left(operator));
        let mut changes = vec![Change::Gone(operator)];
        let waits = self.state.queue.iter().filter(|waiting| waiting.operator == Some(operator));
        changes.extend(waits.map(|waiting| Change::WaitsNoMore(waiting.by.id)));
        if self.state.turn.hold().is_some_and(|hold| hold.operator == Some(operator)) {
            self.pass(step, by, act, changes, Turn::Free);
            self.tell_turn(step);
        } else {
            self.commit(step, by, act, self.state.fence, changes);
        }
        Ok(Reply::Done)
    }

    pub(super) fn cut_off(&mut self, step: &mut Step, operator: OperatorId) -> Result<Reply, Refusal> {
        let Some(was) = self.state.operators.get(&operator) else { return Err(Refusal::NotAttached) };
        if was.away_since.is_some() {
            return Ok(Reply::Done);
        }
        let by = By::Actor(was.actor.clone());
        let mut changes = vec![Change::Away(operator)];
        if let Some(hold) = self.state.turn.hold().filter(|hold| hold.operator == Some(operator)) {
            let ends = hold.grace(step.now.time_ms);
            changes.push(Change::Turn(Turn::Held(Hold { ends, ..hold.clone() })));
        }
        self.commit(step, by, Act::CutOff(operator), self.state.fence, changes);
        Ok(Reply::Done)
    }

    /// When something will pass by itself: send a [`Input::Tick`] then.
    #[must_use]
    pub fn next_deadline(&self) -> Option<TimeMs> {
        let grants = self.state.ledger.grants.values().map(Grant::ends).filter(|ends| *ends != FOREVER);
        let away = self.state.operators.values().filter_map(|operator| operator.away_since);
        let hold = self.state.turn.hold();
        let idle = hold.and_then(|hold| self.next(hold.how).and_then(|_| hold.idle_at()));
        grants
            .chain(away.map(|since| since.saturating_add(TURN_GRACE_MS)))
            .chain(hold.and_then(|h| h.ends))
            .chain(self.paces.next_due())
            .chain(idle)
            .min()
    }
}
