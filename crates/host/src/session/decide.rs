//! Driving the authority: every act is decided here, recorded, and only then takes effect.
//!
//! [`Session::decide`] is the one way in. It first brings what the keeper wrote by itself into the journal, so that acts are
//! decided in the order in which they happened; then it asks the authority, writes the records, and performs the effects in
//! order. What is left to the caller is what was asked for itself: the bytes to forward, the end to bring about.

use super::typing::{Typing, read_bursts};
use super::{Session, State};
use crate::disk::at_disk;
use crate::link::Link;
use crate::notes::About;
use holdfast_abi::protocol::{ToKeeper, WRITER_HOST};
use holdfast_abi::ring::Ring;
use holdfast_authority::{
    Act, Ask, Audience, Caller, Effect, How, Input, Moment, OperatorId, Outcome, Record, Refusal, Reply,
};
use holdfast_types::{Actor, Fence, Notice, Size};
use holdfast_wire::events::Event;
use holdfast_wire::params::DetachedEvent;
use holdfast_wire::turns::{FrozenView, HolderView, NoticeEvent, TurnView, WritesEvent};
use holdfast_wire::{Body, Code, Fault, Message};
use std::io;
use std::time::Duration;
use tokio::time::Instant;

/// Records reach the disk for certain within this time and the disk's own: the cost of a sync is shared by all acts within.
const SYNC_AFTER: Duration = Duration::from_millis(20);

/// What the authority allowed, and what is left to do.
#[derive(Debug)]
pub(crate) struct Decided {
    pub reply: Reply,
    /// The number of what was asked for in the journal.
    pub act: Option<u64>,
    /// The tree is to stand still (true), or to go on.
    pub still: Option<bool>,
    /// It could not be written, and waits for room: what was asked for must not be done unless it only takes away.
    unrecorded: Option<io::Error>,
}

/// A refusal as it is sent.
pub(crate) fn fault(refusal: &Refusal) -> Fault {
    let code = match refusal {
        Refusal::TurnHeld { .. } => Code::TurnHeld,
        Refusal::FenceStale { .. } => Code::FenceStale,
        Refusal::Denied { .. } => Code::Denied,
        Refusal::Frozen { .. } => Code::Frozen,
        Refusal::NotFrozen => Code::NotFrozen,
        Refusal::NotHolder => Code::NotHolder,
        Refusal::NotAttached => Code::NotAttached,
        Refusal::NoSuchGrant { .. } => Code::NoSuchGrant,
        Refusal::TooWide { .. } => Code::TooWide,
        Refusal::TooLong { .. } => Code::TooLong,
        Refusal::EmptyGrant => Code::EmptyGrant,
        Refusal::TooMany { .. } => Code::TooMany,
    };
    let mut fault = Fault::new(code, refusal.to_string()).hint(refusal.hint());
    fault.details = serde_json::to_value(refusal).ok();
    fault
}

impl Session {
    /// Decides about what happened: records it, performs the effects, and says what came of it.
    pub(crate) fn decide(&self, input: Input) -> Result<Decided, Fault> {
        self.drain_log(self.link().as_deref(), true).map_err(|e| self.keeper_failed(&e))?;
        // What cannot be recorded does not happen. What takes away (a seizure, a departure, an end) happens all the same, and
        // is recorded once there is room: a full disk must not keep a session from being stopped.
        let may_wait = match &input {
            Input::Typed { .. } => false,
            Input::Asked { ask, .. } => {
                matches!(ask, Ask::Seize { .. } | Ask::Release | Ask::Revoke(_) | Ask::Thaw | Ask::End { .. })
            }
            _ => true,
        };
        if !may_wait {
            let tried = self.state.borrow_mut().journal.retry();
            tried.map_err(|error| self.unrecorded(&error))?;
        }
        let decided = self.handle(input);
        self.after_decision();
        match decided? {
            Decided { unrecorded: Some(error), .. } if !may_wait => Err(self.unrecorded(&error)),
            decided => Ok(decided),
        }
    }

