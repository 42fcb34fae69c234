//! What an attached client decides: inputs in, effects out.
//!
//! [`Attached`] is told what happened ([`Input`]): keys were typed, the keeper sent a frame, the host answered, went away or
//! came back, time passed. It says what to do ([`Effect`]): a frame to the keeper, a request to the host, bytes to the
//! terminal. The caller performs the effects in order. `client` does so with sockets and a terminal, `sim` with fake ones.
//!
//! What makes it safe: keys go to the keeper only under the newest fence that the host gave to this client, and a refused
//! message takes everything that waits behind it along. Nothing is shown while the keeper may be writing to the terminal.
//!
//! Knows no socket, file, clock or terminal: the caller passes the time, and copies output from the ring when asked.

mod chord;
mod duty;
mod host;
mod inputs;
mod keys;
mod line;
mod machine;
mod notice;
mod output;
mod paint;
mod prompt;
mod questions;
mod reports;
mod status;
mod turns;

pub use chord::chord_key;
pub use inputs::{Answer, AttachEnd, Effect, Event, Input, Paint, Picture, Request, Tag};
pub use machine::{Attached, Begin, Options};
pub use status::room;
