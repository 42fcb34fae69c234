//! Checkpoints that the host makes by itself: on a timer, before it reaps, and when the power fails. Needs root and CRIU, as `portable` does.

use crate::portable::{COUNTS, counts_on, home, info, life, lose, shell, start};
use crate::reaping::Running;
use holdfast_harness::{Home, gone, until};
use serde_json::Value;
use std::process::Stdio;

fn checkpoints(home: &Home, name: &str) -> Vec<Value> {
    home.json(&["checkpoints", "ls", name]).as_array().unwrap().clone()
}

fn ids(list: &[Value]) -> Vec<String> {
    list.iter().map(|view| view["id"].as_str().unwrap().to_owned()).collect()
}

/// How many checkpoints of a session its journal has, by this actor.
fn made_by(home: &Home, name: &str, actor: &str) -> usize {
    let text = home.ok(&["journal", name, "--json"]);
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|act| act["by"].to_string().contains(actor) && act.to_string().contains("checkpoint.make")).count()
}

fn every_second(home: &Home, name: &str, command: &[&str]) {
    home.ok(&[&["new", "-d", "-n", name, "--portable", "--checkpoint-every", "1s", "--"], command].concat());
}

#[test]
fn a_checkpoint_is_made_as_often_as_a_session_is_set_to_the_two_newest_are_kept_and_one_by_hand_stays() {
    let Some(home) = home() else { return };
    every_second(&home, "counter", &["sh", "-c", COUNTS]);
    let by_hand = home.json(&["checkpoint", "counter", "--keep-running"])["id"].as_str().unwrap().to_owned();
    let automatic = || -> Vec<String> {
        let all = checkpoints(&home, "counter");
        ids(&all.into_iter().filter(|view| view["automatic"] == true).collect::<Vec<_>>())
    };
    let first = until("the first one", || automatic().first().cloned());
    until("two later ones", || {
        let now = automatic();
        (now.len() == 2 && !now.contains(&first)).then_some(())
    });
    assert!(ids(&checkpoints(&home, "counter")).contains(&by_hand));
    assert!(made_by(&home, "counter", "service:checkpoints") >= 3);
    assert!(home.ok(&["info", "counter"]).contains("a checkpoint is made every 1s"));
    assert!(home.ok(&["checkpoints", "ls"]).contains(", automatic"));
    // The setting, and what was made, outlive the host and the life.
    lose(&home, "counter");
    home.ok(&["restore", "counter"]);
    let before = automatic();
    counts_on(&home, 1);
    until("another one in the next life", || automatic().iter().any(|id| !before.contains(id)).then_some(()));
    assert_eq!(info(&home, "counter")["checkpoint_every_ms"], 1000);
}

#[test]
fn a_session_whose_processes_only_wait_is_left_alone() {
    let Some(home) = home() else { return };
    every_second(&home, "works", &["sh", "-c", COUNTS]);
    every_second(&home, "waits", &["sleep", "1000"]);
    let made = |name| made_by(&home, name, "service:checkpoints");
    until("the first one", || (made("waits") > 0).then_some(()));
    let rounds = |count: usize| {
        let from = made("works");
        until("some rounds", || (made("works") >= from + count).then_some(()));
    };
    rounds(3);
    let before = made("waits");
    rounds(3);
    assert_eq!(made("waits"), before);
}

#[test]
fn an_idle_portable_session_is_kept_before_it_is_reaped_and_comes_back_as_it_was() {
    let Some(home) = home() else { return };
    std::fs::write(home.join("config.toml"), "reap_after = \"2s\"\nreap_warn = \"1s\"\n").unwrap();
    shell(&home, "work");
    let set = home.json(&["run", "work", "--", "kept=here"]);
    assert_eq!(set["exit_code"], 0, "{set}");
    until("the reaper", || (life(&home, "work") == "lost").then_some(()));
    until("its word", || info(&home, "work")["reap"]["reaped"].as_str().map(drop));
    assert_eq!(made_by(&home, "work", "service:reaper"), 1);
    let [only] = checkpoints(&home, "work").try_into().unwrap();
    assert_eq!(only["automatic"], true);
    home.ok(&["restore", "work"]);
    assert!(
        home.json(&["run", "work", "--", "echo kept is $kept"])["output"].as_str().unwrap().contains("kept is here")
    );
    assert!(info(&home, "work")["reap"]["reaped"].is_null());
}

