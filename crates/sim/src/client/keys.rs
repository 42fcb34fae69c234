//! What a client types, and when it answers queries, as in the client's `keys`, `turns` and `duty`.

use super::{Client, View};
use crate::ctx::Ctx;
use crate::host::Request;
use crate::program::replies;
use holdfast_abi::protocol::{INPUT_BYTES_MAX, PATTERNS_MAX, TTY_KEYS, TTY_PAINT, ToKeeper, refused};
use holdfast_screen::QueryFilter;
use holdfast_wire::params::Answers;
use std::collections::VecDeque;

const RETRY_MS: u64 = 10;
const OUTBOX_MAX: usize = 16;

/// Which way the message under way went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Keeper { fence: u64 },
    Host { id: u64 },
}

/// Whose the keys are, and what of them is under way.
#[derive(Debug)]
pub(super) struct Keys {
    read_only: bool,
    pub writes: bool,
    pub fence: u64,
    with_keeper: Option<u8>,
    pub keeper_paints: bool,
    backs: u32,
    outbox: VecDeque<Vec<u8>>,
    in_flight: Option<Way>,
    tried: bool,
    retry_at: Option<u64>,
    stream: u64,
    seq: u64,
}

/// What is to change about answering.
#[derive(Debug, Default)]
pub(super) struct Duty {
    pub begin: Option<u64>,
    pub stop: bool,
}

impl Keys {
    pub fn new(stream: u64, read_only: bool) -> Keys {
        Keys {
            read_only,
            writes: false,
            fence: 0,
            with_keeper: None,
            keeper_paints: false,
            backs: 0,
            outbox: VecDeque::new(),
            in_flight: None,
            tried: false,
            retry_at: None,
            stream,
            seq: 0,
        }
    }

    pub fn are_all_sent(&self) -> bool {
        self.outbox.is_empty() && self.in_flight.is_none()
    }

    fn are_ours(&self) -> bool {
        self.with_keeper.is_none() && self.outbox.len() < OUTBOX_MAX
    }

    pub fn is_read_by_keeper(&self) -> bool {
        self.with_keeper.is_some()
    }

    pub fn are_certainly_ours(&self) -> bool {
        self.with_keeper.is_none() && self.backs == 0
    }

    pub fn adopt(&mut self, writes: bool, fence: u64) -> bool {
        if fence < self.fence {
            return false;
        }
        self.fence = fence;
        self.writes = writes && !self.read_only;
        true
    }

    fn push(&mut self, keys: &[u8]) {
        for keys in keys.chunks(INPUT_BYTES_MAX) {
            let open = self.outbox.len() > usize::from(self.tried);
            match self.outbox.back_mut().filter(|last| open && last.len() + keys.len() <= INPUT_BYTES_MAX) {
                Some(last) => last.extend_from_slice(keys),
                None => self.outbox.push_back(keys.to_vec()),
            }
        }
    }

    fn done(&mut self) {
        self.seq += 1;
        self.outbox.pop_front();
        (self.in_flight, self.tried) = (None, false);
    }

    fn again(&mut self, now: u64) {
        self.in_flight = None;
        self.retry_at = Some(now + RETRY_MS);
    }

    fn drop_all(&mut self, fresh: u64) -> VecDeque<Vec<u8>> {
        (self.stream, self.seq) = (fresh, 0);
        (self.in_flight, self.tried, self.retry_at) = (None, false, None);
        std::mem::take(&mut self.outbox)
    }

    pub fn written(&mut self, stream: u64, seq: u64) {
        if matches!(self.in_flight, Some(Way::Keeper { .. })) && (stream, seq) == (self.stream, self.seq + 1) {
            self.done();
        }
    }

    fn refused(&mut self, code: u8, fence: u64, stream: u64, seq: u64, now: u64) -> bool {
        let Some(Way::Keeper { fence: sent }) = self.in_flight else { return false };
        if (stream, seq) != (self.stream, self.seq + 1) {
            return false;
        }
        if code == refused::FULL {
            self.again(now);
            return false;
        }
        let outdated = self.writes && (sent < self.fence || fence < self.fence);
        self.again(now);
        if !outdated {
            self.retry_at = None;
            self.fence = self.fence.max(fence);
        }
        !outdated
    }

