//! After a client has left, the person's terminal is as it was.

use holdfast_harness::{DETACH, Home, Terminal, signal};
use holdfast_screen::Screen;
use rustix::process::Signal;

/// Much of what a program might leave behind.
const MESS: &str = concat!(
    "\\033[?1049h\\033[3;9r\\033[?6h\\033[?25l\\033[?1h\\033=\\033[?1003h\\033[?1006h\\033[?1004h\\033[?2004h\\033[>5u",
    "\\033[?12h\\033]11;rgb:01/02/03\\033\\\\\\033]4;1;rgb:11/22/33\\033\\\\",
    "\\033[4h\\033[?7l\\033[?5h\\033(0\\033[1;31;44m\\033[3 q\\033[>4;2m\\033]8;;http://x.y\\033\\\\mess\\033[?2026h",
);

/// Nothing of a program is left: it is in the state of a virgin terminal on which these rows were written.
#[track_caller]
fn assert_clean(terminal: &Terminal) {
    let (look, keyframe) = terminal.peek(|seen| (seen.look(), seen.screen.keyframe()));
    let mut shown = Screen::restore(&keyframe).unwrap();
    let mut virgin = Screen::new("80x24".parse().unwrap(), 0);
    for (row, text) in look.rows.iter().enumerate() {
        virgin.feed(format!("\x1b[{};1H{text}", row + 1).as_bytes());
    }
    virgin.feed(format!("\x1b[{};{}H\x1b]2;{}\x1b\\", look.cursor.1 + 1, look.cursor.0 + 1, look.title).as_bytes());
    // Where the saved cursor is has no meaning to a shell.
    shown.feed(b"\x1b7");
    virgin.feed(b"\x1b7");
    let text = |screen: &Screen| String::from_utf8_lossy(&screen.repaint(None)).into_owned();
    assert_eq!(text(&shown), text(&virgin));
}

#[test]
fn after_detaching_the_terminal_is_clean_and_its_settings_are_exactly_as_before() {
    let home = Home::new();
    home.session("s", &format!("stty raw; printf '{MESS}'; exec cat >/dev/null"));
    home.until_screen_shows("s", "└␊⎽⎽"); // `mess` in line-drawing characters
    let terminal = Terminal::new("80x24");
    let before = format!("{:?}", terminal.termios());
    for round in 0..3 {
        let mut client = terminal.run(&home, &["attach", "s"]);
        terminal.wait_for("the mess", |seen| seen.screen.alternate());
        assert_ne!(format!("{:?}", terminal.termios()), before, "raw while attached");
        match round {
            0 => terminal.types(DETACH),
            1 => signal(client.pid, Signal::TERM),
            _ => drop(home.ok(&["detach", "s", "--all"])),
        }
        assert_eq!(client.wait(), 0);
        assert_eq!(format!("{:?}", terminal.termios()), before, "round {round}");
        if round != 1 {
            terminal.wait_text("detached");
        }
        terminal.wait_for("the main screen", |seen| !seen.screen.alternate());
        assert_clean(&terminal);
    }
}

#[test]
fn when_the_session_ends_under_the_client_the_terminal_is_clean_too() {
    let home = Home::new();
    home.session("s", &format!("stty raw; printf '{MESS}\\033[?6l'; head -c 1 >/dev/null; exit 3"));
    let terminal = Terminal::new("80x24");
    let before = format!("{:?}", terminal.termios());
    let mut client = terminal.run(&home, &["attach", "s"]);
    terminal.wait_for("the mess", |seen| seen.screen.alternate());
    terminal.types("x");
    assert_eq!(client.wait(), 3);
    assert_eq!(format!("{:?}", terminal.termios()), before);
    terminal.wait_text("exited 3");
    assert_clean(&terminal);
}

#[test]
fn a_refused_attach_leaves_the_terminal_alone() {
    let home = Home::new();
    let terminal = Terminal::new("80x24");
    let before = format!("{:?}", terminal.termios());
    let mut client = terminal.run(&home, &["attach", "nobody"]);
    assert_eq!(client.wait(), 1);
    terminal.wait_text("no session");
    assert_eq!(format!("{:?}", terminal.termios()), before);
    assert_clean(&terminal);
}
