//! What is said to the keeper, as in the keeper's `frames`.

use super::{Connection, Keeper, Tty};
use crate::ctx::Ctx;
use crate::net::Heard;
use holdfast_abi::log::Kind;
use holdfast_abi::protocol::{FOLLOW_HOLDS, FOLLOW_SCREEN, FromKeeper, TTY_KEYS, TTY_PAINT, ToKeeper, refused};
use holdfast_keeper::connections::Role;
use holdfast_keeper::flow::{self, Follower};
use holdfast_types::Size;

const FRAMES_MAX: usize = 64;
/// Linux's flags for lines and echo.
const ICANON: u32 = 0o2;
const ECHO: u32 = 0o10;

impl Keeper {
    pub(super) fn hear_host(&mut self, ctx: &mut Ctx) {
        while let Some(at) = self.host() {
            if !self.hear_one(ctx, at) {
                return;
            }
        }
    }

    pub(super) fn hear(&mut self, ctx: &mut Ctx, at: usize) {
        for _ in 0..ctx.rng.usize(1..=FRAMES_MAX) {
            if self.connections[at].gone || !self.hear_one(ctx, at) {
                return;
            }
        }
    }

    fn hear_one(&mut self, ctx: &mut Ctx, at: usize) -> bool {
        match ctx.net.keeper_hears(self.connections[at].wire) {
            Heard::Frame(bytes) => {
                match ToKeeper::decode(&bytes) {
                    Ok(frame) => self.handle(ctx, at, frame),
                    Err(error) => ctx.fail(format!("a frame that is none reached the keeper: {error}")),
                }
                true
            }
            Heard::Nothing => false,
            Heard::Closed => {
                self.connections[at].gone = true;
                false
            }
        }
    }

    pub(super) fn refuse(&mut self, ctx: &mut Ctx, at: usize, code: u8, stream: u64, seq: u64) {
        match code {
            refused::FULL => ctx.counts.refused_full += 1,
            refused::STALE => ctx.counts.refused_stale += 1,
            refused::WRITER => ctx.counts.refused_writer += 1,
            _ => {}
        }
        ctx.note(format_args!("keeper: refuses {} {stream:x}.{seq} with {code}", self.connections[at].number));
        let fence = self.turn.fence();
        self.send(ctx, at, FromKeeper::Refused { code, fence, stream, seq });
    }

    fn handle(&mut self, ctx: &mut Ctx, at: usize, frame: ToKeeper<'_>) {
        let head = self.head;
        match frame {
            ToKeeper::Follow { position, flags } => self.follow(ctx, at, position, flags),
            ToKeeper::Ack { position } => self.connections[at].follower.ack(position, head),
            ToKeeper::Sleep { position, wake_at } => {
                let connection = &mut self.connections[at];
                connection.follower.ack(position, head);
                connection.wake_at = Some(wake_at);
                self.notify(ctx, at);
            }
            ToKeeper::Tty { flags, path, .. } => self.take_tty(ctx, at, flags, path),
            ToKeeper::TtyBack => self.hand_back(ctx, at, &[]),
            ToKeeper::Input { fence, stream, seq, bytes } => self.input(ctx, at, fence, stream, seq, bytes),
            ToKeeper::Resize { fence, cols, rows } => self.resize(ctx, at, fence, cols, rows),
            ToKeeper::Admit { .. }
            | ToKeeper::Writer { .. }
            | ToKeeper::Expel { .. }
            | ToKeeper::Drained { .. }
            | ToKeeper::Probe
            | ToKeeper::Flush { .. } => match self.connections[at].role {
                Role::Host => self.obey(ctx, at, frame),
                Role::Client { .. } | Role::Newcomer => self.refuse(ctx, at, refused::HOST, 0, 0),
            },
            ToKeeper::Hello { .. }
            | ToKeeper::Signal { .. }
            | ToKeeper::End { .. }
            | ToKeeper::Spare { .. }
            | ToKeeper::Lease { .. } => {
                ctx.fail(format!("nobody in this world says {frame:?}"));
            }
        }
    }

