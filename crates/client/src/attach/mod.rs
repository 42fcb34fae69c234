//! Attaching a terminal to a session.
//!
//! The host paints and admits; from then on the terminal follows the ring file and its keeper by itself, so that a host
//! that dies takes nothing away. A terminal of the session's size gets the output as it is; one of another size is drawn
//! from a screen of our own. The terminal that has the turn writes: the keeper reads its keys from the terminal itself where
//! that is possible. Every other one asks the host with each key.
//!
//! `holdfast_attach` decides; here is what it is told from and what it acts upon: sockets, the ring file, the terminal.

mod far;
mod host;
#[cfg_attr(not(target_os = "linux"), path = "keeper_elsewhere.rs")]
mod keeper;
mod places;
mod relink;
mod run;
mod terminal;

use crate::connection::{CallError, Connection};
use crate::identity::Identity;
use crate::route::Route;
use std::path::PathBuf;

pub use holdfast_attach::{AttachEnd, chord_key};
pub use run::told_to_go;

/// How to attach.
#[derive(Debug, Clone)]
pub struct AttachOptions {
    /// Name or id.
    pub session: String,
    /// Watch only.
    pub read_only: bool,
    /// What the person calls it.
    pub name: String,
    /// The control byte that starts a chord (`0x1c` is Ctrl-\); none: every key is typed.
    pub chord: Option<u8>,
    /// The second key that detaches.
    pub detach_key: u8,
    /// Bring the history into the terminal's scrollback.
    pub history: bool,
    /// Say where the person is when a terminal meets a session for the first time.
    pub greeting: bool,
    /// Say it in the window's title.
    pub title: bool,
    /// And in a status line at the bottom.
    pub status: bool,
    /// The terminal shows a session: nothing there is worth keeping above.
    pub over: bool,
    /// Where it is kept what terminals have seen.
    pub terminals: PathBuf,
    /// The way to the host, to find it again.
    pub route: Route,
    /// Who attaches.
    pub who: Identity,
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

/// Turns a failure of the system into one of attaching.
fn failed(what: &str) -> impl FnOnce(std::io::Error) -> AttachError {
    let what = what.to_owned();
    move |source| AttachError::Io { what, source }
}

/// Attaches this process's terminal until it is detached or the session ends. Leaves the terminal as it was.
pub fn attach(connection: Connection, options: &AttachOptions) -> Result<AttachEnd, AttachError> {
    match run::Driver::begin(connection, options)? {
        run::Begun::Attached(attached) => attached.run(),
        run::Begun::Ended(exit) => Ok(AttachEnd::Ended(exit)),
    }
}
