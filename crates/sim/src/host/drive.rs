//! What the host does for its keeper, as in the host's `session/drive`.

use super::decide::{DRAIN_AFTER_MS, event};
use super::send::Sent;
use super::{Crashed, Host};
use crate::ctx::Ctx;
use crate::net::Heard;
use holdfast_abi::protocol::{FOLLOW_HOLDS, FOLLOW_SCREEN, FromKeeper, INPUT_BYTES_MAX, RIGHT_WRITE, ToKeeper};
use holdfast_authority::{Input, OperatorId};
use holdfast_host::parts::Client;
use holdfast_screen::Reply;
use holdfast_types::Size;
use holdfast_wire::params::AnswerEvent;

const FLOOD_PAUSE_MS: u64 = 6;
const FLOOD_BYTES: u64 = 8 * 1024;
const REST_AFTER_MS: u64 = 150;
const BEHIND_BYTES_MAX: u64 = 1024 * 1024;
const SLICES_AT_ONCE: u32 = 4;
const FRAMES_AT_ONCE: u32 = 64;

impl Host {
    pub(super) fn begin(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        let position = self.logged();
        self.say(ctx, ToKeeper::Drained { position })?;
        self.say(ctx, ToKeeper::Follow { position: self.picture.saved(), flags: FOLLOW_HOLDS | FOLLOW_SCREEN })?;
        self.say(ctx, ToKeeper::Probe)?;
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
            FromKeeper::Written { stream, seq, .. } => self.answer_typed(stream, seq, Sent::Written),
            FromKeeper::Refused { code, stream, seq, .. } => {
                if (stream, seq) == (0, 0) {
                    self.asked_size = self.size;
                    self.clients.not_sized();
                }
                if stream == self.reply_stream {
                    self.reply_stream = ctx.rng.u64(1 << 32..);
                }
                self.answer_typed(stream, seq, Sent::Refused(code));
            }
            FromKeeper::Resized { cols, rows, .. } => {
                self.size = Size::clamped(cols, rows);
                self.timers.rest = Some(ctx.now + REST_AFTER_MS);
                self.timers.rearm = Some(ctx.now);
                self.appoint(ctx)?;
            }
            FromKeeper::Joined { connection, pid, token, rights } => {
                if let Some(client) = self.clients.by_token(&token) {
                    client.connection = Some(connection);
                    let id = client.id;
                    if self.writer() == Some(id) {
                        self.say_writer(ctx)?;
                    }
                } else {
                    let id = self.clients.nameless();
                    self.clients.add(Client {
                        id,
                        actor: None,
                        told_writes: None,
                        pid,
                        tty: String::new(),
                        size: None,
                        read_only: rights & RIGHT_WRITE == 0,
                        remote: false,
                        since_ms: 0,
                        token,
                        connection: Some(connection),
                        peer: None,
                    });
                }
            }
            FromKeeper::Left { connection, acked } => self.left(ctx, connection, acked)?,
            FromKeeper::Logged { .. } => {
                self.timers.drain.get_or_insert(ctx.now + DRAIN_AFTER_MS);
            }
            FromKeeper::Exited { .. } => {}
            FromKeeper::Probed { .. } if self.clients.is_unsettled() => {
                let due = self.clients.settled();
                self.type_replies(ctx, due)?;
                self.timers.rearm = Some(ctx.now);
            }
            FromKeeper::Probed { lflag, .. } => self.probed(lflag),
            FromKeeper::Welcome(_) | FromKeeper::Keys { .. } => {}
        }
        Ok(())
    }

    fn left(&mut self, ctx: &mut Ctx, connection: u32, acked: u64) -> Result<(), Crashed> {
        let known = self.clients.by_connection(connection).map(|c| (c.id, c.size.is_none()));
        let Some((id, doubtful)) = known else { return Ok(()) };
        let answered = doubtful || self.clients.answers(id);
        self.drain_log(ctx, true)?;
        let acked = if answered { acked.max(self.authority.state().wrote_at()) } else { acked };
        if answered {
            self.look(ctx)?;
        }
        if answered {
            ctx.withheld(acked, self.picture.seen());
        }
        let due = self.clients.remove(id, Some(acked));
        let mut operators = self.authority.state().operators();
        let here = operators.any(|(operator, o)| operator.0 == id && o.away_since.is_none());
        drop(operators);
        if answered {
            self.save(false)?;
        }
        self.timers.rearm = Some(ctx.now);
        self.type_replies(ctx, due)?;
        if here {
            let _ = self.decide(ctx, Input::CutOff { operator: OperatorId(id) })?;
        }
        self.appoint(ctx)
    }

    /// As `Session::appoint`.
    pub(super) fn appoint(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        let candidate = |host: &Host| host.clients.candidate(host.size, host.writer()).map(|client| client.id);
        if candidate(self).is_none() {
            return Ok(());
        }
        self.look(ctx)?;
        let Some(id) = candidate(self) else { return Ok(()) };
        let from = self.picture.seen();
        self.clients.start_answering(id, from);
        if let Some((_, events)) = self.clients.get(id).and_then(|client| client.peer.as_ref()) {
            ctx.note(format_args!("host: asks client {id} to answer from {from} on"));
            let _ = events.send(event("answer", serde_json::json!(AnswerEvent { client: id, from })));
        }
        Ok(())
    }

    /// Does what is due, and sets when to be back.
    pub fn tick(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.worked_ms = ctx.now;
        if !self.greeted {
            return Ok(());
        }
        let now = ctx.now;
        let due = |at: Option<u64>| at.is_some_and(|at| at <= now);
        let (drain, rearm) = (due(self.timers.drain), due(self.timers.rearm));
        let (rest, rule) = (due(self.timers.rest), due(self.timers.rule));
        if drain {
            self.drain_log(ctx, false)?;
        }
        if rule {
            let _ = self.decide(ctx, Input::Tick)?;
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
        if self.picture.seen().saturating_sub(self.picture.saved()) >= quarter {
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
        if seen.saturating_sub(before) >= FLOOD_BYTES
            && self.timers.rearm.is_some_and(|at| now < at + FLOOD_PAUSE_MS)
            && answering
        {
            self.timers.rearm = Some(now + FLOOD_PAUSE_MS);
            return Ok(());
        }
        self.timers.rearm = None;
        let wake_at = if answering { head.max(seen) + 1 } else { seen.max(self.picture.saved()) + quarter };
        self.say(ctx, ToKeeper::Sleep { position: self.picture.saved(), wake_at })
    }

    pub(super) fn type_replies(&mut self, ctx: &mut Ctx, replies: Vec<Reply>) -> Result<(), Crashed> {
        if self.is_frozen() {
            self.late_replies.extend(replies);
            return Ok(());
        }
        for reply in replies {
            ctx.counts.answered_by_host += 1;
            ctx.note(format_args!("host: answers the query that ends at {}", reply.at));
            for bytes in reply.bytes.chunks(INPUT_BYTES_MAX) {
                self.reply_seq = (self.reply_seq + 1).max(reply.at << 8);
                let (fence, stream, seq) = (self.fence().0, self.reply_stream, self.reply_seq);
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
}
