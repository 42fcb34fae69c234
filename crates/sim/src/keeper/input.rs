//! The way of a key through the keeper, as in the keeper's `keys`.

use super::Keeper;
use crate::ctx::Ctx;
use crate::oracle::Accepted;
use holdfast_abi::log::{FLAG_ECHO_OFF, FLAG_ECHO_ON, Kind, RECORD_HEADER_BYTES, Record};
use holdfast_abi::protocol::{FromKeeper, INPUT_BYTES_MAX, PATTERN_BYTES_MAX, refused};
use holdfast_keeper::streams::Verdict;

impl Keeper {
    fn log_room(&self) -> usize {
        let used = self.log_head() - self.log_drained;
        (self.ring.log_bytes() - used) as usize
    }

    pub(super) fn log_head(&self) -> u64 {
        self.ring.log_head()
    }

    pub(super) fn record(
        &mut self,
        ctx: &mut Ctx,
        kind: Kind,
        connection: u32,
        stream: u64,
        seq: u64,
        bytes: &[u8],
    ) -> bool {
        if (RECORD_HEADER_BYTES + bytes.len()).next_multiple_of(8) > self.log_room() {
            return false;
        }
        let hidden = kind == Kind::Input && ctx.pty.echo_off;
        let record = Record {
            kind,
            flags: if hidden { FLAG_ECHO_OFF } else { FLAG_ECHO_ON },
            count: bytes.len() as u16,
            connection,
            fence: self.turn.fence(),
            at: self.head,
            stream,
            seq,
            time_ms: ctx.now,
            bytes: if hidden { &[] } else { bytes },
        };
        let mut encoded = Vec::new();
        record.encode(&mut encoded);
        // SAFETY: the ring was made by `Ring::create`.
        unsafe { self.ring.append_log(self.log_head(), &encoded) };
        if kind == Kind::Input {
            let by_client = self.find(connection).is_some_and(|at| self.connections[at].is_client());
            let fence = self.turn.fence();
            let own = !by_client && holdfast_session::is_own_stream(stream);
            ctx.accepted(Accepted { fence, connection, by_client, own, hidden, bytes });
        }
        self.announce_log(ctx);
        true
    }

    pub(super) fn announce_log(&mut self, ctx: &mut Ctx) {
        let log_head = self.log_head();
        if self.log_armed && log_head > self.log_drained {
            self.log_armed = false;
            self.send_to_host(ctx, FromKeeper::Logged { log_head });
        }
    }

    pub(super) fn input(&mut self, ctx: &mut Ctx, at: usize, fence: u64, stream: u64, seq: u64, bytes: &[u8]) {
        let number = self.connections[at].number;
        let verdict = self.streams.judge(stream, seq);
        if verdict == Verdict::Had {
            ctx.counts.duplicates += 1;
            ctx.note(format_args!("keeper: had {stream:x}.{seq} before"));
            if !self.queue.readdress(number, stream, seq) {
                let head = self.head;
                self.send(ctx, at, FromKeeper::Written { stream, seq, head });
            }
            return;
        }
        if let Err(code) = self.turn.check(self.connections[at].asker(), fence) {
            return self.refuse(ctx, at, code, stream, seq);
        }
        if verdict == Verdict::Overtakes
            || !self.queue.has_room(bytes.len())
            || !self.record(ctx, Kind::Input, number, stream, seq, bytes)
        {
            if verdict == Verdict::New {
                self.streams.refused(stream, seq);
            }
            return self.refuse(ctx, at, refused::FULL, stream, seq);
        }
        if fence != ctx.oracle.newest_fence {
            ctx.fail(format!("{stream:x}.{seq} was taken under fence {fence}, not {}", ctx.oracle.newest_fence));
        }
        ctx.note(format_args!("keeper: takes {stream:x}.{seq} of {number}, {} bytes", bytes.len()));
        self.streams.took(stream, seq);
        self.queue.push_frame(number, stream, seq, bytes);
        self.waiting.extend(bytes);
        self.write_input(ctx);
    }

    pub(super) fn write_input(&mut self, ctx: &mut Ctx) {
        while !self.queue.is_empty() {
            match ctx.pty.write(self.queue.front()) {
                0 => break,
                count => {
                    self.queue.wrote(count);
                    self.waiting.drain(..count);
                }
            }
        }
        while let Some(frame) = self.queue.next_written() {
            if let Some(at) = self.find(frame.connection) {
                let (stream, seq, head) = (frame.stream, frame.seq, self.head);
                self.send(ctx, at, FromKeeper::Written { stream, seq, head });
            }
        }
    }

    pub(super) fn flush_input(&mut self, ctx: &mut Ctx) {
        ctx.counts.flushes += 1;
        let (lost, answers) = ctx.pty.flush(self.waiting.drain(..));
        ctx.answers_dropped(&answers);
        ctx.oracle.flushed(lost, self.turn.fence());
        for (frame, unwritten) in self.queue.clear() {
            if unwritten {
                self.streams.dropped(frame.stream, frame.seq);
            } else {
                ctx.oracle.cut.insert((frame.stream, frame.seq));
            }
            if let Some(at) = self.find(frame.connection) {
                self.refuse(ctx, at, refused::STALE, frame.stream, frame.seq);
            }
        }
    }

    fn keys_room(&self) -> usize {
        if !self.queue.is_empty() {
            return 0;
        }
        let room = self.log_room().saturating_sub(RECORD_HEADER_BYTES) / 8 * 8;
        room.saturating_sub(PATTERN_BYTES_MAX).min(INPUT_BYTES_MAX)
    }

    pub(super) fn read_keys(&mut self, ctx: &mut Ctx, at: usize) {
        let room = self.keys_room();
        let connection = &mut self.connections[at];
        let allowed = self.turn.allows(connection.asker());
        let Some(tty) = connection.tty.as_ref().filter(|tty| tty.keys && !connection.gone && room > 0) else { return };
        if !ctx.terminals[tty.terminal].has_keys() {
            return;
        }
        if ctx.net.has_hung_up(connection.wire) {
            connection.gone = true;
            return;
        }
        if !allowed {
            return self.hand_back(ctx, at, &[]);
        }
        let keys = ctx.terminals[tty.terminal].read(room);
        let connection = connection.number;
        if !keys.is_empty() && self.record(ctx, Kind::Input, connection, 0, 0, &keys) {
            ctx.note(format_args!("keeper: reads {} bytes of keys of {connection}", keys.len()));
            self.queue.push_keys(&keys);
            self.waiting.extend(&keys);
            self.write_input(ctx);
        } else if !keys.is_empty() {
            ctx.fail("keys were read and could not be recorded".into());
        }
    }

    pub(super) fn hand_back(&mut self, ctx: &mut Ctx, at: usize, keys: &[u8]) {
        if let Some(tty) = self.connections[at].tty.as_mut() {
            tty.keys = false;
        }
        self.send(ctx, at, FromKeeper::Keys { bytes: keys });
        self.wake(ctx, at);
    }
}
