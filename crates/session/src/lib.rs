//! One session, without IO: how the host decides, types, follows its keeper and serves attached clients.
//!
//! [`Core`] takes what happened (a keeper's frame, a client's request, a deadline) together with the time, and reaches the
//! outside only through [`Outside`]: the keeper's connection, the journal, the screen, clients. The host implements it with
//! real files and sockets, the simulator with fake ones that can die at any call. Both run this code.
//!
//! Rules that hold whatever happens:
//! - A record is written before anything that follows from it. What cannot be recorded does not happen, unless it only takes
//!   something away (a seizure, an end).
//! - Typed bytes reach the journal from the keeper's log alone: the keeper writes them there before it types them, so there
//!   is one order and one source, and what the terminal did not echo is a length.
//! - Bytes accepted under one fence are sent again under a newer one only while no other actor had the turn in between.
//! - A client is named to the keeper as the writer only after the shell is in the place where its processes are known by it.
//!
//! A run is typed at an empty prompt only, after its key and its record are on disk; see [`Check`] and [`Entering`].
//!
//! It does not know what reads `/proc`, what a key's file looks like, or who waits for an answer over which connection.

mod attach;
mod clients;
mod contract;
mod core;
mod decide;
mod deeds;
mod drive;
mod enter;
mod outside;
mod prompt;
mod runs;
mod sends;
mod shown;
mod typing;

pub use attach::{Arrival, Resumption, Updated};
pub use clients::{Client, Clients};
pub use contract::{is_path_like, outcome};
pub use core::{Connected, Core, Now, Origin, Timers};
pub use decide::{Decided, Undecided};
pub use enter::{Came, Entering, Next, NotEntered, SavedRuns, TakeUp};
pub use outside::{Event, Fed, Outside, Placing, Probed, Unwritten};
pub use prompt::{Busy, Check, Editor, Look, Seen};
pub use runs::{
    COMMAND_SHOWN_BYTES_MAX, LastKey, Line, RUNS_MAX, Run, ShellState, Tracker, TypedLine, Written, forgotten_first,
    may_tell_an_end,
};
pub use sends::{Send, Sent, Ticket};
pub use typing::{Typing, is_own_stream, is_reserved_stream, read_bursts};
