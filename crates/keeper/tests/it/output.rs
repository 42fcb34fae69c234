use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use holdfast_abi::protocol::{FOLLOW_HOLDS, FOLLOW_SCREEN, FromKeeper, STALL_MS, ToKeeper, WINDOW_BYTES, refused};
use holdfast_abi::ring::{Copied, GUARD_BYTES, STATE_ENDED};

use crate::harness::*;

/// A line whose length shares no factor with the ring's: lost bytes would shift it.
const LINE: &[u8] = b"the quick brown fox jumps over the lazy dog 0123456789\n";

/// Waits for a byte, then writes `count` bytes of lines.
fn flood(count: u64) -> String {
    let line = std::str::from_utf8(LINE).unwrap().trim_end();
    format!("echo ready; head -c1 >/dev/null; yes '{line}' | head -c {count}")
}

/// Compares a stream with endless lines.
struct Lines {
    expected: Vec<u8>,
    seen: u64,
}

impl Lines {
    fn new() -> Lines {
        Lines { expected: LINE.repeat(65536 / LINE.len() + 2), seen: 0 }
    }

    #[track_caller]
    fn check(&mut self, bytes: &[u8]) {
        let phase = (self.seen % LINE.len() as u64) as usize;
        assert!(bytes == &self.expected[phase..phase + bytes.len()], "wrong bytes after {}", self.seen);
        self.seen += bytes.len() as u64;
    }
}

const READY: u64 = 6;

#[test]
fn fifty_megabytes_pass_a_small_ring_byte_for_byte_while_a_reader_holds() {
    let count = 50_000_000;
    let session = Session::raw(&flood(count));
    session.wait_for_text("ready");
    let mut host = session.host();
    let mut reader = session.client(&mut host, 0);
    reader.send(ToKeeper::Follow { position: READY, flags: FOLLOW_HOLDS });
    reader.sync();
    host.type_in(0, 1, 1, "x");
    let mut lines = Lines::new();
    let mut furthest = 0;
    let mut follower = Reader::at(&session, READY);
    let ring = &session.ring;
    follower.read_to_end(&mut reader, |bytes| {
        lines.check(bytes);
        furthest = furthest.max(ring.head() - READY - lines.seen);
    });
    assert_eq!((lines.seen, session.ring.head()), (count, READY + count));
    // The reader acknowledges every 64 KiB and only after this measure was taken.
    assert!(furthest <= WINDOW_BYTES + 65536, "{furthest}");
}

#[test]
fn a_stuck_reader_holds_the_child_once_and_is_then_lapped_and_everything_is_accounted_for() {
    let count = 20_000_000;
    let mut session = Session::raw(&flood(count));
    session.wait_for_text("ready");
    let mut host = session.host();
    let mut stuck = session.client(&mut host, 0);
    stuck.send(ToKeeper::Follow { position: READY, flags: FOLLOW_HOLDS });
    stuck.sync();
    let began = Instant::now();
    host.type_in(0, 1, 1, "x");
    let ring = &session.ring;
    eventually("the lapping", || (ring.head() > READY + WINDOW_BYTES).then_some(()));
    let held = began.elapsed();
    assert!(held >= Duration::from_millis(STALL_MS), "the child was not held: {held:?}");
    assert_eq!(session.ended(), 0);
    assert_eq!(session.ring.head(), READY + count);
    // What is left is the end of the stream, and the reader is told exactly how much it missed.
    let mut buffer = vec![0; 65536];
    let Copied::Lapped { oldest } = session.ring.copy(READY, &mut buffer) else { panic!("not lapped") };
    let mut lines = Lines { seen: oldest - READY, ..Lines::new() };
    let mut position = oldest;
    while let Copied::Bytes(got @ 1..) = session.ring.copy(position, &mut buffer) {
        lines.check(&buffer[..got]);
        position += got as u64;
    }
    assert_eq!((oldest - READY) + (position - oldest), count);
    assert_eq!(position - oldest, RING_BYTES - GUARD_BYTES);
}

#[test]
fn output_that_nobody_follows_runs_free() {
    let mut session = Session::raw("head -c 5000000 /dev/zero");
    assert_eq!(session.ended(), 0);
    assert_eq!(session.ring.head(), 5_000_000);
}

