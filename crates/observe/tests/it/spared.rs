//! Holdfast's own processes inside a session go on.

use std::{env, fs};

use holdfast_observe::{Freezer, How};

use crate::harness::{Session, eventually, kill, stands_still, with_both};

/// One of Holdfast's own by its name, and one that is not; both write.
const HOST: &str = "./holdfast-host -c 'echo $$ > host.pid; while :; do echo x; done > host' & \
                    sh -c 'while :; do echo x; done' > written & wait";

#[test]
fn a_host_inside_is_not_frozen() {
    with_both(|how| {
        let session = Session::shell(how, &format!("sh -c '{}'", HOST.replace('\'', "'\\''")));
        let host = session.pid_in("host.pid");
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

#[test]
fn a_host_born_into_the_sessions_cgroup_goes_on_when_it_is_frozen_again() {
    let script = "sh -c 'read go < go; \
                  ./holdfast-host -c \"echo \\$\\$ > host.pid; while :; do echo x; done > host\" & wait' & wait";
    let session = Session::shell(How::Cgroup, &format!("mkfifo go; {script}"));
    eventually("the inner shell", || (!session.tree().is_empty() && session.dir.join("go").exists()).then_some(()));
    session.freeze();
    session.thaw();
    fs::write(session.dir.join("go"), "go\n").unwrap();
    let host = session.pid_in("host.pid");
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
        let frozen = freezer.freeze(keeper).unwrap();
        fs::write("frozen", frozen.how.word()).unwrap();
        eventually("leave to thaw", || fs::exists("thaw").unwrap().then_some(()));
        return freezer.thaw(keeper).unwrap();
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
