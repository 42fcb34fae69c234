//! Ending sessions that nobody uses, where the user asked for that; and what each session takes up.
//!
//! Off unless it is configured. Two things make a session go: it was idle for as long as it may be, or the host has more sessions, or
//! their processes more memory, than it may have; then those that nobody has used for longest go first. Either way its users are warned, and it
//! goes some time later if it is still idle.
//!
//! **Idle** is strict ([`rest`]): an integrated shell at an empty prompt, alone in its session, nobody attached or waiting, no run, no
//! question, no approval, and nobody keeps it. Everything that is not known for certain counts as use. How long it has been so is told by
//! [a print](plan::Print) of the session: while the shell has not run, and nothing was typed or printed, nothing happened.
//!
//! It is counted by the clock that runs since the machine's start, also while that sleeps, and that nobody can set. It is kept on disk
//! ([`kept`]), so that a new host goes on counting; whatever is used makes that file go before it has an effect.
//!
//! One task does it all. It sleeps until the next session is due; where no session is concerned there is no timer. A session that works
//! is looked at again after a part of its time, at most every ten minutes.

mod act;
mod cost;
pub(crate) mod kept;
mod plan;
mod rest;
mod round;

pub use plan::Rules;
pub(crate) use plan::Watch;
pub(crate) use round::follow;

use holdfast_session::Origin;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::path::Path;
use tokio::sync::Notify;

/// The part of the host that all sessions tell when they are used.
#[derive(Debug)]
pub(crate) struct Reaper {
    pub rules: Rules,
    pub stirred: Notify,
    /// There is a session that is concerned though the rules concern none, since it has a time of its own.
    pub is_wanted: Cell<bool>,
}

impl Reaper {
    pub fn new(rules: Rules) -> Reaper {
        let is_wanted = Cell::new(rules.after_ms.is_some() || rules.has_limits());
        Reaper { rules, stirred: Notify::new(), is_wanted }
    }
}

/// What an earlier host left of a session that was found.
pub(crate) fn resume(origin: Origin, dir: &Path) -> Watch {
    let kept = match origin {
        Origin::New => None,
        Origin::Found => kept::KeptIdle::load(dir, crate::lives::boot_id()),
    };
    Watch::resume(kept, clock_ms())
}

/// Milliseconds since the machine's start, those in which it slept included. Nobody can set this clock.
pub(crate) fn clock_ms() -> u64 {
    let up = clock_gettime(ClockId::Boottime);
    up.tv_sec.unsigned_abs() * 1000 + up.tv_nsec.unsigned_abs() / 1_000_000
}

/// A moment of that clock, as people count.
pub(crate) fn time_of(clock: u64) -> holdfast_types::TimeMs {
    (crate::now_ms() + clock).saturating_sub(clock_ms())
}
