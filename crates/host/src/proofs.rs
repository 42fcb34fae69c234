//! Signatures over acts serve once.
//!
//! A nonce begins with the time it was made (milliseconds since the epoch, six bytes, big-endian); the rest is random. Nonces of
//! the last minutes are remembered, older ones refused, and so are those from before this host began: what it cannot
//! remember it does not take. So no signed act can be recorded twice, by whomever it is sent again. The limit: a clock that is set back
//! comes to the same minutes a second time, and what was signed in them the first time could be sent again then.

use holdfast_session::Now;
use holdfast_types::{Nonce, TimeMs};
use std::collections::BTreeSet;

/// How far a nonce's time may be from ours: clocks of people's machines differ by seconds, requests take less.
const WINDOW_MS: TimeMs = 120_000;
/// By how much the time of day lags behind the clock that never jumps where it was not set back, but slowed by a time service.
const SLOWED_MS: u64 = 1_000;
/// Nonces remembered: hundreds of signed acts a second for as long as the window is wide.
const USED_MAX: usize = 100_000;

/// Why a nonce is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    /// It was used.
    #[error("it was signed once and sent twice")]
    Used,
    /// Its time is too far from ours, or before this host began.
    #[error("the signature is too old or too new: sign again, and check that the clocks agree")]
    Time,
    /// Too many were used in the last minutes.
    #[error("too many signed acts in the last minutes")]
    Crowded,
}

/// The nonces that were used lately.
#[derive(Debug)]
pub struct Proofs {
    began_ms: TimeMs,
    /// When a nonce was last asked about.
    last: Now,
    used: BTreeSet<Nonce>,
}

impl Proofs {
    /// None was used yet.
    #[must_use]
    pub fn new(now: Now) -> Proofs {
        Proofs { began_ms: now.time_ms, last: now, used: BTreeSet::new() }
    }

    /// Uses a nonce up.
    pub fn take(&mut self, nonce: Nonce, now: Now) -> Result<(), Stale> {
        self.follow(now);
        let now_ms = now.time_ms;
        let made_ms = made_ms(nonce);
        if made_ms < self.began_ms || made_ms.abs_diff(now_ms) > WINDOW_MS {
            return Err(Stale::Time);
        }
        // Ordered by their times: the old ones are at the front.
        while self.used.first().is_some_and(|oldest| made_ms_is_old(*oldest, now_ms)) {
            self.used.pop_first();
        }
        if self.used.len() >= USED_MAX {
            return Err(Stale::Crowded);
        }
        if self.used.insert(nonce) { Ok(()) } else { Err(Stale::Used) }
    }

    /// Where the time of day was set back, this host began at a time that is yet to come: it begins anew, at the earliest moment at
    /// which that can have been. Otherwise nobody could act until then.
    fn follow(&mut self, now: Now) {
        let since = now.clock_ms.saturating_sub(self.last.clock_ms);
        if now.time_ms.saturating_add(SLOWED_MS) < self.last.time_ms.saturating_add(since) {
            self.began_ms = self.began_ms.min(now.time_ms.saturating_sub(since.min(WINDOW_MS)));
        }
        self.last = now;
    }
}

fn made_ms(nonce: Nonce) -> TimeMs {
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(&nonce.0[..6]);
    TimeMs::from_be_bytes(bytes)
}

fn made_ms_is_old(nonce: Nonce, now_ms: TimeMs) -> bool {
    made_ms(nonce).saturating_add(WINDOW_MS) < now_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both clocks as one.
    fn at(ms: u64) -> Now {
        Now { time_ms: ms, clock_ms: ms }
    }

    fn nonce(at_ms: TimeMs, rest: u8) -> Nonce {
        let mut bytes = [rest; 16];
        bytes[..6].copy_from_slice(&at_ms.to_be_bytes()[2..]);
        Nonce(bytes)
    }

    #[test]
    fn a_nonce_serves_once_and_only_just_after_it_was_made() {
        let mut proofs = Proofs::new(at(1_000_000));
        let now = 2_000_000;
        assert_eq!(proofs.take(nonce(now, 1), at(now)), Ok(()));
        assert_eq!(proofs.take(nonce(now, 1), at(now + WINDOW_MS)), Err(Stale::Used));
        assert_eq!(proofs.take(nonce(now, 2), at(now)), Ok(()));
        assert_eq!(proofs.take(nonce(now, 1), at(now + WINDOW_MS + 1)), Err(Stale::Time), "forgotten, and too old");
        assert_eq!(proofs.take(nonce(now + WINDOW_MS + 1, 3), at(now)), Err(Stale::Time), "from the future");
        let anew = Proofs::new(at(now)).take(nonce(now - 1, 4), at(now));
        assert_eq!(anew, Err(Stale::Time), "perhaps used at the last host");
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out_and_what_was_used_stays_used() {
        let hour = 3_600_000;
        let (began, clock) = (10 * hour, 5_000);
        let mut proofs = Proofs::new(Now { time_ms: began, clock_ms: clock });
        let later = |ms: u64| Now { time_ms: began + ms, clock_ms: clock + ms };
        assert_eq!(proofs.take(nonce(began + 10, 1), later(20)), Ok(()));
        // Set back by an hour, ten seconds ago at most: what was signed since is taken, what is older is not.
        let back = |ms: u64| Now { time_ms: began + ms - hour, clock_ms: clock + ms };
        let now = back(10_020);
        assert_eq!(proofs.take(nonce(now.time_ms - 5, 2), now), Ok(()));
        assert_eq!(proofs.take(nonce(now.time_ms - 5, 2), now), Err(Stale::Used));
        assert_eq!(proofs.take(nonce(now.time_ms - 10_001, 3), back(10_030)), Err(Stale::Time), "before it was set");
        assert_eq!(proofs.take(nonce(began + 10, 1), back(10_040)), Err(Stale::Time), "signed before it was set");
        // And on again: what was used then is still known.
        assert_eq!(proofs.take(nonce(began + 10, 1), later(20_000)), Err(Stale::Used));
        // A clock that a time service slows down was not set back.
        let mut slowed = Proofs::new(at(began));
        let now = Now { time_ms: began + 9_500, clock_ms: began + 10_000 };
        assert_eq!(slowed.take(nonce(began - 1, 4), now), Err(Stale::Time));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut proofs = Proofs::new(at(0));
        for n in 0..USED_MAX as u64 + 10 {
            let mut one = nonce(1000, 0);
            one.0[8..].copy_from_slice(&n.to_be_bytes());
            assert_eq!(proofs.take(one, at(1000)).is_ok(), n < USED_MAX as u64);
        }
        assert_eq!(proofs.take(nonce(1_000_000, 0), at(1_000_000)), Ok(()));
        assert_eq!(proofs.used.len(), 1);
    }
}
