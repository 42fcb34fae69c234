//! The record of writes: which actor wrote which file, known by the file's own number, so that a rename or another link of it changes
//! nothing. On disk in `writes` of the state directory; bounded, the oldest are forgotten first.

use holdfast_store::{WRITES, lines};
use holdfast_types::{Actor, SessionId, TimeMs};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const NAME: &str = "writes";
/// Files that are remembered: what some weeks of agents' scripts come to.
const WRITES_MAX: usize = 4096;
/// A longer file is none of ours.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Which file, and in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub dev: u64,
    pub ino: u64,
    /// When its content was changed last, as the file says: whoever may write it can set this.
    pub modified_ns: u64,
    /// When anything of it was changed last: only the kernel sets this.
    pub changed_ns: u64,
}

impl Stamp {
    pub fn of(meta: &Metadata) -> Stamp {
        let ns =
            |seconds: i64, ns: i64| (seconds.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(ns as u64);
        Stamp {
            dev: meta.dev(),
            ino: meta.ino(),
            modified_ns: ns(meta.mtime(), meta.mtime_nsec()),
            changed_ns: ns(meta.ctime(), meta.ctime_nsec()),
        }
    }

    pub fn changed_ms(&self) -> TimeMs {
        self.changed_ns / 1_000_000
    }
}

/// One file that an actor wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    pub stamp: Stamp,
    /// Where it was then.
    pub path: String,
    pub actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    pub session: SessionId,
    /// How that is known: `written` by the host itself, `kernel`, `run`, `time`.
    pub known: String,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    by_file: HashMap<(u64, u64), Written>,
    /// The oldest first.
    order: VecDeque<(u64, u64)>,
    path: PathBuf,
    /// Lines of the file.
    lines: usize,
}

impl Writes {
    /// What an earlier host left.
    pub fn load(state: &Path) -> Writes {
        let path = state.join(NAME);
        let kept: Vec<Written> = lines::load(&WRITES, &path, FILE_BYTES_MAX).unwrap_or_else(|why| {
            tracing::warn!("{}: {why}", path.display());
            Vec::new()
        });
        let mut writes = Writes { path, lines: kept.len(), ..Writes::default() };
        for written in kept {
            writes.put(written);
        }
        writes
    }

    /// Remembers a write. What cannot be written to disk is known until the host ends.
    pub fn note(&mut self, written: Written) {
        if !self.put(written.clone()) {
            return;
        }
        self.lines += 1;
        let kept = if self.lines > 2 * WRITES_MAX {
            self.lines = self.by_file.len();
            let all: Vec<&Written> = self.order.iter().filter_map(|key| self.by_file.get(key)).collect();
            let dir = self.path.parent().unwrap_or(Path::new("/"));
            lines::rewrite(&WRITES, dir, NAME, all).map(drop)
        } else {
            lines::append(&WRITES, &self.path, std::slice::from_ref(&written)).map(drop)
        };
        if let Err(error) = kept {
            tracing::warn!("{}: {error}", self.path.display());
        }
    }

    /// Whether it is news.
    fn put(&mut self, written: Written) -> bool {
        let key = (written.stamp.dev, written.stamp.ino);
        match self.by_file.insert(key, written.clone()) {
            Some(before) if before == written => return false,
            Some(_) => self.order.retain(|other| *other != key),
            None => {}
        }
        self.order.push_back(key);
        if self.order.len() > WRITES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_file.remove(&oldest);
        }
        true
    }

    /// Who wrote a file that has this content still, and whether nothing else of it was touched since.
    pub fn writer(&self, stamp: &Stamp) -> Option<(&Written, bool)> {
        let known = self.by_file.get(&(stamp.dev, stamp.ino))?;
        let is_same = known.stamp.modified_ns == stamp.modified_ns;
        is_same.then_some((known, known.stamp.changed_ns == stamp.changed_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::ActorId;

    fn written(path: &Path, actor: &str) -> Written {
        Written {
            stamp: Stamp::of(&std::fs::metadata(path).unwrap()),
            path: path.display().to_string(),
            actor: Actor { id: ActorId([1; 32]), handle: actor.parse().unwrap() },
            act: Some(7),
            session: SessionId::from_random_bits(1),
            known: "run".into(),
        }
    }

    #[test]
    fn a_file_is_its_writers_through_renames_and_for_the_next_host_until_it_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let (file, other) = (dir.path().join("x.sh"), dir.path().join("y.sh"));
        std::fs::write(&file, "a").unwrap();
        let mut writes = Writes::load(dir.path());
        writes.note(written(&file, "agent:a"));
        std::fs::rename(&file, &other).unwrap();
        let mut writes = Writes::load(dir.path());
        let stamp = || Stamp::of(&std::fs::metadata(&other).unwrap());
        assert_eq!(writes.writer(&stamp()).unwrap().0.actor.handle.to_string(), "agent:a");
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        std::fs::File::options().write(true).open(&other).unwrap().set_modified(later).unwrap();
        assert_eq!(writes.writer(&stamp()), None, "it has other content");
        writes.note(written(&other, "agent:b"));
        assert_eq!(writes.writer(&stamp()).unwrap().0.actor.handle.to_string(), "agent:b");
    }

    #[test]
    fn what_is_remembered_is_bounded_in_memory_and_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        std::fs::write(&file, "a").unwrap();
        let mut writes = Writes::load(dir.path());
        let mut one = written(&file, "agent:a");
        for ino in 0..3 * WRITES_MAX as u64 {
            one.stamp.ino = ino;
            writes.note(one.clone());
        }
        assert!(writes.by_file.len() <= WRITES_MAX && writes.order.len() == writes.by_file.len());
        let again = Writes::load(dir.path());
        assert_eq!((again.by_file.len(), again.lines <= 2 * WRITES_MAX), (WRITES_MAX, true));
        assert!(again.by_file.contains_key(&(one.stamp.dev, one.stamp.ino)), "the newest stay");
    }
}
