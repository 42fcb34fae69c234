//! What was done, what came of it, and what did not hold.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// More violations than this say nothing new.
const VIOLATIONS_SHOWN_MAX: usize = 40;

/// What came of something that must happen once or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was acknowledged: it happened once.
    Done,
    /// It was refused: it did not happen.
    Refused,
    /// Nobody said: it happened once or not at all.
    Unknown,
}

/// Something that leaves a trace in a session.
#[derive(Debug, Clone)]
pub struct Deed {
    pub session: String,
    /// Unlike every other.
    pub token: String,
    pub outcome: Outcome,
}

/// All of it, from every thread.
#[derive(Debug, Default)]
pub struct Log {
    violations: Mutex<Vec<String>>,
    counts: Mutex<BTreeMap<String, u64>>,
    notes: Mutex<Vec<String>>,
    typed: Mutex<Vec<Deed>>,
    run: Mutex<Vec<Deed>>,
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

    pub fn ran(&self, deed: Deed) {
        lock(&self.run).push(deed);
    }

    pub fn all_typed(&self) -> Vec<Deed> {
        lock(&self.typed).clone()
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
            (Outcome::Done, 1) | (Outcome::Refused, 0) | (Outcome::Unknown, 0 | 1) => None,
            (outcome, times) => {
                Some(format!("{} in {} was {outcome:?} and is there {times} times", deed.token, deed.session))
            }
        }
    };
    deeds.iter().filter_map(wrong).collect()
}

#[test]
fn what_was_acknowledged_is_there_once_and_what_was_refused_is_not() {
    let deed = |outcome| Deed { session: "s".into(), token: "t".into(), outcome };
    let all = [deed(Outcome::Done), deed(Outcome::Refused), deed(Outcome::Unknown)];
    let wrong = |times| judge(&all, |_| times).len();
    assert_eq!((wrong(0), wrong(1), wrong(2)), (1, 1, 3));
}
