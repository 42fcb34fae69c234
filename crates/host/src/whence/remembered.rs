//! Confirmations that are remembered: a person at the shell of a session confirms once, not with each command.
//!
//! What is remembered is narrow, because an agent may run in the same tree. It counts for one shell, known by pid and start time: the
//! session's own command. It counts for a command that this shell started itself, that is this very program, and that is alone with the
//! shell in the session: a program that is started from an agent's shell, from a script or beside anything else is asked about. It
//! counts while the same person has the turn, under the same fence: as soon as anybody else may have typed, it is gone.

use holdfast_graph::ProcessId;
use holdfast_observe::ancestry::{self, Peer};
use holdfast_observe::{Spared, descendants};
use holdfast_types::{Actor, ActorId, Fence, SessionId};
use holdfast_wire::turns::TurnView;
use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

/// How long a confirmation counts: as long as sudo(8) remembers a password.
const REMEMBERED_MS: u64 = 15 * 60_000;
/// The answer that has it remembered: short, since all of the question must fit a terminal's last line.
pub(super) const FOR_A_WHILE: &str = "for 15m";
/// Columns of that line beside who asks and the text: ` … asks: … [1: no, 2: yes, 3: for 15m] 3`.
const AROUND_COLUMNS: usize = 41;

/// Whether the question with that answer fits a line; without it, it is shorter.
pub(super) fn fits(columns: u16, actor: &Actor, text: &str) -> bool {
    AROUND_COLUMNS + actor.to_string().len() + text.len() <= usize::from(columns)
}

/// One that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Remembered {
    actor: ActorId,
    shell: ProcessId,
    fence: Fence,
    until_ms: u64,
}

/// What is remembered of each session: one person at one shell.
#[derive(Debug, Default)]
pub(crate) struct Memory(RefCell<HashMap<SessionId, Remembered>>);

impl Memory {
    /// From now on `actor` is taken at its word at this shell.
    pub fn remember(&self, session: SessionId, actor: &Actor, shell: ProcessId, turn: &TurnView, now_ms: u64) {
        if has_turn(actor, turn) {
            let until_ms = now_ms.saturating_add(REMEMBERED_MS);
            let remembered = Remembered { actor: actor.id, shell, fence: turn.fence, until_ms };
            self.0.borrow_mut().insert(session, remembered);
        }
    }

    /// Whether `actor` has confirmed to be at this shell, and nobody else may have typed since. What no longer counts is forgotten.
    pub fn knows(&self, session: SessionId, actor: &Actor, shell: ProcessId, turn: &TurnView, now_ms: u64) -> bool {
        let mut all = self.0.borrow_mut();
        let Some(known) = all.get(&session) else { return false };
        let counts = known.fence == turn.fence && now_ms < known.until_ms;
        let is_it = counts && known.actor == actor.id && known.shell == shell && has_turn(actor, turn);
        if !counts {
            all.remove(&session);
        }
        is_it
    }
}

pub(super) fn has_turn(actor: &Actor, turn: &TurnView) -> bool {
    turn.holder.as_ref().is_some_and(|holder| holder.actor.id == actor.id) && turn.frozen.is_none()
}

/// The session's own shell, if it started this process itself, the process is this program, and nothing else is in the session.
/// Blocks.
pub(super) fn shell_of(peer: &Peer, keeper: ProcessId, spared: &Spared) -> Option<ProcessId> {
    let above = ancestry::ancestors(peer.id(), super::ANCESTORS_MAX)?;
    let [own, shell, keeps, ..] = above.as_slice() else { return None };
    if keeps.id() != keeper || !is_this_program(own.pid) {
        return None;
    }
    // A process can make a child of its parent's (CLONE_PARENT): whose child it is says little while others are there.
    let all = descendants(keeper.pid, spared).ok()?;
    let are_alone = all.iter().all(|process| process.id() == own.id() || process.id() == shell.id());
    (are_alone && peer.is_there()).then(|| shell.id())
}

/// Whether a process runs the file that this host runs. Any other program may act for an agent.
fn is_this_program(pid: u32) -> bool {
    let file = |of: &str| std::fs::metadata(format!("/proc/{of}/exe")).ok().map(|file| (file.dev(), file.ino()));
    file("self").is_some_and(|own| file(&pid.to_string()) == Some(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_wire::turns::HolderView;

    fn actor(handle: &str, key: u8) -> Actor {
        Actor { id: ActorId([key; 32]), handle: handle.parse().unwrap() }
    }

    fn turn(holder: Option<&Actor>, fence: u64) -> TurnView {
        let holder = holder.map(|actor| HolderView {
            actor: actor.clone(),
            client: None,
            since_ms: 0,
            active_ms: 0,
            ends_ms: None,
            how: "took".into(),
        });
        TurnView { holder, fence: Fence(fence), queue: Vec::new(), frozen: None }
    }

    #[test]
    fn it_counts_for_one_person_at_one_shell_for_a_while_and_until_anybody_else_may_have_typed() {
        let (ann, bob) = (actor("human:ann", 1), actor("human:bob", 2));
        let (one, other) = (SessionId::from_random_bits(1), SessionId::from_random_bits(2));
        let shell = ProcessId { pid: 7, start: 70 };
        let again = ProcessId { pid: 7, start: 71 };
        let anns = turn(Some(&ann), 5);
        let known = || {
            let memory = Memory::default();
            memory.remember(one, &ann, shell, &anns, 1000);
            memory
        };
        assert!(known().knows(one, &ann, shell, &anns, 1000 + REMEMBERED_MS - 1));
        assert!(!known().knows(one, &ann, shell, &anns, 1000 + REMEMBERED_MS), "its time is over");
        assert!(!known().knows(one, &bob, shell, &anns, 1001), "another person");
        assert!(!known().knows(one, &ann, again, &anns, 1001), "another process with that pid");
        assert!(!known().knows(other, &ann, shell, &anns, 1001), "another session");
        assert!(!known().knows(one, &ann, shell, &turn(None, 5), 1001), "nobody has the turn");
        let memory = known();
        assert!(!memory.knows(one, &ann, shell, &turn(Some(&bob), 6), 1001), "somebody else has the turn");
        assert!(!memory.knows(one, &ann, shell, &turn(Some(&ann), 7), 1002), "and it does not come back with it");
        assert!(!memory.knows(one, &ann, shell, &anns, 1003), "it is forgotten");
    }

    #[test]
    fn without_the_turn_nothing_is_remembered() {
        let (ann, session) = (actor("human:ann", 1), SessionId::from_random_bits(1));
        let shell = ProcessId { pid: 7, start: 70 };
        let memory = Memory::default();
        memory.remember(session, &ann, shell, &turn(None, 5), 0);
        assert!(!memory.knows(session, &ann, shell, &turn(Some(&ann), 5), 1));
    }
}
