//! The host is killed thirty times: turn, fence, queue, grants and journal are as before, each time.

use holdfast_harness::{Operator, Random, World, until};
use holdfast_types::SessionId;
use holdfast_wire::attention::{WatchParams, What};
use holdfast_wire::operations::op;
use holdfast_wire::turns::{GrantView, TurnParams, TurnView};

const KILLS: u64 = 30;

/// What is to survive: everything but when a held turn ends, which begins anew with the host.
fn state(root: &mut Operator) -> (TurnView, Vec<GrantView>) {
    let mut turn = root.turn().unwrap();
    if let Some(holder) = &mut turn.holder {
        holder.ends_ms = None;
    }
    (turn, root.grants().unwrap().grants)
}

fn act(random: &mut Random, operators: &mut [Operator]) {
    let to = operators[random.below(4) as usize].actor();
    let operator = &mut operators[random.below(4) as usize];
    // Most are refused, as they should be; what matters is that what was answered stays so.
    match random.below(15) {
        0 => drop(operator.take()),
        1 | 2 => drop(operator.request()),
        3 => drop(operator.release()),
        4 => drop(operator.give(&to)),
        5 => drop(operator.seize(false)),
        6 => drop(operator.grant(&to, "observe,signal", None)),
        7 => drop(operator.revoke(random.below(40) as u32 + 2)),
        8 | 9 => drop(operator.send(b"x")),
        10 => drop(operator.attach()),
        11 => drop(operator.seize(true)),
        _ => drop(operator.thaw()),
    }
}

/// Asks without waiting for the answers, so that the host dies in the middle.
fn leave_in_flight(session: SessionId, operators: &mut [Operator]) {
    let turn = || TurnParams { session: session.to_string(), client: None, proof: None };
    for operator in operators {
        for _ in 0..8 {
            operator.link.ask::<op::Take>(&turn(), &[]).unwrap();
            operator.link.ask::<op::Release>(&turn(), &[]).unwrap();
            let send = operator.next_send(b"y", None);
            operator.link.ask::<op::Send>(&send, b"y").unwrap();
        }
    }
}

#[test]
fn thirty_kills_of_the_host_change_nothing_that_was_answered() {
    let seed = Random::seed();
    let mut random = Random::of(seed, 8);
    let world = World::new();
    let (session, _) = world.recorder("crash");
    let actors = ["human:ann", "human:bob", "agent:bot", "agent:cat"].map(|handle| world.actor(handle));
    let (mut held, mut waited, mut granted, mut frozen, mut early, mut records) = (0, 0, 0, 0, 0, 0);
    for kill in 0..KILLS {
        let mut operators: Vec<_> = actors.iter().map(|who| world.as_operator(who, session)).collect();
        (0..5).for_each(|_| act(&mut random, &mut operators));
        if kill == KILLS / 2 {
            // Something is at stake in every run, whatever the seed.
            let agent = operators[2].actor();
            operators[0].grant(&agent, "observe,signal", None).unwrap();
            operators[0].seize(true).unwrap();
        }
        let before = state(&mut world.root(session));
        held += u32::from(before.0.holder.is_some());
        waited += before.0.queue.len();
        granted += before.1.len() - 1;
        frozen += u32::from(before.0.frozen.is_some());
        let in_flight = kill % 2 == 1;
        if in_flight {
            leave_in_flight(session, &mut operators);
        }
        world.kill_host();
        if kill % 3 == 0 {
            early += 1;
            world.start_host_in_vain();
        }
        world.start_host();
        let after = state(&mut world.root(session));
        if in_flight {
            assert!(after.0.fence >= before.0.fence, "seed {seed}: {before:?} {after:?}");
            assert_eq!(after.1, before.1, "seed {seed}: nobody touched a grant");
        } else {
            assert_eq!(after, before, "seed {seed}, kill {kill}");
        }
        let journal = world.journal(session);
        assert!(journal.len() > records, "seed {seed}: the host's return is recorded");
        records = journal.len();
    }
    println!("{held} held turns, {waited} waiting requests, {granted} grants, {frozen} times frozen at {KILLS} kills");
    println!("{early} times a host was killed again that had just begun; {records} records");
    assert!(held > 3 && waited > 0 && granted > 0 && frozen > 0 && early > 0, "seed {seed}: nothing was at stake");
    let mut root = world.root(session);
    root.seize(false).unwrap();
    let _ = root.thaw();
    until("the terminal to take input", || root.send(b"z").unwrap().written.then_some(()));
}

#[test]
fn who_watched_under_an_earlier_host_is_told_what_is_now() {
    let world = World::new();
    let session = world.session("work", "echo ready; read x");
    world.shows(session, "ready");
    world.kill_host();
    world.start_host();
    // The number of an event that a host told long ago; nothing happens any more.
    let params = WatchParams { session: Some(session.to_string()), after: Some(1), wait_ms: 20_000 };
    let answer = world.root(session).link.call::<op::Watch>(&params).unwrap();
    assert!(matches!(answer.events.first().map(|event| &event.what), Some(What::State { .. })), "{answer:?}");
}
