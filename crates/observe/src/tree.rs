//! A session's processes: every descendant of the keeper, which is their subreaper.
//!
//! Less Holdfast's own: a host that a program in the session started is a descendant too, and so are the keepers of all
//! sessions that host starts. The host says which they are ([`Spared`]), by pid and start time; a name says nothing, since
//! every program may choose its own. Neither they nor anything below them is listed. So is the calling process: it must not
//! stop itself.
//!
//! A walk of processes that run is a guess: who forks or exits meanwhile may be missed. Once all of them are stopped it
//! is exact, so a caller that needs it exact stops what was found and walks again.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io::{self, Read};

use holdfast_graph::ProcessId;

use crate::proc::Stat;

/// Processes walked at most: a fork bomb grows while it is listed. As many as the keeper's `end` walks.
const DESCENDANTS_MAX: usize = 1 << 16;

/// Holdfast's own processes, which are no part of a session wherever they run: the host and the keepers that it knows.
/// The calling process always is one.
#[derive(Clone, Debug, Default)]
pub struct Spared(HashSet<ProcessId>);

impl Spared {
    /// One more.
    pub fn add(&mut self, process: ProcessId) {
        self.0.insert(process);
    }

    /// One less.
    pub fn remove(&mut self, process: ProcessId) {
        self.0.remove(&process);
    }

    pub(crate) fn is(&self, pid: u32, start: u64) -> bool {
        pid == std::process::id() || self.0.contains(&ProcessId { pid, start })
    }
}

impl FromIterator<ProcessId> for Spared {
    fn from_iter<T: IntoIterator<Item = ProcessId>>(own: T) -> Spared {
        Spared(own.into_iter().collect())
    }
}

/// The process that has this pid now.
#[must_use]
pub fn process_id(pid: u32) -> Option<ProcessId> {
    read(pid).map(|process| process.id())
}

/// One process, as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id, which the kernel gives to another process once this one is gone and reaped.
    pub pid: u32,
    /// Its parent when it was read.
    pub parent: u32,
    /// When it started, in clock ticks since boot: with the pid, who it is.
    pub start_time: u64,
    /// Its first thread's state as `/proc/<pid>/stat` has it: `R`, `S`, `D`, `T`, `t`, `Z`.
    pub state: char,
    /// Its threads, the first one included even when that one is dead.
    pub(crate) threads: u32,
    /// The signal that stopped it, until its parent has asked for it. `Some(0)` if there is none, or the kernel is too
    /// old to tell; `None` if we may not know.
    pub(crate) stop_signal: Option<u32>,
}

impl Process {
    /// Nothing of it will run again: a zombie. One whose first thread alone is dead is not.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads < 2
    }

    /// Who it is.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        ProcessId { pid: self.pid, start: self.start_time }
    }

    /// The same process as one read earlier.
    pub(crate) fn is(&self, earlier: &Process) -> bool {
        (self.pid, self.start_time) == (earlier.pid, earlier.start_time)
    }
}

/// Every live descendant of a process, without itself, parents before their children. Zombies nobody has reaped are
/// listed too. Holdfast's own processes and the caller are not, nor is anything below them.
///
/// # Errors
///
/// The process is gone, or `/proc` cannot be read. Descendants that go meanwhile are left out.
pub fn descendants(root: u32, spared: &Spared) -> io::Result<Vec<Process>> {
    walk_apart(root, spared).map(|(found, _)| found)
}

/// Holdfast's own processes among the descendants of a process, without those below them.
///
/// # Errors
///
/// As [`descendants`].
pub fn spared_below(root: u32, spared: &Spared) -> io::Result<Vec<ProcessId>> {
    walk_apart(root, spared).map(|(_, own)| own)
}

fn walk_apart(root: u32, spared: &Spared) -> io::Result<(Vec<Process>, Vec<ProcessId>)> {
    let mut own = Vec::new();
    let walked = walk(root, DESCENDANTS_MAX, |pid, below| {
        let process = read(pid)?;
        if spared.is(pid, process.start_time) {
            own.push(process.id());
            return None;
        }
        below.extend(children(pid).unwrap_or_default());
        Some(process)
    })?;
    Ok((walked.found, own))
}

/// What a [`walk`] found.
pub(crate) struct Walked<T> {
    /// Parents before their children.
    pub(crate) found: Vec<T>,
    /// There were more than were asked for.
    pub(crate) is_cut: bool,
}

