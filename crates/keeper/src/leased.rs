//! What the keeper does about its lease: its alarms, the stop at the deadline, and what the host is told.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use holdfast_abi::protocol::{FromKeeper, refused};

use crate::keeper::Keeper;
use crate::lease::{Lease, Word};
use crate::still;
use crate::sys::{self, Doom};

/// What wakes the keeper when its lease is over, and what kills it if it does not wake. None, until there is a lease.
#[derive(Debug, Default)]
pub struct Alarms {
    pub(crate) alarm: Option<OwnedFd>,
    doom: Option<Doom>,
}

impl Alarms {
    /// Sets both by a lease.
    pub fn set(&mut self, lease: &Lease) -> io::Result<()> {
        let Some(until_ms) = lease.until_ms() else { return Ok(()) };
        if lease.is_fenced() {
            // A word that came too late: nobody is killed for what stands still.
            return Ok(());
        }
        if self.alarm.is_none() {
            self.alarm = Some(sys::alarm()?);
        }
        if let Some(alarm) = &self.alarm {
            sys::set_alarm(alarm.as_fd(), until_ms.max(1))?;
        }
        match lease.hard_ms() {
            Some(at_ms) => {
                if self.doom.is_none() {
                    self.doom = Some(Doom::new()?);
                }
                self.doom.as_ref().map_or(Ok(()), |doom| doom.set(at_ms))
            }
            None => self.spare(),
        }
    }

    /// The tree stands still: nobody needs to be killed.
    fn spare(&self) -> io::Result<()> {
        self.doom.as_ref().map_or(Ok(()), |doom| doom.set(0))
    }
}

impl Keeper {
    /// Whether nothing may be typed.
    pub(crate) fn is_over(&self) -> bool {
        self.parts.lease.is_over(sys::boottime_ms)
    }

    /// The lease is over: the tree stops.
    pub(crate) fn fence(&mut self) {
        if !self.parts.lease.is_due(sys::boottime_ms) {
            return;
        }
        self.left = still::stop(self.parts.lease.cgroup(), &self.spared, &mut self.stopped);
        self.parts.lease.fenced();
        let until_ms = self.parts.lease.until_ms().unwrap_or(0);
        self.late_ms = u32::try_from(sys::boottime_ms().saturating_sub(until_ms.max(1))).unwrap_or(u32::MAX);
        if until_ms == 0 {
            self.late_ms = 0;
        }
        if self.left == 0 {
            let _ = self.parts.alarms.spare();
        }
        self.say_fenced();
    }

    /// Tells the host how it stands.
    pub(crate) fn say_fenced(&mut self) {
        let fenced = u8::from(self.parts.lease.is_fenced());
        let until_ms = self.parts.lease.until_ms().unwrap_or(0);
        let (late_ms, left, head) = (self.late_ms, self.left, self.head);
        self.connections.send_to_host(FromKeeper::Fenced { fenced, until_ms, late_ms, left, head });
    }

    /// The host says until when.
    pub(crate) fn hear_lease(&mut self, at: usize, fence: u64, until_ms: u64, flags: u8, cgroup: &[u8]) {
        let was_fenced = self.parts.lease.is_fenced();
        let word = self.parts.lease.hear(fence, until_ms, flags, cgroup, sys::boottime_ms());
        if word == Word::Stale {
            return self.refuse(at, refused::STALE, 0, 0);
        }
        if self.parts.alarms.set(&self.parts.lease).is_err() && !self.parts.lease.is_fenced() {
            // Without an alarm nobody would stop it in time.
            self.parts.lease.hear(fence, 0, flags, cgroup, 0);
        }
        match word {
            Word::GoOn => {
                still::go_on(self.parts.lease.cgroup(), &self.spared, &mut self.stopped);
                (self.late_ms, self.left) = (0, 0);
            }
            Word::Stale | Word::Kept | Word::Stop => {}
        }
        if word == Word::GoOn || was_fenced != self.parts.lease.is_fenced() {
            self.say_fenced();
        }
        // Also where it became due while the tree was let go on.
        self.fence();
    }
}
