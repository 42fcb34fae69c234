//! Is a concurrent history explained by some sequential one?
//!
//! Every call has the moment it was made and the moment its answer came. The checker looks for an order of all calls that
//! keeps those moments (a call that was answered before another was made comes first) and in which a sequential model gives
//! the same answers. Search as Wing and Gong did, with Lowe's memory of what was tried: the set of calls placed so far
//! together with the model's state.
//!
//! A call that may have happened or not (its connection broke) is placed or left out.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// One call and what is known of it.
#[derive(Debug, Clone)]
pub struct Call<O> {
    /// When it was made.
    pub made: u64,
    /// When its answer came, or its connection broke.
    pub answered: u64,
    /// It need not have happened.
    pub doubtful: bool,
    /// What was asked and answered.
    pub what: O,
}

/// A sequential thing to compare with.
pub trait Model {
    type State: Clone + Eq + Hash + Debug;
    type What: Debug;

    /// Every state in which the thing may be behind this call, if it may give that answer at all.
    fn step(&self, state: &Self::State, call: &Call<Self::What>) -> Vec<Self::State>;
}

/// Calls that the checker can keep apart while one is in flight: a refusal takes a fraction of a millisecond, and whoever
/// types behind somebody else waits some ten of them.
const WINDOW: usize = 128 * WORDS;
const WORDS: usize = 16;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Placed<S> {
    /// Everything before this one is placed.
    base: usize,
    /// And of those from `base` on, these.
    beyond: [u128; WORDS],
    state: S,
}

impl<S> Placed<S> {
    fn has(&self, at: usize) -> bool {
        at < self.base || (at - self.base < WINDOW && self.is_beyond(at - self.base))
    }

    fn put(&mut self, at: usize) {
        assert!(at - self.base < WINDOW, "more than {WINDOW} calls at once");
        self.beyond[(at - self.base) / 128] |= 1 << ((at - self.base) % 128);
        while self.is_beyond(0) {
            for word in 0..WORDS {
                let carried = self.beyond.get(word + 1).map_or(0, |next| next << 127);
                self.beyond[word] = self.beyond[word] >> 1 | carried;
            }
            self.base += 1;
        }
    }

    fn is_beyond(&self, at: usize) -> bool {
        self.beyond[at / 128] >> (at % 128) & 1 == 1
    }
}

/// How far the search came where it found no order: for people.
#[derive(Debug)]
pub struct Unexplained(pub String);

/// Looks for an order; gives how many configurations were looked at.
pub fn check<M: Model>(model: &M, start: M::State, mut calls: Vec<Call<M::What>>) -> Result<usize, Unexplained> {
    calls.sort_by_key(|call| call.made);
    let mut seen = HashSet::new();
    let mut stack = vec![Placed { base: 0, beyond: [0; WORDS], state: start }];
    let mut furthest: Option<Placed<M::State>> = None;
    while let Some(placed) = stack.pop() {
        if !seen.insert(placed.clone()) {
            continue;
        }
        if (placed.base..calls.len()).all(|at| calls[at].doubtful || placed.has(at)) {
            return Ok(seen.len());
        }
        if furthest.as_ref().is_none_or(|best| best.base < placed.base) {
            furthest = Some(placed.clone());
        }
        for at in waiting(&calls, &placed) {
            let ways = model.step(&placed.state, &calls[at]);
            // A doubtful call that changes nothing may as well not have happened.
            for state in ways.into_iter().filter(|state| !calls[at].doubtful || *state != placed.state) {
                let mut next = Placed { state, ..placed.clone() };
                next.put(at);
                leave_out(&calls, &mut next, calls[at].made);
                stack.push(next);
            }
        }
    }
    let furthest = furthest.expect("at least the start was looked at");
    let told = |(at, call): (usize, &Call<M::What>)| {
        let mark = if furthest.has(at) { ' ' } else { '*' };
        format!("{mark} {}..{} {}{:?}", call.made, call.answered, if call.doubtful { "? " } else { "" }, call.what)
    };
    let around = calls.iter().enumerate().skip(furthest.base.saturating_sub(12)).take(36);
    Err(Unexplained(format!(
        "{} of {} calls have an order; the state there is\n{:?}\nand no order of those with a star can follow\n{}",
        furthest.base,
        calls.len(),
        furthest.state,
        around.map(told).collect::<Vec<_>>().join("\n"),
    )))
}

