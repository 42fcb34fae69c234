//! In whose cgroup the session's shell is: each turn has one of its own, so that what it starts is known by it.
//!
//! The shell is moved before the first byte. A new fence takes effect at once, and the client that writes under it is named
//! to the keeper behind the move; bytes that go through the host are decided about behind it, so that what is recorded is
//! written. The kernel takes some milliseconds for a move, so that is done on another thread, and only where it says
//! something new: not while one actor alone writes, nor for a turn in which nobody does. A run is entered in its actor's turn,
//! whose cgroup it shares. Where somebody else writes while it is on, and the shell tells its end, it gets one of its own first;
//! behind its end the shell goes to whoever writes next.
//!
//! Where there are no cgroups nothing waits, and processes are known by lineage and time. Of what the shell is in now the
//! kernel tells a later host, and the journal whose that is.

use super::{Held, Session, State};
use crate::journal::writing_acts;
use holdfast_authority::{Act, Ask, Outcome, Record};
use holdfast_graph::{Spot, WritingAct};
use holdfast_observe::{Entered, Turns};
use holdfast_session::Placing;
use holdfast_types::{Actor, ActorId, Fence};
use holdfast_wire::runs::RunId;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How long a move is waited for. It takes tens of milliseconds at most; nobody's keys wait for a kernel that is stuck.
const MOVE_WAIT: Duration = Duration::from_secs(1);

/// Where the shell is, and what is known of where it belongs.
#[derive(Debug, Default)]
pub(crate) struct Place {
    at: At,
    /// Somebody sees to it.
    is_moving: bool,
    /// The next writer waits for it.
    is_awaited: bool,
    /// It cannot be done here.
    is_given_up: bool,
    /// Who is about to take a free turn by writing.
    expected: Option<ActorId>,
    /// Who started the session, where this host saw it.
    starter: Option<Actor>,
    /// The record with which the present turn began.
    turn_from: Option<u64>,
    /// The act of the run that was asked for last.
    asked: Option<u64>,
    /// The run that is on, and its act.
    run: Option<(RunId, u64)>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Where an earlier host left it.
    #[default]
    Unknown,
    /// Where its keeper is; nobody wrote but its starter.
    Outside(ActorId),
    Turn(ActorId),
    Run(u64),
}

/// Where the shell belongs and is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    spot: Spot,
    actor: ActorId,
    /// The last record before its first act, where this host saw it.
    since: Option<u64>,
}

impl Wanted {
    /// Where the shell is once it was moved.
    fn reached(self) -> At {
        match self.spot {
            Spot::Turn(_) => At::Turn(self.actor),
            Spot::Run(seq) => At::Run(seq),
        }
    }

    /// Whether an act was done before it.
    fn is_behind(&self, act: &WritingAct) -> bool {
        match self.spot {
            Spot::Turn(fence) => act.is_start || act.fence < fence,
            Spot::Run(seq) => act.seq < seq,
        }
    }
}

impl Place {
    /// The next writer must not write yet.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// The next writer waits for the shell, if this host gave the turn.
    pub fn await_writer(&mut self) {
        self.is_awaited = self.turn_from.is_some();
    }

    /// Who started the session, where nobody else ever wrote there: every process is theirs.
    pub fn alone(&self) -> Option<&Actor> {
        let is_alone = |actor: &&Actor| self.at == At::Outside(actor.id) && !self.is_given_up;
        self.starter.as_ref().filter(is_alone)
    }

    /// The shell is on its way.
    pub fn is_moving(&self) -> bool {
        self.is_moving
    }

    /// Who is about to take a free turn by writing.
    pub fn expect(&mut self, actor: Option<ActorId>) {
        self.expected = actor;
    }

    /// Records were written, numbered from `first` on.
    pub fn saw(&mut self, records: &[Record], first: u64, is_new_turn: bool) {
        if is_new_turn {
            self.turn_from = Some(first);
        }
        for (seq, record) in (first..).zip(records).filter(|(_, record)| record.outcome == Outcome::Done) {
            match (&record.act, record.by.actor()) {
                (Act::Started, Some(actor)) => {
                    self.at = At::Outside(actor.id);
                    self.starter = Some(actor.clone());
                }
                // Bytes of which the host does not know whose they are.
                (Act::Typed(_), None) => self.starter = None,
                (Act::Asked(Ask::Run { .. }), _) => self.asked = Some(seq),
                (_, _) => {}
            }
        }
    }
}

