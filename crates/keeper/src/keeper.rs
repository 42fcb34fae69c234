//! The keeper's state and its loop.
//!
//! Each round: the ended are reaped, input and output moved, the host heard before anybody else, then the clients and their
//! terminals, then newcomers greeted, and the gone swept. While nothing happens the loop sleeps without a timer.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use holdfast_abi::protocol::{FRAME_BYTES_MAX, FromKeeper, Token};
use holdfast_abi::ring::{Ring, STATE_ENDED};

use crate::connections::{Connections, Role};
use crate::ending::Ending;
use crate::flow::{Follower, Hold, sooner};
use crate::lease::Lease;
use crate::leased::Alarms;
use crate::queue::Queue;
use crate::still;
use crate::streams::Streams;
use crate::sys::{self, NOT_POLLED, Reaped, polled};
use crate::terminal::Terminal;
use crate::tree;
use crate::turn::{Admitted, Turn};

/// After so long without output the ring's pages are given back.
const QUIET_MS: u64 = 1000;

/// What the kernel tells of one signal.
const SIGNAL_BYTES: usize = std::mem::size_of::<libc::signalfd_siginfo>();

const TERMINAL: usize = 0;
const LISTENER: usize = 1;
const SIGNALS: usize = 2;
const LEASE: usize = 3;
const FIXED: usize = 4;

/// What a keeper is made of.
#[derive(Debug)]
pub struct Parts {
    /// The ring, made for writing.
    pub ring: Ring,
    /// The terminal.
    pub terminal: Terminal,
    /// The child's process.
    pub child: i32,
    /// Readable when a child ended.
    pub signals: OwnedFd,
    /// Where newcomers arrive.
    pub listener: OwnedFd,
    /// The listener's file.
    pub socket_path: CString,
    /// What proves the host.
    pub secret: Token,
    /// Columns and rows.
    pub size: (u16, u16),
    /// What input streams had, in the life before.
    pub streams: Streams,
    /// Until when it may run here.
    pub lease: Lease,
    /// What wakes the keeper then, and what kills it.
    pub alarms: Alarms,
}

/// The keeper of one session.
#[derive(Debug)]
pub struct Keeper {
    pub(crate) parts: Parts,
    pub(crate) head: u64,
    pub(crate) connections: Connections,
    pub(crate) turn: Turn,
    pub(crate) admitted: Admitted,
    pub(crate) streams: Streams,
    pub(crate) queue: Queue,
    pub(crate) ending: Ending,
    /// Holdfast's own processes below, as the host named them.
    pub(crate) spared: tree::Spared,
    /// The screen of a host that broke off: held for a while, so that a host restarted at once finds everything.
    pub(crate) ghost: Option<Follower>,
    /// As with the head, the header has a copy: whatever happens to the file, the keeper counts on.
    pub(crate) log_head: u64,
    pub(crate) log_drained: u64,
    pub(crate) log_armed: bool,
    pub(crate) buffer: Vec<u8>,
    pub(crate) scratch: Vec<u8>,
    pub(crate) status: Option<i32>,
    /// Who was stopped by a signal when the lease was over.
    pub(crate) stopped: still::Stopped,
    pub(crate) late_ms: u32,
    pub(crate) left: u32,
    /// Since the processes settled: output read, and whether none is left.
    pub(crate) last_output_bytes: u64,
    pub(crate) drained: bool,
    /// The terminal was hung up and could not be opened again.
    pub(crate) terminal_lost: bool,
    pub(crate) touched_ms: Option<u64>,
    pub(crate) no_page_until_ms: Option<u64>,
    pub(crate) crowded_until_ms: Option<u64>,
}