/// Calls that may come next: nothing certain was answered before they were made.
fn waiting<O, S>(calls: &[Call<O>], placed: &Placed<S>) -> Vec<usize> {
    let mut first_answer = u64::MAX;
    let mut waiting = Vec::new();
    for (at, call) in calls.iter().enumerate().skip(placed.base) {
        if call.made > first_answer {
            break;
        }
        if !placed.has(at) {
            waiting.push(at);
            if !call.doubtful {
                first_answer = first_answer.min(call.answered);
            }
        }
    }
    waiting.retain(|at| calls[*at].made <= first_answer);
    waiting
}

/// What was over before `now` and is not placed did not happen.
fn leave_out<O, S>(calls: &[Call<O>], placed: &mut Placed<S>, now: u64) {
    for (at, call) in calls.iter().enumerate().skip(placed.base) {
        if call.made > now {
            return;
        }
        if !placed.has(at) && call.doubtful && call.answered < now {
            placed.put(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: `w3` writes, `r3` reads.
    struct Register;

    impl Model for Register {
        type State = u8;
        type What = &'static str;

        fn step(&self, state: &u8, call: &Call<&'static str>) -> Vec<u8> {
            let value = call.what[1..].parse().unwrap();
            match call.what.as_bytes()[0] {
                b'w' => vec![value],
                _ if *state == value => vec![value],
                _ => vec![],
            }
        }
    }

    /// `made-answered what`, `?` where the answer is not known; is there an order?
    fn explained(history: &str) -> bool {
        let calls = history.split(" | ").map(|call| {
            let (times, what) = call.split_once(' ').unwrap();
            let (made, answered) = times.split_once('-').unwrap();
            let doubtful = answered.starts_with('?');
            let answered = answered.trim_start_matches('?').parse().unwrap_or(u64::MAX);
            Call { made: made.parse().unwrap(), answered, doubtful, what: &*what.to_owned().leak() }
        });
        check(&Register, 0, calls.collect()).is_ok()
    }

    #[test]
    fn a_sequential_history_is_explained_and_a_stale_read_is_not() {
        assert!(explained("0-1 w1 | 2-3 r1 | 4-5 w2 | 6-7 r2"));
        assert!(!explained("0-1 w1 | 2-3 r0"));
        assert!(!explained("0-1 w1 | 2-3 w2 | 4-5 r1"));
    }

    #[test]
    fn calls_at_once_have_either_order_but_only_one() {
        assert!(explained("0-9 w1 | 1-8 w2 | 10-11 r1"));
        assert!(explained("0-9 w1 | 1-8 w2 | 10-11 r2"));
        assert!(!explained("0-9 w1 | 1-8 w2 | 10-11 r1 | 12-13 r2"));
        assert!(explained("0-9 w1 | 1-2 r0 | 3-4 r1"));
        assert!(!explained("0-9 w1 | 1-2 r1 | 3-4 r0"), "an answer that went back in time");
    }

    #[test]
    fn a_call_without_an_answer_happened_or_did_not_but_not_after_its_connection_broke() {
        assert!(explained("0-? w1 | 1-2 r0 | 3-4 r1"));
        assert!(explained("0-? w1 | 1-2 r0 | 3-4 r0"));
        assert!(!explained("0-? w1 | 1-2 r1 | 3-4 r0"), "it happens once");
        assert!(explained("0-?2 w1 | 3-4 r1") && explained("0-?2 w1 | 3-4 r0"));
        assert!(!explained("0-?2 w1 | 3-4 r0 | 5-6 r1"), "it was over");
    }

    #[test]
    fn a_long_history_with_much_at_once_is_checked_in_reasonable_time() {
        let call = |n: u64, what| Call { made: n * 2, answered: n * 2 + 13, doubtful: n.is_multiple_of(5), what };
        let writes = (0..3000).map(|n| call(n, ["w1", "w2", "w3"][n as usize % 3]));
        let looked_at = check(&Register, 0, writes.collect()).unwrap();
        assert!(looked_at < 1_000_000, "{looked_at}");
    }
}
