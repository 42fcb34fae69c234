//! What people type who come from tmux, and what a hasty hand makes of it.

use holdfast_harness::{DETACH, Home, Terminal, until};

#[test]
fn what_tmux_users_type_works() {
    let home = Home::new();
    assert_eq!(home.ok(&["new", "-d", "build", "--", "cat"]), "build\n");
    assert_eq!(home.ok(&["new", "-d", "web", "--", "cat"]), "web\n");
    assert_eq!(home.ok(&["list"]).lines().count(), 3);
    let which = home.run(&["end"]);
    assert_eq!(which.status, 2);
    assert!(which.err.contains("holdfast end --all"), "{which}");
    let wrong = home.run(&["kill", "bulid"]);
    assert!(wrong.err.contains("did you mean build?"), "{wrong}");
    home.ok(&["kill", "build"]);
    assert_eq!(home.json(&["ls"]).as_array().unwrap().len(), 1);
}

#[test]
fn attach_finds_the_only_session_a_beginning_and_what_was_chosen() {
    let home = Home::new();
    home.session("build-one", "echo the first; exec cat");
    let goes = |args: &[&str], chosen: &str, text: &str| {
        let terminal = Terminal::new("80x24");
        let mut client = terminal.run(&home, args);
        if !chosen.is_empty() {
            terminal.wait_for("the picker", |seen| seen.shows("Enter attach") && seen.shows("web"));
            terminal.types(format!("{chosen}\r"));
        }
        terminal.wait_text(text);
        until("it is attached", || home.json(&["ls"]).to_string().contains("/dev/pts"));
        terminal.types(DETACH);
        assert_eq!(client.wait(), 0, "{args:?}");
    };
    goes(&["attach"], "", "the first");
    home.session("web", "echo the second; exec cat");
    goes(&["attach", "we"], "", "the second");
    goes(&["attach"], "\x1b[B", "the second");
    goes(&["attach"], "build", "the first");
    home.session("build-two", "exec cat");
    let terminal = Terminal::new("80x24");
    assert_eq!(terminal.run(&home, &["attach", "build"]).wait(), 1);
    terminal.wait_text("build-one, build-two");
}

#[test]
fn a_list_says_what_runs_and_what_waits() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "one", "--", "bash", "--norc"]);
    let row = || home.ok(&["ls"]).lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    until("its prompt", || row().starts_with("one idle "));
    home.ok(&["send", "one", "--enter", "sleep 1000"]);
    until("the command", || row().starts_with("one running ") && row().ends_with(" sleep 1000"));
    home.ok(&["send", "one", "--key", "C-c"]);
    home.ok(&["wait", "one", "--for", "idle", "--timeout", "20"]);
    home.ok(&["send", "one", "--enter", "read -s -p 'Password: ' secret"]);
    until("the password", || row().starts_with("one waits: password "));
    home.ok(&["seize", "one", "--freeze", "--reason", "stop"]);
    assert!(row().starts_with("one frozen by human:tester "), "{}", row());
}

#[test]
fn a_size_that_no_terminal_has_is_refused() {
    let home = Home::new();
    home.session("s", "exec cat");
    let refused = home.run(&["resize", "s", "99999x3"]);
    assert_eq!(refused.status, 2, "{refused}");
    assert!(refused.err.contains("no terminal can have this size"), "{refused}");
    for name in [".", "..", "wait"] {
        assert_ne!(home.run(&["new", "-d", "-n", name, "--", "cat"]).status, 0, "{name}");
        assert_ne!(home.run(&["rename", "s", name]).status, 0, "{name}");
    }
}

#[test]
fn a_host_is_not_stopped_for_settings_that_the_next_could_not_read() {
    let home = Home::new();
    home.session("s", "exec cat");
    let before = home.host_pid();
    std::fs::write(home.join("config.toml"), "nonsense = 1\n").unwrap();
    assert_ne!(home.run(&["host", "restart"]).status, 0);
    std::fs::write(home.join("config.toml"), "").unwrap();
    assert_eq!(home.host_pid(), before);
}
