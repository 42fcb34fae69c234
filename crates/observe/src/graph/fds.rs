//! The descriptors of one process.
//!
//! What a descriptor is shows in its link (`pipe:[9]`), and for a path by a stat that asks no server. Only regular
//! files have a position and locks worth reading, and only they cost three calls more.

use std::fmt::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, statx};
use rustix::io::Errno;

use super::read::Reader;
use super::{Depth, FDS_MAX, FdKind, FdNode, LOCKS_MAX, Lock, LockKind, PipeId, ProcessNode, SocketId, Target};
use crate::proc::directory;

/// Majors of devices that are terminals: consoles, `/dev/tty` and `/dev/console`, serial lines, pty masters and slaves.
const TTY_MAJORS: [u32; 5] = [4, 5, 204, 188, 166];
/// Unix98 pty slaves have eight majors.
const PTS_MAJORS: std::ops::RangeInclusive<u32> = 136..=143;

/// `O_ACCMODE`, `O_WRONLY`, `O_RDWR` and `O_APPEND`, which are the same on all machines that we run on.
const ACCESS_MODE: u32 = 0o3;
const WRITE_ONLY: u32 = 0o1;
const READ_WRITE: u32 = 0o2;
const APPEND: u32 = 0o2000;

impl Reader {
    /// Fills in a process's descriptors, as deep as is asked.
    pub(super) fn fds(&mut self, dir: BorrowedFd<'_>, node: &mut ProcessNode) {
        let mut numbers = std::mem::take(&mut self.numbers);
        match self.proc.numbers(dir, "fd", &mut numbers) {
            Ok(links) => {
                numbers.sort_unstable();
                let mut opened = Opened { dir, links, fdinfo: None, name: String::with_capacity(16) };
                node.fds = numbers.iter().take(FDS_MAX).filter_map(|&fd| self.fd(&mut opened, fd)).collect();
                node.more_fds = u32::try_from(numbers.len().saturating_sub(FDS_MAX)).unwrap_or(u32::MAX);
            }
            // It went meanwhile, which is no secret.
            Err(Errno::NOENT | Errno::SRCH) => {}
            Err(_) => node.unknown = true,
        }
        self.numbers = numbers;
    }

    fn fd(&mut self, opened: &mut Opened<'_>, fd: u32) -> Option<FdNode> {
        opened.name.clear();
        let _ = write!(opened.name, "{fd}");
        let (dir, name) = (opened.links.as_fd(), opened.name.as_str());
        let mut node = empty(fd);
        let link = match self.proc.link(dir, name) {
            Ok(link) => link,
            Err(Errno::NOENT) => return None,
            Err(_) => return (self.depth == Depth::Full).then_some(node),
        };
        if let Some(inode) = inode(link, b"socket:[") {
            node.kind = FdKind::Socket;
            node.target = Some(Target::Socket(SocketId(inode)));
            return Some(node);
        }
        if self.depth < Depth::Full {
            return None;
        }
        if let Some(inode) = inode(link, b"pipe:[") {
            node.kind = FdKind::Pipe;
            node.target = Some(Target::Pipe(PipeId { inode, device: None }));
            access(dir, name, &mut node);
            return Some(node);
        }
        if !link.starts_with(b"/") {
            node.kind = FdKind::Anon;
            node.path = Some(String::from_utf8_lossy(link).into_owned());
            return Some(node);
        }
        let is_memfd = link.starts_with(b"/memfd:");
        node.path = Some(String::from_utf8_lossy(link).into_owned());
        let wanted = StatxFlags::TYPE | StatxFlags::NLINK | StatxFlags::INO;
        // Without a sync: a file server that does not answer must not hold us.
        match statx(dir, name, AtFlags::STATX_DONT_SYNC, wanted) {
            Ok(stat) => classify(&mut node, &stat, is_memfd),
            Err(Errno::NOENT) => return None,
            Err(_) => return Some(node),
        }
        match node.kind {
            FdKind::File | FdKind::Memfd => self.fdinfo(opened, &mut node),
            FdKind::Dir | FdKind::Pipe | FdKind::Tty | FdKind::Device | FdKind::Unknown => access(dir, name, &mut node),
            FdKind::Socket | FdKind::Anon => {}
        }
        Some(node)
    }

    fn fdinfo(&mut self, opened: &mut Opened<'_>, node: &mut FdNode) {
        if opened.fdinfo.is_none() {
            opened.fdinfo = directory(opened.dir, "fdinfo").ok();
        }
        if let Some(Ok(text)) = opened.fdinfo.as_ref().map(|dir| self.proc.read(dir, &opened.name)) {
            parse_fdinfo(text, node);
        }
    }
}

/// The directories of one process that its descriptors are read through.
struct Opened<'a> {
    dir: BorrowedFd<'a>,
    links: OwnedFd,
    /// Opened for the first that needs it.
    fdinfo: Option<OwnedFd>,
    /// The name of the descriptor that is read.
    name: String,
}

