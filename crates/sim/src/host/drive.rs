//! What the host does for its keeper, as in the host's `session/drive`.

use super::serve::Sent;
use super::{Crashed, Host};
use crate::ctx::Ctx;
use crate::net::Heard;
use holdfast_abi::protocol::{
    FOLLOW_HOLDS, FOLLOW_SCREEN, FromKeeper, INPUT_BYTES_MAX, RIGHT_WRITE, ToKeeper, WRITER_ANY,
};
use holdfast_host::parts::{Client, read_log};
use holdfast_screen::Reply;
use holdfast_types::Size;
use holdfast_wire::params::AnswerEvent;
use holdfast_wire::{Body, Message};
use std::sync::atomic::Ordering;

const FLOOD_PAUSE_MS: u64 = 3;
const FLOOD_BYTES: u64 = 8 * 1024;
const REST_AFTER_MS: u64 = 150;
const DRAIN_AFTER_MS: u64 = 200;
const BEHIND_BYTES_MAX: u64 = 1024 * 1024;
const SLICES_AT_ONCE: u32 = 4;
const FRAMES_AT_ONCE: u32 = 64;

impl Host {
    pub(super) fn begin(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.fence = self.fence.max(1);
        self.say(ctx, ToKeeper::Writer { fence: self.fence, connection: WRITER_ANY })?;
        self.say(ctx, ToKeeper::Drained { position: self.log_seen })?;
        self.say(ctx, ToKeeper::Follow { position: self.picture.saved(), flags: FOLLOW_HOLDS | FOLLOW_SCREEN })?;
        self.timers.rearm = Some(ctx.now);
        Ok(())
    }

    /// Hears the keeper.
    pub fn receive_turn(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.worked_ms = ctx.now;
        if !self.greeted {
            return self.greet(ctx);
        }
        self.heard = true;
        for _ in 0..FRAMES_AT_ONCE {
            match ctx.net.hear(self.wire) {
                Heard::Frame(bytes) => match FromKeeper::decode(&bytes) {
                    Ok(frame) => self.frame(ctx, frame)?,
                    Err(error) => ctx.fail(format!("a frame that is none reached the host: {error}")),
                },
                Heard::Nothing | Heard::Closed => break,
            }
        }
        Ok(())
    }

    fn frame(&mut self, ctx: &mut Ctx, frame: FromKeeper<'_>) -> Result<(), Crashed> {
        match frame {
            FromKeeper::Wake { .. } => self.timers.rearm = Some(ctx.now),
            FromKeeper::Written { stream, seq, .. } => self.answer_typed(ctx, stream, seq, Sent::Written),
            FromKeeper::Refused { code, fence, stream, seq } => {
                self.fence = self.fence.max(fence);
                if stream == self.reply_stream {
                    self.reply_stream = ctx.rng.u64(1 << 32..);
                }
                self.answer_typed(ctx, stream, seq, Sent::Refused(code));
            }
            FromKeeper::Resized { cols, rows, .. } => {
                self.size = Size::clamped(cols, rows);
                self.timers.rest = Some(ctx.now + REST_AFTER_MS);
                self.timers.rearm = Some(ctx.now);
            }
            FromKeeper::Joined { connection, pid, token, rights } => {
                if let Some(client) = self.clients.by_token(&token) {
                    client.connection = Some(connection);
                } else {
                    self.clients.add(|id| Client {
                        id,
                        pid,
                        tty: String::new(),
                        size: None,
                        read_only: rights & RIGHT_WRITE == 0,
                        since_ms: 0,
                        token,
                        connection: Some(connection),
                        peer: None,
                    });
                }
            }
            FromKeeper::Left { connection, acked } => self.left(ctx, connection, acked)?,
            FromKeeper::Logged { .. } => {
                let pause = if self.clients.count() > 1 { 0 } else { DRAIN_AFTER_MS };
                self.timers.drain.get_or_insert(ctx.now + pause);
            }
            FromKeeper::Exited { .. } => {}
            FromKeeper::Welcome(_) | FromKeeper::Keys { .. } | FromKeeper::Probed { .. } => {}
        }
        Ok(())
    }

    fn left(&mut self, ctx: &mut Ctx, connection: u32, acked: u64) -> Result<(), Crashed> {
        let known = self.clients.by_connection(connection).map(|c| (c.id, c.size.is_none()));
        let Some((id, doubtful)) = known else { return Ok(()) };
        let answered = doubtful || self.clients.answers(id);
        if answered {
            self.look(ctx)?;
        }
        let due = self.clients.remove(id, Some(acked));
        if answered {
            self.save(false)?;
        }
        self.timers.rearm = Some(ctx.now);
        self.type_replies(ctx, due)?;
        self.appoint(ctx);
        Ok(())
    }

    pub(super) fn appoint(&mut self, ctx: &mut Ctx) {
        if let Some(candidate) = self.clients.candidate(self.size)
            && let Some((_, events)) = &candidate.peer
        {
            ctx.note(format_args!("host: asks client {} to answer", candidate.id));
            let params = serde_json::to_value(AnswerEvent { client: candidate.id }).expect("numbers always serialise");
            let _ = events.send(Message::plain(Body::Event { method: "answer".into(), params }));
        }
    }

