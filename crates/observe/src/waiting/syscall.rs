//! What a thread that sleeps is waiting for, by the system call it is in.
//!
//! `/proc/<pid>/task/<tid>/syscall` has the call's number and arguments. What the arguments point to is read from the
//! process's memory, which may change under us: the worst that comes of it is a wrong answer once.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, openat, statx};
use rustix::io::Errno;

use crate::proc::Proc;

/// Descriptors looked at in one poll or select: a shell has three, an editor twenty. More are no interactive program.
const FDS_MAX: u64 = 1024;
/// Of an epoll set, so much of the kernel's list is read: more than [`FDS_MAX`] lines are.
const EPOLL_BYTES_MAX: usize = 128 << 10;

/// No program has memory below this: smaller numbers are something else.
const LOWEST_ADDRESS: u64 = 4096;

/// The operations of a futex that takes a timeout are 9 or more, or 0: a smaller number is the length of a list.
const SURELY_POLL_MAX: u64 = 8;

/// `/dev/tty`: whatever the process's terminal is.
const DEV_TTY: (u32, u32) = (5, 0);

const POLLIN: u32 = 1;

/// The numbers of the calls that wait, on one kind of machine. Those it does not have are `NONE`.
struct Calls {
    read: [u64; 5],
    poll: [u64; 2],
    select: [u64; 2],
    epoll: [u64; 3],
    io_uring: u64,
    /// What poll and the timed sleeps turn into once a signal, or a freeze, has interrupted them.
    restart: u64,
}

const NONE: u64 = u64::MAX;

/// read, pread64, readv, preadv, preadv2; poll, ppoll; select, pselect6; epoll_wait, epoll_pwait, epoll_pwait2.
const X86_64: Calls = Calls {
    read: [0, 17, 19, 295, 327],
    poll: [7, 271],
    select: [23, 270],
    epoll: [232, 281, 441],
    io_uring: 426,
    restart: 219,
};

const AARCH64: Calls = Calls {
    read: [63, 67, 65, 69, 286],
    poll: [NONE, 73],
    select: [NONE, 72],
    epoll: [NONE, 22, 441],
    io_uring: 426,
    restart: 128,
};

/// The machine we run on, if we know its numbers.
const HERE: Option<&Calls> = if cfg!(target_arch = "x86_64") {
    Some(&X86_64)
} else if cfg!(target_arch = "aarch64") {
    Some(&AARCH64)
} else {
    None
};

/// What a thread is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Input of the session's terminal wakes it.
    Tty,
    /// It sleeps, and the terminal's input does not wake it.
    Elsewhere,
    /// It does not sleep.
    Runs,
    /// It may not be looked at.
    Unreadable,
    /// What it waits for cannot be seen: io_uring, a call of another machine's, a list that is too long.
    Opaque,
}

/// A call and what it was given, from a line `0 0x3 0x7ffc… … <stack> <program counter>`.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Running,
    /// It sleeps outside of any call: a page fault.
    NoCall,
    Call {
        number: u64,
        args: [u64; 6],
        stack: u64,
    },
}

fn parse(line: &[u8]) -> Option<Line> {
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Line::Running);
    }
    if first == "-1" {
        return Some(Line::NoCall);
    }
    let number = first.parse().ok()?;
    let mut hex = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let args = [hex()?, hex()?, hex()?, hex()?, hex()?, hex()?];
    Some(Line::Call { number, args, stack: hex()? })
}

/// The session's terminal, as one process sees it.
pub(super) struct Look<'a> {
    pub(super) proc: &'a mut Proc,
    /// The process's directory.
    pub(super) dir: BorrowedFd<'a>,
    /// The terminal's device.
    pub(super) device: (u32, u32),
    /// The session's terminal is the process's own, so that `/dev/tty` is it.
    pub(super) is_own: bool,
    /// What may still be looked at.
    pub(super) left: &'a Cell<u64>,
}