impl Keeper {
    /// A keeper of a child that just started.
    #[must_use]
    pub fn new(mut parts: Parts) -> Keeper {
        Keeper {
            streams: std::mem::take(&mut parts.streams),
            head: parts.ring.head(),
            log_head: parts.ring.log_head(),
            log_drained: parts.ring.log_head(),
            parts,
            connections: Connections::default(),
            turn: Turn::default(),
            admitted: Admitted::default(),
            queue: Queue::default(),
            ending: Ending::default(),
            spared: tree::Spared::new(),
            ghost: None,
            log_armed: false,
            buffer: Vec::with_capacity(FRAME_BYTES_MAX),
            scratch: Vec::new(),
            status: None,
            stopped: still::Stopped::new(),
            late_ms: 0,
            left: 0,
            last_output_bytes: 0,
            drained: false,
            terminal_lost: false,
            touched_ms: None,
            no_page_until_ms: None,
            crowded_until_ms: None,
        }
    }

    /// The child's process.
    #[must_use]
    pub fn child_pid(&self) -> u32 {
        self.parts.child as u32
    }

    /// Serves the session until it has ended.
    pub fn run(mut self) {
        let mut slots = Vec::new();
        while !self.drained {
            let now_ms = sys::monotonic_ms();
            let hold = self.hold(now_ms);
            let wait_ms = self.wait_ms(hold, now_ms);
            self.arrange(&mut slots, hold);
            sys::poll(&mut slots, wait_ms);
            self.round(&slots, hold);
        }
        self.finish();
    }

    /// How far the output may go now.
    fn hold(&mut self, now_ms: u64) -> Hold {
        let head = self.head;
        let mut hold = Hold::NONE;
        for connection in self.connections.iter_mut() {
            hold = hold.and(connection.follower.hold(head, now_ms));
        }
        if let Some(ghost) = &mut self.ghost {
            hold = hold.and(ghost.hold(head, now_ms));
            if ghost.is_lapped() {
                self.ghost = None;
            }
        }
        if let Some(until_ms) = self.no_page_until_ms {
            let left_ms = until_ms.saturating_sub(now_ms);
            if left_ms > 0 {
                return hold.and(Hold { limit: 0, again_ms: Some(left_ms) });
            }
            self.no_page_until_ms = None;
        }
        hold
    }

    /// When to wake up by ourselves.
    fn wait_ms(&self, hold: Hold, now_ms: u64) -> Option<u64> {
        if self.must_drain() && self.head < hold.limit {
            return Some(0);
        }
        let at = |time_ms: u64| time_ms.saturating_sub(now_ms);
        let mut wait = sooner(hold.again_ms, self.ending.again_ms(now_ms));
        wait = sooner(wait, self.touched_ms.map(|ms| at(ms + QUIET_MS)));
        wait = sooner(wait, self.crowded_until_ms.map(at));
        let may_type = self.keys_room() > 0;
        for tty in self.connections.iter().filter_map(|connection| connection.tty.as_ref()) {
            wait = sooner(wait, tty.away_until_ms.map(at));
            wait = sooner(wait, (may_type && !tty.piece.is_empty()).then(|| at(tty.piece_until_ms)));
        }
        wait
    }

    /// What to look at.
    fn arrange(&self, slots: &mut Vec<libc::pollfd>, hold: Hold) {
        let parts = &self.parts;
        let mut events = 0;
        if self.head < hold.limit {
            events |= libc::POLLIN;
        }
        if !self.queue.is_empty() && !self.parts.lease.is_fenced() {
            events |= libc::POLLOUT;
        }
        let silent = events == 0 || self.terminal_lost;
        slots.clear();
        slots.push(if silent { NOT_POLLED } else { polled(parts.terminal.master(), events) });
        let crowded = self.crowded_until_ms.is_some();
        slots.push(if crowded { NOT_POLLED } else { polled(parts.listener.as_fd(), libc::POLLIN) });
        slots.push(polled(parts.signals.as_fd(), libc::POLLIN));
        let alarm = parts.alarms.alarm.as_ref().filter(|_| !parts.lease.is_fenced());
        slots.push(alarm.map_or(NOT_POLLED, |alarm| polled(alarm.as_fd(), libc::POLLIN)));
        let may_read_keys = self.keys_room() > 0;
        for connection in self.connections.iter() {
            slots.push(polled(connection.socket(), libc::POLLIN));
            let tty = connection.tty.as_ref().filter(|tty| tty.keys && tty.away_until_ms.is_none() && may_read_keys);
            slots.push(tty.map_or(NOT_POLLED, |tty| polled(tty.file(), libc::POLLIN)));
        }
    }

