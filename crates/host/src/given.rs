//! The host's socket where systemd listens on it: the host is started with it, neither binds nor removes it, and the next host gets it
//! again (`LISTEN_PID` and `LISTEN_FDS`, as in sd_listen_fds(3)).

use crate::file_id;
use holdfast_types::Home;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// The first descriptor that systemd passes.
const FIRST: RawFd = 3;

/// How long the host before us may take to write down what it must and go.
const LEAVE_MAX: Duration = Duration::from_secs(10);
/// How often we look whether it has gone.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The socket of this home, where whoever started this process passed one. A socket of another home is refused: nobody would find the
/// host there.
///
/// To be called once, before this process opens anything: the descriptor is taken as ours.
pub fn given(home: &Home) -> io::Result<Option<OwnedFd>> {
    let Some(count) = count(std::process::id(), |key| std::env::var_os(key)) else { return Ok(None) };
    if count != 1 {
        let what =
            format!("systemd passed {count} sockets, and the host takes one: check the unit holdfast-host.socket");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let path = format!("/proc/self/fd/{FIRST}");
    std::fs::symlink_metadata(&path).map_err(|_| io::Error::other("LISTEN_FDS is set, and no socket was passed"))?;
    // SAFETY: it is open, as we just saw, and by the protocol of LISTEN_FDS nobody else in this process uses it.
    let socket = unsafe { OwnedFd::from_raw_fd(FIRST) };
    // What the host starts has no use for it, and would hold it open.
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    let listener = UnixListener::from(socket);
    let address = listener.local_addr()?;
    if !rustix::net::sockopt::socket_acceptconn(&listener)?
        || address.as_pathname().is_none_or(|path| !is_same(path, &home.host_socket()))
    {
        let what = format!("systemd passed another socket than {}: check ListenStream=", home.host_socket().display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    listener.set_nonblocking(true)?;
    Ok(Some(listener.into()))
}

/// How many descriptors were passed to the process of this number.
fn count(own: u32, get: impl Fn(&str) -> Option<OsString>) -> Option<u32> {
    let number = |key: &str| get(key)?.to_str()?.parse::<u32>().ok();
    (number("LISTEN_PID")? == own).then(|| number("LISTEN_FDS")).flatten().filter(|count| *count > 0)
}

/// The same file by another way, as `/var/run` and `/run` are.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || file_id(one).is_some_and(|file| Some(file) == file_id(other))
}

/// Has the host that holds this lock leave, and takes the lock: since systemd listens on the socket's path, no client reaches the other
/// one. False where it cannot be found or does not leave.
pub fn relieve(lock: &File) -> io::Result<bool> {
    let inode = lock.metadata()?.ino();
    let holder = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
        holder(&locks, inode).filter(|pid| is_a_host(*pid)).and_then(Pid::from_raw)
    };
    let Some(pid) = holder() else { return Ok(false) };
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    // The number could have become another's before it was opened.
    if holder() != Some(pid) {
        return Ok(false);
    }
    tracing::info!(pid = pid.as_raw_nonzero().get(), "systemd listens now: the host before leaves, its sessions go on");
    pidfd_send_signal(process.as_fd(), Signal::TERM)?;
    let deadline = Instant::now() + LEAVE_MAX;
    loop {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(LOOK_EVERY),
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Who has the flock(2) lock of a file, by `/proc/locks`.
fn holder(locks: &str, inode: u64) -> Option<i32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()? == "FLOCK").then_some(())?;
        let pid = words.nth(2)?.parse().ok().filter(|pid| *pid > 0)?;
        (words.next()?.rsplit(':').next()?.parse() == Ok(inode)).then_some(pid)
    })
}

fn is_a_host(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == "holdfast-host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_another_process_are_not_ours() {
        let said = |pid: &'static str, fds: &'static str| {
            count(7, move |key| Some(if key == "LISTEN_PID" { pid } else { fds }.into()))
        };
        assert_eq!(said("7", "1"), Some(1));
        for (pid, fds) in [("8", "1"), ("7", "0"), ("7", "x"), ("", "1"), ("7", "-1")] {
            assert_eq!(said(pid, fds), None, "{pid} {fds}");
        }
        assert_eq!(count(7, |_| None), None);
    }

    #[test]
    fn the_holder_of_a_lock_is_the_one_of_its_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 08:01:77 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 12 08:01:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 08:01:78 0 EOF\n4: FLOCK  ADVISORY  WRITE 14 00:2c:77 0 EOF\n";
        assert_eq!(holder(locks, 77), Some(14));
        assert_eq!(holder(locks, 9), None);
        assert_eq!(holder("4: FLOCK  ADVISORY  WRITE 0 00:2c:77 0 EOF\n5: FLOCK", 77), None);
    }
}
