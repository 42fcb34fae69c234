//! Frozen processes make no progress, thawed ones do.

use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::{env, fs};

use holdfast_observe::{Freezer, How, Spared, descendants};

use crate::harness::{Session, cgroup_dir, eventually, leftover, stands_still, with_both};

/// A keeper with one writer below it, which never ends by itself.
const WRITER: &str = "sh -c 'while :; do echo x; done' > written & wait";

#[test]
fn a_writer_stands_still_until_it_is_thawed() {
    with_both(|how| {
        let session = Session::shell(how, WRITER);
        session.grows("written");
        assert_eq!(session.freeze().processes, 1);
        stands_still("a frozen writer writes", || session.size("written"));
        session.thaw();
        session.grows("written");
    });
}

#[test]
fn freezing_twice_and_thawing_twice_is_as_good_as_once() {
    with_both(|how| {
        let session = Session::shell(how, WRITER);
        session.thaw();
        for _ in 0..3 {
            session.grows("written");
            session.freeze();
            assert_eq!(session.freeze().processes, 1);
            stands_still("a frozen writer writes", || session.size("written"));
            session.thaw();
            session.thaw();
        }
        session.grows("written");
    });
}

#[test]
fn whoever_froze_it_a_freezer_that_knows_only_the_label_thaws_it() {
    with_both(|how| {
        let session = Session::shell(how, WRITER);
        session.grows("written");
        session.freeze();
        Freezer::new(&session.label).thaw(session.keeper.id(), &session.spared).unwrap();
        session.grows("written");
    });
}

#[test]
fn five_hundred_processes_are_frozen_whole() {
    // 125 shells, each with three sleeps.
    let script =
        "i=0; while [ $i -lt 125 ]; do sh -c 'sleep 9999 & sleep 9999 & sleep 9999 & wait' & i=$((i+1)); done; wait";
    with_both(|how| {
        let session = Session::shell(how, script);
        eventually("the whole tree", || (session.tree().len() == 500).then_some(()));
        assert_eq!(session.freeze().processes, 500);
        if how == How::Cgroup {
            let events = fs::read_to_string(cgroup_dir(&session.label).join("cgroup.events")).unwrap();
            assert!(events.contains("frozen 1"), "{events}");
        }
        for process in session.tree() {
            assert!(session.is_still(process.pid), "{process:?}");
        }
        session.thaw();
        eventually("all to go on", || session.tree().iter().all(|process| process.state == 'S').then_some(()));
    });
}

#[test]
fn who_forks_without_end_is_caught_with_all_it_forked() {
    let script = "sh -c 'while :; do sleep 0.03 & echo x; done' > forked & wait";
    with_both(|how| {
        let session = Session::shell(how, script);
        let pids = || session.tree().iter().map(|process| process.pid).collect::<BTreeSet<_>>();
        for _ in 0..3 {
            session.grows("forked");
            eventually("some forks at once", || (pids().len() > 3).then_some(()));
            session.freeze();
            stands_still("frozen processes fork", || (session.size("forked"), pids()));
            session.thaw();
        }
        session.grows("forked");
    });
}

#[test]
fn one_that_was_put_elsewhere_is_stopped_where_it_is() {
    let session = Session::shell(How::Cgroup, "sh -c 'echo $$ > pid; while :; do echo x; done > written' & wait");
    let pid = session.pid_in("pid");
    let elsewhere = cgroup_dir(&session.label).with_file_name(format!("box-{}", session.label));
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("cgroup.procs"), pid.to_string()).unwrap();
    session.grows("written");
    session.freeze();
    stands_still("a frozen writer writes", || session.size("written"));
    let members = fs::read_to_string(elsewhere.join("cgroup.procs")).unwrap();
    assert_eq!(members.trim(), pid.to_string(), "it was moved");
    session.thaw();
    session.grows("written");
    drop(session);
    eventually("the other cgroup to be empty", || fs::remove_dir(&elsewhere).ok());
}