#[test]
fn a_sleeper_is_woken_once_where_it_asked() {
    let session = Session::raw("echo ready; cat");
    session.wait_for_text("ready");
    let mut host = session.host();
    let mut client = session.client(&mut host, 0);
    // At once where head is there already.
    client.send(ToKeeper::Sleep { position: 2, wake_at: 3 });
    assert_eq!(client.woken(), 2);
    client.send(ToKeeper::Sleep { position: READY, wake_at: READY + 4 });
    client.sync();
    let head_reaches = |head| eventually("output", || (session.ring.head() >= head).then_some(()));
    host.type_in(0, 1, 1, "abc");
    head_reaches(READY + 3);
    client.sync();
    assert_eq!(client.try_take(wake), None);
    host.type_in(0, 1, 2, "d");
    assert_eq!(client.woken(), READY);
    host.type_in(0, 1, 3, "e");
    head_reaches(READY + 5);
    client.sync();
    assert_eq!(client.try_take(wake), None);
}

#[test]
fn a_sleeper_at_its_windows_edge_is_woken_before_what_it_asked_for() {
    let session = Session::raw(&flood(3_000_000));
    session.wait_for_text("ready");
    let mut host = session.host();
    host.send(ToKeeper::Follow { position: READY, flags: FOLLOW_SCREEN });
    host.send(ToKeeper::Sleep { position: READY, wake_at: u64::MAX });
    host.type_in(0, 1, 1, "x");
    let started = Instant::now();
    assert_eq!(host.woken(), READY);
    assert!(started.elapsed() < Duration::from_millis(STALL_MS));
    assert_eq!(session.ring.head(), READY + RING_BYTES - 2 * GUARD_BYTES);
    assert_eq!(session.ring.oldest(), 0, "nothing was lost yet");
}

#[test]
fn a_client_is_not_the_hosts_screen() {
    let session = Session::shell("read line");
    let mut host = session.host();
    let mut client = session.client(&mut host, 0);
    client.send(ToKeeper::Follow { position: 0, flags: FOLLOW_SCREEN });
    assert_eq!(client.refused(), refused::HOST);
}

#[test]
fn a_reader_that_caught_up_holds_again() {
    let session = Session::raw(&flood(30_000_000));
    session.wait_for_text("ready");
    let mut host = session.host();
    let mut client = session.client(&mut host, 0);
    client.send(ToKeeper::Follow { position: READY, flags: FOLLOW_HOLDS });
    client.sync();
    host.type_in(0, 1, 1, "x");
    eventually("the lapping", || (session.ring.oldest() > READY).then_some(()));
    // It asks where things stand now and follows from there.
    let position = session.ring.head();
    client.send(ToKeeper::Follow { position, flags: FOLLOW_HOLDS });
    client.sync();
    let head = session.ring.head();
    if session.ring.header().state.load(Ordering::Acquire) != STATE_ENDED && position >= session.ring.oldest() {
        client.sync();
        assert!(session.ring.head() <= head.max(position + WINDOW_BYTES), "it holds");
    }
}

#[test]
fn an_idle_keeper_uses_no_time_at_all() {
    let session = Session::raw("echo ready; head -c1 >/dev/null; seq 100; cat");
    session.wait_for_text("ready");
    let mut host = session.host();
    let mut client = session.client(&mut host, 0);
    client.send(ToKeeper::Follow { position: 0, flags: FOLLOW_HOLDS });
    client.send(ToKeeper::Sleep { position: READY, wake_at: u64::MAX });
    host.send(ToKeeper::Follow { position: 0, flags: FOLLOW_SCREEN });
    host.type_in(0, 1, 1, "x");
    session.wait_for_text("100\n");
    let switches = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", session.keeper)).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    // The last timer (the ring's pages given back) fires a second after the output.
    let released = Instant::now();
    eventually("a second", || (released.elapsed() > Duration::from_millis(1200)).then_some(()));
    let before = switches();
    let watched = Instant::now();
    eventually("another second", || (watched.elapsed() > Duration::from_millis(1000)).then_some(()));
    assert_eq!(switches(), before);
    host.send(ToKeeper::Probe);
    host.take("Probed", |frame| matches!(frame, FromKeeper::Probed { .. }).then_some(()));
}
