//! A flow at rest: nothing has to be done for it until a timer fires or somebody says something.
//!
//! Most flows are, for days. What is known here is all that has to be in memory of them.

use super::{Flow, Open};
use crate::command::Command;
use crate::effect::{Due, Effect, Fires};
use serde::{Deserialize, Serialize};

/// A timer of a flow at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wakes {
    /// For which command.
    pub n: u32,
    /// The history in which that was asked for.
    pub generation: u32,
    /// What for.
    pub fires: Fires,
    /// When.
    pub due: Due,
}

impl Flow {
    /// What wakes a flow at rest beside people; none: it is not at rest. A restart derives nothing else from it.
    #[must_use]
    pub fn at_rest(&self) -> Option<Vec<Wakes>> {
        let only_waits = |open: &Open| match &open.command {
            Command::Sleep { .. } | Command::Until { .. } | Command::Ask { .. } | Command::Signal { .. } => true,
            // What a human has to decide is nobody else's to do.
            Command::Run(_) => open.stuck.is_some(),
            Command::Wait { .. }
            | Command::Child { .. }
            | Command::Step { .. }
            | Command::Undo { .. }
            | Command::Continue { .. }
            | Command::End { .. } => false,
        };
        let has_work = self.wants || self.is_over() || (self.open.is_empty() && self.blocked.is_none());
        if has_work || !self.open.values().all(|open| only_waits(open)) {
            return None;
        }
        let wakes = |effect| match effect {
            Effect::Timer { n, fires, due } => Some(Wakes { n, generation: self.generation_of(n)?, fires, due }),
            _ => None,
        };
        Some(self.resume().into_iter().filter_map(wakes).collect())
    }
}
