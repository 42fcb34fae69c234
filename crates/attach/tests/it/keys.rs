//! Where keys go, and when they go nowhere.

use super::player::{FENCE, Player, Start, turn};
use holdfast_abi::protocol::{FromKeeper, refused};
use holdfast_attach::{Answer, Input};
use holdfast_wire::Code;

const WRITER: Start = Start { writes: true, read_only: false, path: false, answers: false, far: false };
const GUEST: Start = Start { writes: false, read_only: false, path: false, answers: false, far: false };
const NOTHING: [&str; 0] = [];

#[test]
fn the_writers_keys_go_to_the_keeper_one_message_at_a_time() {
    let mut ann = Player::new(WRITER);
    assert_eq!(ann.types("a"), ["keeper: types 0.1 a under 5"]);
    assert_eq!(ann.types("b"), NOTHING);
    assert_eq!(ann.types("c"), NOTHING);
    assert_eq!(ann.wrote((0, 1)), ["keeper: types 0.2 bc under 5"]);
    assert_eq!(ann.wrote((0, 2)), NOTHING);
}

#[test]
fn keys_refused_under_an_old_fence_are_the_hosts_to_judge_and_never_go_under_a_new_one() {
    let mut ann = Player::new(WRITER);
    ann.types("rm");
    ann.types(" -r");
    assert_eq!(ann.refuses(refused::STALE, 6, (0, 1)), ["host: types 0.1 rm as 1"], "under no fence of ours");
    let refused = ann.faulted(Code::TurnHeld);
    assert!(refused[0].starts_with("terminal: "), "the person is told: {refused:?}");
    assert_eq!(ann.unsent(), NOTHING, "what waited behind it goes with it");
    assert_eq!(ann.told_writes(true, 7), NOTHING, "the turn is ours again: nothing old appears");
    let later = ann.types("ls");
    assert!(later.contains(&"keeper: types 1.1 ls under 7".into()), "in another stream: {later:?}");
}

#[test]
fn keys_that_were_never_sent_when_the_turn_was_lost_go_to_the_host_only() {
    let mut ann = Player::new(WRITER);
    ann.types("a");
    ann.types("b");
    assert_eq!(ann.told_writes(false, 6), NOTHING);
    assert_eq!(ann.wrote((0, 1)), ["host: types 0.2 b as 1"]);
}

#[test]
fn a_holder_that_was_given_a_newer_fence_types_the_same_message_again() {
    let mut ann = Player::new(WRITER);
    ann.types("a");
    ann.told_writes(true, 7);
    assert_eq!(ann.refuses(refused::STALE, 7, (0, 1)), NOTHING);
    ann.now_ms = 10;
    assert_eq!(ann.play(Input::Settle), ["keeper: types 0.1 a under 7"], "the host says that the turn is ours still");
}

#[test]
fn an_older_word_of_the_host_changes_nothing() {
    let mut ann = Player::new(WRITER);
    assert_eq!(ann.told_writes(false, 4), NOTHING);
    assert_eq!(ann.types("a"), ["keeper: types 0.1 a under 5"]);
}

#[test]
fn an_event_for_the_number_it_had_before_is_not_for_it() {
    let mut ann = Player::new(WRITER);
    let event = holdfast_attach::Event::Writes { writes: false, fence: 9 };
    ann.play(Input::Event { client: 2, event });
    assert_eq!(ann.types("a"), ["keeper: types 0.1 a under 5"]);
}

#[test]
fn keys_typed_while_the_host_is_away_wait_until_it_knows_the_client_again() {
    let mut bob = Player::new(GUEST);
    assert_eq!(bob.play(Input::HostGone), ["find a host"]);
    assert_eq!(bob.types("a"), NOTHING);
    assert_eq!(bob.types("b"), NOTHING);
    assert_eq!(bob.play(Input::HostBack), ["host: resume 1, answers false"]);
    assert_eq!(bob.types("c"), NOTHING, "as whom is not known yet");
    let resumed = Answer::Resumed { client: 9, writes: false, fence: 6, turn: Box::new(turn()) };
    assert_eq!(bob.answered(resumed), ["host: types 0.1 abc as 9"]);
}

