//! Stopping the whole tree, and letting it go on: what the keeper does by itself when its lease is over.
//!
//! With a cgroup of the session's own it is frozen first and entered then, parents before children, until a walk finds nobody outside; a
//! process in a cgroup of somebody else (a container), and everybody where there is no cgroup, gets SIGSTOP, parents first. It blocks for as
//! long as that takes, a second at most: nothing else is as urgent.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crate::sys;
use crate::tree::{self, Spared};

/// Walks until none finds somebody new.
const ROUNDS_MAX: u32 = 100;
/// How long all of it may take: one that sleeps in the kernel stops before it runs its program again.
const TIME_MS_MAX: u64 = 1_000;
/// Between two looks whether all stand still.
const LOOK: Duration = Duration::from_micros(500);
/// How often it is looked whether one process has stopped, before the next is signalled: a shell that still runs would say so.
const LOOKS_MAX: u32 = 40;

/// Who was stopped by a signal, by pid and start time.
pub type Stopped = HashSet<(i32, u64)>;

/// Stops every descendant; gives how many still run.
pub fn stop(cgroup: &[u8], spared: &Spared, stopped: &mut Stopped) -> u32 {
    let deadline_ms = sys::monotonic_ms() + TIME_MS_MAX;
    let group = Group::frozen(cgroup);
    let (mut moved, mut refused) = (HashSet::new(), HashSet::new());
    for _ in 0..ROUNDS_MAX {
        let mut is_stable = true;
        for pid in tree::descendants(std::process::id(), spared) {
            let Some(start) = tree::start_time(pid as u32) else { continue };
            if moved.contains(&(pid, start)) || refused.contains(&(pid, start)) {
                continue;
            }
            match group.as_ref().map(|group| group.place(pid)) {
                Some(Place::Inside) => continue,
                Some(Place::Home) if group.as_ref().is_some_and(|group| group.admit(pid)) => {
                    moved.insert((pid, start));
                    is_stable = false;
                    continue;
                }
                Some(Place::Home | Place::Elsewhere) | None => {}
            }
            match tree::state(pid as u32) {
                None | Some(('T' | 't' | 'Z' | 'X', _)) => continue,
                Some(_) => {}
            }
            is_stable = false;
            sys::kill(pid, libc::SIGSTOP);
            if has_stopped(pid) {
                stopped.insert((pid, start));
            } else {
                // Asleep in the kernel with the signal waiting for it, or somebody else's.
                refused.insert((pid, start));
            }
        }
        if is_stable || sys::monotonic_ms() >= deadline_ms {
            break;
        }
    }
    while group.as_ref().is_some_and(|group| !group.is_still()) {
        if sys::monotonic_ms() >= deadline_ms {
            return refused.len() as u32 + 1;
        }
        std::thread::sleep(LOOK);
    }
    refused.len() as u32
}

/// Lets all go on who were stopped for the lease, or by a host that froze the session: children first, for the reason above.
pub fn go_on(cgroup: &[u8], spared: &Spared, stopped: &mut Stopped) {
    for pid in tree::descendants(std::process::id(), spared).into_iter().rev() {
        let is_ours = tree::start_time(pid as u32).is_some_and(|start| stopped.contains(&(pid, start)));
        // A job that the person at the terminal suspended was asked for by its shell: the kernel no longer says by which signal.
        let is_hosts = matches!(tree::state(pid as u32), Some(('T', libc::SIGSTOP)));
        if is_ours || is_hosts {
            sys::kill(pid, libc::SIGCONT);
        }
    }
    stopped.clear();
    if !cgroup.is_empty() {
        let _ = put(&Path::new(std::ffi::OsStr::from_bytes(cgroup)).join("cgroup.freeze"), "0");
    }
}

fn has_stopped(pid: i32) -> bool {
    for _ in 0..LOOKS_MAX {
        match tree::state(pid as u32) {
            None | Some(('T' | 't' | 'Z' | 'X', _)) => return true,
            Some(_) => std::thread::sleep(LOOK),
        }
    }
    false
}

/// Where a process is.
enum Place {
    Inside,
    /// Where the keeper is.
    Home,
    Elsewhere,
}

/// The session's cgroup.
struct Group<'a> {
    dir: &'a Path,
    /// As `/proc/<pid>/cgroup` names the keeper's, and this one.
    home: Vec<u8>,
    path: Vec<u8>,
}

impl Group<'_> {
    /// Made where it is missing, and set to freeze; none where that is not to be had.
    fn frozen(dir: &[u8]) -> Option<Group<'_>> {
        let dir = Some(Path::new(std::ffi::OsStr::from_bytes(dir))).filter(|dir| dir.is_absolute())?;
        let home = group_of(std::process::id() as i32)?;
        let mut path = home.clone();
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(dir.file_name()?.as_bytes());
        let _ = fs::create_dir(dir);
        put(&dir.join("cgroup.freeze"), "1").ok()?;
        Some(Group { dir, home, path })
    }

    fn place(&self, pid: i32) -> Place {
        let Some(group) = group_of(pid) else { return Place::Inside };
        let below = group.strip_prefix(&self.path[..]);
        if below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")) {
            Place::Inside
        } else if group == self.home {
            Place::Home
        } else {
            Place::Elsewhere
        }
    }

    fn admit(&self, pid: i32) -> bool {
        put(&self.dir.join("cgroup.procs"), &pid.to_string()).is_ok()
    }

    fn is_still(&self) -> bool {
        // An empty one says so too. One that is gone has nobody in it.
        fs::read_to_string(self.dir.join("cgroup.events")).map_or(true, |text| text.lines().any(|l| l == "frozen 1"))
    }
}

/// A process's cgroup v2.
fn group_of(pid: i32) -> Option<Vec<u8>> {
    let text = fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::")).map(<[u8]>::to_vec)
}

/// One write to a file that must be there: the kernel takes each write for itself.
fn put(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}
