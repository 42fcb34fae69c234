use holdfast_abi::log::Kind;
use holdfast_abi::protocol::{
    FOLLOW_HOLDS, FromKeeper, INPUT_BYTES_MAX, RIGHT_WRITE, ToKeeper, WRITER_ANY, WRITER_HOST, refused,
};
use holdfast_abi::ring::{Base, GUARD_BYTES, LOG_BYTES};

use crate::harness::*;

/// A session that repeats what it reads.
fn echo() -> Session {
    let session = Session::raw("echo ready; cat");
    session.wait_for_text("ready");
    session
}

#[test]
fn only_the_newest_fence_and_the_writer_get_through() {
    let session = echo();
    let mut host = session.host();
    let mut ann = session.client(&mut host, RIGHT_WRITE);
    let mut bot = session.client(&mut host, RIGHT_WRITE);
    let mut observer = session.client(&mut host, 0);
    ann.type_in(0, 1, 1, "[before anybody was named]");
    assert_eq!(ann.refused(), refused::WRITER);
    host.send(ToKeeper::Writer { fence: 5, connection: ann.number });
    host.sync();
    ann.type_in(5, 1, 1, "[ann]");
    assert_eq!(ann.written(), 1);
    bot.type_in(5, 2, 1, "[bot out of turn]");
    assert_eq!(bot.refused(), refused::WRITER);
    host.type_in(5, 3, 1, "[host]");
    assert_eq!(host.written(), 1);
    host.send(ToKeeper::Writer { fence: 6, connection: bot.number });
    host.sync();
    ann.type_in(5, 1, 2, "[ann too late]");
    let newest = ann.take("Refused", |frame| match frame {
        FromKeeper::Refused { code: refused::STALE, fence, stream: 1, seq: 2 } => Some(fence),
        _ => None,
    });
    assert_eq!(newest, 6);
    host.send(ToKeeper::Writer { fence: 5, connection: ann.number });
    assert_eq!(host.refused(), refused::STALE);
    bot.type_in(6, 2, 1, "[bot]");
    assert_eq!(bot.written(), 1);
    host.send(ToKeeper::Writer { fence: 7, connection: WRITER_ANY });
    host.sync();
    ann.type_in(7, 1, 2, "[anybody]");
    assert_eq!(ann.written(), 2);
    observer.type_in(7, 9, 1, "[observer]");
    assert_eq!(observer.refused(), refused::WRITER);
    host.send(ToKeeper::Writer { fence: 8, connection: WRITER_HOST });
    host.sync();
    ann.type_in(8, 1, 3, "[nobody]");
    assert_eq!(ann.refused(), refused::WRITER);
    session.wait_for_text("[anybody]");
    assert_eq!(session.text(), "ready\n[ann][host][bot][anybody]");
}

#[test]
fn input_sent_again_by_the_next_host_is_written_once() {
    let session = echo();
    let mut host = session.host();
    host.type_in(0, 77, 1, "one ");
    host.type_in(0, 77, 2, "two ");
    drop(host);
    let mut host = session.host();
    // Whatever the fence is by now, what was written is written.
    host.send(ToKeeper::Writer { fence: 3, connection: WRITER_HOST });
    for (seq, text) in [(1, "one "), (2, "two "), (3, "three")] {
        host.type_in(3, 77, seq, text);
    }
    for seq in 1..=3 {
        assert_eq!(host.written(), seq);
    }
    session.wait_for_text("three");
    assert_eq!(session.text(), "ready\none two three");
    host.send(ToKeeper::Input { fence: 3, stream: 77, seq: 0, bytes: b"x" });
    assert_eq!(host.refused(), refused::FRAME);
}

#[test]
fn a_child_that_does_not_read_fills_the_queue_and_nothing_overtakes_or_is_lost() {
    let session = Session::raw("echo ready; while [ ! -e go ]; do sleep 0.01; done; exec cat");
    session.wait_for_text("ready");
    let mut host = session.host();
    let block = |seq: u64| format!("{seq:07} ").repeat(INPUT_BYTES_MAX / 8);
    let answer = |frame: FromKeeper<'_>| match frame {
        FromKeeper::Written { seq, .. } => Some((seq, true)),
        FromKeeper::Refused { code: refused::FULL, seq, .. } => Some((seq, false)),
        _ => None,
    };
    let drain = |host: &mut Connection| {
        let position = session.ring.log_head();
        host.send(ToKeeper::Drained { position });
    };
    let mut sent = 0;
    let mut written = 0;
    let full_at = loop {
        sent += 1;
        assert!(sent < 1000, "the queue has no limit");
        host.type_in(0, 4, sent, &block(sent));
        drain(&mut host);
        host.sync();
        match host.try_take(answer) {
            Some((seq, false)) => break seq,
            Some((_, true)) => written += 1,
            None => {}
        }
    };
    assert_eq!(full_at, sent);
    assert!(sent * INPUT_BYTES_MAX as u64 > 64 * 1024);
    host.type_in(0, 4, sent + 1, "overtaking");
    assert_eq!(host.take("an answer", answer), (sent + 1, false));
    std::fs::write(session.dir.path("go"), "").unwrap();
    while written < sent - 1 {
        assert_eq!(host.take("an answer", answer), (written + 1, true));
        written += 1;
    }
    host.type_in(0, 4, sent, &block(sent));
    host.type_in(0, 4, sent + 1, "the end");
    assert_eq!(host.take("an answer", answer), (sent, true));
    assert_eq!(host.take("an answer", answer), (sent + 1, true));
    session.wait_for_text("the end");
    let expected: String = (1..=sent).map(block).collect();
    assert_eq!(session.text(), format!("ready\n{expected}the end"));
}

