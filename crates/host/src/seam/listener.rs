//! Where the kernel asks: what it asks is taken, and answered once.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Data {
    nr: i32,
    arch: u32,
    instruction_pointer: u64,
    args: [u64; 6],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Notif {
    id: u64,
    pid: u32,
    flags: u32,
    data: Data,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Resp {
    id: u64,
    val: i64,
    error: i32,
    flags: u32,
}

/// `_IOWR('!', number, size)` and `_IOW`, as `linux/seccomp.h` has them.
const fn request(direction: u64, number: u64, size: usize) -> libc::c_ulong {
    ((direction << 30) | ((size as u64) << 16) | ((b'!' as u64) << 8) | number) as libc::c_ulong
}
const RECV: libc::c_ulong = request(3, 0, size_of::<Notif>());
const SEND: libc::c_ulong = request(3, 1, size_of::<Resp>());
const ID_VALID: libc::c_ulong = request(1, 2, 8);
const SET_FLAGS: libc::c_ulong = request(1, 4, 8);
const SYNC_WAKE_UP: libc::c_ulong = 1;
const CONTINUE: u32 = 1;

/// A process that is about to become another program, and waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Known by this until it is answered.
    pub id: u64,
    /// Its thread.
    pub pid: u32,
    /// The call's number, architecture and arguments.
    pub number: u32,
    pub arch: u32,
    pub args: [u64; 6],
}

/// The listener of one session.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

impl Listener {
    pub fn new(fd: OwnedFd) -> Listener {
        // Who asks stops running when who answers begins. A kernel before 6.6 does not know it, and does the same later.
        // SAFETY: a number is passed, and no memory.
        let _ = unsafe { libc::ioctl(fd.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) };
        Listener(fd)
    }

    /// The next question; none where its process is gone already.
    pub fn receive(&self) -> io::Result<Option<Asked>> {
        // The kernel takes no other.
        let mut asked = Notif::default();
        // SAFETY: the kernel writes as many bytes as the request names, which is the size of what is given.
        let got = unsafe { libc::ioctl(self.0.as_raw_fd(), RECV as _, &raw mut asked) };
        if got == 0 {
            let Notif { id, pid, data: Data { nr, arch, args, .. }, .. } = asked;
            return Ok(Some(Asked { id, pid, number: nr as u32, arch, args }));
        }
        match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR | libc::EAGAIN)) => Ok(None),
            error => Err(error),
        }
    }

    /// Whether its process still waits: what was read of a process with this pid was of that one.
    pub fn waits(&self, id: u64) -> bool {
        // SAFETY: the kernel reads the eight bytes of `id`.
        unsafe { libc::ioctl(self.0.as_raw_fd(), ID_VALID as _, &raw const id) == 0 }
    }

    /// Lets it go on.
    pub fn allow(&self, id: u64) {
        self.send(Resp { id, flags: CONTINUE, ..Resp::default() });
    }

    /// Refuses it with this error number.
    pub fn refuse(&self, id: u64, errno: i32) {
        self.send(Resp { id, error: -errno, ..Resp::default() });
    }

    /// A process that is gone needs no answer.
    fn send(&self, answer: Resp) {
        // SAFETY: the kernel reads as many bytes as the request names, which is the size of what is given.
        let _ = unsafe { libc::ioctl(self.0.as_raw_fd(), SEND as _, &raw const answer) };
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
