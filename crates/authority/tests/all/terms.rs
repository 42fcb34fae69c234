//! What the authority asks of an actor is what the table of terms says.

use crate::world::{World, actor};
use holdfast_authority::*;
use holdfast_types::{Right, TERMS, Trace, TurnNeed, Who, terms_of};
use std::collections::BTreeSet;

/// Ann's first terminal.
const ANNS: OperatorId = OperatorId(1);

/// Every ask, by the operation it is made for; each is about what is somebody else's.
fn asks() -> Vec<(&'static str, Ask)> {
    let other = |name| (name, Ask::other(terms_of(name), "of a test".into()));
    vec![
        ("turn.take", Ask::Take),
        ("turn.request", Ask::Request),
        ("turn.withdraw", Ask::Withdraw),
        ("turn.give", Ask::Give { to: actor("ann") }),
        ("turn.release", Ask::Release),
        ("turn.seize", Ask::Seize { freeze: false, reason: String::new() }),
        ("turn.thaw", Ask::Thaw),
        ("grant.add", Ask::Grant { to: actor("kit"), rights: Right::Observe.into(), until: None }),
        ("grant.revoke", Ask::Revoke(Revoke::Grant(GrantId(1)))),
        ("run.start", Ask::Run { key: "k".into(), command: "make".into() }),
        ("session.resize", Ask::Resize { size: "90x30".parse().unwrap() }),
        ("session.signal", Ask::Signal { number: 2, target: 0 }),
        ("session.rename", Ask::Rename { name: "other".parse().unwrap() }),
        ("session.detach", Ask::Detach { operators: vec![ANNS] }),
        ("session.end", Ask::End { grace_ms: 0 }),
        ("session.recover", Ask::Recover { run: false }),
        other("run.cancel"),
        other("question.answer"),
        other("approval.answer"),
        other("session.keep"),
        other("session.restore"),
        other("session.fork"),
        other("session.move"),
        other("fork.keep"),
        other("fork.discard"),
        other("checkpoint.make"),
        other("checkpoint.remove"),
        other("files.write"),
        other("files.edit"),
        other("files.upload"),
        other("files.undo"),
    ]
}

/// A session where ann is attached, and cron holds this right and no other.
fn world_with(right: Right) -> World {
    let mut world = World::new();
    world.handle(Input::Attached { by: actor("ann"), operator: ANNS });
    world.ask("ann", Ask::Grant { to: actor("cron"), rights: right.into(), until: None }).reply.unwrap();
    world
}

fn is_missing_right(answer: &Answer) -> bool {
    matches!(answer.reply, Err(Refusal::Denied { rule: Rule::Envelope, .. }))
}

#[test]
fn an_act_needs_one_of_the_rights_of_its_terms_and_no_other() {
    for right in Right::EACH {
        for (name, ask) in asks() {
            let answer = world_with(*right).ask("cron", ask);
            let has = terms_of(name).rights.has(*right);
            assert_eq!(is_missing_right(&answer), !has, "{name} with {right}: {:?}", answer.reply);
        }
        let by = Caller { actor: actor("cron"), operator: None, token: None };
        let typed = world_with(*right).handle(Input::Types { by, fence: None });
        assert_eq!(is_missing_right(&typed), !terms_of("session.send").rights.has(*right), "{right}");
        let attached = world_with(*right).handle(Input::Attached { by: actor("cron"), operator: OperatorId(2) });
        assert_eq!(is_missing_right(&attached), !terms_of("session.attach").rights.has(*right), "{right}");
    }
}

#[test]
fn what_is_an_actors_own_needs_no_right_where_the_terms_say_so() {
    let owned: BTreeSet<_> = TERMS.iter().filter(|terms| terms.who == Who::Owner).map(|terms| terms.name).collect();
    assert_eq!(owned, BTreeSet::from(["grant.revoke", "session.detach"]));
    let mut world = world_with(Right::Observe);
    let own = OperatorId(2);
    world.handle(Input::Attached { by: actor("cron"), operator: own }).reply.unwrap();
    world.ask("cron", Ask::Detach { operators: vec![own] }).reply.unwrap();
    world.ask("cron", Ask::Revoke(Revoke::Actor(actor("cron").id))).reply.unwrap();
}

#[test]
fn an_act_needs_of_the_turn_what_its_terms_say() {
    for (name, ask) in asks() {
        // Ann has it, and bob may do everything.
        let mut world = World::new();
        world.handle(Input::Attached { by: actor("ann"), operator: ANNS });
        world.ask("ann", Ask::Take).reply.unwrap();
        let held = world.ask("bob", ask.clone()).reply;
        let (is_held, is_holders) =
            (matches!(held, Err(Refusal::TurnHeld { .. })), matches!(held, Err(Refusal::NotHolder)));
        // Nobody has it.
        let mut world = World::new();
        world.handle(Input::Attached { by: actor("ann"), operator: ANNS });
        let _ = world.ask("bob", ask);
        let is_taken = world.authority.state().turn().hold().is_some();
        match terms_of(name).turn {
            TurnNeed::Takes => assert!(is_held && is_taken, "{name}: {held:?}"),
            TurnNeed::Respects => assert!(is_held && !is_taken, "{name}: {held:?}"),
            TurnNeed::Holds => assert!(is_holders && !is_taken, "{name}: {held:?}"),
            TurnNeed::Ignores => assert!(!is_held && !is_holders && !is_taken, "{name}: {held:?}"),
            TurnNeed::Asks => assert!(!is_holders, "{name}: {held:?}"),
        }
    }
}

#[test]
fn what_the_authority_records_says_so_and_nothing_else_does() {
    let mut recorded: BTreeSet<&str> = asks().into_iter().map(|(name, _)| name).collect();
    // What happens without being asked for in so many words: a start, typing, terminals that come, go and change their size, an
    // actor that is forgotten.
    recorded.extend([
        "session.new",
        "session.send",
        "session.attach",
        "session.leave",
        "session.update",
        "actor.remove",
    ]);
    let said = TERMS.iter().filter(|terms| terms.trace == Trace::Journal).map(|terms| terms.name);
    assert_eq!(said.collect::<BTreeSet<_>>(), recorded);
    for (name, ask) in asks() {
        let before = world_with(Right::Observe).records.len();
        let mut world = world_with(Right::Observe);
        let _ = world.ask("bob", ask);
        // Bob waits for nothing, so there is nothing to withdraw.
        assert!(world.records.len() > before || name == "turn.withdraw", "{name}");
    }
}
