//! Keys of runs: `<state>/runs/<key in hexadecimal>.json`, made before the command starts, and only once.
//!
//! A key is taken by a link to a finished file: whoever comes second finds the first one's, whole.

use super::Run;
use holdfast_store::{RUN_KEY, Survives, create, get_json, put_json, seal_json};
use holdfast_types::{Actor, SessionId, TimeMs};
use holdfast_wire::runs::RunId;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tokio::sync::Notify;

/// What a key stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub key: String,
    pub session: SessionId,
    pub run: RunId,
    pub command: String,
    /// It has a session of its own.
    pub own: bool,
    pub created_ms: TimeMs,
    /// Who ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// How it ended, where its session is no longer there to say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Run>,
}

impl Entry {
    /// Whether this actor ran it, as far as is known.
    pub fn is_by(&self, actor: &Actor) -> bool {
        let by = self.actor.as_ref().or_else(|| self.ended.as_ref().map(|run| &run.actor));
        by.is_some_and(|by| by.id == actor.id)
    }
}

/// Keys under which a session is being made: one at a time for each.
#[derive(Debug, Default)]
pub struct Making {
    keys: RefCell<BTreeSet<String>>,
    done: Notify,
}

/// Nobody else makes a session under this key meanwhile.
#[derive(Debug)]
pub struct Taken<'a>(&'a Making, String);

impl Making {
    /// Waits until nobody else has it.
    pub async fn take(&self, key: &str) -> Taken<'_> {
        loop {
            let done = self.done.notified();
            tokio::pin!(done);
            done.as_mut().enable();
            if self.keys.borrow_mut().insert(key.to_owned()) {
                return Taken(self, key.to_owned());
            }
            done.await;
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.keys.borrow_mut().remove(&self.1);
        self.0.done.notify_waiters();
    }
}

fn directory(state: &Path) -> PathBuf {
    state.join("runs")
}

fn name_of(key: &str) -> String {
    format!("{}.json", holdfast_types::hex_text(key.as_bytes()))
}

fn file_of(state: &Path, key: &str) -> PathBuf {
    directory(state).join(name_of(key))
}

/// What a key stands for, if it was used.
pub fn find(state: &Path, key: &str) -> io::Result<Option<Entry>> {
    Ok(get_json(&RUN_KEY, &file_of(state, key))?)
}

/// Takes a key, so that it survives even the machine's end; the entry that has it already, if there is one.
pub fn take(state: &Path, entry: &Entry) -> io::Result<Option<Entry>> {
    crate::store::make_dir(&directory(state))?;
    match create(&file_of(state, &entry.key), &seal_json(&RUN_KEY, entry)?) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => find(state, &entry.key),
        Err(error) => Err(error),
    }
}

/// Notes at its key how a run ended. The key keeps its age.
pub fn conclude(state: &Path, run: &Run) -> io::Result<()> {
    let Some(key) = &run.key else { return Ok(()) };
    let Some(mut entry) = find(state, key)?.filter(|entry| entry.run == run.id) else { return Ok(()) };
    let file = file_of(state, key);
    let taken = std::fs::metadata(&file)?.modified()?;
    entry.ended = Some(run.clone());
    put_json(&RUN_KEY, &directory(state), &name_of(key), &entry, Survives::Crash)?;
    std::fs::File::options().write(true).open(&file)?.set_modified(taken)
}

/// Gives a key back: nothing was started under it.
pub fn give_back(state: &Path, key: &str) {
    let _ = std::fs::remove_file(file_of(state, key));
}

/// Forgets keys older than `keep_ms`.
pub fn clear_old(state: &Path, keep_ms: u64, now: TimeMs) {
    for entry in std::fs::read_dir(directory(state)).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|meta| meta.modified()).ok();
        let since = age.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).map(|at| at.as_millis() as u64);
        if since.is_some_and(|since| since.saturating_add(keep_ms) <= now) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_once_kept_for_its_time_and_free_again_when_given_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let entry = |run| Entry {
            key: "deploy/1 ä".into(),
            session: SessionId::from_random_bits(1),
            run: RunId::from_random_bits(run),
            command: "make".into(),
            own: false,
            created_ms: 5,
            actor: None,
            ended: None,
        };
        assert_eq!(find(dir.path(), "deploy/1 ä").expect("readable"), None);
        assert_eq!(take(dir.path(), &entry(1)).expect("writable"), None);
        assert_eq!(take(dir.path(), &entry(2)).expect("writable"), Some(entry(1)));
        assert_eq!(std::fs::read_dir(dir.path().join("runs")).expect("there").count(), 1, "nothing is left beside");
        clear_old(dir.path(), 60_000, crate::now_ms());
        assert_eq!(find(dir.path(), "deploy/1 ä").expect("readable"), Some(entry(1)));
        clear_old(dir.path(), 0, crate::now_ms() + 1);
        assert_eq!(find(dir.path(), "deploy/1 ä").expect("readable"), None);
        take(dir.path(), &entry(2)).expect("writable");
        give_back(dir.path(), "deploy/1 ä");
        assert_eq!(take(dir.path(), &entry(3)).expect("writable"), None);
    }

    #[test]
    fn a_key_of_the_version_before_is_still_taken() {
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/v1");
        let entry = find(&old, "build-1").expect("readable").expect("taken");
        assert_eq!((entry.command.as_str(), entry.own), ("seq 1 4000", false));
    }
}
