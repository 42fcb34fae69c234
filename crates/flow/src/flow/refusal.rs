//! Why an input is refused, and what a human decides about a step.

use serde_json::Value;

/// Why an input is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The history is longer than the decider knew.
    #[error("the history has moved on; look at it again")]
    Moved,
    /// It is about to end, or has ended.
    #[error("the flow has ended")]
    Ended,
    /// No open question.
    #[error("the flow asks nothing now")]
    NoQuestion,
    /// Several questions are open.
    #[error("several questions are open; name one")]
    WhichQuestion,
    /// The answer is none of the options.
    #[error("invalid answer; expected one of: {0}")]
    NoOption(String),
    /// A bound is reached.
    #[error("{0}")]
    TooMany(&'static str),
    /// Nothing of it waits for somebody.
    #[error("nothing of this flow waits for a retry")]
    NotStuck,
    /// There is no such step to go back to.
    #[error("no step {0} that was asked for")]
    NoStep(String),
    /// A step behind it has not ended.
    #[error("{0} is still going on")]
    StillOn(String),
    /// A step before it was undone.
    #[error("step {1} ({0}) was undone")]
    Undone(String, u32),
    /// It would be done a second time.
    #[error("this does again: {0}")]
    Twice(String),
}

/// What a human decides about a step that is stuck.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It runs again.
    Again,
    /// It has failed.
    Failed,
    /// It was done, and gave this.
    Done(Value),
}
