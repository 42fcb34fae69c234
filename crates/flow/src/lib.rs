//! Durable flows: one flow's history, and what an input does to it.
//!
//! A flow is a list of recorded [`Event`]s. A decider (a worker with somebody's code, or [`yaml`]) reads the history and answers
//! with numbered [`Command`]s; the outcome of a command is recorded under its number. After a crash the same history gives the
//! same state, and every [`Effect`] is derived from that state again, under the same key: a command that is still running is
//! found, and not started twice.
//!
//! Code that asks for something else than the history has is blocked, not failed: once it is mended, the flow goes on.
//!
//! Knows no clock, file or socket. The caller passes `now_ms`, writes the events, and only then performs the effects.

mod command;
mod duration;
mod effect;
mod event;
mod flow;
mod shell;
mod state;
pub mod yaml;

pub use command::{BadCommand, Command, OnLost, Run, WaitFor};
pub use duration::{BadDuration, duration_ms, show_ms};
pub use effect::{Due, Effect, Fires};
pub use event::{Event, Hosted, Lineage, Outcome, Parent, Recorded, RunState};
pub use flow::{Child, Decided, Flow, Refusal, Rewind, Verdict, Wakes};
pub use shell::{fill_output, quoted, text_of};
pub use state::{State, Waits};

/// Most events of one history: reading them takes well under a second. A flow that reaches it is blocked and says so.
pub const EVENTS_MAX: u64 = 100_000;
/// Commands that may be open at once in one flow: what a person would still call one flow.
pub const OPEN_MAX: usize = 1_024;
/// Signals that wait in one flow for code to take them: a sender that sends more is a loop.
pub const MAIL_MAX: usize = 10_000;
/// Longest value of one event, as JSON: longer output stays in its session and is named by its offsets.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Longest name of a step, a signal or a flow: it stands in a line of a table.
pub const NAME_BYTES_MAX: usize = 64;
/// Longest id of a flow: it is part of a run's key, which has at most 120 bytes.
pub const ID_BYTES_MAX: usize = 64;

/// Longest name of a kind of flow: a number follows it in an id.
pub const FLOW_NAME_BYTES_MAX: usize = 48;

/// Whether a text can name a kind of flow.
#[must_use]
pub fn is_flow_name(text: &str) -> bool {
    is_id(text) && text.len() <= FLOW_NAME_BYTES_MAX
}

/// Whether a text can be a flow's id: it stands in keys, file names and command lines.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.chars().all(fits) && !text.starts_with(['.', '-'])
}
