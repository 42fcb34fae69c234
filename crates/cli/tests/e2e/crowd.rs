//! Many terminals on one session: one size, and everybody sees everything.

use holdfast_harness::{Client, DETACH, Home, Terminal, until};

/// Tells its size whenever it changes, and what is typed to it.
const ECHO: &str = r"
import os, signal, sys
def told(*_):
    size = os.get_terminal_size(0)
    os.write(1, b'%d %d\n' % (size.lines, size.columns))
signal.signal(signal.SIGWINCH, told)
os.system('stty -echo')
os.write(1, b'started\n')
for line in sys.stdin:
    os.write(1, b'got ' + line.encode())
";

fn home_with_session() -> Home {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "s", "--size", "100x30", "--", "python3", "-c", ECHO]);
    home.until_screen_shows("s", "started");
    home
}

#[track_caller]
fn until_size(home: &Home, size: &str) {
    until(&format!("the size {size}, it is {}", home.size("s")), || (home.size("s") == size).then_some(()));
}

fn watch(home: &Home, size: &str) -> (Terminal, Client) {
    let terminal = Terminal::new(size);
    let client = terminal.run(home, &["attach", "--read-only", "s"]);
    (terminal, client)
}

#[test]
fn the_size_follows_whoever_typed_last_and_the_others_see_it_cropped() {
    let home = home_with_session();
    let (wide, _wide_client) = Terminal::attached(&home, "s", "120x35");
    until_size(&home, "120x35");
    let (narrow, _narrow_client) = Terminal::attached(&home, "s", "40x12");
    narrow.wait_text("started");
    wide.types("one\r");
    wide.wait_text("got one");
    narrow.wait_text("got one");
    assert_eq!(home.size("s"), "120x35", "a narrow terminal that only looks changes nothing");
    narrow.types("two\r");
    until_size(&home, "40x12");
    home.until_screen_shows("s", "12 40");
    narrow.wait_text("12 40");
    wide.wait_text("12 40");
    wide.types("three\r");
    until_size(&home, "120x35");
    for text in ["got three", "35 120"] {
        wide.wait_text(text);
        narrow.wait_text(text);
    }
    let history = home.ok(&["screen", "s", "--history", "100"]);
    for text in ["got one", "got two", "got three"] {
        assert_eq!(history.matches(text).count(), 1, "{history}");
    }
}

#[test]
fn a_cropped_terminal_shows_the_part_around_the_cursor_exactly() {
    let home = Home::new();
    let script = "stty -echo; for n in $(seq 1 30); do printf '\\033[%d;1H\\033[3%dmrow %02d %s' $n $((n % 8)) $n abcdefghijklmnopqrstuvwxyz0123456789; done; printf '\\033[30;1H'; exec cat";
    home.ok(&["new", "-d", "-n", "s", "--size", "100x30", "--", "bash", "-c", script]);
    home.until_screen_shows("s", "row 30");
    let (_full, _client) = Terminal::attached(&home, "s", "100x30");
    let (small, _other) = Terminal::attached(&home, "s", "20x10");
    let rows: Vec<String> = (21..=30).map(|n| format!("row {n} abcdefghijklm")).collect();
    small.wait_for("the lower left corner", |seen| seen.screen.rows_text() == rows);
    let (large, _third) = Terminal::attached(&home, "s", "110x40");
    large.wait_text("row 30 abcdefghijklmnopqrstuvwxyz0123456789");
    large.wait_for("the whole screen and nothing below", |seen| {
        let rows = seen.screen.rows_text();
        rows[0].starts_with("row 01") && rows[29].starts_with("row 30") && rows[30..].iter().all(String::is_empty)
    });
    assert_eq!(home.size("s"), "100x30");
}

#[test]
fn a_watching_client_neither_types_nor_resizes_but_sees_everything() {
    let home = home_with_session();
    let (watcher, mut watching) = watch(&home, "50x15");
    until("the watcher", || (home.clients("s") == 1).then_some(()));
    watcher.wait_text("started");
    assert_eq!(home.size("s"), "100x30", "even alone it does not size the session");
    watcher.types("should not arrive\r");
    watcher.resize("60x18", &watching);
    let (writer, _client) = Terminal::attached(&home, "s", "80x24");
    until_size(&home, "80x24");
    writer.types("does arrive\r");
    writer.wait_text("got does arrive");
    watcher.wait_text("got does arrive");
    assert!(!home.ok(&["screen", "s", "--history", "100"]).contains("should not"));
    assert_eq!(home.size("s"), "80x24");
    watcher.types(DETACH);
    assert_eq!(watching.wait(), 0, "detaching is no typing");
}

#[test]
fn a_window_that_changes_takes_the_session_with_it_and_everybody_else_stays() {
    let home = home_with_session();
    let (one, client) = Terminal::attached(&home, "s", "80x24");
    until_size(&home, "80x24");
    one.resize("90x20", &client);
    until_size(&home, "90x20");
    one.wait_text("20 90");
    let (two, other) = Terminal::attached(&home, "s", "70x22");
    two.resize("71x23", &other);
    one.types("still here\r");
    one.wait_text("got still here");
    two.wait_text("got still here");
    assert_eq!(home.size("s"), "90x20", "a window that did not type does not count");
    one.types(DETACH);
    drop(client);
    until("one client", || (home.clients("s") == 1).then_some(()));
    drop((two, other));
    until("nobody", || (home.clients("s") == 0).then_some(()));
    assert_eq!(home.size("s"), "90x20", "with nobody attached the size stays");
}

#[test]
fn a_window_that_changes_is_painted_anew_however_the_terminal_arranges_its_lines() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "s", "--size", "80x24", "--", "sh", "-c", "stty -echo; seq 40; echo ready; exec cat"]);
    let (writer, client) = Terminal::attached(&home, "s", "80x24");
    let (watcher, watching) = watch(&home, "30x12");
    watcher.wait_text("ready");
    for size in ["60x10", "90x30", "80x24"] {
        writer.resize_oddly(size, &client);
        until_size(&home, size);
        writer.settle(&home, "s");
    }
    watcher.resize_oddly("30x10", &watching);
    watcher.wait_text("40");
    watcher.wait_for("nothing of its own", |seen| !seen.shows("nothing is where it was"));
    // Nobody is there to ask: it is painted as soon as somebody is.
    let host = home.kill_host();
    writer.resize_oddly("70x20", &client);
    until_size(&home, "70x20");
    writer.settle(&home, "s");
    assert_ne!(home.host_pid(), host);
}

#[test]
fn eight_terminals_all_show_the_same_in_the_end() {
    let home = home_with_session();
    let sizes = ["80x24", "80x24", "120x40", "33x9", "80x24", "20x5", "200x60", "81x24"];
    let all: Vec<_> = sizes.iter().map(|size| Terminal::attached(&home, "s", size)).collect();
    for (n, (terminal, _)) in all.iter().enumerate() {
        terminal.types(format!("from {n}\r"));
        home.until_screen_shows("s", &format!("got from {n}"));
    }
    // The first is the sizer in the end.
    all[0].0.types("last\r");
    until_size(&home, "80x24");
    let look = all[0].0.settle(&home, "s");
    for terminal in [&all[1].0, &all[4].0] {
        terminal.wait_for("the same rows", |seen| seen.look().rows == look.rows && seen.screen.cursor() == look.cursor);
    }
    for terminal in [&all[2].0, &all[6].0, &all[7].0] {
        terminal.wait_for("the same rows at the top left", |seen| seen.look().rows[..24] == look.rows[..]);
    }
    all[3].0.wait_text("got last");
}
