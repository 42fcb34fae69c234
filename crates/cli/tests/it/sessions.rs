//! Starting, listing, waiting for, renaming and ending sessions.

use holdfast_harness::{Home, until};
use serde_json::json;

#[test]
fn an_empty_home_says_how_to_start() {
    let home = Home::new();
    assert_eq!(home.ok(&["ls"]), "no sessions; start one with: holdfast new\n");
    assert_eq!(home.json(&["ls"]), json!([]));
    assert_eq!(home.ok(&["end", "--all"]), "no sessions to end\n");
}

#[test]
fn a_session_is_listed_and_described() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    assert_eq!(home.ok(&["new", "-d", "-n", "work", "--size", "100x30", "--", "cat", "-u"]), "work\n");
    home.ok(&["wait", "work", "--for", "waiting", "--timeout", "20"]);
    insta::assert_snapshot!("listed", home.ok(&["ls"]));
    insta::assert_snapshot!("described", home.ok(&["info", "work"]));
    insta::assert_snapshot!("described_in_json", home.run(&["--json", "info", "work"]));
    let id = home.json(&["info", "work"])["id"].as_str().unwrap().to_owned();
    assert_eq!(home.json(&["info", &id[..12]])["name"], "work", "the beginning of an id will do");
}

#[test]
fn wait_ends_as_the_command_did() {
    let home = Home::new();
    for (name, script, status) in [("good", "exit 0", 0), ("three", "exit 3", 3), ("shot", "kill -9 $$", 137)] {
        home.session(name, script);
        assert_eq!(home.run(&["wait", name]).status, status, "{name}");
    }
    home.session("long", "exec cat");
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!(home.run(&["wait", "long", "--timeout", "0.05"]), @r"
    --- stderr
    holdfast: session long is still running
    --- status 124
    ");
    assert_eq!(home.run(&["--json", "wait", "three"]).out, "{\n  \"exit\": {\n    \"code\": 3\n  }\n}\n");
}

#[test]
fn an_ended_session_is_seen_with_all_alone() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    home.session("brief", "echo last words; exit 4");
    home.run(&["wait", "brief"]);
    assert_eq!(home.ok(&["ls"]), "no sessions; start one with: holdfast new\n");
    insta::assert_snapshot!(home.ok(&["ls", "--all"]));
    assert_eq!(home.ok(&["screen", "brief"]), "last words\n");
    assert_eq!(home.json(&["ls", "--all"])[0]["exit"], json!({"code": 4}));
}

#[test]
fn what_is_not_there_or_taken_is_refused_with_a_reason() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    home.session("work", "exec cat");
    let calls: &[&[&str]] = &[
        &["info", "nope"],
        &["--json", "info", "nope"],
        &["new", "-d", "-n", "work", "--", "cat"],
        &["new", "-d", "--cwd", "/does/not/exist", "--", "cat"],
        &["new", "-d", "--", "/does/not/exist"],
        &["end", "nope"],
        &["detach", "work"],
        &["detach", "work", "--client", "7"],
        &["logs", "work", "--from", "99999"],
    ];
    let mut told = String::new();
    for call in calls {
        told.push_str(&format!("$ holdfast {}\n{}\n", call.join(" "), home.run(call)));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_renamed_session_answers_to_its_new_name() {
    let home = Home::new();
    home.session("old", "exec cat");
    home.session("other", "exec cat");
    assert_eq!(home.ok(&["rename", "old", "new"]), "");
    assert_eq!(home.json(&["info", "new"])["name"], "new");
    assert_eq!(home.run(&["info", "old"]).status, 1);
    assert_eq!(home.run(&["rename", "new", "other"]).status, 1, "the name of another live session");
    assert_eq!(home.json(&["rename", "new", "old"])["name"], "old");
}

#[test]
fn a_resized_session_has_the_new_size() {
    let home = Home::new();
    home.session("work", "trap 'stty size' WINCH; echo ready; while :; do read line; done");
    home.until_screen_shows("work", "ready");
    assert_eq!(home.ok(&["resize", "work", "101x33"]), "");
    home.until_screen_shows("work", "33 101");
    assert_eq!(home.json(&["info", "work"])["size"], "101x33");
}

#[test]
fn end_takes_the_whole_tree_with_it() {
    let home = Home::new();
    home.session(
        "work",
        "trap '' HUP; (trap '' HUP; exec setsid cat </dev/zero >/dev/null) & echo started; while :; do wait; done",
    );
    home.until_screen_shows("work", "started");
    let host = home.host_pid();
    assert_eq!(home.ok(&["end", "work", "--grace", "0.05"]), "work: killed by signal 9\n");
    until("the tree to be gone", || home.processes_at_work() == [host]);
}

/// The words that a session's keeper was started with, as `ps` shows them.
fn keeper_words(home: &Home, session: &str) -> String {
    holdfast_harness::command_line(home.number(session, "keeper_pid") as u32)
}

#[test]
fn a_session_gets_the_keeper_and_the_files_that_were_made_ahead_and_is_like_any_other() {
    let home = Home::new();
    let id = |name: &str| home.json(&["info", name])["id"].as_str().unwrap().to_owned();
    home.session("first", "exec cat");
    let waiting = until("a keeper that waits", || home.waiting_keeper());
    home.session("second", "echo ready; exec cat");
    assert_eq!(home.number("second", "keeper_pid"), u64::from(waiting), "it was taken");
    for name in ["first", "second"] {
        assert!(keeper_words(&home, name).contains(&id(name)), "{}", keeper_words(&home, name));
    }
    let empty: Vec<String> = std::fs::read_dir(home.session_dir("second"))
        .unwrap()
        .flatten()
        .filter(|file| file.metadata().unwrap().len() == 0)
        .map(|file| file.file_name().into_string().unwrap())
        .collect();
    assert!(empty.is_empty(), "each file was written: {empty:?}");
    home.until_screen_shows("second", "ready");
    home.ok(&["journal", "second", "--verify"]);
    home.kill_host();
    home.ok(&["send", "second", "--enter", "still here"]);
    home.until_screen_shows("second", "still here");
    until("the end of the keeper that waited for the killed host", || {
        home.waiting_keeper().is_none_or(|pid| pid != waiting)
    });
    assert_eq!(home.json(&["ls"]).as_array().unwrap().len(), 2, "what was made ahead is no session");
}

#[test]
fn a_host_killed_before_it_wrote_anything_of_a_session_leaves_no_trace_of_it() {
    let home = Home::new();
    home.session("work", "exec cat");
    home.kill_host();
    let (never, spoilt) =
        (home.join("sessions/ses_00000000000000000000000001"), home.join("sessions/ses_00000000000000000000000002"));
    for dir in [&never, &spoilt] {
        std::fs::create_dir(dir).unwrap();
        ["spec", "birth", "life.json", "journal.1", "journal-last"].iter().for_each(|name| {
            std::fs::write(dir.join(name), "").unwrap();
        });
    }
    std::fs::write(spoilt.join("journal.1"), "something was written here").unwrap();
    home.ok(&["info", "work"]);
    assert!(!never.exists(), "nothing ever ran");
    assert!(spoilt.exists(), "what may have run is shown, not removed");
}

#[test]
fn end_all_ends_every_session_and_says_how() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        home.session(name, "exec cat");
    }
    let ended = home.ok(&["end", "--all"]);
    let mut lines: Vec<_> = ended.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a: killed by signal 1", "b: killed by signal 1", "c: killed by signal 1"]);
    assert_eq!(home.json(&["end", "--all"]), json!([]));
}

