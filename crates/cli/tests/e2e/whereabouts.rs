//! What a person at a terminal meets every day: where they are, how to go elsewhere, and what keys do that are not typed.

use holdfast_harness::{CHORD, DETACH, Home, Terminal, until};
use std::process::Command;

/// The program with what tests usually turn off.
fn with(home: &Home, args: &[&str], settings: &[(&str, &str)]) -> Command {
    let mut command = home.command(args);
    command.envs(settings.iter().copied());
    command
}

fn chord(key: &str) -> Vec<u8> {
    [CHORD, key.as_bytes()].concat()
}

#[test]
fn the_picker_finds_attaches_switches_and_gives_the_terminal_back() {
    let home = Home::new();
    for name in ["alpha", "beta", "gamma"] {
        home.session(name, &format!("stty -echo; echo this is {name}; exec cat"));
        home.until_screen_shows(name, &format!("this is {name}"));
    }
    let terminal = Terminal::new("80x24");
    let (before, look) = (terminal.termios(), terminal.look());
    let mut client = terminal.run(&home, &["ui"]);
    terminal.wait_text("this is alpha");
    assert!(terminal.peek(|seen| seen.screen.alternate() && seen.shows("gamma") && seen.shows("Enter attach")));
    terminal.types("bet");
    terminal.wait_for("what fits, and its screen", |seen| seen.shows("this is beta") && !seen.shows("gamma"));
    terminal.types("\r");
    until("it is attached", || home.clients("beta") == 1);
    terminal.wait_for("the session's own screen", |seen| !seen.screen.alternate() && seen.shows("this is beta"));
    // To another session and back by a key; nothing is typed into either.
    terminal.types(chord("w"));
    terminal.wait_text("Enter attach");
    until("it let go", || home.clients("beta") == 0);
    terminal.types("\x1b[B\r");
    terminal.wait_for("the next one", |seen| !seen.screen.alternate() && seen.shows("this is gamma"));
    terminal.types(chord("w"));
    terminal.wait_text("Enter attach");
    terminal.types("\x1b");
    terminal.wait_for("the same one again", |seen| !seen.screen.alternate() && seen.shows("this is gamma"));
    until("it is attached", || home.clients("gamma") == 1);
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    assert_eq!(format!("{:?}", terminal.termios()), format!("{before:?}"));
    assert_eq!(terminal.look().title, look.title, "the window's title is the person's");
}

#[test]
fn the_picker_starts_ends_and_answers() {
    let home = Home::new();
    home.session("one", "stty -echo; echo here; exec cat");
    home.session("two", "exec cat");
    let terminal = Terminal::new("80x24");
    let mut client = terminal.run(&home, &["attach"]);
    terminal.wait_text("Enter attach");
    terminal.wait_text("two");
    // Not without a yes.
    terminal.types("two\x18");
    terminal.wait_text("end two and everything it runs? y/N");
    terminal.types("\r");
    terminal.wait_text("Enter attach");
    terminal.types("\x18");
    terminal.wait_text("y/N");
    terminal.types("y");
    terminal.wait_text("no session fits");
    until("it has ended", || home.json(&["ls"]).as_array().unwrap().len() == 1);
    terminal.types("\x15");
    let asked = home
        .run_as("agent:bot", &["ask", "-t", "one", "--option", "yes", "--option", "no", "--timeout", "0", "Deploy?"]);
    assert_eq!(asked.status, 124, "{asked}");
    terminal.wait_for("that it asks", |seen| seen.shows("● one") && seen.shows("asks"));
    terminal.types("\x01");
    terminal.wait_text("agent:bot asks in one:");
    terminal.types("2\r");
    terminal.wait_text("answered: no");
    terminal.types("\x0e");
    terminal.wait_text("new session");
    terminal.types("three\r");
    until("it is there", || home.run(&["info", "three"]).status == 0);
    until("it is attached to the new one", || home.clients("three") == 1);
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}