    /// Asks the authority and performs what it says, without a look at the keeper's log.
    pub(super) fn handle(&self, input: Input) -> Result<Decided, Fault> {
        let now = self.moment();
        let mut state = self.state.borrow_mut();
        let before = state.authority.state().fence();
        if let Err(error) = state.begin_segment_if_wanted(now) {
            state.notes.add(About::Journal, format!("the journal cannot be written: {error}"));
        }
        let answer = state.authority.handle(input, now);
        let (records, effects): (Vec<Record>, Vec<Effect>) = sort(answer.effects);
        for record in &records {
            let class = record.by.actor().map_or("host", |actor| actor.handle.class().word());
            self.metrics.recorded(class, is_act(record));
        }
        if let Err(refusal) = &answer.reply {
            self.metrics.refused(refusal.code());
        }
        state.runs_saw_typing(&records);
        let recorded = state.journal.append(&records);
        state.notes.wrote(About::Journal, "the journal cannot be written", &recorded);
        let first = state.journal.last().map_or(0, |last| last.seq + 1).saturating_sub(records.len() as u64);
        if let Some(newest) = first.checked_add(records.len() as u64).filter(|_| !records.is_empty()) {
            tracing::Span::current().record("seq", newest - 1);
        }
        let is_new_turn = state.authority.state().fence() != before;
        state.place.saw(&records, first, is_new_turn);
        let asked = |record: &Record| matches!(record.act, Act::Asked(_) | Act::Started);
        let act = records.iter().rposition(asked).map(|at| first + at as u64);
        if is_new_turn {
            self.metrics.turn_changed(state.authority.state().turn().hold().map_or("freed", |hold| word(hold.how)));
        }
        drop(state);
        self.news_of(&records);
        if !records.is_empty() {
            holdfast_pause::point("act.recorded");
        }
        let mut still = None;
        for effect in effects {
            self.perform(effect, &mut still);
        }
        let reply = answer.reply.map_err(|refusal| fault(&refusal))?;
        if let Err(error) = &recorded {
            tracing::error!(session = %self.id, "the journal cannot be written: {error}");
        }
        Ok(Decided { reply, act, still, unrecorded: recorded.err() })
    }

    fn moment(&self) -> Moment {
        let state = self.state.borrow();
        Moment { time_ms: crate::now_ms(), at: state.ring.as_ref().map_or(state.base, Ring::head) }
    }

    fn unrecorded(&self, error: &io::Error) -> Fault {
        Fault::new(Code::Unrecorded, format!("cannot write the journal of {}: {error}", self.name()))
            .hint("is the disk full? the host does nothing that it cannot record")
    }

    fn perform(&self, effect: Effect, still: &mut Option<bool>) {
        match effect {
            // Written already, all of them before the first effect.
            Effect::Record(_) => {}
            Effect::Fence { .. } => self.say_writer(),
            Effect::FlushInput { fence } => self.say(ToKeeper::Flush { fence: fence.0 }),
            Effect::Freeze => *still = Some(true),
            Effect::Thaw => *still = Some(false),
            Effect::Forward { .. } | Effect::Perform { .. } => {}
            Effect::Expel { operator } => self.expel(operator),
            Effect::Tell { to, notice } => self.tell(to, &notice),
        }
    }

    /// Says something to the keeper; where that fails the connection is about to be taken up anew, and everything said again.
    fn say(&self, frame: ToKeeper<'_>) {
        if let Some(link) = self.link()
            && let Err(error) = link.send(frame)
        {
            tracing::warn!(session = %self.id, "keeper connection: {error}");
        }
    }

    /// Tells the keeper under which fence who writes, and the clients whether it is they.
    pub(super) fn say_writer(&self) {
        self.place_writer();
        let (fence, writer) = {
            let mut state = self.state.borrow_mut();
            let writer = state.writer();
            let connection = writer.and_then(|id| state.clients.get(id)).and_then(|client| client.connection);
            (state.authority.state().fence(), connection)
        };
        self.say(ToKeeper::Writer { fence: fence.0, connection: writer.unwrap_or(WRITER_HOST) });
    }

    /// What follows from every decision: clients hear whether they write, the writer's terminal sets the size and answers
    /// queries, and the driver looks at its deadlines.
    pub(super) fn after_decision(&self) {
        let resize = {
            let mut state = self.state.borrow_mut();
            state.tell_writers();
            let writer = state.writer();
            let size = writer.and_then(|id| state.clients.wants_size(id));
            let due = state.authority.next_deadline().map(|at| at.saturating_sub(crate::now_ms()));
            state.timers.rule = due.map(|ms| Instant::now() + Duration::from_millis(ms));
            writer.zip(size)
        };
        if let Some((id, size)) = resize {
            self.size_follows(id, size);
        }
        self.appoint();
        self.sync_soon();
        self.nudge.notify_one();
        self.changed.notify_waiters();
    }

