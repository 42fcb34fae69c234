//! Paths of a session's working tree, resolved by the kernel from a descriptor of its top.
//!
//! What makes it safe: every path is opened with `openat2(2)` below the top (`RESOLVE_BENEATH`, no magic links), so that neither `..`
//! nor a link nor a directory that is swapped for one meanwhile leads out. What a path means is taken from the descriptor that was
//! opened, never from its text. A file is opened by its `O_PATH` descriptor once that is known to be a plain file: a pipe or a device
//! is never opened at all.
//!
//! Everything here blocks: it is done on another thread.

use holdfast_gate::is_below;
use holdfast_wire::files::PATH_BYTES_MAX;
use holdfast_wire::{Code, Fault};
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

const BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// The kernel asks to try again where a directory was renamed while `..` was followed; more often than this somebody does it on purpose.
const TRIES_MAX: u32 = 64;
/// How the names of the host's own hidden files begin.
pub(super) const OURS: &str = ".holdfast-";
/// File systems whose files are no data: reading them would tell of the host itself, writing them would change the machine. procfs,
/// sysfs, devpts, cgroup, cgroup2, debugfs, tracefs, securityfs, bpf, configfs, efivarfs, pstore, selinuxfs, smackfs, binfmt_misc, nsfs.
const NO_DATA: [u32; 16] = [
    0x9fa0,
    0x6265_6572,
    0x1cd1,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0xcafe_4a11,
    0x6265_6570,
    0xde5e_81e4,
    0x6165_676c,
    0xf97c_ff8c,
    0x4341_5d53,
    0x4249_4e4d,
    0x6e73_6673,
];

/// What decides where the top of a session's working tree is.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    /// Where the session was started.
    pub start: String,
    /// Its first process, if it lives.
    pub pid: Option<u32>,
    /// The asker may go where the session goes: it could go there by a command.
    pub follows: bool,
    /// Holdfast's own files and directories.
    pub own: Vec<PathBuf>,
    /// The directories that may be written, where the session has a wall.
    pub wall: Option<Vec<String>>,
}

/// The top of a working tree, open.
#[derive(Debug)]
pub(super) struct Root {
    top: OwnedFd,
    /// The top, without links.
    pub path: String,
    /// The live working directory, from the top on.
    pub cwd: String,
    own: Vec<String>,
    wall: Option<Vec<String>>,
}

/// Something below the top, not opened yet.
#[derive(Debug)]
pub(super) struct Found {
    pub at: OwnedFd,
    pub stat: Stat,
    /// Its path without links.
    pub path: String,
}

/// A file to write: the directory that has it, and its name there.
#[derive(Debug)]
pub(super) struct Target {
    pub dir: OwnedFd,
    pub name: String,
    pub path: String,
    /// The file that is there now.
    pub there: Option<Stat>,
}

impl Ground {
    /// Opens the top: the directory in which the session was started, as long as its shell is in it; and otherwise where its shell is,
    /// for those who could go there.
    pub fn open(self) -> Result<Root, Fault> {
        let start = directory(&self.start);
        // In another mount namespace, paths mean other files than those that are judged.
        let live = self.pid.filter(|pid| is_in_our_mounts(*pid));
        let live = live.and_then(|pid| directory(&format!("/proc/{pid}/cwd")).ok());
        let live = live.and_then(|live| Some((real(&live).ok()?, live)));
        let own = self.own.iter().map(|path| real_text(path)).collect();
        let (top, path, cwd) = match (start, live) {
            (Ok(start), Some((at, live))) => {
                let path = real(&start)?;
                match at.strip_prefix(&path) {
                    Some(rest) if is_below(&at, &path) => (start, path, rest.trim_start_matches('/').to_owned()),
                    _ if self.follows => (live, at, String::new()),
                    _ => (start, path, String::new()),
                }
            }
            (Err(_), Some((at, live))) if self.follows => (live, at, String::new()),
            (Ok(start), None) => {
                let path = real(&start)?;
                (start, path, String::new())
            }
            (Err(error), _) => return Err(refused(error, &self.start)),
        };
        Ok(Root { top, path, cwd, own, wall: self.wall })
    }
}

impl Root {
    /// A path as it is asked for, from the top on.
    fn below_top(&self, path: &str) -> Result<String, Fault> {
        if path.len() > PATH_BYTES_MAX || path.contains('\0') {
            return Err(Fault::new(Code::BadRequest, format!("a path has at most {PATH_BYTES_MAX} bytes, and no NUL")));
        }
        let rest = match path.strip_prefix('/') {
            Some(_) => {
                let top = self.path.trim_end_matches('/');
                let below = path.strip_prefix(top).filter(|rest| rest.is_empty() || rest.starts_with('/'));
                below.ok_or_else(|| self.outside(path))?.trim_start_matches('/').to_owned()
            }
            None if self.cwd.is_empty() => path.to_owned(),
            None => format!("{}/{path}", self.cwd),
        };
        Ok(if rest.is_empty() { ".".to_owned() } else { rest })
    }

