//! Events of one session's processes, numbered and bounded.

use holdfast_types::TimeMs;
use holdfast_wire::graphs::{GraphEvent, GraphNews, HowWatched, WatchGraphAnswer};
use std::collections::VecDeque;

/// Events kept: what a build makes in seconds. Who asks more rarely looks at the graph again.
pub(super) const EVENTS_MAX: usize = 4096;

/// The events of one session while it is watched.
#[derive(Debug)]
pub(super) struct Feed {
    events: VecDeque<GraphEvent>,
    /// Everything after this number is in here.
    whole_after: u64,
    newest: u64,
    /// How they are come by; none: nothing was looked at yet.
    pub(super) how: Option<HowWatched>,
    /// Its keeper is gone.
    pub(super) is_ended: bool,
}

impl Feed {
    /// Begins with a number that is larger than all of an earlier watch or host: the time in microseconds.
    pub(super) fn new(now_ms: TimeMs) -> Feed {
        let begin = now_ms.saturating_mul(1000);
        Feed { events: VecDeque::new(), whole_after: begin, newest: begin, how: None, is_ended: false }
    }

    /// Something happened.
    pub(super) fn push(&mut self, at_ms: TimeMs, what: GraphNews) {
        self.newest += 1;
        self.events.push_back(GraphEvent { seq: self.newest, at_ms, what });
        if self.events.len() > EVENTS_MAX
            && let Some(oldest) = self.events.pop_front()
        {
            self.whole_after = oldest.seq;
        }
    }

    /// Some events were lost: the next reader learns it.
    pub(super) fn lose(&mut self) {
        self.newest += 1;
        self.events.clear();
        self.whole_after = self.newest;
    }

    /// What happened after a number; none: from now on. Nothing where there is nothing to say yet.
    pub(super) fn read(&self, after: Option<u64>) -> Option<WatchGraphAnswer> {
        let how = self.how?;
        let from = after.unwrap_or(self.newest);
        let lost = from < self.whole_after || from > self.newest;
        let events: Vec<GraphEvent> = self.events.iter().filter(|event| lost || event.seq > from).cloned().collect();
        let is_news = after.is_none() || lost || self.is_ended || !events.is_empty();
        is_news.then_some(WatchGraphAnswer { events, to: self.newest, lost, how, end: self.is_ended })
    }

    /// There is nothing to tell.
    pub(super) fn nothing(&self, after: Option<u64>) -> WatchGraphAnswer {
        let how = self.how.unwrap_or(HowWatched::Polling);
        WatchGraphAnswer { events: Vec::new(), to: after.unwrap_or(self.newest), lost: false, how, end: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed() -> Feed {
        Feed { how: Some(HowWatched::Connector), ..Feed::new(1) }
    }

    fn fork(pid: u32) -> GraphNews {
        GraphNews::Fork { pid, parent: 1 }
    }

    #[test]
    fn who_reads_on_gets_each_event_once() {
        let mut feed = feed();
        let from = feed.read(None).unwrap().to;
        assert_eq!(feed.read(Some(from)), None, "nothing happened yet");
        feed.push(5, fork(2));
        feed.push(6, fork(3));
        let answer = feed.read(Some(from)).unwrap();
        assert_eq!((answer.events.len(), answer.lost), (2, false));
        assert_eq!(feed.read(Some(answer.to)), None);
        assert_eq!(feed.read(Some(answer.to - 1)).unwrap().events[0].what, fork(3));
    }

    #[test]
    fn who_is_too_slow_is_told_and_memory_is_bounded() {
        let mut feed = feed();
        let from = feed.read(None).unwrap().to;
        (0..EVENTS_MAX as u32 + 10).for_each(|pid| feed.push(5, fork(pid)));
        let answer = feed.read(Some(from)).unwrap();
        assert_eq!((answer.lost, answer.events.len()), (true, EVENTS_MAX));
        feed.lose();
        assert!(feed.read(Some(answer.to)).unwrap().lost);
    }

    #[test]
    fn numbers_of_another_watch_are_told_as_a_loss() {
        let feed = feed();
        for after in [0, 999, 1_001, u64::MAX] {
            let answer = feed.read(Some(after)).unwrap();
            assert_eq!((answer.lost, answer.to), (true, 1_000), "{after}");
        }
        assert_eq!(feed.read(Some(1_000)), None);
    }
}
