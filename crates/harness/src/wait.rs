//! The one way to wait: for a condition, with a deadline.

use std::time::{Duration, Instant};

/// How long anything may take on a busy machine before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What is looked at again and again until it holds: a `bool`, or an `Option` that has a value then.
pub trait Condition {
    /// What it gives once it holds.
    type Value;
    /// The value, if it holds.
    fn value(self) -> Option<Self::Value>;
}

impl Condition for bool {
    type Value = ();
    fn value(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Condition for Option<T> {
    type Value = T;
    fn value(self) -> Option<T> {
        self
    }
}

/// Polls until a condition holds and gives its value; fails the test when it does not in time.
#[track_caller]
pub fn until<C: Condition>(what: &str, condition: impl FnMut() -> C) -> C::Value {
    match poll(condition) {
        Some(value) => value,
        None => panic!("waited in vain for {what}"),
    }
}

/// Polls until a condition holds; nothing when it does not in time.
pub fn poll<C: Condition>(condition: impl FnMut() -> C) -> Option<C::Value> {
    poll_for(PATIENCE, condition)
}

/// Polls for a condition; says whether it came to hold in time.
pub fn holds_within(patience: Duration, condition: impl FnMut() -> bool) -> bool {
    poll_for(patience, condition).is_some()
}

fn poll_for<C: Condition>(patience: Duration, mut condition: impl FnMut() -> C) -> Option<C::Value> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(value) = condition().value() {
            return Some(value);
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