    fn obey(&mut self, ctx: &mut Ctx, at: usize, frame: ToKeeper<'_>) {
        match frame {
            ToKeeper::Admit { token, rights } => self.admitted.admit(token, rights),
            ToKeeper::Writer { fence, connection } if self.turn.assign(fence, connection) => {
                ctx.note(format_args!("keeper: writer {connection} under fence {fence}"));
                ctx.keeper_has_fence(fence);
                self.hand_back_where_not_allowed(ctx);
            }
            ToKeeper::Flush { fence } if self.turn.raise(fence) => {
                ctx.note(format_args!("keeper: flush under fence {fence}"));
                ctx.keeper_has_fence(fence);
                self.flush_input(ctx);
            }
            ToKeeper::Writer { .. } | ToKeeper::Flush { .. } => self.refuse(ctx, at, refused::STALE, 0, 0),
            ToKeeper::Expel { connection } => {
                if let Some(expelled) = self.find(connection) {
                    self.connections[expelled].gone = true;
                }
            }
            ToKeeper::Drained { position } => {
                self.log_drained = self.log_drained.max(position.min(self.log_head()));
                self.log_armed = true;
                self.announce_log(ctx);
            }
            ToKeeper::Probe => {
                let lflag = match (ctx.pty.reads_lines, ctx.pty.echo_off) {
                    (true, true) => ICANON,
                    (true, false) => ICANON | ECHO,
                    (false, _) => 0,
                };
                let (foreground, unread) = (ctx.pty.foreground, ctx.pty.input.len() as u32);
                self.send(ctx, at, FromKeeper::Probed { foreground, iflag: 0, oflag: 0, lflag, unread });
            }
            ToKeeper::Hello { .. }
            | ToKeeper::Follow { .. }
            | ToKeeper::Ack { .. }
            | ToKeeper::Sleep { .. }
            | ToKeeper::Tty { .. }
            | ToKeeper::TtyBack
            | ToKeeper::Input { .. }
            | ToKeeper::Resize { .. }
            | ToKeeper::Signal { .. }
            | ToKeeper::End { .. }
            | ToKeeper::Spare { .. }
            | ToKeeper::Lease { .. } => {}
        }
    }

    fn follow(&mut self, ctx: &mut Ctx, at: usize, position: u64, flags: u8) {
        let is_screen = flags & FOLLOW_SCREEN != 0;
        let (capacity, oldest) = (self.ring.capacity(), self.ring.oldest());
        let position = position.min(self.head);
        ctx.note(format_args!("keeper: {} follows from {position}, flags {flags}", self.connections[at].number));
        // Each newcomer may hold the program for its own time.
        self.held_since = None;
        let connection = &mut self.connections[at];
        connection.wake_at = None;
        connection.is_screen = is_screen;
        self.was_followed |= is_screen;
        connection.follower = if is_screen {
            self.ghost = None;
            Follower::holding(position, oldest, flow::screen_window(capacity))
        } else if flags & FOLLOW_HOLDS != 0 {
            Follower::holding(position, oldest, flow::live_window(capacity))
        } else {
            Follower::watching(position)
        };
    }

    /// The path is the terminal's number in this world.
    fn take_tty(&mut self, ctx: &mut Ctx, at: usize, flags: u8, path: &[u8]) {
        let Ok(terminal) = path.try_into().map(u64::from_le_bytes) else {
            return ctx.fail("a terminal without a number".into());
        };
        let connection = &mut self.connections[at];
        let keys = flags & TTY_KEYS != 0;
        let must_go_back = keys && !self.turn.allows(connection.asker());
        connection.tty = Some(Tty { terminal: terminal as usize, keys, paint: flags & TTY_PAINT != 0 });
        if must_go_back {
            self.hand_back(ctx, at, &[]);
        }
    }

    fn resize(&mut self, ctx: &mut Ctx, at: usize, fence: u64, cols: u16, rows: u16) {
        if let Err(code) = self.turn.check(self.connections[at].asker(), fence) {
            return self.refuse(ctx, at, code, 0, 0);
        }
        if self.size == (cols, rows) {
            return;
        }
        let connection = self.connections[at].number;
        if !self.record(ctx, Kind::Resize, connection, u64::from(cols), u64::from(rows), &[]) {
            return self.refuse(ctx, at, refused::FULL, 0, 0);
        }
        self.size = (cols, rows);
        ctx.counts.resizes += 1;
        ctx.oracle.resizes.push((self.head, Size::clamped(cols, rows)));
        ctx.note(format_args!("keeper: resized to {cols}x{rows} at {}", self.head));
        let frame = FromKeeper::Resized { head: self.head, cols, rows };
        for at in 0..self.connections.len() {
            if self.connections[at].role != Role::Newcomer {
                self.send(ctx, at, frame);
            }
        }
    }

    /// Takes the keys from clients that may not write any more.
    fn hand_back_where_not_allowed(&mut self, ctx: &mut Ctx) {
        let turn = self.turn;
        let reads = |c: &Connection| c.tty.as_ref().is_some_and(|tty| tty.keys) && !c.gone;
        for at in 0..self.connections.len() {
            if reads(&self.connections[at]) && !turn.allows(self.connections[at].asker()) {
                self.hand_back(ctx, at, &[]);
            }
        }
    }
}
