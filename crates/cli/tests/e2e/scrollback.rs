//! History goes into the terminal's own scrollback as real lines.

use holdfast_harness::{DETACH, Home, Seen, Terminal};

const LINES: usize = 3000;

/// Waits until it has these numbered lines.
#[track_caller]
fn wait_numbers(terminal: &Terminal, expected: &[usize]) {
    let right = holdfast_harness::poll(|| (terminal.peek(numbers) == expected).then_some(()));
    if right.is_none() {
        let shown = terminal.peek(numbers);
        let at = shown.iter().zip(expected).take_while(|(a, b)| a == b).count();
        let part = &shown[at.saturating_sub(2)..shown.len().min(at + 8)];
        panic!("{} lines, not {}; from line {at} on they are {part:?}", shown.len(), expected.len());
    }
}

/// The numbered lines a terminal has, in its scrollback and on its screen.
fn numbers(seen: &Seen) -> Vec<usize> {
    seen.lines().iter().filter_map(|line| line.strip_prefix("line ")?.parse().ok()).collect()
}

fn home_with_lines() -> Home {
    let home = Home::new();
    let script = format!("stty -echo; for n in $(seq 1 {LINES}); do echo \"line $n\"; done; echo done; exec cat");
    home.session("s", &script);
    home.until_screen_shows("s", "done");
    home
}

#[test]
fn the_scrollback_has_every_line_once_and_in_order() {
    let home = home_with_lines();
    let (terminal, mut client) = Terminal::attached(&home, "s", "80x24");
    let expected: Vec<usize> = (1..=LINES).collect();
    wait_numbers(&terminal, &expected);
    let look = terminal.settle(&home, "s");
    assert_eq!(terminal.peek(numbers), expected, "and nothing was added later");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    let (again, _client) = Terminal::attached(&home, "s", "80x24");
    wait_numbers(&again, &expected);
    again.wait_look(&home, "s", &look);
    again.types("more\r");
    again.wait_text("more");
    assert_eq!(again.peek(numbers), expected);
}

#[test]
fn a_terminal_of_another_size_has_every_line_once_too() {
    let home = home_with_lines();
    let (_other, _first) = Terminal::attached(&home, "s", "80x24");
    let (terminal, _client) = Terminal::attached(&home, "s", "60x20");
    terminal.wait_text("done");
    // The session's screen begins with line 2979; of it the lower part is shown.
    let expected: Vec<usize> = (1..=LINES - 22).chain(LINES - 17..=LINES).collect();
    wait_numbers(&terminal, &expected);
}

#[test]
fn history_survives_the_host_and_long_and_coloured_lines_come_whole() {
    let home = Home::new();
    let script = "stty -echo; for n in $(seq 1 500); do printf 'line %d\\n\\033[4%dmwide %d %0150d\\033[0m\\n' $n $((n % 8)) $n $n; done; echo done; exec cat";
    home.ok(&["new", "-d", "-n", "s", "--", "bash", "-c", script]);
    home.until_screen_shows("s", "done");
    home.kill_host();
    let (terminal, _client) = Terminal::attached(&home, "s", "80x24");
    let expected: Vec<usize> = (1..=500).collect();
    wait_numbers(&terminal, &expected);
    let lines = terminal.peek(Seen::lines);
    for n in [1, 250, 400] {
        let wide = format!("wide {n} {n:0150}");
        let near: Vec<_> = lines.iter().filter(|line| line.contains(&format!("wide {n} "))).collect();
        // Behind the text stands what is left of the background.
        assert_eq!(near.iter().map(|line| line.trim_end()).collect::<Vec<_>>(), [wide]);
    }
}

#[test]
fn what_was_on_the_terminal_before_stays_in_its_scrollback() {
    let home = home_with_lines();
    let terminal = Terminal::new("80x24");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "seq -f 'before %g' 1 20"]);
    assert_eq!(terminal.start(command).wait(), 0);
    terminal.wait_text("before 20");
    let _client = terminal.run(&home, &["attach", "s"]);
    wait_numbers(&terminal, &(1..=LINES).collect::<Vec<_>>());
    let before = terminal.peek(|seen| seen.lines().iter().filter(|line| line.starts_with("before ")).count());
    assert_eq!(before, 20);
}

#[test]
fn lines_that_scroll_by_reach_terminals_of_every_size() {
    let home = Home::new();
    home.session(
        "s",
        "stty -echo; echo ready; read go; for n in $(seq 1 500); do echo \"line $n\"; done; echo done; exec cat",
    );
    let (first, _one) = Terminal::attached(&home, "s", "80x24");
    first.wait_text("ready");
    let (narrow, _two) = Terminal::attached(&home, "s", "60x20");
    let (large, _three) = Terminal::attached(&home, "s", "120x50");
    narrow.wait_text("ready");
    large.wait_text("ready");
    first.types("go\r");
    wait_numbers(&first, &(1..=500).collect::<Vec<_>>());
    large.wait_text("done");
    wait_numbers(&large, &(1..=500).collect::<Vec<_>>());
    // What the session's screen shows above the narrow one's first row is in neither.
    narrow.wait_text("done");
    wait_numbers(&narrow, &(1..=478).chain(483..=500).collect::<Vec<_>>());
}

#[test]
fn what_was_cleared_is_nowhere_any_more() {
    for clear in ["\\033[H\\033[2J\\033[3J", "\\033c"] {
        let home = Home::new();
        let script = format!(
            "stty -echo; for n in $(seq 1 {LINES}); do echo \"hunter2 $n\"; done; echo full; read go; printf '{clear}line 1\\n'; exec cat"
        );
        home.session("s", &script);
        home.until_screen_shows("s", "full");
        let files = || {
            let dir = home.join("sessions");
            let all = std::fs::read_dir(dir).unwrap().flatten().flat_map(|dir| std::fs::read_dir(dir.path()).unwrap());
            all.flatten().filter(|file| file.file_name().to_string_lossy().starts_with("history.")).count()
        };
        // The files are there once the host has written what it knows.
        home.ok(&["host", "restart"]);
        home.ok(&["screen", "s", "--history", "3000"]);
        assert_eq!(files(), 1);
        home.ok(&["send", "s", "--enter", "go"]);
        home.until_screen_shows("s", "line 1");
        assert_eq!(home.ok(&["screen", "s", "--history", "3000"]), "line 1\n");
        home.ok(&["host", "restart"]);
        home.ok(&["screen", "s"]);
        assert_eq!(files(), 0, "what was cleared is still on the disk");
        let (terminal, _client) = Terminal::attached(&home, "s", "80x24");
        wait_numbers(&terminal, &[1]);
        assert!(!terminal.peek(Seen::lines).iter().any(|line| line.contains("hunter2")));
    }
}
