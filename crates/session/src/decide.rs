//! Every act is decided here, recorded, and only then takes effect.
//!
//! [`Core::decide`] is the one way in. It first brings what the keeper wrote into the journal, so that acts are decided in the
//! order in which they happened; then it asks the authority, has the records written, and performs the effects in order.

use crate::core::{Core, Now};
use crate::outside::{Event, Outside, Unwritten};
use crate::shown;
use crate::typing::{Typing, read_bursts};
use holdfast_abi::protocol::{ToKeeper, WRITER_HOST};
use holdfast_authority::{
    Act, Ask, Audience, Burst, Caller, DeedId, Effect, Ending, Input, Moment, OperatorId, Record, Refusal, Reply,
    Source,
};
use holdfast_types::{ActorClass, Fence, Notice, Size};

/// How long what was typed may wait in the keeper's log, at first.
const DRAIN_AFTER_MS: u64 = 200;

/// Output behind a burst in which it may be shown.
const SHOWN_BYTES_MAX: usize = 32 * 1024;

/// What the authority allowed, and what is left to do.
#[derive(Debug)]
pub struct Decided {
    /// What came of it.
    pub reply: Reply,
    /// The number of what was asked for in the journal.
    pub act: Option<u64>,
    /// The tree is to stand still (true), or to go on.
    pub still: Option<bool>,
    /// What is to be done, and how it ended; none while it is on its way.
    pub deed: Option<(DeedId, Option<Ending>)>,
    /// It could not be written, and waits for room: what was asked for must not be done unless it only takes away.
    unrecorded: Option<Unwritten>,
}

impl Decided {
    /// The fence under which the asker has the turn, where this gave it the turn.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        match self.reply {
            Reply::Turn { fence } => Some(fence),
            Reply::Done | Reply::Waiting { .. } | Reply::Granted(_) | Reply::Revoked(_) => None,
        }
    }
}

/// Why something does not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undecided {
    /// The authority refused it.
    Refused(Refusal),
    /// It cannot be recorded.
    Unrecorded(Unwritten),
}

impl From<Refusal> for Undecided {
    fn from(refusal: Refusal) -> Undecided {
        Undecided::Refused(refusal)
    }
}

/// What takes away (a seizure, a departure, an end) happens also while nothing can be recorded, and is recorded once there is
/// room: a full disk must not keep a session from being stopped.
fn may_wait_for_room(input: &Input) -> bool {
    match input {
        Input::Types { .. } | Input::Awaited { .. } => false,
        Input::Asked { ask, .. } | Input::Judged { ask, .. } => {
            matches!(ask, Ask::Seize { .. } | Ask::Release | Ask::Revoke(_) | Ask::Thaw | Ask::End { .. })
        }
        Input::Started { .. }
        | Input::Forked { .. }
        | Input::Restored(_)
        | Input::Leased(_)
        | Input::Began { .. }
        | Input::Restarted { .. }
        | Input::Damaged { .. }
        | Input::Linked { .. }
        | Input::Joined { .. }
        | Input::Attached { .. }
        | Input::Resumed { .. }
        | Input::Left { .. }
        | Input::CutOff { .. }
        | Input::Wrote { .. }
        | Input::Did { .. }
        | Input::Ended { .. }
        | Input::Forgotten { .. }
        | Input::TokensEnded { .. }
        | Input::Unawaited
        | Input::Tick => true,
    }
}

impl Core {
    /// Decides about what happened: records it, performs the effects, and says what came of it.
    pub fn decide(&mut self, out: &mut impl Outside, now: Now, input: Input) -> Result<Decided, Undecided> {
        self.drain_log(out, now, true);
        let may_wait = may_wait_for_room(&input);
        if !may_wait {
            out.retry_journal().map_err(Undecided::Unrecorded)?;
        }
        let decided = self.handle(out, now, input);
        self.after_decision(out, now);
        match decided? {
            Decided { unrecorded: Some(error), .. } if !may_wait => Err(Undecided::Unrecorded(error)),
            decided => Ok(decided),
        }
    }

