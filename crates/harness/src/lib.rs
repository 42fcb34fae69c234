//! What the suites of the `holdfast` program stand on. A dev-dependency only; nothing that is shipped knows it.
//!
//! - [`Home`]: a home of its own for each test, and the program run in it, as a person or a script does.
//! - [`Terminal`]: a person's terminal, which answers queries as a real one does.
//! - [`World`], [`Operator`], [`Raw`]: a home whose host can be killed and started again, actors on its socket, and a
//!   connection that says what it likes.
//! - [`Direct`]: a client that writes to its keeper directly, frame by frame.
//! - [`Pause`]: a named point at which the host stops until the test lets it go on.
//! - [`until`], [`poll`], [`holds_within`]: the one way to wait, for a condition and with a deadline.
//! - [`Random`]: numbers from a seed that is printed.
//!
//! A home or world that is dropped ends its sessions and its host. A process that is left over, or a panic in the host's log,
//! fails the test.
#![allow(clippy::unwrap_used)] // a test's failure is its message

mod direct;
mod home;
mod operator;
mod pauses;
mod processes;
mod random;
mod raw;
mod terminal;
mod wait;
mod world;

pub use direct::Direct;
pub use home::{Home, Ran, TESTER, settle};
pub use operator::{Heard, Operator, detail, refusal, refused};
pub use pauses::{Pause, Paused};
pub use processes::{command_line, criu, gone, kill, open_files, program, signal};
pub use random::Random;
pub use raw::Raw;
pub use terminal::{BACKGROUND, CHORD, Client, DETACH, Look, Seen, TAKE, Terminal};
pub use wait::{Condition, PATIENCE, holds_within, poll, until};
pub use world::{World, received};
