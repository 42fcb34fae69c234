//! The kernel, in calls that cannot be misused. Everything here is non-blocking but [`poll`].

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The result of a call that gives -1 on failure.
pub fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The number of an error; EIO where it has none.
#[must_use]
pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Owns a descriptor that a call just returned.
pub fn own(result: i32) -> io::Result<OwnedFd> {
    // SAFETY: the kernel just opened this descriptor for us; nobody else owns it.
    check(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A path or text for the kernel; EINVAL where it contains a zero byte.
pub fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// A word of the command line, to be written over: `ps` shows what stands there then.
///
/// # Safety
///
/// `words` has `count` texts that end with a zero byte and live as long as the process; nothing else reads or writes this one.
pub unsafe fn word(count: i32, words: *const *mut libc::c_char, at: i32) -> Option<&'static mut [u8]> {
    if words.is_null() || at >= count {
        return None;
    }
    // SAFETY: there are so many, and each ends with a zero byte, which stays as it is.
    unsafe {
        let text = *words.add(at as usize);
        (!text.is_null()).then(|| std::slice::from_raw_parts_mut(text.cast(), libc::strlen(text)))
    }
}

fn clock_ms(clock: libc::clockid_t) -> u64 {
    // SAFETY: timespec is plain numbers; all zeros is one.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// A clock that never goes back.
#[must_use]
pub fn monotonic_ms() -> u64 {
    clock_ms(libc::CLOCK_MONOTONIC)
}

/// Since the epoch.
#[must_use]
pub fn epoch_ms() -> u64 {
    clock_ms(libc::CLOCK_REALTIME)
}

/// A clock that never goes back, and goes on while the machine sleeps.
#[must_use]
pub fn boottime_ms() -> u64 {
    clock_ms(libc::CLOCK_BOOTTIME)
}

fn at(ms: u64) -> libc::itimerspec {
    let time = |ms: u64| libc::timespec { tv_sec: (ms / 1000) as _, tv_nsec: (ms % 1000 * 1_000_000) as _ };
    libc::itimerspec { it_interval: time(0), it_value: time(ms) }
}

/// A descriptor that becomes readable at a moment of [`boottime_ms`]; never, until it was set.
pub fn alarm() -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved.
    own(unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })
}

/// Sets an [`alarm`]; a moment that has passed counts. 0 is never.
pub fn set_alarm(alarm: BorrowedFd<'_>, at_ms: u64) -> io::Result<()> {
    // SAFETY: the time is a local; the one before is not asked for.
    let set =
        unsafe { libc::timerfd_settime(alarm.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &at(at_ms), std::ptr::null_mut()) };
    check(set).map(|_| ())
}

/// A timer of the kernel's that kills this process, also where it is stopped.
#[derive(Debug)]
pub struct Doom(libc::timer_t);

impl Doom {
    /// One that is not set.
    pub fn new() -> io::Result<Doom> {
        // SAFETY: sigevent is plain numbers; all zeros is one.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGKILL;
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: both are locals of the right types.
        check(unsafe { libc::timer_create(libc::CLOCK_BOOTTIME, &mut event, &mut timer) })?;
        Ok(Doom(timer))
    }

    /// At a moment of [`boottime_ms`]; 0 is never.
    pub fn set(&self, at_ms: u64) -> io::Result<()> {
        // SAFETY: the timer is ours; the one before is not asked for.
        check(unsafe { libc::timer_settime(self.0, libc::TIMER_ABSTIME, &at(at_ms), std::ptr::null_mut()) }).map(|_| ())
    }
}

/// A slot that is not looked at. (A descriptor with no events asked for would still report a hang-up, for ever.)
pub const NOT_POLLED: libc::pollfd = libc::pollfd { fd: -1, events: 0, revents: 0 };

/// A slot for one descriptor.
#[must_use]
pub fn polled(fd: BorrowedFd<'_>, events: i16) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }
}