#[test]
fn the_cgroup_goes_once_it_is_empty() {
    let session = Session::shell(How::Cgroup, WRITER);
    session.grows("written");
    session.freeze();
    session.freezer().forget();
    assert!(leftover(&session.label), "a frozen session was forgotten");
    session.thaw();
    let label = session.label.clone();
    drop(session);
    assert!(!leftover(&label));
}

#[test]
fn a_keeper_that_is_gone_is_an_error_to_freeze_and_none_to_thaw() {
    with_both(|how| {
        let mut session = Session::shell(how, "exit 0");
        session.keeper.wait().unwrap();
        let keeper = session.keeper.id();
        assert!(session.freezer().freeze(keeper, &session.spared).is_err());
        session.freezer().thaw(keeper, &session.spared).unwrap();
        assert!(!leftover(&session.label));
        // Something the guard can look below.
        session.keeper = Command::new("sleep").arg("9999").spawn().unwrap();
        assert!(descendants(session.keeper.id(), &Spared::default()).unwrap().is_empty());
    });
}

#[test]
fn a_parent_that_waits_in_a_vfork_is_frozen_and_goes_on() {
    // The child opens a pipe nobody writes to before it becomes the program, and its parent sleeps uninterruptibly.
    let python = "import os\n\
                  os.mkfifo('pipe')\n\
                  if os.fork() == 0:\n\
                  \topen_pipe = (os.POSIX_SPAWN_OPEN, 0, 'pipe', os.O_RDONLY, 0)\n\
                  \tos.posix_spawn('/bin/true', ['true'], {}, file_actions=[open_pipe])\n\
                  \twhile True: open('written', 'a').write('x')\n\
                  os.wait()\n";
    with_both(|how| {
        let session = Session::start(how, "python3", &["-c", python]);
        let states = || session.tree().iter().map(|process| process.state).collect::<String>();
        eventually("parent and child to wait", || (states() == "DS").then_some(()));
        assert_eq!(session.freeze().processes, 2);
        session.thaw();
        drop(fs::OpenOptions::new().write(true).open(session.dir.join("pipe")).unwrap());
        session.grows("written");
    });
}

/// Set for the copy of this test that runs as another user.
const KEEPER: &str = "HOLDFAST_TEST_KEEPER";

#[test]
fn without_the_right_to_a_cgroup_signals_are_left_and_who_refuses_is_named() {
    if let Ok(keeper) = env::var(KEEPER) {
        let freezer = Freezer::new("ses_test_nobody");
        let frozen = freezer.freeze(keeper.parse().unwrap(), &Spared::default()).unwrap();
        println!("{} {} {:?}", frozen.how.word(), frozen.processes, frozen.refused);
        io::stdin().read_line(&mut String::new()).unwrap();
        return freezer.thaw(keeper.parse().unwrap(), &Spared::default()).unwrap();
    }
    let nobody = 65534;
    let writer = "echo $$ > $0.pid; while :; do echo x; done > $0";
    let script =
        format!("chmod 777 .; sh -c '{writer}' ours & setpriv --reuid={nobody} sh -c '{writer}' theirs & wait");
    let session = Session::shell(How::Signals, &script);
    let refuses = session.pid_in("ours.pid");
    session.grows("theirs");
    // Others may not reach where it was built.
    let copy = session.dir.join("freezer");
    fs::copy(env::current_exe().unwrap(), &copy).unwrap();
    let name = "freezing::without_the_right_to_a_cgroup_signals_are_left_and_who_refuses_is_named";
    let mut other = Command::new(copy);
    other.args(["--exact", name, "--nocapture"]).env(KEEPER, session.keeper.id().to_string()).uid(nobody);
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut answers = io::BufReader::new(other.stdout.take().unwrap()).lines();
    let answer = answers.find(|line| line.as_ref().is_ok_and(|line| line.contains("signals"))).unwrap().unwrap();
    assert!(answer.ends_with(&format!("signals 2 [{refuses}]")), "{answer}");
    stands_still("a stopped writer writes", || session.size("theirs"));
    session.grows("ours");
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    session.grows("theirs");
}
