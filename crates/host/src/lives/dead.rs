//! Proof that a session's keeper is gone.
//!
//! A keeper locks its ring before it starts anything, and the kernel keeps the lock until the process is gone. A missing socket
//! proves nothing: anybody of the same user can remove it, and a logout removes the whole directory. Keepers of earlier versions
//! do not lock: they are looked for by their command line, which has the session's id. A program of this user that pretends to be
//! one makes the proof fail, and with it the recovery; it can never make one succeed.

use holdfast_types::SessionId;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::path::Path;

/// How the program of every keeper's file begins.
const KEEPER: &[u8] = b"holdfast-keeper";

/// Why another life must not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alive {
    /// Somebody has the ring's lock.
    Locked,
    /// This process says that it keeps the session.
    Process(u32),
}

/// The ring of a keeper that is gone, locked by us: nobody else begins another life meanwhile.
#[derive(Debug)]
pub(super) struct Grave {
    /// None where there is no ring.
    pub ring: Option<File>,
}

/// Whether a keeper has its ring locked.
pub(crate) fn is_locked(ring: &Path) -> bool {
    // It is let go of at once: the descriptor is closed here.
    File::open(ring)
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK))
}

/// Proves that no keeper of this session lives. Reads all of `/proc` unless the machine was started anew since.
pub(super) fn prove(dir: &Path, id: SessionId, rebooted: bool) -> io::Result<Result<Grave, Alive>> {
    let ring = match File::open(dir.join("ring")) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // Another failure is a file system without locks: what follows has to do.
    if let Some(file) = &ring
        && flock(file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
    {
        return Ok(Err(Alive::Locked));
    }
    if !rebooted && let Some(pid) = claims(&id.to_string())? {
        return Ok(Err(Alive::Process(pid)));
    }
    Ok(Ok(Grave { ring }))
}

/// The keeper of a session, whoever started it. Reads all of `/proc`.
pub(crate) fn keeper_of(id: SessionId) -> io::Result<Option<u32>> {
    claims(&id.to_string())
}

/// A process that says of itself that it keeps this session.
fn claims(id: &str) -> io::Result<Option<u32>> {
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // One that is gone meanwhile, or has ended and was not collected yet, has no words.
        let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { continue };
        let mut words = line.split(|byte| *byte == 0);
        let program = words.next().and_then(|word| word.rsplit(|byte| *byte == b'/').next()).unwrap_or_default();
        if program.starts_with(KEEPER) && words.next() == Some(id.as_bytes()) && is_ours(pid) {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}

/// Whether a process is this user's: a keeper is, and nobody else's process prevents a recovery. Who owns its directory says nothing:
/// that of a process that cannot be read is root's.
fn is_ours(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse::<u32>().ok());
    uid == Some(rustix::process::getuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;

    #[test]
    fn a_locked_ring_or_a_process_with_the_sessions_name_keeps_it_from_another_life() {
        let dir = tempfile::tempdir().unwrap();
        let id = SessionId::from_random_bits(u128::from(std::process::id()) << 64 | 0xdead);
        assert!(matches!(prove(dir.path(), id, false).unwrap(), Ok(Grave { ring: None })));
        let ring = File::create(dir.path().join("ring")).unwrap();
        assert!(!is_locked(&dir.path().join("ring")));
        flock(&ring, FlockOperation::LockExclusive).unwrap();
        assert!(is_locked(&dir.path().join("ring")));
        assert_eq!(prove(dir.path(), id, true).unwrap().unwrap_err(), Alive::Locked);
        drop(ring);
        let grave = prove(dir.path(), id, false).unwrap().unwrap();
        assert_eq!(prove(dir.path(), id, false).unwrap().unwrap_err(), Alive::Locked, "one at a time");
        drop(grave);
        let mut posing = std::process::Command::new("tail")
            .arg0("/x/holdfast-keeper-0")
            .args([&id.to_string(), "-f", "/dev/null"])
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let seen = || prove(dir.path(), id, false).unwrap().err();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while seen().is_none() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(seen(), Some(Alive::Process(posing.id())));
        posing.kill().unwrap();
        posing.wait().unwrap();
        assert_eq!(seen(), None);
    }
}
