//! Stopping processes one by one with SIGSTOP, where there is no cgroup to freeze.
//!
//! Parents first, each one seen stopped before the next: a shell that still runs would see its job stop, say so and
//! take the terminal back. They go on children first, for the same reason. Each signal goes through a pidfd that is
//! known to be of the process that was listed, never to a reused pid.
//!
//! It shows. Children's stops are signalled to their parents, a SIGCONT handler runs, and a tracer (gdb, strace) sees
//! its process get a SIGSTOP. Programs of other users, setuid ones too, refuse.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::tree::{self, Process, Spared, descendants};

/// Walks until no new process is found: one for each generation that forked during the last walk; a stopped process does not fork.
pub const ROUNDS_MAX: u32 = 100;

/// How long one process may take to stop. On a busy machine it must first get the processor.
const STOP: Duration = Duration::from_secs(1);

/// Most processes have stopped within so many looks, which take ten microseconds each; asleep we would miss it by far.
const LOOKS_AWAKE: u32 = 20;

/// Between the looks after those.
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// What [`stop`] came to.
pub struct Stopped {
    /// All live descendants, however they were stopped.
    pub processes: usize,
    /// Those that did not stop.
    pub refused: Vec<u32>,
}

/// Stops all descendants of the keeper that `is_ours` names.
///
/// # Errors
///
/// The keeper is gone, or its descendants multiply without end; what was stopped then is still stopped.
pub fn stop(keeper: u32, spared: &Spared, is_ours: impl Fn(&Process) -> bool) -> io::Result<Stopped> {
    let mut refused = Vec::new();
    // Who will not show as stopped: refused, or asleep in the kernel with the signal waiting for it.
    let mut settled = HashSet::new();
    for _ in 0..ROUNDS_MAX {
        let mut is_stable = true;
        let mut processes = 0;
        for process in descendants(keeper, spared)? {
            processes += usize::from(!process.is_over());
            let is_still = process.is_over() || matches!(process.state, 'T' | 't');
            if is_still || settled.contains(&(process.pid, process.start_time)) || !is_ours(&process) {
                continue;
            }
            is_stable = false;
            let end = match send(&process, Signal::STOP) {
                Ok(()) => confirm(&process),
                Err(Errno::SRCH) => continue,
                Err(_) => End::Runs,
            };
            if end == End::Runs {
                refused.push(process.pid);
            }
            if end != End::Stopped {
                settled.insert((process.pid, process.start_time));
            }
        }
        if is_stable {
            return Ok(Stopped { processes, refused });
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the session's processes multiply faster than they can be stopped"))
}

/// Lets go on what [`stop`] stopped among the processes that `is_ours` names. In `above` is who else stands still: the
/// members of a frozen cgroup.
///
/// Jobs that the person at the terminal suspended stay so.
///
/// # Errors
///
/// The keeper is gone, or a process refuses to go on; the others do.
pub fn go_on(
    keeper: u32,
    spared: &Spared,
    mut above: HashSet<u32>,
    is_ours: impl Fn(&Process) -> bool,
) -> io::Result<()> {
    above.insert(keeper);
    let mut result = Ok(());
    for process in stopped_by_us(descendants(keeper, spared)?, above, is_ours).iter().rev() {
        match send(process, Signal::CONT) {
            Err(error) if error != Errno::SRCH && process.state == 'T' => result = Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    result
}

/// Which of these, parents first, [`stop`] stopped.
///
/// It is not recorded, but it shows. The kernel keeps the signal that stopped a process until its parent asks, and
/// the parents of ours could not ask: they were stopped first, and a keeper asks only for deaths. A shell did ask about
/// a job that it suspended. Where the kernel does not tell (an older one, or of a process that hides itself), who is
/// stopped below one that stands still counts as ours.
fn stopped_by_us(mut tree: Vec<Process>, mut above: HashSet<u32>, is_ours: impl Fn(&Process) -> bool) -> Vec<Process> {
    let sigstop = Some(Signal::STOP.as_raw() as u32);
    let is_told = tree.iter().any(|process| process.state == 'T' && process.stop_signal == sigstop);
    tree.retain(|process| {
        let may_be = || above.contains(&process.parent) && is_ours(process);
        let is_stopped = match (process.state, process.stop_signal) {
            ('T', signal) if signal == sigstop => true,
            ('T', Some(0)) => !is_told && may_be(),
            ('T', None) => may_be(),
            // The signal may still wait for it.
            ('D', _) => may_be(),
            _ => false,
        };
        if is_stopped {
            above.insert(process.pid);
        }
        is_stopped
    });
    tree
}

#[derive(PartialEq, Eq)]
enum End {
    Stopped,
    /// It is in the kernel, and stops before it runs its program again: the parent in a vfork, a read from a slow disk.
    Asleep,
    Runs,
}

fn confirm(process: &Process) -> End {
    let started = Instant::now();
    let mut looks = 0;
    loop {
        let states = tree::thread_states(process.pid);
        if states.iter().all(|state| matches!(state, 'T' | 't' | 'Z' | 'X')) || tree::again(process).is_none() {
            return End::Stopped;
        }
        if started.elapsed() >= STOP {
            let is_asleep = states.iter().all(|state| matches!(state, 'T' | 't' | 'Z' | 'X' | 'D'));
            return if is_asleep { End::Asleep } else { End::Runs };
        }
        looks += 1;
        if looks <= LOOKS_AWAKE { std::thread::yield_now() } else { std::thread::sleep(LOOK_AGAIN) }
    }
}

/// Signals this process and no other: `ESRCH` if it is gone.
fn send(process: &Process, signal: Signal) -> Result<(), Errno> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    // The pidfd is of the process that has the pid now, if it still had it after the pidfd was made.
    tree::again(process).ok_or(Errno::SRCH)?;
    pidfd_send_signal(pidfd, signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes `pid<parent state signal`, below the keeper 1.
    fn ours(tree: &str) -> Vec<u32> {
        let process = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            Process {
                pid: words[0].parse().unwrap(),
                parent: words[1].parse().unwrap(),
                start_time: 0,
                state: words[2].chars().next().unwrap(),
                threads: 1,
                stop_signal: words[3].parse().ok(),
            }
        };
        let tree = tree.split(", ").map(process).collect();
        stopped_by_us(tree, HashSet::from([1]), |process| process.pid < 10).iter().map(|process| process.pid).collect()
    }

    #[test]
    fn a_job_the_person_suspended_is_not_ours() {
        assert_eq!(ours("2 1 S 0, 3 2 T 0"), [0; 0], "nothing is frozen");
        assert_eq!(ours("2 1 T 19, 3 2 T 0, 4 2 T 19"), [2, 4], "its shell asked for its signal");
        assert_eq!(ours("2 1 T 19, 3 2 T 20, 4 3 T 19"), [2, 4], "nobody asked, but it was another signal");
    }

    #[test]
    fn where_the_kernel_does_not_tell_all_below_ours_are() {
        assert_eq!(ours("2 1 T 0, 3 2 T 0, 4 3 S 0"), [2, 3]);
        assert_eq!(ours("2 1 T 19, 3 2 T hidden, 4 2 D 0"), [2, 3, 4]);
        assert_eq!(ours("2 1 S 0, 3 2 T hidden, 4 2 T 0"), [0; 0]);
        assert_eq!(ours("10 1 T 0, 11 1 T hidden, 12 1 D 0, 13 1 T 19"), [13], "and only if it can be");
    }
}