    /// Asks the authority and performs what it says, without a look at the keeper's log.
    pub fn handle(&mut self, out: &mut impl Outside, now: Now, input: Input) -> Result<Decided, Undecided> {
        let moment = Moment { time_ms: now.time_ms, at: out.head() };
        let before = self.fence();
        if let Some(previous) = out.segment_due() {
            let header = self.authority.rotate(self.session, previous, moment);
            // Where that fails it is tried again with the next record.
            let _ = out.begin_segment(&header);
        }
        let may_wait = may_wait_for_room(&input);
        let answer = self.authority.handle(input, moment);
        let mut records: Vec<Record> = Vec::new();
        let mut effects = Vec::new();
        for effect in answer.effects {
            match effect {
                Effect::Record(record) => records.push(*record),
                other => effects.push(other),
            }
        }
        // All of them before the first effect.
        let (first, recorded) = out.record(&records, self.fence() != before, &self.authority);
        let asked = |record: &Record| matches!(record.act, Act::Asked(_) | Act::Started);
        let act = records.iter().rposition(asked).map(|at| first + at as u64);
        let (mut still, mut deed) = (None, None);
        for effect in effects {
            match effect {
                Effect::Freeze => still = Some(true),
                Effect::Thaw => still = Some(false),
                Effect::Perform { id, deed: what } => {
                    let ending = match &recorded {
                        Err(error) if !may_wait => Some(Ending::Failed { why: error.0.clone() }),
                        Err(_) | Ok(()) => self.perform(out, now, id, &what),
                    };
                    if let Some(ending) = &ending {
                        self.did(out, now, id, ending.clone());
                    }
                    deed = Some((id, ending));
                }
                other => self.take_effect(out, other),
            }
        }
        Ok(Decided { reply: answer.reply?, act, still, deed, unrecorded: recorded.err() })
    }

    fn take_effect(&mut self, out: &mut impl Outside, effect: Effect) {
        match effect {
            Effect::Record(_) | Effect::Freeze | Effect::Thaw | Effect::Perform { .. } => {}
            Effect::Fence { .. } => self.say_writer(out),
            Effect::FlushInput { fence } => self.flush(out, fence),
            Effect::Expel { operator } => self.expel(out, operator),
            Effect::Tell { to, notice } => self.tell(out, to, &notice),
        }
    }

    /// What was typed and not read is thrown away; with it, perhaps, the keys of a run. Its token must not wait for the next command
    /// of somebody else.
    pub(crate) fn flush(&mut self, out: &mut impl Outside, fence: Fence) {
        if let Some(run) = self.runs.flushed() {
            // Where that cannot be written, the run is looked after all the same.
            let _ = out.tell_shell("", None);
            self.flushed_run = Some(run);
            out.runs_moved();
        }
        out.say(ToKeeper::Flush { fence: fence.0 });
    }

    /// Tells the keeper under which fence who writes.
    pub fn say_writer(&mut self, out: &mut impl Outside) {
        out.place_writer(self.placing());
        let writer = self.writer(out);
        let connection = writer.and_then(|id| self.clients.get(id)).and_then(|client| client.connection);
        out.say(ToKeeper::Writer { fence: self.fence().0, connection: connection.unwrap_or(WRITER_HOST) });
    }

    /// What follows from every decision: clients hear whether they write, the writer's terminal sets the size and answers
    /// queries, and deadlines are looked at again.
    pub fn after_decision(&mut self, out: &mut impl Outside, now: Now) {
        self.mark_detached(out, now);
        self.tell_writers(out);
        let writer = self.writer(out);
        let size = writer.and_then(|id| self.clients.wants_size(id));
        let due = self.authority.next_deadline().map(|at| at.saturating_sub(now.time_ms));
        self.timers.rule = due.map(|ms| now.clock_ms.saturating_add(ms));
        if let Some((id, size)) = writer.zip(size) {
            self.size_follows(out, now, id, size);
        }
        self.retire_answerer(out, now);
        self.appoint(out, now);
        self.watch_answerer(out, now);
        self.watch_lent(now);
        out.stirred();
    }

    /// The terminal takes the size of the client that writes now.
    fn size_follows(&mut self, out: &mut impl Outside, now: Now, id: u32, size: Size) {
        let Some(actor) = self.clients.get(id).and_then(|client| client.actor.clone()) else { return };
        let by = Caller { actor, operator: Some(OperatorId(id)), token: None };
        let asked = Input::Asked { by, ask: Ask::Resize { size }, proof: None };
        if self.asked_size == size || self.handle(out, now, asked).is_ok() {
            self.clients.sized(id, size);
        }
    }

    fn expel(&mut self, out: &mut impl Outside, operator: OperatorId) {
        let Some(client) = self.clients.get(operator.0) else { return };
        if let Some(peer) = client.peer {
            out.tell(peer, client.id, Event::Detached);
        }
        if let Some(connection) = client.connection {
            out.say(ToKeeper::Expel { connection });
        }
    }

