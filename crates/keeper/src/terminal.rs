//! The session's terminal: the master side, and a slave side of our own.
//!
//! The slave is kept open so that the master never hangs up while the child lives: a child that closes its terminal and
//! opens it again finds it, and the session's end is the child's end and nothing else. It also answers what the child has
//! not yet read. Where somebody hangs the terminal up (`login` does) it is opened anew.

use holdfast_abi::log::{FLAG_ECHO_OFF, FLAG_ECHO_ON};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::sys;

/// The terminal.
#[derive(Debug)]
pub struct Terminal {
    master: OwnedFd,
    slave: OwnedFd,
}

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// This many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// Hung up.
    HungUp,
    /// The ring's page cannot be had: the file system is full. Nothing is read; try again.
    NoPage,
}

/// Modes and what waits, for the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Probe {
    /// The foreground process group, 0 where there is none.
    pub foreground: u32,
    /// Input modes.
    pub iflag: u32,
    /// Output modes.
    pub oflag: u32,
    /// Local modes.
    pub lflag: u32,
    /// Input the child has not read.
    pub unread: u32,
}

const SLAVE_FLAGS: i32 = libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK;

impl Terminal {
    /// Opens a terminal of this size.
    pub fn open(cols: u16, rows: u16) -> io::Result<Terminal> {
        // SAFETY: no memory is involved.
        let master = sys::own(unsafe { libc::posix_openpt(SLAVE_FLAGS | libc::O_CLOEXEC) })?;
        let unlock = 0i32;
        // SAFETY: the ioctl takes a pointer to an int, which outlives the call.
        sys::check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlock) })?;
        let slave = peer(&master)?;
        let terminal = Terminal { master, slave };
        let mut modes = modes(terminal.slave.as_fd())?;
        modes.c_iflag |= libc::IUTF8;
        // SAFETY: `modes` outlives the call.
        sys::check(unsafe { libc::tcsetattr(terminal.slave.as_raw_fd(), libc::TCSANOW, &modes) })?;
        terminal.resize(cols, rows)?;
        Ok(terminal)
    }

    /// A path by which this process, and a child of it before its exec, opens the slave. Not its name in `/dev/pts`: the terminal of a
    /// portable session is in a devpts of its own, and that name is another terminal's.
    pub fn path(&self) -> io::Result<CString> {
        sys::c_string(format!("/proc/self/fd/{}", self.slave.as_raw_fd()).as_bytes())
    }

    /// The slave's device number.
    #[must_use]
    pub fn device(&self) -> u64 {
        device(self.slave.as_fd()).map_or(0, |(device, _)| device)
    }

    /// What to poll.
    #[must_use]
    pub fn master(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    /// Opens the slave anew after a hang-up.
    pub fn reopen(&mut self) -> io::Result<()> {
        self.slave = peer(&self.master)?;
        Ok(())
    }

    /// Reads output to where it belongs.
    ///
    /// # Safety
    /// `room` bytes from `to` on must be writable memory that nobody holds a reference to.
    pub unsafe fn read(&self, to: *mut u8, room: usize) -> Output {
        // SAFETY: as promised by the caller.
        let count = unsafe { libc::read(self.master.as_raw_fd(), to.cast(), room) };
        match count {
            1.. => Output::Bytes(count as usize),
            0 => Output::HungUp,
            _ => match io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Output::Nothing,
                Some(libc::EFAULT) => Output::NoPage,
                _ => Output::HungUp,
            },
        }
    }

    /// Writes input, as much as fits.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        sys::write(self.master.as_fd(), bytes)
    }

    /// Sets the size; the kernel tells the foreground.
    pub fn resize(&self, cols: u16, rows: u16) -> io::Result<()> {
        let size = libc::winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: `size` outlives the call.
        sys::check(unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }).map(|_| ())
    }

    /// What the terminal does with what is typed now, as a flag of the log. A line that is edited and not echoed is likely a
    /// secret. A program that reads bytes as they come shows them by itself, or does not: that is not known here.
    #[must_use]
    pub fn echo_flag(&self) -> u8 {
        match modes(self.master.as_fd()) {
            Ok(modes) if modes.c_lflag & libc::ECHO != 0 => FLAG_ECHO_ON,
            Ok(modes) if modes.c_lflag & libc::ICANON != 0 => FLAG_ECHO_OFF,
            Ok(_) | Err(_) => 0,
        }
    }

    /// The foreground process group.
    #[must_use]
    pub fn foreground(&self) -> Option<i32> {
        let mut group: libc::pid_t = 0;
        // SAFETY: `group` outlives the call.
        let result = unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCGPGRP, &raw mut group) };
        sys::check(result).ok().filter(|_| group > 1).map(|_| group)
    }

    /// Modes and what waits.
    #[must_use]
    pub fn probe(&self) -> Probe {
        let mut unread = 0i32;
        // SAFETY: `unread` outlives the call.
        unsafe { libc::ioctl(self.slave.as_raw_fd(), libc::FIONREAD, &raw mut unread) };
        let probe = Probe {
            foreground: self.foreground().unwrap_or(0) as u32,
            unread: unread.max(0) as u32,
            ..Probe::default()
        };
        match modes(self.master.as_fd()) {
            Ok(modes) => Probe { iflag: modes.c_iflag, oflag: modes.c_oflag, lflag: modes.c_lflag, ..probe },
            Err(_) => probe,
        }
    }

    /// Drops the input the child has not read.
    pub fn flush(&self) {
        // SAFETY: no memory is involved. On the master "output" is what goes to the slave.
        unsafe {
            libc::tcflush(self.master.as_raw_fd(), libc::TCOFLUSH);
            libc::tcflush(self.slave.as_raw_fd(), libc::TCIFLUSH);
        }
    }
}

/// The slave, by its master.
fn peer(master: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved.
    sys::own(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, SLAVE_FLAGS | libc::O_CLOEXEC) })
}

/// A terminal's modes; an error where it is none.
pub fn modes(terminal: BorrowedFd<'_>) -> io::Result<libc::termios> {
    // SAFETY: termios is plain numbers; all zeros is one.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: `modes` outlives the call.
    sys::check(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &mut modes) })?;
    Ok(modes)
}

/// Number and owner of a device; `None` where it is none.
#[must_use]
pub fn device(file: BorrowedFd<'_>) -> Option<(u64, u32)> {
    // SAFETY: stat is plain numbers; all zeros is one.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` outlives the call.
    let known = unsafe { libc::fstat(file.as_raw_fd(), &mut stat) } == 0;
    (known && stat.st_mode & libc::S_IFMT == libc::S_IFCHR).then_some((stat.st_rdev, stat.st_uid))
}