/// Visits the descendants of a process, parents first. A visit adds the children to visit later, or gives nothing, and
/// then nobody below is visited.
pub(crate) fn walk<T>(
    root: u32,
    max: usize,
    mut visit: impl FnMut(u32, &mut VecDeque<u32>) -> Option<T>,
) -> io::Result<Walked<T>> {
    let mut seen = HashSet::from([root]);
    let mut queue = VecDeque::from(children(root)?);
    let mut found = Vec::new();
    while let Some(pid) = queue.pop_front() {
        // A child changes lists when the thread that made it ends, and may stand in both.
        if !seen.insert(pid) {
            continue;
        }
        if found.len() >= max {
            return Ok(Walked { found, is_cut: true });
        }
        found.extend(visit(pid, &mut queue));
    }
    Ok(Walked { found, is_cut: false })
}

/// This process as it is now, if it is still there.
pub(crate) fn again(process: &Process) -> Option<Process> {
    read(process.pid).filter(|now| now.is(process))
}

/// A process's parent now.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    read(pid).map(|process| process.parent)
}

/// Whether a process below `root` is one of Holdfast's own or below one.
pub(crate) fn is_below_spared(pid: u32, root: u32, spared: &Spared) -> bool {
    let mut next = pid;
    while next > 1 && next != root {
        let Some(process) = read(next) else { return false };
        if spared.is(next, process.start_time) {
            return true;
        }
        next = process.parent;
    }
    false
}

/// The states of a process's threads; none if it is gone.
pub(crate) fn thread_states(pid: u32) -> Vec<char> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let stats = threads.flatten().filter_map(|thread| fs::read(thread.path().join("stat")).ok());
    stats.filter_map(|stat| parse(&stat).map(|thread| thread.state)).collect()
}

/// The children of all of a process's threads: the list is kept per thread.
fn children(pid: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    let mut text = String::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        text.clear();
        // Read to the end: a long list comes in pages.
        if fs::File::open(thread.path().join("children")).and_then(|mut list| list.read_to_string(&mut text)).is_ok() {
            found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    Ok(found)
}

pub(crate) fn read(pid: u32) -> Option<Process> {
    crate::proc::small(&format!("/proc/{pid}/stat"), parse)?
}

/// What a `stat` line says.
fn parse(line: &[u8]) -> Option<Process> {
    let stat = Stat::parse(line)?;
    // Who may not know a process's addresses reads 1 for where its code starts, and 0 for its exit code.
    let is_hidden = stat.text(26) == Some("1");
    Some(Process {
        pid: stat.pid,
        parent: stat.number(4)?,
        start_time: stat.number(22)?,
        state: stat.state()?,
        threads: stat.number(20)?,
        stop_signal: stat.number(52).filter(|_| !is_hidden),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `stat` line with these fields, by their numbers, and zeros.
    fn stat(name: &str, given: &[(usize, &str)]) -> Vec<u8> {
        let field = |number| given.iter().find(|(at, _)| *at == number).map_or("0", |(_, text)| text);
        let fields: Vec<&str> = (3..=52).map(field).collect();
        format!("12 ({name}) {}\n", fields.join(" ")).into_bytes()
    }

    #[test]
    fn a_name_with_brackets_and_blanks_is_read_whole() {
        let line = stat("a) S 1 (b", &[(3, "T"), (4, "7"), (20, "3"), (22, "555"), (26, "4096"), (52, "19")]);
        let process = Process { pid: 12, parent: 7, start_time: 555, state: 'T', threads: 3, stop_signal: Some(19) };
        assert_eq!(parse(&line), Some(process));
        assert_eq!(Stat::parse(&line).unwrap().name, b"a) S 1 (b");
    }

    #[test]
    fn a_signal_that_is_hidden_from_us_is_not_taken_for_none() {
        let process = parse(&stat("ssh-agent", &[(3, "T"), (26, "1")])).unwrap();
        assert_eq!(process.stop_signal, None);
    }

    #[test]
    fn what_is_no_stat_line_is_nobody() {
        for line in ["", "12", "12 (a", "12 (a)", "12 (a) S", "x (a) S 1 1", ")("] {
            assert_eq!(parse(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn we_are_read_as_ourselves() {
        let us = read(std::process::id()).unwrap();
        assert_eq!(us.stop_signal, Some(0));
        assert!(!us.is_over() && again(&us).is_some_and(|now| now.is(&us)));
    }
}
