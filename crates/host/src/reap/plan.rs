//! When a session is warned and when it ends, as decisions over what was seen. Knows no clock and no session.

use super::kept::KeptIdle;
use holdfast_graph::ProcessId;
use holdfast_types::Offset;
use holdfast_wire::reaping::{ReapAfter, ReapWhy};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};

/// From a use to the look: a command that was typed has started by then what it starts.
const SETTLE_MS: u64 = 2_000;
/// A session that works is looked at again after this part of the time that it may be idle, so that it is found idle not much later than
/// it is.
const LOOKS_PER_TIME: u64 = 8;
/// And not more often, nor less often, than this.
const PAUSE_MS_MIN: u64 = 250;
const PAUSE_MS_MAX: u64 = 10 * 60 * 1000;
/// One that goes on working is looked at less and less often, down to this: a thousand of them with the shortest time are 200 looks a
/// second, a few parts in a hundred of a processor.
const PAUSE_MS_WORKS: u64 = 5_000;

/// What the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How long a session may be idle, where nothing was said of it.
    pub after_ms: Option<u64>,
    /// From the warning to the end, at the least.
    pub warn_ms: u64,
    /// Sessions that may live before those that are idle go.
    pub sessions_max: Option<u32>,
    /// Memory they may take before those that are idle go.
    pub memory_max: Option<u64>,
}

impl Default for Rules {
    /// Nothing is reaped.
    fn default() -> Rules {
        Rules { after_ms: None, warn_ms: 10 * 60 * 1000, sessions_max: None, memory_max: None }
    }
}

impl Rules {
    /// Whether something but a session's own time makes it go.
    pub fn has_limits(&self) -> bool {
        self.sessions_max.is_some() || self.memory_max.is_some()
    }

    /// How long a session may be idle, by what was said of it. None: it is not reaped for that.
    pub fn after(&self, said: Option<ReapAfter>) -> Option<u64> {
        match said {
            Some(ReapAfter::Never) => None,
            Some(ReapAfter::Idle(ms)) => Some(ms),
            None => self.after_ms,
        }
    }

    /// Whether a session of which this was said is ever reaped.
    pub fn concern(&self, said: Option<ReapAfter>) -> bool {
        said != Some(ReapAfter::Never) && (self.after(said).is_some() || self.has_limits())
    }

    /// From a use to the first look.
    pub fn settle_ms(&self, said: Option<ReapAfter>) -> u64 {
        SETTLE_MS.min(self.pause_ms(said))
    }

    /// Until a session is looked at again that was found at work so many times in a row.
    pub fn works_ms(&self, said: Option<ReapAfter>, times: u32) -> u64 {
        let first = self.pause_ms(said);
        first.saturating_mul(1 << times.min(16)).min(first.max(PAUSE_MS_WORKS))
    }

    /// Until a session that works is looked at again.
    pub fn pause_ms(&self, said: Option<ReapAfter>) -> u64 {
        let time = self.after(said).unwrap_or(self.warn_ms);
        (time / LOOKS_PER_TIME).clamp(PAUSE_MS_MIN, PAUSE_MS_MAX)
    }
}

/// What tells whether a session has done anything since: while it is the same, it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Print {
    pub keeper: ProcessId,
    pub shell: ProcessId,
    /// How often the shell has run.
    pub switches: u64,
    /// Where output and input stand.
    pub head: Offset,
    pub log: u64,
}

/// A session that was seen idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// Since when.
    pub since: u64,
    pub print: Print,
    /// It was warned: when it ends, and why.
    #[serde(default)]
    pub warned: Option<(u64, ReapWhy)>,
}

/// What is to be done about a session that was just seen idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It is looked at again then, or when something happens.
    Rest(Option<u64>),
    /// It is warned that it ends then.
    Warn(u64),
    /// It ends now.
    End(ReapWhy),
}

/// A session as the reaper has it.
#[derive(Debug, Default)]
pub struct Watch {
    pub idle: RefCell<Option<Idle>>,
    /// When it is looked at again.
    pub look_at: Cell<Option<u64>>,
    /// How often in a row it was found at work.
    pub works: Cell<u32>,
    /// How often it was used: a look that is under way meanwhile does not count.
    pub uses: Cell<u64>,
    /// The policy forbids to end it: not tried again until it is used.
    pub is_barred: Cell<bool>,
    /// When somebody was attached last, and when somebody looked last.
    pub attached_ms: Cell<Option<u64>>,
    pub looked_ms: Cell<Option<u64>>,
}

impl Watch {
    /// As an earlier host left it.
    pub fn resume(kept: Option<KeptIdle>, clock: u64) -> Watch {
        let idle = kept.map(|kept| Idle {
            // An end that is due already was not awaited by anybody who could still be warned: it is warned of anew.
            warned: kept.idle.warned.filter(|(ends, _)| *ends > clock),
            ..kept.idle
        });
        Watch { idle: RefCell::new(idle), ..Watch::default() }
    }

    /// It was seen idle.
    pub fn seen_idle(&self, print: Print, clock: u64) -> Idle {
        let mut idle = self.idle.borrow_mut();
        let same = idle.filter(|idle| idle.print == print && idle.since <= clock);
        let now = same.unwrap_or(Idle { since: clock, print, warned: None });
        *idle = Some(now);
        now
    }

