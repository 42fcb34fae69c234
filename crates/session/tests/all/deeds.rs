//! Deeds: done once they are recorded, marked once they are over, and settled by the next host where their own was killed.

use crate::world::{World, actor};
use holdfast_authority::{Ask, Ending, Input, OPEN_MAX, OperatorId, Refusal};
use holdfast_session::{Event, Undecided};
use holdfast_types::{Right, Size, TurnNeed};

const ANN: &str = "human:ann";

fn resize() -> Ask {
    Ask::Resize { size: Size::clamped(101, 33) }
}

fn operation() -> Ask {
    Ask::Operation { name: "run.cancel".into(), right: Right::Run, turn: TurnNeed::Ignores, detail: "1".into() }
}

#[test]
fn what_is_done_at_once_is_said_to_the_keeper_and_marked() {
    let mut world = World::new();
    let decided = world.ask(ANN, resize()).unwrap();
    assert!(matches!(decided.deed, Some((_, Some(Ending::Done)))));
    assert_eq!(world.said().len(), 1);
    world.ask(ANN, Ask::Signal { number: 2, target: 0 }).unwrap();
    world.ask(ANN, Ask::Rename { name: "other".parse().unwrap() }).unwrap();
    world.ask(ANN, Ask::End { grace_ms: 7 }).unwrap();
    let done = ["resize", "signal", "rename", "end"].map(|word| (word, &Ending::Done));
    assert_eq!(world.endings(), done);
    assert_eq!(world.out.names.len(), 1);
    assert_eq!(world.core.authority().state().open().count(), 0);
}

#[test]
fn what_goes_on_is_open_until_its_asker_says_how_it_ended() {
    let mut world = World::new();
    let decided = world.ask(ANN, operation()).unwrap();
    let Some((id, None)) = decided.deed else { panic!("it goes on") };
    assert_eq!(world.core.authority().state().open().map(|(open, _)| open).collect::<Vec<_>>(), [id]);
    let (now, failed) = (world.now(), Ending::Failed { why: "no".into() });
    world.core.did(&mut world.out, now, id, failed.clone());
    world.core.did(&mut world.out, now, id, Ending::Done);
    assert_eq!(world.endings(), [("run.cancel", &failed)], "once");
}

#[test]
fn what_cannot_be_recorded_is_not_done() {
    let mut world = World::new();
    world.out.full = true;
    assert!(matches!(world.ask(ANN, Ask::Signal { number: 9, target: 2 }), Err(Undecided::Unrecorded(_))));
    assert_eq!(world.said(), [""; 0]);
    // But for what takes away.
    world.ask(ANN, Ask::End { grace_ms: 7 }).unwrap();
    assert_eq!(world.said().len(), 1);
}

#[test]
fn so_many_may_be_open_and_an_end_is_brought_all_the_same() {
    let mut world = World::new();
    for _ in 0..OPEN_MAX {
        world.ask(ANN, operation()).unwrap();
    }
    let refused = world.ask(ANN, operation()).unwrap_err();
    assert!(matches!(refused, Undecided::Refused(Refusal::TooMany { .. })), "{refused:?}");
    world.ask(ANN, Ask::End { grace_ms: 7 }).unwrap();
    assert_eq!(world.said().len(), 1);
}

/// What the next host says to the keeper about an act whose host was killed, and how it marks it.
fn settled(ask: Ask) -> (Vec<String>, Vec<Ending>) {
    let mut world = World::new();
    world.killed_at(ANN, ask, &[]);
    let endings = world.endings().into_iter().map(|(_, ending)| ending.clone()).collect();
    assert_eq!(world.core.authority().state().open().count(), 0);
    (world.said(), endings)
}

#[test]
fn the_next_host_does_again_what_is_the_same_twice_as_once() {
    let (said, endings) = settled(resize());
    assert_eq!((said.len(), endings), (1, vec![Ending::Done]));
    assert!(said[0].contains("101"), "{said:?}");
    let (said, endings) = settled(Ask::End { grace_ms: 7 });
    assert_eq!((said.len(), endings), (1, vec![Ending::Done]));
    let mut world = World::new();
    world.killed_at(ANN, Ask::Rename { name: "other".parse().unwrap() }, &[]);
    assert_eq!(world.out.names.len(), 1);
    assert_eq!(world.endings(), [("rename", &Ending::Done)]);
}

#[test]
fn the_next_host_reports_as_lost_what_is_not() {
    let run = Ask::Run { key: "k".into(), command: "make".into() };
    for ask in [Ask::Signal { number: 2, target: 0 }, run, operation()] {
        assert_eq!(settled(ask), (vec![], vec![Ending::Lost]));
    }
}

#[test]
fn an_end_of_what_stands_still_has_no_grace() {
    let mut world = World::new();
    world.ask(ANN, Ask::Seize { freeze: true, reason: "look".into() }).unwrap();
    world.ask(ANN, Ask::End { grace_ms: 5000 }).unwrap();
    assert_eq!(world.said(), ["End { grace_ms: 0 }"]);
}

#[test]
fn a_detach_is_over_when_the_client_is_gone() {
    let mut world = World::new();
    let client = world.attach("agent:bot");
    world.ask(ANN, Ask::Detach { operators: vec![OperatorId(client)] }).unwrap();
    assert!(world.out.told.contains(&(client, Event::Detached)));
    assert_eq!(world.said().len(), 1, "and it is cut off where it stays");
    assert_eq!(world.endings(), []);
    world.decide(Input::Left { operator: OperatorId(client) }).unwrap();
    assert_eq!(world.endings(), [("detach", &Ending::Done)]);
}

#[test]
fn who_detaches_its_own_client_again_and_again_opens_one_deed_and_refuses_nobody() {
    let mut world = World::new();
    let client = world.attach("agent:bot");
    let detach = || Ask::Detach { operators: vec![OperatorId(client)] };
    let before = world.out.records.len();
    for _ in 0..2 * OPEN_MAX {
        world.ask("agent:bot", detach()).unwrap();
        world.ask("agent:bot", Ask::Detach { operators: vec![] }).unwrap();
    }
    assert_eq!(world.out.records.len(), before + 1, "once on record");
    assert_eq!(world.core.authority().state().open().count(), 1);
    world.ask(ANN, resize()).unwrap();
    assert_eq!(world.endings(), [("resize", &Ending::Done)]);
}

#[test]
fn a_client_that_was_to_let_go_does_so_when_it_reports_to_the_next_host() {
    let mut world = World::new();
    let (bot, other) = (world.attach("agent:bot"), world.attach(ANN));
    let (bots, others) = (20 + bot, 20 + other);
    world.killed_at(ANN, Ask::Detach { operators: vec![OperatorId(bot)] }, &[(bot, bots), (other, others)]);
    assert_eq!(world.endings(), []);
    assert_eq!(world.resume(ANN, other), Some(other));
    assert_eq!(world.out.told.iter().filter(|(_, event)| *event == Event::Detached).count(), 0);
    assert_eq!(world.resume("agent:bot", bot), Some(bot));
    assert!(world.out.told.contains(&(bot, Event::Detached)));
    world.decide(Input::Left { operator: OperatorId(bot) }).unwrap();
    assert_eq!(world.endings(), [("detach", &Ending::Done)]);
    assert_eq!(world.core.authority().state().operators().count(), 1);
    assert_eq!(actor(ANN), world.core.authority().state().operators().next().unwrap().1.actor);
}