    pub fn host_gone(&mut self) {
        if matches!(self.in_flight, Some(Way::Host { .. })) {
            self.in_flight = None;
        }
    }

    pub fn was_sent_as(&self, id: u64) -> bool {
        self.in_flight == Some(Way::Host { id })
    }

    fn may_go_to_keeper(&self) -> bool {
        let idle = self.outbox.is_empty() && self.in_flight.is_none();
        self.writes && self.backs == 0 && idle
    }
}

impl Client {
    pub(super) fn hand_over_keys(&mut self, ctx: &mut Ctx) {
        let paints = self.answers && matches!(self.view, View::Raw(None));
        let flags = TTY_KEYS | if paints { TTY_PAINT } else { 0 };
        let busy = self.row.needs_terminal() || self.wanted.is_some() || self.duty.stop;
        if self.keys.with_keeper == Some(flags) || busy || !self.keys.may_go_to_keeper() {
            return;
        }
        if self.keys.with_keeper.is_some() {
            return self.ask_keys_back(ctx);
        }
        if !self.options.has_path {
            return;
        }
        let path = (self.terminal as u64).to_le_bytes();
        self.tell_keeper(ctx, |_| ToKeeper::Tty { flags, path: &path, patterns: [&[]; PATTERNS_MAX] });
        (self.keys.with_keeper, self.keys.keeper_paints) = (Some(flags), paints);
    }

    pub(super) fn ask_keys_back(&mut self, ctx: &mut Ctx) {
        if self.keys.backs > 0 {
            return;
        }
        self.baton_asked |= !self.baton;
        self.tty_back(ctx);
    }

    fn tty_back(&mut self, ctx: &mut Ctx) {
        self.keys.backs += 1;
        self.tell_keeper(ctx, |_| ToKeeper::TtyBack);
    }

    pub(super) fn ask_for_baton(&mut self, ctx: &mut Ctx) {
        if !self.baton && !self.baton_asked {
            self.baton_asked = true;
            self.tty_back(ctx);
        }
    }

    pub(super) fn keys_handed_back(&mut self, ctx: &mut Ctx, bytes: &[u8]) {
        self.keys.with_keeper = None;
        if self.keys.backs > 0 {
            self.keys.backs -= 1;
        } else {
            ctx.note(format_args!("client {}: the keeper gave the keys back by itself", self.terminal));
            self.lost_writing();
            self.ask_keys_back(ctx);
        }
        self.typed(ctx, bytes);
    }

    pub(super) fn input_refused(&mut self, ctx: &mut Ctx, code: u8, fence: u64, stream: u64, seq: u64) {
        if self.keys.refused(code, fence, stream, seq, ctx.now) {
            self.lost_writing();
        }
    }

    pub(super) fn read_keys(&mut self, ctx: &mut Ctx) {
        if self.keys.are_ours() {
            let keys = ctx.terminals[self.terminal].read(INPUT_BYTES_MAX);
            self.typed(ctx, &keys);
        }
    }

    fn typed(&mut self, ctx: &mut Ctx, bytes: &[u8]) {
        if !bytes.is_empty() && (self.keys.writes || self.keys.read_only) {
            self.hide_line(ctx);
        }
        if bytes.is_empty() || self.keys.read_only {
        } else if self.keys.writes || self.answers {
            self.keys.push(bytes);
        } else {
            // As `without_reports`: no answers from a terminal that should give none.
            let (kept, dropped) = replies(bytes);
            ctx.answers_dropped(&dropped);
            self.keys.push(&kept);
        }
        self.retry_keys(ctx);
    }

    pub(super) fn retry_keys(&mut self, ctx: &mut Ctx) {
        let keys = &mut self.keys;
        if keys.in_flight.is_some() || keys.retry_at.is_some_and(|at| at > ctx.now) {
            return;
        }
        keys.retry_at = None;
        let Some(bytes) = keys.outbox.front().cloned() else {
            return self.hand_over_keys(ctx);
        };
        let (stream, seq, fence) = (keys.stream, keys.seq + 1, keys.fence);
        if keys.writes {
            (keys.in_flight, keys.tried) = (Some(Way::Keeper { fence }), true);
            return self.tell_keeper(ctx, |_| ToKeeper::Input { fence, stream, seq, bytes: &bytes });
        }
        let Some(line) = self.line.filter(|_| self.resume_asked.is_none()) else { return };
        keys.tried = true;
        ctx.counts.sent_through_host += 1;
        let id = ctx.lines[line].ask(Request::Send { who: self.who, client: Some(self.client), stream, seq, bytes });
        keys.in_flight = Some(Way::Host { id });
    }

