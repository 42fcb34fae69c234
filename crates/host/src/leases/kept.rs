//! The number of this host's lease, for the next host of the same home on the same machine since the same start.
//!
//! A copy of the file elsewhere must not be taken for it: two hosts would renew one lease, each believing that it is its own. So it names the
//! start of the machine and the directory it lies in, by number.

use holdfast_store::{LEASE, Survives, get_json, put_json};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const FILE: &str = "lease.json";

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    lease: i64,
    /// The machine's start.
    boot: String,
    /// The state directory's device and number.
    place: (u64, u64),
}

fn place(state: &Path) -> io::Result<(u64, u64)> {
    std::fs::metadata(state).map(|meta| (meta.dev(), meta.ino()))
}

/// What an earlier host left here.
pub fn load(state: &Path) -> Option<i64> {
    let kept: Kept = get_json(&LEASE, &state.join(FILE)).ok().flatten()?;
    let is_here =
        !kept.boot.is_empty() && kept.boot == crate::lives::boot_id() && Some(kept.place) == place(state).ok();
    is_here.then_some(kept.lease)
}

/// Leaves it for the next.
pub fn save(state: &Path, lease: i64) -> io::Result<()> {
    let kept = Kept { lease, boot: crate::lives::boot_id().to_owned(), place: place(state)? };
    put_json(&LEASE, state, FILE, &kept, Survives::Crash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_file_is_no_lease() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        save(here.path(), 77).unwrap();
        assert_eq!(load(here.path()), Some(77));
        std::fs::copy(here.path().join(FILE), there.path().join(FILE)).unwrap();
        assert_eq!(load(there.path()), None);
        let after = Kept { lease: 77, boot: "another".into(), place: place(here.path()).unwrap() };
        put_json(&LEASE, here.path(), FILE, &after, Survives::Crash).unwrap();
        assert_eq!(load(here.path()), None, "the machine was started since");
    }
}
