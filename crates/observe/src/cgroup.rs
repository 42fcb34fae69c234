//! One session's cgroup v2: where it is, who is in it, whether it is frozen.
//!
//! It lies in the keeper's own cgroup under a name made of the session's label, so that any later host finds it. Frozen
//! is a property of the cgroup, not of its members: a process that enters stops, and the children of a member start inside.
//!
//! `cgroup.procs` takes pids and no pidfds. A pid that another process got between the walk and the write, well under a
//! millisecond, would move that one.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What every session's cgroup is named by.
const PREFIX: &str = "holdfast-";

/// A process that sleeps in the kernel uninterruptibly (a slow disk) holds up "frozen" this long at most. It runs no
/// program meanwhile, and stops before it does.
const SETTLE: Duration = Duration::from_secs(2);

/// The kernel tells of changes at most every 10 ms; freezing mostly takes less, so look again by ourselves.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000 };

/// Where a process is, as one session's cgroup sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the session's cgroup, or in one below it.
    Inside,
    /// Where the keeper is.
    Home,
    /// In one that somebody else made for it, a container's for example.
    Elsewhere,
    /// It is no more.
    Gone,
}

/// A session's cgroup, which need not exist yet.
pub struct Cgroup {
    /// The directory of the cgroup it is made in.
    home_dir: PathBuf,
    dir: PathBuf,
    /// As `/proc/<pid>/cgroup` names them.
    home: String,
    path: String,
}

impl Cgroup {
    /// The cgroup of the session `label` in the cgroup of the process `of`. None if there is no such process, or its
    /// cgroup is not to be seen from here.
    pub fn in_the_one_of(of: u32, label: &str) -> Option<Cgroup> {
        let home = path_of(of)?;
        let home_dir = directory(&home)?;
        // The label becomes one component of a path, whatever it is.
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let label = label.replace(|letter| !is_plain(letter), "_");
        let path = format!("{}/{PREFIX}{label}", home.trim_end_matches('/'));
        Some(Cgroup { dir: home_dir.join(format!("{PREFIX}{label}")), home_dir, home, path })
    }

