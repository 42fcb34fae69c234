use holdfast_abi::protocol::{FOLLOW_SCREEN, FromKeeper, STALL_MS, ToKeeper};
use holdfast_abi::ring::GUARD_BYTES;
use std::time::{Duration, Instant};

use crate::harness::*;

#[test]
fn a_newer_host_replaces_the_older_and_hears_who_is_there() {
    let session = Session::shell("read line");
    let mut old = session.host();
    let client = session.client(&mut old, 1);
    old.send(ToKeeper::Writer { fence: 8, connection: client.number });
    old.sync();
    let mut new = session.host();
    old.closed();
    let joined = new.take("Joined", |frame| match frame {
        FromKeeper::Joined { connection, rights, .. } => Some((connection, rights)),
        _ => None,
    });
    assert_eq!(joined, (client.number, 1));
    assert_eq!(new.welcome.unwrap().fence, 8);
}

#[test]
fn a_host_that_comes_back_at_once_under_a_flood_finds_everything() {
    let count = 8_000_000;
    let session =
        Session::raw(&format!("echo ready; head -c1 >/dev/null; yes 0123456789abcdef | head -c {count}; cat"));
    session.wait_for_text("ready");
    let before = (session.keeper, session.child);
    let mut host = session.host();
    host.send(ToKeeper::Follow { position: 6, flags: FOLLOW_SCREEN });
    host.type_in(0, 1, 1, "x");
    let mut position = 6;
    let mut buffer = vec![0; 65536];
    let mut returns = 0;
    let mut seen = 0u64;
    while seen < count {
        match session.ring.copy(position, &mut buffer) {
            holdfast_abi::ring::Copied::Bytes(got) => {
                for byte in &buffer[..got] {
                    assert_eq!(*byte, b"0123456789abcdef\n"[(seen % 17) as usize], "at {seen}");
                    seen += 1;
                }
                position += got as u64;
                if got == 0 {
                    std::thread::yield_now();
                }
                host.send(ToKeeper::Ack { position });
            }
            other => panic!("{other:?} at {position} after {returns} returns"),
        }
        if seen / 1_000_000 > returns {
            // Gone without a word, and back while the child is held at the window's edge.
            returns += 1;
            drop(host);
            eventually("the edge or the end", || {
                let head = session.ring.head();
                (head >= (position + RING_BYTES - 2 * GUARD_BYTES).min(6 + count)).then_some(())
            });
            host = session.host();
            host.send(ToKeeper::Follow { position, flags: FOLLOW_SCREEN });
            host.sync();
        }
    }
    assert!(returns >= 7);
    assert_eq!(before.1, host.welcome.unwrap().child_pid);
    assert!(is_alive(before.0) && is_alive(before.1));
}

#[test]
fn a_host_that_stays_away_holds_nothing_for_ever() {
    let mut session = Session::raw("echo ready; head -c1 >/dev/null; head -c 5000000 /dev/zero");
    session.wait_for_text("ready");
    let mut host = session.host();
    host.send(ToKeeper::Follow { position: 6, flags: FOLLOW_SCREEN });
    host.type_in(0, 1, 1, "x");
    host.sync();
    drop(host);
    let started = Instant::now();
    assert_eq!(session.ended(), 0);
    assert!(started.elapsed() > Duration::from_millis(STALL_MS / 2), "nothing was held");
    assert_eq!(session.ring.head(), 5_000_006);
}
