//! The turn: taken, asked for, handed over, seized; and what is refused on the way.

use holdfast_harness::{Home, TESTER, settle, until};
use std::time::{Duration, Instant};

const ANN: &str = "human:ann";
const BOT: &str = "agent:bot";

/// A home with a person, an agent and a session.
fn settled() -> Home {
    let home = Home::new();
    settle(home.path(), ANN);
    home.ok(&["actor", "new", BOT]);
    home.session("work", "echo ready; exec cat");
    home.until_screen_shows("work", "ready");
    home
}

#[test]
fn the_turn_is_taken_asked_for_handed_over_and_let_go() {
    let home = settled();
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!(home.told(&[
        &[ANN, "turn", "work"],
        &[ANN, "take", "work"],
        &[ANN, "take", "work"],
        &[ANN, "turn", "work"],
        &[BOT, "take", "work"],
        &[BOT, "send", "work", "x"],
        &[BOT, "resize", "work", "90x20"],
        &[BOT, "request", "work"],
        &[TESTER, "request", "work"],
        &[TESTER, "withdraw", "work"],
        &[TESTER, "turn", "work"],
        &[BOT, "ls"],
        &[BOT, "info", "work"],
        &[BOT, "release", "work"],
        &[ANN, "release", "work"],
        &[BOT, "give", "work", "--to", ANN],
        &[ANN, "turn", "work"],
        &[ANN, "give", "work", "--to", "agent:bit"],
        &[ANN, "give", "work", "--to", "service:deploy"],
        &[ANN, "release", "work"],
        &[BOT, "resize", "work", "90x20"],
        &[BOT, "send", "work", "--enter", "hello"],
        &[BOT, "turn", "work"],
    ]));
}

#[test]
fn a_seizure_takes_the_turn_and_stops_the_tree() {
    let home = settled();
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!(home.told(&[
        &[BOT, "take", "work"],
        &[ANN, "seize", "work", "--reason", "it loops"],
        &[BOT, "send", "work", "x"],
        &[BOT, "seize", "work", "--reason", "mine"],
        &[ANN, "give", "work", "--to", BOT],
        &[ANN, "--json", "seize", "work", "--freeze", "--reason", "it loops"],
        &[BOT, "turn", "work"],
        &[BOT, "ls"],
        &[BOT, "send", "work", "x"],
        &[BOT, "thaw", "work"],
        &[TESTER, "thaw", "work"],
        &[TESTER, "thaw", "work"],
        &[BOT, "turn", "work"],
    ]));
    let told = home.ok(&["seize", "work", "--freeze", "--reason", "look"]);
    assert!(told.starts_with("you have the turn in work for ") && told.contains("; human:ann lost it\n"), "{told}");
    assert!(told.contains("frozen: 1 process by "), "{told}");
    home.ok(&["thaw", "work"]);
    home.ok(&["send", "work", "--enter", "goes on"]);
    home.until_screen_shows("work", "goes on");
}

#[test]
fn who_waits_for_the_turn_gets_it_or_gives_up_in_time() {
    let home = settled();
    let _settled = home.settle_snapshots();
    home.ok(&["take", "work"]);
    let began = Instant::now();
    insta::assert_snapshot!(home.run_as(BOT, &["request", "work", "--wait", "0.3"]), @r"
    --- stderr
    holdfast: gave up waiting for the turn in work
    --- status 124
    ");
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(home.json(&["turn", "work"]).get("queue"), None, "it no longer waits");
    let mut waits = home.command(&["--as", BOT, "request", "work", "--wait"]);
    let waits = waits.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let queued = || home.json(&["turn", "work"])["queue"] == serde_json::json!([BOT]);
    until("the request", queued);
    // It asks again where a seizure has sent it home.
    home.ok(&["seize", "work", "--reason", "once more"]);
    until("the request", queued);
    home.ok(&["release", "work"]);
    let output = waits.wait_with_output().unwrap();
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout), @"you have the turn in work for [time]");
    assert_eq!(home.json(&["turn", "work"])["holder"]["actor"]["handle"], BOT);
}

#[test]
fn signals_reach_the_foreground_the_command_or_the_tree() {
    let home = settled();
    // With `set -m` what the shell runs is a group of its own, in the foreground; USR1 would end the shell itself.
    let inner = "trap \"echo got it\" USR1; echo ready; while :; do read line; done";
    home.session("jobs", &format!("set -m; sh -c '{inner}'; echo over"));
    home.until_screen_shows("jobs", "ready");
    assert_eq!(home.ok(&["signal", "jobs", "SIGUSR1"]), "");
    home.until_screen_shows("jobs", "got it");
    home.ok(&["signal", "jobs", "kill", "--command"]);
    assert_eq!(home.run(&["wait", "jobs"]).status, 128 + 9);
    home.session("tree", &format!("set -m; sh -c '{inner}'; echo over"));
    home.until_screen_shows("tree", "ready");
    assert_eq!(home.json(&["signal", "tree", "9", "--tree"]), serde_json::json!({}));
    assert_eq!(home.run(&["wait", "tree"]).status, 128 + 9);
    home.ok(&["signal", "work", "int"]);
    assert_eq!(home.run(&["wait", "work"]).status, 128 + 2);
}
