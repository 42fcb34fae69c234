//! How far the output may run ahead of its readers.
//!
//! A holding reader keeps head within a window of what it acknowledged, as a real terminal does. One that makes no progress
//! at the window's edge for [`STALL_MS`] is lapped: not waited for until it has caught up. So a stuck reader delays the
//! child once and by a bounded time, and never stops it.
//!
//! Pure: positions and times are the caller's.

use holdfast_abi::protocol::{STALL_MS, WINDOW_BYTES};
use holdfast_abi::ring::GUARD_BYTES;

/// One reader's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follower {
    acked: u64,
    window: Option<u64>,
    at_edge_since_ms: Option<u64>,
    lapped: bool,
}

/// What the readers allow together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Head may not pass this offset.
    pub limit: u64,
    /// When to look again, in ms from now: somebody stands at its window's edge.
    pub again_ms: Option<u64>,
}

impl Hold {
    /// Nobody holds anything.
    pub const NONE: Hold = Hold { limit: u64::MAX, again_ms: None };

    /// The stricter of both.
    #[must_use]
    pub fn and(self, other: Hold) -> Hold {
        Hold { limit: self.limit.min(other.limit), again_ms: sooner(self.again_ms, other.again_ms) }
    }
}

/// The earlier of two times that may not be set.
#[must_use]
pub fn sooner(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

/// The window of a live reader.
#[must_use]
pub fn live_window(capacity: u64) -> u64 {
    WINDOW_BYTES.min(screen_window(capacity))
}

/// The window of the host's screen: all of the ring but what may be under way and one guard of air.
#[must_use]
pub fn screen_window(capacity: u64) -> u64 {
    capacity.saturating_sub(2 * GUARD_BYTES)
}

impl Follower {
    /// A reader that holds nothing back.
    #[must_use]
    pub fn watching(position: u64) -> Follower {
        Follower { acked: position, window: None, at_edge_since_ms: None, lapped: false }
    }

    /// A reader that holds head within `window`. Where its position is overwritten already (before `oldest`) there is nothing
    /// to hold for: it begins lapped.
    #[must_use]
    pub fn holding(position: u64, oldest: u64, window: u64) -> Follower {
        Follower { acked: position, window: Some(window), at_edge_since_ms: None, lapped: position < oldest }
    }

    /// Everything before this it has.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Whether it was stuck for too long and has not caught up.
    #[must_use]
    pub fn is_lapped(&self) -> bool {
        self.lapped
    }

    /// It has everything before `position`. Going back, or beyond head, is not possible.
    pub fn ack(&mut self, position: u64, head: u64) {
        let position = position.min(head);
        if position > self.acked {
            self.acked = position;
            self.at_edge_since_ms = None;
            self.lapped &= self.is_at_edge(head);
        }
    }

    /// Whether it alone keeps head from going on. A sleeper must be woken here whatever it asked for, else nobody
    /// would move until it is lapped.
    #[must_use]
    pub fn is_at_edge(&self, head: u64) -> bool {
        self.window.is_some_and(|window| head.saturating_sub(self.acked) >= window)
    }

    /// What it allows at this moment. Laps it when its time is up.
    pub fn hold(&mut self, head: u64, now_ms: u64) -> Hold {
        let Some(window) = self.window.filter(|_| !self.lapped) else { return Hold::NONE };
        let limit = self.acked.saturating_add(window);
        if !self.is_at_edge(head) {
            self.at_edge_since_ms = None;
            return Hold { limit, again_ms: None };
        }
        let since_ms = *self.at_edge_since_ms.get_or_insert(now_ms);
        let stalled_ms = now_ms.saturating_sub(since_ms);
        if stalled_ms >= STALL_MS {
            self.lapped = true;
            return Hold::NONE;
        }
        Hold { limit, again_ms: Some(STALL_MS - stalled_ms) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 1000;

    fn follower() -> Follower {
        Follower::holding(0, 0, WINDOW)
    }

    #[test]
    fn head_stays_within_the_window_of_what_was_acknowledged() {
        let mut reader = follower();
        assert_eq!(reader.hold(0, 0), Hold { limit: 1000, again_ms: None });
        reader.ack(600, 700);
        assert_eq!(reader.hold(700, 0), Hold { limit: 1600, again_ms: None });
        assert_eq!(Follower::watching(0).hold(1 << 40, 0), Hold::NONE);
    }

    #[test]
    fn a_reader_stuck_at_the_edge_is_lapped_once_and_until_it_caught_up() {
        let mut reader = follower();
        assert_eq!(reader.hold(1000, 10), Hold { limit: 1000, again_ms: Some(500) });
        assert_eq!(reader.hold(1000, 509), Hold { limit: 1000, again_ms: Some(1) });
        assert_eq!(reader.hold(1000, 510), Hold::NONE);
        reader.ack(1500, 9000);
        assert!(reader.is_lapped());
        assert_eq!(reader.hold(9000, 511), Hold::NONE);
        reader.ack(8001, 9000);
        assert_eq!(reader.hold(9000, 512), Hold { limit: 9001, again_ms: None });
    }

    #[test]
    fn any_progress_at_the_edge_starts_the_clock_again() {
        let mut reader = follower();
        reader.hold(1000, 0);
        reader.ack(1, 1000);
        reader.hold(1001, 499);
        assert_eq!(reader.hold(1001, 998), Hold { limit: 1001, again_ms: Some(1) });
    }

    #[test]
    fn the_time_away_from_the_edge_does_not_count() {
        let mut reader = follower();
        reader.hold(500, 0);
        assert_eq!(reader.hold(1000, 90_000), Hold { limit: 1000, again_ms: Some(500) });
    }

    #[test]
    fn a_reader_may_join_behind_its_window_but_not_behind_the_ring() {
        assert_eq!(Follower::holding(50, 40, WINDOW).hold(5000, 0).limit, 1050);
        assert_eq!(Follower::holding(39, 40, WINDOW).hold(5000, 0), Hold::NONE);
    }

    #[test]
    fn acks_never_go_back_nor_beyond_head() {
        let mut reader = follower();
        reader.ack(900, 700);
        assert_eq!(reader.acked(), 700);
        reader.ack(100, 700);
        assert_eq!(reader.acked(), 700);
    }

    #[test]
    fn the_strictest_reader_and_the_nearest_time_win() {
        let a = Hold { limit: 10, again_ms: None };
        let b = Hold { limit: 20, again_ms: Some(7) };
        assert_eq!(a.and(b), Hold { limit: 10, again_ms: Some(7) });
        assert_eq!(a.and(Hold::NONE), a);
    }
}
