//! How the host decides, as in the host's `session/decide`.

use super::{Crashed, Host, session};
use crate::cast::Who;
use crate::ctx::Ctx;
use holdfast_abi::log::{FLAG_ECHO_OFF, Kind, Record as Logged};
use holdfast_abi::protocol::{ToKeeper, WRITER_HOST};
use holdfast_abi::ring::Ring;
use holdfast_authority::{
    Act, Ask, Audience, Burst, Caller, Change, Effect, Input, Keys, Moment, OperatorId, Record, Refusal, Reply,
};
use holdfast_types::{Fence, Size};
use holdfast_wire::params::DetachedEvent;
use holdfast_wire::turns::WritesEvent;
use holdfast_wire::{Body, Message};
use serde_json::json;
use std::sync::atomic::Ordering;

pub(super) const DRAIN_AFTER_MS: u64 = 200;
const BURST_MS: u64 = 2_000;
const BURST_BYTES_MAX: usize = 16 * 1024;

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
            Effect::Tell { to, .. } => self.tell(to),
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

    /// As `Session::tell`; what it is about is the same to this world's people.
    fn tell(&self, to: Audience) {
        for client in self.clients.iter() {
            let meant = match to {
                Audience::All => true,
                Audience::One(operator) => operator.0 == client.id,
            };
            if let Some((_, events)) = client.peer.as_ref().filter(|_| meant) {
                let _ = events.send(event("notice", json!({ "client": client.id })));
            }
        }
    }

    /// As `Session::drain_log`.
    pub(super) fn drain_log(&mut self, ctx: &mut Ctx, now: bool) -> Result<(), Crashed> {
        if !now {
            self.timers.drain = None;
        }
        let log_head = self.ring.header().log_head.load(Ordering::Acquire);
        let from = self.logged().max(self.log_seen);
        if from == log_head && (now || log_head == self.logged()) {
            return Ok(());
        }
        self.picture.take_sizes(&self.ring);
        let state = self.authority.state();
        let mut bursts = read_bursts(&self.ring, from, log_head, |connection| state.is_link(connection));
        if !now && let Some(last) = bursts.last() {
            let used = log_head - self.logged();
            let age_ms = ctx.now.saturating_sub(last.since_ms);
            if !last.ends_line() && age_ms < BURST_MS && used < self.ring.log_bytes() / 2 {
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
pub(super) fn event(method: &str, params: serde_json::Value) -> Message {
    Message::plain(Body::Event { method: method.into(), params })
}

/// As the host's `Typing`.
struct Typing {
    fence: Fence,
    connection: u32,
    burst: Burst,
    since_ms: u64,
    log: u64,
}

impl Typing {
    fn ends_line(&self) -> bool {
        let last = self.burst.keys.as_ref().and_then(|keys| keys.0.last());
        self.burst.keys.is_none() || matches!(last, Some(b'\r' | b'\n' | 3 | 4))
    }

    fn joins(&self, next: &Typing) -> bool {
        self.fence == next.fence
            && self.connection == next.connection
            && self.burst.keys.is_some() == next.burst.keys.is_some()
            && (self.burst.keys.is_none() || !self.ends_line())
            && next.since_ms.saturating_sub(self.since_ms) < BURST_MS
            && self.burst.len + next.burst.len <= BURST_BYTES_MAX as u64
    }
}

fn read_bursts(ring: &Ring, from: u64, to: u64, skips: impl Fn(u32) -> bool) -> Vec<Typing> {
    let mut bursts: Vec<Typing> = Vec::new();
    let Some(length) = usize::try_from(to.saturating_sub(from)).ok().filter(|n| *n as u64 <= ring.log_bytes()) else {
        return bursts;
    };
    let mut bytes = vec![0; length];
    ring.copy_log(from, &mut bytes);
    let mut rest = bytes.as_slice();
    while let Some((record, length)) = Logged::decode(rest) {
        rest = &rest[length..];
        if record.kind != Kind::Input || skips(record.connection) {
            continue;
        }
        let typing = Typing {
            fence: Fence(record.fence),
            connection: record.connection,
            burst: Burst {
                from: record.at,
                to: record.at,
                len: u64::from(record.count),
                keys: (record.flags & FLAG_ECHO_OFF == 0).then(|| Keys(record.bytes.to_vec())),
            },
            since_ms: record.time_ms,
            log: to - rest.len() as u64,
        };
        match bursts.last_mut().filter(|last| last.joins(&typing)) {
            Some(last) => {
                last.burst.to = typing.burst.to;
                last.burst.len += typing.burst.len;
                last.log = typing.log;
                if let (Some(keys), Some(more)) = (&mut last.burst.keys, typing.burst.keys) {
                    keys.0.extend(more.0);
                }
            }
            None => bursts.push(typing),
        }
    }
    bursts
}
