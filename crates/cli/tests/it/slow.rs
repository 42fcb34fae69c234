//! What takes longer than a turn lasts: an act is done all the same where nobody else had the turn meanwhile, over every surface.

use holdfast_harness::{Home, Ran, until};
use serde_json::Value;
use std::process::{Child, Stdio};

fn with_bash() -> Home {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "work", "--", "bash"]);
    home.ok(&["run", "work", "--", "true"]);
    home
}

fn spawn(home: &Home, args: &[&str]) -> Child {
    home.command(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

fn holder(home: &Home) -> Value {
    home.json(&["turn", "work"])["holder"]["actor"]["handle"].clone()
}

fn until_free(home: &Home) {
    until("the turn to run out", || holder(home).is_null());
}

#[test]
fn a_run_whose_key_takes_a_slow_disk_longer_than_its_turn_lasts_is_entered_all_the_same() {
    let home = with_bash();
    let pause = home.pause("run.key_taken");
    let run = spawn(&home, &["run", "work", "--key", "k", "--", "echo x >> ran; echo done"]);
    let reached = pause.reached();
    until_free(&home);
    drop((pause, reached));
    let ran = ended(run);
    assert_eq!((ran.status, ran.out.as_str()), (0, "done\n"), "{ran}");
    // Once, under the same key.
    let again = home.json(&["run", "work", "--json", "--key", "k", "--", "echo x >> ran; echo done"]);
    assert_eq!(again["existing"], true, "{again}");
    assert_eq!(std::fs::read_to_string(home.join("ran")).unwrap(), "x\n");
}

#[test]
fn a_run_that_somebody_else_came_before_is_refused_and_its_key_is_free() {
    let home = with_bash();
    home.ok(&["actor", "new", "agent:bot"]);
    until_free(&home);
    let pause = home.pause("run.key_taken");
    let run = spawn(&home, &["--as", "agent:bot", "run", "work", "--json", "--key", "k", "--", "echo x >> ran"]);
    let reached = pause.reached();
    until_free(&home);
    home.ok(&["take", "work"]);
    drop((pause, reached));
    let ran = ended(run);
    assert!(ran.err.contains("turn_held"), "{ran}");
    home.ok(&["release", "work"]);
    assert_eq!(home.run_as("agent:bot", &["run", "work", "--key", "k", "--", "echo x >> ran"]).status, 0);
    assert_eq!(std::fs::read_to_string(home.join("ran")).unwrap(), "x\n");
}

#[test]
fn a_run_is_not_typed_behind_what_its_actor_typed_while_the_disk_took_its_key() {
    let home = with_bash();
    let pause = home.pause("run.key_taken");
    let run = spawn(&home, &["run", "work", "--json", "--key", "k", "--", "echo x >> ran"]);
    let reached = pause.reached();
    home.ok(&["send", "work", "touch harm; "]);
    home.until_screen_shows("work", "touch harm");
    drop((pause, reached));
    let ran = ended(run);
    assert!(ran.err.contains("shell_busy"), "{ran}");
    home.ok(&["send", "work", "--key", "C-c"]);
    assert_eq!(home.run(&["run", "work", "--key", "k", "--", "echo x >> ran"]).status, 0);
    assert_eq!(std::fs::read_to_string(home.join("ran")).unwrap(), "x\n");
    assert!(!home.join("harm").exists());
}

#[test]
fn a_signal_to_the_whole_tree_outlasts_the_turn_of_who_sends_it() {
    let home = with_bash();
    home.session("waits", "trap 'echo heard; exit 3' USR1; echo up; while :; do sleep 0.05; done");
    home.until_screen_shows("waits", "up");
    home.ok(&["send", "waits", "x"]);
    let pause = home.pause("tree.spared");
    let signal = spawn(&home, &["signal", "waits", "USR1", "--tree"]);
    let reached = pause.reached();
    until("the turn to run out", || home.json(&["turn", "waits"])["holder"].is_null());
    drop((pause, reached));
    let sent = ended(signal);
    assert_eq!(sent.status, 0, "{sent}");
    assert_eq!(home.run(&["wait", "waits"]).status, 3);
}
