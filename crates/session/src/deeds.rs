//! Doing what was decided: the one performer of deeds.
//!
//! A deed was recorded before it comes here, and is marked when it is over. What a host leaves open, because it was killed in
//! between, its successor does again or reports as lost, by the rule of each deed.

use crate::core::{Core, Now};
use crate::outside::Outside;
use holdfast_abi::protocol::ToKeeper;
use holdfast_authority::{AfterKill, Deed, DeedId, Ending, Input, Open, OperatorId};
use holdfast_types::{Fence, Size};

/// A signal's target: the whole tree.
const TARGET_TREE: u8 = 2;

impl Core {
    /// Does it. None: it is on its way, and [`Core::did`] will say how it ended.
    pub(crate) fn perform(&mut self, out: &mut impl Outside, now: Now, id: DeedId, deed: &Deed) -> Option<Ending> {
        let fence = self.fence().0;
        let said = match deed {
            Deed::Resize { size } => self.say_size(out, *size),
            Deed::Signal { number, target } => {
                let frame = ToKeeper::Signal { fence, target: *target, number: *number };
                if *target == TARGET_TREE { out.reach_tree(id, frame)? } else { out.say(frame) }
            }
            Deed::End { grace_ms } => {
                // What stands still hears no HUP, and must not go on for it.
                let grace_ms = if self.is_frozen() { 0 } else { *grace_ms };
                out.reach_tree(id, ToKeeper::End { grace_ms })?
            }
            Deed::Rename { name } => return Some(ending(out.rename(name))),
            Deed::Detach { operators } => {
                let clients: Vec<u32> = operators.iter().map(|operator| operator.0).collect();
                self.detach(out, now, &clients);
                return self.is_detached(id).then_some(Ending::Done);
            }
            // There is a keeper: it has its other life.
            Deed::Recover { .. } if out.log_head().is_some() => return Some(Ending::Done),
            // Its asker goes on with it.
            Deed::Recover { .. } => return None,
            Deed::Run { .. } | Deed::Operation { .. } => return None,
        };
        Some(if said { Ending::Done } else { ending(Err("the keeper cannot be reached".into())) })
    }

    /// The fence under which an open deed that was decided under this one is done; none: somebody else had the turn since.
    #[must_use]
    pub fn fence_of(&self, id: DeedId, since: Fence) -> Option<Fence> {
        let (_, open) = self.authority.state().open().find(|(open, _)| *open == id)?;
        (since == self.fence() || self.had_nobody_else(&open.by, since)).then(|| self.fence())
    }

    /// A deed is over.
    pub fn did(&mut self, out: &mut impl Outside, now: Now, id: DeedId, ending: Ending) {
        // There is nobody to refuse it to.
        let _ = self.handle(out, now, Input::Did { deed: id, ending });
    }

    /// What the last host left open is done again, or lost.
    pub(crate) fn take_up_deeds(&mut self, out: &mut impl Outside, now: Now) {
        let open: Vec<(DeedId, Open)> = self.authority.state().open().map(|(id, open)| (id, open.clone())).collect();
        for (id, open) in open {
            let ending = match open.after_a_kill() {
                AfterKill::Again => self.perform(out, now, id, &open.deed),
                AfterKill::Lost => Some(Ending::Lost),
            };
            if let Some(ending) = ending {
                self.did(out, now, id, ending);
            }
        }
    }

    /// An operator that was to let go reports back: the host that was to tell it did not, or it did not hear.
    pub(crate) fn detach_again(&mut self, out: &mut impl Outside, now: Now, operator: OperatorId) {
        if self.authority.state().is_letting_go(operator) {
            self.detach(out, now, &[operator.0]);
        }
    }

    /// Those that were to let go and have: their deeds are over.
    pub(crate) fn mark_detached(&mut self, out: &mut impl Outside, now: Now) {
        let over: Vec<DeedId> =
            self.authority.state().open().map(|(id, _)| id).filter(|id| self.is_detached(*id)).collect();
        for id in over {
            self.did(out, now, id, Ending::Done);
        }
    }

    /// Whether this deed is to detach operators of which none is attached any more.
    fn is_detached(&self, id: DeedId) -> bool {
        let state = self.authority.state();
        let deed = state.open().find(|(other, _)| *other == id).map(|(_, open)| &open.deed);
        let is_here = |operator: &OperatorId| state.operators().any(|(id, _)| id == *operator);
        matches!(deed, Some(Deed::Detach { operators }) if !operators.iter().any(is_here))
    }

    /// Asks the keeper for a size, unless it was asked for it last.
    fn say_size(&mut self, out: &mut impl Outside, size: Size) -> bool {
        if self.asked_size == size {
            return true;
        }
        self.asked_size = size;
        out.say(ToKeeper::Resize { fence: self.fence().0, cols: size.cols(), rows: size.rows() })
    }
}

fn ending(done: Result<(), String>) -> Ending {
    match done {
        Ok(()) => Ending::Done,
        Err(why) => Ending::Failed { why },
    }
}
