//! Keeper, host and clients in one thread, driven by a seed, with crashes.
//!
//! A run is a world: a program at a fake terminal (in some worlds a shell that tells of itself, into which runs are entered), a
//! keeper around a real ring file, a host that may die at any frame it sends, terminals that follow, type, get stuck and leave,
//! readers and senders at a distance. What decides in the product decides here too: the keeper's flow, streams, turn and queue,
//! the host's picture, history and clients, the ring, the log,
//! the authority and its journal, every frame's bytes, the whole session core and the whole attached client: [`host`] drives
//! the same `holdfast_session` that `crates/host` drives, [`client`] the same `holdfast_attach` that `crates/client` drives.
//! What only moves bytes is written again around a fake clock: [`keeper`] follows `crates/keeper` statement by statement, and
//! must be changed with it.
//!
//! The [`oracle`] knows everything that was said and typed, and says at once when somebody saw or did something else. A run
//! is nothing but its seed: the same seed gives the same log.

mod cast;
mod ctx;
mod findings;
mod lease;
mod net;
mod others;
mod program;
mod settle;
mod shell;
mod terminal;
mod world;

pub mod client;
pub mod host;
pub mod keeper;
pub mod oracle;

pub use ctx::Counts;
pub use lease::{LeaseCounts, run_leases};
/// Steps of a usual run: a few seconds of its clock.
pub const STEPS: u32 = 3000;
pub use world::{Outcome, run};
