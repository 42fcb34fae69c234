//! The keeper as a process: started, spoken to, killed and left alone as a host and clients would.

#![allow(clippy::unwrap_used)] // the helpers are tests too, which clippy cannot know

mod clients;
mod ends;
mod harness;
mod hosts;
mod lease;
mod noise;
mod output;
mod start;
mod tty;
mod writing;
