//! Whoever speaks proves it, for this connection and this act; what is not proven does not happen.

use holdfast_authority::{Act, Ask};
use holdfast_client::Identity;
use holdfast_harness::{Raw, World, refused};
use holdfast_types::{Actor, Proof, SessionId, Signature};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::turns::TurnParams;
use serde_json::json;

#[test]
fn a_connection_is_nobodys_until_it_proves_whose_and_only_by_its_own_challenge() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let [ann, bob, bot] = ["human:ann", "human:bob", "agent:bot"].map(|handle| world.actor(handle));
    let look = |raw: &mut Raw| raw.call("turn.get", &json!({"session": session}), &[]).map_err(|fault| fault.code);
    // What the bot holds by its key it would hold by any name. It was here before, bob was not.
    world.as_operator(&bot, session).turn().unwrap();
    world.root(session).grant(bot.actor(), "observe,type", None).unwrap();
    let mut other = Raw::open(&world);
    let said = |who: &Identity, raw: &Raw| (who.actor().clone(), who.answer(&raw.challenge));
    let as_known = world.renamed(&ann, "human:bob");
    let as_unknown = world.renamed(&bot, "human:zed");
    let another_key = world.stranger("human:ann", 7);
    type Lie<'a> = (&'a str, Box<dyn Fn(&Raw) -> (Actor, Signature) + 'a>);
    let lies: [Lie<'_>; 5] = [
        ("another's signature", Box::new(|raw| (ann.actor().clone(), bob.answer(&raw.challenge)))),
        ("a signature for another connection", Box::new(|_| said(&ann, &other))),
        ("another's handle for a known key", Box::new(|raw| said(&as_known, raw))),
        ("a new handle for a known key", Box::new(|raw| said(&as_unknown, raw))),
        ("a known handle with another key", Box::new(|raw| said(&another_key, raw))),
    ];
    for (what, lie) in lies {
        let mut raw = Raw::open(&world);
        let (actor, signature) = lie(&raw);
        assert_eq!(raw.identify(&actor, &signature).unwrap_err().code, Code::Unidentified, "{what}");
        assert_eq!(look(&mut raw).unwrap_err(), Code::Unidentified, "{what}");
        let signature = ann.answer(&raw.challenge);
        raw.identify(ann.actor(), &signature).unwrap();
        assert!(look(&mut raw).is_ok(), "the truth after {what}");
        let (actor, signature) = lie(&raw);
        assert!(raw.identify(&actor, &signature).is_err());
        assert_eq!(look(&mut raw).unwrap_err(), Code::Unidentified, "{what} behind the truth");
    }
    assert_eq!(look(&mut other).unwrap_err(), Code::Unidentified);
}

/// Proofs that are not this actor's for this act in this session.
fn forged(world: &World, session: SessionId, who: &Identity) -> Vec<(&'static str, Proof)> {
    let mut altered = who.prove(session, &Ask::Take);
    altered.signature.0[5] ^= 1;
    let mut renumbered = who.prove(session, &Ask::Take);
    renumbered.nonce.0[0] ^= 1;
    vec![
        ("an altered one", altered),
        ("one with another nonce", renumbered),
        ("one for another act", who.prove(session, &Ask::Release)),
        ("one for another session", who.prove(SessionId::from_random_bits(7), &Ask::Take)),
        ("another's", world.stranger("human:eve", 9).prove(session, &Ask::Take)),
    ]
}

#[test]
fn an_act_whose_proof_does_not_fit_does_not_happen() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let mut ann = world.operator("human:ann", session);
    let before = (ann.turn().unwrap(), world.journal(session).len());
    for (what, proof) in forged(&world, session, &ann.who.clone()) {
        let params = TurnParams { session: session.to_string(), client: None, proof: Some(proof) };
        assert_eq!(refused(ann.link.call::<op::Take>(&params)), Code::BadProof, "{what}");
        assert_eq!((ann.turn().unwrap(), world.journal(session).len()), before, "{what}");
    }
    assert_eq!(ann.take().unwrap().fence.map(|fence| fence.0), Some(before.0.fence.0 + 1));
}

#[test]
fn a_proof_that_was_used_once_leaves_no_second_record_in_the_journal() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let mut bot = world.operator("agent:bot", session);
    let proof = bot.who.prove(session, &Ask::Take);
    let params = TurnParams { session: session.to_string(), client: None, proof: Some(proof) };
    bot.link.call::<op::Take>(&params).unwrap();
    let _ = bot.link.call::<op::Take>(&params);
    bot.release().unwrap();
    let _ = bot.link.call::<op::Take>(&params);
    // It verifies every line, and would find a copied act.
    let journal = world.journal(session);
    let taken =
        journal.iter().filter(|entry| entry.record.act == Act::Asked(Ask::Take) && entry.record.proof == Some(proof));
    assert_eq!(taken.count(), 1);
}

#[test]
fn turn_and_rights_are_given_to_an_actor_by_its_own_name_only() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let [mut ann, mut bot, mut cat] =
        ["human:ann", "agent:bot", "agent:cat"].map(|handle| world.operator(handle, session));
    cat.turn().unwrap();
    ann.grant(&cat.actor(), "observe,type", None).unwrap();
    ann.grant(&bot.actor(), "grant", None).unwrap();
    let as_human = Actor { handle: "human:root".parse().unwrap(), ..cat.actor() };
    bot.take().unwrap();
    let _ = bot.give(&as_human);
    let holder = ann.turn().unwrap().holder.expect("the turn is somebody's").actor;
    assert!(holder == bot.actor() || holder == cat.actor(), "{holder:?}");
    let _ = bot.grant(&as_human, "observe", None);
    let named = ann.grants().unwrap().grants.into_iter().map(|grant| grant.to).find(|to| *to == as_human);
    assert_eq!(named, None);
}
