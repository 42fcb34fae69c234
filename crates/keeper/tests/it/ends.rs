use holdfast_abi::protocol::{SPARE_MORE, ToKeeper, spare_list};
use holdfast_keeper::tree::start_time;

use crate::harness::*;

#[test]
fn the_status_is_the_childs() {
    for (script, status) in [("exit 0", 0), ("exit 3", 3 << 8), ("kill -TERM $$", 15), ("kill -KILL $$", 9)] {
        let mut session = Session::shell(script);
        assert_eq!(session.ended(), status, "{script}");
    }
}

#[test]
fn everybody_is_told_of_the_end_after_the_last_byte() {
    let mut session = Session::raw("echo ready; read line; printf 'the last words'; exit 7");
    session.wait_for_text("ready");
    let mut host = session.host();
    let mut client = session.client(&mut host, 0);
    client.send(ToKeeper::Sleep { position: session.ring.head(), wake_at: u64::MAX });
    host.type_in(0, 1, 1, "\n");
    let (status, head) = host.exited();
    assert_eq!(client.exited(), (status, head));
    assert!(client.woken() <= head);
    client.closed();
    assert_eq!((session.ended(), status), (7 << 8, 7 << 8));
    assert_eq!(session.ring.head(), head);
    assert!(session.text().ends_with("the last words"));
}

#[test]
fn what_runs_in_the_background_neither_keeps_the_session_nor_is_killed_by_its_end() {
    let mut session = Session::shell("trap '' HUP; sleep 1000 & echo $!; printf bye");
    assert_eq!(session.ended(), 0);
    let text = session.text();
    assert!(text.ends_with("bye"), "{text}");
    let background: u32 = text.lines().next().unwrap().trim().parse().unwrap();
    assert!(is_alive(background));
    holdfast_keeper::sys::kill(background as i32, libc::SIGKILL);
}

#[test]
fn a_noisy_background_does_not_keep_the_session() {
    let mut session = Session::raw("trap '' HUP; yes & echo $!; sleep 0.1");
    assert_eq!(session.ended(), 0);
}

#[test]
fn a_child_that_lets_go_of_its_terminal_and_takes_it_again_is_heard() {
    let mut session = Session::raw(
        "exec </dev/null >/dev/null 2>&1; sleep 0.2; echo back >/dev/tty; sleep 0.2; echo again >/dev/tty; exit 4",
    );
    assert_eq!(session.ended(), 4 << 8);
    assert_eq!(session.text(), "back\nagain\n");
}

#[test]
fn end_asks_politely_first() {
    let mut session = Session::shell("trap 'echo asked; exit 5' HUP; echo ready; while :; do sleep 0.01; done");
    session.wait_for_text("ready");
    let started = std::time::Instant::now();
    session.host().send(ToKeeper::End { grace_ms: 20_000 });
    assert_eq!(session.ended(), 5 << 8);
    assert!(session.text().contains("asked"));
    assert!(started.elapsed().as_secs() < 15, "the grace was waited for in vain");
}

/// A host that was started by a program in the session is its descendant, and so is every keeper that host starts.
#[test]
fn end_spares_the_hosts_that_the_host_named() {
    let script = "for n in 1 2; do setsid sleep 1003 & echo $! >h$n; done; echo ready; sleep 1004";
    let mut session = Session::shell(script);
    session.wait_for_text("ready");
    let hosts = ["h1", "h2"].map(|name| pid_in(&session, name));
    for host in hosts {
        // Until then the terminal's end is theirs too.
        // SAFETY: no memory is involved.
        let has_own = || unsafe { libc::getsid(host as i32) } == host as i32;
        eventually("a session of its own", || has_own().then_some(()));
    }
    let named = hosts.map(|host| spare_list(&[(host, start_time(host).unwrap())]));
    let mut host = session.host();
    host.send(ToKeeper::Spare { flags: 0, processes: &named[0] });
    host.send(ToKeeper::Spare { flags: SPARE_MORE, processes: &named[1] });
    host.send(ToKeeper::End { grace_ms: 20_000 });
    assert_eq!(session.ended(), 1, "the grace was not waited for");
    assert!(hosts.iter().all(|host| is_alive(*host)));
    hosts.iter().for_each(|host| holdfast_keeper::sys::kill(*host as i32, libc::SIGKILL));
}

