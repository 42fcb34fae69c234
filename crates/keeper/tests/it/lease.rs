//! A keeper that was told until when its session may run.

use holdfast_abi::protocol::{FEATURE_LEASE, FromKeeper, LEASE_HARD, LEASE_STILL, ToKeeper, refused};
use holdfast_abi::start::{Stage, StartLease};
use holdfast_keeper::sys;

use crate::harness::*;

/// A shell that counts aloud, and a child of it that does too.
const COUNTS: &str = "sh -c 'while :; do echo a; sleep 0.01; done' & while :; do echo b; sleep 0.01; done";

fn counting(until_ms: u64, flags: u8) -> Session {
    let dir = Scratch::new();
    let lease = StartLease { fence: 5, until_ms, flags, cgroup: Vec::new() };
    let start = holdfast_abi::start::Start { lease: Some(lease), ..shell(&dir, COUNTS) };
    let session = Session::start(dir, &start);
    session.wait_for_text("a");
    session.wait_for_text("b");
    session
}

/// When the keeper says that it stopped, how late.
fn fenced(host: &mut Connection) -> (u8, u32, u32) {
    host.take("Fenced", |frame| match frame {
        FromKeeper::Fenced { fenced, late_ms, left, .. } => Some((fenced, late_ms, left)),
        _ => None,
    })
}

/// Looks at something for so long.
fn through(ms: u64, mut look: impl FnMut()) {
    let end_ms = sys::monotonic_ms() + ms;
    while sys::monotonic_ms() < end_ms {
        look();
        std::thread::yield_now();
    }
}

/// Nothing is printed any more.
fn stands_still(session: &Session) {
    // What was written before the stop is read first.
    let mut head = session.ring.head();
    eventually("silence", || (std::mem::replace(&mut head, session.ring.head()) == session.ring.head()).then_some(()));
    through(100, || assert_eq!(session.ring.head(), head, "it goes on"));
}

fn goes_on(session: &Session) {
    let head = session.ring.head();
    eventually("more output", || (session.ring.head() > head + 10).then_some(()));
}

fn lease(until_ms: u64, flags: u8) -> ToKeeper<'static> {
    ToKeeper::Lease { fence: 5, until_ms, flags, cgroup: b"" }
}

#[test]
fn the_tree_stops_at_the_deadline_takes_nothing_and_goes_on_with_the_next_lease() {
    let session = counting(sys::boottime_ms() + 400, 0);
    let mut host = session.host();
    let (is_fenced, late_ms, left) = fenced(&mut host);
    assert_eq!((is_fenced, left), (1, 0));
    assert!(late_ms < 5_000, "{late_ms} ms late");
    stands_still(&session);
    host.send(ToKeeper::Input { fence: 0, stream: 1, seq: 1, bytes: b"x" });
    assert_eq!(host.refused(), refused::FULL, "as when there is no room: it may come again");
    // The next host learns it.
    let mut host = session.host();
    assert_eq!(fenced(&mut host).0, 1);
    host.send(lease(sys::boottime_ms() + 60_000, LEASE_STILL));
    assert_eq!(fenced(&mut host).0, 0);
    stands_still(&session);
    host.send(lease(sys::boottime_ms() + 60_000, 0));
    assert_eq!(fenced(&mut host).0, 0);
    goes_on(&session);
    host.send(ToKeeper::Lease { fence: 4, until_ms: u64::MAX, flags: 0, cgroup: b"" });
    assert_eq!(host.refused(), refused::STALE, "nobody's word any more");
}

#[test]
fn a_session_whose_lease_is_over_is_killed_without_running_once_more() {
    let mut session = counting(sys::boottime_ms() + 60_000, 0);
    let mut host = session.host();
    host.send(lease(0, 0));
    assert_eq!(fenced(&mut host).0, 1);
    let head = session.ring.head();
    host.send(ToKeeper::End { grace_ms: 60_000 });
    assert_eq!(session.ended(), 9, "killed, and not asked");
    assert_eq!(session.ring.head(), head, "it ran once more");
}

#[test]
fn a_keeper_that_is_stopped_itself_is_killed_by_a_hard_fence_and_by_no_other() {
    let session = counting(sys::boottime_ms() + 300, LEASE_HARD);
    sys::kill(session.keeper as i32, libc::SIGSTOP);
    eventually("its end", || (!is_alive(session.keeper)).then_some(()));
    sys::kill(session.child as i32, libc::SIGKILL);
    // One that stopped its tree in time goes on living.
    let session = counting(sys::boottime_ms() + 300, LEASE_HARD);
    let mut host = session.host();
    assert_eq!(fenced(&mut host).0, 1);
    through(500, || assert!(is_alive(session.keeper)));
    host.send(lease(sys::boottime_ms() + 60_000, 0));
    assert_eq!(fenced(&mut host).0, 0);
    goes_on(&session);
}

#[test]
fn a_lease_that_is_over_begins_no_life_and_the_feature_is_said() {
    let dir = Scratch::new();
    let lease = StartLease { fence: 5, until_ms: 1, flags: 0, cgroup: Vec::new() };
    let start = holdfast_abi::start::Start { lease: Some(lease), ..shell(&dir, COUNTS) };
    let (started, mut process) = launch(&start.encode());
    assert_eq!((started.stage, started.errno), (Stage::Block, libc::ETIME));
    process.wait().unwrap();
    let session = Session::shell("read line");
    let welcome = session.host().welcome.unwrap();
    assert_ne!(welcome.features & FEATURE_LEASE, 0);
}
