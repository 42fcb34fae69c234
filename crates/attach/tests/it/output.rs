//! What reaches the terminal, and who answers queries.

use super::player::{Player, Start, paint, turn};
use holdfast_abi::protocol::FromKeeper;
use holdfast_attach::{Answer, Event, Input};
use holdfast_types::Size;

const GUEST: Start = Start { writes: false, read_only: false, path: false, answers: false, far: false };
const QUERY: &[u8] = b"a\x1b[cb";
const NOTHING: [&str; 0] = [];

#[test]
fn output_is_asked_for_until_there_is_none_and_then_the_keeper_watches() {
    let mut bob = Player::new(GUEST);
    assert_eq!(bob.play(Input::Proceed), ["read 100 at most 32768"]);
    assert_eq!(bob.play(Input::Output(b"hello")), ["terminal: hello"]);
    assert_eq!(bob.play(Input::Proceed), ["read 105 at most 32768"]);
    assert_eq!(bob.play(Input::Output(b"")), ["keeper: sleep 105"]);
    assert_eq!(bob.play(Input::Proceed), NOTHING, "the terminal may be the keeper's");
    bob.keeper(FromKeeper::Wake { position: 110 });
    assert_eq!(bob.play(Input::Proceed), ["read 110 at most 32768"], "the keeper has shown five bytes");
}

#[test]
fn who_was_lapped_shows_nothing_until_it_is_painted_anew() {
    let mut bob = Player::new(GUEST);
    bob.play(Input::Proceed);
    assert_eq!(bob.play(Input::Lapped), ["host: paint 80x24"]);
    assert_eq!(bob.play(Input::Proceed), NOTHING);
    let shown = bob.answered(Answer::Painted(Box::new(paint(900))));
    assert_eq!(shown[1], "keeper: follow 900");
    assert_eq!(bob.play(Input::Proceed), ["read 900 at most 32768"]);
}

#[test]
fn a_paint_lost_with_its_host_is_asked_for_again() {
    let mut bob = Player::new(GUEST);
    bob.play(Input::Proceed);
    bob.play(Input::Lapped);
    bob.play(Input::HostGone);
    assert_eq!(bob.play(Input::Proceed), NOTHING);
    bob.play(Input::HostBack);
    assert_eq!(bob.play(Input::Proceed), ["host: paint 80x24"]);
}

#[test]
fn a_window_that_changed_without_a_host_is_painted_once_there_is_one() {
    let mut bob = Player::new(GUEST);
    bob.play(Input::HostGone);
    assert_eq!(bob.play(Input::Window(Size::clamped(100, 30))), NOTHING);
    bob.play(Input::HostBack);
    bob.answered(Answer::Resumed { client: 1, writes: false, fence: 5, turn: Box::new(turn()) });
    assert_eq!(bob.play(Input::Proceed), ["host: paint 100x30"]);
}

#[test]
fn queries_reach_the_terminal_from_the_offset_on_that_it_was_told_to_answer_from() {
    let mut bob = Player::new(GUEST);
    bob.play(Input::Proceed);
    assert_eq!(bob.play(Input::Output(QUERY)), ["terminal: ab"]);
    let told = bob.play(Input::Event { client: 1, event: Event::Answer { from: 110 } });
    assert_eq!(told, NOTHING, "the output is not there yet");
    assert_eq!(bob.play(Input::Proceed), ["read 105 at most 5"]);
    assert_eq!(bob.play(Input::Output(QUERY)), ["terminal: ab", "host: answers true left 110 from 110"]);
    bob.play(Input::Proceed);
    assert_eq!(bob.play(Input::Output(QUERY)), ["terminal: a\\u{1b}[cb"]);
}

#[test]
fn who_no_longer_writes_no_longer_answers() {
    let mut ann = Player::new(Start { writes: true, answers: true, ..GUEST });
    assert_eq!(ann.told_writes(false, 6), ["host: answers false left 100 from 100"]);
    ann.play(Input::Proceed);
    assert_eq!(ann.play(Input::Output(QUERY)), ["terminal: ab"]);
}

#[test]
fn a_duty_to_answer_is_forgotten_with_the_host_that_gave_it() {
    let mut bob = Player::new(GUEST);
    bob.play(Input::Event { client: 1, event: Event::Answer { from: 110 } });
    bob.play(Input::HostGone);
    assert_eq!(bob.play(Input::Proceed), ["read 100 at most 32768"]);
    bob.play(Input::Output(&[b'x'; 20]));
    assert!(!bob.attached.answers(), "the next host will say it again");
}
