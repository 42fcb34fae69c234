//! The keeper: real decisions and a real ring, around a fake terminal and fake sockets.
//!
//! Follows `crates/keeper/src`: `mod` its loop, coming and going; `frames` what is said to it; `input` the way of a key.
//! Chords, signals, probes and the ending of a tree are not here.

mod frames;
mod input;

use crate::ctx::Ctx;
use crate::net::Heard;
use holdfast_abi::protocol::{FromKeeper, STALL_MS, ToKeeper, Token, VERSION, Welcome, refused};
use holdfast_abi::ring::{Copied, Ring};
use holdfast_keeper::connections::Role;
use holdfast_keeper::flow::{Follower, Hold};
use holdfast_keeper::queue::Queue;
use holdfast_keeper::streams::Streams;
use holdfast_keeper::turn::{self, Admitted, Asker, Turn};
use std::collections::VecDeque;

/// As in the keeper's `output`.
const READS_MAX: usize = 16;
const PAINT_BYTES_MAX: u64 = 1024;
/// What one read of a terminal gives.
const READ_BYTES_MAX: usize = 4096;

/// One connection, as in the keeper's `connections`.
struct Connection {
    number: u32,
    wire: usize,
    role: Role,
    follower: Follower,
    is_screen: bool,
    wake_at: Option<u64>,
    tty: Option<Tty>,
    gone: bool,
}

/// A client's terminal in the keeper's hands.
struct Tty {
    terminal: usize,
    keys: bool,
    paint: bool,
}

/// The keeper of the session.
pub(crate) struct Keeper {
    ring: Ring,
    head: u64,
    connections: Vec<Connection>,
    last_number: u32,
    turn: Turn,
    admitted: Admitted,
    streams: Streams,
    queue: Queue,
    /// The queue's bytes again: what a flush takes from it must be known here.
    waiting: VecDeque<u8>,
    ghost: Option<Follower>,
    log_drained: u64,
    log_armed: bool,
    size: (u16, u16),
    secret: Token,
    /// A host's screen has followed.
    was_followed: bool,
    /// Since when output waits and nothing moves, for the oracle; and when we last looked.
    held_since: Option<u64>,
    looked_ms: u64,
}

impl Keeper {
    pub fn new(ring: Ring, size: (u16, u16), secret: Token) -> Keeper {
        Keeper {
            ring,
            head: 0,
            connections: Vec::new(),
            last_number: 0,
            turn: Turn::default(),
            admitted: Admitted::default(),
            streams: Streams::default(),
            queue: Queue::default(),
            waiting: VecDeque::new(),
            ghost: None,
            log_drained: 0,
            log_armed: false,
            size,
            secret,
            was_followed: false,
            held_since: None,
            looked_ms: 0,
        }
    }

    pub fn head(&self) -> u64 {
        self.head
    }

    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    pub fn queue_is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// One round of its loop.
    pub fn turn(&mut self, ctx: &mut Ctx) {
        let hold = self.hold(ctx);
        self.write_input(ctx);
        if self.head < hold.limit && !ctx.pty.out.is_empty() {
            self.read_output(ctx, hold.limit);
        }
        self.hear_host(ctx);
        for at in 0..self.connections.len() {
            if self.connections[at].is_client() {
                self.hear(ctx, at);
            }
            self.read_keys(ctx, at);
        }
        while let Some(wire) = ctx.net.knocking.pop_front() {
            self.add(wire);
        }
        for at in 0..self.connections.len() {
            if self.connections[at].role == Role::Newcomer && !self.connections[at].gone {
                self.greet(ctx, at);
            }
        }
        self.sweep(ctx);
    }

