//! Who answers a terminal query: never a terminal that cannot, and somebody in any case.

use crate::world::{World, actor};
use holdfast_authority::{Ask, Caller, Input, OperatorId};
use holdfast_screen::Reply;
use holdfast_session::Event;

const ANN: &str = "human:ann";
const BOB: &str = "human:bob";

fn by(world: &mut World, who: &str, client: u32, ask: Ask) {
    let by = Caller { actor: actor(who), operator: Some(OperatorId(client)), token: None };
    world.decide(Input::Asked { by, ask, proof: None }).unwrap();
}

/// A program asks, and the screen sees it; gives what the host typed by itself.
fn asks(world: &mut World, at: u64) -> Vec<String> {
    world.out.queries.push(Reply { at, bytes: b"answer".to_vec() });
    let now = world.now();
    world.core.look(&mut world.out, now);
    typed(world)
}

fn typed(world: &mut World) -> Vec<String> {
    world.typed().into_iter().map(|typed| typed.bytes).collect()
}

#[test]
fn a_terminal_that_lost_the_turn_and_does_not_say_so_is_relieved() {
    let mut world = World::new();
    let (ann, bob) = (world.attach(ANN), world.attach(BOB));
    by(&mut world, ANN, ann, Ask::Take);
    assert!(world.core.clients.answers(ann));
    assert!(asks(&mut world, 1).is_empty(), "her terminal answers");
    world.out.output = b"12345".to_vec();
    by(&mut world, BOB, bob, Ask::Seize { freeze: false, reason: "mine".into() });
    assert!(asks(&mut world, 9).is_empty(), "she may still say what she has seen");
    world.pass(999);
    assert!(typed(&mut world).is_empty() && world.core.clients.answers(ann));
    world.out.told.clear();
    world.pass(1);
    assert_eq!(typed(&mut world), ["answer"], "what was asked after she lost the turn, and nothing from before");
    assert!(world.core.clients.answers(bob));
    assert!(world.out.told.contains(&(bob, Event::Answer { from: 0 })), "{:?}", world.out.told);
}

#[test]
fn one_that_has_the_turn_back_in_time_goes_on_answering() {
    let mut world = World::new();
    let (ann, bob) = (world.attach(ANN), world.attach(BOB));
    by(&mut world, ANN, ann, Ask::Take);
    by(&mut world, BOB, bob, Ask::Seize { freeze: false, reason: "mine".into() });
    by(&mut world, BOB, bob, Ask::Give { to: actor(ANN) });
    world.pass(5000);
    assert!(world.core.clients.answers(ann) || world.core.clients.answers(bob));
    assert!(asks(&mut world, 9).is_empty());
}

#[test]
fn who_outlived_a_host_and_never_reports_back_is_not_waited_for() {
    let mut world = World::new();
    let ann = world.attach(ANN);
    world.killed_at(BOB, Ask::Take, &[(ann, 20 + ann)]);
    world.typed();
    assert!(asks(&mut world, 9).is_empty(), "its terminal may have answered");
    world.pass(14_999);
    assert!(typed(&mut world).is_empty());
    world.pass(1);
    assert_eq!(typed(&mut world), ["answer"]);
    assert_eq!(asks(&mut world, 10), ["answer"], "from then on the host answers at once");
}
