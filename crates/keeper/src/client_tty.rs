//! A client's terminal, opened by the keeper on a description of its own.
//!
//! Reading somebody's keys is only right while that somebody is in front of its terminal: alive, running, and in the
//! terminal's foreground. So the keeper looks before it reads or paints.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use holdfast_abi::protocol::{TTY_KEYS, TTY_PAINT};

use crate::{sys, terminal};

/// How soon to look again at a client that is stopped while keys wait for it.
pub const AWAY_MS: u64 = 200;

/// A client's terminal.
#[derive(Debug)]
pub struct ClientTty {
    file: OwnedFd,
    stat: File,
    device: u64,
    patterns: Box<[Box<[u8]>]>,
    /// The keeper reads its keys.
    pub keys: bool,
    /// The keeper writes small output to it.
    pub paint: bool,
    /// What may become a chord, and until when it is kept back.
    pub piece: Vec<u8>,
    /// When the piece is no chord any more.
    pub piece_until_ms: u64,
    /// The client was away: its keys are not looked at before this.
    pub away_until_ms: Option<u64>,
}

impl ClientTty {
    /// Opens the terminal of the client `pid`. It must be a terminal, of our user or root's, and not the session's own,
    /// which would be fed with itself.
    pub fn open(flags: u8, path: &[u8], patterns: &[&[u8]], pid: u32, own_device: u64) -> io::Result<ClientTty> {
        let refused = |code| io::Error::from_raw_os_error(code);
        if path.first() != Some(&b'/') {
            return Err(refused(libc::EINVAL));
        }
        let open_flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_NOCTTY;
        // As the client sees it: a process of a portable session has a devpts of its own, where the same name is another terminal.
        let path = [format!("/proc/{pid}/root").as_bytes(), path].concat();
        let file = sys::open(&sys::c_string(&path)?, open_flags, 0)?;
        let (device, owner) = terminal::device(file.as_fd()).ok_or_else(|| refused(libc::ENOTTY))?;
        terminal::modes(file.as_fd())?;
        // SAFETY: no memory is involved.
        let own_user = unsafe { libc::geteuid() };
        if (owner != own_user && owner != 0) || device == own_device {
            return Err(refused(libc::EPERM));
        }
        Ok(ClientTty {
            file,
            stat: File::open(format!("/proc/{pid}/stat"))?,
            device,
            patterns: patterns
                .iter()
                .filter(|pattern| !pattern.is_empty())
                .map(|pattern| Box::from(*pattern))
                .collect(),
            keys: flags & TTY_KEYS != 0,
            paint: flags & TTY_PAINT != 0,
            piece: Vec::new(),
            piece_until_ms: 0,
            away_until_ms: None,
        })
    }

    /// What to poll and read.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The chords.
    #[must_use]
    pub fn patterns(&self) -> &[Box<[u8]>] {
        &self.patterns
    }

    /// Whether its client is in front of it now.
    #[must_use]
    pub fn is_attended(&self) -> bool {
        // Enough for the fields looked at: a command name has at most 64 bytes.
        let mut text = [0u8; 256];
        match self.stat.read_at(&mut text, 0) {
            Ok(count) => is_in_front(&text[..count], self.device),
            Err(_) => false,
        }
    }
}

/// Whether the process of this `/proc/<pid>/stat` is in front of the terminal `device`: not stopped, not dead, and, where
/// it is its controlling terminal, in the foreground.
#[must_use]
pub fn is_in_front(stat: &[u8], device: u64) -> bool {
    // The name may contain anything, the last parenthesis ends it.
    let Some(name_end) = stat.iter().rposition(|byte| *byte == b')') else { return false };
    let mut fields = stat[name_end + 1..].split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let state = fields.next();
    if !matches!(state, Some(b"R" | b"S" | b"D" | b"I")) {
        return false;
    }
    let mut number = |skipped: usize| {
        let field = fields.nth(skipped)?;
        std::str::from_utf8(field).ok()?.parse::<i64>().ok()
    };
    let (Some(group), Some(terminal), Some(foreground)) = (number(1), number(1), number(0)) else { return false };
    let (major, minor) = (u64::from(libc::major(device)), u64::from(libc::minor(device)));
    let encoded = (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12);
    terminal as u32 != encoded as u32 || group == foreground
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_running_client_in_the_foreground_is_in_front() {
        let device = libc::makedev(136, 2);
        for (stat, expected) in [
            ("7 (a) S 1 7 7 34818 7 0 0", true),
            ("7 (a b) R) R 1 7 7 34818 7 0 0", true),
            ("7 (a) T 1 7 7 34818 7 0 0", false),
            ("7 (a) t 1 7 7 34818 7 0 0", false),
            ("7 (a) Z 1 7 7 34818 7 0 0", false),
            ("7 (a) S 1 7 7 34818 9 0 0", false),
            ("7 (a) S 1 7 7 34819 9 0 0", true),
            ("7 (a) S 1 7 7 0 -1 0 0", true),
            ("7 (a) S 1 7", false),
            ("", false),
        ] {
            assert_eq!(is_in_front(stat.as_bytes(), device), expected, "{stat}");
        }
    }
}