fn empty(fd: u32) -> FdNode {
    FdNode {
        fd,
        kind: FdKind::Unknown,
        path: None,
        deleted: false,
        offset: None,
        read: None,
        write: None,
        append: None,
        locks: Vec::new(),
        target: None,
    }
}

/// The number in `pipe:[9]`.
fn inode(link: &[u8], kind: &[u8]) -> Option<u64> {
    std::str::from_utf8(link.strip_prefix(kind)?.strip_suffix(b"]")?).ok()?.parse().ok()
}

/// The link's own mode has the ways the descriptor is open.
fn access(dir: BorrowedFd<'_>, name: &str, node: &mut FdNode) {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
    if let Ok(stat) = statx(dir, name, flags, StatxFlags::MODE) {
        node.read = Some(stat.stx_mode & 0o400 != 0);
        node.write = Some(stat.stx_mode & 0o200 != 0);
    }
}

fn classify(node: &mut FdNode, stat: &Statx, is_memfd: bool) {
    let major = stat.stx_rdev_major;
    node.kind = match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::RegularFile if is_memfd => FdKind::Memfd,
        FileType::RegularFile => FdKind::File,
        FileType::Directory => FdKind::Dir,
        FileType::Fifo => FdKind::Pipe,
        FileType::CharacterDevice if TTY_MAJORS.contains(&major) || PTS_MAJORS.contains(&major) => FdKind::Tty,
        FileType::CharacterDevice | FileType::BlockDevice => FdKind::Device,
        FileType::Socket | FileType::Symlink | FileType::Unknown => FdKind::Unknown,
    };
    if node.kind == FdKind::Pipe {
        let device = Some((stat.stx_dev_major, stat.stx_dev_minor));
        node.target = Some(Target::Pipe(PipeId { inode: stat.stx_ino, device }));
    }
    if stat.stx_nlink == 0 && matches!(node.kind, FdKind::File | FdKind::Dir) {
        node.deleted = true;
        if let Some(path) = node.path.as_mut().filter(|path| path.ends_with(" (deleted)")) {
            path.truncate(path.len() - " (deleted)".len());
        }
    }
}

fn parse_fdinfo(text: &[u8], node: &mut FdNode) {
    let text = String::from_utf8_lossy(text);
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        match key {
            "pos" => node.offset = value.trim().parse().ok(),
            "flags" => {
                if let Ok(flags) = u32::from_str_radix(value.trim(), 8) {
                    node.read = Some(flags & ACCESS_MODE != WRITE_ONLY);
                    node.write = Some(matches!(flags & ACCESS_MODE, WRITE_ONLY | READ_WRITE));
                    node.append = Some(flags & APPEND != 0);
                }
            }
            "lock" if node.locks.len() < LOCKS_MAX => node.locks.extend(parse_lock(value)),
            _ => {}
        }
    }
}

/// `1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF`, as in proc_locks(5).
fn parse_lock(line: &str) -> Option<Lock> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let kind = match words.next()? {
        "FLOCK" => LockKind::Flock,
        "POSIX" => LockKind::Posix,
        "OFDLCK" => LockKind::Ofd,
        _ => LockKind::Other,
    };
    let exclusive = words.nth(1)? == "WRITE";
    let start = words.nth(2)?.parse().ok()?;
    let end = words.next()?;
    Some(Lock { kind, exclusive, start, end: end.parse().ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_modes_and_locks_are_read() {
        let mut node = empty(3);
        let text = "pos:\t42\nflags:\t0102001\nino:\t7\nlock:\t1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF\n\
                    lock:\t2: OFDLCK ADVISORY  READ -1 fe:00:9 10 19\nlock:\tnonsense\n";
        parse_fdinfo(text.as_bytes(), &mut node);
        assert_eq!((node.offset, node.read, node.write, node.append), (Some(42), Some(false), Some(true), Some(true)));
        let flock = Lock { kind: LockKind::Flock, exclusive: true, start: 0, end: None };
        let ofd = Lock { kind: LockKind::Ofd, exclusive: false, start: 10, end: Some(19) };
        assert_eq!(node.locks, [flock, ofd]);
    }

    #[test]
    fn a_thousand_locks_are_not_all_kept() {
        let mut node = empty(3);
        parse_fdinfo("lock:\t1: POSIX  ADVISORY  WRITE 9 00:13:1 0 0\n".repeat(1000).as_bytes(), &mut node);
        assert_eq!(node.locks.len(), LOCKS_MAX);
    }

    #[test]
    fn a_file_that_is_named_like_a_pipe_is_none() {
        for link in ["/tmp/pipe:[9]", "pipe:[x]", "pipe:[9", "pipe:9]"] {
            assert_eq!(inode(link.as_bytes(), b"pipe:["), None, "{link}");
        }
        assert_eq!(inode(b"pipe:[9]", b"pipe:["), Some(9));
    }
}