    fn round(&mut self, slots: &[libc::pollfd], hold: Hold) {
        let now_ms = sys::monotonic_ms();
        // Before anything else, whoever woke us.
        if slots[LEASE].revents != 0 || self.parts.lease.is_due(sys::boottime_ms) {
            self.fence();
        }
        if slots[SIGNALS].revents != 0 {
            self.reap();
        }
        self.move_terminal(slots[TERMINAL].revents, hold.limit, now_ms);
        if self.connections.host().is_some_and(|at| slots[FIXED + 2 * at].revents != 0) {
            self.hear_host();
        }
        for (at, pair) in slots[FIXED..].chunks_exact(2).enumerate() {
            if pair[0].revents != 0 && self.connections[at].is_client() {
                self.hear(at);
            }
            if pair[1].revents != 0 {
                self.read_keys(at, now_ms);
            }
        }
        self.tend(now_ms);
        if slots[LISTENER].revents != 0 {
            self.accept(now_ms);
        }
        for at in 0..self.connections.len() {
            if self.connections[at].role == Role::Newcomer && !self.connections[at].gone {
                self.greet(at);
            }
        }
        self.sweep();
    }

    /// What time brings.
    fn tend(&mut self, now_ms: u64) {
        self.release_pieces(now_ms);
        if self.ending.kill_is_due(now_ms) {
            self.signal_tree(&[libc::SIGKILL]);
            self.reap();
        }
        if self.touched_ms.is_some_and(|ms| now_ms >= ms + QUIET_MS) {
            self.touched_ms = None;
            self.parts.ring.release_pages();
        }
        self.crowded_until_ms = self.crowded_until_ms.filter(|until_ms| now_ms < *until_ms);
    }

    /// Reaps whoever has ended; as a subreaper also the session's orphans.
    pub(crate) fn reap(&mut self) {
        while sys::read(self.parts.signals.as_fd(), &mut self.scratch, SIGNAL_BYTES).is_ok() {}
        loop {
            match sys::reap() {
                Reaped::Child(pid, status) if pid == self.parts.child => self.status = Some(status),
                Reaped::Child(..) => {}
                Reaped::NoneEnded => {
                    // What is left may be a host that was started in here, which is no part of the session.
                    if self.ending.is_asked() && tree::descendants(std::process::id(), &self.spared).is_empty() {
                        self.ending.tree_is_gone();
                    }
                    return;
                }
                Reaped::NoChildren => return self.ending.tree_is_gone(),
            }
        }
    }

    /// Sends signals to every descendant.
    pub(crate) fn signal_tree(&self, signals: &[i32]) {
        for pid in tree::descendants(std::process::id(), &self.spared) {
            signals.iter().for_each(|signal| sys::kill(pid, *signal));
        }
    }

    /// Ends a tree that stands still, farthest first: the end of a session's leader wakes those in the foreground, whose end must be decided
    /// by then.
    pub(crate) fn kill_stopped(&self) {
        for pid in tree::descendants(std::process::id(), &self.spared).into_iter().rev() {
            sys::kill(pid, libc::SIGKILL);
        }
    }

    /// Whether nothing more will be written that the session waits for.
    pub(crate) fn must_drain(&self) -> bool {
        self.ending.is_settled(self.status.is_some()) && !self.drained
    }

    /// The end: the header first, so that whoever is told finds it final.
    fn finish(mut self) {
        let header = self.parts.ring.header();
        let status = self.status.unwrap_or(libc::SIGKILL) as u32;
        header.status.store(status, Ordering::Relaxed);
        header.ended_ms.store(sys::epoch_ms(), Ordering::Relaxed);
        header.state.store(STATE_ENDED, Ordering::Release);
        for at in 0..self.connections.len() {
            self.wake(at);
        }
        self.connections.broadcast(FromKeeper::Exited { status, head: self.head });
        sys::unlink(&self.parts.socket_path);
        self.connections.iter_mut().for_each(|connection| connection.gone = true);
        while self.connections.sweep().is_some() {}
    }
}
