//! The keeper: one process per session that owns the terminal and the child, so that nothing else may end them.
//!
//! It reads the terminal straight into the session's ring file and serves one socket, as [`holdfast_abi::protocol`]
//! says. One thread, one poll loop ([`keeper`]), no timers while nothing happens. What it decides is kept apart from what
//! it does: [`flow`], [`turn`], [`streams`], [`queue`], [`chord`], [`lease`] and [`ending`] know no descriptors and no clock.
//!
//! It knows no policy and parses no output. Signals do not end it: all are blocked (only KILL and faults remain), so a
//! logout or a stray HUP, INT or TERM leaves sessions alone; a session ends by its child's end or by an End frame.

pub mod chord;
pub mod client_tty;
pub mod connections;
pub mod ending;
pub mod flow;
mod frames;
pub mod keeper;
mod keys;
pub mod lease;
pub mod leased;
mod newcomers;
mod output;
pub mod queue;
pub mod setup;
pub mod spawn;
pub mod still;
pub mod streams;
pub mod sys;
pub mod terminal;
pub mod tree;
pub mod turn;
