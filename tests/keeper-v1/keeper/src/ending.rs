//! How a session is ended: a polite signal, a grace, then KILL until nothing of the tree is left.
//!
//! Pure.

use crate::flow::sooner;

/// Between two rounds of KILL: the time a killed tree takes to vanish.
const ROUND_MS: u64 = 20;
/// After so many rounds (ten seconds) what still lives cannot be killed (it sleeps in the kernel): the session ends.
const ROUNDS_MAX: u32 = 500;

/// Where the end has come to.
#[derive(Debug, Default)]
pub struct Ending {
    kill_at_ms: Option<u64>,
    rounds: u32,
    tree_gone: bool,
}

impl Ending {
    /// The end was asked for. Asked again, the shorter grace counts. True the first time: the polite signal is due.
    pub fn ask(&mut self, grace_ms: u32, now_ms: u64) -> bool {
        let first = self.kill_at_ms.is_none();
        self.kill_at_ms = sooner(self.kill_at_ms, Some(now_ms + u64::from(grace_ms)));
        first
    }

    /// Whether the end was asked for.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.kill_at_ms.is_some()
    }

    /// No descendant is left.
    pub fn tree_is_gone(&mut self) {
        self.tree_gone = true;
    }

    /// Whether a round of KILL is due now.
    pub fn kill_is_due(&mut self, now_ms: u64) -> bool {
        let due = !self.tree_gone && self.kill_at_ms.is_some_and(|at| now_ms >= at);
        if due {
            self.rounds += 1;
            self.kill_at_ms = Some(now_ms + ROUND_MS);
            self.tree_gone = self.rounds > ROUNDS_MAX;
        }
        due
    }

    /// When to look again, in ms from now.
    #[must_use]
    pub fn again_ms(&self, now_ms: u64) -> Option<u64> {
        self.kill_at_ms.filter(|_| !self.tree_gone).map(|at| at.saturating_sub(now_ms))
    }

    /// Whether the processes are as far as the session's end needs: nobody asked and the child is gone, or somebody asked
    /// and all are gone.
    #[must_use]
    pub fn is_settled(&self, child_ended: bool) -> bool {
        if self.kill_at_ms.is_some() { self.tree_gone } else { child_ended }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unasked_the_end_is_the_childs() {
        let ending = Ending::default();
        assert!(ending.is_settled(true) && !ending.is_settled(false));
        assert_eq!(ending.again_ms(5), None);
    }

    #[test]
    fn asked_it_is_the_trees_and_kill_comes_after_the_shortest_grace() {
        let mut ending = Ending::default();
        assert!(ending.ask(1000, 0));
        assert!(!ending.ask(100, 50) && !ending.ask(9000, 60));
        assert!(!ending.is_settled(true) && !ending.kill_is_due(149));
        assert_eq!(ending.again_ms(149), Some(1));
        assert!(ending.kill_is_due(150) && !ending.kill_is_due(160) && ending.kill_is_due(170));
        ending.tree_is_gone();
        assert!(ending.is_settled(true) && !ending.kill_is_due(999));
    }

    #[test]
    fn what_cannot_be_killed_does_not_keep_the_session() {
        let mut ending = Ending::default();
        ending.ask(0, 0);
        let rounds = (0..).step_by(10).take_while(|now| ending.kill_is_due(*now) || !ending.is_settled(false)).count();
        assert!(rounds < 1100);
    }
}
