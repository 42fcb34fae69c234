//! Envelopes and grants, as sentences.

use crate::world::{World, actor, expect};
use holdfast_authority::{Ask, Caller, Grant, GrantId, Input, Reply, Revoke, Token};
use holdfast_types::Rights;

#[test]
fn nobody_passes_on_more_than_it_has_or_for_longer() {
    expect(
        "0s bot grants kit observe | 1s ann grants bot observe,run,grant for 100s | 2s bot grants kit run,end \
         | 3s bot grants kit run for 99s | 4s bot grants kit run for 97s | 5s bot grants cron observe | 6s bot grants cron observe for 0s",
        r#"
            0s bot grants kit observe: no, this needs the right `grant`
            1s ann grants bot observe,run,grant for 100s: grant 2
            2s bot grants kit run,end: no, you cannot grant end: you do not have it
            3s bot grants kit run for 99s: no, you cannot grant this for longer than you have it yourself
            4s bot grants kit run for 97s: grant 3
            5s bot grants cron observe: grant 4
            6s bot grants cron observe for 0s: no, this grant is empty: it has no rights, or has already expired
        "#,
    );
}

#[test]
fn revoking_cascades_to_what_was_passed_on() {
    expect(
        "0s ann grants bot observe,run,grant | 1s bot grants cron observe,run,grant | 2s cron grants eve observe | 3s eve attaches \
         | 4s ann revokes 2 | 5s eve types x | 6s ann revokes 3",
        r#"
            0s ann grants bot observe,run,grant: grant 2
            1s bot grants cron observe,run,grant: grant 3
            2s cron grants eve observe: grant 4
            3s eve attaches: done
            4s ann revokes 2: revoked 2 3 4; tell 1: may ; lapse observers; expel 1
            5s eve types x: no, this needs the right `type`
            6s ann revokes 3: no, no grant 3
        "#,
    );
}

#[test]
fn a_circle_of_grants_holds_nothing_up() {
    expect(
        "0s ann grants cron observe,grant | 1s cron grants eve observe,grant | 2s eve grants cron observe,grant | 3s ann revokes 2 \
         | 4s cron attaches | 5s eve attaches",
        r#"
            0s ann grants cron observe,grant: grant 2
            1s cron grants eve observe,grant: grant 3
            2s eve grants cron observe,grant: grant 4
            3s ann revokes 2: revoked 2 3 4
            4s cron attaches: no, this needs the right `observe`
            5s eve attaches: no, this needs the right `observe`
        "#,
    );
}

#[test]
fn a_grant_ends_by_itself_and_takes_turn_and_sight_with_it() {
    expect(
        "0s ann grants eve observe,type for 10s | 1s eve attaches | 2s eve types x | 9s eve types y | 10s x passes | 11s eve attaches",
        r#"
            0s ann grants eve observe,type for 10s: grant 2
            1s eve attaches: done
            2s eve types x: turn 1; fence 1 for 1
            9s eve types y: turn 1
            10s x passes: done; lapse grants; tell 1: may ; lapse rights; fence 2 for nobody; lapse observers; expel 1
            11s eve attaches: no, this needs the right `observe`
        "#,
    );
}

#[test]
fn a_revoked_holder_loses_the_turn_at_once() {
    expect(
        "0s bot attaches | 1s bot types loop | 2s ann revokes bot | 3s bot types loop | 4s ann grants bot observe for 60s | 5s bot attaches | 6s bot types x",
        r#"
            0s bot attaches: done
            1s bot types loop: turn 1; fence 1 for 1
            2s ann revokes bot: revoked ; tell 1: may ; lapse rights; fence 2 for nobody; lapse observers; expel 1
            3s bot types loop: no, this needs the right `type`
            4s ann grants bot observe for 60s: grant 2
            5s bot attaches: done
            6s bot types x: no, this needs the right `type`
        "#,
    );
}

