//! A session's processes and what they hold: descriptors, pipes between them, sockets and ports, at one moment.
//!
//! Everything is what the kernel said. What it did not say (gone, another user's, another network) is `None`, or the
//! node says `unknown`; nothing is guessed. Text is as the programs gave it, control characters too: whoever shows it
//! escapes it, as [`holdfast_graph::render`] does. What a graph is made of is [`holdfast_graph`].
//!
//! A snapshot of processes that run is not one moment for all of them. A session that is frozen gives one.

mod fds;
mod procnet;
mod read;
mod sockets;

pub use holdfast_graph::*;
pub use read::{snapshot, words};
pub(crate) use sockets::listening;
