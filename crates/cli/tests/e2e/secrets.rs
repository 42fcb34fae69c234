//! A secret that is typed for a session: whoever looks on sees that something was answered, and not what.

use holdfast_harness::{DETACH, Home, Terminal};

const SECRET: &str = "correct-horse-battery";

#[test]
fn a_secret_is_asked_for_without_echo_and_no_observer_sees_it() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "s", "--", "bash", "-c", "read -sp 'Password: ' x; echo; echo got ${#x}; exec cat"]);
    let observer = Terminal::new("80x24");
    let mut client = observer.run(&home, &["attach", "s", "--read-only"]);
    observer.wait_text("Password:");
    home.ok(&["wait", "s", "--for", "waiting", "--timeout", "20"]);
    let asked = Terminal::new("80x24");
    let before = format!("{:?}", asked.termios());
    let mut sender = asked.run(&home, &["send", "s", "--secret"]);
    asked.wait_text("secret for s:");
    asked.types(format!("{SECRET}\r"));
    assert_eq!(sender.wait(), 0);
    assert_eq!(format!("{:?}", asked.termios()), before);
    observer.wait_text(&format!("got {}", SECRET.len()));
    for terminal in [&observer, &asked] {
        let state = String::from_utf8_lossy(&terminal.look().state).into_owned();
        assert!(!state.contains(SECRET), "{state:?}");
        terminal.peek(|seen| assert!(!seen.lines().concat().contains(SECRET), "{:?}", seen.lines()));
    }
    observer.types(DETACH);
    assert_eq!(client.wait(), 0);
}