    /// Does what is due, and sets when to be back.
    pub fn tick(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.worked_ms = ctx.now;
        if !self.greeted {
            return Ok(());
        }
        let now = ctx.now;
        let due = |at: Option<u64>| at.is_some_and(|at| at <= now);
        let (drain, rearm, rest) = (due(self.timers.drain), due(self.timers.rearm), due(self.timers.rest));
        if drain {
            self.drain_log(ctx)?;
        }
        if rearm {
            self.advance(ctx)?;
        }
        if rest && !rearm {
            self.timers.rest = None;
            self.save(true)?;
            let position = self.picture.saved();
            self.say(ctx, ToKeeper::Ack { position })?;
        }
        Ok(())
    }

    pub(super) fn drain_log(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.timers.drain = None;
        let log_head = self.ring.header().log_head.load(Ordering::Acquire);
        self.picture.take_sizes(&self.ring);
        let news = read_log(&self.ring, self.log_seen, log_head);
        self.log_seen = log_head;
        self.say(ctx, ToKeeper::Drained { position: log_head })?;
        let clients = &mut self.clients;
        let typist = news.typists.into_iter().rev().find(|connection| clients.by_connection(*connection).is_some());
        if let Some(size) = typist.and_then(|connection| clients.typed(connection))
            && size != self.size
        {
            ctx.note(format_args!("host: {typist:?} typed, its size is {size}"));
            self.say(ctx, ToKeeper::Resize { fence: self.fence, cols: size.cols(), rows: size.rows() })?;
        }
        Ok(())
    }

    fn advance(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        let now = ctx.now;
        let head = self.ring.head();
        let before = self.picture.seen();
        let quarter = (self.ring.capacity() / 4).min(BEHIND_BYTES_MAX);
        let answering = !self.clients.someone_answers();
        let unseen = head.saturating_sub(before);
        let mut more = false;
        if (answering && unseen > 0) || unseen >= quarter {
            let replies = self.feed(ctx, SLICES_AT_ONCE, &mut more);
            let due = self.clients.sort(replies);
            self.type_replies(ctx, due)?;
        }
        if self.picture.seen() - self.picture.saved() >= quarter {
            self.save(false)?;
            self.say(ctx, ToKeeper::Ack { position: self.picture.saved() })?;
        }
        let seen = self.picture.seen();
        if self.picture.is_live() {
            self.timers.rest = Some(now + REST_AFTER_MS);
        }
        if more {
            self.timers.rearm = Some(now);
            return Ok(());
        }
        if seen - before >= FLOOD_BYTES && self.timers.rearm.is_some_and(|at| now < at + FLOOD_PAUSE_MS) && answering {
            self.timers.rearm = Some(now + FLOOD_PAUSE_MS);
            return Ok(());
        }
        self.timers.rearm = None;
        let wake_at = if answering { head.max(seen) + 1 } else { seen.max(self.picture.saved()) + quarter };
        self.say(ctx, ToKeeper::Sleep { position: self.picture.saved(), wake_at })
    }

    pub(super) fn type_replies(&mut self, ctx: &mut Ctx, replies: Vec<Reply>) -> Result<(), Crashed> {
        for reply in replies {
            ctx.counts.answered_by_host += 1;
            ctx.note(format_args!("host: answers the query that ends at {}", reply.at));
            for bytes in reply.bytes.chunks(INPUT_BYTES_MAX) {
                self.reply_seq = (self.reply_seq + 1).max(reply.at << 8);
                let (fence, stream, seq) = (self.fence, self.reply_stream, self.reply_seq);
                self.say(ctx, ToKeeper::Input { fence, stream, seq, bytes })?;
            }
        }
        Ok(())
    }

    pub(super) fn feed(&mut self, ctx: &mut Ctx, slices: u32, more: &mut bool) -> Vec<Reply> {
        let gap = self.picture.gap();
        let mut replies = Vec::new();
        let mut buffer = Vec::new();
        *more = true;
        for _ in 0..slices {
            let step = self.picture.step(&self.ring, &mut buffer);
            replies.extend(step.replies);
            if !step.more {
                *more = false;
                break;
            }
        }
        if self.picture.gap() != gap {
            ctx.counts.screen_gaps += 1;
            ctx.oracle.disturbed(ctx.now);
            ctx.note(format_args!("host: its screen has a gap {:?}", self.picture.gap()));
        }
        replies
    }

    /// A newer fence for everybody, for one, or with a flush: what turns will do.
    pub fn raise_fence(&mut self, ctx: &mut Ctx, connection: u32, flush: bool) -> Result<(), Crashed> {
        self.fence += 1;
        ctx.note(format_args!("host: fence {} for {connection}, flush {flush}", self.fence));
        if flush {
            self.say(ctx, ToKeeper::Flush { fence: self.fence })
        } else {
            self.say(ctx, ToKeeper::Writer { fence: self.fence, connection })
        }
    }
}