    fn hold(&mut self, ctx: &mut Ctx) -> Hold {
        let (head, now) = (self.head, ctx.now);
        let mut hold = Hold::NONE;
        let mut stalls = 0;
        for connection in &mut self.connections {
            let was = connection.follower.is_lapped();
            hold = hold.and(connection.follower.hold(head, now));
            stalls += u64::from(!was && connection.follower.is_lapped());
        }
        if let Some(ghost) = &mut self.ghost {
            hold = hold.and(ghost.hold(head, now));
            if ghost.is_lapped() {
                self.ghost = None;
                stalls += 1;
            }
        }
        ctx.counts.stalls += stalls;
        if stalls > 0 {
            // Whoever was left behind may have been the one to answer.
            ctx.oracle.disturbed(now);
            ctx.note(format_args!("keeper: {stalls} without progress are no longer waited for at {head}"));
        }
        self.check_hold(ctx, hold);
        hold
    }

    /// Invariant 4. Our own lateness is not the reader's.
    fn check_hold(&mut self, ctx: &mut Ctx, hold: Hold) {
        let late_ms = ctx.now - self.looked_ms;
        self.looked_ms = ctx.now;
        if ctx.pty.out.is_empty() || self.head < hold.limit {
            self.held_since = None;
            return;
        }
        let held_ms = ctx.now - *self.held_since.get_or_insert(ctx.now);
        if held_ms > STALL_MS + late_ms {
            ctx.fail(format!("the program is held for {held_ms} ms at {}", self.head));
        }
    }

    fn read_output(&mut self, ctx: &mut Ctx, limit: u64) {
        for _ in 0..ctx.rng.usize(1..=READS_MAX) {
            let (to, room) = self.ring.space(self.head);
            let room = (room as u64).min(limit - self.head).min(READ_BYTES_MAX as u64) as usize;
            let bytes = ctx.pty.read(room);
            if bytes.is_empty() {
                return;
            }
            // SAFETY: `to` and `room` lie inside the ring's mapping, made by `Ring::create`, beyond the published head.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
            self.head += bytes.len() as u64;
            self.ring.publish(self.head);
            self.held_since = None;
            ctx.oracle.unwatched |= !self.was_followed;
            ctx.published(&bytes);
            for at in 0..self.connections.len() {
                self.notify(ctx, at);
            }
        }
    }

    fn send(&mut self, ctx: &mut Ctx, at: usize, frame: FromKeeper<'_>) {
        let connection = &mut self.connections[at];
        if !connection.gone {
            connection.gone = !ctx.net.keeper_says(connection.wire, frame);
        }
    }

    fn host(&self) -> Option<usize> {
        self.connections.iter().position(|connection| connection.role == Role::Host && !connection.gone)
    }

    fn send_to_host(&mut self, ctx: &mut Ctx, frame: FromKeeper<'_>) {
        if let Some(at) = self.host() {
            self.send(ctx, at, frame);
        }
    }

    fn find(&self, number: u32) -> Option<usize> {
        self.connections.iter().position(|connection| connection.number == number && !connection.gone)
    }

    fn notify(&mut self, ctx: &mut Ctx, at: usize) {
        let connection = &self.connections[at];
        let Some(wake_at) = connection.wake_at.filter(|_| !connection.gone) else { return };
        if connection.tty.as_ref().is_some_and(|tty| tty.paint) {
            self.paint(ctx, at);
            if self.connections[at].follower.acked() < self.head {
                self.wake(ctx, at);
            }
        } else if self.head >= wake_at || connection.follower.is_at_edge(self.head) {
            self.wake(ctx, at);
        }
    }

    fn paint(&mut self, ctx: &mut Ctx, at: usize) {
        let head = self.head;
        let connection = &mut self.connections[at];
        let mut position = connection.follower.acked();
        let Some(terminal) = connection.tty.as_ref().map(|tty| tty.terminal) else { return };
        if position == head || head - position > PAINT_BYTES_MAX {
            return;
        }
        if ctx.net.has_hung_up(connection.wire) {
            connection.gone = true;
            return;
        }
        let mut bytes = [0; PAINT_BYTES_MAX as usize];
        while let Copied::Bytes(count @ 1..) = self.ring.copy(position, &mut bytes) {
            if ctx.terminals[terminal].stuck {
                break;
            }
            let count = if ctx.chance(20) { ctx.rng.usize(1..=count) } else { count };
            ctx.show(terminal, position, &bytes[..count], &bytes[..count]);
            ctx.counts.keeper_paints += 1;
            position += count as u64;
        }
        connection.follower.ack(position, head);
    }

