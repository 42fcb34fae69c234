//! The Linux picture of a session's processes: which they are ([`descendants`]), stopping them all at once
//! ([`Freezer`]), in whose turn they were started ([`Turns`]), what they hold ([`graph`]), what
//! they wait for ([`waiting`]), what they take up ([`residency()`]), what happens to them ([`events`]), whether sockets come and go at all ([`network`]), and where a
//! process comes from ([`ancestry`]), what CRIU makes of it all ([`portable`]), and what a run does to files ([`effects`]).
//!
//! Everything is read from the kernel anew at each call. Nothing here is remembered, so a host that was killed between
//! freezing and thawing is replaced by any other.
//!
//! Knows nothing of sessions, keepers' sockets or actors: a keeper is a pid, a session is a label.

pub mod ancestry;
mod cgroup;
pub mod effects;
pub mod events;
mod freeze;
pub mod graph;
mod netlink;
pub mod network;
pub mod portable;
mod proc;
mod residency;
mod signals;
mod tree;
mod turns;
pub mod waiting;

pub use cgroup::leave_sessions;
pub use freeze::{Freezer, Frozen, How};
pub use residency::{Alone, Residency, alone, residency};
pub use tree::{Process, Spared, descendants, process_id, spared_below};
pub use turns::{Entered, Turns};