    /// The terminal takes the size of whoever writes now.
    fn size_follows(&self, id: u32, size: Size) {
        let caller = {
            let mut state = self.state.borrow_mut();
            state.clients.get(id).and_then(|client| client.actor.clone())
        };
        let Some(actor) = caller else { return };
        let by = Caller { actor, operator: Some(OperatorId(id)) };
        let asked = self.state.borrow().asked_size;
        if asked == size || self.handle(Input::Asked { by, ask: Ask::Resize { size }, proof: None }).is_ok() {
            self.say_size(size);
            self.state.borrow_mut().clients.sized(id, size);
        }
    }

    /// Asks the keeper for a size, unless it was asked for it last.
    pub(super) fn say_size(&self, size: Size) {
        let asked = std::mem::replace(&mut self.state.borrow_mut().asked_size, size);
        if asked != size {
            self.say(ToKeeper::Resize { fence: self.fence().0, cols: size.cols(), rows: size.rows() });
        }
    }

    /// The newest fence.
    pub(crate) fn fence(&self) -> Fence {
        self.state.borrow().authority.state().fence()
    }

    /// Sees to it that what was written reaches the disk, off this thread.
    pub(super) fn sync_soon(&self) {
        if !self.state.borrow().journal.is_unsynced() || self.syncing.replace(true) {
            return;
        }
        let Some(this) = self.this.upgrade() else { return };
        tokio::task::spawn_local(async move {
            tokio::time::sleep(SYNC_AFTER).await;
            this.syncing.set(false);
            let next = || this.state.borrow_mut().journal.unsynced();
            // The segment, and where it is new the directory that has its name. A disk syncs one after the other anyway.
            let _turn = this.syncs.acquire().await;
            while let Some(path) = next() {
                let began = Instant::now();
                let synced = at_disk(move || std::fs::File::open(path)?.sync_data()).await;
                if synced.is_ok() {
                    this.metrics.synced(began.elapsed());
                }
                this.state.borrow_mut().notes.wrote(About::Sync, "the journal may not survive a crash", &synced);
            }
        });
    }

    fn expel(&self, operator: OperatorId) {
        let connection = {
            let mut state = self.state.borrow_mut();
            let Some(client) = state.clients.get(operator.0) else { return };
            if let Some((_, events)) = &client.peer {
                let _ = events.send(event(&DetachedEvent { client: client.id }));
            }
            client.connection
        };
        if let Some(connection) = connection {
            self.say(ToKeeper::Expel { connection });
        }
    }

    pub(super) fn tell(&self, to: Audience, notice: &Notice) {
        for client in self.state.borrow().clients.iter() {
            let meant = match to {
                Audience::All => true,
                Audience::One(operator) => operator.0 == client.id,
            };
            if let Some((_, events)) = client.peer.as_ref().filter(|_| meant) {
                let _ = events.send(event(&NoticeEvent { client: client.id, notice: notice.clone() }));
            }
        }
    }

    /// Brings what the keeper wrote by itself into the journal. Keys that came within a moment become one burst; unless
    /// `now`, the last one may wait for what follows.
    pub(crate) fn drain_log(&self, link: Option<&Link>, now: bool) -> io::Result<()> {
        let (mut bursts, log_head) = {
            let mut state = self.state.borrow_mut();
            if !now {
                state.timers.drain = None;
            }
            let State { ring: Some(ring), picture, authority, log_seen, .. } = &mut *state else { return Ok(()) };
            let log_head = ring.log_head();
            let from = authority.state().logged().max(*log_seen).max(ring.base().log);
            if from == log_head && (now || log_head == authority.state().logged()) {
                return Ok(());
            }
            // Before the keeper may overwrite them.
            picture.take_sizes(ring);
            let skips = |connection| authority.state().is_link(connection);
            (read_bursts(ring, from, log_head, skips), log_head)
        };
        if !now && let Some(last) = bursts.last() {
            let (base, room) = self.state.borrow().ring.as_ref().map_or((0, 0), |r| (r.base().log, r.log_bytes()));
            let used = log_head.saturating_sub(self.logged().max(base));
            if last.may_grow(crate::now_ms()) && used < room / 2 {
                self.state.borrow_mut().timers.drain = Some(Instant::now() + super::drive::DRAIN_AFTER);
                return Ok(());
            }
        }
        self.state.borrow_mut().log_seen = log_head;
        let typed = !bursts.is_empty();
        if let Some(last) = bursts.last_mut() {
            last.log = log_head;
        }
        for burst in bursts {
            let Typing { fence, burst, log, .. } = burst;
            // What the keeper wrote is done: there is nobody to refuse it to.
            let _ = self.handle(Input::Wrote { fence, burst, log });
        }
        if !typed && !now && log_head > self.logged() {
            // Nothing but the host's own. Recorded, so that the next host finds the place from which to read on.
            let connection = self.state.borrow().connection;
            let _ = self.handle(Input::Linked { connection, log: log_head });
        }
        self.sync_soon();
        // Only what is in the journal may be overwritten.
        if (typed || !now)
            && self.state.borrow_mut().journal.retry().is_ok()
            && let Some(link) = link
        {
            self.state.borrow_mut().timers.drain = None;
            link.send(ToKeeper::Drained { position: self.logged() })?;
        }
        Ok(())
    }

