//! Bytes on their way: once, in order, and in nobody else's turn.

use crate::world::{World, actor};
use holdfast_abi::protocol::{FromKeeper, WRITER_HOST, refused};
use holdfast_authority::{Ask, Caller, Input, OperatorId, Refusal};
use holdfast_session::{Send, Sent, Undecided, is_reserved_stream};

fn seize() -> Ask {
    Ask::Seize { freeze: false, reason: "mine".into() }
}

/// The turn is another's, or was: who asks hears who has it now, if somebody has.
fn is_overtaken(sent: &Sent) -> bool {
    matches!(sent, Sent::Refused(Undecided::Refused(Refusal::FenceStale { .. } | Refusal::TurnHeld { .. })))
}

/// Bytes of the agent's wait for room when `ann` does something; the keeper then refuses them.
fn overtaken(ann_does: impl FnOnce(&mut World)) {
    let mut world = World::new();
    let ticket = world.send("agent:bot", 9, 1, "rm");
    assert_eq!(world.typed().len(), 1);
    world.refuses(refused::FULL, 9, 1);
    ann_does(&mut world);
    world.typed();
    world.pass(5);
    let again = world.typed();
    assert_eq!(again.len(), 1, "the same seq is tried again");
    assert_eq!(again[0].fence, 1, "under the fence it was accepted with");
    world.refuses(refused::STALE, 9, 1);
    assert_eq!(world.typed(), [], "and never under another");
    let (last, sent) = world.out.sent.last().unwrap();
    assert!(*last == ticket && is_overtaken(sent), "{sent:?}");
}

#[test]
fn bytes_that_a_seizure_overtook_are_not_typed_in_the_seizers_turn() {
    overtaken(|world| {
        world.ask("human:ann", seize()).unwrap();
    });
}

#[test]
fn nor_once_the_seizer_has_let_go() {
    overtaken(|world| {
        world.ask("human:ann", seize()).unwrap();
        world.ask("human:ann", Ask::Release).unwrap();
    });
}

#[test]
fn nor_once_the_sender_has_the_turn_again() {
    overtaken(|world| {
        world.ask("human:ann", seize()).unwrap();
        world.ask("human:ann", Ask::Give { to: actor("agent:bot") }).unwrap();
    });
}

#[test]
fn bytes_whose_turn_ran_out_on_the_way_are_typed_in_another_turn_of_their_sender() {
    let mut world = World::new();
    let ticket = world.send("agent:bot", 9, 1, "x");
    assert_eq!(world.typed().len(), 1);
    // The keeper stood still for longer than a program keeps its turn.
    world.pass(3_001);
    assert!(world.core.authority().state().turn().hold().is_none());
    world.typed();
    world.refuses(refused::STALE, 9, 1);
    let again = world.typed();
    assert_eq!((again.len(), again[0].fence), (1, world.core.fence().0));
    world.frame(FromKeeper::Written { stream: 9, seq: 1, head: 7 });
    let (last, sent) = world.out.sent.last().unwrap();
    assert!(*last == ticket && matches!(sent, Sent::Written { .. }), "{sent:?}");
}

#[test]
fn bytes_under_a_fence_that_their_sender_named_are_typed_in_no_other_turn() {
    let mut world = World::new();
    world.send("agent:bot", 9, 1, "x");
    world.frame(FromKeeper::Written { stream: 9, seq: 1, head: 7 });
    let (by, fence) = (Caller { actor: actor("agent:bot"), operator: None, token: None }, Some(world.core.fence()));
    let bytes = b"y".to_vec();
    let ticket = world.send_as(Send { by, fence, stream: 9, seq: 2, bytes, secret: false, force: false });
    assert_eq!(world.typed().len(), 2);
    world.pass(3_001);
    world.typed();
    world.refuses(refused::STALE, 9, 2);
    assert_eq!(world.typed(), []);
    let (last, sent) = world.out.sent.last().unwrap();
    assert!(*last == ticket && is_overtaken(sent), "{sent:?}");
}

#[test]
fn bytes_follow_their_sender_to_its_other_terminal() {
    let mut world = World::new();
    let (first, second) = (world.attach("human:ann"), world.attach("human:ann"));
    let send = |client, seq| Send {
        by: Caller { actor: actor("human:ann"), operator: Some(OperatorId(client)), token: None },
        fence: None,
        stream: u64::from(client),
        seq,
        bytes: b"a".to_vec(),
        secret: false,
        force: false,
    };
    world.send_as(send(first, 1));
    world.refuses(refused::FULL, u64::from(first), 1);
    world.send_as(send(second, 1));
    world.typed();
    world.pass(5);
    world.typed();
    world.refuses(refused::STALE, u64::from(first), 1);
    let again = world.typed();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].fence, world.core.fence().0, "nobody else had the turn in between");
}

#[test]
fn those_of_one_stream_reach_the_keeper_in_order_without_waiting_for_answers() {
    let mut world = World::new();
    for seq in 1..=3 {
        world.send("agent:bot", 9, seq, "x");
    }
    let seqs: Vec<u64> = world.typed().iter().map(|typed| typed.seq).collect();
    assert_eq!(seqs, [1, 2, 3]);
    assert!(world.out.sent.is_empty());
    for seq in 1..=3 {
        world.frame(FromKeeper::Written { stream: 9, seq, head: 7 });
    }
    assert_eq!(world.out.sent.len(), 3);
}

#[test]
fn nothing_is_typed_before_the_shell_is_in_its_place_and_then_in_order() {
    let mut world = World::new();
    world.out.misplaced = true;
    world.send("agent:bot", 9, 1, "a");
    world.send("agent:bot", 9, 2, "b");
    assert_eq!(world.typed(), []);
    (world.out.misplaced, world.out.moving) = (false, false);
    let now = world.now();
    world.core.go_on_sending(&mut world.out, now);
    let bytes: Vec<String> = world.typed().into_iter().map(|typed| typed.bytes).collect();
    assert_eq!(bytes, ["a", "b"]);
}

