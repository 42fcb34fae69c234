//! What a process is about to become: read from its memory and from `/proc` while it waits in the call.
//!
//! All of it is the process's own word, and another thread of it may change it a moment later. Reads are bounded.

use super::filter::Call;
use super::talk::Exec;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Bytes of all words of a command that are read, and how many words: what does not fit is not judged by its beginning.
const WORDS_BYTES_MAX: usize = 256 * 1024;
const WORDS_MAX: usize = 8192;
/// The kernel's own limit.
const PATH_BYTES_MAX: usize = 4096;
const PAGE: u64 = 4096;

/// Reads memory of a process: one page at most, since a read that goes on into one that is not there fails as a whole.
fn page(pid: u32, from: u64, into: &mut [u8]) -> io::Result<usize> {
    let count = into.len().min((PAGE - from % PAGE) as usize);
    let ours = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: count };
    let theirs = libc::iovec { iov_base: from as *mut libc::c_void, iov_len: count };
    // SAFETY: the kernel writes at most `count` bytes into `into`, which has so many. Their address is checked by the kernel.
    let read = unsafe { libc::process_vm_readv(pid as i32, &raw const ours, 1, &raw const theirs, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Whether the memory of a process can be read: these bytes are there.
pub(super) fn has(pid: u32, address: u64, bytes: &[u8]) -> bool {
    let mut read = [0; 64];
    let Some(into) = read.get_mut(..bytes.len()) else { return false };
    let mut filled = 0;
    while filled < into.len() {
        match page(pid, address + filled as u64, &mut into[filled..]) {
            Ok(count) if count > 0 => filled += count,
            Ok(_) | Err(_) => return false,
        }
    }
    *into == *bytes
}

/// A process's memory, by pages that were read.
struct Memory {
    pid: u32,
    pages: Vec<(u64, usize, Box<[u8; PAGE as usize]>)>,
}

impl Memory {
    fn at(&mut self, address: u64) -> io::Result<&[u8]> {
        let start = address - address % PAGE;
        let found = match self.pages.iter().rposition(|(known, _, _)| *known == start) {
            Some(found) => found,
            None => {
                let mut bytes = Box::new([0; PAGE as usize]);
                let count = page(self.pid, start, &mut bytes[..])?;
                self.pages.push((start, count, bytes));
                self.pages.len() - 1
            }
        };
        let (_, count, bytes) = &self.pages[found];
        bytes
            .get((address - start) as usize..*count)
            .filter(|rest| !rest.is_empty())
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Up to a zero; none where there are more than so many bytes.
    fn text(&mut self, mut address: u64, max: usize) -> io::Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        loop {
            let rest = self.at(address)?;
            let end = rest.iter().position(|byte| *byte == 0);
            text.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            address += rest.len() as u64;
            match end {
                _ if text.len() > max => return Ok(None),
                Some(_) => return Ok(Some(text)),
                None => {}
            }
        }
    }

    fn pointer(&mut self, address: u64, bytes: usize) -> io::Result<u64> {
        let mut value = [0; 8];
        for (at, byte) in value.iter_mut().take(bytes).enumerate() {
            *byte = self.at(address + at as u64)?[0];
        }
        Ok(u64::from_le_bytes(value))
    }

    /// The words of a command; none where there are too many.
    fn words(&mut self, mut list: u64, pointer: usize) -> io::Result<Option<Vec<Vec<u8>>>> {
        let (mut words, mut left) = (Vec::new(), WORDS_BYTES_MAX);
        while list != 0 {
            let word = self.pointer(list, pointer)?;
            if word == 0 {
                break;
            }
            let Some(text) = self.text(word, left)? else { return Ok(None) };
            left = left.saturating_sub(text.len() + 1);
            words.push(text);
            if words.len() > WORDS_MAX || left == 0 {
                return Ok(None);
            }
            list += pointer as u64;
        }
        Ok(Some(words))
    }
}

/// What was found of a process that waits.
pub(super) enum Found {
    /// There is no such file: the call fails with this.
    Fails(i32),
    Exec(Box<Exec>),
}

/// Reads what a process is about to become.
pub(super) fn read(id: u64, pid: u32, call: Call, args: [u64; 6]) -> Found {
    let mut memory = Memory { pid, pages: Vec::new() };
    let (dir, path, list) =
        if call.at { (args[0] as i32, args[1], args[2]) } else { (libc::AT_FDCWD, args[0], args[1]) };
    let path = memory.text(path, PATH_BYTES_MAX).ok().flatten();
    let words = memory.words(list, call.pointer).ok().flatten();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).ok();
    let program = match &path {
        Some(path) => match resolved(pid, dir, path) {
            Ok(program) => Some(program),
            Err(errno @ (libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ENAMETOOLONG)) => {
                return Found::Fails(errno);
            }
            Err(_) => None,
        },
        None => None,
    };
    Found::Exec(Box::new(Exec {
        id,
        pid,
        is_whole: path.is_some() && words.is_some() && cwd.is_some() && program.is_some(),
        path: path.as_deref().map(text).unwrap_or_default(),
        program: program.map(|path| text(path.as_os_str().as_bytes())).unwrap_or_default(),
        words: words.unwrap_or_default().iter().map(|word| text(word)).collect(),
        cwd: cwd.map(|path| text(path.as_os_str().as_bytes())).unwrap_or_default(),
    }))
}

/// The file that a path of a process stands for, without links; or why it has none.
fn resolved(pid: u32, dir: i32, path: &[u8]) -> Result<PathBuf, i32> {
    let base = match (path.first(), dir) {
        (Some(b'/'), _) => format!("/proc/{pid}/root"),
        (Some(_), libc::AT_FDCWD) => format!("/proc/{pid}/cwd/"),
        (Some(_), dir) => format!("/proc/{pid}/fd/{dir}/"),
        // The descriptor itself is the file.
        (None, dir) if dir >= 0 => format!("/proc/{pid}/fd/{dir}"),
        (None, _) => return Err(libc::ENOENT),
    };
    let whole = [base.as_bytes(), path].concat();
    let errno = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(OsStr::from_bytes(&whole))
        .map_err(errno)?;
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(errno)
}

/// How many filters a process has on it, as far as the kernel tells.
pub(super) fn filters(pid: &str) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?.trim().parse().ok()
}