    /// How far the keeper's log is in the journal.
    fn logged(&self) -> u64 {
        self.state.borrow().authority.state().logged()
    }

    /// Who may write now, and who waits.
    pub fn turn(&self) -> TurnView {
        self.state.borrow().turn_view()
    }
}

impl State {
    /// The client that writes now, if it is one: nobody writes into what is frozen, or before the shell is in its cgroup.
    pub(crate) fn writer(&self) -> Option<u32> {
        self.writes_next().filter(|_| !self.place.is_awaited())
    }

    /// The client that writes now, or once the shell was moved.
    pub(super) fn writes_next(&self) -> Option<u32> {
        let state = self.authority.state();
        let operator = state.turn().hold().and_then(|hold| hold.operator);
        operator.filter(|_| state.frozen().is_none()).map(|operator| operator.0)
    }

    pub(crate) fn turn_view(&self) -> TurnView {
        let state = self.authority.state();
        let holder = state.turn().hold().map(|hold| HolderView {
            actor: hold.by.clone(),
            client: hold.operator.map(|operator| operator.0),
            since_ms: hold.since,
            active_ms: hold.active,
            ends_ms: hold.ends,
            how: word(hold.how).into(),
        });
        TurnView {
            holder,
            fence: state.fence(),
            queue: state.queue().map(|waiting| waiting.by.handle.clone()).collect(),
            frozen: state.frozen().map(|frozen| FrozenView { by: frozen.by.clone(), since_ms: frozen.since }),
        }
    }

    fn begin_segment_if_wanted(&mut self, now: Moment) -> io::Result<()> {
        if !self.journal.wants_segment() {
            return Ok(());
        }
        let header = self.authority.rotate(self.spec.id, self.journal.last(), now);
        self.journal.begin_segment(&header)
    }

    /// Tells each client for which it is news whether it writes.
    fn tell_writers(&mut self) {
        let (writer, fence) = (self.writer(), self.authority.state().fence());
        for client in self.clients.iter_mut() {
            let writes = (Some(client.id) == writer).then_some(fence);
            if client.told_writes == writes {
                continue;
            }
            if let Some((_, events)) = &client.peer {
                client.told_writes = writes;
                let told = WritesEvent { client: client.id, writes: writes.is_some(), fence };
                let _ = events.send(event(&told));
            }
        }
    }

    /// What an actor holds now.
    pub(crate) fn rights(&self, actor: &Actor) -> holdfast_types::Rights {
        self.authority.rights(actor, crate::now_ms())
    }
}

/// An event for a client.
pub(crate) fn event<E: Event>(params: &E) -> Box<Message> {
    let params = serde_json::to_value(params).expect("texts and numbers always serialise");
    Box::new(Message::plain(Body::Event { method: E::ROW.name.into(), params }))
}

fn word(how: How) -> &'static str {
    match how {
        How::Wrote => "wrote",
        How::Asked => "asked",
        How::Given => "given",
        How::Seized => "seized",
    }
}

fn sort(effects: Vec<Effect>) -> (Vec<Record>, Vec<Effect>) {
    let mut records = Vec::new();
    let mut others = Vec::new();
    for effect in effects {
        match effect {
            Effect::Record(record) => records.push(*record),
            other => others.push(other),
        }
    }
    (records, others)
}

/// Whether a record is an act of somebody, for the counters.
fn is_act(record: &Record) -> bool {
    record.outcome == Outcome::Done && matches!(record.act, Act::Typed(_) | Act::Asked(_) | Act::Attached(_))
}
