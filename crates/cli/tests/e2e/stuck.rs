//! A client that does not read stops nobody else.

use holdfast_harness::{Home, Terminal, signal, until};
use rustix::process::Signal;

/// 20 MB of numbered lines, then `END`.
const FLOOD: &str = "stty -echo; read go; seq 10000000 12500000; echo END; read end";

fn home_with_flood() -> Home {
    let home = Home::new();
    home.session("s", FLOOD);
    home
}

#[test]
fn a_stopped_client_stops_neither_the_child_nor_another_client_and_is_repainted() {
    let home = home_with_flood();
    let (stuck, client) = Terminal::attached(&home, "s", "80x24");
    let (other, _client) = Terminal::attached(&home, "s", "80x24");
    signal(client.pid, Signal::STOP);
    other.types("go\r");
    other.wait_text("END");
    assert!(home.number("s", "head") > 20_000_000);
    let look = other.settle(&home, "s");
    assert!(!stuck.peek(|seen| seen.shows("END")));
    signal(client.pid, Signal::CONT);
    stuck.wait_look(&home, "s", &look);
}

#[test]
fn a_terminal_that_is_never_read_stops_neither_the_child_nor_another_client_and_is_repainted() {
    let home = home_with_flood();
    let (stuck, _stuck_client) = Terminal::attached(&home, "s", "80x24");
    let (other, _client) = Terminal::attached(&home, "s", "80x24");
    stuck.pause(true);
    other.types("go\r");
    other.wait_text("END");
    let look = other.settle(&home, "s");
    stuck.pause(false);
    stuck.wait_look(&home, "s", &look);
}

#[test]
fn a_terminal_of_another_size_that_is_never_read_is_right_in_the_end() {
    let home = home_with_flood();
    let (other, _client) = Terminal::attached(&home, "s", "80x24");
    let (stuck, _stuck_client) = Terminal::attached(&home, "s", "70x20");
    stuck.pause(true);
    other.types("go\r");
    other.wait_text("END");
    stuck.pause(false);
    let rows: Vec<String> = (12499983..=12500000).map(|n| n.to_string()).chain(["END".into(), String::new()]).collect();
    stuck.wait_for("the last rows", |seen| seen.screen.rows_text() == rows);
}

#[test]
fn the_only_client_stuck_does_not_stop_the_child() {
    let home = home_with_flood();
    let (stuck, _client) = Terminal::attached(&home, "s", "80x24");
    stuck.pause(true);
    stuck.types("go\r");
    home.until_screen_shows("s", "END");
    stuck.pause(false);
    stuck.wait_text("END");
    let look = stuck.settle(&home, "s");
    assert_eq!(look.cursor, (0, 23));
}

#[test]
fn a_client_of_the_socket_that_never_reads_its_answers_stops_nobody() {
    use holdfast_wire::operations::op;
    use holdfast_wire::params::ScreenParams;
    let home = home_with_flood();
    let mut deaf = home.connect().unwrap();
    let params = ScreenParams { session: "s".into(), ansi: true, history: 1000 };
    // More answers than a socket holds; the asking itself must not block us for ever either.
    let asking = std::thread::spawn(move || {
        for _ in 0..2000 {
            if deaf.ask::<op::Screen>(&params, &[]).is_err() {
                break;
            }
        }
    });
    home.ok(&["send", "s", "--enter", "go"]);
    home.until_screen_shows("s", "END");
    // Ends once the host gives the connection up, or takes all questions; it is stopped with the host otherwise.
    home.kill_host();
    until("the asker's end", || asking.is_finished().then_some(()));
}
