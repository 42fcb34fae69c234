//! Where a process comes from: the process at the other end of a socket, those above it, and what each was started with.

use crate::proc::{Stat, small};
use crate::tree::{Process, read};
use holdfast_graph::ProcessId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{PidfdFlags, pidfd_open};
use std::io::Read;

/// A parent may end while it is looked at; its child has another one then. Nobody ends this often in a row by chance.
const TRIES_MAX: usize = 4;
/// What nearly every environment fits: it is read at once then.
const VARIABLES_BYTES: usize = 16 << 10;

/// The process that connected to a socket, held so that its pid is not another's meanwhile.
#[derive(Debug)]
pub struct Peer {
    id: ProcessId,
    held: OwnedFd,
}

impl Peer {
    /// Of a connected unix socket. None: it is gone, or of another pid namespace. To be asked as soon as it connected.
    pub fn of(socket: impl AsFd) -> Option<Peer> {
        let pid = rustix::net::sockopt::socket_peercred(socket).ok()?.pid;
        let held = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let peer = Peer { id: read(u32::try_from(pid.as_raw_nonzero().get()).ok()?)?.id(), held };
        peer.is_there().then_some(peer)
    }

    /// Who it is.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// Whether it still runs: as long as it does, its pid is its own.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(&self.held, PollFlags::IN)], Some(&now)), Ok(0))
    }
}

/// A process and those above it, nearest first, up to one that has no parent. None: there are more than `max`, or they changed
/// faster than they could be read.
#[must_use]
pub fn ancestors(of: ProcessId, max: usize) -> Option<Vec<Process>> {
    'again: for _ in 0..TRIES_MAX {
        let mut found = vec![read(of.pid).filter(|process| process.id() == of)?];
        while let Some(last) = found.last().filter(|last| last.parent > 0) {
            if found.len() >= max {
                return None;
            }
            let (Some(above), Some(now)) = (read(last.parent), read(last.pid)) else { continue 'again };
            // A child is older than nobody above it: another process may have got the pid of one that ended.
            if !now.is(last) || now.parent != last.parent || above.start_time > last.start_time {
                continue 'again;
            }
            found.push(above);
        }
        return Some(found);
    }
    None
}

/// A process, and whom it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kin {
    /// Who it is.
    pub id: ProcessId,
    /// Its parent now.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its kernel session.
    pub session: u32,
}

/// Whom a process belongs to now; none where it is gone.
#[must_use]
pub fn kin(pid: u32) -> Option<Kin> {
    small(&format!("/proc/{pid}/stat"), |line| {
        let stat = Stat::parse(line)?;
        let id = ProcessId { pid: stat.pid, start: stat.number(22)? };
        Some(Kin { id, parent: stat.number(4)?, group: stat.number(5)?, session: stat.number(6)? })
    })?
}

/// The process that a thread belongs to.
#[must_use]
pub fn process_of(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The variables a process was started with, as far as `max` bytes have them; none where we may not know.
#[must_use]
pub fn variables(pid: u32, max: u64) -> Option<Vec<(String, String)>> {
    let mut bytes = Vec::with_capacity(VARIABLES_BYTES);
    std::fs::File::open(format!("/proc/{pid}/environ")).ok()?.take(max).read_to_end(&mut bytes).ok()?;
    let pairs = bytes.split(|byte| *byte == 0).map(|pair| String::from_utf8_lossy(pair).into_owned());
    Some(pairs.filter_map(|pair| pair.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))).collect())
}

/// A process's name: that of the file it runs, unless it chose another. Readable also where the process hides everything else.
#[must_use]
pub fn name(pid: u32) -> Option<String> {
    small(&format!("/proc/{pid}/comm"), |name| String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// The words a process was started with, as far as `max` bytes have them.
#[must_use]
pub fn words(pid: u32, max: u64) -> Vec<String> {
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(format!("/proc/{pid}/cmdline")).and_then(|file| file.take(max).read_to_end(&mut bytes));
    let words = bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    if read.is_ok() { words.filter(|word| !word.is_empty()).collect() } else { Vec::new() }
}

/// The parent of a process, as it is now.
#[must_use]
pub fn parent_of(of: ProcessId) -> Option<ProcessId> {
    let process = read(of.pid).filter(|process| process.id() == of)?;
    read(process.parent).map(|parent| parent.id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::process_id;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_below_this_one_with_what_it_was_started_with() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "cat; exit"]).env_clear().env("PATH", "/usr/bin:/bin").env("MARK", "a=b");
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let id = process_id(shell.id()).unwrap();
        let above = ancestors(id, 64).unwrap();
        assert_eq!((above[0].pid, above[1].pid), (shell.id(), std::process::id()));
        assert_eq!(above.last().unwrap().parent, 0);
        assert_eq!(ancestors(id, 1), None, "there are more");
        assert_eq!(ancestors(ProcessId { start: id.start + 1, ..id }, 64), None, "another process");
        assert_eq!(parent_of(id), process_id(std::process::id()));
        assert!(variables(shell.id(), 4096).unwrap().contains(&("MARK".into(), "a=b".into())));
        assert_eq!(words(shell.id(), 4096)[1..], ["-c", "cat; exit"]);
        assert_eq!(name(shell.id()).as_deref(), Some("sh"));
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }

    #[test]
    fn who_connected_is_known_by_its_socket_as_long_as_it_runs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let _ours = UnixStream::connect(&path).unwrap();
        let peer = Peer::of(listener.accept().unwrap().0).unwrap();
        assert_eq!((peer.id().pid, peer.is_there()), (std::process::id(), true));
        let script = "import socket,sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); sys.stdin.read()";
        let mut other = Command::new("python3").args(["-c", script]).arg(&path).stdin(Stdio::piped()).spawn().unwrap();
        let theirs = listener.accept().unwrap().0;
        let peer = Peer::of(&theirs).unwrap();
        assert_eq!(peer.id().pid, other.id());
        drop(other.stdin.take());
        other.wait().unwrap();
        assert!(!peer.is_there() && Peer::of(&theirs).is_none());
    }
}
