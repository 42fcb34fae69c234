//! How the host decides, as in the host's `session/decide`.

use super::{Crashed, Host, session};
use crate::cast::Who;
use crate::ctx::Ctx;
use holdfast_abi::protocol::{ToKeeper, WRITER_HOST};
use holdfast_authority::{
    Act, Ask, Audience, Caller, Change, Effect, Input, Moment, OperatorId, Record, Refusal, Reply,
};
use holdfast_host::parts::{Typing, read_bursts};
use holdfast_types::{Fence, Notice, Size};
use holdfast_wire::params::DetachedEvent;
use holdfast_wire::turns::WritesEvent;
use holdfast_wire::{Body, Message};
use serde_json::json;

pub(super) const DRAIN_AFTER_MS: u64 = 200;

/// What the authority allowed, and what is left to do.
#[derive(Debug)]
pub(crate) struct Decided {
    pub reply: Reply,
    pub still: Option<bool>,
}

impl Host {
    /// As `Session::decide`.
    pub fn decide(&mut self, ctx: &mut Ctx, input: Input) -> Result<Result<Decided, Refusal>, Crashed> {
        self.drain_log(ctx, true)?;
        let decided = self.handle(ctx, input)?;
        self.after_decision(ctx)?;
        Ok(decided)
    }

    /// As `Session::handle`. A host may die before the records are written, and between any two effects.
    pub(super) fn handle(&mut self, ctx: &mut Ctx, input: Input) -> Result<Result<Decided, Refusal>, Crashed> {
        let now = Moment { time_ms: ctx.now, at: self.ring.head() };
        if self.journal.wants_segment() {
            let header = self.authority.rotate(session(), self.journal.last(), now);
            self.reach()?;
            self.journal.begin_segment(&header).expect("the disk has room");
            self.recorded = self.authority.state().clone();
            ctx.counts.segments += 1;
        }
        let answer = self.authority.handle(input, now);
        let mut effects = Vec::new();
        let mut records = Vec::new();
        for effect in answer.effects {
            match effect {
                Effect::Record(record) => records.push(*record),
                other => effects.push(other),
            }
        }
        if !records.is_empty() {
            self.reach()?;
            self.journal.append(&records).expect("the disk has room");
            self.recorded = self.authority.state().clone();
            records.iter().for_each(|record| learn(ctx, record));
            // Synced elsewhere, and power does not fail here.
            while self.journal.unsynced().is_some() {}
        }
        let mut still = None;
        for effect in effects {
            self.perform(ctx, effect, &mut still)?;
        }
        if let Err(refusal) = &answer.reply {
            ctx.note(format_args!("host: refuses, {refusal}"));
            ctx.refused_by_host(refusal);
        }
        Ok(answer.reply.map(|reply| Decided { reply, still }))
    }

    fn perform(&mut self, ctx: &mut Ctx, effect: Effect, still: &mut Option<bool>) -> Result<(), Crashed> {
        match effect {
            Effect::Record(_) => {}
            Effect::Fence { .. } => self.say_writer(ctx)?,
            Effect::FlushInput { fence } => self.say(ctx, ToKeeper::Flush { fence: fence.0 })?,
            Effect::Freeze => *still = Some(true),
            Effect::Thaw => *still = Some(false),
            Effect::Forward { .. } | Effect::Perform { .. } => {}
            Effect::Expel { operator } => self.expel(ctx, operator)?,
            Effect::Tell { to, notice } => self.tell(to, &notice),
        }
        Ok(())
    }

    /// As `Session::still`; the tree is the program.
    pub(super) fn still(&mut self, ctx: &mut Ctx, freeze: bool) -> Result<(), Crashed> {
        if self.authority.state().frozen().is_some() != freeze {
            return Ok(());
        }
        if freeze != ctx.frozen {
            ctx.note(format_args!("host: the program {}", if freeze { "stands still" } else { "goes on" }));
            ctx.counts.freezes += u64::from(freeze);
        }
        ctx.frozen = freeze;
        if !freeze {
            let late = std::mem::take(&mut self.late_replies);
            self.type_replies(ctx, late)?;
        }
        Ok(())
    }

    /// As `Session::say_writer`.
    pub(super) fn say_writer(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        let writer = self.writer();
        let connection = writer.and_then(|id| self.clients.get(id)).and_then(|client| client.connection);
        let fence = self.fence().0;
        self.say(ctx, ToKeeper::Writer { fence, connection: connection.unwrap_or(WRITER_HOST) })
    }

    /// As `Session::after_decision`.
    pub(super) fn after_decision(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.tell_writers(ctx);
        let writer = self.writer();
        let size = writer.and_then(|id| self.clients.wants_size(id));
        self.timers.rule = self.authority.next_deadline();
        if let Some((id, size)) = writer.zip(size) {
            self.size_follows(ctx, id, size)?;
        }
        self.appoint(ctx)
    }

    fn size_follows(&mut self, ctx: &mut Ctx, id: u32, size: Size) -> Result<(), Crashed> {
        let Some(actor) = self.clients.get(id).and_then(|client| client.actor.clone()) else { return Ok(()) };
        let by = Caller { actor, operator: Some(OperatorId(id)) };
        let asked = self.asked_size == size;
        if asked || self.handle(ctx, Input::Asked { by, ask: Ask::Resize { size }, proof: None })?.is_ok() {
            self.say_size(ctx, size)?;
            self.clients.sized(id, size);
        }
        Ok(())
    }

