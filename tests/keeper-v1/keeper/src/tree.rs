//! The session's processes: every descendant of the keeper, which is their subreaper.
//!
//! Less Holdfast's own: a host that a program in the session started is a descendant too, and so are the keepers of all
//! sessions that host starts. They are known by their names and are nobody's session; whoever takes such a name is spared
//! as well.

use std::fs;
use std::io::Read;

/// Processes walked at most: a fork bomb is killed in rounds, not listed to its end.
const DESCENDANTS_MAX: usize = 1 << 16;

/// Names of processes that are no part of a session, as `/proc/<pid>/comm` has them.
const OURS: [&[u8]; 2] = [b"holdfast-keeper\n", b"holdfast-host\n"];

/// Every descendant of a process, nearest first. Daemons too: an orphan's parent is its subreaper. What forks meanwhile may
/// be missed; ask again.
#[must_use]
pub fn descendants(root: u32) -> Vec<i32> {
    let mut found = Vec::new();
    children(root, &mut found);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied().filter(|_| found.len() < DESCENDANTS_MAX) {
        children(pid as u32, &mut found);
        next += 1;
    }
    found
}

/// The children of all of a process's threads: the list is kept per thread.
fn children(pid: u32, found: &mut Vec<i32>) {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return };
    for thread in threads.flatten() {
        // Read to the end: a long list comes in pages, and each page is consistent only in itself.
        let mut text = String::new();
        let list = fs::File::open(thread.path().join("children"));
        if list.and_then(|mut list| list.read_to_string(&mut text)).is_ok() {
            found.extend(
                text.split_ascii_whitespace().filter(|pid| !is_ours(pid)).filter_map(|pid| pid.parse::<i32>().ok()),
            );
        }
    }
}

fn is_ours(pid: &str) -> bool {
    fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| OURS.contains(&name.as_slice()))
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
        let found = descendants(std::process::id());
        assert!(found.contains(&(shell.id() as i32)) && found.contains(&grandchild), "{found:?}");
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