impl Held {
    /// Where the shell belongs, if it is not there.
    fn wanted_of(&mut self, core: Placing<'_>) -> Option<Wanted> {
        if self.place.is_given_up || self.pid == 0 {
            return None;
        }
        let hold = core.authority.state().turn().hold();
        if let Some(run) = core.run.filter(|run| !run.own) {
            let tells_its_end = !run.token.is_empty();
            let is_holders = hold.is_some_and(|hold| hold.by.id == run.actor.id);
            if tells_its_end || is_holders {
                let seq = match self.place.run {
                    Some((id, seq)) if id == run.id => seq,
                    // One that an earlier host typed stays where it is.
                    Some(_) | None => self.place.asked.take()?,
                };
                self.place.run = Some((run.id, seq));
                // The cgroup of its actor's turn will do until somebody else writes: a move takes longer than most runs.
                let is_its_actors = matches!(self.place.at, At::Outside(by) | At::Turn(by) if by == run.actor.id);
                if self.place.at == At::Run(seq) || (is_its_actors && (is_holders || hold.is_none())) {
                    return None;
                }
                if !is_holders {
                    let since = Some(seq.saturating_sub(1));
                    return Some(Wanted { spot: Spot::Run(seq), actor: run.actor.id, since });
                }
            }
        }
        let (writer, fence, since) = match hold {
            Some(hold) => (hold.by.id, hold.fence, self.place.turn_from.map(|from| from.saturating_sub(1))),
            // Whoever writes next does so under the next fence, or a later one if somebody is faster.
            None => {
                let next = Fence(core.authority.state().fence().0 + 1);
                (self.place.expected?, next, self.journal.last().map(|last| last.seq))
            }
        };
        match self.place.at {
            At::Outside(actor) | At::Turn(actor) if actor == writer => None,
            At::Unknown | At::Outside(_) | At::Turn(_) | At::Run(_) => {
                Some(Wanted { spot: Spot::Turn(fence), actor: writer, since })
            }
        }
    }
}

impl Held {
    /// Whether the shell belongs elsewhere.
    pub(super) fn must_move(&mut self, core: Placing<'_>) -> bool {
        self.wanted_of(core).is_some()
    }

    /// Begins to move the shell if that is due: the session goes on with it once its state is free.
    pub(super) fn begin_move(&mut self, core: Placing<'_>) {
        if !self.place.is_moving && self.must_move(core) {
            self.place.is_moving = true;
            self.after.moves = true;
        }
    }
}

impl Session {
    /// A run may be over: what the client that has the turn types next is no part of it.
    pub(super) fn run_left(&self) {
        self.with_core(|core, held, _| {
            if core.writes_next().is_some() {
                held.begin_move(core.placing());
            }
        });
    }

    /// Moves the shell, on another thread; then the writer that waited for it is named, and what waited goes on.
    pub(super) fn move_soon(&self) {
        self.seam_shared();
        let Some(this) = self.this.upgrade() else { return };
        tokio::task::spawn_local(async move {
            this.move_shell().await;
            this.with_core(|core, held, now| {
                held.place.is_moving = false;
                if std::mem::take(&mut held.place.is_awaited) && held.link.is_some() {
                    core.say_writer(held);
                    core.after_decision(held, now);
                }
                core.go_on_sending(held, now);
            });
            this.changed.notify_waiters();
        });
    }

    async fn move_shell(&self) {
        holdfast_pause::task_point("shell.move").await;
        loop {
            // A freeze moves it, too.
            let _one_at_a_time = self.stilling.lock().await;
            let (wanted, at, pids, files) = {
                let mut state = self.state.borrow_mut();
                let State { core, held: state } = &mut *state;
                let Some(wanted) = state.wanted_of(core.placing()) else { return };
                let at = state.place.at;
                let files = if at == At::Unknown { state.journal.files() } else { Vec::new() };
                (wanted, at, (state.keeper_pid, state.pid), files)
            };
            let turns = std::sync::Arc::clone(&self.turns);
            let moving = tokio::task::spawn_blocking(move || move_to(&turns, pids, wanted, at, &files));
            let moved = tokio::time::timeout(MOVE_WAIT, moving).await;
            let place = &mut self.state.borrow_mut().place;
            match moved {
                Ok(Ok(Ok(Some(at)))) => place.at = at,
                // It has a cgroup of somebody else's, we have no right to it, there is none, or the kernel is stuck: nobody
                // waits for it a second time.
                Ok(Ok(Ok(None) | Err(_)) | Err(_)) | Err(_) => place.is_given_up = true,
            }
        }
    }
}

/// Moves the shell, and says where it is; nowhere, where it cannot be moved. Blocks.
fn move_to(
    turns: &Turns,
    (keeper, shell): (u32, u32),
    wanted: Wanted,
    at: At,
    journal: &[PathBuf],
) -> io::Result<Option<At>> {
    let since = match at {
        At::Outside(_) => wanted.since,
        At::Turn(_) | At::Run(_) => None,
        At::Unknown if turns.is_outside(keeper, shell) => match left_by_starter(journal, &wanted) {
            Some((actor, _)) if matches!(wanted.spot, Spot::Turn(_)) && actor == wanted.actor => {
                return Ok(Some(At::Outside(actor)));
            }
            left => left.map(|(_, since)| since),
        },
        At::Unknown => None,
    };
    Ok(match turns.enter(keeper, shell, wanted.spot, since)? {
        Entered::Here | Entered::Moved => Some(wanted.reached()),
        Entered::Elsewhere => None,
    })
}

/// Who alone wrote until then, and the last act of it; none if there was somebody else, or the journal does not tell.
fn left_by_starter(journal: &[PathBuf], wanted: &Wanted) -> Option<(ActorId, u64)> {
    let acts = writing_acts(journal, 0, &[]);
    let starter = acts.first().filter(|act| act.is_start)?.actor.as_ref()?.id;
    let mut before = acts.iter().filter(|act| wanted.is_behind(act));
    let last = before.clone().next_back()?.seq;
    before.all(|act| act.actor.as_ref().is_some_and(|actor| actor.id == starter)).then_some((starter, last))
}