/// Waits; `None` waits for ever. Interrupted counts as nothing ready.
pub fn poll(slots: &mut [libc::pollfd], timeout_ms: Option<u64>) -> usize {
    let timeout = timeout_ms.map_or(-1, |ms| ms.min(i32::MAX as u64) as i32);
    // SAFETY: the slice is valid for its length.
    let ready = unsafe { libc::poll(slots.as_mut_ptr(), slots.len() as libc::nfds_t, timeout) };
    if ready <= 0 {
        // After an error the kernel has not touched the results of the last round.
        slots.iter_mut().for_each(|slot| slot.revents = 0);
    }
    ready.max(0) as usize
}

/// Whether the other side of a socket is gone, now.
#[must_use]
pub fn has_hung_up(socket: BorrowedFd<'_>) -> bool {
    let mut slot = [polled(socket, libc::POLLRDHUP)];
    poll(&mut slot, Some(0));
    slot[0].revents & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

/// What a socket had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A datagram: it is in the buffer.
    Datagram,
    /// A datagram larger than the buffer; it is lost.
    Oversized,
    /// Nothing now.
    Nothing,
    /// The end.
    Gone,
}

/// Takes one datagram, of at most the buffer's capacity, into the buffer.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Received {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    let capacity = buffer.capacity();
    buffer.clear();
    // SAFETY: so much is allocated; MSG_TRUNC tells the real length but writes no more than that.
    let receive = |to: *mut u8| unsafe { libc::recv(socket.as_raw_fd(), to.cast(), capacity, flags) };
    let mut count = receive(buffer.as_mut_ptr());
    if count < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECONNRESET) {
        // Told once, before what the other side had sent; that is still there.
        count = receive(buffer.as_mut_ptr());
    }
    match count {
        // An empty datagram and the end look the same.
        0 if has_hung_up(socket) => Received::Gone,
        0.. if count as usize > capacity => Received::Oversized,
        0.. => {
            // SAFETY: the kernel wrote so many bytes, and they fit.
            unsafe { buffer.set_len(count as usize) };
            Received::Datagram
        }
        _ => match io::Error::last_os_error().raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Received::Nothing,
            _ => Received::Gone,
        },
    }
}

/// Sends one datagram; an error where it cannot be queued now.
pub fn send(socket: BorrowedFd<'_>, datagram: &[u8]) -> io::Result<()> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the slice is valid for its length.
    let sent = unsafe { libc::send(socket.as_raw_fd(), datagram.as_ptr().cast(), datagram.len(), flags) };
    check(sent as i32).map(|_| ())
}

/// Closes a connection so that the other side finds what was sent to it. Closing a unix socket that has unread input
/// resets the other side, which then sees an error before our last words.
pub fn close_after_last_words(socket: OwnedFd) {
    // SAFETY: no memory is involved.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RD) };
    let mut scrap = Vec::with_capacity(16);
    while matches!(receive(socket.as_fd(), &mut scrap), Received::Datagram | Received::Oversized) {}
}

/// Reads what is there into the buffer, at most `room` bytes; nothing read is the end.
pub fn read(file: BorrowedFd<'_>, buffer: &mut Vec<u8>, room: usize) -> io::Result<usize> {
    buffer.clear();
    buffer.reserve(room);
    // SAFETY: so much is reserved.
    let count = unsafe { libc::read(file.as_raw_fd(), buffer.as_mut_ptr().cast(), room) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel wrote so many bytes.
    unsafe { buffer.set_len(count) };
    Ok(count)
}

/// Writes what fits.
pub fn write(file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the slice is valid for its length.
    let count = unsafe { libc::write(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Opens a path; always close-on-exec.
pub fn open(path: &CStr, flags: i32, mode: libc::mode_t) -> io::Result<OwnedFd> {
    // SAFETY: the path ends with a zero byte.
    own(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, libc::c_uint::from(mode)) })
}

/// How often a lock is tried for: a host that looks whether a keeper lives has it for some microseconds.
const LOCK_TRIES: u32 = 20;
/// And how long between two tries.
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// Locks a file for this process; an error where another process has it locked. A file system without locks is no reason to stop.
pub fn lock(file: BorrowedFd<'_>) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        // SAFETY: the descriptor is open; no memory is involved.
        match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOCK_PAUSE),
            Ok(_) | Err(_) => return Ok(()),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EWOULDBLOCK))
}

