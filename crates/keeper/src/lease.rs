//! Until when the session may run here, as the host said it last.
//!
//! The moment is absolute, on a clock that goes on while the machine sleeps: a frame that waited in a queue means what it meant when it was
//! sent. A deadline never goes back under the same fence, and a frame with an older fence is nobody's word any more.
//!
//! Pure: the caller passes the time.

use holdfast_abi::protocol::{HARD_FENCE_MS, LEASE_HARD, LEASE_STILL};
use holdfast_abi::start::StartLease;

/// What a new word of the host comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The fence is older than the newest.
    Stale,
    /// Nothing but the deadline.
    Kept,
    /// The tree must stop now.
    Stop,
    /// The tree may go on.
    GoOn,
}

/// A session's lease.
#[derive(Debug, Default)]
pub struct Lease {
    fence: u64,
    until_ms: u64,
    flags: u8,
    cgroup: Vec<u8>,
    is_leased: bool,
    is_fenced: bool,
}

impl Lease {
    /// As the start block says it.
    #[must_use]
    pub fn of(start: Option<StartLease>) -> Lease {
        start.map_or_else(Lease::default, |StartLease { fence, until_ms, flags, cgroup }| Lease {
            fence,
            until_ms,
            flags,
            cgroup,
            is_leased: true,
            is_fenced: false,
        })
    }

    /// The host says until when.
    pub fn hear(&mut self, fence: u64, until_ms: u64, flags: u8, cgroup: &[u8], now_ms: u64) -> Word {
        if self.is_leased && fence < self.fence {
            return Word::Stale;
        }
        let was_still = self.is_fenced || (self.is_leased && self.flags & LEASE_STILL != 0);
        let is_later = fence > self.fence || !self.is_leased;
        self.until_ms = if is_later || until_ms == 0 { until_ms } else { self.until_ms.max(until_ms) };
        (self.fence, self.flags, self.is_leased) = (fence, flags, true);
        if self.cgroup != cgroup {
            self.cgroup = cgroup.to_vec();
        }
        if now_ms >= self.until_ms {
            return if self.is_fenced { Word::Kept } else { Word::Stop };
        }
        self.is_fenced = false;
        if was_still && flags & LEASE_STILL == 0 { Word::GoOn } else { Word::Kept }
    }

    /// Whether the tree must be stopped now: once.
    #[must_use]
    pub fn is_due(&self, now_ms: impl FnOnce() -> u64) -> bool {
        self.is_leased && !self.is_fenced && now_ms() >= self.until_ms
    }

    /// The tree was stopped.
    pub fn fenced(&mut self) {
        self.is_fenced = true;
    }

    /// Whether nothing may be typed.
    #[must_use]
    pub fn is_over(&self, now_ms: impl FnOnce() -> u64) -> bool {
        self.is_leased && (self.is_fenced || now_ms() >= self.until_ms)
    }

    /// Whether the tree was stopped for it.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.is_fenced
    }

    /// Until when; none: it is not leased.
    #[must_use]
    pub fn until_ms(&self) -> Option<u64> {
        self.is_leased.then_some(self.until_ms)
    }

    /// When the kernel is to kill the keeper.
    #[must_use]
    pub fn hard_ms(&self) -> Option<u64> {
        (self.is_leased && self.flags & LEASE_HARD != 0).then(|| self.until_ms.saturating_add(HARD_FENCE_MS))
    }

    /// The directory of the cgroup that is frozen; empty: none.
    #[must_use]
    pub fn cgroup(&self) -> &[u8] {
        &self.cgroup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leased(until_ms: u64) -> Lease {
        Lease::of(Some(StartLease { fence: 5, until_ms, flags: 0, cgroup: vec![] }))
    }

    #[test]
    fn a_session_without_a_lease_is_never_due() {
        let lease = Lease::default();
        assert!(!lease.is_due(|| u64::MAX) && !lease.is_over(|| u64::MAX) && lease.hard_ms().is_none());
    }

    #[test]
    fn the_deadline_only_grows_and_an_old_fence_says_nothing() {
        let mut lease = leased(100);
        assert_eq!(lease.hear(5, 200, 0, b"", 50), Word::Kept);
        assert_eq!(lease.hear(5, 150, 0, b"", 50), Word::Kept, "one that was overtaken");
        assert!(!lease.is_due(|| 199) && lease.is_due(|| 200));
        assert_eq!(lease.hear(4, 900, 0, b"", 50), Word::Stale);
        assert!(lease.is_due(|| 200));
        assert_eq!(lease.hear(6, 180, 0, b"", 50), Word::Kept, "another lease has its own end");
        assert!(lease.is_due(|| 180));
    }

    #[test]
    fn what_was_stopped_goes_on_with_a_later_lease_unless_it_is_to_stand_still() {
        let mut lease = leased(100);
        assert!(lease.is_over(|| 100));
        lease.fenced();
        assert!(!lease.is_due(|| 101), "once");
        assert_eq!(lease.hear(5, 110, 0, b"", 120), Word::Kept, "late already");
        assert_eq!(lease.hear(5, 200, LEASE_STILL, b"", 120), Word::Kept);
        assert!(!lease.is_over(|| 120));
        assert_eq!(lease.hear(5, 200, 0, b"", 130), Word::GoOn);
        assert_eq!(lease.hear(5, 200, 0, b"", 130), Word::Kept);
    }

    #[test]
    fn zero_ends_it_at_once() {
        let mut lease = leased(100);
        assert_eq!(lease.hear(5, 0, LEASE_HARD, b"", 50), Word::Stop);
        assert!(lease.is_over(|| 50));
        assert_eq!(lease.hear(5, 200, LEASE_HARD, b"", 50), Word::Kept, "not stopped yet, and now it need not");
        assert_eq!(lease.hard_ms(), Some(200 + HARD_FENCE_MS));
    }
}