    /// What the host says to what was typed: the fence it was written under, or why not.
    pub(super) fn sent(&mut self, ctx: &mut Ctx, result: Result<u64, &'static str>) {
        match result {
            Ok(fence) => {
                self.keys.done();
                self.hide_line(ctx);
                self.told_writes(ctx, true, fence);
            }
            Err("busy") => self.keys.again(ctx.now),
            Err(code) => {
                let fresh = ctx.rng.u64(1 << 32..);
                let dropped = self.keys.drop_all(fresh);
                ctx.note(format_args!("client {}: {} messages refused, {code}", self.terminal, dropped.len()));
                dropped.iter().for_each(|bytes| ctx.refused(bytes));
                self.say();
            }
        }
    }

    /// What its terminal answered and it has not sent goes with it.
    pub(super) fn drop_answers(&self, ctx: &mut Ctx) {
        let unread = ctx.terminals[self.terminal].read(usize::MAX);
        for bytes in self.keys.outbox.iter().chain([&unread]) {
            ctx.answers_dropped(&replies(bytes).1);
        }
    }

    pub(super) fn told_writes(&mut self, ctx: &mut Ctx, writes: bool, fence: u64) {
        let had = self.keys.writes;
        if !self.keys.adopt(writes, fence) || !had || self.keys.writes {
            return;
        }
        self.lost_writing();
        if self.keys.is_read_by_keeper() {
            self.ask_keys_back(ctx);
        }
    }

    fn lost_writing(&mut self) {
        self.keys.writes = false;
        self.duty.stop = self.answers || self.duty.begin.is_some();
    }

    pub(super) fn told_to_answer(&mut self, ctx: &mut Ctx, from: u64) {
        if std::mem::take(&mut self.duty.stop) && self.answers {
            self.update(ctx, None, Some(Answers { on: true, left: from, from }));
        } else if !self.answers {
            self.duty.begin = Some(from);
        }
    }

    pub(super) fn settle_duty(&mut self, ctx: &mut Ctx) {
        if self.duty.stop {
            if self.take_terminal(ctx) {
                self.stop_answering(ctx);
            }
        } else if self.duty.begin.is_some() && !self.answers && self.take_terminal(ctx) {
            self.begin_answering(ctx);
        }
    }

    pub(super) fn begin_answering(&mut self, ctx: &mut Ctx) {
        let Some(from) = self.duty.begin.filter(|_| !self.answers) else { return };
        if self.wanted.is_some() || self.paint_asked.is_some() || matches!(self.view, View::Drawn) {
            self.answers = true;
            self.wanted.get_or_insert(false);
            return;
        }
        let View::Raw(Some(filter)) = &mut self.view else { return };
        if self.position < from {
            return;
        }
        let Some(held) = filter.give_up() else { return };
        let asked = ctx.terminals[self.terminal].put(&held);
        ctx.counts.answered_by_terminal += asked.len() as u64;
        self.view = View::Raw(None);
        self.answers = true;
        self.duty.begin = None;
        ctx.note(format_args!("client {}: answers from {} on", self.terminal, self.position));
        self.update(ctx, None, Some(Answers { on: true, left: from, from: self.position }));
    }

    fn stop_answering(&mut self, ctx: &mut Ctx) {
        let left = self.duty.begin.take().unwrap_or(self.position);
        self.duty.stop = false;
        self.answers = false;
        if let View::Raw(filter @ None) = &mut self.view {
            *filter = Some(QueryFilter::new());
            ctx.oracle.stops.push(self.position);
        }
        ctx.note(format_args!("client {}: answers no longer from {left} on", self.terminal));
        self.update(ctx, None, Some(Answers { on: false, left, from: left.max(self.position) }));
    }
}
