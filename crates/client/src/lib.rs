//! What the command line, and later every other operator, builds on: connect to a host (starting it where there is none),
//! ask it by typed calls, attach a terminal.
//!
//! Blocking and without a runtime: a command that asks one question should cost one round trip and no threads.

mod attach;
mod bridge;
mod connection;
mod identity;
mod ready;
mod relayed;
mod route;
mod start;

pub use attach::{AttachEnd, AttachError, AttachOptions, attach, chord_key, told_to_go};
pub use connection::{CallError, Connection, Greeted, Incoming, PROGRAM};
pub use holdfast_channel::InviteLink;
pub use identity::{Identity, KeyError, PublicKey, admit};
pub use ready::{ready, ready_of};
pub use relayed::Relayed;
pub use route::{Route, Ssh, is_host_name, join, machine_name};
pub use start::{
    ConnectError, HOST_READY_MS, connect, connect_as, connect_or_start, connect_or_start_as, finish, greet,
    greet_or_start, socket, socket_or_start,
};
