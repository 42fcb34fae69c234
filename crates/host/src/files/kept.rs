//! Writes that are remembered, and the bytes of files before and after them: `files/` in the session's directory. Bounded: the oldest go
//! first. Blocks.

use holdfast_store::{FILES, Survives, lines};
use holdfast_types::{ActorId, Hash};
use holdfast_wire::files::FileChange;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Writes that are remembered in a session.
const CHANGES_MAX: usize = 256;
/// Largest file whose bytes are kept: source code and notes, not disk images.
pub(super) const KEPT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// What is kept of all files of a session together.
const ALL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// A longer list is none of ours.
const LIST_BYTES_MAX: u64 = 16 * 1024 * 1024;
const LIST: &str = "changes";
/// How long bytes are kept that no write names: as long as an act waits for a human.
const WAITS_MAX: Duration = Duration::from_millis(holdfast_wire::gate::EXPIRES_MS);

/// A write, and what is needed to undo it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Change {
    #[serde(flatten)]
    pub view: FileChange,
    pub actor: ActorId,
    /// The upload it came by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

/// Where a session's writes are remembered.
#[derive(Debug, Clone)]
pub(super) struct Kept(PathBuf);

impl Kept {
    pub fn of(session: &Path) -> Kept {
        Kept(session.join("files"))
    }

    /// All of them, oldest first.
    pub fn all(&self) -> Vec<Change> {
        let path = self.0.join(LIST);
        let mut all: Vec<Change> = lines::load(&FILES, &path, LIST_BYTES_MAX).unwrap_or_else(|why| {
            tracing::warn!("{}: {why}", path.display());
            Vec::new()
        });
        for Change { view, .. } in &mut all {
            let has = |hash: &Option<Hash>| hash.is_none_or(|hash| self.0.join(hash.to_string()).exists());
            view.can_undo = has(&view.before);
            view.can_diff = view.can_undo && has(&view.after);
        }
        all
    }

    /// The last write of an actor that was not undone, and is not an undoing itself.
    pub fn last_of(&self, actor: ActorId, path: Option<&str>) -> Option<FileChange> {
        let all = self.all();
        let undone: Vec<u64> = all.iter().filter_map(|change| change.view.undoes).collect();
        let is_its = |Change { view, actor: by, .. }: &Change| {
            let is_open = view.undoes.is_none() && !undone.contains(&view.id);
            *by == actor && is_open && path.is_none_or(|path| path == view.path)
        };
        all.into_iter().rev().find(is_its).map(|change| change.view)
    }

    /// The bytes of a file as it once was, where they are kept. What is there is believed only if it is what it is called.
    pub fn bytes(&self, hash: Hash) -> Option<Vec<u8>> {
        let path = self.0.join(hash.to_string());
        let is_short = std::fs::metadata(&path).is_ok_and(|meta| meta.len() <= KEPT_BYTES_MAX);
        let bytes = if is_short { std::fs::read(path).ok()? } else { return None };
        (hash_of(&bytes) == hash).then_some(bytes)
    }

    /// Keeps bytes, if they are not too many.
    pub fn keep(&self, hash: Hash, bytes: &[u8]) -> io::Result<bool> {
        if bytes.len() as u64 > KEPT_BYTES_MAX {
            return Ok(false);
        }
        holdfast_store::make_dir(&self.0)?;
        holdfast_store::replace(&self.0, hash.to_string(), bytes, Survives::Crash)?;
        Ok(true)
    }

    /// Remembers a write under the next number.
    pub fn remember(&self, mut change: Change) -> io::Result<FileChange> {
        holdfast_store::make_dir(&self.0)?;
        let mut all = self.all();
        change.view.id = all.last().map_or(0, |last| last.view.id) + 1;
        lines::append(&FILES, &self.0.join(LIST), std::slice::from_ref(&change))?;
        all.push(change);
        self.shrink(&mut all)?;
        let last = self.all().pop().map(|change| change.view);
        last.ok_or_else(|| io::Error::other("what was written is not there"))
    }

