//! Why a session was lost, as far as the kernel says so.

use super::kept::{KeptBirth, KeptLife};
use super::look::{boot_id, cgroup_oom, oom};
use holdfast_observe::process_id;
use holdfast_types::TimeMs;
use holdfast_wire::lives::{Cause, LostProcess, LostView};
use holdfast_wire::runs::RunId;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Most of the kernel's log that is read: as much as kernels keep by default, several times.
const LOG_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What is known besides the files.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub at_ms: TimeMs,
    /// The signal that ended the keeper, where this host was its parent.
    pub signal: Option<i32>,
    /// Runs that were on.
    pub runs: Vec<RunId>,
}

/// What was lost, and why. Reads files, a few of them in `/proc`.
pub(crate) fn why(dir: &Path, known: Known) -> LostView {
    let life = KeptLife::load(dir);
    let birth = KeptBirth::load(dir);
    let (cause, why) = cause(life.as_ref(), known.signal);
    let life = life.unwrap_or_default();
    let same_boot = cause != Cause::Reboot;
    let survives = |process: &super::kept::KeptProcess| same_boot && process_id(process.id.pid) == Some(process.id);
    let processes = life.processes.iter().map(|process| LostProcess {
        pid: process.id.pid,
        survives: survives(process),
        program: process.program.clone(),
    });
    LostView {
        at_ms: known.at_ms,
        cause,
        why,
        processes: processes.collect(),
        cwd: life.cwd,
        seen_ms: Some(life.seen_ms).filter(|at| *at > 0),
        listened: life.listened,
        connected: life.connected,
        runs: known.runs,
        checkpoint: None,
        withheld: birth.withheld,
    }
}

/// Looks again which of the processes go on: when the loss was noticed, those that the terminal's end kills were still dying.
pub(crate) fn survivors(dir: &Path, lost: &mut LostView) {
    let life = KeptLife::load(dir).filter(|life| life.boot == boot_id()).unwrap_or_default();
    for process in &mut lost.processes {
        let kept = life.processes.iter().find(|kept| kept.id.pid == process.pid);
        process.survives = kept.is_some_and(|kept| process_id(process.pid) == Some(kept.id));
    }
}

fn cause(life: Option<&KeptLife>, signal: Option<i32>) -> (Cause, String) {
    let rebooted = life.is_some_and(|life| !life.boot.is_empty() && life.boot != boot_id());
    if rebooted {
        return (Cause::Reboot, "the machine was restarted".into());
    }
    let more =
        |before: Option<u64>, now: Option<u64>| before.zip(now).map_or(0, |(before, now)| now.saturating_sub(before));
    let in_cgroup = life.map_or(0, |life| more(life.cgroup_oom, life.cgroup.as_deref().and_then(cgroup_oom)));
    let on_machine = life.map_or(0, |life| more(life.oom, oom()));
    let was_killed = signal.is_none_or(|signal| signal == KILL);
    let keeper = life.and_then(|life| life.keeper).map(|keeper| keeper.pid);
    if was_killed && on_machine.max(in_cgroup) > 0 {
        match (keeper, kernel_log()) {
            (Some(pid), Some(log)) if names(&log, pid) => {
                return (Cause::OutOfMemory, "the kernel killed its keeper because memory ran out".into());
            }
            // The log is readable and does not name it: something else was killed for memory.
            (Some(_), Some(_)) => {}
            _ if in_cgroup > 0 => {
                let why = "its keeper is gone, and the kernel killed processes of its cgroup because memory ran out";
                return (Cause::OutOfMemory, why.into());
            }
            _ => {
                let why = "its keeper is gone; the kernel killed processes on this machine because memory ran out, perhaps this one";
                return (Cause::Unknown, why.into());
            }
        }
    }
    match signal {
        Some(number) => {
            let number = u8::try_from(number).unwrap_or(0);
            (Cause::Signal { number }, format!("its keeper was killed by signal {number}"))
        }
        None => (Cause::Unknown, "its keeper is gone, and nothing says why".into()),
    }
}

const KILL: i32 = 9;

/// The kernel's log, where this user may read it.
fn kernel_log() -> Option<Vec<u8>> {
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open("/dev/kmsg")
        .ok()?;
    let mut all = Vec::new();
    let mut record = [0; 8192];
    while all.len() < LOG_BYTES_MAX {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(&record[..count]),
            // Overwritten while it was read: the next is a newer one.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PIPE.raw_os_error()) => {}
            Err(_) => break,
        }
    }
    Some(all)
}

/// Whether the log says that this process was killed for memory.
fn names(log: &[u8], pid: u32) -> bool {
    let words = format!("Killed process {pid} (");
    memchr::memmem::find(log, words.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_graph::ProcessId;

    #[test]
    fn another_boot_is_a_restart_of_the_machine_and_a_signal_is_told() {
        let life = KeptLife { boot: "another".into(), ..KeptLife::default() };
        assert_eq!(cause(Some(&life), Some(9)).0, Cause::Reboot);
        let life = KeptLife { boot: boot_id().into(), ..KeptLife::default() };
        assert_eq!(cause(Some(&life), Some(11)).0, Cause::Signal { number: 11 });
        assert_eq!(cause(None, None).0, Cause::Unknown);
    }

    #[test]
    fn the_kernels_words_name_one_process() {
        let log = b"6,1,2,-;Out of memory: Killed process 412 (holdfast-keeper) total-vm:1kB";
        assert!(names(log, 412) && !names(log, 41) && !names(log, 12));
    }

    #[test]
    fn processes_that_go_on_are_told_from_those_that_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let us = process_id(std::process::id()).unwrap();
        let process = |id, program: &str| super::super::kept::KeptProcess { id, program: program.into() };
        let gone = ProcessId { pid: us.pid, start: us.start + 1 };
        let processes = vec![process(us, "test"), process(gone, "gone")];
        KeptLife { boot: boot_id().into(), processes, ..KeptLife::default() }.save(dir.path()).unwrap();
        let lost = why(dir.path(), Known::default());
        let survives: Vec<bool> = lost.processes.iter().map(|process| process.survives).collect();
        assert_eq!(survives, [true, false]);
    }
}
