//! What passes by itself: graces, idleness, expiry, and the queue moving up.

use super::*;
use crate::turn::{TURN_GRACE_MS, Waiting};

impl Authority {
    /// Everything whose time has come, one after the other: afterwards nothing is due.
    pub(super) fn lapse(&mut self, step: &mut Step) {
        // Each lapse removes something, or moves the queue up by one.
        while self.lapse_grants(step)
            || self.lapse_hold(step)
            || self.lapse_operators(step)
            || self.lapse_requests(step)
            || self.move_up(step)
            || self.tell_refusals(step)
        {}
    }

    /// Refusals that were counted and not recorded.
    fn tell_refusals(&mut self, step: &mut Step) -> bool {
        let Some((actor, count)) = self.paces.due(step.now.time_ms) else { return false };
        self.commit(step, By::Actor(actor), Act::RefusedMore { count }, self.state.fence, vec![]);
        true
    }

    fn lapse_grants(&mut self, step: &mut Step) -> bool {
        let over = self.state.ledger.grants.values().filter(|grant| grant.ends() <= step.now.time_ms);
        let (changes, actors): (Vec<_>, Vec<_>) =
            over.map(|grant| (Change::Dropped(grant.id), grant.to.clone())).unzip();
        if changes.is_empty() {
            return false;
        }
        self.commit(step, By::Host, Act::Lapsed(Lapse::Grants), self.state.fence, changes);
        actors.iter().for_each(|actor| self.tell_rights(step, actor));
        true
    }

    fn lapse_hold(&mut self, step: &mut Step) -> bool {
        let now = step.now.time_ms;
        let Some(hold) = self.state.turn.hold() else { return false };
        let lapse = if hold.ends.is_some_and(|ends| ends <= now) {
            Lapse::Grace
        } else if !self.rights(&hold.by, now).meets(WRITING)
            || hold.operator.is_some_and(|operator| !self.state.operators.contains_key(&operator))
        {
            Lapse::Rights
        } else {
            return false;
        };
        self.pass(step, By::Host, Act::Lapsed(lapse), vec![], Turn::Free);
        self.tell_turn(step);
        true
    }

    fn lapse_operators(&mut self, step: &mut Step) -> bool {
        let now = step.now.time_ms;
        let is_over =
            |operator: &Operator| operator.away_since.is_some_and(|at| at.saturating_add(TURN_GRACE_MS) <= now);
        let gone: Vec<OperatorId> =
            self.state.operators.iter().filter(|(_, operator)| is_over(operator)).map(|(id, _)| *id).collect();
        let is_blind = |operator: &Operator| !self.rights(&operator.actor, now).has(Right::Observe);
        let blind: Vec<OperatorId> =
            self.state.operators.iter().filter(|(_, operator)| is_blind(operator)).map(|(id, _)| *id).collect();
        let (lapse, which) = match (gone.is_empty(), blind.is_empty()) {
            (true, true) => return false,
            (false, _) => (Lapse::Grace, gone),
            (true, false) => (Lapse::Observers, blind),
        };
        let changes = which.iter().map(|id| Change::Gone(*id)).collect();
        self.commit(step, By::Host, Act::Lapsed(lapse), self.state.fence, changes);
        step.effects.extend(which.into_iter().map(|operator| Effect::Expel { operator }));
        true
    }

    fn lapse_requests(&mut self, step: &mut Step) -> bool {
        let is_dead = |waiting: &&Waiting| {
            !self.rights(&waiting.by, step.now.time_ms).meets(WRITING)
                || waiting.operator.is_some_and(|operator| !self.state.operators.contains_key(&operator))
        };
        let dead = self.state.queue.iter().filter(is_dead);
        let changes: Vec<Change> = dead.map(|waiting| Change::WaitsNoMore(waiting.by.id)).collect();
        if changes.is_empty() {
            return false;
        }
        self.commit(step, By::Host, Act::Lapsed(Lapse::Requests), self.state.fence, changes);
        true
    }

    /// The first who waits and is here. What was seized is not lost to idleness but to a human: whoever stopped an agent
    /// must have time to read.
    pub(super) fn next(&self, how: How) -> Option<&Waiting> {
        let is_here = |waiting: &&Waiting| {
            waiting.operator.is_none_or(|id| self.state.operators.get(&id).is_some_and(|o| o.away_since.is_none()))
        };
        let may = |waiting: &&Waiting| match how {
            How::Seized => self.policy.is_human(&waiting.by),
            How::Wrote | How::Asked | How::Given | How::Lent => true,
        };
        self.state.queue.iter().filter(is_here).find(may)
    }

    /// Whether a turn is a program's that a human would be lent, if the session waits for one.
    #[must_use]
    pub fn lends_to(&self, by: &Actor, now: TimeMs) -> bool {
        let is_programs = |hold: &Hold| hold.by.handle.class() != ActorClass::Human && hold.by.id != by.id;
        self.state.frozen.is_none()
            && self.state.turn.hold().is_some_and(is_programs)
            && self.policy.is_human(by)
            && self.rights(by, now).meets(WRITING)
    }

    /// Lends a program's turn to a human. A program that had asked for the turn waits to have it back; one that only wrote finds it
    /// free.
    pub(super) fn awaited(&mut self, step: &mut Step, by: &Caller) -> Result<Reply, Refusal> {
        self.must_be_attached(by)?;
        if !self.lends_to(&by.actor, step.now.time_ms) {
            return Ok(Reply::Done);
        }
        let Some(lender) = self.state.turn.hold().cloned() else { return Ok(Reply::Done) };
        let others = self.state.queue.iter().map(|waiting| &waiting.by);
        let comes_back = (lender.operator.is_some() || lender.how != How::Wrote)
            && (self.state.waits(lender.by.id) || self.must_fit(QUEUE, "", &lender.by, others).is_ok());
        let waits = comes_back.then(|| Change::Waits(Waiting { by: lender.by.clone(), operator: lender.operator }));
        let hold = self.hold(step, by, How::Lent);
        self.pass(step, By::Host, Act::Lapsed(Lapse::Lent), waits.into_iter().collect(), Turn::Held(hold));
        self.tell_turn(step);
        Ok(Reply::Done)
    }

    /// A lent turn goes back once its human has rested: the session waits for it no more.
    pub(super) fn unawaited(&mut self, step: &mut Step) -> Result<Reply, Refusal> {
        let is_over = |hold: &Hold| hold.how == How::Lent && hold.lent_rests_at() <= step.now.time_ms;
        if self.state.turn.hold().is_some_and(is_over) {
            self.pass(step, By::Host, Act::Lapsed(Lapse::Grace), vec![], Turn::Free);
            self.tell_turn(step);
        }
        Ok(Reply::Done)
    }

    fn move_up(&mut self, step: &mut Step) -> bool {
        let (lapse, how) = match &self.state.turn {
            Turn::Free => (Lapse::Next, How::Asked),
            Turn::Held(hold) if hold.idle_at().is_some_and(|at| at <= step.now.time_ms) => (Lapse::Idle, hold.how),
            Turn::Held(_) => return false,
        };
        let Some(next) = self.next(how) else { return false };
        let to = Caller { actor: next.by.clone(), operator: next.operator, token: None };
        let hold = self.hold(step, &to, How::Asked);
        self.pass(step, By::Host, Act::Lapsed(lapse), vec![], Turn::Held(hold));
        self.tell_turn(step);
        true
    }
}