#[test]
fn the_log_tells_everything_but_secrets() {
    let session = Session::shell("echo ready; stty -echo; read secret; stty echo raw; echo got $secret; cat");
    session.wait_for_text("ready");
    let mut host = session.host();
    host.send(ToKeeper::Writer { fence: 2, connection: WRITER_HOST });
    eventually("echo off", || {
        host.send(ToKeeper::Probe);
        let lflag = host.take("Probed", |frame| match frame {
            FromKeeper::Probed { lflag, .. } => Some(lflag),
            _ => None,
        });
        (lflag & libc::ECHO == 0).then_some(())
    });
    host.type_in(2, 9, 1, "hunter2\n");
    session.wait_for_text("got hunter2");
    host.type_in(2, 9, 2, "open");
    host.send(ToKeeper::Resize { fence: 2, cols: 100, rows: 30 });
    host.send(ToKeeper::Signal { fence: 2, target: 0, number: libc::SIGWINCH as u8 });
    host.sync();
    let log = session.log();
    assert_eq!(
        log,
        [
            "Input fence 2 stream 9 seq 1 count 8 flags 1 \"\"",
            "Input fence 2 stream 9 seq 2 count 4 flags 2 \"open\"",
            "Resize fence 2 stream 100 seq 30 count 0 flags 0 \"\"",
            &format!("{:?} fence 2 stream {} seq 0 count 0 flags 0 \"\"", Kind::Signal, libc::SIGWINCH),
        ]
    );
    let file = std::fs::read(session.dir.path("ring")).unwrap();
    let log_area = &file[file.len() - LOG_BYTES as usize..];
    assert!(!log_area.windows(7).any(|window| window == b"hunter2"));
}

#[test]
fn a_full_log_stops_input_until_the_host_has_drained_it() {
    let session = echo();
    let mut host = session.host();
    let block = "x".repeat(INPUT_BYTES_MAX);
    let mut seq = 0;
    let answer = |frame: FromKeeper<'_>| match frame {
        FromKeeper::Written { .. } => Some(true),
        FromKeeper::Refused { code: refused::FULL, .. } => Some(false),
        _ => None,
    };
    loop {
        seq += 1;
        host.type_in(0, 5, seq, &block);
        if !host.take("an answer", answer) {
            break;
        }
    }
    assert_eq!(seq, LOG_BYTES / (INPUT_BYTES_MAX as u64 + 56) + 1);
    host.send(ToKeeper::Drained { position: 0 });
    let log_head = host.take("Logged", |frame| match frame {
        FromKeeper::Logged { log_head } => Some(log_head),
        _ => None,
    });
    assert_eq!(log_head, (seq - 1) * (INPUT_BYTES_MAX as u64 + 56));
    host.send(ToKeeper::Drained { position: log_head });
    host.sync();
    let logged = |frame: FromKeeper<'_>| matches!(frame, FromKeeper::Logged { .. }).then_some(());
    assert_eq!(host.try_take(logged), None, "nothing new yet");
    host.type_in(0, 5, seq, &block);
    assert!(host.take("an answer", answer));
    host.take("Logged", logged);
    host.type_in(0, 5, seq + 1, "y");
    assert!(host.take("an answer", answer));
    assert_eq!(host.try_take(logged), None, "it comes once");
}

#[test]
fn a_resize_is_logged_broadcast_and_clamped_and_counts_as_writing() {
    let session = Session::shell("trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done");
    session.wait_for_text("ready");
    let mut host = session.host();
    let mut client = session.client(&mut host, RIGHT_WRITE);
    client.send(ToKeeper::Resize { fence: 0, cols: 90, rows: 20 });
    assert_eq!(client.refused(), refused::WRITER);
    host.send(ToKeeper::Writer { fence: 1, connection: client.number });
    host.sync();
    let resized = |frame: FromKeeper<'_>| match frame {
        FromKeeper::Resized { cols, rows, .. } => Some((cols, rows)),
        _ => None,
    };
    client.send(ToKeeper::Resize { fence: 1, cols: 90, rows: 20 });
    assert_eq!((client.take("Resized", resized), host.take("Resized", resized)), ((90, 20), (90, 20)));
    session.wait_for_text("20 90");
    client.send(ToKeeper::Resize { fence: 1, cols: 90, rows: 20 });
    client.sync();
    assert_eq!((client.try_take(resized), session.log().len()), (None, 1));
    client.send(ToKeeper::Resize { fence: 1, cols: 0, rows: 0 });
    assert_eq!(client.take("Resized", resized), (2, 1));
    session.wait_for_text("1 2\r");
    client.send(ToKeeper::Resize { fence: 0, cols: 10, rows: 10 });
    assert_eq!(client.refused(), refused::STALE);
}

