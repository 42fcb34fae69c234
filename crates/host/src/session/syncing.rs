//! Journals on their way to the disk, those of all sessions together.
//!
//! A sync makes the file system write its own journal, and who makes or renames a file meanwhile may wait for that: a session that starts
//! does both. So what several sessions wrote within [`SYNC_AFTER`] is synced one behind the other on one thread, and all of it is on its way
//! before the first is waited for: the file system's journal is then written once or twice, not for each session.

use super::Session;
use crate::disk::{at_disk, begin_writing};
use crate::notes::About;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// Records reach the disk for certain within this time and the disk's own: the cost of a sync is shared by all acts within.
const SYNC_AFTER: Duration = Duration::from_millis(20);
/// Rounds at once: more would only wait for the same disk, each with a thread.
const AT_ONCE: usize = 2;
/// Files that a round has open at once.
const FILES_MAX: usize = 64;

/// What is to be synced.
#[derive(Debug)]
pub(crate) struct Syncs {
    waiting: RefCell<Vec<Rc<Session>>>,
    /// A round begins soon.
    is_due: Cell<bool>,
    places: Semaphore,
}

impl Default for Syncs {
    fn default() -> Syncs {
        Syncs { waiting: RefCell::default(), is_due: Cell::default(), places: Semaphore::new(AT_ONCE) }
    }
}

impl Syncs {
    /// Waits until it may use the disk too.
    pub async fn place(&self) -> SemaphorePermit<'_> {
        self.places.acquire().await.expect("never closed")
    }

    async fn round(&self) {
        let sessions = self.waiting.take();
        // What is written from here on asks for another round.
        sessions.iter().for_each(|session| session.syncing.set(false));
        let _place = self.place().await;
        loop {
            let files = unsynced(&sessions);
            if files.is_empty() {
                break;
            }
            let (whose, paths): (Vec<usize>, Vec<PathBuf>) = files.into_iter().unzip();
            match at_disk(move || Ok(sync(&paths))).await {
                Ok(all) => {
                    for (at, (synced, took)) in whose.into_iter().zip(all) {
                        sessions[at].synced(&synced, took);
                    }
                }
                Err(error) => {
                    let failed = Err(error);
                    whose.into_iter().for_each(|at| sessions[at].synced(&failed, Duration::ZERO));
                }
            }
        }
        for session in sessions {
            let ahead = session.state.borrow_mut().journal.archives();
            if let Some(ahead) = ahead {
                let done = at_disk(move || ahead.run()).await;
                session.state.borrow_mut().journal.archived(done);
            }
        }
    }
}

/// The segments, and where one is new the directory that has its name.
fn unsynced(sessions: &[Rc<Session>]) -> Vec<(usize, PathBuf)> {
    let of = |session: &Session| session.state.borrow_mut().journal.unsynced();
    let all = sessions
        .iter()
        .enumerate()
        .flat_map(|(at, session)| std::iter::from_fn(move || of(session)).map(move |path| (at, path)));
    all.take(FILES_MAX).collect()
}

/// Blocks.
fn sync(paths: &[PathBuf]) -> Vec<(io::Result<()>, Duration)> {
    let files: Vec<io::Result<File>> = paths.iter().map(File::open).collect();
    files.iter().flatten().for_each(begin_writing);
    let sync = |file: io::Result<File>| {
        let began = Instant::now();
        (file.and_then(|file| file.sync_data()), began.elapsed())
    };
    files.into_iter().map(sync).collect()
}

impl Session {
    /// Sees to it that what was written reaches the disk, off this thread.
    pub(super) fn sync_soon(&self) {
        if !self.state.borrow().journal.is_unsynced() || self.syncing.replace(true) {
            return;
        }
        let Some(this) = self.this.upgrade() else { return };
        let syncs = Rc::clone(&self.syncs);
        syncs.waiting.borrow_mut().push(this);
        if syncs.is_due.replace(true) {
            return;
        }
        tokio::task::spawn_local(async move {
            tokio::time::sleep(SYNC_AFTER).await;
            syncs.is_due.set(false);
            syncs.round().await;
        });
    }

    fn synced(&self, synced: &io::Result<()>, took: Duration) {
        if synced.is_ok() {
            self.metrics.synced(took);
        }
        self.state.borrow_mut().notes.wrote(About::Sync, "the journal may not survive a crash", synced);
    }
}
