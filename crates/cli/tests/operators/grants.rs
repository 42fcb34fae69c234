//! Envelopes: passed on no wider and no longer than held, and gone with what they stood on.

use holdfast_harness::{World, received, refused};
use holdfast_types::TimeMs;
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::DetachParams;
use std::time::{SystemTime, UNIX_EPOCH};

fn in_ms(ms: u64) -> TimeMs {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64 + ms
}

#[test]
fn nobody_passes_on_more_than_it_holds_or_for_longer() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let (mut ann, mut bot) = (world.operator("human:ann", session), world.operator("agent:bot", session));
    let dot = world.actor("service:dot").actor().clone();
    assert_eq!(refused(bot.grant(&dot, "observe", None)), Code::Denied, "without the right to grant");
    let end = in_ms(60_000);
    ann.grant(&bot.actor(), "grant,signal", Some(end)).unwrap();
    assert_eq!(refused(bot.grant(&dot, "observe,end", None)), Code::TooWide);
    assert_eq!(refused(bot.grant(&dot, "observe,signal", Some(end + 1))), Code::TooLong);
    assert_eq!(refused(bot.grant(&dot, "", None)), Code::EmptyGrant);
    assert_eq!(refused(bot.grant(&dot, "observe", Some(1))), Code::EmptyGrant, "one that is over already");
    assert_eq!(bot.grants().unwrap().grants.len(), 2, "the first one and the human's");
    let made = bot.grant(&dot, "observe,signal", None).unwrap();
    assert_eq!(made.until_ms, Some(end), "as long as its giver holds it");
}

#[test]
fn what_was_passed_on_falls_with_what_it_stood_on() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let mut ann = world.operator("human:ann", session);
    let (mut bot, mut dot, mut eve) = (
        world.operator("agent:bot", session),
        world.operator("service:dot", session),
        world.operator("service:eve", session),
    );
    let first = ann.grant(&bot.actor(), "grant,seize", None).unwrap().id;
    let second = bot.grant(&dot.actor(), "observe,seize,grant", None).unwrap().id;
    let third = dot.grant(&eve.actor(), "observe,seize", None).unwrap().id;
    assert!(eve.turn().is_ok() && eve.seize(false).is_ok());
    assert_eq!(refused(eve.revoke(second)), Code::Denied, "neither given nor received");
    let mut fallen = ann.revoke(first).unwrap().grants;
    fallen.sort_unstable();
    assert_eq!(fallen, [first, second, third]);
    assert_eq!(ann.turn().unwrap().holder, None, "the turn of who may no longer write is free");
    for operator in [&mut dot, &mut eve] {
        assert_eq!(refused(operator.turn()), Code::Denied);
        assert_eq!(refused(operator.seize(false)), Code::Denied);
        assert_eq!(refused(operator.send(b"x")), Code::Denied);
    }
    assert!(bot.turn().is_ok(), "its class still observes");
    assert_eq!(refused(bot.seize(false)), Code::Denied);
}

#[test]
fn an_operator_whose_grant_runs_out_is_let_go_of() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let (mut ann, mut dot) = (world.operator("human:ann", session), world.operator("service:dot", session));
    ann.grant(&dot.actor(), "observe,type", Some(in_ms(1500))).unwrap();
    let client = dot.attach().unwrap().client;
    dot.take().unwrap();
    assert_eq!(ann.view().unwrap().clients.len(), 1);
    assert_eq!(dot.hears("detached")["client"], client);
    assert_eq!(refused(dot.turn()), Code::Denied);
    assert_eq!(refused(dot.send(b"x")), Code::Denied);
    assert_eq!(refused(dot.attach()), Code::Denied);
    assert_eq!(ann.turn().unwrap().holder, None);
    assert_eq!(ann.grants().unwrap().grants.len(), 1, "the spawner's");
}

#[test]
fn a_holder_who_loses_its_rights_loses_the_turn_and_writes_no_more() {
    let world = World::new();
    let (session, file) = world.recorder("cat");
    let (mut ann, mut dot) = (world.operator("human:ann", session), world.operator("service:dot", session));
    let grant = ann.grant(&dot.actor(), "observe,type", None).unwrap().id;
    dot.send(b"before ").unwrap();
    let fence = dot.turn().unwrap().fence;
    ann.revoke(grant).unwrap();
    assert_eq!(refused(dot.send(b"after ")), Code::Denied);
    assert_eq!(refused(dot.send_under(b"under ", Some(fence))), Code::Denied);
    let turn = ann.turn().unwrap();
    assert!(turn.holder.is_none() && turn.fence > fence, "{turn:?}");
    ann.send(b"end").unwrap();
    holdfast_harness::until("the last bytes", || received(&file).ends_with(b"end").then_some(()));
    assert_eq!(received(&file), b"before end");
}

#[test]
fn an_agent_takes_nothing_from_a_human_whoever_granted_it_what() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let (mut ann, mut bot, mut cat, mut dog) = (
        world.operator("human:ann", session),
        world.operator("agent:bot", session),
        world.operator("agent:cat", session),
        world.operator("agent:dog", session),
    );
    ann.grant(&bot.actor(), "seize,grant,configure", None).unwrap();
    bot.grant(&cat.actor(), "seize", None).unwrap();
    dog.take().unwrap();
    assert!(cat.seize(false).is_ok(), "from an agent, by an agent's grant");
    assert!(bot.seize(false).is_ok(), "from an agent, by a human's grant");
    let client = ann.attach().unwrap().client;
    ann.seize(false).unwrap();
    let fence = ann.turn().unwrap().fence;
    let detach = DetachParams { session: session.to_string(), clients: vec![client], proof: None };
    let of_ann = ann.grant(&ann.actor(), "observe", None).unwrap().id;
    for agent in [&mut bot, &mut cat] {
        assert_eq!(refused(agent.seize(false)), Code::Denied);
        assert_eq!(refused(agent.seize(true)), Code::Denied);
        assert_eq!(refused(agent.take()), Code::TurnHeld);
        assert_eq!(refused(agent.revoke_all_of(ann.actor().id)), Code::Denied);
        assert_eq!(refused(agent.revoke(of_ann)), Code::Denied);
        assert_eq!(refused(agent.link.call::<op::Detach>(&detach)), Code::Denied);
    }
    assert_eq!(ann.turn().unwrap().fence, fence, "nothing has changed");
    assert!(ann.send(b"x").is_ok());
}
