//! The flow service: histories in SQLite, steps as keyed runs on the host.
//!
//! A process of its own, a client of the host like any other. It acts in a session by what the actor that started a flow may do
//! there: it connects in that actor's name, and the host checks each act. It may die at any time; the next one reads the
//! histories and derives everything that is open again, under the same keys.
//!
//! It decides nothing by itself: `holdfast-flow` does. Nothing is answered before it is on disk. No timer ticks.

pub mod archive;
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

/// How long flows that have ended are kept where nothing else is configured: a month's worth can be asked about.
pub const ENDED_KEEP_MS: u64 = 30 * 86_400_000;

/// What becomes of flows that have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeping {
    /// They are removed after this long.
    pub ended_ms: u64,
    /// Their histories are written to files in this directory before.
    pub archive: Option<PathBuf>,
}

impl Default for Keeping {
    fn default() -> Keeping {
        Keeping { ended_ms: ENDED_KEEP_MS, archive: None }
    }
}

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
