//! A fanotify group: what happens to names on whole file systems, with the process that did it.
//!
//! Only whoever may administer the machine gets one, on Linux 5.17 or later. Marks are for file systems, so that every mount of one
//! counts, bind mounts and other namespaces too. The queue is the kernel's own, of a limited length: what does not fit is said.

use super::fold::Change;
use crate::netlink::{u16_at, u32_at, u64_at};
use rustix::fs::{Mode, OFlags, fstat, fstatvfs, major, minor, open};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What is asked for: names that come, go and move, and content and attributes that change.
const MASK: u64 = libc::FAN_CREATE
    | libc::FAN_DELETE
    | libc::FAN_RENAME
    | libc::FAN_CLOSE_WRITE
    | libc::FAN_MODIFY
    | libc::FAN_ATTRIB
    | libc::FAN_ONDIR;
/// Bytes of events taken at once: some thousand of them.
const BATCH_BYTES: usize = 128 << 10;
/// `struct fanotify_event_metadata`.
const EVENT_BYTES: usize = 24;
/// `struct fanotify_event_info_fid` up to the handle's own bytes: header, file system, length, kind.
const FID_BYTES: usize = 4 + 8 + 8;
/// `MAX_HANDLE_SZ`.
const HANDLE_BYTES_MAX: usize = 128;
/// File systems that are watched at once: more are a container host's, whose images nobody changes.
const SYSTEMS_MAX: usize = 64;
/// Directories whose path is remembered: more than one build touches.
const DIRS_MAX: usize = 50_000;

/// Kinds of file systems in which no files lie.
const BARE: [&str; 27] = [
    "proc",
    "sysfs",
    "devpts",
    "devtmpfs",
    "cgroup",
    "cgroup2",
    "securityfs",
    "debugfs",
    "tracefs",
    "pstore",
    "bpf",
    "configfs",
    "fusectl",
    "mqueue",
    "hugetlbfs",
    "autofs",
    "binfmt_misc",
    "efivarfs",
    "nsfs",
    "rpc_pipefs",
    "squashfs",
    "iso9660",
    "ramfs",
    "selinuxfs",
    "binder",
    "resctrl",
    "nfsd",
];

/// A directory: its file system and its handle there.
type Handle = Vec<u8>;

/// Something that happened, with the directory's path not yet known.
#[derive(Debug)]
pub(super) struct Raw<'a> {
    pub pid: u32,
    pub mask: u64,
    info: &'a [u8],
}

impl Raw<'_> {
    /// Some were lost.
    pub fn is_overflow(&self) -> bool {
        self.mask & libc::FAN_Q_OVERFLOW != 0
    }

    /// A directory has another name: paths that are remembered may not be right any more.
    pub fn moves_directory(&self) -> bool {
        self.mask & libc::FAN_RENAME != 0 && self.mask & libc::FAN_ONDIR != 0
    }
}

/// The group.
#[derive(Debug)]
pub(super) struct Group {
    fd: OwnedFd,
    /// A descriptor on each file system, by its id.
    systems: HashMap<u64, OwnedFd>,
    dirs: HashMap<Handle, String>,
    /// Where names are not watched, and why.
    pub unwatched: Vec<String>,
}