    fn outside(&self, path: &str) -> Fault {
        Fault::new(Code::OutsideRoot, format!("{path:?} is outside the session's working tree, {}", self.path)).hint(
            "only files below it can be reached so; for others run a command in the session: holdfast run NAME -- …",
        )
    }

    /// Opens without opening: whatever it is, nothing happens to it.
    fn find(&self, rest: &str, flags: OFlags, resolve: ResolveFlags, shown: &str) -> Result<OwnedFd, Fault> {
        let mut left = TRIES_MAX;
        loop {
            let flags = OFlags::PATH | OFlags::CLOEXEC | flags;
            match rustix::fs::openat2(&self.top, rest, flags, Mode::empty(), BELOW | resolve) {
                Err(Errno::AGAIN) if left > 0 => left -= 1,
                Err(Errno::XDEV) => return Err(self.outside(shown)),
                Err(error) => return Err(refused(error, shown)),
                Ok(found) => return Ok(found),
            }
        }
    }

    /// What a path means now.
    pub fn look(&self, path: &str) -> Result<Found, Fault> {
        let at = self.find(&self.below_top(path)?, OFlags::empty(), ResolveFlags::empty(), path)?;
        let (stat, real) = (rustix::fs::fstat(&at).map_err(|error| refused(error, path))?, real(&at)?);
        self.must_be_open(&real, path)?;
        self.must_be_data(&at, path)?;
        Ok(Found { at, stat, path: real })
    }

    /// Holdfast's own files are no part of any working tree.
    fn must_be_open(&self, real: &str, shown: &str) -> Result<(), Fault> {
        if !self.own.iter().any(|own| is_below(real, own)) {
            return Ok(());
        }
        Err(Fault::new(Code::OutsideRoot, format!("{shown:?} belongs to Holdfast itself"))
            .hint("its policy, records and keys cannot be reached as files of a session"))
    }

    fn must_be_data(&self, at: &OwnedFd, shown: &str) -> Result<(), Fault> {
        let kind = rustix::fs::fstatfs(at).map_err(|error| refused(error, shown))?.f_type;
        if !NO_DATA.contains(&(kind as u32)) {
            return Ok(());
        }
        Err(Fault::new(Code::NotAFile, format!("{shown:?} is the kernel's, not a file with data")))
    }

    /// Opens a plain file for reading.
    pub fn read(&self, path: &str) -> Result<(File, Found), Fault> {
        let found = self.look(path)?;
        must_be_plain(&found.stat, path)?;
        let file = reopened(&found.at, OFlags::RDONLY | OFlags::NONBLOCK).map_err(|error| refused(error, path))?;
        Ok((file.into(), found))
    }

    /// Where a path would be written. A link is followed as long as it stays below the top.
    pub fn target(&self, path: &str) -> Result<Target, Fault> {
        let rest = self.below_top(path)?;
        let target = match self.find(&rest, OFlags::empty(), ResolveFlags::empty(), path) {
            Ok(at) => {
                let stat = rustix::fs::fstat(&at).map_err(|error| refused(error, path))?;
                must_be_plain(&stat, path)?;
                let real = real(&at)?;
                let inside = real.strip_prefix(self.path.trim_end_matches('/')).ok_or_else(|| self.outside(path))?;
                let (dir, name) = inside.rsplit_once('/').unwrap_or(("", inside));
                let dir = dir.trim_start_matches('/');
                let dir = if dir.is_empty() { "." } else { dir };
                // Without links by now: one that is there was put there meanwhile.
                let dir = self.find(dir, OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS, path)?;
                let there = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
                let is_same = there.is_ok_and(|there| (there.st_dev, there.st_ino) == (stat.st_dev, stat.st_ino));
                if !is_same {
                    return Err(moved(path));
                }
                must_be_writable(&dir, name, path)?;
                Target { dir, name: name.to_owned(), path: real, there: Some(stat) }
            }
            Err(fault) if fault.code == Code::NoSuchFile => {
                let rest = rest.trim_end_matches('/');
                let (dir, name) = rest.rsplit_once('/').unwrap_or((".", rest));
                if matches!(name, "" | "." | "..") || path.ends_with('/') {
                    return Err(fault);
                }
                let dir = if dir.is_empty() { "." } else { dir };
                let dir = self
                    .find(dir, OFlags::DIRECTORY, ResolveFlags::empty(), path)
                    .map_err(|fault| fault.hint("make its directory first: holdfast run NAME -- mkdir -p DIR"))?;
                if rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                    return Err(Fault::new(Code::NotAFile, format!("{path:?} is a link that leads nowhere")));
                }
                let real = format!("{}/{name}", real(&dir)?.trim_end_matches('/'));
                Target { dir, name: name.to_owned(), path: real, there: None }
            }
            Err(fault) => return Err(fault),
        };
        self.must_be_open(&target.path, path)?;
        self.must_be_data(&target.dir, path)?;
        if target.name.starts_with(OURS) {
            return Err(Fault::new(Code::Denied, format!("{path:?} may be of an upload that is under way"))
                .hint(format!("choose a name that does not begin with {OURS}")));
        }
        match &self.wall {
            Some(wall) if !wall.iter().any(|dir| is_below(&target.path, dir)) => {
                Err(Fault::new(Code::Denied, format!("the session's wall keeps it from writing {}", target.path))
                    .hint("write below the directories that `new --wall` named"))
            }
            Some(_) | None => Ok(target),
        }
    }
}