#[test]
fn giver_and_receiver_can_revoke_and_whoever_holds_as_much() {
    expect(
        "0s ann grants bot observe,grant | 1s bot grants kit observe | 2s kit revokes 3 | 3s bot grants cron observe | 4s kit revokes 4 \
         | 5s bob revokes 4 | 6s bot grants cron observe | 7s bot revokes 5",
        r#"
            0s ann grants bot observe,grant: grant 2
            1s bot grants kit observe: grant 3
            2s kit revokes 3: revoked 3
            3s bot grants cron observe: grant 4
            4s kit revokes 4: no, this needs the right `grant`
            5s bob revokes 4: revoked 4
            6s bot grants cron observe: grant 5
            7s bot revokes 5: revoked 5
        "#,
    );
}

#[test]
fn nobody_owns_a_session_so_the_spawner_can_be_revoked_and_its_key_deleted() {
    let mut world = World::new();
    let bob = world.ask("bob", Ask::Grant { to: actor("bot"), rights: Rights::ALL, until: None });
    assert!(bob.reply.is_ok());
    world.authority.policy_mut().vouched.remove(&actor("ann").id);
    world.handle(Input::Tick);
    let revoked = world.ask("bob", Ask::Revoke(Revoke::Grant(GrantId(1))));
    assert!(revoked.reply.is_ok(), "{revoked:?}");
    assert_eq!(world.authority.rights(&actor("ann"), world.now), Rights::NONE);
    assert!(world.ask("ann", Ask::Take).reply.is_err());
    let granted = world.ask("bot", Ask::Grant { to: actor("cron"), rights: Rights::ALL, until: None });
    assert!(granted.reply.is_ok());
    assert!(world.ask("cron", Ask::Run { key: "1".into(), command: "make".into() }).reply.is_ok());
    assert!(world.ask("cron", Ask::End { grace_ms: 0 }).reply.is_ok());
}

#[test]
fn what_is_given_through_a_token_ends_with_it_and_takes_what_stands_on_it_along() {
    let mut world = World::new();
    let until = world.now + 60_000;
    let through = |world: &mut World, name: &str, to: &str, asked: Option<u64>| {
        let token = Some(Token { id: "tok_1".into(), until });
        let by = Caller { token, ..world.caller(name) };
        let ask = Ask::Grant { to: actor(to), rights: "observe,grant".parse().unwrap(), until: asked };
        world.handle(Input::Asked { by, ask, proof: None }).reply.unwrap()
    };
    // However long it was to be.
    for asked in [None, Some(until + 1), Some(u64::MAX)] {
        let Reply::Granted(id) = through(&mut world, "ann", "cron", asked) else { panic!("{asked:?}") };
        let grant = world.authority.state().grants().find(|grant| grant.id == id).unwrap();
        assert_eq!((grant.until, grant.token.as_deref()), (Some(until), Some("tok_1")), "{asked:?}");
    }
    let key = world.ask("ann", Ask::Grant { to: actor("kit"), rights: "observe".parse().unwrap(), until: None });
    assert!(key.reply.is_ok());
    let next = world.ask("cron", Ask::Grant { to: actor("eve"), rights: "observe".parse().unwrap(), until: None });
    assert!(next.reply.is_ok());
    let before = world.records.len();
    let others = world.handle(Input::TokensEnded { tokens: vec!["tok_2".into()] });
    assert_eq!((others.reply, world.records.len()), (Ok(Reply::Revoked(vec![])), before), "nothing is recorded");
    let ended = world.handle(Input::TokensEnded { tokens: vec!["tok_2".into(), "tok_1".into()] });
    assert_eq!(ended.reply, Ok(Reply::Revoked([2, 3, 4, 6].map(GrantId).to_vec())));
    let left: Vec<GrantId> = world.authority.state().grants().map(|grant: &Grant| grant.id).collect();
    assert_eq!(left, [1, 5].map(GrantId));
    assert_eq!(world.authority.rights(&actor("eve"), world.now), Rights::NONE);
}
