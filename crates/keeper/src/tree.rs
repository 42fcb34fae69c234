//! The session's processes: every descendant of the keeper, which is their subreaper.
//!
//! Less Holdfast's own: a host that a program in the session started is a descendant too, and so are the keepers of all
//! sessions that host starts. The host names them, by pid and start time; what a process calls itself says nothing.

use std::collections::HashSet;
use std::fs;
use std::io::Read;

/// Processes walked at most: a fork bomb is killed in rounds, not listed to its end.
const DESCENDANTS_MAX: usize = 1 << 16;

/// Processes that may be spared at once: those of as many sessions as one machine could hold.
pub const SPARED_MAX: usize = 1 << 16;

/// Where a process's start time stands in `/proc/<pid>/stat` behind its name.
const START_TIME: usize = 19;

/// Processes that are no part of the session, by pid and start time.
pub type Spared = HashSet<(u32, u64)>;

/// Every descendant of a process, nearest first. Daemons too: an orphan's parent is its subreaper. What forks meanwhile may
/// be missed; ask again.
#[must_use]
pub fn descendants(root: u32, spared: &Spared) -> Vec<i32> {
    let mut found = Vec::new();
    children(root, spared, &mut found);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied().filter(|_| found.len() < DESCENDANTS_MAX) {
        children(pid as u32, spared, &mut found);
        next += 1;
    }
    found
}

/// The children of all of a process's threads: the list is kept per thread.
fn children(pid: u32, spared: &Spared, found: &mut Vec<i32>) {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return };
    for thread in threads.flatten() {
        // Read to the end: a long list comes in pages, and each page is consistent only in itself.
        let mut text = String::new();
        let list = fs::File::open(thread.path().join("children"));
        if list.and_then(|mut list| list.read_to_string(&mut text)).is_ok() {
            let pids = text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
            found.extend(pids.filter(|pid| !is_spared(*pid, spared)).map(|pid| pid as i32));
        }
    }
}

fn is_spared(pid: u32, spared: &Spared) -> bool {
    !spared.is_empty() && start_time(pid).is_some_and(|start| spared.contains(&(pid, start)))
}

/// Where the signal that stopped a process stands there, until its parent asked for it.
const STOP_SIGNAL: usize = 49;

/// How a process is, as `/proc/<pid>/stat` says it, and by which signal it was stopped.
#[must_use]
pub fn state(pid: u32) -> Option<(char, i32)> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let behind = line.iter().rposition(|&byte| byte == b')')? + 1;
    let mut words = std::str::from_utf8(&line[behind..]).ok()?.split_ascii_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.nth(STOP_SIGNAL - 1).and_then(|word| word.parse().ok()).unwrap_or(0)))
}

/// When a process started, in clock ticks since boot: with the pid, who it is.
#[must_use]
pub fn start_time(pid: u32) -> Option<u64> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold blanks and brackets.
    let behind = line.iter().rposition(|&byte| byte == b')')? + 1;
    std::str::from_utf8(&line[behind..]).ok()?.split_ascii_whitespace().nth(START_TIME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;
    use std::process::{Command, Stdio};

    #[test]
    fn grandchildren_are_found() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 100 & echo $!; read line; kill $!"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let grandchild: i32 = line.trim().parse().unwrap();
        let found = descendants(std::process::id(), &Spared::new());
        assert!(found.contains(&(shell.id() as i32)) && found.contains(&grandchild), "{found:?}");
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
