//! The flow service: histories in SQLite, steps as keyed runs on the host.
//!
//! A process of its own, a client of the host like any other. It acts in a session by what the actor that started a flow may do
//! there: it connects in that actor's name, and the host checks each act. It may die at any time; the next one reads the
//! histories and derives everything that is open again, under the same keys.
//!
//! It decides nothing by itself: `holdfast-flow` does. Nothing is answered before it is on disk. No timer ticks.

mod client;
mod clock;
mod engine;
mod job;
mod link;
mod peer;
pub mod protocol;
mod serve;
mod store;

pub use client::{Client, ClientError, log_file, spawn};
pub use serve::{ServeError, Served, serve};
pub use store::StoreError;

use holdfast_types::Home;
use std::path::PathBuf;

/// The service's socket.
#[must_use]
pub fn socket(home: &Home) -> PathBuf {
    home.run.join("flows.sock")
}

/// Held by the one service of this home.
#[must_use]
pub fn lock_file(home: &Home) -> PathBuf {
    home.run.join("flows.lock")
}

/// The histories.
#[must_use]
pub fn database(home: &Home) -> PathBuf {
    home.state.join("flows.db")
}