#[test]
fn a_terminal_that_has_the_history_gets_only_what_is_new() {
    let home = Home::new();
    home.session("s", "stty -echo; seq -f 'line %.0f' 300; echo done; while read n; do seq -f 'more %.0f' $n; done");
    home.until_screen_shows("s", "done");
    let terminal = Terminal::new("80x24");
    let count =
        |prefix: &str| terminal.peek(|seen| seen.lines().iter().filter(|line| line.starts_with(prefix)).count());
    let attach = |text: &str| {
        let mut client = terminal.run(&home, &["attach", "s"]);
        until("it is attached", || home.clients("s") == 1);
        terminal.wait_for(text, |seen| seen.shows(text));
        let lines = holdfast_harness::poll(|| (count("line 1") >= 111).then_some(()));
        assert!(lines.is_some(), "the history is there: {}", count("line "));
        terminal.types(DETACH);
        assert_eq!(client.wait(), 0);
    };
    attach("done");
    assert_eq!(count("line "), 300);
    // Nothing new: the screen alone, which was there before it.
    attach("done");
    assert!(count("line ") < 300 + 2 * 24, "{}", count("line "));
    home.ok(&["send", "s", "--enter", "100"]);
    home.until_screen_shows("s", "more 100");
    attach("more 100");
    assert!(count("line ") < 300 + 3 * 24, "{}", count("line "));
    let more: Vec<usize> = terminal.peek(|seen| {
        seen.lines().iter().filter_map(|line| line.strip_prefix("more ")?.trim_end().parse().ok()).collect()
    });
    assert_eq!(more, (1..=100).collect::<Vec<_>>(), "what is new is there once, and whole");
    // Another terminal has nothing, and neither has one whose host is another.
    let (other, _client) = Terminal::attached(&home, "s", "80x24");
    let lines = |seen: &holdfast_harness::Seen| seen.lines().iter().filter(|line| line.starts_with("line ")).count();
    other.wait_for("all of it", |seen| lines(seen) == 300);
    home.kill_host();
    let before = count("line ");
    let mut client = terminal.run(&home, &["attach", "s"]);
    terminal.wait_for("all of it again", |seen| lines(seen) >= before + 270);
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}

#[test]
fn a_cleared_history_is_not_taken_for_one_that_the_terminal_has() {
    let home = Home::new();
    home.session("s", "stty -echo; seq -f 'old %.0f' 200; echo done; read x; printf '\\033[H\\033[2J\\033[3J'; seq -f 'new %.0f' 200; echo end; exec cat");
    home.until_screen_shows("s", "done");
    let (terminal, mut client) = Terminal::attached(&home, "s", "80x24");
    terminal.wait_text("done");
    terminal.wait_for("its history", |seen| seen.lines().iter().any(|line| line.starts_with("old 1")));
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    home.ok(&["send", "s", "--enter", ""]);
    home.until_screen_shows("s", "end");
    let mut client = terminal.run(&home, &["attach", "s"]);
    let whole = |seen: &holdfast_harness::Seen| {
        (1..=200).all(|n| seen.lines().iter().any(|line| line.trim_end() == format!("new {n}")))
    };
    terminal.wait_for("every line behind the clearing", whole);
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}

#[test]
fn the_first_attach_says_where_one_is_and_the_title_comes_back() {
    let home = Home::new();
    home.session("s", "stty -echo; echo ready; exec cat");
    home.until_screen_shows("s", "ready");
    let terminal = Terminal::new("80x24");
    let greets = [("HOLDFAST_GREETING", "true"), ("HOLDFAST_TITLE", "true")];
    let mut client = terminal.start(with(&home, &["attach", "s"], &greets));
    terminal.wait_text("s · Ctrl-\\ d detaches, Ctrl-\\ ? helps");
    terminal.wait_for("the title", |seen| seen.screen.title() == "s — holdfast");
    terminal.types("typed\r");
    terminal.wait_for("that it goes with the first key", |seen| seen.shows("typed") && !seen.shows("helps"));
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    terminal.wait_for("the person's title", |seen| seen.screen.title().is_empty());
    let mut client = terminal.start(with(&home, &["attach", "s"], &greets));
    terminal.wait_for("the title again", |seen| seen.screen.title() == "s — holdfast");
    terminal.settle(&home, "s");
    assert!(!terminal.peek(|seen| seen.shows("helps")), "this terminal has been here");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}

#[test]
fn a_status_line_says_who_has_the_turn_and_what_waits_elsewhere() {
    let home = Home::new();
    home.session("here", "stty -echo; echo ready; exec cat");
    home.session("elsewhere", "exec cat");
    home.until_screen_shows("here", "ready");
    let terminal = Terminal::new("80x24");
    let mut client = terminal.start(with(&home, &["attach", "here"], &[("HOLDFAST_STATUS", "bottom")]));
    let last = |seen: &holdfast_harness::Seen| seen.screen.rows_text().last().cloned().unwrap_or_default();
    terminal.wait_for("the line", |seen| last(seen).starts_with(" here · "));
    until("the session has one row less", || home.size("here") == "80x23");
    terminal.types("typed\r");
    terminal.wait_for("whose turn it is", |seen| seen.shows("typed") && last(seen).starts_with(" here · your turn"));
    home.run_as("agent:bot", &["ask", "-t", "elsewhere", "--timeout", "0", "Deploy?"]);
    terminal.wait_for("what waits elsewhere", |seen| last(seen).contains("waiting: elsewhere (question)"));
    // Output scrolls above it, and a full screen of it does not push it away.
    terminal.types((1..=60).map(|n| format!("row {n}\r")).collect::<String>());
    terminal.wait_for("the line below", |seen| seen.shows("row 60") && last(seen).starts_with(" here · your turn"));
    terminal.resize("60x12", &client);
    terminal.wait_for("the line in a smaller window", |seen| {
        seen.screen.rows_text().len() == 12 && last(seen).starts_with(" here · your turn") && seen.shows("row 60")
    });
    until("the size follows", || home.size("here") == "60x11");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}