#[test]
fn when_the_power_fails_portable_sessions_are_kept_and_stopped_and_others_go_on() {
    let Some(home) = home() else { return };
    start(&home, "counter", &["sh", "-c", COUNTS]);
    start(&home, "sleeper", &["sleep", "1000"]);
    home.ok(&["new", "-d", "-n", "plain", "--", "sleep", "1000"]);
    counts_on(&home, 1);
    let all = home.json(&["checkpoint", "--all", "--keep-running"]);
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
    assert_eq!(life(&home, "counter"), "running");
    let sleeper = home.number("sleeper", "pid") as u32;
    let host = rustix::process::Pid::from_raw(home.host_pid() as i32).unwrap();
    rustix::process::kill_process(host, rustix::process::Signal::POWER).unwrap();
    for name in ["counter", "sleeper"] {
        until(name, || (life(&home, name) == "lost").then_some(()));
    }
    until("its processes", || gone(sleeper).then_some(()));
    assert_eq!(life(&home, "plain"), "running");
    assert!(ids(&checkpoints(&home, "sleeper")).len() == 2);
    std::fs::write(home.join("count"), "0\n").unwrap();
    home.ok(&["restore", "counter"]);
    counts_on(&home, 0);
}

#[test]
fn a_time_that_is_too_short_or_without_a_portable_session_is_refused() {
    let Some(home) = home() else { return };
    let refused = home.fails(&["new", "-d", "--portable", "--checkpoint-every", "10ms"]);
    assert!(refused.contains("too short"), "{refused}");
    let refused = home.fails(&["new", "-d", "--checkpoint-every", "10m"]);
    assert!(refused.contains("--portable"), "{refused}");
}

#[test]
fn the_worked_example_enters_each_order_once_across_lives_and_a_life_that_was_replaced_enters_none() {
    let Some(home) = home() else { return };
    let (program, ledger) = (example("fenced-ledger.py"), home.join("ledger.db"));
    let ledger = ledger.to_str().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let python = |words: &[&str]| {
        let mut python = std::process::Command::new("python3");
        python.args(words);
        python
    };
    let _keeps = Running(python(&[&program, "keep", &port, ledger]).stdout(Stdio::null()).spawn().unwrap());
    start(&home, "orders", &["python3", &program, "enter", &port]);
    // Key, fence and life of each order, as they were entered.
    let orders = || -> Vec<(String, u64, u64)> {
        let read = "import sqlite3, sys, json\n\
                    db = sqlite3.connect(sys.argv[1], timeout=10)\n\
                    print(json.dumps(db.execute('SELECT key, fence, life FROM orders ORDER BY rowid').fetchall()))";
        serde_json::from_slice(&python(&["-c", read, ledger]).output().unwrap().stdout).unwrap_or_default()
    };
    let until_there = |count: usize| until("some orders", || Some(orders()).filter(|all| all.len() >= count));
    until_there(5);
    home.ok(&["checkpoint", "orders", "--keep-running"]);
    let replaced = std::fs::read(home.session_dir("orders").join("life.json")).unwrap();
    until_there(orders().len() + 5);
    lose(&home, "orders");
    let lost = orders().len();
    let said = home.ok(&["restore", "orders"]);
    assert!(said.contains("connection cut") && said.contains(&format!("127.0.0.1:{port}")), "{said}");
    let all = until_there(lost + 5);
    let (first, second) = all.split_at(lost);
    assert!(first.iter().all(|order| order.2 == 1) && second.iter().all(|order| order.2 == 2), "{all:?}");
    assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].1), "fences only grow: {all:?}");
    let keys: Vec<String> = (1..=all.len()).map(|number| format!("order-{number:05}")).collect();
    assert_eq!(all.iter().map(|order| order.0.clone()).collect::<Vec<_>>(), keys);
    // What still believes in the first life is refused by the ledger.
    std::fs::write(home.join("replaced"), replaced).unwrap();
    let late = python(&[&program, "enter", &port]).env("HOLDFAST_LIFE", home.join("replaced")).output().unwrap();
    let said = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(!late.status.success() && said.contains("this one must not"), "{said}");
}

fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}
