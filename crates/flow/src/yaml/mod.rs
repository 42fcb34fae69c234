//! Flows for people who do not program: steps in a YAML file, read and decided here.
//!
//! The definition travels with the flow, so an edited file changes no flow that is under way. The decider is a function of the
//! definition and the history alone: it always asks for the same commands, and needs no worker.

mod decide;
mod definition;
mod template;
mod tree;

pub use decide::decide;
pub use definition::{Definition, KEYS, Step, parse};

use std::fmt;

/// Longest file: a flow of a thousand steps is shorter.
pub const YAML_BYTES_MAX: usize = 64 * 1024;
/// Steps of one definition: more than anybody reads.
pub const STEPS_MAX: usize = 1_000;

/// What is wrong with a definition, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

impl std::error::Error for Problem {}

fn problem<T>(line: usize, message: impl Into<String>, hint: impl Into<String>) -> Result<T, Problem> {
    Err(Problem { line, message: message.into(), hint: hint.into() })
}