#[test]
fn a_watcher_who_types_is_told_why_nothing_happens() {
    let home = Home::new();
    home.session("s", "echo ready; exec cat");
    home.until_screen_shows("s", "ready");
    let terminal = Terminal::new("80x24");
    let mut client = terminal.run(&home, &["attach", "-r", "s"]);
    terminal.wait_text("ready");
    terminal.types("x");
    terminal.wait_text("read-only: nothing is typed · Ctrl-\\ d detaches");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    assert!(!home.ok(&["screen", "s"]).contains('x'));
}

#[test]
fn without_a_chord_every_key_is_the_sessions() {
    let home = Home::new();
    home.session("s", "stty raw -echo; echo ready; exec cat > typed");
    home.until_screen_shows("s", "ready");
    let terminal = Terminal::new("80x24");
    let mut client = terminal.start(with(&home, &["attach", "s"], &[("HOLDFAST_CHORD", "none")]));
    terminal.wait_text("ready");
    terminal.types("\x1cd\x1c?\x1b[92;5ud");
    until("all of it is typed", || std::fs::read(home.join("typed")).unwrap() == b"\x1cd\x1c?\x1b[92;5ud");
    home.ok(&["detach", "s", "--all"]);
    assert_eq!(client.wait(), 0);
}

#[test]
fn a_suspended_client_comes_back_with_fg() {
    let home = Home::new();
    home.session("s", "stty -echo; echo ready; exec cat");
    home.until_screen_shows("s", "ready");
    let terminal = Terminal::new("80x24");
    let program = home.command::<&str>(&[]);
    let variables = program.get_envs().filter_map(|(key, value)| Some((key, value?)));
    let mut bash = Command::new("/bin/bash");
    bash.args(["--norc", "-i"]).env_clear().envs(variables).env("PS1", "shell$ ");
    bash.env("PROGRAM", program.get_program()).current_dir(home.path());
    let mut client = terminal.start(bash);
    terminal.wait_text("shell$");
    terminal.types("\"$PROGRAM\" attach s\r");
    terminal.wait_for("the session", |seen| seen.shows("ready") && !seen.shows("shell$"));
    terminal.types(chord("z"));
    terminal.wait_text("Stopped");
    until("it let go", || home.clients("s") == 0);
    terminal.types("echo in-$((40+2))\r");
    terminal.wait_text("in-42");
    terminal.types("fg\r");
    until("it is back", || home.clients("s") == 1);
    terminal.wait_for("the session again", |seen| seen.shows("ready") && !seen.shows("in-42"));
    terminal.types("typed\r");
    terminal.wait_text("typed");
    terminal.types(DETACH);
    terminal.wait_text("detached");
    terminal.types("exit\r");
    assert_eq!(client.wait(), 0);
}

#[test]
fn a_seizure_by_key_comes_before_its_reason() {
    let home = Home::new();
    home.session("s", "stty -echo; echo ready; exec cat");
    home.until_screen_shows("s", "ready");
    let (terminal, _client) = Terminal::attached(&home, "s", "80x24");
    terminal.wait_text("ready");
    assert_eq!(home.run_as("agent:bot", &["take", "s"]).status, 0);
    let holder = || home.json(&["info", "s"])["turn"]["holder"]["actor"]["handle"].clone();
    assert_eq!(holder(), "agent:bot");
    terminal.types(chord("s"));
    // The turn is there while the prompt still asks.
    terminal.wait_text("you have the turn · Ctrl-F freezes · why?");
    assert_eq!(holder(), holdfast_harness::TESTER);
    terminal.types("it loops\r");
    until("the reason is on record", || home.ok(&["journal", "s"]).contains("it loops"));
    assert_eq!(home.ok(&["journal", "s"]).matches("seized").count(), 2, "{}", home.ok(&["journal", "s"]));
}