/// The kernel takes a process's name from its file's: copies of sleep, named like ours. Their start is not the one that was named.
#[test]
fn end_spares_nobody_for_its_name_nor_for_a_pid_alone() {
    let script = "for name in holdfast-host holdfast-keeper; do cp /bin/sleep ./$name; setsid ./$name 1005 & echo $! >$name.pid; \
                  done; echo ready; sleep 1006";
    let mut session = Session::shell(script);
    session.wait_for_text("ready");
    let named = ["holdfast-host", "holdfast-keeper"].map(|name| {
        let pid = pid_in(&session, &format!("{name}.pid"));
        eventually("the name", || {
            let now = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            (now.trim_end() == name).then_some(())
        });
        pid
    });
    let mut host = session.host();
    let earlier = named.map(|pid| (pid, start_time(pid).unwrap() - 1));
    host.send(ToKeeper::Spare { flags: 0, processes: &spare_list(&earlier) });
    host.send(ToKeeper::End { grace_ms: 20_000 });
    assert_eq!(session.ended(), 1);
    assert!(!named.iter().any(|pid| is_alive(*pid)), "{named:?}");
}

fn pid_in(session: &Session, name: &str) -> u32 {
    std::fs::read_to_string(session.dir.path(name)).unwrap().trim().parse().unwrap()
}

#[test]
fn end_kills_daemons_and_whoever_does_not_listen() {
    let script = "trap '' HUP TERM; (setsid sh -c 'trap \"\" HUP; echo daemon $$ >d1; (setsid sleep 1001 & echo $! >d2) ; \
                  while :; do sleep 1; done' &) ; while [ ! -s d2 ]; do sleep 0.01; done; echo ready; \
                  while :; do sleep 1; done";
    let mut session = Session::shell(script);
    session.wait_for_text("ready");
    let daemon = |name| {
        let text = std::fs::read_to_string(session.dir.path(name)).unwrap();
        text.split_whitespace().last().unwrap().parse::<u32>().unwrap()
    };
    let daemons = [daemon("d1"), daemon("d2")];
    assert!(daemons.iter().all(|pid| is_alive(*pid)));
    session.host().send(ToKeeper::End { grace_ms: 100 });
    assert_eq!(session.ended(), 9);
    assert!(!daemons.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn a_stopped_tree_ends_too() {
    let mut session = Session::shell("echo ready; kill -STOP $$; echo on");
    session.wait_for_text("ready");
    session.host().send(ToKeeper::End { grace_ms: 5000 });
    assert_eq!(session.ended(), 1);
}

/// `login` hangs the terminal up to be alone on it. Needs root, as it does.
#[test]
fn a_terminal_that_was_hung_up_is_still_the_sessions() {
    // SAFETY: no memory is involved.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("NOT RUN: hanging up a terminal needs root");
        return;
    }
    let script = "t=$(tty); trap '' HUP; echo $t; while [ ! -e go ]; do sleep 0.01; done; exec <$t >$t 2>&1; echo back; \
                  read line; echo heard $line; exit 6";
    let mut session = Session::shell(script);
    session.wait_for_text("\n");
    let path = session.text().trim().to_string();
    let slave = std::fs::File::options().read(true).write(true).open(path).unwrap();
    const TIOCVHANGUP: libc::c_ulong = 0x5437;
    // SAFETY: the call takes no argument.
    assert_eq!(unsafe { libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&slave), TIOCVHANGUP) }, 0);
    let mut host = session.host();
    host.sync();
    std::fs::write(session.dir.path("go"), "").unwrap();
    session.wait_for_text("back");
    host.type_in(0, 1, 1, "you\n");
    host.exited();
    assert!(session.ring.head() > 0 && session.text().contains("heard you"));
    assert_eq!(session.ended(), 6 << 8);
}
