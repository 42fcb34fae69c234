//! What is said to the keeper, and what it does about it.

use holdfast_abi::log::Kind;
use holdfast_abi::protocol::{
    FOLLOW_HOLDS, FOLLOW_SCREEN, FrameError, FromKeeper, PATTERNS_MAX, SPARE_MORE, ToKeeper, refused, spared,
};

use crate::client_tty::ClientTty;
use crate::connections::{BAD_FRAMES_MAX, Role};
use crate::flow::{self, Follower};
use crate::keeper::Keeper;
use crate::keys::Entry;
use crate::setup::{COLS_MIN, ROWS_MIN};
use crate::sys::{self, Received};
use crate::tree::SPARED_MAX;

/// Frames heard of one connection before the others have their turn.
const FRAMES_MAX: usize = 64;
/// Frames heard of the host before newcomers: more than a socket holds.
const HOST_FRAMES_MAX: usize = 1024;
/// Largest signal.
const SIGNAL_MAX: u8 = 64;

impl Keeper {
    /// Everything the host has said so far.
    pub(crate) fn hear_host(&mut self) {
        for _ in 0..HOST_FRAMES_MAX {
            match self.connections.host() {
                Some(at) if self.hear_one(at) => {}
                Some(_) | None => return,
            }
        }
    }

    /// What one connection has said, up to its share.
    pub(crate) fn hear(&mut self, at: usize) {
        for _ in 0..FRAMES_MAX {
            if self.connections[at].gone || !self.hear_one(at) {
                return;
            }
        }
    }