    pub fn make(&self) -> io::Result<()> {
        match fs::create_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// Only an empty one goes, with the empty ones below it.
    pub fn remove(&self) -> io::Result<()> {
        self.below().into_iter().for_each(|name| drop(self.remove_below(&name)));
        fs::remove_dir(&self.dir)
    }

    /// Its directory.
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    /// As `/proc/<pid>/cgroup` names it, and the one it is made in.
    pub fn paths(&self) -> (&str, &str) {
        (&self.path, &self.home)
    }

    /// The names of the cgroups right below it.
    pub fn below(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        dirs.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Makes one below it, whose name is one component of a path. One that is there is no error.
    pub fn make_below(&self, name: &str) -> io::Result<()> {
        match fs::create_dir(self.dir.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// Removes one below it, if it is empty.
    pub fn remove_below(&self, name: &str) -> io::Result<()> {
        fs::remove_dir(self.dir.join(name))
    }

    /// Moves a process into one below it.
    pub fn admit_below(&self, name: &str, pid: u32) -> io::Result<()> {
        enter(self.dir.join(name).join("cgroup.procs"), pid)
    }

    /// The name of the cgroup right below it that a process is in.
    pub fn below_of(&self, pid: u32) -> Option<String> {
        let path = path_of(pid)?;
        let below = path.strip_prefix(&self.path)?.strip_prefix('/')?;
        below.split('/').next().map(str::to_owned)
    }

    /// Tells the kernel to freeze or thaw it. It comes about later: see [`Cgroup::settles`].
    pub fn set_frozen(&self, frozen: bool) -> io::Result<()> {
        put(self.dir.join("cgroup.freeze"), if frozen { "1" } else { "0" })
    }

    /// Whether it is set to freeze.
    pub fn is_set_frozen(&self) -> bool {
        fs::read_to_string(self.dir.join("cgroup.freeze")).is_ok_and(|text| text.trim() == "1")
    }

    /// Waits until all of it is frozen, or none. False if that did not come about in [`SETTLE`].
    pub fn settles(&self, frozen: bool) -> io::Result<bool> {
        let wanted = if frozen { "frozen 1" } else { "frozen 0" };
        let mut events = File::open(self.dir.join("cgroup.events"))?;
        let started = Instant::now();
        let mut text = String::new();
        loop {
            text.clear();
            events.rewind()?;
            events.read_to_string(&mut text)?;
            if text.lines().any(|line| line == wanted) {
                return Ok(true);
            }
            if started.elapsed() >= SETTLE {
                return Ok(false);
            }
            match poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&LOOK_AGAIN)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Moves a process in. One that is gone is no error.
    pub fn admit(&self, pid: u32) -> io::Result<()> {
        enter(self.dir.join("cgroup.procs"), pid)
    }

    /// Moves a process to where the keeper is.
    pub fn release(&self, pid: u32) -> io::Result<()> {
        enter(self.home_dir.join("cgroup.procs"), pid)
    }

    /// Who is in it, and in those right below it: the turns'.
    pub fn members(&self) -> io::Result<HashSet<u32>> {
        let mut text = fs::read_to_string(self.dir.join("cgroup.procs"))?;
        for name in self.below() {
            // One that was removed meanwhile is empty.
            text.push_str(&fs::read_to_string(self.dir.join(name).join("cgroup.procs")).unwrap_or_default());
        }
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    pub fn place(&self, pid: u32) -> Place {
        match path_of(pid) {
            None => Place::Gone,
            Some(path) if path == self.home => Place::Home,
            Some(path)
                if path.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) =>
            {
                Place::Inside
            }
            Some(_) => Place::Elsewhere,
        }
    }
}

/// Takes the calling process out of any session's cgroup it was born in, to the cgroup that one lies in.
///
/// A host started by a program in a session calls this before it starts anything: otherwise freezing that session would
/// freeze the host, and its keepers, too.
///
/// # Errors
///
/// The kernel refuses the move. Being in no session's cgroup, or on a system without cgroup v2, is fine.
pub fn leave_sessions() -> io::Result<()> {
    let Some(path) = path_of(std::process::id()) else { return Ok(()) };
    let Some(outside) = outside_of_sessions(&path) else { return Ok(()) };
    match directory(outside) {
        Some(dir) => enter(dir.join("cgroup.procs"), std::process::id()),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The part of a cgroup's path above the outermost session's cgroup in it; none if there is none.
fn outside_of_sessions(path: &str) -> Option<&str> {
    // Units may be named after us as well: `holdfast-host.service`. Sessions' names have no dot.
    let is_session = |name: &str| name.starts_with(PREFIX) && !name.contains('.');
    let mut end = 0;
    for name in path.split('/') {
        if is_session(name) {
            return Some(if end <= 1 { "/" } else { &path[..end - 1] });
        }
        end += name.len() + 1;
    }
    None
}

/// A process's cgroup v2, as the kernel names it.
fn path_of(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

/// The directory of a cgroup by its path. None without cgroup v2, and for one outside of what is mounted here.
fn directory(path: &str) -> Option<PathBuf> {
    let mounts = fs::read(format!("/proc/{}/mountinfo", std::process::id())).ok()?;
    mounts.split(|&byte| byte == b'\n').find_map(|line| directory_in(line, path))
}

/// The same by one line of `mountinfo`: `31 23 0:28 <root> <mount point> <options> <tags>… - <type> …`.
fn directory_in(line: &[u8], path: &str) -> Option<PathBuf> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let dash = fields.iter().position(|field| field == b"-")?;
    if *fields.get(dash + 1)? != b"cgroup2" {
        return None;
    }
    let (root, mount_point) = (String::from_utf8(unescape(fields.get(3)?)).ok()?, unescape(fields.get(4)?));
    // A container may see only its own part of the hierarchy.
    let below = path.strip_prefix(root.trim_end_matches('/'))?;
    if !(below.is_empty() || below.starts_with('/')) || below.split('/').any(|name| name == "..") {
        return None;
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(mount_point)).join(below.trim_start_matches('/')))
}

/// Blanks in a mount's path stand as `\040`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(first);
                rest = after;
            }
        }
    }
    plain
}

fn enter(procs: PathBuf, pid: u32) -> io::Result<()> {
    match put(procs, &pid.to_string()) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(()),
        entered => entered,
    }
}

/// One write to a file that must be there: the kernel takes each write for itself.
fn put(path: PathBuf, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_found_below_the_mount_that_shows_it() {
        let pure = "24 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
        let hybrid = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        let part = "41 31 0:38 /box/a /sys/fs/my\\040cgroup rw - cgroup2 cgroup2 rw";
        for (line, path, expected) in [
            (pure, "/", Some("/sys/fs/cgroup/")),
            (pure, "/user.slice/a.scope", Some("/sys/fs/cgroup/user.slice/a.scope")),
            (hybrid, "/a", Some("/sys/fs/cgroup/unified/a")),
            (part, "/box/a/b", Some("/sys/fs/my cgroup/b")),
            (part, "/box/ab", None),
            (part, "/", None),
            (pure, "/../other", None),
            ("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "/", None),
            ("", "/", None),
            ("1 2 3 -", "/", None),
        ] {
            assert_eq!(directory_in(line.as_bytes(), path), expected.map(PathBuf::from), "{line} {path}");
        }
    }

    #[test]
    fn only_sessions_cgroups_are_left() {
        for (path, expected) in [
            ("/", None),
            ("/user.slice/holdfast-host.service", None),
            ("/holdfast-ses_a", Some("/")),
            ("/a/holdfast-ses_a/holdfast-ses_b/c", Some("/a")),
            ("/holdfast-host.service/holdfast-ses_a", Some("/holdfast-host.service")),
        ] {
            assert_eq!(outside_of_sessions(path), expected, "{path}");
        }
    }
}