impl Group {
    /// Watches every file system that files are written to.
    pub fn new() -> io::Result<Group> {
        let flags = libc::FAN_CLASS_NOTIF
            | libc::FAN_CLOEXEC
            | libc::FAN_NONBLOCK
            | libc::FAN_UNLIMITED_MARKS
            | libc::FAN_REPORT_DFID_NAME_TARGET;
        // SAFETY: takes two numbers.
        let fd = unsafe { libc::fanotify_init(flags, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given it, and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut group = Group { fd, systems: HashMap::new(), dirs: HashMap::new(), unwatched: Vec::new() };
        for (device, point) in file_systems(&std::fs::read_to_string("/proc/self/mountinfo")?) {
            if group.systems.len() >= SYSTEMS_MAX {
                group.unwatched.push(format!("{point}: more than {SYSTEMS_MAX} file systems"));
                break;
            }
            if let Err(error) = group.watch(device, &point) {
                group.unwatched.push(format!("{point}: {error}"));
            }
        }
        if group.systems.is_empty() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, group.unwatched.join("; ")));
        }
        Ok(group)
    }

    fn watch(&mut self, device: (u32, u32), point: &str) -> io::Result<()> {
        let dir = open(point, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let stat = fstat(&dir)?;
        if (major(stat.st_dev), minor(stat.st_dev)) != device {
            // Another one is mounted over it: nobody gets there by a path.
            return Ok(());
        }
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
        // SAFETY: both descriptors are open, and the path is a text of ours with its end.
        let marked = unsafe { libc::fanotify_mark(self.fd.as_raw_fd(), flags, MASK, dir.as_raw_fd(), c".".as_ptr()) };
        if marked < 0 {
            return Err(io::Error::last_os_error());
        }
        self.systems.insert(fstatvfs(&dir)?.f_fsid, dir);
        Ok(())
    }

    /// Takes events that have come, and never waits. None: there are none.
    pub fn read<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<Option<&'b [u8]>> {
        buffer.resize(BATCH_BYTES, 0);
        match rustix::io::read(&self.fd, &mut buffer[..]) {
            Ok(0) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Ok(count) => Ok(Some(&buffer[..count])),
            Err(error) => Err(error.into()),
        }
    }

    /// Paths that are remembered may not be right any more.
    pub fn forget(&mut self) {
        self.dirs.clear();
    }

    /// What an event says, with paths; none where its directory is gone, or it is about a file without a name.
    pub fn change(&mut self, raw: &Raw<'_>) -> Option<Change> {
        let (mut name, mut to, mut target) = (None, None, None);
        for (kind, body) in infos(raw.info) {
            match kind {
                libc::FAN_EVENT_INFO_TYPE_DFID_NAME | libc::FAN_EVENT_INFO_TYPE_OLD_DFID_NAME => name = place(body),
                libc::FAN_EVENT_INFO_TYPE_NEW_DFID_NAME => to = place(body),
                libc::FAN_EVENT_INFO_TYPE_FID => target = handle(body),
                _ => {}
            }
        }
        let path = self.path(name?)?;
        let to = match to {
            Some(to) => Some(self.path(to)?),
            None => None,
        };
        if raw.mask & libc::FAN_ONDIR != 0
            && let Some(target) = target
            && self.dirs.len() < DIRS_MAX
        {
            // Its own entries are known by it, also once it is gone.
            self.dirs.insert(target.to_vec(), to.clone().unwrap_or_else(|| path.clone()));
        }
        let has = |bit: u64| raw.mask & bit != 0;
        Some(Change {
            created: has(libc::FAN_CREATE),
            deleted: has(libc::FAN_DELETE),
            written: has(libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE | libc::FAN_ATTRIB),
            path,
            to,
        })
    }

    fn path(&mut self, (dir, name): (&[u8], &str)) -> Option<String> {
        if !self.dirs.contains_key(dir) {
            if self.dirs.len() >= DIRS_MAX {
                self.dirs.clear();
            }
            let path = self.resolve(dir)?;
            self.dirs.insert(dir.to_vec(), path);
        }
        let dir = self.dirs.get(dir)?;
        Some(match name {
            "." | "" => dir.clone(),
            name => format!("{}/{name}", dir.trim_end_matches('/')),
        })
    }

    /// Where a directory lies now.
    fn resolve(&self, dir: &[u8]) -> Option<String> {
        let system = self.systems.get(&fsid(dir)?)?;
        let fd = open_handle(system.as_fd(), dir.get(8..)?).ok()?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
        let path = path.to_string_lossy().into_owned();
        Some(path.strip_suffix(" (deleted)").map_or_else(|| path.clone(), str::to_owned))
    }
}

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens what a handle names: its length, its kind and its bytes.
fn open_handle(system: BorrowedFd<'_>, handle: &[u8]) -> io::Result<OwnedFd> {
    /// `struct file_handle` with room for the longest.
    #[repr(C)]
    struct Room {
        bytes: u32,
        kind: i32,
        handle: [u8; HANDLE_BYTES_MAX],
    }
    let short = || io::Error::from(io::ErrorKind::InvalidData);
    let (bytes, kind) = (u32_at(handle, 0).ok_or_else(short)?, u32_at(handle, 4).ok_or_else(short)?);
    let own = handle.get(8..8 + bytes as usize).filter(|own| own.len() <= HANDLE_BYTES_MAX).ok_or_else(short)?;
    let mut room = Room { bytes, kind: kind as i32, handle: [0; HANDLE_BYTES_MAX] };
    room.handle[..own.len()].copy_from_slice(own);
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: `Room` is a `file_handle` and says no more bytes than it has; the kernel only reads it.
    let fd = unsafe { libc::open_by_handle_at(system.as_raw_fd(), (&raw mut room).cast(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn fsid(handle: &[u8]) -> Option<u64> {
    Some(u64::from(u32_at(handle, 0)?) | u64::from(u32_at(handle, 4)?) << 32)
}

/// The events of a batch; ends at the first that is not whole.
pub(super) fn events(mut bytes: &[u8]) -> impl Iterator<Item = Raw<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes, 0)? as usize;
        let own = usize::from(u16_at(bytes, 6)?).max(EVENT_BYTES);
        let (mask, pid) = (u64_at(bytes, 8)?, u32_at(bytes, 20)?);
        let info = bytes.get(own..length)?;
        bytes = bytes.get(length..).unwrap_or_default();
        Some(Raw { pid, mask, info })
    })
}