    /// It is looked at at this time, unless that is due earlier. True where that is news.
    pub fn look_by(&self, at: u64) -> bool {
        let is_earlier = self.look_at.get().is_none_or(|look_at| at < look_at);
        if is_earlier {
            self.look_at.set(Some(at));
        }
        is_earlier
    }
}

/// What is to be done about a session that is idle now.
pub fn next(idle: &Idle, after_ms: Option<u64>, warn_ms: u64, clock: u64) -> Next {
    match (idle.warned, after_ms) {
        (Some((ends, why)), _) if ends <= clock => Next::End(why),
        (Some((ends, _)), _) => Next::Rest(Some(ends)),
        (None, None) => Next::Rest(None),
        (None, Some(after)) => {
            let ends = idle.since.saturating_add(after);
            let warns = ends.saturating_sub(warn_ms);
            if warns <= clock { Next::Warn(ends.max(clock.saturating_add(warn_ms))) } else { Next::Rest(Some(warns)) }
        }
    }
}

/// Which sessions go so that no more than `max` is left of something: those that are idle for longest, until it is enough. `load` is what there
/// is without those that go already.
pub fn too_many<Id: Copy>(mut load: u64, max: u64, mut candidates: Vec<(u64, u64, Id)>) -> Vec<Id> {
    candidates.sort_by_key(|(since, _, _)| *since);
    let mut chosen = Vec::new();
    for (_, weight, id) in candidates {
        if load <= max {
            break;
        }
        load = load.saturating_sub(weight);
        chosen.push(id);
    }
    chosen
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn print(head: Offset) -> Print {
        let id = |pid| ProcessId { pid, start: 7 };
        Print { keeper: id(1), shell: id(2), switches: 5, head, log: 3 }
    }

    fn idle(since: u64, warned: Option<(u64, ReapWhy)>) -> Idle {
        Idle { since, print: print(9), warned }
    }

    #[test]
    fn a_session_is_warned_before_its_time_and_ends_at_it() {
        let at = |clock, warned| next(&idle(1_000, warned), Some(600), 100, clock);
        assert_eq!(at(1_100, None), Next::Rest(Some(1_500)));
        assert_eq!(at(1_500, None), Next::Warn(1_600));
        assert_eq!(at(1_550, Some((1_600, ReapWhy::Idle))), Next::Rest(Some(1_600)));
        assert_eq!(at(1_600, Some((1_600, ReapWhy::Idle))), Next::End(ReapWhy::Idle));
    }

    #[test]
    fn a_warning_that_comes_late_is_as_long_as_any() {
        assert_eq!(next(&idle(1_000, None), Some(600), 100, 9_000), Next::Warn(9_100));
        assert_eq!(next(&idle(1_000, None), Some(50), 100, 1_010), Next::Warn(1_110), "longer than the time itself");
        assert_eq!(next(&idle(1_000, None), None, 100, 9_000), Next::Rest(None), "only limits concern it");
    }

    #[test]
    fn idle_goes_on_while_nothing_happened_and_begins_anew_otherwise() {
        let watch = Watch::default();
        assert_eq!(watch.seen_idle(print(9), 100).since, 100);
        assert_eq!(watch.seen_idle(print(9), 500).since, 100);
        assert_eq!(watch.seen_idle(print(10), 600).since, 600);
        assert_eq!(watch.seen_idle(print(10), 50).since, 50, "of a clock that went back nothing is known");
    }

    #[test]
    fn what_an_earlier_host_left_is_counted_on_and_an_end_that_is_over_is_warned_of_anew() {
        let kept = |warned| Some(KeptIdle { boot: "b".into(), idle: idle(100, warned) });
        let resumed = |warned| Watch::resume(kept(warned), 1_000).idle.into_inner().unwrap();
        assert_eq!(resumed(Some((900, ReapWhy::Idle))), idle(100, None));
        assert_eq!(resumed(Some((1_100, ReapWhy::Memory))), idle(100, Some((1_100, ReapWhy::Memory))));
    }

    #[test]
    fn those_that_are_idle_for_longest_go_until_it_is_enough() {
        let all = || vec![(30, 5, 'c'), (10, 5, 'a'), (20, 5, 'b')];
        assert_eq!(too_many(20, 20, all()), [' '; 0]);
        assert_eq!(too_many(21, 20, all()), ['a']);
        assert_eq!(too_many(26, 20, all()), ['a', 'b']);
        assert_eq!(too_many(99, 20, all()), ['a', 'b', 'c'], "what is in use stays, however much that is");
    }

    #[test]
    fn a_session_that_works_is_looked_at_less_and_less_often() {
        let rules = Rules { after_ms: Some(2_000), ..Rules::default() };
        let pauses: Vec<u64> = (0..7).map(|times| rules.works_ms(None, times)).collect();
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
        let long = Rules { after_ms: Some(12 * 60 * 60 * 1000), ..Rules::default() };
        assert_eq!([0, 3, 40].map(|times| long.works_ms(None, times)), [PAUSE_MS_MAX; 3]);
    }

    #[test]
    fn what_was_said_of_a_session_counts_before_the_rules_and_never_is_never() {
        let rules = Rules { after_ms: Some(10), sessions_max: Some(1), ..Rules::default() };
        assert_eq!((rules.after(None), rules.after(Some(ReapAfter::Idle(7)))), (Some(10), Some(7)));
        assert!(rules.concern(None) && !rules.concern(Some(ReapAfter::Never)));
        let none = Rules::default();
        assert!(!none.concern(None) && none.concern(Some(ReapAfter::Idle(7))));
    }
}