#[test]
fn a_client_is_named_as_the_writer_only_behind_the_move_of_the_shell() {
    let mut world = World::new();
    let client = world.attach("human:ann");
    world.out.misplaced = true;
    let by = Caller { actor: actor("human:ann"), operator: Some(OperatorId(client)), token: None };
    world.decide(Input::Asked { by, ask: Ask::Take, proof: None }).unwrap();
    let named = world.writers();
    assert!(!named.is_empty() && named.iter().all(|(_, writer)| *writer == WRITER_HOST), "{named:?}");
    (world.out.misplaced, world.out.awaited) = (false, false);
    world.core.say_writer(&mut world.out);
    assert_eq!(world.writers(), [(1, 20 + client)]);
}

#[test]
fn what_cannot_be_recorded_is_not_typed_and_a_seizure_happens_all_the_same() {
    let mut world = World::new();
    world.out.full = true;
    world.send("agent:bot", 9, 1, "x");
    assert_eq!(world.typed(), []);
    assert!(matches!(world.out.sent[0].1, Sent::Refused(Undecided::Unrecorded(_))), "{:?}", world.out.sent);
    let before = world.core.fence();
    world.ask("human:ann", seize()).unwrap();
    assert!(world.core.fence() > before);
}

#[test]
fn a_secret_is_typed_only_where_the_terminal_hides_it() {
    let secret = |world: &mut World| {
        let by = Caller { actor: actor("human:ann"), operator: None, token: None };
        let bytes = b"hunter2".to_vec();
        world.send_as(Send { by, fence: None, stream: 9, seq: 1, bytes, secret: true, force: false });
        assert_eq!(world.typed(), [], "not before the terminal was asked");
    };
    let probed = |lflag| FromKeeper::Probed { foreground: 0, iflag: 0, oflag: 0, lflag, unread: 0 };
    let mut shown = World::new();
    secret(&mut shown);
    shown.frame(probed(0o12));
    assert_eq!((shown.typed(), &shown.out.sent[0].1), (vec![], &Sent::EchoOn));
    let mut hidden = World::new();
    secret(&mut hidden);
    hidden.frame(probed(0o2));
    let typed = hidden.typed();
    assert_eq!((typed.len(), typed[0].bytes.as_str()), (1, "hunter2"));
    assert!(is_reserved_stream(typed[0].stream), "the keeper's log tells that it is one");
    let mut silent = World::new();
    secret(&mut silent);
    silent.pass(2_000);
    assert_eq!((silent.typed(), &silent.out.sent[0].1), (vec![], &Sent::EchoUnknown));
}

#[test]
fn a_client_cannot_pass_its_typing_off_as_the_hosts_own() {
    let mut world = World::new();
    let (own, secret) = (0xf0_1dfa << 40 | 3, 0xf0_1d5e << 40 | 3);
    for stream in [own, secret] {
        world.send("agent:bot", stream, 1, "rm");
        assert_eq!(world.typed(), []);
        assert_eq!(world.out.sent.pop().unwrap().1, Sent::ReservedStream);
    }
}

/// What became of keys that ann typed while the agent has the turn, by what the terminal says.
fn typed_into_the_agents_turn(lflag: u32, asks_humans: bool) -> (World, Vec<String>) {
    let mut world = World::new();
    world.ask("agent:bot", Ask::Take).unwrap();
    world.core.asks_humans = asks_humans;
    world.send("human:ann", 9, 1, "hunter2\r");
    assert_eq!(world.typed(), [], "not before the terminal was asked");
    world.frame(FromKeeper::Probed { foreground: 0, iflag: 0, oflag: 0, lflag, unread: 0 });
    let typed = world.typed().into_iter().map(|typed| typed.bytes).collect();
    (world, typed)
}

#[test]
fn a_person_types_the_password_into_an_agents_turn_and_the_agent_has_it_back() {
    let holder = |world: &World| world.core.authority().state().turn().hold().map(|hold| hold.by.handle.to_string());
    let (mut hidden, typed) = typed_into_the_agents_turn(0o2, false);
    assert_eq!((typed, holder(&hidden)), (vec!["hunter2\r".to_owned()], Some("human:ann".into())));
    // A pause in the middle of it: the terminal hides what is typed, so the turn is still the person's.
    let probed = |lflag| FromKeeper::Probed { foreground: 0, iflag: 0, oflag: 0, lflag, unread: 0 };
    for _ in 0..20 {
        hidden.pass(1_000);
        hidden.frame(probed(0o2));
        assert_eq!(holder(&hidden), Some("human:ann".into()));
    }
    hidden.pass(250);
    hidden.frame(probed(0o12));
    assert_eq!(holder(&hidden), Some("agent:bot".into()));

    let (mut silent, _) = typed_into_the_agents_turn(0o2, false);
    silent.pass(29_000);
    assert_eq!(holder(&silent), Some("human:ann".into()), "the keeper does not answer");
    silent.pass(1_000);
    assert_eq!(holder(&silent), Some("agent:bot".into()), "not for ever");

    let (asked, typed) = typed_into_the_agents_turn(0o12, true);
    assert_eq!((typed.len(), holder(&asked)), (1, Some("human:ann".into())), "a question is open");

    let (shown, typed) = typed_into_the_agents_turn(0o12, false);
    assert_eq!((typed, holder(&shown)), (vec![], Some("agent:bot".into())), "nothing waits for a person");
    assert!(is_overtaken(&shown.out.sent[0].1), "{:?}", shown.out.sent);
}