    /// Forgets a write that was not done after all.
    pub fn forget(&self, id: u64) -> io::Result<()> {
        let all: Vec<Change> = self.all().into_iter().filter(|change| change.view.id != id).collect();
        lines::rewrite(&FILES, &self.0, LIST, all.iter()).map(drop)
    }

    /// Lets the oldest go until the rest fits, and bytes that nobody names.
    fn shrink(&self, all: &mut Vec<Change>) -> io::Result<()> {
        let mut stored = Vec::new();
        for entry in std::fs::read_dir(&self.0)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let (Ok(hash), Ok(meta)) = (name.parse::<Hash>(), entry.metadata()) {
                stored.push((hash, meta.len()));
            }
        }
        let mut from = all.len().saturating_sub(CHANGES_MAX);
        let named = |rest: &[Change]| -> HashSet<Hash> {
            rest.iter().flat_map(|change| [change.view.before, change.view.after]).flatten().collect()
        };
        let weight = |named: &HashSet<Hash>| -> u64 {
            stored.iter().filter(|(hash, _)| named.contains(hash)).map(|(_, bytes)| bytes).sum()
        };
        while from < all.len() && weight(&named(&all[from..])) > ALL_BYTES_MAX {
            from += 1;
        }
        let dropped = named(&all[..from]);
        if from > 0 {
            all.drain(..from);
            lines::rewrite(&FILES, &self.0, LIST, all.iter())?;
        }
        let named = named(all);
        for (hash, _) in stored.iter().filter(|(hash, _)| !named.contains(hash)) {
            let path = self.0.join(hash.to_string());
            // Those of an act that waits for a human are not named yet.
            let waits = |path: &Path| Some(path.metadata().ok()?.modified().ok()?.elapsed().ok()? < WAITS_MAX);
            if dropped.contains(hash) || waits(&path) != Some(true) {
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }
}

/// The SHA-256 of some bytes.
pub(super) fn hash_of(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_wire::files::HashKind;

    fn change(path: &str, before: Option<Hash>, after: Option<Hash>) -> Change {
        let view = FileChange {
            id: 0,
            path: path.into(),
            by: "agent:bot".parse().unwrap(),
            at_ms: 1,
            before,
            before_kind: HashKind::Sha256,
            after,
            after_kind: HashKind::Sha256,
            size: 1,
            can_undo: false,
            can_diff: false,
            undoes: None,
        };
        Change { view, actor: ActorId([1; 32]), part: None }
    }

    #[test]
    fn the_oldest_writes_are_forgotten_and_their_bytes_with_them() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::of(dir.path());
        let block = vec![7; KEPT_BYTES_MAX as usize - 8];
        let mut hashes = Vec::new();
        for number in 0..20u64 {
            let bytes = [&block[..], &number.to_le_bytes()].concat();
            let hash = hash_of(&bytes);
            assert!(kept.keep(hash, &bytes).unwrap());
            hashes.push(hash);
            let seen = kept.remember(change("/a", None, Some(hash))).unwrap();
            assert_eq!((seen.id, seen.can_undo), (number + 1, true));
        }
        let all = kept.all();
        assert_eq!((all.len(), all.first().unwrap().view.id), (16, 5), "16 of 4 MiB fit into 64");
        assert!(kept.bytes(hashes[3]).is_none() && kept.bytes(hashes[4]).is_some());
        assert!(!kept.keep(hashes[0], &vec![0; KEPT_BYTES_MAX as usize + 1]).unwrap(), "too large to be kept");
    }

    #[test]
    fn bytes_that_were_altered_are_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::of(dir.path());
        let hash = hash_of(b"right");
        kept.keep(hash, b"right").unwrap();
        assert_eq!(kept.bytes(hash).as_deref(), Some(&b"right"[..]));
        std::fs::write(dir.path().join("files").join(hash.to_string()), b"wrong").unwrap();
        assert_eq!(kept.bytes(hash), None);
    }
}