#[test]
fn keys_typed_while_the_host_is_away_go_to_the_keeper_where_the_new_host_says_that_the_client_writes() {
    let mut bob = Player::new(GUEST);
    bob.play(Input::HostGone);
    bob.types("a");
    bob.play(Input::HostBack);
    let resumed = Answer::Resumed { client: 1, writes: true, fence: 6, turn: Box::new(turn()) };
    assert_eq!(bob.answered(resumed), ["keeper: types 0.1 a under 6"]);
}

#[test]
fn a_message_lost_with_its_host_goes_again_under_its_number_with_its_bytes() {
    let mut bob = Player::new(GUEST);
    assert_eq!(bob.types("a"), ["host: types 0.1 a as 1"]);
    bob.types("b");
    bob.play(Input::HostGone);
    bob.play(Input::HostBack);
    let resumed = Answer::Resumed { client: 1, writes: false, fence: 5, turn: Box::new(turn()) };
    assert_eq!(bob.answered(resumed), ["host: types 0.1 a as 1"], "it may have been typed");
    let sent = bob.answered(Answer::Sent(6));
    assert_eq!(sent, ["keeper: types 0.2 b under 6"], "typing made it the writer");
}

#[test]
fn an_answer_of_the_host_before_is_not_taken_for_the_new_ones() {
    let mut bob = Player::new(GUEST);
    bob.types("a");
    let old = bob.tag;
    bob.play(Input::HostGone);
    assert_eq!(bob.play(Input::Answered { tag: old, answer: Ok(Answer::Sent(6)) }), NOTHING);
    assert_eq!(bob.unsent(), ["a"]);
}

#[test]
fn a_request_that_could_not_be_sent_is_sent_to_the_next_host() {
    let mut bob = Player::new(GUEST);
    bob.types("a");
    let tag = bob.tag;
    assert_eq!(bob.play(Input::NotSent(tag)), ["find a host"]);
    bob.play(Input::HostBack);
    let resumed = Answer::Resumed { client: 1, writes: false, fence: 5, turn: Box::new(turn()) };
    assert_eq!(bob.answered(resumed), ["host: types 0.1 a as 1"]);
}

#[test]
fn a_busy_host_gets_the_same_message_a_little_later() {
    let mut bob = Player::new(GUEST);
    bob.types("a");
    assert_eq!(bob.faulted(Code::Busy), NOTHING);
    assert_eq!(bob.attached.due_ms(), Some(10));
    bob.now_ms = 9;
    assert_eq!(bob.play(Input::Settle), NOTHING);
    bob.now_ms = 10;
    assert_eq!(bob.play(Input::Settle), ["host: types 0.1 a as 1"]);
}

#[test]
fn a_full_keeper_gets_the_same_message_a_little_later() {
    let mut ann = Player::new(WRITER);
    ann.types("a");
    assert_eq!(ann.refuses(refused::FULL, 5, (0, 1)), NOTHING);
    ann.now_ms = 10;
    assert_eq!(ann.play(Input::Settle), ["keeper: types 0.1 a under 5"]);
}

#[test]
fn a_refusal_in_the_middle_takes_what_waits_along_and_not_what_is_typed_next() {
    let mut bob = Player::new(GUEST);
    bob.types("a");
    bob.answered(Answer::Sent(5));
    bob.told_writes(false, 6);
    assert_eq!(bob.types("b"), ["host: types 0.2 b as 1"]);
    bob.types("c");
    bob.faulted(Code::Denied);
    assert_eq!(bob.unsent(), NOTHING);
    assert_eq!(bob.types("d"), ["host: types 1.1 d as 1"]);
}

#[test]
fn who_only_watches_types_nothing_whatever_it_is_told() {
    let mut eve = Player::new(Start { read_only: true, ..WRITER });
    let is_told = |did: Vec<String>| did.len() == 1 && did[0].contains("read-only: nothing is typed");
    assert!(is_told(eve.types("a")));
    assert_eq!(eve.told_writes(true, 9), NOTHING);
    assert!(is_told(eve.types("a")));
    assert_eq!(eve.types("\x1b[I\x1b[<0;1;1M"), NOTHING, "the terminal's own reports are no keys");
    assert_eq!(eve.unsent(), NOTHING);
}

