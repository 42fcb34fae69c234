//! What actors ask for: the turn, and everything discrete.

use super::*;
use crate::deed::{Deed, DeedId, Ending};
use crate::turn::{Frozen, Waiting};
use holdfast_types::{TurnNeed, Who, terms_of};

impl Authority {
    pub(super) fn asked(&mut self, step: &mut Step, by: &Caller, ask: &Ask) -> Result<Reply, Refusal> {
        self.must_be_attached(by)?;
        let (who, rights, turn) = ask.needs();
        // What is one's own is told apart below: by grant, and by operator.
        if who != Who::Owner {
            self.must(step, &by.actor, rights)?;
        }
        if turn == TurnNeed::Holds {
            self.must_hold(by)?;
        }
        match ask {
            Ask::Take => self.take(step, by),
            Ask::Request => self.request(step, by),
            Ask::Withdraw => self.withdraw(step, by),
            Ask::Give { to } => self.give(step, by, to),
            Ask::Release => self.release(step, by),
            Ask::Seize { freeze, reason } => self.seize(step, by, *freeze, reason),
            Ask::Thaw => self.thaw(step, by),
            Ask::Grant { to, rights, until } => self.grant(step, by, to, *rights, *until),
            Ask::Revoke(what) => self.revoke(step, by, *what),
            Ask::Detach { operators } => self.detach(step, by, operators),
            Ask::Run { .. }
            | Ask::Resize { .. }
            | Ask::Signal { .. }
            | Ask::Rename { .. }
            | Ask::End { .. }
            | Ask::Recover { .. }
            | Ask::Operation { .. } => self.perform(step, by, turn, ask),
        }
    }

    /// The gate has looked at it. Whether its actor may ask for it at all is told first.
    pub(super) fn judged(&mut self, step: &mut Step, by: &Caller, ask: &Ask, said: Said) -> Result<Reply, Refusal> {
        let (who, rights, _) = ask.needs();
        if who != Who::Owner {
            self.must(step, &by.actor, rights)?;
        }
        step.gate = Some(match said {
            Said::Allow(gate) => gate,
            Said::Deny { rule, why } => return Err(Refusal::Forbidden { rule, why }),
            Said::Hold { rule, why, approval } => return Err(Refusal::ApprovalNeeded { approval, rule, why }),
        });
        self.asked(step, by, ask)
    }

    /// Records what was asked for with its deed, and has it done.
    fn perform(&mut self, step: &mut Step, by: &Caller, need: TurnNeed, ask: &Ask) -> Result<Reply, Refusal> {
        // An end is never refused for that, and of what detaches there is one for each operator at most.
        let counts = |deed: &Deed| !matches!(deed, Deed::End { .. } | Deed::Detach { .. });
        let is_full = || self.state.open.values().filter(|open| counts(&open.deed)).count() >= OPEN_MAX;
        if Deed::of(ask).is_some_and(|deed| counts(&deed)) && is_full() {
            return Err(Refusal::TooMany { what: "acts in progress".into(), max: OPEN_MAX as u32 });
        }
        let id = DeedId(self.state.last_deed + 1);
        self.write(step, by, need, Act::Asked(ask.clone()), vec![Change::Opened(id)])?;
        step.effects.extend(Deed::of(ask).map(|deed| Effect::Perform { id, deed }));
        Ok(Reply::Done)
    }

    /// A deed is over. Twice is once: a host that comes back may close what its predecessor closed.
    pub(super) fn did(&mut self, step: &mut Step, deed: DeedId, ending: Ending) -> Result<Reply, Refusal> {
        if let Some(open) = self.state.open.get(&deed) {
            let act = Act::Did { deed, what: open.deed.word().to_owned(), ending };
            self.commit(step, By::Host, act, self.state.fence, vec![Change::Closed(deed)]);
        }
        Ok(Reply::Done)
    }

    /// The turn to the caller, by its own asking.
    fn take_over(&mut self, step: &mut Step, by: &Caller, ask: Ask) -> Reply {
        let hold = self.hold(step, by, How::Asked);
        let fence = hold.fence;
        self.pass(step, By::Actor(by.actor.clone()), Act::Asked(ask), vec![], Turn::Held(hold));
        self.tell_turn(step);
        Reply::Turn { fence }
    }

    fn take(&mut self, step: &mut Step, by: &Caller) -> Result<Reply, Refusal> {
        match &self.state.turn {
            Turn::Free => Ok(self.take_over(step, by, Ask::Take)),
            // Minted even when the holder asks again: after a reconnect the old connection's queued writes must lose.
            Turn::Held(hold) if hold.by.id == by.actor.id => Ok(self.take_over(step, by, Ask::Take)),
            Turn::Held(hold) => Err(Refusal::TurnHeld { by: hold.by.clone() }),
        }
    }

    fn request(&mut self, step: &mut Step, by: &Caller) -> Result<Reply, Refusal> {
        let hold = match &self.state.turn {
            Turn::Free => return Ok(self.take_over(step, by, Ask::Request)),
            Turn::Held(hold) if hold.by.id == by.actor.id => return Ok(Reply::Turn { fence: hold.fence }),
            Turn::Held(hold) => hold.clone(),
        };
        if !self.state.waits(by.actor.id) {
            self.must_fit(
                QUEUE,
                "requests for the turn",
                &by.actor,
                self.state.queue.iter().map(|waiting| &waiting.by),
            )?;
        }
        let waits = Change::Waits(Waiting { by: by.actor.clone(), operator: by.operator });
        self.commit(step, By::Actor(by.actor.clone()), Act::Asked(Ask::Request), self.state.fence, vec![waits]);
        if let Some(holder) = hold.operator {
            step.tell(Audience::One(holder), Notice::Requested { by: by.actor.handle.clone() });
        }
        // An idle holder is replaced at once.
        self.lapse(step);
        match self.state.turn.hold().filter(|hold| hold.by.id == by.actor.id) {
            Some(hold) => Ok(Reply::Turn { fence: hold.fence }),
            None => {
                let before = self.state.queue.iter().take_while(|waiting| waiting.by.id != by.actor.id).count();
                Ok(Reply::Waiting { before: before as u32 })
            }
        }
    }

