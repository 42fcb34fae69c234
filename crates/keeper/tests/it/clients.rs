use holdfast_abi::protocol::{CONNECTIONS_MAX, FOLLOW_HOLDS, FromKeeper, RIGHT_WRITE, ToKeeper, VERSION, refused};

use crate::harness::*;

#[test]
fn a_token_serves_once_and_the_host_hears_who_comes_and_goes() {
    let session = Session::raw("echo ready; cat");
    session.wait_for_text("ready");
    let mut host = session.host();
    let token = fresh_token();
    host.send(ToKeeper::Admit { token, rights: RIGHT_WRITE });
    let mut first = session.connect();
    first.send(ToKeeper::Hello { version: VERSION, role: 0, token });
    first.welcomed();
    let welcome = first.welcome.unwrap();
    assert_eq!((welcome.cols, welcome.rows, welcome.child_pid), (80, 24, session.child));
    assert_eq!(welcome.head, session.ring.head());
    let joined = host.take("Joined", |frame| match frame {
        FromKeeper::Joined { connection, pid, token, rights } => Some((connection, pid, token, rights)),
        _ => None,
    });
    assert_eq!(joined, (first.number, std::process::id(), token, RIGHT_WRITE));
    let mut second = session.connect();
    second.send(ToKeeper::Hello { version: VERSION, role: 0, token });
    assert_eq!(second.refused(), refused::TOKEN);
    second.closed();
    first.send(ToKeeper::Ack { position: 3 });
    first.send(ToKeeper::Follow { position: 4, flags: FOLLOW_HOLDS });
    first.sync();
    let number = first.number;
    drop(first);
    let left = host.take("Left", |frame| match frame {
        FromKeeper::Left { connection, acked } => Some((connection, acked)),
        _ => None,
    });
    assert_eq!(left, (number, 4));
}

#[test]
fn strangers_are_told_why_and_sent_away() {
    let session = Session::shell("read line");
    let mut host = session.host();
    for (version, role, token, code) in [
        (2, 1, SECRET, refused::VERSION),
        (VERSION, 1, [0; 16], refused::TOKEN),
        (VERSION, 0, SECRET, refused::TOKEN),
        (VERSION, 9, SECRET, refused::FRAME),
    ] {
        let mut stranger = session.connect();
        stranger.send(ToKeeper::Hello { version, role, token });
        // What it had already said behind it must not cost it the answer.
        let _ = stranger.send_bytes(&encoded(ToKeeper::Probe));
        assert_eq!(stranger.refused(), code);
        stranger.closed();
    }
    let mut rude = session.connect();
    rude.send(ToKeeper::Probe);
    rude.closed();
    host.sync();
}

#[test]
fn a_client_may_not_ask_what_only_the_host_may() {
    let session = Session::shell("read line");
    let mut host = session.host();
    let mut client = session.client(&mut host, RIGHT_WRITE);
    for frame in [
        ToKeeper::Signal { fence: 0, target: 2, number: 9 },
        ToKeeper::Admit { token: [1; 16], rights: 1 },
        ToKeeper::Writer { fence: 9, connection: 0 },
        ToKeeper::Expel { connection: host.number },
        ToKeeper::Drained { position: 0 },
        ToKeeper::End { grace_ms: 0 },
        ToKeeper::Probe,
        ToKeeper::Flush { fence: 9 },
    ] {
        client.send(frame);
        assert_eq!(client.refused(), refused::HOST, "{frame:?}");
    }
    host.sync();
}

#[test]
fn the_host_may_expel() {
    let session = Session::shell("read line");
    let mut host = session.host();
    let mut client = session.client(&mut host, 0);
    host.send(ToKeeper::Expel { connection: client.number });
    client.closed();
    host.take("Left", |frame| matches!(frame, FromKeeper::Left { .. }).then_some(()));
}

#[test]
fn a_full_house_still_lets_the_host_in() {
    let session = Session::shell("read line");
    let mut host = session.host();
    let clients: Vec<_> = (0..CONNECTIONS_MAX).map(|_| session.client(&mut host, 0)).collect();
    let token = fresh_token();
    host.send(ToKeeper::Admit { token, rights: 0 });
    let mut late = session.connect();
    late.send(ToKeeper::Hello { version: VERSION, role: 0, token });
    assert_eq!(late.refused(), refused::CROWDED);
    // Those who never say who they are keep nobody out.
    let silent: Vec<_> = (0..30).map(|_| session.connect()).collect();
    drop(host);
    let mut host = session.host();
    let mut joined = 0;
    while joined < CONNECTIONS_MAX {
        host.take("Joined", |frame| matches!(frame, FromKeeper::Joined { .. }).then_some(()));
        joined += 1;
    }
    drop((clients, silent));
}

#[test]
fn a_client_that_does_not_listen_is_expelled_not_waited_for() {
    let session = Session::raw("cat");
    let mut host = session.host();
    let deaf = session.client(&mut host, 0);
    let left = |frame: FromKeeper<'_>| matches!(frame, FromKeeper::Left { .. }).then_some(());
    for n in 0..2000u16 {
        host.send(ToKeeper::Resize { fence: 0, cols: 80 + n % 2, rows: 24 + n % 3 });
        host.sync();
        let head = session.ring.log_head();
        host.send(ToKeeper::Drained { position: head });
        while host.try_take(|frame| matches!(frame, FromKeeper::Resized { .. }).then_some(())).is_some() {}
        if host.try_take(left).is_some() {
            drop(deaf);
            return;
        }
    }
    panic!("2000 frames were kept for a client that reads none");
}

#[test]
fn coming_and_going_leaves_no_descriptor_behind() {
    let session = Session::raw("cat");
    let mut host = session.host();
    let terminal = crate::tty::Pair::open();
    host.sync();
    let before = session.open_files();
    for n in 0..300 {
        let mut client = session.client(&mut host, RIGHT_WRITE);
        match n % 3 {
            0 => client.send(terminal.hand_over(3, &[])),
            1 => client.send(ToKeeper::Follow { position: 0, flags: FOLLOW_HOLDS }),
            _ => {}
        }
        drop(client);
        if n % 10 == 0 {
            host = session.host();
        }
    }
    eventually("the last one to be swept", || (session.open_files() == before).then_some(()));
}

#[test]
fn a_keeper_without_descriptors_waits_instead_of_spinning() {
    let session = Session::raw("cat");
    let mut host = session.host();
    let limit = |soft| {
        let limit = libc::rlimit { rlim_cur: soft, rlim_max: 4096 };
        // SAFETY: `limit` outlives the call.
        let result = unsafe { libc::prlimit(session.keeper as i32, libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut()) };
        assert_eq!(result, 0);
    };
    limit(6);
    let ticks = session.cpu_ticks();
    let mut late = session.connect();
    let token = fresh_token();
    host.send(ToKeeper::Admit { token, rights: 0 });
    late.send(ToKeeper::Hello { version: VERSION, role: 0, token });
    let started = std::time::Instant::now();
    eventually("a while", || (started.elapsed().as_millis() > 500).then_some(()));
    host.sync();
    assert!(session.cpu_ticks() - ticks < 10, "the keeper spins");
    limit(1024);
    late.welcomed();
}