/// What is said of an event: kind, and everything behind the header.
fn infos(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (kind, length) = (*bytes.first()?, usize::from(u16_at(bytes, 2)?));
        let body = bytes.get(4..length)?;
        bytes = bytes.get(length..).unwrap_or_default();
        Some((kind, body))
    })
}

/// A file system's id and a handle on it.
fn handle(body: &[u8]) -> Option<&[u8]> {
    let bytes = u32_at(body, 8)? as usize;
    body.get(..FID_BYTES - 4 + bytes)
}

/// A directory, and the name of an entry in it.
fn place(body: &[u8]) -> Option<(&[u8], &str)> {
    let dir = handle(body)?;
    let name = body.get(dir.len()..)?.split(|byte| *byte == 0).next()?;
    // A name that is no text cannot be held against a pattern: it is told by what is.
    Some((dir, std::str::from_utf8(name).unwrap_or("\u{fffd}")))
}

/// The file systems that files are written to, each with its device and a mount that shows all of it if there is one.
fn file_systems(mountinfo: &str) -> Vec<((u32, u32), String)> {
    let mut found: Vec<((u32, u32), bool, String)> = Vec::new();
    for line in mountinfo.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let Some(dash) = fields.iter().position(|field| *field == "-") else { continue };
        let (Some(kind), Some(options)) = (fields.get(dash + 1), fields.get(dash + 3)) else { continue };
        let device = fields.get(2).and_then(|device| device.split_once(':'));
        let Some((major, minor)) = device.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))) else { continue };
        if BARE.contains(kind) || options.split(',').any(|option| option == "ro") {
            continue;
        }
        let point = unescaped(fields.get(4).copied().unwrap_or_default());
        // What control groups are mounted below has no files of anybody's.
        if *kind == "tmpfs" && point == "/sys/fs/cgroup" {
            continue;
        }
        let is_whole = fields.get(3) == Some(&"/");
        match found.iter_mut().find(|(known, _, _)| *known == (major, minor)) {
            Some(known) if is_whole && !known.1 => *known = ((major, minor), true, point),
            Some(_) => {}
            None => found.push(((major, minor), is_whole, point)),
        }
    }
    found.into_iter().map(|(device, _, point)| (device, point)).collect()
}

/// Blanks in a mount's path stand as `\040`.
fn unescaped(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_systems_that_are_written_to_are_watched_each_once() {
        let text = "21 1 0:21 / /proc rw - proc proc rw\n\
                    22 1 254:0 /sub /mnt/a\\040b rw - ext4 /dev/vda rw\n\
                    23 1 254:0 / / rw - ext4 /dev/vda rw\n\
                    24 1 0:27 / /dev/shm rw shared:1 - tmpfs tmpfs rw,size=1k\n\
                    25 1 0:28 / /ro ro - tmpfs tmpfs ro\n\
                    26 1 nonsense\n";
        assert_eq!(file_systems(text), [((254, 0), "/".to_owned()), ((0, 27), "/dev/shm".to_owned())]);
    }

    #[test]
    fn events_that_are_not_whole_end_the_batch() {
        let mut event = vec![0u8; EVENT_BYTES];
        event[0..4].copy_from_slice(&(EVENT_BYTES as u32).to_ne_bytes());
        event[6..8].copy_from_slice(&(EVENT_BYTES as u16).to_ne_bytes());
        event[20..24].copy_from_slice(&7u32.to_ne_bytes());
        let two = [event.clone(), event.clone()].concat();
        assert_eq!(events(&two).map(|raw| raw.pid).collect::<Vec<_>>(), [7, 7]);
        for length in 0..two.len() {
            assert!(events(&two[..length]).count() <= 1, "{length}");
        }
        assert_eq!(events(&[0xff; 64]).count(), 0);
        assert_eq!(infos(&[2, 0, 0, 0, 1]).count(), 0);
        assert_eq!(place(&[1; 12]), None);
    }
}
