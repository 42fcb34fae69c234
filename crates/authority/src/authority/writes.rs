//! The one check every way to write goes through.

use super::*;
use crate::act::Burst;
use holdfast_types::{Terms, TurnNeed, terms_of};

const SEND: &Terms = terms_of("session.send");

impl Authority {
    pub(super) fn typed(
        &mut self,
        step: &mut Step,
        by: &Caller,
        fence: Option<Fence>,
        burst: Burst,
    ) -> Result<Reply, Refusal> {
        self.must(step, &by.actor, SEND.rights)?;
        self.write(step, by, SEND.turn, fence, Act::Typed(burst))?;
        step.effects.push(Effect::Forward { fence: self.state.fence });
        Ok(Reply::Turn { fence: self.state.fence })
    }

    /// The keeper wrote these already, and asked nobody: only the record is left to do.
    pub(super) fn wrote(&mut self, step: &mut Step, fence: Fence, burst: Burst, log: u64) -> Result<Reply, Refusal> {
        let by = self.state.holder_of(fence).map_or(By::Host, |actor| By::Actor(actor.clone()));
        self.commit(step, by, Act::Typed(burst), fence.min(self.state.fence), vec![Change::Logged(log)]);
        Ok(Reply::Done)
    }

    /// Whether an act may reach into the session now; where it may, it is recorded, and the turn taken if it takes it.
    pub(super) fn write(
        &mut self,
        step: &mut Step,
        by: &Caller,
        need: TurnNeed,
        fence: Option<Fence>,
        act: Act,
    ) -> Result<(), Refusal> {
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
        let taken = match (need, &self.state.turn) {
            (TurnNeed::Takes, Turn::Free) => Some(self.hold(step, by, How::Wrote)),
            // The same actor at another terminal: the turn goes with it, under a new fence.
            (TurnNeed::Takes, Turn::Held(hold)) if by.operator.is_some() && by.operator != hold.operator => {
                Some(Hold { since: hold.since, how: hold.how, ..self.hold(step, by, How::Wrote) })
            }
            (TurnNeed::Takes, Turn::Held(_)) => None,
            (TurnNeed::Respects | TurnNeed::Ignores | TurnNeed::Holds | TurnNeed::Asks, Turn::Free | Turn::Held(_)) => {
                None
            }
        };
        let who = By::Actor(by.actor.clone());
        match taken {
            Some(hold) => {
                self.pass(step, who, act, vec![], Turn::Held(hold));
                self.tell_turn(step);
            }
            None => self.commit(step, who, act, ours, vec![]),
        }
        Ok(())
    }
}
