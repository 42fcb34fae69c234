//! After a client has left, the person's terminal is as it was.

use crate::home::{Home, signal, until};
use crate::terminal::{DETACH, Look, Terminal};
use rustix::process::Signal;

/// Everything a program might leave behind.
const MESS: &str = concat!(
    "\\033[?1049h\\033[3;9r\\033[?6h\\033[?25l\\033[?1h\\033=\\033[?1003h\\033[?1006h\\033[?1004h\\033[?2004h\\033[>5u",
    "\\033[4h\\033[?7l\\033[?5h\\033(0\\033[1;31;44m\\033[3 q\\033[>4;2m\\033]8;;http://x.y\\033\\\\mess\\033[?2026h",
);

/// Modes, colours and the like, without what is on the screen and where the cursor is.
fn manners(terminal: &Terminal, untouched: &Terminal) -> (Look, Look) {
    let mut look = terminal.look();
    // The same rows on a virgin terminal.
    let blank = |look: &mut Look| {
        let text: String = String::from_utf8_lossy(&look.state).into_owned();
        look.state = text.rsplit("\r\n").next().unwrap_or_default().as_bytes().to_vec();
        look.rows.clear();
    };
    let mut clean = untouched.look();
    blank(&mut look);
    blank(&mut clean);
    look.cursor = (0, 0);
    clean.cursor = (0, 0);
    look.title.clear();
    (look, clean)
}

/// The state without rows, cursor position and title.
#[track_caller]
fn assert_clean(terminal: &Terminal) {
    let untouched = Terminal::new("80x24");
    let (mut look, mut clean) = manners(terminal, &untouched);
    // The cursor's place is the only thing left of the state of a terminal that nobody touched.
    let strip = |state: &[u8]| {
        let text = String::from_utf8_lossy(state).into_owned();
        let rest = text.rfind('H').map_or(text.as_str(), |at| &text[at + 1..]);
        rest.as_bytes().to_vec()
    };
    look.state = strip(&look.state);
    clean.state = strip(&clean.state);
    assert_eq!(look, clean, "shown: {:?}", terminal.look());
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
        until("the last bytes", || (terminal.look() == terminal.look()).then_some(()));
        assert_clean(&terminal);
    }
}

#[test]
fn when_the_session_ends_under_the_client_the_terminal_is_clean_too() {
    let home = Home::new();
    home.session("s", &format!("stty raw; printf '{MESS}'; head -c 1 >/dev/null; exit 3"));
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
