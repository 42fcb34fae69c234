//! What was done, what came of it, and what did not hold.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// More violations than this say nothing new.
const VIOLATIONS_SHOWN_MAX: usize = 40;

/// A program on a busy machine has read what was typed by then.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// From before something was asked for until after its answer.
pub type During = RangeInclusive<Instant>;

/// What came of something that must happen once or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was acknowledged: it happened once.
    Done,
    /// It was refused: it did not happen.
    Refused,
    /// Nobody said: it happened once or not at all.
    Unknown,
    /// It was acknowledged, and a seizure came before its program had surely read it: it happened once or not at all.
    Seized,
}

/// Something that leaves a trace in a session.
#[derive(Debug, Clone)]
pub struct Deed {
    pub session: String,
    /// Unlike every other.
    pub token: String,
    pub outcome: Outcome,
    pub during: During,
}

/// A seizure, which drops what the session's program has not read yet.
#[derive(Debug, Clone)]
pub struct Seizure {
    pub session: String,
    pub during: During,
}

impl Seizure {
    /// Whether it may have come between the typing of a line and its reading.
    fn may_have_dropped(&self, deed: &Deed) -> bool {
        self.session == deed.session
            && self.during.end() >= deed.during.start()
            && *self.during.start() <= *deed.during.end() + READ_WITHIN
    }
}

/// All of it, from every thread.
#[derive(Debug, Default)]
pub struct Log {
    violations: Mutex<Vec<String>>,
    counts: Mutex<BTreeMap<String, u64>>,
    notes: Mutex<Vec<String>>,
    typed: Mutex<Vec<Deed>>,
    run: Mutex<Vec<Deed>>,
    seizures: Mutex<Vec<Seizure>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    /// Something does not hold.
    pub fn violation(&self, what: String) {
        println!("soak: VIOLATION: {what}");
        lock(&self.violations).push(what);
    }

    /// Something happened.
    pub fn count(&self, what: &str) {
        *lock(&self.counts).entry(what.to_owned()).or_default() += 1;
    }

    /// How often it did.
    pub fn counted(&self, what: &str) -> u64 {
        lock(&self.counts).get(what).copied().unwrap_or_default()
    }

    /// Something for the summary.
    pub fn note(&self, what: String) {
        lock(&self.notes).push(what);
    }

    pub fn typed(&self, deed: Deed) {
        lock(&self.typed).push(deed);
    }

    pub fn seized(&self, seizure: Seizure) {
        lock(&self.seizures).push(seizure);
    }

    pub fn ran(&self, deed: Deed) {
        lock(&self.run).push(deed);
    }

    /// All typed lines, with those marked that a seizure may have dropped: that they reached the terminal is all that was acknowledged.
    pub fn all_typed(&self) -> Vec<Deed> {
        let mut deeds = lock(&self.typed).clone();
        for seizure in lock(&self.seizures).iter() {
            for deed in deeds.iter_mut().filter(|deed| deed.outcome == Outcome::Done && seizure.may_have_dropped(deed))
            {
                deed.outcome = Outcome::Seized;
            }
        }
        deeds
    }

    pub fn all_run(&self) -> Vec<Deed> {
        lock(&self.run).clone()
    }

    /// Whether all held.
    pub fn clean(&self) -> bool {
        lock(&self.violations).is_empty()
    }

    /// In one line.
    pub fn progress(&self) -> String {
        let counts = lock(&self.counts);
        let told: Vec<String> = counts.iter().map(|(what, count)| format!("{what} {count}")).collect();
        format!("{}, violations {}", told.join(", "), lock(&self.violations).len())
    }

    /// For the end.
    pub fn summary(&self) -> String {
        let mut out = String::from("\nsoak: what happened\n");
        for (what, count) in lock(&self.counts).iter() {
            out += &format!("  {what:<34}{count:>9}\n");
        }
        for note in lock(&self.notes).iter() {
            out += &format!("  {note}\n");
        }
        let violations = lock(&self.violations);
        if violations.is_empty() {
            return out + "soak: everything held\n";
        }
        for violation in violations.iter().take(VIOLATIONS_SHOWN_MAX) {
            out += &format!("  VIOLATION: {violation}\n");
        }
        out + &format!("soak: {} things did not hold\n", violations.len())
    }
}

/// What is wrong with the traces of deeds: `found` says how often a token is there.
pub fn judge(deeds: &[Deed], found: impl Fn(&Deed) -> usize) -> Vec<String> {
    let wrong = |deed: &Deed| {
        let times = found(deed);
        match (deed.outcome, times) {
            (Outcome::Done, 1) | (Outcome::Refused, 0) | (Outcome::Unknown | Outcome::Seized, 0 | 1) => None,
            (outcome, times) => {
                Some(format!("{} in {} was {outcome:?} and is there {times} times", deed.token, deed.session))
            }
        }
    };
    deeds.iter().filter_map(wrong).collect()
}

#[cfg(test)]
fn deed(outcome: Outcome, during: During) -> Deed {
    Deed { session: "s".into(), token: "t".into(), outcome, during }
}

#[test]
fn a_seizure_may_have_dropped_only_what_was_typed_there_right_before_it() {
    let began = Instant::now();
    let at = |second: u64| began + Duration::from_secs(second);
    let outcome = |session: &str, seized: During| {
        let log = Log::default();
        log.typed(deed(Outcome::Done, at(20)..=at(21)));
        log.seized(Seizure { session: session.into(), during: seized });
        log.all_typed()[0].outcome
    };
    assert_eq!(outcome("s", at(22)..=at(23)), Outcome::Seized);
    assert_eq!(outcome("s", at(19)..=at(20)), Outcome::Seized, "it may have ended behind the typing");
    assert_eq!(outcome("s", at(18)..=at(19)), Outcome::Done);
    assert_eq!(outcome("s", at(32)..=at(33)), Outcome::Done);
    assert_eq!(outcome("other", at(22)..=at(23)), Outcome::Done);
}

#[test]
fn what_was_acknowledged_is_there_once_and_what_was_refused_is_not() {
    let now = Instant::now();
    let all = [Outcome::Done, Outcome::Refused, Outcome::Unknown].map(|outcome| deed(outcome, now..=now));
    let wrong = |times| judge(&all, |_| times).len();
    assert_eq!((wrong(0), wrong(1), wrong(2)), (1, 1, 3));
}