/// Whether a signal waits for a process by which people end programs: one that it handles reaches it only behind the answer.
pub(super) fn is_interrupted(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = |name: &str| {
        let digits = status.lines().find_map(|line| line.strip_prefix(name));
        digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
    };
    let ends =
        [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM].iter().fold(0, |all, one| all | 1u64 << (one - 1));
    (mask("SigPnd:") | mask("ShdPnd:")) & !mask("SigBlk:") & ends != 0
}

/// Says one line on the terminal of a process, if it has one and that takes it at once.
pub(super) fn say(pid: u32, line: &str) -> Option<()> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let device: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(4)?.parse::<i64>().ok()?.try_into().ok()?;
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00));
    // Pseudo-terminals: eight numbers, of which one is used today.
    let number = (136..144).contains(&major).then(|| (major - 136) * 256 + minor)?;
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let mut terminal =
        std::fs::OpenOptions::new().write(true).custom_flags(flags).open(format!("/dev/pts/{number}")).ok()?;
    use std::os::unix::fs::MetadataExt;
    let is_it = terminal.metadata().is_ok_and(|meta| meta.rdev() == libc::makedev(major as u32, minor as u32));
    // In one piece, from the beginning of a line.
    is_it.then(|| io::Write::write(&mut terminal, format!("\r\n{line}\r\n").as_bytes()).ok())?.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_from_memory_page_by_page_and_bounded() {
        let pid = std::process::id();
        let words = [c"/bin/rm".to_bytes_with_nul(), c"-rf".to_bytes_with_nul(), c"".to_bytes_with_nul()];
        let long = [vec![b'x'; 9000], vec![0]].concat();
        let list =
            [words[0].as_ptr() as u64, words[1].as_ptr() as u64, words[2].as_ptr() as u64, long.as_ptr() as u64, 0];
        let mut memory = Memory { pid, pages: Vec::new() };
        let read = memory.words(list.as_ptr() as u64, 8).unwrap().unwrap();
        assert_eq!(
            (&read[0][..], &read[1][..], &read[2][..], read[3].len()),
            (&b"/bin/rm"[..], &b"-rf"[..], &b""[..], 9000)
        );
        assert_eq!(memory.text(long.as_ptr() as u64, 8000).unwrap(), None);
        assert!(memory.words(0, 8).unwrap().unwrap().is_empty());
        assert!(memory.words(16, 8).is_err(), "nothing is there");
        let endless = vec![words[1].as_ptr() as u64; WORDS_MAX + 2];
        assert_eq!(memory.words(endless.as_ptr() as u64, 8).unwrap(), None);
        assert!(has(pid, words[0].as_ptr() as u64, b"/bin/rm\0") && !has(pid, 16, b"x"));
    }

    #[test]
    fn a_path_is_resolved_as_the_process_would() {
        let pid = std::process::id();
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/true", dir.path().join("link")).unwrap();
        let link = dir.path().join("link");
        let real = std::fs::canonicalize("/bin/true").unwrap();
        assert_eq!(resolved(pid, libc::AT_FDCWD, link.as_os_str().as_bytes()), Ok(real));
        assert_eq!(resolved(pid, libc::AT_FDCWD, b"/no/such/file"), Err(libc::ENOENT));
        assert_eq!(resolved(pid, libc::AT_FDCWD, b"/bin/true/x"), Err(libc::ENOTDIR));
        assert_eq!(resolved(pid, libc::AT_FDCWD, b""), Err(libc::ENOENT));
    }
}
