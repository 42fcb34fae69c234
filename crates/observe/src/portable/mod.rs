//! A portable session as CRIU sees it: which of its processes is which ([`Tree`]), and what a checkpoint cannot keep ([`obstacles`]).
//!
//! A portable session's keeper has one child that waits; its child is the init of the session's pid namespace; the init's first child is
//! the session's command.
//!
//! Everything is read from `/proc` at each call, as root.

mod obstacles;

pub use obstacles::{Obstacle, Obstacles, obstacles};

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::tree::{self, Spared, descendants};
use holdfast_graph::ProcessId;

/// The device number of the session's terminal, the first of its devpts: major 136, minor 0, as `/proc/PID/stat` has it.
const FIRST_PTS: u32 = 136 << 8;

/// The processes around a portable session's command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    /// The keeper's child.
    pub waits: u32,
    /// Pid 1 of the session's namespace.
    pub init: u32,
    /// The session's command.
    pub command: u32,
}

/// The processes around the command of a portable session whose keeper's child is `waits`; none while they are being made.
#[must_use]
pub fn tree(waits: u32) -> Option<Tree> {
    let init = *children(waits).first()?;
    let is_inside = namespaced(init).is_some_and(|pid| pid == 1);
    // The init starts the command before anything else.
    let command = children(init).into_iter().filter(|_| is_inside).min_by_key(|pid| namespaced(*pid))?;
    Some(Tree { waits, init, command })
}

fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// A process's pid in its own namespace.
fn namespaced(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last()?.parse().ok())
}

/// What CRIU must be told of the session's terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terminal {
    /// The terminal, as CRIU names it.
    pub key: String,
    /// `/dev/tty`, likewise.
    pub tty_key: String,
    /// Pids, inside, of the session leaders whose terminal it is.
    pub leaders: Vec<u32>,
}

/// What CRIU must be told of the terminal of the session with this init.
///
/// # Errors
///
/// The init is gone.
pub fn terminal(init: u32) -> std::io::Result<Terminal> {
    let key = |path: &str| {
        fs::metadata(format!("/proc/{init}/root{path}")).map(|file| format!("tty[{:x}:{:x}]", file.rdev(), file.dev()))
    };
    let is_leader = |process: &&tree::Process| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        fields.get(3).and_then(|sid| sid.parse().ok()) == Some(process.pid)
            && fields.get(4).and_then(|tty| tty.parse().ok()) == Some(FIRST_PTS)
    };
    let below = descendants(init, &Spared::default())?;
    let leaders = below.iter().filter(is_leader).filter_map(|process| namespaced(process.pid)).collect();
    Ok(Terminal { key: key("/dev/pts/0")?, tty_key: key("/dev/tty")?, leaders })
}

/// Whether the group that has the terminal has a process that lives. Between two commands of a loop it has none for a moment, and an image of
/// that moment cannot be restored.
#[must_use]
pub fn has_foreground(init: u32) -> bool {
    let below = descendants(init, &Spared::default()).unwrap_or_default();
    let alive = below.iter().filter(|process| !process.is_over());
    // Group, terminal, and the terminal's group of each.
    let groups: Vec<[i32; 3]> = alive.filter_map(|process| groups_of(process.pid)).collect();
    let on_terminal = groups.iter().filter(|[_, terminal, _]| *terminal == FIRST_PTS as i32);
    let wanted = on_terminal.map(|[.., foreground]| *foreground).find(|foreground| *foreground > 0);
    wanted.is_none_or(|wanted| groups.iter().any(|[group, ..]| *group == wanted))
}

fn groups_of(pid: u32) -> Option<[i32; 3]> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let field = |at: usize| fields.get(at)?.parse().ok();
    Some([field(2)?, field(4)?, field(5)?])
}

/// The init and everything below it.
///
/// # Errors
///
/// It is gone.
pub fn inside(init: u32) -> std::io::Result<Vec<tree::Process>> {
    let first = tree::read(init).ok_or(std::io::ErrorKind::NotFound)?;
    Ok(std::iter::once(first).chain(descendants(init, &Spared::default())?).collect())
}

/// Lets every process go on, but for those that were stopped before. Also one that does not look stopped: whoever was just traced is about
/// to be.
pub fn go_on(init: u32, stopped_before: &[ProcessId]) {
    use rustix::process::{Pid, Signal, kill_process};
    // Children before their parents: a parent must not see a child as stopped.
    for process in inside(init).unwrap_or_default().iter().rev() {
        if let Some(pid) = Pid::from_raw(process.pid as i32).filter(|_| !stopped_before.contains(&process.id())) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

/// Ends all of them at once, the init last: none that stands still does anything more.
pub fn kill(init: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    for process in inside(init).unwrap_or_default().iter().rev() {
        if let Some(pid) = Pid::from_raw(process.pid as i32) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// A mark of what the processes have done: how many threads there are, and how often they have run. While it is the same, they waited.
///
/// # Errors
///
/// They are gone.
pub fn stirs(init: u32) -> std::io::Result<(u64, u64)> {
    let (mut threads, mut runs) = (0, 0);
    for process in inside(init)? {
        for thread in std::fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten().flatten() {
            let id = thread.file_name().to_str().and_then(|name| name.parse().ok());
            threads += 1;
            runs += id.and_then(crate::residency::switches).unwrap_or_default();
        }
    }
    Ok((threads, runs))
}

/// Whether a process is stopped now.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    tree::read(pid).is_some_and(|process| process.state == 'T')
}

/// Those that are stopped now.
#[must_use]
pub fn stopped(init: u32) -> Vec<ProcessId> {
    let all = inside(init).unwrap_or_default();
    all.iter().filter(|process| process.state == 'T').map(tree::Process::id).collect()
}
