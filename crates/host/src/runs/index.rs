//! Keys of runs: `<state>/runs/<actor>/<key in hexadecimal>.json`, made before the command starts, and only once. Those that are
//! shared on purpose lie in `runs/` itself.
//!
//! A key is taken by a link to a finished file: whoever comes second finds the first one's, whole. It lives as long as its run is on,
//! or something still names that run; after the end for `runs_keep`.

use holdfast_session::Run;
use holdfast_store::{RUN_KEY, Survives, create, get_json, put_json, seal_json};
use holdfast_types::{Actor, ActorId, SessionId, TimeMs};
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
    /// Everybody's, on purpose.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// Whose keys are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// An actor's own: nobody else can take them, nor learns of them.
    Own(ActorId),
    /// Everybody's.
    Shared,
}

impl Whose {
    /// Of somebody who starts a run.
    pub fn of(actor: &Actor, shared: bool) -> Whose {
        if shared { Whose::Shared } else { Whose::Own(actor.id) }
    }

    /// A key's name among all.
    pub fn name(self, key: &str) -> String {
        match self {
            Whose::Own(actor) => format!("{actor}/{key}"),
            Whose::Shared => format!("/{key}"),
        }
    }
}

impl Entry {
    /// Whose key it is.
    fn whose(&self) -> Whose {
        match &self.actor {
            Some(actor) => Whose::of(actor, self.shared),
            None => Whose::Shared,
        }
    }

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

fn directory(state: &Path, whose: Whose) -> PathBuf {
    match whose {
        Whose::Own(actor) => state.join("runs").join(actor.to_string()),
        Whose::Shared => state.join("runs"),
    }
}

fn name_of(key: &str) -> String {
    format!("{}.json", holdfast_types::hex_text(key.as_bytes()))
}

fn file_of(state: &Path, whose: Whose, key: &str) -> PathBuf {
    directory(state, whose).join(name_of(key))
}

/// What a key stands for, if it was used.
pub fn find(state: &Path, whose: Whose, key: &str) -> io::Result<Option<Entry>> {
    let entry: Option<Entry> = get_json(&RUN_KEY, &file_of(state, whose, key))?;
    match whose {
        Whose::Own(actor) if entry.is_none() => {
            // Of a version in which all were everybody's.
            let older: Option<Entry> = get_json(&RUN_KEY, &file_of(state, Whose::Shared, key))?;
            Ok(older.filter(|entry| !entry.shared && entry.actor.as_ref().is_none_or(|by| by.id == actor)))
        }
        Whose::Own(_) | Whose::Shared => Ok(entry),
    }
}

/// What a key stands for to an actor: its own one, or a shared one.
pub fn find_any(state: &Path, actor: &Actor, key: &str) -> io::Result<Option<Entry>> {
    match find(state, Whose::Own(actor.id), key)? {
        Some(entry) => Ok(Some(entry)),
        None => find(state, Whose::Shared, key),
    }
}

/// Takes a key, so that it survives even the machine's end; the entry that has it already, if there is one.
pub fn take(state: &Path, entry: &Entry) -> io::Result<Option<Entry>> {
    let whose = entry.whose();
    crate::store::make_dir(&directory(state, Whose::Shared))?;
    crate::store::make_dir(&directory(state, whose))?;
    match create(&file_of(state, whose, &entry.key), &seal_json(&RUN_KEY, entry)?) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => find(state, whose, &entry.key),
        Err(error) => Err(error),
    }
}

/// Notes at its key how a run ended, before the session goes that knows it.
pub fn conclude(state: &Path, run: &Run) -> io::Result<()> {
    let Some(key) = &run.key else { return Ok(()) };
    let whose = Whose::of(&run.actor, run.shared);
    let Some(mut entry) = find(state, whose, key)?.filter(|entry| entry.run == run.id) else { return Ok(()) };
    entry.ended = Some(run.clone());
    let dir = directory(state, if file_of(state, whose, key).exists() { whose } else { Whose::Shared });
    let file = dir.join(name_of(key));
    // Written anew, it is as old as it was: a rewritten key is not looked at for another `runs_keep`.
    let taken = std::fs::metadata(&file)?.modified()?;
    put_json(&RUN_KEY, &dir, &name_of(key), &entry, Survives::Crash)?;
    std::fs::File::options().write(true).open(&file)?.set_modified(taken)
}

/// Gives a key back: nothing was started under it.
pub fn give_back(state: &Path, whose: Whose, key: &str) {
    let _ = std::fs::remove_file(file_of(state, whose, key));
}

