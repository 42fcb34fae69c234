//! Holdfast's own processes inside a session go on; those that only take their names do not.

use std::{env, fs};

use holdfast_observe::graph::{Depth, snapshot};
use holdfast_observe::{Freezer, How, Spared, process_id, spared_below};

use crate::harness::{Session, eventually, kill, stands_still, with_both};

/// One of Holdfast's own, and one that is not; both write.
const HOST: &str = "./holdfast-host -c 'echo $$ > host.pid; while :; do echo x; done > host' & \
                    sh -c 'while :; do echo x; done' > written & wait";

#[test]
fn a_host_inside_is_not_frozen() {
    with_both(|how| {
        let mut session = Session::shell(how, &format!("sh -c '{}'", HOST.replace('\'', "'\\''")));
        let host = session.pid_in("host.pid");
        session.spared.add(process_id(host).unwrap());
        session.grows("written");
        session.grows("host");
        session.freeze();
        stands_still("a frozen writer writes", || session.size("written"));
        session.grows("host");
        session.thaw();
        session.grows("written");
        kill(host);
    });
}

/// The name of a process is the process's own to choose.
#[test]
fn a_name_of_ours_saves_nobody() {
    with_both(|how| {
        let named = |name: &str| {
            format!(
                "cp holdfast-host {name} 2>/dev/null; ./{name} -c 'echo $$ > {name}.pid; while :; do echo x; done > {name}.out' & "
            )
        };
        let script = format!("{}{}wait", named("holdfast-host"), named("holdfast-keeper"));
        let session = Session::shell(how, &format!("sh -c '{}'", script.replace('\'', "'\\''")));
        let pids = ["holdfast-host.pid", "holdfast-keeper.pid"].map(|file| session.pid_in(file));
        session.grows("holdfast-host.out");
        session.grows("holdfast-keeper.out");
        let listed = snapshot(session.keeper.id(), Depth::Processes, None, &session.spared).unwrap();
        assert!(pids.iter().all(|pid| listed.processes.iter().any(|process| process.pid == *pid)), "{listed:?}");
        session.freeze();
        assert!(pids.iter().all(|pid| session.is_still(*pid)));
        stands_still("one that took the host's name writes", || session.size("holdfast-host.out"));
        stands_still("one that took a keeper's name writes", || session.size("holdfast-keeper.out"));
        session.thaw();
    });
}

#[test]
fn only_the_very_process_is_spared_not_whoever_has_its_pid() {
    let mut session = Session::shell(How::Signals, HOST);
    let host = process_id(session.pid_in("host.pid")).unwrap();
    session.spared.add(holdfast_graph::ProcessId { start: host.start + 1, ..host });
    assert_eq!(spared_below(session.keeper.id(), &session.spared).unwrap(), []);
    assert!(session.tree().iter().any(|process| process.pid == host.pid));
    session.spared.add(host);
    assert_eq!(spared_below(session.keeper.id(), &session.spared).unwrap(), [host]);
    assert!(!session.tree().iter().any(|process| process.pid == host.pid));
    session.spared = Spared::default();
}

#[test]
fn a_host_born_into_the_sessions_cgroup_goes_on_when_it_is_frozen_again() {
    let script = "sh -c 'read go < go; \
                  ./holdfast-host -c \"echo \\$\\$ > host.pid; while :; do echo x; done > host\" & wait' & wait";
    let mut session = Session::shell(How::Cgroup, &format!("mkfifo go; {script}"));
    eventually("the inner shell", || (!session.tree().is_empty() && session.dir.join("go").exists()).then_some(()));
    session.freeze();
    session.thaw();
    fs::write(session.dir.join("go"), "go\n").unwrap();
    let host = session.pid_in("host.pid");
    session.spared.add(process_id(host).unwrap());
    session.freeze();
    session.grows("host");
    session.thaw();
    kill(host);
}

/// Set for the copy of this test that runs inside the session.
const INSIDE: &str = "HOLDFAST_TEST_INSIDE";

#[test]
fn a_freezer_inside_the_session_does_not_freeze_itself() {
    if let Ok(how) = env::var(INSIDE) {
        let label = fs::read_to_string("label").unwrap();
        let freezer = if how == How::Cgroup.word() { Freezer::new(&label) } else { Freezer::by_signals(&label) };
        let keeper = fs::read_to_string("keeper").unwrap().trim().parse().unwrap();
        let frozen = freezer.freeze(keeper, &Spared::default()).unwrap();
        fs::write("frozen", frozen.how.word()).unwrap();
        eventually("leave to thaw", || fs::exists("thaw").unwrap().then_some(()));
        return freezer.thaw(keeper, &Spared::default()).unwrap();
    }
    with_both(|how| {
        let name = "spared::a_freezer_inside_the_session_does_not_freeze_itself";
        let exe = env::current_exe().unwrap();
        let inner = format!("read go < go; {INSIDE}={} exec {} --exact {name}", how.word(), exe.display());
        let script =
            format!("echo $$ > keeper; mkfifo go; sh -c '{inner}' & sh -c 'while :; do echo x; done' > written & wait");
        let session = Session::shell(how, &script);
        fs::write(session.dir.join("label"), &session.label).unwrap();
        session.grows("written");
        // From now on whoever is started inside is born into the session's cgroup.
        session.freeze();
        session.thaw();
        fs::write(session.dir.join("go"), "go\n").unwrap();
        let frozen = || fs::read_to_string(session.dir.join("frozen")).ok();
        eventually("the inner freezer", || frozen().filter(|word| word == how.word()));
        stands_still("a frozen writer writes", || session.size("written"));
        fs::write(session.dir.join("thaw"), "").unwrap();
        session.grows("written");
    });
}
