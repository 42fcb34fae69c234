//! What a tree takes up, and whether one process is alone in it.

use crate::harness::{Session, eventually};
use holdfast_observe::{How, alone, residency};
use std::time::{Duration, Instant};

#[test]
fn memory_and_processes_of_a_tree_are_measured() {
    let session = Session::shell(How::Signals, "sleep 1000 & sleep 1000 & wait");
    let now = Instant::now();
    let measure = || residency(session.keeper.id(), &session.spared, now + Duration::from_secs(3600)).unwrap();
    let seen = eventually("two processes", || Some(measure()).filter(|seen| seen.processes == 2));
    assert!(seen.memory_bytes > 100 * 1024 && seen.memory_bytes < 1 << 30, "{seen:?}");
    assert!(!seen.is_estimated, "{seen:?}");
    // Who has no more time for parts is told what is resident, which is more.
    let whole = residency(session.keeper.id(), &session.spared, now).unwrap();
    assert!(whole.is_estimated && whole.memory_bytes > seen.memory_bytes, "{seen:?} {whole:?}");
}

#[test]
fn a_process_is_alone_while_it_has_no_other_beside_or_below_it_and_what_it_does_is_counted() {
    let session = Session::shell(How::Signals, "sh -c 'while read line; do $line; done'; true");
    let keeper = session.keeper.id();
    let shell = eventually("the shell", || session.tree().first().map(|process| process.pid));
    let look = || alone(keeper, shell, &[], &session.spared).unwrap();
    // It starts, and then waits for its input: from there on it has not run since.
    let first = eventually("the shell alone and at rest", || look().filter(|first| look().as_ref() == Some(first)));
    assert_eq!((first.shell.pid, first.keeper.pid), (shell, keeper));
    // It reads what the keeper reads: a command that stays.
    use std::io::Write;
    let mut stdin = session.keeper.stdin.as_ref().unwrap();
    stdin.write_all(b"sleep 1000\n").unwrap();
    eventually("another process", || look().is_none().then_some(()));
    assert_eq!(
        alone(keeper, std::process::id(), &[], &session.spared).unwrap(),
        None,
        "another one than is asked about"
    );
    let job = eventually("the job", || session.tree().iter().map(|process| process.pid).find(|pid| *pid != shell));
    let pid = rustix::process::Pid::from_raw(i32::try_from(job).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let after = eventually("the shell alone again", look);
    assert!(after.shell == first.shell && after.switches > first.switches, "{first:?} {after:?}");
}
