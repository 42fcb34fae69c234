//! The one check every way to write goes through.

use super::*;
use crate::act::Burst;
use holdfast_types::{Terms, TurnNeed, terms_of};

const SEND: &Terms = terms_of("session.send");

impl Authority {
    /// Typing needs no record of its own where the turn is the actor's already: the keeper records the bytes. Taking the turn
    /// by it does.
    pub(super) fn types(&mut self, step: &mut Step, by: &Caller, fence: Option<Fence>) -> Result<Reply, Refusal> {
        self.must(step, &by.actor, SEND.rights)?;
        if let Some(hold) = self.may_write(step, by, SEND.turn, fence)? {
            self.take_by_writing(step, by, hold, Act::Took, vec![]);
        }
        Ok(Reply::Turn { fence: self.state.fence })
    }

    /// The keeper wrote these already, and asked nobody: only the record is left to do.
    pub(super) fn wrote(
        &mut self,
        step: &mut Step,
        fence: Fence,
        burst: Burst,
        log: u64,
        from: Source,
    ) -> Result<Reply, Refusal> {
        let holder = self.state.holder_of(fence);
        let (by, logged) = match (from, holder) {
            (Source::Host, holder) => {
                (holder.map_or(By::Host, |actor| By::Actor(actor.clone())), Change::Forwarded(log))
            }
            (Source::Client(connection), Some(actor)) if self.state.is_client_of(actor.id, connection) => {
                (By::Actor(actor.clone()), Change::Logged(log))
            }
            (Source::Client(_), _) => (By::Unknown, Change::Logged(log)),
        };
        self.commit(step, by, Act::Typed(burst), fence.min(self.state.fence), vec![logged]);
        Ok(Reply::Done)
    }

    /// Whether an act may reach into the session now; where it may, it is recorded, and the turn taken if it takes it.
    pub(super) fn write(
        &mut self,
        step: &mut Step,
        by: &Caller,
        need: TurnNeed,
        act: Act,
        changes: Vec<Change>,
    ) -> Result<(), Refusal> {
        match self.may_write(step, by, need, None)? {
            Some(hold) => self.take_by_writing(step, by, hold, act, changes),
            None => self.commit(step, By::Actor(by.actor.clone()), act, self.state.fence, changes),
        }
        Ok(())
    }

    fn take_by_writing(&mut self, step: &mut Step, by: &Caller, hold: Hold, act: Act, changes: Vec<Change>) {
        self.pass(step, By::Actor(by.actor.clone()), act, changes, Turn::Held(hold));
        self.tell_turn(step);
    }

    /// Whether an actor may reach into the session now; where it takes the turn by it, the hold it would have.
    fn may_write(
        &self,
        step: &Step,
        by: &Caller,
        need: TurnNeed,
        fence: Option<Fence>,
    ) -> Result<Option<Hold>, Refusal> {
        self.must_be_attached(by)?;
        let ours = self.state.fence;
        match (need, &self.state.frozen, &self.state.turn) {
            (TurnNeed::Takes | TurnNeed::Respects, Some(frozen), _) => {
                return Err(Refusal::Frozen { by: frozen.by.clone() });
            }
            (TurnNeed::Takes | TurnNeed::Respects, None, Turn::Held(hold)) if hold.by.id != by.actor.id => {
                return Err(Refusal::TurnHeld { by: hold.by.clone() });
            }
            (TurnNeed::Takes | TurnNeed::Respects, None, Turn::Free | Turn::Held(_)) => {}
            (TurnNeed::Ignores | TurnNeed::Holds | TurnNeed::Asks, _, Turn::Free | Turn::Held(_)) => {}
        }
        if fence.is_some_and(|fence| fence != ours) {
            return Err(Refusal::FenceStale { newest: ours });
        }
        Ok(match (need, &self.state.turn) {
            (TurnNeed::Takes, Turn::Free) => Some(self.hold(step, by, How::Wrote)),
            // The same actor at another terminal: the turn goes with it, under a new fence.
            (TurnNeed::Takes, Turn::Held(hold)) if by.operator.is_some() && by.operator != hold.operator => {
                Some(Hold { since: hold.since, ..self.hold(step, by, hold.how) })
            }
            (TurnNeed::Takes, Turn::Held(_)) => None,
            (TurnNeed::Respects | TurnNeed::Ignores | TurnNeed::Holds | TurnNeed::Asks, Turn::Free | Turn::Held(_)) => {
                None
            }
        })
    }
}