    /// Tells clients something.
    pub fn tell(&self, out: &mut impl Outside, to: Audience, notice: &Notice) {
        for client in self.clients.iter() {
            let meant = match to {
                Audience::All => true,
                Audience::One(operator) => operator.0 == client.id,
            };
            if let Some(peer) = client.peer.filter(|_| meant) {
                out.tell(peer, client.id, Event::Notice(notice.clone()));
            }
        }
    }

    /// Tells each client for which it is news whether it writes.
    fn tell_writers(&mut self, out: &mut impl Outside) {
        let (writer, fence) = (self.writer(out), self.fence());
        for client in self.clients.iter_mut() {
            let writes = (Some(client.id) == writer).then_some(fence);
            if client.told_writes != writes
                && let Some(peer) = client.peer
            {
                client.told_writes = writes;
                out.tell(peer, client.id, Event::Writes { writes: writes.is_some(), fence });
            }
        }
    }

    /// Brings what the keeper wrote into the journal. Keys that came within a moment become one burst; unless `all`, the last
    /// one may wait for what follows.
    pub fn drain_log(&mut self, out: &mut impl Outside, now: Now, all: bool) {
        if !all {
            self.timers.drain = None;
        }
        let Some(log_head) = out.log_head() else { return };
        let from = self.log_read().max(out.log_base());
        if from == log_head && (all || log_head == self.logged()) {
            return;
        }
        // Before the keeper may overwrite them.
        out.take_sizes();
        let room = out.log_bytes();
        let mut bursts = if log_head.saturating_sub(from) <= room {
            let state = self.authority.state();
            read_bursts(&out.log(from, log_head), log_head, |connection| state.is_link(connection))
        } else {
            Vec::new()
        };
        if !all && let Some(last) = bursts.last() {
            let used = log_head.saturating_sub(self.logged().max(out.log_base()));
            if last.may_grow(now.time_ms) && used < room / 2 {
                self.timers.drain = Some(now.clock_ms + DRAIN_AFTER_MS);
                return;
            }
        }
        self.log_seen = log_head;
        let typed = !bursts.is_empty();
        if let Some(last) = bursts.last_mut() {
            last.log = log_head;
        }
        for mut typing in bursts {
            let whole = typing.burst.clone();
            self.withhold(out, now, &mut typing);
            let by = self.authority.state().holder_of(typing.fence).cloned();
            self.runs.saw_typing(&whole, by);
            let Typing { fence, burst, direct, log, connection, .. } = typing;
            let from = if direct { Source::Client(connection) } else { Source::Host };
            // What the keeper wrote is done: there is nobody to refuse it to.
            let _ = self.handle(out, now, Input::Wrote { fence, burst, log, from });
        }
        if !typed && !all && log_head > self.logged() {
            // Nothing but the host's own. Recorded, so that the next host finds the place from which to read on.
            let connection = self.connection;
            let _ = self.handle(out, now, Input::Linked { connection, log: log_head });
        }
        out.stirred();
        // Only what is in the journal may be overwritten.
        if (typed || !all) && out.retry_journal().is_ok() {
            self.timers.drain = None;
            out.say(ToKeeper::Drained { position: self.logged() });
        }
    }

    /// Of what a person typed the journal keeps what the screen showed, and command lines: everything else may be a password. What
    /// agents and services type is theirs to hide.
    fn withhold(&mut self, out: &mut impl Outside, now: Now, typing: &mut Typing) {
        let class = self.authority.state().holder_of(typing.fence).map(|actor| actor.handle.class());
        let is_program = matches!(class, Some(ActorClass::Agent | ActorClass::Service));
        let Some(keys) = typing.burst.keys.as_ref().filter(|_| !typing.echoed && !is_program) else { return };
        let text = shown::text(&keys.0);
        if text.is_empty() {
            return;
        }
        let Burst { from, to, .. } = typing.burst;
        if shown::text(&out.output(from, SHOWN_BYTES_MAX)).starts_with(&text) {
            return;
        }
        // Only here is the output parsed for it: most of what people type is shown at once.
        if out.seen() < to {
            self.look(out, now);
        }
        if !self.runs.is_command_line(from, to) {
            typing.burst.keys = None;
        }
    }

    /// The keeper's log has grown.
    pub(crate) fn logged_more(&mut self, now: Now) {
        self.timers.drain.get_or_insert(now.clock_ms + DRAIN_AFTER_MS);
    }
}
