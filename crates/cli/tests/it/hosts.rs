//! The host comes and goes; sessions do not notice.

use holdfast_harness::{Home, kill, until};
use serde_json::json;

#[test]
fn the_host_is_started_stopped_and_restarted_by_hand() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    let mut told = String::new();
    for call in [
        &["host", "status"][..],
        &["--json", "host", "status"],
        &["host", "stop"],
        &["host", "start"],
        &["host", "start"],
        &["host", "run"],
        &["host", "status"],
        &["--json", "host", "status"],
        &["host", "restart"],
        &["host", "stop"],
        &["host", "restart"],
    ] {
        told.push_str(&format!("$ holdfast {}\n{}\n", call.join(" "), home.run(call)));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn sessions_go_on_while_the_host_stops_and_restarts() {
    let home = Home::new();
    home.session("work", "echo before; while read line; do echo got $line; done");
    home.until_screen_shows("work", "before");
    let pid = home.json(&["info", "work"])["pid"].clone();
    let (first, stopped) = (home.host_pid(), home.ok(&["host", "stop"]));
    assert!(stopped.ends_with("1 session kept running\n"), "{stopped}");
    home.ok(&["send", "work", "--enter", "one"]);
    home.until_screen_shows("work", "got one");
    assert_ne!(home.host_pid(), first, "a command started another");
    assert!(home.ok(&["host", "restart"]).ends_with("1 session kept running\n"));
    home.ok(&["send", "work", "--enter", "two"]);
    home.until_screen_shows("work", "got two");
    assert_eq!(home.json(&["info", "work"])["pid"], pid);
}

#[test]
fn a_killed_host_is_replaced_by_the_next_command() {
    let home = Home::new();
    home.session("work", "echo before; exec cat");
    home.until_screen_shows("work", "before");
    let host = home.host_pid();
    kill(host);
    until("the host's end", || !home.processes().contains(&host));
    assert_eq!(home.ok(&["screen", "work"]), "before\n");
    assert_eq!(home.json(&["ls"])[0]["life"], json!("running"));
}

#[test]
fn wait_outlives_its_host() {
    let home = Home::new();
    home.session("work", "read line; exit 7");
    let mut waiter = home.command(&["wait", "work"]).spawn().unwrap();
    kill(home.host_pid());
    home.ok(&["send", "work", "--enter", "x"]);
    assert_eq!(waiter.wait().unwrap().code(), Some(7));
}

#[test]
fn the_host_holds_nothing_of_who_started_it() {
    let home = Home::new();
    // A pipe whose write end is inherited as descriptor 7 by everything the command starts.
    let script = "{ \"$0\" host start 7>&1 >/dev/null; } | cat";
    let mut command = home.command(&[""; 0]);
    let program = command.get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).arg(program).env("HOLDFAST_HOME", home.path());
    // Returns only once no process has the pipe open for writing.
    assert!(shell.status().unwrap().success());
    let pid = home.host_pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = status.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!(fields[4], "0", "it has no controlling terminal");
    assert_eq!(command.args(["host", "status"]).output().unwrap().status.code(), Some(0));
}

#[test]
fn the_doctor_has_a_line_for_each_thing() {
    let home = Home::new();
    assert_eq!(home.run(&["doctor"]).status, 0);
    assert_eq!(home.processes(), [0u32; 0], "looking starts nothing");
    home.ok(&["host", "start"]);
    let findings = home.json(&["doctor"]);
    let findings = findings.as_array().unwrap();
    let whats: Vec<&str> = findings.iter().map(|finding| finding["what"].as_str().unwrap()).collect();
    let expected = [
        "kernel",
        "user",
        "terminals",
        "TERM",
        "typed input",
        "other users",
        "walls",
        "programs",
        "open files",
        "home",
        "state",
        "sockets",
        "configuration",
        "host",
        "keepers",
        "logout",
        "boot",
        "freezer",
        "checkpoints",
    ];
    assert_eq!(whats, expected);
    for finding in findings {
        let well = finding["grade"] == "ok";
        assert!(well || finding["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{finding}");
    }
    let told = home.ok(&["doctor"]);
    assert_eq!(told.lines().count(), expected.len(), "one line each");
}

#[test]
fn the_doctor_fails_where_something_needed_is_broken() {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), "rong = 1\n").unwrap();
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("missing  configuration"), "{ran}");
    assert!(ran.out.contains("did you mean `ring`?"), "{ran}");
}
