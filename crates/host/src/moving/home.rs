//! Where a session's home is: one record beside its spec, and one function that writes it.
//!
//! While there is none, this host is its home. Once it is on disk the session never lives here again, whatever fails later: every way to
//! another life looks here first. It goes only with the whole directory, when the session is moved back or let go of.

use crate::leases::Intent;
use holdfast_store::{MOVED, PASSING, Survives, get_json, put_json};
use holdfast_wire::moves::MovedView;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

const NAME: &str = "moved";
/// The same, of a session whose home is a lease, before its record changes hands.
const INTENT: &str = "passing";

/// Says that a session's home is another host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Moved {
    pub view: MovedView,
    /// With this the other host begins its next life.
    pub key: String,
}

/// A move of a leased session whose commit was asked for: the store of leases knows whether it happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Passing {
    pub moved: Moved,
    pub intent: Intent,
}

/// Written before the store is asked, so that the next host knows what to ask for, and has the key. Blocks until it is on disk.
pub(super) fn intend(dir: &Path, passing: &Passing) -> io::Result<()> {
    put_json(&PASSING, dir, INTENT, passing, Survives::PowerCut)
}

/// What was intended and is not known to be over.
///
/// # Errors
///
/// There is something, and it cannot be read: nothing may go on then.
pub(crate) fn intended(dir: &Path) -> io::Result<Option<Passing>> {
    get_json(&PASSING, &dir.join(INTENT)).map_err(io::Error::other)
}

/// It is known: the record of the move is there, or it did not happen.
pub(super) fn known(dir: &Path) -> io::Result<()> {
    match std::fs::remove_file(dir.join(INTENT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The commit point of a move: from here on the other host is the session's home. Blocks until it is on disk.
pub(super) fn commit(dir: &Path, moved: &Moved) -> io::Result<()> {
    put_json(&MOVED, dir, NAME, moved, Survives::PowerCut)
}

/// After a commit that failed: nothing may be left of it.
pub(super) fn take_back(dir: &Path) -> io::Result<()> {
    match std::fs::remove_file(dir.join(NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The record, if there is one. One that cannot be read counts: what may live elsewhere does not live here.
pub(crate) fn load(dir: &Path) -> Option<Moved> {
    match get_json(&MOVED, &dir.join(NAME)) {
        Ok(found) => found,
        Err(_) => {
            let view = MovedView { host: "an unknown host".into(), at_ms: 0, arrived: false };
            Some(Moved { view, key: String::new() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_cannot_be_read_still_says_that_the_session_is_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        assert!(load(dir.path()).is_none());
        let view = MovedView { host: "gpu".into(), at_ms: 7, arrived: false };
        commit(dir.path(), &Moved { view: view.clone(), key: "k".into() }).unwrap();
        assert_eq!(load(dir.path()).unwrap().view, view);
        std::fs::write(dir.path().join(NAME), "holdfast moved 1 0\n{}").unwrap();
        assert!(load(dir.path()).unwrap().view.host.contains("unknown"));
    }
}