/// Whether a path still names this file.
#[must_use]
pub fn is_at(file: BorrowedFd<'_>, path: &CStr) -> bool {
    // SAFETY: stat is plain numbers; all zeros is one.
    let (mut open, mut named): (libc::stat, libc::stat) = unsafe { std::mem::zeroed() };
    // SAFETY: both outlive the calls; the path ends with a zero byte.
    let found = unsafe { libc::fstat(file.as_raw_fd(), &mut open) == 0 && libc::lstat(path.as_ptr(), &mut named) == 0 };
    found && (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino)
}

/// Removes a file; that it is not there is no error worth telling.
pub fn unlink(path: &CStr) {
    // SAFETY: the path ends with a zero byte.
    unsafe { libc::unlink(path.as_ptr()) };
}

/// Sends a signal. Whoever is gone already, or not ours to signal, is skipped.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: no memory is involved.
    unsafe { libc::kill(pid, signal) };
}

/// One ended child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// This one, with its wait status.
    Child(i32, i32),
    /// None has ended now.
    NoneEnded,
    /// There is none at all.
    NoChildren,
}

/// Reaps one ended child, whoever it is.
#[must_use]
pub fn reap() -> Reaped {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
        0 => Reaped::NoneEnded,
        pid if pid > 0 => Reaped::Child(pid, status),
        _ => Reaped::NoChildren,
    }
}

/// Blocks every signal and gives a descriptor that becomes readable when a child ends. The dispositions of a host that
/// ignores children's ends would be inherited and make the kernel throw their status away.
pub fn signals() -> io::Result<OwnedFd> {
    // SAFETY: a sigset_t may be zeroed and is then filled by sigfillset/sigemptyset; all pointers are to locals.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        check(libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut()))?;
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        own(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
    }
}

/// A new listening socket, and newcomers from it.
pub mod socket {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    /// Newcomers the kernel keeps for us.
    const BACKLOG: i32 = 64;

    /// Binds a listening socket. A path too long for a socket's address goes through its directory.
    pub fn listen(path: &[u8]) -> io::Result<OwnedFd> {
        // SAFETY: no memory is involved.
        let socket = own(unsafe {
            libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)
        })?;
        // SAFETY: sockaddr_un is plain numbers; all zeros is one.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let directory;
        let detour;
        let mut name = path;
        if path.len() >= address.sun_path.len() {
            let invalid = || io::Error::from_raw_os_error(libc::ENAMETOOLONG);
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            let (parent, file) = path.parent().zip(path.file_name()).ok_or_else(invalid)?;
            directory = open(&c_string(parent.as_os_str().as_bytes())?, libc::O_PATH | libc::O_DIRECTORY, 0)?;
            detour = [format!("/proc/self/fd/{}/", directory.as_raw_fd()).as_bytes(), file.as_bytes()].concat();
            name = &detour;
            if name.len() >= address.sun_path.len() {
                return Err(invalid());
            }
        }
        for (to, from) in address.sun_path.iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        let length = std::mem::size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is valid for its length.
        check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
        // SAFETY: no memory is involved.
        check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
        Ok(socket)
    }

    /// Accepts one newcomer.
    pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the address is not asked for.
        own(unsafe { libc::accept4(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags) })
    }

    /// Process and user of the other side, as they were when it connected.
    pub fn peer(socket: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
        let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut length = std::mem::size_of_val(&peer) as libc::socklen_t;
        // SAFETY: `peer` and `length` are locals of the right sizes.
        let result = unsafe {
            let to = (&raw mut peer).cast();
            libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, to, &mut length)
        };
        check(result).map(|_| (peer.pid as u32, peer.uid))
    }
}

/// The null device, for the standard streams.
pub fn null() -> io::Result<File> {
    open(c"/dev/null", libc::O_RDWR, 0).map(File::from)
}

/// Makes `target` another name of `file`.
pub fn redirect(file: BorrowedFd<'_>, target: i32) -> io::Result<()> {
    // SAFETY: no memory is involved; the standard streams are not owned by anything in this process.
    check(unsafe { libc::dup2(file.as_raw_fd(), target) }).map(|_| ())
}
