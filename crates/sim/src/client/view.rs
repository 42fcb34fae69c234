//! What a client shows, as in the client's `paint` and `output`.

use super::{Client, View};
use crate::ctx::Ctx;
use crate::host::Request;
use holdfast_abi::protocol::ToKeeper;
use holdfast_abi::ring::Copied;
use holdfast_screen::QueryFilter;
use holdfast_types::Size;
use holdfast_wire::params::{Answers, Form, Painted};

const COPY_BYTES: usize = 32 * 1024;
const ACK_BYTES: u64 = 64 * 1024;
impl Client {
    pub(super) fn ask_for_paint(&mut self, ctx: &mut Ctx) {
        let (Some(history), None) = (self.wanted, self.paint_asked) else { return };
        if !self.baton {
            return self.ask_for_baton(ctx);
        }
        let size = ctx.terminals[self.terminal].size;
        let answers = self.answers.then_some(self.client);
        self.paint_answers = self.answers;
        if let Some(line) = self.line {
            self.paint_asked = Some(ctx.lines[line].ask(Request::Paint { who: self.who, size, history, answers }));
        }
    }

    pub(super) fn painted(&mut self, ctx: &mut Ctx, painted: &Painted, bytes: &[u8]) {
        let wanted = self.wanted.take();
        let resized = painted.form == Form::Repaint && painted.size != ctx.terminals[self.terminal].size;
        if resized || self.paint_answers != self.answers {
            self.wanted = wanted.or(Some(false));
            return;
        }
        if painted.offset < self.position {
            ctx.fail(format!(
                "terminal {} stood at {} and is painted as of {}",
                self.terminal, self.position, painted.offset
            ));
        }
        let begin = if self.answers { self.duty.begin.take() } else { None };
        let left = begin.unwrap_or(self.position);
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
                let mut filter = (!self.answers).then(QueryFilter::new);
                let mut filtered = Vec::new();
                let bytes = match &mut filter {
                    Some(filter) => {
                        filter.feed(bytes, &mut filtered);
                        &filtered
                    }
                    None => bytes,
                };
                self.view = View::Raw(filter);
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
        self.row.painted_over();
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
            if matches!(self.view, View::Drawn) && at < self.position {
                self.wanted.get_or_insert(false);
            }
            self.session_has_size(ctx, size);
        }
        if self.wanted.is_some() {
            return false;
        }
        let mut limit = self.resizes.front().map_or(COPY_BYTES as u64, |(at, _)| at - self.position);
        if let Some(from) = self.duty.begin {
            self.begin_answering(ctx);
            if self.wanted.is_some() {
                return false;
            }
            limit = limit.min(from.checked_sub(self.position).filter(|left| *left > 0).unwrap_or(limit));
        }
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
            self.keep_keeper_from_painting(ctx);
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
}