    fn withdraw(&mut self, step: &mut Step, by: &Caller) -> Result<Reply, Refusal> {
        if self.state.waits(by.actor.id) {
            let changes = vec![Change::WaitsNoMore(by.actor.id)];
            self.commit(step, By::Actor(by.actor.clone()), Act::Asked(Ask::Withdraw), self.state.fence, changes);
        }
        Ok(Reply::Done)
    }

    fn must_hold(&self, by: &Caller) -> Result<(), Refusal> {
        let holds = self.state.turn.hold().is_some_and(|hold| hold.by.id == by.actor.id);
        if holds { Ok(()) } else { Err(Refusal::NotHolder) }
    }

    fn give(&mut self, step: &mut Step, by: &Caller, to: &Actor) -> Result<Reply, Refusal> {
        self.must(step, to, WRITING)?;
        let is_its = |(_, operator): &(&OperatorId, &Operator)| operator.actor == *to && operator.away_since.is_none();
        let operator = self.state.operators.iter().rfind(is_its).map(|(id, _)| *id);
        let hold = self.hold(step, &Caller { actor: to.clone(), operator, token: None }, How::Given);
        let act = Act::Asked(Ask::Give { to: to.clone() });
        self.pass(step, By::Actor(by.actor.clone()), act, vec![], Turn::Held(hold));
        self.tell_turn(step);
        Ok(Reply::Done)
    }

    fn release(&mut self, step: &mut Step, by: &Caller) -> Result<Reply, Refusal> {
        self.pass(step, By::Actor(by.actor.clone()), Act::Asked(Ask::Release), vec![], Turn::Free);
        self.tell_turn(step);
        Ok(Reply::Done)
    }

    /// Takes effect whatever the holder does and whoever waits.
    fn seize(&mut self, step: &mut Step, by: &Caller, freeze: bool, reason: &str) -> Result<Reply, Refusal> {
        let from = self.state.turn.hold().map(|hold| hold.by.clone());
        if from.as_ref().is_some_and(|from| !self.may_take_from(&by.actor, from)) {
            return Err(Refusal::Denied { right: Right::Seize, rule: Rule::HumansFirst });
        }
        let mut changes: Vec<Change> =
            self.state.queue.iter().map(|waiting| Change::WaitsNoMore(waiting.by.id)).collect();
        // What a human froze stays the human's to thaw.
        let freezes = freeze && self.state.frozen.as_ref().is_none_or(|f| self.may_take_from(&by.actor, &f.by));
        if freezes {
            changes.push(Change::Freeze(Some(Frozen { by: by.actor.clone(), since: step.now.time_ms })));
        }
        let hold = self.hold(step, by, How::Seized);
        let fence = hold.fence;
        let act = Act::Asked(Ask::Seize { freeze, reason: reason.to_owned() });
        self.pass(step, By::Actor(by.actor.clone()), act, changes, Turn::Held(hold));
        step.effects.push(Effect::FlushInput { fence });
        let by = by.actor.handle.clone();
        if freeze {
            step.effects.push(Effect::Freeze);
        }
        let from = from.map(|from| from.handle);
        step.tell(Audience::All, Notice::Seized { by: by.clone(), from, reason: reason.to_owned() });
        if freezes {
            step.tell(Audience::All, Notice::Frozen { by });
        }
        Ok(Reply::Turn { fence })
    }

    fn thaw(&mut self, step: &mut Step, by: &Caller) -> Result<Reply, Refusal> {
        let Some(frozen) = &self.state.frozen else { return Err(Refusal::NotFrozen) };
        if frozen.by.id != by.actor.id && !self.policy.is_human(&by.actor) {
            return Err(Refusal::Denied { right: Right::Seize, rule: Rule::Freezer });
        }
        let changes = vec![Change::Freeze(None)];
        self.commit(step, By::Actor(by.actor.clone()), Act::Asked(Ask::Thaw), self.state.fence, changes);
        step.effects.push(Effect::Thaw);
        step.tell(Audience::All, Notice::Thawed { by: by.actor.handle.clone() });
        Ok(Reply::Done)
    }

    /// Letting go oneself needs nothing; cutting a human off is taking from it.
    fn detach(&mut self, step: &mut Step, by: &Caller, operators: &[OperatorId]) -> Result<Reply, Refusal> {
        for id in operators {
            let Some(operator) = self.state.operators.get(id) else { return Err(Refusal::NotAttached) };
            if operator.actor.id == by.actor.id {
                continue;
            }
            self.must(step, &by.actor, const { terms_of("session.detach") }.rights)?;
            if !self.may_take_from(&by.actor, &operator.actor) {
                return Err(Refusal::Denied { right: Right::Configure, rule: Rule::HumansFirst });
            }
        }
        // Those that were told to let go are: asked again, by whomever, it is the same.
        let operators: Vec<OperatorId> =
            operators.iter().filter(|operator| !self.state.is_letting_go(**operator)).copied().collect();
        if operators.is_empty() {
            return Ok(Reply::Done);
        }
        self.perform(step, by, TurnNeed::Ignores, &Ask::Detach { operators })
    }
}
