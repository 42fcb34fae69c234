//! Every operation and frame between clients and the host.
//!
//! [`frame`] is the byte layer that unix sockets, WebSockets and relayed streams share; [`message`] is JSON-RPC 2.0 in
//! those frames, each message with optional raw bytes behind it; [`operations`] is the one table of what can be asked.
//!
//! Pure: encodes and decodes, owns no socket and reads no clock.

pub mod attention;
pub mod contracts;
pub mod devices;
pub mod env;
pub mod events;
pub mod fault;
pub mod files;
pub mod flows;
pub mod follow;
pub mod forks;
pub mod frame;
pub mod gate;
pub mod graphs;
pub mod handover;
pub mod hello;
pub mod leases;
pub mod lives;
pub mod message;
pub mod moves;
mod new;
pub mod operations;
pub mod params;
pub mod portable;
pub mod questions;
pub mod reaping;
pub mod runs;
pub mod schema;
pub mod seam;
pub mod status;
pub mod tokens;
pub mod turns;
pub mod wall;

pub use fault::{Code, Fault};
pub use message::{Body, Message};
pub use operations::{Call, OPERATIONS, Operation, Row};
