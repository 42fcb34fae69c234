//! Reading `/proc` by descriptor: a process's directory is opened once, and all that is read through it is of that
//! process, or fails once it is gone. A pid that was given to another one in between cannot mix the two.

mod stat;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, RawDir, Stat as FileStat, openat, readlinkat_raw};
use rustix::io::Errno;

pub(crate) use stat::Stat;

/// What one file of `/proc` may hold before we stop reading: a process with 4096 locks or a huge epoll set has a long
/// `fdinfo`, and nobody's may fill our memory.
const FILE_BYTES_MAX: usize = 1 << 20;

/// A directory's entries are read in steps of this size: some 1300 descriptors at once.
const DIRENTS_BYTES: usize = 32 << 10;

/// The longest target the kernel gives for a link in `/proc`.
const LINK_BYTES: usize = 4096;

/// `/proc`, and the buffers that reading it needs again and again.
pub(crate) struct Proc {
    root: OwnedFd,
    file: Vec<u8>,
    dirents: Vec<MaybeUninit<u8>>,
    link: Vec<MaybeUninit<u8>>,
}

impl Proc {
    pub(crate) fn open() -> io::Result<Proc> {
        Ok(Proc {
            root: openat(CWD, "/proc", OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?,
            file: Vec::with_capacity(4096),
            dirents: vec![MaybeUninit::uninit(); DIRENTS_BYTES],
            link: vec![MaybeUninit::uninit(); LINK_BYTES],
        })
    }

    /// A process's directory; an error if it is gone.
    pub(crate) fn process(&self, pid: u32) -> Result<OwnedFd, Errno> {
        directory(&self.root, &pid.to_string())
    }

    /// A file's bytes, to its end.
    pub(crate) fn read(&mut self, dir: impl AsFd, name: &str) -> Result<&[u8], Errno> {
        self.read_at_most(dir, name, FILE_BYTES_MAX)
    }

    /// A file's first bytes.
    pub(crate) fn read_at_most(&mut self, dir: impl AsFd, name: &str, bytes_max: usize) -> Result<&[u8], Errno> {
        let file = openat(dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        self.file.clear();
        while self.file.len() < bytes_max {
            self.file.reserve(4096);
            let had = self.file.len();
            match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut self.file)) {
                Ok(0) => break,
                // The kernel fills at least half a page unless that was all, so most files take one read.
                Ok(read) if read < 2048 && had == 0 => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.file.truncate(bytes_max);
        Ok(&self.file)
    }

    /// Where a link points.
    pub(crate) fn link(&mut self, dir: impl AsFd, name: &str) -> Result<&[u8], Errno> {
        let (target, _) = readlinkat_raw(dir, name, &mut self.link[..])?;
        Ok(target)
    }

    /// The numbers that name a directory's entries (descriptors in `fd`, threads in `task`), and the directory: what is
    /// read through it takes one lookup less.
    pub(crate) fn numbers(&mut self, dir: impl AsFd, name: &str, out: &mut Vec<u32>) -> Result<OwnedFd, Errno> {
        out.clear();
        let dir = openat(dir, name, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut entries = RawDir::new(&dir, &mut self.dirents);
        while let Some(entry) = entries.next() {
            out.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
        }
        Ok(dir)
    }

    /// The children of a process, in the order they were made; those of all its threads.
    pub(crate) fn children(&mut self, dir: impl AsFd, pid: u32, threads: u32, out: &mut Vec<u32>) {
        out.clear();
        let mut tids = Vec::new();
        if threads == 1 {
            tids.push(pid);
        } else if self.numbers(&dir, "task", &mut tids).is_err() {
            return;
        }
        for tid in tids {
            if let Ok(list) = self.read(&dir, &format!("task/{tid}/children")) {
                let words = list.split(u8::is_ascii_whitespace).filter_map(|word| std::str::from_utf8(word).ok());
                out.extend(words.filter_map(|word| word.parse::<u32>().ok()));
            }
        }
    }
}

/// Bytes of a file that the kernel writes in one piece: a line of `stat`, a name.
const SMALL_BYTES: usize = 2048;

/// A short file by its path, with two questions to the kernel in place of the nine of `std::fs::read`, which does not know that it is short:
/// these are read for every process above each client. Of a longer one the beginning.
pub(crate) fn small<T>(path: &str, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = [0; SMALL_BYTES];
    loop {
        match rustix::io::read(&file, &mut bytes) {
            Ok(count) => return Some(take(&bytes[..count])),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// A directory to look things up in.
pub(crate) fn directory(dir: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    openat(dir, name, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Who a process's directory belongs to: its effective user, whatever it hides of itself.
pub(crate) fn owner(dir: impl AsFd) -> Option<u32> {
    rustix::fs::fstat(dir).ok().map(|stat: FileStat| stat.st_uid)
}