fn is_in_our_mounts(pid: u32) -> bool {
    let mounts = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
    mounts("self").is_some_and(|ours| mounts(&pid.to_string()) == Some(ours))
}

/// A directory, not opened.
fn directory(path: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// The path of what a descriptor stands for.
fn real(at: &OwnedFd) -> Result<String, Fault> {
    let path = rustix::fs::readlinkat(CWD, own_descriptor(at), Vec::new()).map_err(|error| refused(error, "it"))?;
    let is_gone = rustix::fs::fstat(at).is_ok_and(|stat| stat.st_nlink == 0);
    let path = path.into_string().ok().filter(|path| path.starts_with('/') && !is_gone);
    path.ok_or_else(|| Fault::new(Code::NoSuchFile, "it is no longer there, or its path is not UTF-8"))
}

fn own_descriptor(at: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", at.as_fd().as_raw_fd())
}

fn real_text(path: &std::path::Path) -> String {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

/// Opens what an `O_PATH` descriptor stands for: the very same file, whatever its path leads to by now.
fn reopened(at: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, own_descriptor(at), flags | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())
}

/// Goes through a directory's names, as their bytes, until there are no more or the caller has enough.
pub(super) fn each_name(dir: &OwnedFd, shown: &str, mut take: impl FnMut(&[u8]) -> bool) -> Result<(), Fault> {
    let dir = reopened(dir, OFlags::RDONLY | OFlags::DIRECTORY).map_err(|error| refused(error, shown))?;
    for entry in rustix::fs::Dir::new(dir).map_err(|error| refused(error, shown))?.flatten() {
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." && !take(name) {
            break;
        }
    }
    Ok(())
}

fn must_be_plain(stat: &Stat, shown: &str) -> Result<(), Fault> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink | FileType::Unknown => "no plain file",
    };
    let hint =
        if what == "a directory" { "list it: holdfast files ls NAME:PATH" } else { "such files are never opened" };
    Err(Fault::new(Code::NotAFile, format!("{shown:?} is {what}")).hint(hint))
}

/// A file that nobody may write is not replaced either.
fn must_be_writable(dir: &OwnedFd, name: &str, shown: &str) -> Result<(), Fault> {
    rustix::fs::accessat(dir, name, Access::WRITE_OK, AtFlags::EACCESS).map_err(|error| refused(error, shown))
}

/// What is there is not what was there a moment ago.
pub(super) fn moved(shown: &str) -> Fault {
    Fault::new(Code::FileChanged, format!("{shown:?} was changed by somebody else at this moment"))
        .hint("read it again, and try again")
}

/// An error of the kernel, as it is told.
pub(super) fn refused(error: Errno, shown: &str) -> Fault {
    match error {
        Errno::NOENT => Fault::new(Code::NoSuchFile, format!("no file or directory {shown:?}"))
            .hint("list what is there: holdfast files ls NAME:"),
        Errno::NOTDIR => {
            Fault::new(Code::NoSuchFile, format!("{shown:?} leads through something that is no directory"))
        }
        Errno::LOOP => Fault::new(Code::OutsideRoot, format!("{shown:?} leads through a link that is not followed")),
        Errno::ACCESS | Errno::PERM => Fault::new(Code::Denied, format!("the system does not permit that: {shown:?}"))
            .hint("see its owner and mode: holdfast files ls NAME:PATH"),
        Errno::NOSPC | Errno::DQUOT => Fault::new(Code::Unrecorded, format!("no space is left for {shown:?}"))
            .hint("free some space on that disk, and try again"),
        Errno::NAMETOOLONG => Fault::new(Code::BadRequest, format!("the name is too long: {shown:?}")),
        error => Fault::new(Code::Internal, format!("{shown:?}: {error}")),
    }
}