impl Look<'_> {
    /// What a thread waits for; `file` is its `syscall`. Opaque once too much was looked at.
    pub(super) fn thread(&mut self, file: &str) -> Wait {
        if let Err(opaque) = self.spend(1) {
            return opaque;
        }
        let line = match self.proc.read(self.dir, file) {
            Ok(line) => parse(line),
            // It is gone, and waits for nothing.
            Err(Errno::NOENT | Errno::SRCH) => return Wait::Elsewhere,
            Err(_) => return Wait::Unreadable,
        };
        match (line, HERE) {
            (Some(Line::Running | Line::NoCall), _) => Wait::Runs,
            // A 32-bit program has a stack below 4 GiB and other numbers.
            (Some(Line::Call { number, args, stack }), Some(calls)) if stack > u64::from(u32::MAX) => {
                self.call(calls, number, args)
            }
            (Some(Line::Call { .. }) | None, _) => Wait::Opaque,
        }
    }

    fn call(&mut self, calls: &Calls, number: u64, args: [u64; 6]) -> Wait {
        let is_tty = if calls.read.contains(&number) {
            Ok(self.is_tty(args[0]))
        } else if calls.poll.contains(&number) {
            self.poll(args[0], args[1])
        } else if calls.select.contains(&number) {
            self.select(args[0], args[1])
        } else if calls.epoll.contains(&number) {
            self.epoll(args[0])
        } else if number == calls.io_uring {
            Err(Wait::Opaque)
        } else if number == calls.restart {
            self.restarted(args)
        } else {
            Ok(false)
        };
        match is_tty {
            Ok(true) => Wait::Tty,
            Ok(false) => Wait::Elsewhere,
            Err(why) => why,
        }
    }

    /// Whether a descriptor is the session's terminal.
    fn is_tty(&self, fd: u64) -> bool {
        // Descriptors are ints, and the rest of the register is anything.
        let name = format!("fd/{}", fd as u32);
        let Ok(stat) = statx(self.dir, name, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE) else { return false };
        let device = (stat.stx_rdev_major, stat.stx_rdev_minor);
        device == self.device || (device == DEV_TTY && self.is_own)
    }

    /// `struct pollfd`: the descriptor, what is asked, what happened.
    fn poll(&self, array: u64, count: u64) -> Result<bool, Wait> {
        let count = u64::from(count as u32);
        self.spend(count)?;
        let bytes = self.memory(array, count.min(FDS_MAX + 1) * 8, count)?;
        Ok(bytes.chunks_exact(8).any(|entry| {
            let fd = i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
            let asks_for_input = u32::from(u16::from_ne_bytes([entry[4], entry[5]])) & POLLIN != 0;
            fd >= 0 && asks_for_input && self.is_tty(fd as u64)
        }))
    }

    /// A call that goes on after it was interrupted has its arguments, and its number is lost. It is a poll, whose
    /// first two are a list and its length; a sleep, whose first is a clock or whose second is an address; or a futex,
    /// whose second is 128 and more.
    fn restarted(&self, args: [u64; 6]) -> Result<bool, Wait> {
        let count = u64::from(args[1] as u32);
        let may_be_poll = args[0] >= LOWEST_ADDRESS && (1..=FDS_MAX).contains(&args[1]);
        match may_be_poll && self.poll(args[0], count)? {
            true if count > SURELY_POLL_MAX => Err(Wait::Opaque),
            is_tty => Ok(is_tty),
        }
    }

    /// `fd_set`: words of 64 bits, a bit for each descriptor.
    fn select(&self, count: u64, set: u64) -> Result<bool, Wait> {
        let count = u64::from(count as u32);
        if set == 0 || count == 0 {
            return Ok(false);
        }
        self.spend(count)?;
        let bytes = self.memory(set, count.min(FDS_MAX + 1).div_ceil(64) * 8, count)?;
        let is_asked = |fd: u64| {
            let at = (fd / 64 * 8) as usize;
            let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes);
            word >> (fd % 64) & 1 == 1
        };
        Ok((0..count).any(|fd| is_asked(fd) && self.is_tty(fd)))
    }

    /// The kernel lists what an epoll set watches: `tfd:        0 events:       19 data: …`.
    fn epoll(&mut self, fd: u64) -> Result<bool, Wait> {
        let file = format!("fdinfo/{}", fd as u32);
        let text = self.proc.read_at_most(self.dir, &file, EPOLL_BYTES_MAX).map_err(|_| Wait::Unreadable)?;
        if text.len() == EPOLL_BYTES_MAX {
            return Err(Wait::Opaque);
        }
        let mut fds = Vec::new();
        for line in text.split(|&byte| byte == b'\n').filter_map(|line| line.strip_prefix(b"tfd:")) {
            let mut words = std::str::from_utf8(line).unwrap_or_default().split_ascii_whitespace();
            let watched = words.next().and_then(|fd| fd.parse::<u64>().ok());
            let events = words.nth(1).and_then(|events| u32::from_str_radix(events, 16).ok());
            if let (Some(watched), Some(events)) = (watched, events)
                && events & POLLIN != 0
            {
                fds.push(watched);
            }
        }
        if fds.len() as u64 > FDS_MAX {
            return Err(Wait::Opaque);
        }
        self.spend(fds.len() as u64)?;
        Ok(fds.into_iter().any(|fd| self.is_tty(fd)))
    }

    /// Descriptors that will be looked at. The host waits for all of it together.
    fn spend(&self, count: u64) -> Result<(), Wait> {
        let left = self.left.get().checked_sub(count).ok_or(Wait::Opaque)?;
        self.left.set(left);
        Ok(())
    }

    /// Some of the process's memory, for a list of so many descriptors.
    fn memory(&self, address: u64, bytes: u64, count: u64) -> Result<Vec<u8>, Wait> {
        if count > FDS_MAX {
            return Err(Wait::Opaque);
        }
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let mut found = vec![0; bytes as usize];
        let file = openat(self.dir.as_fd(), "mem", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let read = file.and_then(|file| rustix::io::pread(file, &mut found[..], address));
        if read == Ok(found.len()) { Ok(found) } else { Err(Wait::Unreadable) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_running_no_call_or_a_call() {
        assert_eq!(parse(b"running\n"), Some(Line::Running));
        assert_eq!(parse(b"-1 0x7ffc01 0x7f01\n"), Some(Line::NoCall));
        let line = b"7 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffc00000007 0x7f08\n";
        assert_eq!(parse(line), Some(Line::Call { number: 7, args: [1, 2, 3, 4, 5, 6], stack: 0x7ffc_0000_0007 }));
        for line in ["", "x", "7", "7 0x1", "7 1 2 3 4 5 6 7 8", "-2"] {
            assert_eq!(parse(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn no_call_of_a_machine_has_two_meanings() {
        for calls in [&X86_64, &AARCH64] {
            let all =
                [&calls.read[..], &calls.poll, &calls.select, &calls.epoll, &[calls.io_uring, calls.restart]].concat();
            let known: Vec<u64> = all.into_iter().filter(|number| *number != NONE).collect();
            let different: std::collections::HashSet<&u64> = known.iter().collect();
            assert_eq!(different.len(), known.len());
        }
    }
}
