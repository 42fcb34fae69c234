//! An attached client is its connection's: a number, whoever knows it, is no identity.

use holdfast_authority::Ask;
use holdfast_client::Identity;
use holdfast_harness::{Direct, Operator, Raw, World, refused, until};
use holdfast_types::SessionId;
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::{AttachAnswer, DetachParams, PaintParams, UpdateParams};
use holdfast_wire::turns::{LeaveParams, TurnParams};
use serde_json::{Value, json};

/// Reports back as a client that outlived its host.
fn resume(raw: &mut Raw, session: SessionId, client: u32, token: &str) -> Result<Value, Code> {
    let resume = json!({"client": client, "token": token, "answers": true});
    let params = json!({"session": session, "size": "40x10", "resume": resume});
    raw.call("session.attach", &params, &[]).map_err(|fault| fault.code)
}

/// Whose the attached clients are.
fn clients(root: &mut Operator) -> Vec<(u32, String, String)> {
    let view = root.view().unwrap();
    let line = |c: &holdfast_wire::params::ClientView| {
        (c.id, c.actor.as_ref().map(ToString::to_string).unwrap_or_default(), c.size.to_string())
    };
    view.clients.iter().map(line).collect()
}

fn attached(world: &World, who: &Identity, session: SessionId) -> (Operator, AttachAnswer) {
    let mut operator = world.as_operator(who, session);
    let answer = operator.attach().unwrap();
    (operator, answer)
}

#[test]
fn nobody_takes_over_a_client_whose_handle_it_does_not_have() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let mut root = world.root(session);
    let [ann, bot] = ["human:ann", "agent:bot"].map(|handle| world.actor(handle));
    let (mut anns, answer) = attached(&world, &ann, session);
    let mut direct = Direct::of(&answer);
    let fence = anns.take().unwrap().fence.unwrap();
    until("the keeper to know its writer", || direct.types(fence, b"x").ok());
    let before = clients(&mut root);
    let client = answer.client;
    let guesses = ["", "00", &"0".repeat(32), "not hexadecimal", &answer.token[..30]];
    for guess in guesses {
        for who in [&ann, &bot] {
            let refusal = resume(&mut Raw::of(&world, who), session, client, guess).unwrap_err();
            assert!(matches!(refusal, Code::NotFound | Code::BadRequest), "{guess:?}: {refusal:?}");
        }
    }
    let mut bots = Raw::of(&world, &bot);
    assert_eq!(resume(&mut bots, session, client, &answer.token), Err(Code::NotAttached), "another actor's handle");
    assert_eq!(clients(&mut root), before);
    let detach = |clients| DetachParams { session: session.to_string(), clients, proof: None };
    let mut bot = world.as_operator(&bot, session);
    assert_eq!(refused(bot.link.call::<op::Detach>(&detach(vec![client]))), Code::Denied);
    assert_eq!(direct.types(fence, b"y").map(|_| ()), Ok(()), "it still writes");

    // The same actor with the handle is that client, also by another connection.
    let resumed = resume(&mut Raw::of(&world, &ann), session, client, &answer.token).unwrap();
    assert_eq!((resumed["client"].as_u64(), resumed["token"].as_str()), (Some(client.into()), Some(&*answer.token)));
}

#[test]
fn a_client_is_spoken_for_by_its_own_connection_alone() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let mut root = world.root(session);
    let ann = world.actor("human:ann");
    let (_anns, answer) = attached(&world, &ann, session);
    let client = answer.client;
    let name = session.to_string();
    let before = clients(&mut root);
    for who in [ann, world.actor("agent:bot"), world.actor("human:bob")] {
        let what = who.actor().to_string();
        let mut other = world.as_operator(&who, session);
        let size = "33x11".parse().unwrap();
        let update = UpdateParams { session: name.clone(), client, size: Some(size), answers: None };
        assert_eq!(refused(other.link.call::<op::Update>(&update)), Code::NotAttached, "{what} updates");
        let leave = LeaveParams { session: name.clone(), client, shown: None };
        assert_eq!(refused(other.link.call::<op::Leave>(&leave)), Code::NotAttached, "{what} leaves");
        other.client = Some(client);
        assert_eq!(refused(other.send(b"x")), Code::NotAttached, "{what} types");
        let take = TurnParams { session: name.clone(), client: Some(client), proof: None };
        assert_eq!(refused(other.link.call::<op::Take>(&take)), Code::NotAttached, "{what} takes");
        assert_eq!(refused(other.seize(false)), Code::NotAttached, "{what} seizes");
        let proof = Some(other.who.prove(session, &Ask::Request));
        let request = TurnParams { session: name.clone(), client: Some(client), proof };
        assert_eq!(refused(other.link.call::<op::Request>(&request)), Code::NotAttached, "{what} requests");
        let paint = PaintParams { session: name.clone(), answers: Some(client), ..PaintParams::default() };
        // Whoever may look is painted; it answers no queries by that.
        other.link.call::<op::Paint>(&paint).unwrap();
    }
    assert_eq!(clients(&mut root), before);
    assert_eq!(root.turn().unwrap().holder.map(|holder| holder.actor), None);
}