#[test]
fn a_session_starts_with_what_its_caller_has() {
    let home = Home::new();
    let script = "umask; pwd; ulimit -n; echo $TERM:$LANG:$EXTRA:$HOLDFAST_SESSION_NAME:$(echo $HOLDFAST_SESSION | cut -c1-4); stty size";
    std::fs::create_dir(home.join("dir")).unwrap();
    let started = std::process::Command::new("sh")
        .args(["-c", "umask 027; ulimit -Sn 321; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_holdfast")])
        .args([
            "new",
            "-d",
            "-n",
            "mine",
            "--cwd",
            "dir",
            "--env",
            "EXTRA=a=b",
            "--size",
            "90x20",
            "--",
            "sh",
            "-c",
            script,
        ])
        .current_dir(home.path())
        .env("HOLDFAST_HOME", home.path())
        .env("HOLDFAST_SESSION", "ses_of_another")
        .env("HOLDFAST_SESSION_NAME", "another")
        .env("TERM", "dumb")
        .env("LANG", "C.UTF-8")
        .status()
        .unwrap();
    assert!(started.success());
    home.run(&["wait", "mine"]);
    let expected = format!("0027\n{}\n321\nxterm-256color:C.UTF-8:a=b:mine:ses_\n20 90\n", home.join("dir").display());
    assert_eq!(home.ok(&["screen", "mine"]), expected);
}

#[test]
fn hostile_bytes_are_shown_not_obeyed() {
    let home = Home::new();
    let script = "printf '\\033]2;ti\\342\\200\\256tle\\007'; echo ready; exec cat";
    home.ok(&["new", "-d", "-n", "work", "--", "sh", "-c", script, "\x1b[31m\u{9b}2J\r\n"]);
    home.until_screen_shows("work", "ready");
    let (listed, described) = (home.ok(&["ls"]), home.ok(&["info", "work"]));
    for text in [&listed, &described] {
        assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
        assert!(text.contains(r"\u{1b}[31m\u{9b}2J\r\n"), "{text}");
    }
    assert_eq!(listed.lines().count(), 2);
    let refused = home.run(&["info", "\x1b[31m"]);
    assert!(refused.status == 1 && !refused.err.contains('\x1b'), "{refused}");
}

#[test]
fn a_variable_that_is_not_utf8_is_left_out_with_a_warning() {
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    let mut command = home.command(&["new", "-d", "-n", "work", "--", "env"]);
    let output = command.env("ODD", std::ffi::OsStr::from_bytes(b"\xff")).env("EVEN", "\u{fc}").output().unwrap();
    assert!(output.status.success());
    let warning = "holdfast: warning: left out the variable ODD: it is not UTF-8\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), warning);
    home.run(&["wait", "work"]);
    let env = home.ok(&["logs", "work"]);
    assert!(env.contains("EVEN=\u{fc}\r\n") && !env.contains("ODD="), "{env}");
}
