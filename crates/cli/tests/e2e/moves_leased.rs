//! A session whose home is a lease is moved: its record in a real etcd changes hands in one transaction, and whoever is killed when, it has
//! one life. Needs root and CRIU, which `cargo xtask test` fetches.

use crate::elsewhere::Two;
use crate::etcds::Etcds;
use crate::moves::{begin, counter_with, counts_on, finish, life, numbers, one_life, ready};
use holdfast_harness::{Home, criu, gone, kill, until};
use serde_json::Value;
use std::path::Path;

/// Two hosts that are root's and share an etcd; none where the test is not run by root.
fn two(etcds: &Etcds) -> Option<Two> {
    if !rustix::process::getuid().is_root() {
        eprintln!("not run by root: moves are not tested");
        return None;
    }
    assert!(criu().is_file(), "{} is missing: `cargo xtask test` fetches it", criu().display());
    let two = Two::new();
    for home in [&two.near, &two.far] {
        lease(home, &etcds.named());
    }
    ready(&two);
    Some(two)
}

fn lease(home: &Home, members: &str) {
    let config = home.places().config;
    std::fs::create_dir_all(&config).unwrap();
    // Long enough for a host that is killed and started again.
    let text = format!("lease = \"etcd={members}\"\nlease_ttl = 6\nlease_margin = \"1s\"\n");
    std::fs::write(config.join("config.toml"), text).unwrap();
}

fn counter(two: &Two, name: &str, dir: &Path) {
    counter_with(two, name, dir, &["--leased"]);
}

fn lease_of(home: &Home, name: &str) -> (String, u64) {
    let info: Value = home.json(&["info", name]);
    (info["lease"]["state"].as_str().unwrap_or("none").to_owned(), info["lease"]["fence"].as_u64().unwrap_or(0))
}

#[test]
fn a_leased_session_is_moved_with_its_lease_and_back() {
    let etcds = Etcds::start(1);
    let Some(two) = two(&etcds) else { return };
    let dir = tempfile::tempdir().unwrap();
    counter(&two, "work", dir.path());
    let (state, fence) = lease_of(&two.near, "work");
    assert_eq!(state, "held");
    two.ok(&["move", "work", "gpu"]);
    counts_on(dir.path(), "work");
    let (state, there) = lease_of(&two.far, "work");
    assert_eq!(state, "held");
    assert!(there > fence, "{there} after {fence}");
    assert_eq!(two.far.number("work", "incarnation"), 2);
    assert!(two.near.fails(&["recover", "work"]).contains("was moved to gpu"));
    two.ok(&["move", "gpu/work", "here"]);
    counts_on(dir.path(), "work");
    one_life(dir.path(), "work", "there and back");
    assert_eq!((lease_of(&two.near, "work").0.as_str(), two.near.number("work", "incarnation")), ("held", 3));
    two.near.ok(&["end", "work", "--grace", "0"]);
}

#[test]
fn a_leased_session_goes_to_no_host_without_a_lease_in_the_same_store() {
    let etcds = Etcds::start(1);
    let Some(two) = two(&etcds) else { return };
    let dir = tempfile::tempdir().unwrap();
    counter(&two, "work", dir.path());
    let refused = |why: &str| {
        let (good, out, err) = two.run(&["move", "work", "gpu"]);
        assert!(!good && format!("{out}{err}").contains(why), "{out}{err}");
        counts_on(dir.path(), "work");
        assert_eq!(life(&two.near, "work"), "running");
    };
    let other = Etcds::start(1);
    two.far.ok(&["host", "stop"]);
    lease(&two.far, &other.named());
    refused("has no lease in the store that this host uses");
    two.far.ok(&["host", "stop"]);
    std::fs::remove_file(two.far.places().config.join("config.toml")).unwrap();
    refused("no `lease` in config.toml there");
    one_life(dir.path(), "work", "refused");
    two.near.ok(&["end", "work", "--grace", "0"]);
    two.far.ok(&["host", "stop"]);
}

#[test]
fn whichever_host_is_killed_while_a_lease_changes_hands_there_is_one_life() {
    let etcds = Etcds::start(1);
    let Some(two) = two(&etcds) else { return };
    let dir = tempfile::tempdir().unwrap();
    let steps = [
        (true, "move.held"),
        (true, "move.intended"),
        (true, "move.passed"),
        (true, "move.committed"),
        (false, "arrive.settled"),
        (false, "lease.claim"),
    ];
    for (n, (is_near, step)) in steps.into_iter().enumerate() {
        let name = format!("host{n}");
        counter(&two, &name, dir.path());
        let home = if is_near { &two.near } else { &two.far };
        let host = home.host_pid();
        let held = home.pause(step);
        let mut mover = begin(&two, &name);
        let reached = held.reached();
        kill(host);
        until("the host's end", || gone(host).then_some(()));
        drop((reached, held));
        mover.wait().unwrap();
        home.run(&["host", "stop"]);
        home.ok(&["ls"]);
        finish(&two, &name, dir.path(), step);
    }
}

#[test]
fn while_the_store_does_not_say_whether_it_was_passed_on_a_session_stands_still_and_then_has_one_life() {
    let mut etcds = Etcds::start(1);
    let Some(two) = two(&etcds) else { return };
    let dir = tempfile::tempdir().unwrap();
    for is_killed in [false, true] {
        let name = format!("unknown-{is_killed}");
        counter(&two, &name, dir.path());
        let held = two.near.pause("move.intended");
        let mut mover = begin(&two, &name);
        let reached = held.reached();
        etcds.kill(0);
        if is_killed {
            let host = two.near.host_pid();
            kill(host);
            until("the host's end", || gone(host).then_some(()));
        }
        drop((reached, held));
        let stood = numbers(dir.path(), &name).len();
        // It is asked for again and again; meanwhile nothing goes on, here or there.
        two.near.ok(&["ls"]);
        let asked = two.near.run(&["move", &name, "gpu"]);
        assert_ne!(asked.status, 0, "{asked}");
        assert_eq!(numbers(dir.path(), &name).len(), stood, "{name}");
        etcds.again(0);
        mover.wait().unwrap();
        finish(&two, &name, dir.path(), &name);
    }
}
