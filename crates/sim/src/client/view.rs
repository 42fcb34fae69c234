//! What a client shows and types, as in the client's `paint`, `output` and `keys`.

use super::{Client, View};
use crate::ctx::Ctx;
use crate::host::Request;
use holdfast_abi::protocol::{INPUT_BYTES_MAX, PATTERNS_MAX, TTY_KEYS, TTY_PAINT, ToKeeper};
use holdfast_abi::ring::Copied;
use holdfast_screen::QueryFilter;
use holdfast_types::Size;
use holdfast_wire::params::{Answers, Form, Painted};
use std::collections::VecDeque;

const COPY_BYTES: usize = 32 * 1024;
const ACK_BYTES: u64 = 64 * 1024;
const RETRY_MS: u64 = 10;
const OUTBOX_MAX: usize = 16;

/// Whose the keys are, and what of them is under way.
pub(super) struct Keys {
    with_keeper: Option<u8>,
    asked_back: bool,
    outbox: VecDeque<Vec<u8>>,
    in_flight: bool,
    retry_at: Option<u64>,
    stream: u64,
    seq: u64,
    pub fence: u64,
}

impl Keys {
    pub fn new(stream: u64, fence: u64) -> Keys {
        Keys {
            with_keeper: None,
            asked_back: false,
            outbox: VecDeque::new(),
            in_flight: false,
            retry_at: None,
            stream,
            seq: 0,
            fence,
        }
    }

    pub fn are_all_sent(&self) -> bool {
        self.outbox.is_empty()
    }

    pub fn handed_back(&mut self) {
        (self.with_keeper, self.asked_back) = (None, false);
    }

    pub fn typed(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.outbox.push_back(bytes.to_vec());
        }
    }

    pub fn written(&mut self, seq: u64) {
        if self.in_flight && seq == self.seq {
            self.outbox.pop_front();
            self.in_flight = false;
        }
    }

    pub fn refused(&mut self, seq: u64, fence: u64, now: u64) {
        if self.in_flight && seq == self.seq {
            self.in_flight = false;
            self.seq -= 1;
            self.fence = self.fence.max(fence);
            self.retry_at = Some(now + RETRY_MS);
        }
    }
}

impl Client {
    pub(super) fn ask_for_paint(&mut self, ctx: &mut Ctx) {
        let (Some(history), None) = (self.wanted, self.paint_asked) else { return };
        if !self.baton {
            if !self.baton_asked {
                self.baton_asked = true;
                self.tell_keeper(ctx, |_| ToKeeper::TtyBack);
            }
            return;
        }
        let size = ctx.terminals[self.terminal].size;
        if let Some(line) = self.line {
            self.paint_asked = Some(ctx.lines[line].ask(Request::Paint { size, history }));
        }
    }

    pub(super) fn painted(&mut self, ctx: &mut Ctx, painted: &Painted, bytes: &[u8]) {
        self.wanted = None;
        if painted.form == Form::Repaint && painted.size != ctx.terminals[self.terminal].size {
            self.wanted = Some(false);
            return;
        }
        if painted.offset < self.position {
            ctx.fail(format!(
                "terminal {} stood at {} and is painted as of {}",
                self.terminal, self.position, painted.offset
            ));
        }
        let left = self.position;
        self.position = painted.offset;
        self.acked = painted.offset;
        self.resizes.retain(|(at, _)| *at > painted.offset);
        let answered = self.answers;
        self.take_view(ctx, painted, bytes);
        if answered && painted.form == Form::Keyframe {
            self.answers = false;
            self.update(ctx, None, Some(Answers { on: false, left, from: painted.offset }));
        } else if answered {
            self.update(ctx, None, Some(Answers { on: true, left, from: painted.offset }));
        }
        let flags = self.follow_flags();
        self.tell_keeper(ctx, |position| ToKeeper::Follow { position, flags });
        self.hand_over_keys(ctx);
    }

    pub(super) fn take_view(&mut self, ctx: &mut Ctx, painted: &Painted, bytes: &[u8]) {
        match painted.form {
            Form::Repaint => {
                self.view = View::Raw((!self.answers).then(QueryFilter::new));
                // A query whose beginning was painted is finished by what follows; a paint itself asks nothing.
                let terminal = &mut ctx.terminals[self.terminal];
                let asked = terminal.put(&holdfast_screen::leave(true)).len() + terminal.put(bytes).len();
                if asked > 0 {
                    ctx.fail(format!("the paint of terminal {} asks something", self.terminal));
                }
            }
            Form::Keyframe => self.view = View::Drawn,
        }
        ctx.terminals[self.terminal].at = painted.offset;
        ctx.note(format_args!("client {}: painted as {:?} at {}", self.terminal, painted.form, painted.offset));
        self.session_size = painted.size;
    }

