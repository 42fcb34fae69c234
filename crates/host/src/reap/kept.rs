//! Since when a session is idle, on disk: the file `idle` in its directory. It goes before anything that uses the session takes effect.

use super::plan::Idle;
use holdfast_store::{IDLE, Survives, get_json, put_json};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

const NAME: &str = "idle";

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptIdle {
    /// In which run of the machine: the clock begins anew with each.
    pub boot: String,
    pub idle: Idle,
}

impl KeptIdle {
    /// Writes it.
    pub fn save(&self, dir: &Path) -> io::Result<()> {
        put_json(&IDLE, dir, NAME, self, Survives::Crash)
    }

    /// Reads it. What is damaged, or of another run of the machine, is as if nothing were known.
    pub fn load(dir: &Path, boot: &str) -> Option<KeptIdle> {
        let kept: KeptIdle = get_json(&IDLE, &dir.join(NAME)).ok().flatten()?;
        (kept.boot == boot && !boot.is_empty()).then_some(kept)
    }
}

/// Removes it. False: it is there, and cannot be removed.
pub(crate) fn forget(dir: &Path) -> bool {
    match std::fs::remove_file(dir.join(NAME)) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reap::plan::tests::print;

    #[test]
    fn what_is_kept_is_read_back_in_the_same_run_of_the_machine_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(KeptIdle::load(dir.path(), "b"), None);
        let kept = KeptIdle { boot: "b".into(), idle: Idle { since: 5, print: print(1), warned: None } };
        kept.save(dir.path()).unwrap();
        assert_eq!(KeptIdle::load(dir.path(), "b"), Some(kept));
        assert_eq!(KeptIdle::load(dir.path(), "c"), None);
        assert!(forget(dir.path()) && forget(dir.path()));
        std::fs::write(dir.path().join(NAME), b"holdfast idle 2 0000000000000000\n{}").unwrap();
        assert_eq!(KeptIdle::load(dir.path(), "b"), None);
    }
}
