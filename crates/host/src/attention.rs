//! Events of all sessions, numbered, for watchers; and who watches.
//!
//! The log is bounded and in memory alone: a reader that was too slow learns how much it missed. Numbers begin at the
//! host's start time, so those of a later host are larger.
//!
//! Whether sessions are looked at by themselves follows from here: while somebody watches, or a rule of notification wants
//! to know. Otherwise the host does not look, and it costs nothing.

use crate::notify::Rule;
use holdfast_types::{SessionId, SessionName, TimeMs};
use holdfast_wire::attention::{Event, WatchAnswer, What};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Events kept: minutes of a busy host, half a megabyte.
const EVENTS_MAX: usize = 4096;
/// Events in one answer.
const ANSWER_EVENTS_MAX: usize = 512;
/// Numbers per millisecond of start time: more than events ever come, and all below 2^53, which JSON readers can count to.
const NUMBERS_PER_MS: u64 = 1024;
/// A watcher asks again at once. After this long without a request, there is none.
pub(crate) const LEASE: Duration = Duration::from_secs(40);

/// The host's log of events.
#[derive(Debug)]
pub struct Attention {
    events: RefCell<VecDeque<Event>>,
    /// The number of this host's first event, and of the next.
    first: u64,
    next: Cell<u64>,
    /// Somebody watches every session until then.
    watched_until: Cell<Option<Instant>>,
    /// There is a new event.
    pub(crate) grown: Notify,
    /// Somebody begins to watch, or goes on.
    pub(crate) watched: Notify,
    rules: Vec<Rule>,
}

impl Attention {
    /// An empty log of a host that starts now.
    pub fn new(now_ms: TimeMs, rules: Vec<Rule>) -> Attention {
        let first = now_ms * NUMBERS_PER_MS;
        Attention {
            events: RefCell::default(),
            first,
            next: Cell::new(first),
            watched_until: Cell::new(None),
            grown: Notify::new(),
            watched: Notify::new(),
            rules,
        }
    }

    /// Rules of notification.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether a session of this name is to be looked at whatever it is asked.
    pub fn wants(&self, id: SessionId, name: &SessionName) -> bool {
        self.is_watched() || self.rules.iter().any(|rule| rule.wants_states(id, name.as_str()))
    }

    /// Whether somebody watches every session.
    pub fn is_watched(&self) -> bool {
        self.watched_until.get().is_some_and(|until| Instant::now() < until)
    }

    /// Somebody watches every session.
    pub fn watch_all(&self) {
        self.watched_until.set(Some(Instant::now() + LEASE));
    }

    /// Something happened.
    pub fn tell(&self, session: SessionId, name: SessionName, what: What) {
        let seq = self.next.get();
        self.next.set(seq + 1);
        let mut events = self.events.borrow_mut();
        if events.len() == EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(Event { seq, at_ms: crate::now_ms(), session, name, what });
        drop(events);
        self.grown.notify_waiters();
    }

    /// The number of the newest event.
    pub fn newest(&self) -> u64 {
        self.next.get() - 1
    }

    /// Events behind a number, of those sessions that are wanted.
    pub fn behind(&self, after: u64, wanted: impl Fn(&Event) -> bool) -> WatchAnswer {
        let events = self.events.borrow();
        let newest = self.newest();
        // A number this host has not given is an earlier one's, whose clock was ahead: before all of this one as well.
        let after = if after > newest { self.first - 1 } else { after };
        let oldest = events.front().map_or(newest + 1, |event| event.seq);
        // The last event of an earlier host is unknown: what this one has dropped is the least.
        let lost = oldest.saturating_sub(after.max(self.first - 1) + 1);
        let mut answer = WatchAnswer { events: Vec::new(), to: newest, lost };
        for event in events.iter().filter(|event| event.seq > after && wanted(event)) {
            answer.events.push(event.clone());
            if answer.events.len() == ANSWER_EVENTS_MAX {
                answer.to = event.seq;
                break;
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::Exit;

    fn log(count: usize) -> Attention {
        let log = Attention::new(1_000, Vec::new());
        for n in 0..count {
            let name = if n % 2 == 0 { "even" } else { "odd" };
            log.tell(SessionId::from_random_bits(1), name.parse().unwrap(), What::Exit { exit: Exit::Lost });
        }
        log
    }

    #[test]
    fn events_come_once_and_in_order_and_only_those_that_are_wanted() {
        let log = log(5);
        let first = log.behind(log.first - 1, |event| event.name.as_str() == "odd");
        assert_eq!(first.events.iter().map(|e| e.seq - log.first).collect::<Vec<_>>(), [1, 3]);
        assert_eq!((first.to, first.lost), (log.newest(), 0));
        assert!(log.behind(first.to, |_| true).events.is_empty());
    }

    #[test]
    fn a_reader_that_was_too_slow_is_told_how_much_it_missed() {
        let log = log(EVENTS_MAX + 10);
        let answer = log.behind(log.first + 3, |_| true);
        assert_eq!((answer.lost, answer.events.len()), (6, ANSWER_EVENTS_MAX));
        let next = log.behind(answer.to, |_| true);
        assert_eq!((next.lost, next.events[0].seq), (0, answer.to + 1));
    }

    #[test]
    fn a_number_of_an_earlier_host_is_before_all_of_this_one() {
        let log = log(3);
        let answer = log.behind(Attention::new(900, Vec::new()).newest() + 7, |_| true);
        assert_eq!((answer.events.len(), answer.lost), (3, 0));
    }

    #[test]
    fn a_number_of_a_host_whose_clock_was_ahead_is_before_all_of_this_one_too() {
        let log = log(3);
        for ahead in [Attention::new(900_000, Vec::new()).newest(), u64::MAX] {
            let answer = log.behind(ahead, |_| true);
            assert_eq!((answer.events.len(), answer.to), (3, log.newest()), "{ahead}");
        }
    }
}