    pub(super) fn pump(&mut self, ctx: &mut Ctx) -> bool {
        if !self.baton || self.wanted.is_some() {
            return false;
        }
        while let Some((at, size)) = self.resizes.front().copied() {
            if at > self.position {
                break;
            }
            self.resizes.pop_front();
            self.session_has_size(ctx, size);
        }
        if self.wanted.is_some() {
            return false;
        }
        let limit = self.resizes.front().map_or(COPY_BYTES as u64, |(at, _)| at - self.position);
        let mut buffer = [0; COPY_BYTES];
        let wanted = (limit as usize).min(COPY_BYTES);
        let count = match self.ring.copy(self.position, &mut buffer[..wanted]) {
            Copied::Bytes(count) => count,
            Copied::Lapped { .. } | Copied::Ahead { .. } => {
                ctx.counts.client_laps += 1;
                ctx.note(format_args!("client {}: lapped at {}", self.terminal, self.position));
                self.wanted = Some(false);
                return false;
            }
        };
        if count > 0 {
            self.show(ctx, &buffer[..count]);
            self.position += count as u64;
            if self.position - self.acked >= ACK_BYTES {
                self.acked = self.position;
                self.tell_keeper(ctx, |position| ToKeeper::Ack { position });
            }
        } else {
            self.baton = false;
            self.acked = self.position;
            self.tell_keeper(ctx, |position| ToKeeper::Sleep { position, wake_at: position + 1 });
        }
        count > 0
    }

    fn show(&mut self, ctx: &mut Ctx, bytes: &[u8]) {
        let mut out = Vec::new();
        match &mut self.view {
            View::Raw(None) => out.extend_from_slice(bytes),
            View::Raw(Some(filter)) => filter.feed(bytes, &mut out),
            View::Drawn => {}
        }
        ctx.show(self.terminal, self.position, bytes, &out);
    }

    pub(super) fn session_has_size(&mut self, ctx: &Ctx, size: Size) {
        self.session_size = size;
        let fits = size == ctx.terminals[self.terminal].size;
        if fits != matches!(self.view, View::Raw(_)) {
            self.wanted.get_or_insert(false);
        }
    }

    pub(super) fn hand_over_keys(&mut self, ctx: &mut Ctx) {
        let idle = self.keys.outbox.is_empty() && !self.keys.in_flight;
        if self.options.read_only || !self.options.has_path || !idle || self.wanted.is_some() {
            return;
        }
        let path = (self.terminal as u64).to_le_bytes();
        let paints = self.answers && matches!(self.view, View::Raw(None));
        let flags = TTY_KEYS | if paints { TTY_PAINT } else { 0 };
        if let Some(given) = self.keys.with_keeper {
            if given != flags && !self.keys.asked_back {
                self.keys.asked_back = true;
                self.tell_keeper(ctx, |_| ToKeeper::TtyBack);
            }
            return;
        }
        self.tell_keeper(ctx, |_| ToKeeper::Tty { flags, path: &path, patterns: [&[]; PATTERNS_MAX] });
        self.keys.with_keeper = Some(flags);
    }

    /// Reads keys itself, where they are its own.
    pub(super) fn read_keys(&mut self, ctx: &mut Ctx) {
        if self.keys.with_keeper.is_some() || self.keys.outbox.len() >= OUTBOX_MAX {
            return;
        }
        let keys = ctx.terminals[self.terminal].read(INPUT_BYTES_MAX);
        if !self.options.read_only {
            self.keys.typed(&keys);
        }
    }

    pub(super) fn retry_keys(&mut self, ctx: &mut Ctx) {
        let keys = &mut self.keys;
        if keys.in_flight || keys.retry_at.is_some_and(|at| at > ctx.now) {
            return;
        }
        keys.retry_at = None;
        let Some(bytes) = keys.outbox.front().cloned() else {
            self.hand_over_keys(ctx);
            return;
        };
        keys.seq += 1;
        keys.in_flight = true;
        let (fence, stream, seq) = (keys.fence, keys.stream, keys.seq);
        self.tell_keeper(ctx, |_| ToKeeper::Input { fence, stream, seq, bytes: &bytes });
    }
}
