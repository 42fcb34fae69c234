//! Who shaped what an actor runs: the shell's names that another actor changed, the files that another actor wrote, text that
//! another actor left at the prompt.
//!
//! What the shell is made of comes from its own reports ([`crate::shells`]). Who wrote a file comes from a record of writes
//! ([`writes`]): what the host wrote itself, what a watcher of the kernel's tells ([`Writes::note`] is for all of them), and otherwise
//! time: a file that changed during one actor's run, or right behind what it typed, is that actor's. What nobody can know is unknown,
//! and is never taken for "nobody".
//!
//! Everything that looks at files blocks, and is done on another thread.

mod look;
mod scan;
mod time;
mod writes;

pub(crate) use look::{Wanted, shapers_of};
pub(crate) use scan::changed_files;
pub(crate) use time::{Span, Spans, Times};
pub(crate) use writes::{Stamp, Writes, Written};

use holdfast_types::{Actor, SessionId, TimeMs};
use holdfast_wire::env::EnvEntry;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Shapers of one line that are kept: a person reads no more.
pub(crate) const SHAPERS_MAX: usize = 16;

/// A file that the host wrote for an actor. Blocks.
pub(crate) fn note_host_write(writes: &Mutex<Writes>, session: SessionId, path: &str, actor: Actor) {
    // It was removed.
    let Ok(meta) = std::fs::symlink_metadata(path) else { return };
    let (stamp, path, known) = (Stamp::of(&meta), path.to_owned(), "written".to_owned());
    let mut writes = writes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    writes.note(Written { stamp, path, actor, act: None, session, known });
}

/// What is known of a session's past when one of its lines is judged.
#[derive(Debug, Clone)]
pub(crate) struct Background {
    pub session: SessionId,
    /// What of its shell is not as it was, and who changed it.
    pub changes: Arc<Vec<EnvEntry>>,
    /// Who else typed what stands at the prompt.
    pub staged: Vec<Actor>,
    /// When the session began: files that are older are nobody's.
    pub since_ms: TimeMs,
    /// Its journal, the oldest file first.
    pub journal: Vec<PathBuf>,
    /// Runs of all sessions, as far as they are remembered.
    pub spans: Arc<VecDeque<Span>>,
    pub writes: Arc<Mutex<Writes>>,
}