#[test]
fn the_keeper_reads_the_writers_terminal_and_gives_it_back_with_the_turn() {
    let mut ann = Player::new(Start { path: true, ..WRITER });
    assert!(ann.began().contains(&"keeper: tty 1".into()));
    assert!(!ann.attached.reads_keys());
    assert_eq!(ann.told_writes(false, 6), ["keeper: tty back"]);
    assert_eq!(ann.keeper(FromKeeper::Keys { bytes: b"x" }), ["host: types 0.1 x as 1"], "typed meanwhile");
    assert!(ann.attached.reads_keys());
}

#[test]
fn a_keeper_that_gives_the_keys_back_unasked_says_that_somebody_else_writes() {
    let mut ann = Player::new(Start { path: true, ..WRITER });
    assert_eq!(
        ann.keeper(FromKeeper::Keys { bytes: b"x" }),
        ["keeper: tty back", "host: types 0.1 x as 1"],
        "what it gave back is not typed under the fence that was ours"
    );
    assert!(!ann.attached.writes());
}

#[test]
fn a_chord_that_the_keeper_saw_leaves_the_turn_where_it_is() {
    let mut ann = Player::new(Start { path: true, ..WRITER });
    assert_eq!(ann.keeper(FromKeeper::Keys { bytes: b"\x1c" }), NOTHING);
    assert!(ann.attached.writes() && ann.attached.reads_keys());
    assert_eq!(ann.types("d")[0], "end: Detached");
}

#[test]
fn a_terminal_that_neither_writes_nor_answers_sends_no_answers_of_its_own() {
    let mut bob = Player::new(GUEST);
    assert_eq!(bob.types("\x1b[?62;4c"), NOTHING);
    assert_eq!(bob.types("a\x1b[Ib"), ["host: types 0.1 ab as 1"]);
    let mut ann = Player::new(WRITER);
    assert_eq!(ann.types("\x1b[I"), ["keeper: types 0.1 \x1b[I under 5"]);
}

#[test]
fn an_act_that_found_no_host_is_said_so() {
    let mut bob = Player::new(GUEST);
    assert_eq!(bob.types("\x1ct"), ["host: Take"]);
    let tag = bob.tag;
    let told = bob.play(Input::NotSent(tag));
    assert!(told.iter().any(|line| line.contains("the host is being restarted")), "{told:?}");
    let told = bob.types("\x1cr");
    assert!(told.iter().any(|line| line.contains("the host is being restarted")), "{told:?}");
}

#[test]
fn keys_typed_while_the_way_was_broken_go_once_or_are_dropped() {
    // How long it was away, whether the client writes then, and under which fence: one more is its own new number's.
    for (away_ms, writes, fence, kept) in [
        (4_000, false, FENCE, true),
        (4_000, true, FENCE + 1, true),
        (4_000, false, FENCE + 1, false),
        (4_000, true, FENCE + 2, false),
        (6_000, true, FENCE, false),
    ] {
        let mut ann = Player::new(Start { far: true, ..WRITER });
        ann.began();
        assert_eq!(ann.types("a"), [format!("keeper: types 0.1 a under {FENCE}")]);
        ann.play(Input::HostGone);
        assert!(ann.types("b").iter().all(|said| !said.starts_with("keeper: types")), "there is no way");
        ann.now_ms += away_ms;
        ann.play(Input::HostBack);
        let said = ann.answered(Answer::Resumed { client: 2, writes, fence, turn: Box::new(turn()) });
        // Under the same number: it may have been written.
        let typed: Vec<_> = said.iter().filter(|said| said.contains("types 0.1 a")).collect();
        assert_eq!(typed.len(), usize::from(kept), "away {away_ms} fence {fence} writes {writes}: {said:?}");
    }
}