    fn hear_one(&mut self, at: usize) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let received = sys::receive(self.connections[at].socket(), &mut buffer);
        match received {
            Received::Datagram => match ToKeeper::decode(&buffer) {
                Ok(frame) => self.handle(at, frame),
                Err(FrameError::Unknown(_)) => self.refuse(at, refused::UNKNOWN, 0, 0),
                Err(FrameError::Malformed) => self.refuse_frame(at),
            },
            Received::Oversized => self.refuse_frame(at),
            Received::Nothing => {}
            Received::Gone => self.connections[at].gone = true,
        }
        self.buffer = buffer;
        matches!(received, Received::Datagram | Received::Oversized)
    }

    /// Refuses something, with the newest fence.
    pub(crate) fn refuse(&mut self, at: usize, code: u8, stream: u64, seq: u64) {
        let fence = self.turn.fence();
        self.connections.send(at, FromKeeper::Refused { code, fence, stream, seq });
    }

    fn refuse_frame(&mut self, at: usize) {
        self.refuse(at, refused::FRAME, 0, 0);
        let connection = &mut self.connections[at];
        connection.bad_frames += 1;
        connection.gone |= connection.bad_frames >= BAD_FRAMES_MAX;
    }

    fn handle(&mut self, at: usize, frame: ToKeeper<'_>) {
        match frame {
            ToKeeper::Hello { .. } => self.refuse_frame(at),
            ToKeeper::Follow { position, flags } => self.follow(at, position, flags),
            ToKeeper::Ack { position } => self.connections[at].follower.ack(position, self.head),
            ToKeeper::Sleep { position, wake_at } => {
                let connection = &mut self.connections[at];
                connection.follower.ack(position, self.head);
                connection.wake_at = Some(wake_at);
                self.notify(at);
            }
            ToKeeper::Tty { flags, path, patterns } => self.take_tty(at, flags, path, &patterns),
            ToKeeper::TtyBack => self.hand_back(at, &[]),
            ToKeeper::Input { seq: 0, .. } => self.refuse_frame(at),
            ToKeeper::Input { fence, stream, seq, bytes } => self.input(at, fence, stream, seq, bytes),
            ToKeeper::Resize { fence, cols, rows } => self.resize(at, fence, cols, rows),
            ToKeeper::Signal { .. }
            | ToKeeper::Admit { .. }
            | ToKeeper::Writer { .. }
            | ToKeeper::Expel { .. }
            | ToKeeper::Drained { .. }
            | ToKeeper::End { .. }
            | ToKeeper::Probe
            | ToKeeper::Flush { .. }
            | ToKeeper::Spare { .. }
            | ToKeeper::Lease { .. } => match self.connections[at].role {
                Role::Host => self.obey(at, frame),
                Role::Client { .. } | Role::Newcomer => self.refuse(at, refused::HOST, 0, 0),
            },
        }
    }

    /// What only the host may ask.
    fn obey(&mut self, at: usize, frame: ToKeeper<'_>) {
        match frame {
            ToKeeper::Signal { fence, target, number } => self.signal(at, fence, target, number),
            ToKeeper::Admit { token, rights } => self.admitted.admit(token, rights),
            ToKeeper::Writer { fence, connection } if self.turn.assign(fence, connection) => {
                self.hand_back_where_not_allowed();
            }
            ToKeeper::Flush { fence } if self.turn.raise(fence) => self.flush_input(),
            ToKeeper::Writer { .. } | ToKeeper::Flush { .. } => self.refuse(at, refused::STALE, 0, 0),
            ToKeeper::Expel { connection } => {
                if let Some(expelled) = self.connections.find(connection) {
                    self.connections[expelled].gone = true;
                }
            }
            ToKeeper::Drained { position } => {
                self.log_drained = self.log_drained.max(position.min(self.log_head));
                self.log_armed = true;
                self.announce_log();
            }
            // What stands still for its lease must not run once more to hear of its end.
            ToKeeper::End { .. } if self.is_over() => {
                self.ending.ask(0, sys::monotonic_ms());
                self.kill_stopped();
                self.reap();
            }
            ToKeeper::End { grace_ms } => {
                if self.ending.ask(grace_ms, sys::monotonic_ms()) {
                    self.signal_tree(&[libc::SIGHUP, libc::SIGCONT]);
                    self.reap();
                }
            }
            ToKeeper::Lease { fence, until_ms, flags, cgroup } => self.hear_lease(at, fence, until_ms, flags, cgroup),
            ToKeeper::Spare { flags, processes } => {
                if flags & SPARE_MORE == 0 {
                    self.spared.clear();
                }
                let room = SPARED_MAX.saturating_sub(self.spared.len());
                self.spared.extend(spared(processes).take(room));
            }
            ToKeeper::Probe => {
                let probe = self.parts.terminal.probe();
                let (foreground, unread) = (probe.foreground, probe.unread);
                let (iflag, oflag, lflag) = (probe.iflag, probe.oflag, probe.lflag);
                self.connections.send(at, FromKeeper::Probed { foreground, iflag, oflag, lflag, unread });
            }
            ToKeeper::Hello { .. }
            | ToKeeper::Follow { .. }
            | ToKeeper::Ack { .. }
            | ToKeeper::Sleep { .. }
            | ToKeeper::Tty { .. }
            | ToKeeper::TtyBack
            | ToKeeper::Input { .. }
            | ToKeeper::Resize { .. } => {}
        }
    }

    fn follow(&mut self, at: usize, position: u64, flags: u8) {
        let is_screen = flags & FOLLOW_SCREEN != 0;
        if is_screen && self.connections[at].role != Role::Host {
            return self.refuse(at, refused::HOST, 0, 0);
        }
        let (capacity, oldest) = (self.parts.ring.capacity(), self.parts.ring.oldest());
        let position = position.min(self.head);
        let connection = &mut self.connections[at];
        connection.wake_at = None;
        connection.is_screen = is_screen;
        connection.follower = if is_screen {
            self.ghost = None;
            Follower::holding(position, oldest, flow::screen_window(capacity))
        } else if flags & FOLLOW_HOLDS != 0 {
            Follower::holding(position, oldest, flow::live_window(capacity))
        } else {
            Follower::watching(position)
        };
    }

    fn take_tty(&mut self, at: usize, flags: u8, path: &[u8], patterns: &[&[u8]; PATTERNS_MAX]) {
        let connection = &mut self.connections[at];
        if !connection.is_client() {
            return self.refuse_frame(at);
        }
        let piece = connection.tty.take().map(|tty| tty.piece).unwrap_or_default();
        match ClientTty::open(flags, path, patterns, connection.pid, self.parts.terminal.device()) {
            Ok(mut tty) => {
                let must_go_back = if tty.keys { !self.turn.allows(connection.asker()) } else { !piece.is_empty() };
                tty.piece = piece;
                connection.tty = Some(Box::new(tty));
                if must_go_back {
                    self.hand_back(at, &[]);
                }
            }
            Err(_) => self.lose_tty(at),
        }
    }

    fn resize(&mut self, at: usize, fence: u64, cols: u16, rows: u16) {
        if let Err(code) = self.turn.check(self.connections[at].asker(), fence) {
            return self.refuse(at, code, 0, 0);
        }
        let (cols, rows) = (cols.max(COLS_MIN), rows.max(ROWS_MIN));
        if self.parts.size == (cols, rows) {
            return;
        }
        let connection = self.connections[at].number;
        let (stream, seq) = (u64::from(cols), u64::from(rows));
        if !self.record(&Entry { kind: Kind::Resize, connection, stream, seq, bytes: &[] }) {
            return self.refuse(at, refused::FULL, 0, 0);
        }
        self.parts.size = (cols, rows);
        // A terminal that is there can be resized; where it is gone nobody minds.
        let _ = self.parts.terminal.resize(cols, rows);
        self.connections.broadcast(FromKeeper::Resized { head: self.head, cols, rows });
    }

    fn signal(&mut self, at: usize, fence: u64, target: u8, number: u8) {
        if let Err(code) = self.turn.check(self.connections[at].asker(), fence) {
            return self.refuse(at, code, 0, 0);
        }
        if !(1..=SIGNAL_MAX).contains(&number) || target > 2 {
            return self.refuse_frame(at);
        }
        let connection = self.connections[at].number;
        let (stream, seq) = (u64::from(number), u64::from(target));
        if !self.record(&Entry { kind: Kind::Signal, connection, stream, seq, bytes: &[] }) {
            return self.refuse(at, refused::FULL, 0, 0);
        }
        let signal = i32::from(number);
        match target {
            0 => self.parts.terminal.foreground().into_iter().for_each(|group| sys::kill(-group, signal)),
            // Once reaped its number may be somebody else's.
            1 if self.status.is_none() => sys::kill(-self.parts.child, signal),
            1 => {}
            _ => self.signal_tree(&[signal]),
        }
    }
}