#[test]
fn flush_drops_what_nobody_has_read() {
    let session = Session::raw("echo ready; while [ ! -e go ]; do sleep 0.01; done; exec cat");
    session.wait_for_text("ready");
    let mut host = session.host();
    let block = "x".repeat(INPUT_BYTES_MAX);
    for seq in 1..=12 {
        host.type_in(0, 4, seq, &block);
    }
    host.sync();
    host.send(ToKeeper::Flush { fence: 2 });
    host.sync();
    let mut dropped = vec![];
    while let Some(seq) = host.try_take(|frame| match frame {
        FromKeeper::Refused { code: refused::STALE, fence: 2, stream: 4, seq } => Some(seq),
        _ => None,
    }) {
        dropped.push(seq);
    }
    host.send(ToKeeper::Probe);
    let unread = host.take("Probed", |frame| match frame {
        FromKeeper::Probed { unread, .. } => Some(unread),
        _ => None,
    });
    assert_eq!(unread, 0);
    std::fs::write(session.dir.path("go"), "").unwrap();
    host.type_in(2, 4, 13, "after");
    assert_eq!(host.take("Written", |frame| matches!(frame, FromKeeper::Written { seq: 13, .. }).then_some(13)), 13);
    session.wait_for_text("after");
    assert_eq!(session.text(), "ready\nafter");
    host.send(ToKeeper::Flush { fence: 1 });
    assert_eq!(host.refused(), refused::STALE);
}

#[test]
fn signals_reach_the_foreground_the_child_or_the_tree() {
    let script = "trap 'echo child' USR1; sh -c \"trap 'echo other >>tree; exit' USR1 USR2; echo up; \
                  while :; do sleep 0.01; done\" & wait; while :; do sleep 0.01; done";
    let session = Session::shell(script);
    session.wait_for_text("up");
    let mut host = session.host();
    let signal = |host: &mut Connection, fence, target, number: i32| {
        host.send(ToKeeper::Signal { fence, target, number: number as u8 });
        host.sync();
    };
    host.send(ToKeeper::Signal { fence: 3, target: 1, number: 9 });
    assert_eq!(host.refused(), refused::STALE);
    host.send(ToKeeper::Signal { fence: 0, target: 3, number: 9 });
    assert_eq!(host.refused(), refused::FRAME);
    signal(&mut host, 0, 1, libc::SIGUSR1);
    session.wait_for_text("child");
    eventually("the group", || std::fs::read(session.dir.path("tree")).ok());
    host.send(ToKeeper::Signal { fence: 0, target: 2, number: libc::SIGKILL as u8 });
    let mut session = session;
    assert_eq!(session.ended(), 9);
}

#[test]
fn a_keeper_with_a_base_counts_output_and_log_from_there() {
    let base = Base { output: (1 << 40) + 999, log: (1 << 34) + 8 };
    let dir = Scratch::new();
    let mut start = shell(&dir, "stty raw -echo; echo ready; head -c5; yes | head -c 3000000; exec cat");
    start.base = base;
    let session = Session::start(dir, &start);
    let mut host = session.host();
    let welcome = host.welcome.unwrap();
    assert!((base.output..=base.output + 6).contains(&welcome.head), "{welcome:?}");
    assert_eq!(welcome.log_head, base.log);
    session.wait_for_text("ready");
    assert_eq!((session.ring.oldest(), session.ring.head()), (base.output, base.output + 6));
    // Everything before the base is done with, as far as the keeper is concerned: there is room for all of the log.
    host.send(ToKeeper::Drained { position: 0 });
    host.type_in(0, 1, 1, "hello");
    let head = host.take("an answer", |frame| match frame {
        FromKeeper::Written { stream: 1, seq: 1, head } => Some(head),
        _ => None,
    });
    assert!(head >= base.output + 6);
    assert_eq!(session.log().len(), 1);
    let end = base.output + 11 + 3_000_000;
    eventually("all of the flood", || (session.ring.head() == end).then_some(()));
    assert_eq!(session.ring.oldest(), end + GUARD_BYTES - RING_BYTES);
    // A reader from before the base was lapped from the start: it holds nothing, and is woken.
    let mut reader = session.client(&mut host, 0);
    reader.send(ToKeeper::Follow { position: 5, flags: FOLLOW_HOLDS });
    reader.send(ToKeeper::Sleep { position: end, wake_at: end + 1 });
    reader.sync();
    host.type_in(0, 1, 2, "x");
    assert_eq!(reader.woken(), end);
    eventually("its echo", || (session.ring.head() == end + 1).then_some(()));
}