    /// As `Session::say_size`.
    pub(super) fn say_size(&mut self, ctx: &mut Ctx, size: Size) -> Result<(), Crashed> {
        let asked = std::mem::replace(&mut self.asked_size, size);
        let fence = self.fence().0;
        if asked == size {
            return Ok(());
        }
        self.say(ctx, ToKeeper::Resize { fence, cols: size.cols(), rows: size.rows() })
    }

    pub(super) fn fence(&self) -> Fence {
        self.authority.state().fence()
    }

    fn expel(&mut self, ctx: &mut Ctx, operator: OperatorId) -> Result<(), Crashed> {
        let Some(client) = self.clients.get(operator.0) else { return Ok(()) };
        ctx.note(format_args!("host: expels client {}", client.id));
        if let Some((_, events)) = &client.peer {
            let _ = events.send(event("detached", json!(DetachedEvent { client: client.id })));
        }
        match client.connection {
            Some(connection) => self.say(ctx, ToKeeper::Expel { connection }),
            None => Ok(()),
        }
    }

    /// As `Session::tell`.
    fn tell(&self, to: Audience, notice: &Notice) {
        for client in self.clients.iter() {
            let meant = match to {
                Audience::All => true,
                Audience::One(operator) => operator.0 == client.id,
            };
            if let Some((_, events)) = client.peer.as_ref().filter(|_| meant) {
                let _ = events.send(event("notice", json!({ "client": client.id, "notice": notice })));
            }
        }
    }

    /// As `Session::drain_log`.
    pub(super) fn drain_log(&mut self, ctx: &mut Ctx, now: bool) -> Result<(), Crashed> {
        if !now {
            self.timers.drain = None;
        }
        let log_head = self.ring.log_head();
        let from = self.logged().max(self.log_seen);
        if from == log_head && (now || log_head == self.logged()) {
            return Ok(());
        }
        self.picture.take_sizes(&self.ring);
        let state = self.authority.state();
        let mut bursts = read_bursts(&self.ring, from, log_head, |connection| state.is_link(connection));
        if !now && let Some(last) = bursts.last() {
            let used = log_head - self.logged();
            if last.may_grow(ctx.now) && used < self.ring.log_bytes() / 2 {
                self.timers.drain = Some(ctx.now + DRAIN_AFTER_MS);
                return Ok(());
            }
        }
        self.log_seen = log_head;
        let typed = !bursts.is_empty();
        if let Some(last) = bursts.last_mut() {
            last.log = log_head;
        }
        for Typing { fence, burst, log, .. } in bursts {
            let _ = self.handle(ctx, Input::Wrote { fence, burst, log })?;
        }
        if !typed && !now && log_head > self.logged() {
            let connection = self.connection;
            let _ = self.handle(ctx, Input::Linked { connection, log: log_head })?;
        }
        if typed || !now {
            self.timers.drain = None;
            let position = self.logged();
            self.say(ctx, ToKeeper::Drained { position })?;
        }
        Ok(())
    }

    pub(super) fn logged(&self) -> u64 {
        self.authority.state().logged()
    }

    /// As `State::writer`.
    pub fn writer(&self) -> Option<u32> {
        let state = self.authority.state();
        let operator = state.turn().hold().and_then(|hold| hold.operator);
        operator.filter(|_| state.frozen().is_none()).map(|operator| operator.0)
    }

    fn tell_writers(&mut self, ctx: &mut Ctx) {
        let (writer, fence) = (self.writer(), self.fence());
        for client in self.clients.iter_mut() {
            let writes = (Some(client.id) == writer).then_some(fence);
            if client.told_writes == writes {
                continue;
            }
            if let Some((_, events)) = &client.peer {
                client.told_writes = writes;
                let told = WritesEvent { client: client.id, writes: writes.is_some(), fence };
                ctx.note(format_args!("host: tells client {} that it writes: {writes:?}", client.id));
                let _ = events.send(event("writes", json!(told)));
            }
        }
    }

    /// Whether the session is frozen.
    pub fn is_frozen(&self) -> bool {
        self.authority.state().frozen().is_some()
    }
}

/// What a record that is on disk tells the oracle.
fn learn(ctx: &mut Ctx, record: &Record) {
    let by = record.by.actor().map_or("host".to_owned(), |actor| actor.handle.to_string());
    match &record.act {
        Act::Typed(burst) => ctx.note(format_args!("journal: {by} typed {} under {:?}", burst.len, record.fence)),
        act => ctx.note(format_args!("journal: {by} {act:?} under {:?}", record.fence)),
    }
    if let Act::Asked(Ask::Seize { .. }) = &record.act
        && record.outcome == holdfast_authority::Outcome::Done
    {
        ctx.counts.seizures += 1;
    }
    for change in &record.changes {
        if let Change::Turn(turn) = change {
            ctx.counts.turn_changes += 1;
            let holder = turn.hold().map(|hold| (hold.fence.0, Who::of(&hold.by)));
            ctx.turn_is(holder, record.fence.0);
        }
    }
    let direct = record.changes.iter().any(|change| matches!(change, Change::Logged(_)));
    if let (Act::Typed(burst), false, Some(actor)) = (&record.act, direct, record.by.actor()) {
        ctx.oracle.recorded_typing(record.fence.0, Who::of(actor), burst);
    }
}

/// An event for a client.
pub(super) fn event(method: &str, params: serde_json::Value) -> Box<Message> {
    Box::new(Message::plain(Body::Event { method: method.into(), params }))
}
