//! The host over HTTP: `/v1/…` and `/v1/openapi.json` from the one table of operations, `/v1/connect` with the whole protocol
//! over WebSocket, and events as they happen.
//!
//! Nothing here decides: every request becomes a question ([`holdfast_door`]) that the host answers on its own thread. What is checked here is
//! what comes before a question: that the page which asks is ours, that the token is there, that it is not too much.

mod bytes;
mod files;
mod guard;
mod listen;
mod login;
mod metrics;
mod openapi;
mod pages;
mod patient;
mod preview;
mod protocol_sessions;
mod refusal;
mod rest;
mod seats;
mod socket;
mod stream;
mod tools;

pub use listen::{Listen, Tls, bind, serve};
pub use metrics::serve_metrics;
pub use pages::PHONE;