    fn wake(&mut self, ctx: &mut Ctx, at: usize) {
        if self.connections[at].wake_at.take().is_some() {
            let position = self.connections[at].follower.acked();
            self.send(ctx, at, FromKeeper::Wake { position });
        }
    }

    fn add(&mut self, wire: usize) {
        self.last_number += 1;
        self.connections.push(Connection {
            number: self.last_number,
            wire,
            role: Role::Newcomer,
            follower: Follower::watching(0),
            is_screen: false,
            wake_at: None,
            tty: None,
            gone: false,
        });
    }

    fn greet(&mut self, ctx: &mut Ctx, at: usize) {
        let hello = match ctx.net.keeper_hears(self.connections[at].wire) {
            Heard::Nothing => return,
            Heard::Frame(bytes) => match ToKeeper::decode(&bytes) {
                Ok(ToKeeper::Hello { version: VERSION, role, token }) => Some((role, token)),
                Ok(_) | Err(_) => None,
            },
            Heard::Closed => None,
        };
        let Some((role, token)) = hello else {
            self.connections[at].gone = true;
            return;
        };
        // The host is heard first: it may just have announced the token.
        self.hear_host(ctx);
        let role = match role {
            1 if turn::same(&token, &self.secret) => Some(Role::Host),
            0 => self.admitted.take(&token).map(|rights| Role::Client { token, rights }),
            _ => None,
        };
        match role {
            Some(role) => self.welcome(ctx, at, role),
            None => {
                self.refuse(ctx, at, refused::TOKEN, 0, 0);
                self.connections[at].gone = true;
            }
        }
    }

    fn welcome(&mut self, ctx: &mut Ctx, at: usize, role: Role) {
        if role == Role::Host {
            self.log_armed = false;
            if let Some(former) = self.host() {
                self.connections[former].gone = true;
            }
        }
        self.connections[at].role = role;
        let welcome = Welcome {
            version: VERSION,
            connection: self.connections[at].number,
            features: 0,
            head: self.head,
            log_head: self.log_head(),
            fence: self.turn.fence(),
            cols: self.size.0,
            rows: self.size.1,
            child_pid: 1,
        };
        ctx.note(format_args!("keeper: welcomes {} as {}", welcome.connection, name(role)));
        self.send(ctx, at, FromKeeper::Welcome(welcome));
        if role != Role::Host {
            return self.announce(ctx, at);
        }
        for client in 0..self.connections.len() {
            if !self.connections[client].gone {
                self.announce(ctx, client);
            }
        }
    }

    fn announce(&mut self, ctx: &mut Ctx, at: usize) {
        let connection = self.connections[at].number;
        if let Role::Client { token, rights } = self.connections[at].role {
            self.send_to_host(ctx, FromKeeper::Joined { connection, pid: connection, token, rights });
        }
    }

    fn sweep(&mut self, ctx: &mut Ctx) {
        while let Some(at) = self.connections.iter().position(|connection| connection.gone) {
            let departed = self.connections.remove(at);
            ctx.net.keeper_closes(departed.wire);
            ctx.note(format_args!("keeper: {} of {} is gone", departed.number, name(departed.role)));
            if departed.is_screen && !self.connections.iter().any(|connection| connection.is_screen) {
                self.ghost = Some(departed.follower);
            }
            if matches!(departed.role, Role::Client { .. }) {
                let (connection, acked) = (departed.number, departed.follower.acked());
                self.send_to_host(ctx, FromKeeper::Left { connection, acked });
            }
        }
    }
}

impl Connection {
    fn asker(&self) -> Asker {
        match self.role {
            Role::Host => Asker::Host,
            Role::Client { rights, .. } => Asker::Client { connection: self.number, rights },
            Role::Newcomer => Asker::Client { connection: self.number, rights: 0 },
        }
    }

    fn is_client(&self) -> bool {
        matches!(self.role, Role::Client { .. })
    }
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Newcomer => "newcomer",
        Role::Client { .. } => "client",
        Role::Host => "host",
    }
}
