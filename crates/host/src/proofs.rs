//! Signatures over acts serve once.
//!
//! A nonce begins with the time it was made (milliseconds since the epoch, six bytes, big-endian); the rest is random. Nonces of
//! the last minutes are remembered, older ones refused, and so are those from before this host began: what it cannot
//! remember it does not take. So no signed act can be recorded twice, by whomever it is sent again.

use holdfast_types::{Nonce, TimeMs};
use std::collections::BTreeSet;

/// How far a nonce's time may be from ours: clocks of people's machines differ by seconds, requests take less.
const WINDOW_MS: TimeMs = 120_000;
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
    used: BTreeSet<Nonce>,
}

impl Proofs {
    /// None was used yet.
    #[must_use]
    pub fn new(began_ms: TimeMs) -> Proofs {
        Proofs { began_ms, used: BTreeSet::new() }
    }

    /// Uses a nonce up.
    pub fn take(&mut self, nonce: Nonce, now_ms: TimeMs) -> Result<(), Stale> {
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

    fn nonce(at_ms: TimeMs, rest: u8) -> Nonce {
        let mut bytes = [rest; 16];
        bytes[..6].copy_from_slice(&at_ms.to_be_bytes()[2..]);
        Nonce(bytes)
    }

    #[test]
    fn a_nonce_serves_once_and_only_just_after_it_was_made() {
        let mut proofs = Proofs::new(1_000_000);
        let now = 2_000_000;
        assert_eq!(proofs.take(nonce(now, 1), now), Ok(()));
        assert_eq!(proofs.take(nonce(now, 1), now + WINDOW_MS), Err(Stale::Used));
        assert_eq!(proofs.take(nonce(now, 2), now), Ok(()));
        assert_eq!(proofs.take(nonce(now, 1), now + WINDOW_MS + 1), Err(Stale::Time), "forgotten, and too old");
        assert_eq!(proofs.take(nonce(now + WINDOW_MS + 1, 3), now), Err(Stale::Time), "from the future");
        assert_eq!(Proofs::new(now).take(nonce(now - 1, 4), now), Err(Stale::Time), "perhaps used at the last host");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut proofs = Proofs::new(0);
        for n in 0..USED_MAX as u64 + 10 {
            let mut one = nonce(1000, 0);
            one.0[8..].copy_from_slice(&n.to_be_bytes());
            assert_eq!(proofs.take(one, 1000).is_ok(), n < USED_MAX as u64);
        }
        assert_eq!(proofs.take(nonce(1_000_000, 0), 1_000_000), Ok(()));
        assert_eq!(proofs.used.len(), 1);
    }
}
