//! What lies at the edge of an operation: names that are not the asker's to know, numbers that are none.

use holdfast_harness::{Operator, Raw, World, received, until};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use holdfast_wire::turns::ActorView;
use serde_json::json;

/// The sessions that an actor is said to be attached to.
fn attached_to(asks: &mut Operator, who: &str) -> Vec<String> {
    let all = asks.link.call::<op::Actors>(&Nothing {}).unwrap();
    let its = |view: &&ActorView| view.actor.handle.to_string() == who;
    all.iter().find(its).unwrap_or_else(|| panic!("no {who}")).sessions.clone()
}

#[test]
fn the_list_of_actors_names_no_session_that_the_asker_may_not_observe() {
    let world = World::new();
    let (open, hidden) = (world.session("open", "exec cat"), world.session("merger", "exec cat"));
    let ann = world.actor("human:ann");
    let mut here = world.as_operator(&ann, open);
    let mut there = world.as_operator(&ann, hidden);
    here.attach().unwrap();
    there.attach().unwrap();
    let mut eye = world.operator("service:eye", open);
    world.root(open).grant(&eye.actor(), "observe", None).unwrap();
    assert_eq!(attached_to(&mut eye, "human:ann"), ["open"]);
    let mut names = attached_to(&mut here, "human:ann");
    names.sort();
    assert_eq!(names, ["merger", "open"]);
}

#[test]
fn a_number_that_no_message_can_have_is_refused_and_costs_the_session_nothing() {
    let world = World::new();
    let (session, file) = world.recorder("numbers");
    let bot = world.actor("agent:bot");
    let mut raw = Raw::of(&world, &bot);
    let two_pieces = vec![b'x'; 5000];
    // More often than a keeper bears bad frames of one connection, which would be the host's.
    for _ in 0..40 {
        for (seq, bytes) in [(0, &b"zero"[..]), (0, b""), (u64::MAX, &two_pieces)] {
            let params = json!({"session": session, "stream": 77, "seq": seq});
            let refused = raw.call("session.send", &params, bytes).unwrap_err();
            assert_eq!(refused.code, Code::BadRequest, "{seq}: {refused:?}");
            assert!(refused.message.contains("seq"), "{refused:?}");
        }
    }
    let send = |raw: &mut Raw, seq: u64, bytes: &[u8]| {
        raw.call("session.send", &json!({"session": session, "stream": 77, "seq": seq}), bytes).map(|_| ())
    };
    assert_eq!(send(&mut raw, 1, b"first"), Ok(()));
    assert_eq!(send(&mut raw, u64::MAX, b"last"), Ok(()), "one piece has a number");
    assert_eq!(send(&mut raw, u64::MAX, b"last"), Ok(()), "it is typed once");
    until("what was typed", || (received(&file) == b"firstlast").then_some(()));
}

#[test]
fn one_agents_attaches_leave_places_for_other_agents_and_for_people() {
    let world = World::new();
    let session = world.session("crowd", "exec cat");
    let mut bots: Vec<Operator> =
        ["agent:a", "agent:b", "agent:c", "agent:d"].map(|bot| world.operator(bot, session)).into();
    let attached: Vec<usize> = bots.iter_mut().map(|bot| (0..70).filter(|_| bot.attach().is_ok()).count()).collect();
    assert_eq!(attached, [64, 64, 64, 0]);
    let refused = bots[0].attach().unwrap_err();
    let fault = holdfast_harness::refusal(&refused).unwrap();
    assert_eq!(fault.code, Code::TooMany);
    assert!(fault.message.contains("attached clients of one actor, at most 64") && !fault.hint.is_empty(), "{fault:?}");
    world.operator("human:ann", session).attach().unwrap();
}