/// Removes what a host that died left beside the keys.
pub fn sweep(state: &Path) {
    let runs = directory(state, Whose::Shared);
    holdfast_store::sweep(&runs, &[]);
    files(&runs).filter(|place| place.is_dir()).for_each(|place| holdfast_store::sweep(&place, &[]));
}

/// Forgets keys whose runs have been over for `keep_ms`. What is still on, or `is_named`, has its key.
pub fn clear_old(state: &Path, keep_ms: u64, now: TimeMs, is_named: impl Fn(&Entry) -> bool) {
    for place in files(&directory(state, Whose::Shared)) {
        if !place.is_dir() {
            clear(&place, keep_ms, now, &is_named);
            continue;
        }
        files(&place).for_each(|file| clear(&file, keep_ms, now, &is_named));
        // Only an empty one goes.
        let _ = std::fs::remove_dir(&place);
    }
}

fn files(dir: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn clear(file: &Path, keep_ms: u64, now: TimeMs, is_named: &impl Fn(&Entry) -> bool) {
    // The file's age spares reading the young ones; it says nothing of the run.
    let age = std::fs::metadata(file).and_then(|meta| meta.modified()).ok();
    let since = age.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).map(|at| at.as_millis() as u64);
    if since.is_none_or(|since| since.saturating_add(keep_ms) > now) {
        return;
    }
    // One that cannot be read may stand for a run that is on: whoever uses that key is told that it is damaged.
    let Ok(Some(entry)) = get_json::<Entry>(&RUN_KEY, file) else { return };
    let over = entry.ended.as_ref().and_then(|run| run.ended_ms).unwrap_or(entry.created_ms);
    if over.saturating_add(keep_ms) <= now && !is_named(&entry) {
        let _ = std::fs::remove_file(file);
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
            actor: Some(bot(1)),
            ended: None,
            shared: false,
        };
        let own = Whose::Own(bot(1).id);
        let found = || find(dir.path(), own, "deploy/1 ä").expect("readable");
        assert_eq!(found(), None);
        assert_eq!(take(dir.path(), &entry(1)).expect("writable"), None);
        assert_eq!(take(dir.path(), &entry(2)).expect("writable"), Some(entry(1)));
        let place = dir.path().join("runs").join(bot(1).id.to_string());
        assert_eq!(std::fs::read_dir(place).expect("there").count(), 1, "nothing is left beside");
        clear_old(dir.path(), 60_000, crate::now_ms(), |_| false);
        assert_eq!(found(), Some(entry(1)));
        clear_old(dir.path(), 0, crate::now_ms() + 1, |entry| entry.run == RunId::from_random_bits(1));
        assert_eq!(found(), Some(entry(1)), "what something names has its key");
        clear_old(dir.path(), 0, crate::now_ms() + 1, |_| false);
        assert_eq!(found(), None);
        take(dir.path(), &entry(2)).expect("writable");
        give_back(dir.path(), own, "deploy/1 ä");
        assert_eq!(take(dir.path(), &entry(3)).expect("writable"), None);
    }

    fn bot(number: u8) -> Actor {
        Actor { id: ActorId([number; 32]), handle: format!("agent:bot{number}").parse().expect("a handle") }
    }

    #[test]
    fn keys_are_each_actors_own_but_for_those_that_are_shared() {
        let dir = tempfile::tempdir().expect("a directory");
        let entry = |by: u8, run, shared| Entry {
            key: "deploy".into(),
            session: SessionId::from_random_bits(1),
            run: RunId::from_random_bits(run),
            command: "make".into(),
            own: false,
            created_ms: 5,
            actor: Some(bot(by)),
            ended: None,
            shared,
        };
        for first in [entry(1, 1, false), entry(2, 2, false), entry(1, 3, true)] {
            assert_eq!(take(dir.path(), &first).expect("writable"), None);
        }
        assert_eq!(take(dir.path(), &entry(2, 4, true)).expect("writable"), Some(entry(1, 3, true)));
        let any = |by| find_any(dir.path(), &bot(by), "deploy").expect("readable").expect("there").run;
        assert_eq!([any(1), any(2), any(3)], [1, 2, 3].map(RunId::from_random_bits), "one's own comes first");
    }

    #[test]
    fn a_key_of_the_version_before_is_still_taken() {
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/v1");
        let entry = find(&old, Whose::Shared, "build-1").expect("readable").expect("taken");
        assert_eq!((entry.command.as_str(), entry.own), ("seq 1 4000", false));
    }
}
