//! `state`: what real programs do is told as what it is, through the real host.

use holdfast_harness::{Home, until};
use serde_json::Value;

/// Waits until a session is in a state, by its word and what it waits for.
fn until_state(home: &Home, session: &str, expected: &str) -> Value {
    let mut last = Value::Null;
    until(&format!("{session} to be {expected}"), || {
        last = home.json(&["state", session]);
        let kind = last["kind"].as_str().map_or(String::new(), |kind| format!(" {kind}"));
        format!("{}{kind}", last["state"].as_str().unwrap_or_default()) == expected
    });
    last
}

/// A program as a session's command, its state, and the prompt it shows; fails where the program is not installed.
#[test]
fn real_programs_are_told_for_what_they_do() {
    let home = Home::new();
    let table: &[(&str, &[&str], &str, &str)] = &[
        ("idle", &["bash", "--norc", "--noprofile", "-i"], "idle_prompt", ""),
        ("secret", &["bash", "-c", "read -sp 'Password: ' x"], "waiting password", "Password:"),
        // At /dev/tty, as ssh and sudo ask.
        (
            "ssh-like",
            &["sh", "-c", "python3 -c 'import getpass; getpass.getpass()' < /dev/null"],
            "waiting password",
            "Password:",
        ),
        ("input", &["python3", "-c", "input('Name? ')"], "waiting line", "Name?"),
        ("choice", &["bash", "-c", "read -p 'Continue? [Y/n] ' x"], "waiting choice", "Continue? [Y/n]"),
        ("repl", &["bash", "-c", "python3 -q; true"], "waiting repl", ">>>"),
        ("node", &["bash", "-c", "node; true"], "waiting repl", ">"),
        ("debugger", &["bash", "-c", "gdb -q -nx; true"], "waiting repl", "(gdb)"),
        ("dialog", &["whiptail", "--yesno", "sure", "8", "40"], "full_screen", ""),
        ("editor", &["vim", "-u", "NONE", "-N", "-n"], "full_screen", ""),
        ("pager", &["less", "/etc/services"], "full_screen", ""),
        ("sleeper", &["sleep", "1000"], "blocked_elsewhere", ""),
        ("follower", &["tail", "-f", "/etc/services"], "blocked_elsewhere", ""),
        ("busy", &["bash", "-c", "while :; do :; done"], "running", ""),
    ];
    for (name, command, _, _) in table {
        home.ok(&[&["new", "-d", "-n", name, "--"], *command].concat());
    }
    for (name, _, state, prompt) in table {
        let seen = until_state(&home, name, state);
        assert_eq!(seen["prompt"].as_str().unwrap_or_default(), *prompt, "{seen}");
        let now = home.json(&["info", name]);
        assert!(seen["since_ms"].as_u64() >= now["created_ms"].as_u64(), "{seen}");
        assert_eq!(seen["name"], **name);
    }
}

#[test]
fn a_compiler_runs() {
    let home = Home::new();
    let function =
        |n: u32| format!("int f{n}(int x) {{ for (int i = 0; i < {n}; ++i) x = x * 31 + i % (x | 1); return x; }}\n");
    std::fs::write(home.join("big.c"), (0..5000).map(function).collect::<String>()).unwrap();
    home.session("build", "while :; do cc -O2 -c big.c -o big.o; done");
    // The one that works is found below the driver, which only waits for it.
    until("the compiler itself", || {
        let seen = until_state(&home, "build", "running");
        let name = std::fs::read_to_string(format!("/proc/{}/comm", seen["pid"])).unwrap_or_default();
        name.trim_end() == "cc1"
    });
}

#[test]
fn a_state_lasts_until_something_is_typed() {
    let home = Home::new();
    home.session("work", "while read x; do :; done");
    let first = until_state(&home, "work", "waiting line");
    let again = until_state(&home, "work", "waiting line");
    assert_eq!(first["since_ms"], again["since_ms"]);
    home.ok(&["send", "work", "--enter", "x"]);
    until("a new wait", || until_state(&home, "work", "waiting line")["since_ms"] != first["since_ms"]);
}

#[test]
fn frozen_and_ended_sessions_say_so() {
    let home = Home::new();
    home.session("work", "sleep 1000");
    until_state(&home, "work", "blocked_elsewhere");
    home.ok(&["seize", "work", "--freeze", "--reason", "a look"]);
    assert_eq!(home.json(&["state", "work"])["by"], holdfast_harness::TESTER);
    assert!(home.ok(&["state", "work"]).starts_with("frozen by human:tester · for "));
    home.ok(&["thaw", "work"]);
    until_state(&home, "work", "blocked_elsewhere");
    home.session("gone", "exit 3");
    home.run(&["wait", "gone"]);
    let ended = home.json(&["state", "gone"]);
    assert_eq!((&ended["state"], &ended["exit"]["code"]), (&"ended".into(), &3.into()));
    assert!(home.ok(&["state", "gone"]).starts_with("ended: exited 3 · for "));
}

#[test]
fn nothing_in_a_prompt_reaches_the_terminal_as_a_control_character() {
    let home = Home::new();
    home.session("work", r"printf 'a\033]0;t\007b\033[31mc\302\233d\342\200\256? '; read x");
    let seen = until_state(&home, "work", "waiting line");
    assert!(seen["prompt"].as_str().unwrap().starts_with("abc"), "{seen}");
    let told = home.ok(&["state", "work"]);
    assert!(!told.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{told:?}");
}
