//! An observer that makes everything expensive at once delays no seizure.

use crate::operators_calls::params;
use crate::operators_table::Stage;
use holdfast_harness::{Raw, World, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Looks that are done on other threads.
fn looks(session: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("graph.get", json!({ "session": session, "depth": "full" })),
        ("graph.ports", json!({ "session": session })),
        ("session.env", json!({ "session": session })),
        ("session.journal", json!({ "session": session })),
        ("session.wait", json!({ "session": session, "until": { "port": 1 }, "timeout_ms": 1000 })),
    ]
}

#[test]
fn while_every_place_for_looking_is_taken_a_human_seizes_freezes_and_looks() {
    let world = World::new();
    let session = world.session("work", "exec cat");
    let ann = world.actor("human:ann");
    let name = session.to_string();
    let aside = world.pause("aside");
    let mut observers: Vec<Raw> =
        ["agent:one", "agent:two", "agent:three"].iter().map(|handle| Raw::of(&world, &world.actor(handle))).collect();
    for observer in &mut observers {
        for (method, params) in looks(&name) {
            observer.ask(method, &params, &[]);
        }
    }
    // All places that agents may have; what else they asked for waits.
    let taken = [aside.reached(), aside.reached()];
    let mut seizes = world.as_operator(&ann, session);
    seizes.seize(true).expect("a seizure with freeze waits for no look");
    let mut human = Raw::of(&world, &ann);
    let look = human.ask("graph.get", &json!({ "session": name }), &[]);
    let hers = aside.reached();
    drop(hers);
    assert!(human.answered(look).is_ok(), "humans have places of their own");
    drop(aside);
    drop(taken);
    for observer in &mut observers {
        let answers = observer.answers(looks(&name).len());
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
}

/// How fast is for `cargo bench --bench seize` to say; printed here for who wants to see it.
#[test]
fn while_observers_abuse_every_operation_at_once_every_seizure_is_answered() {
    let mut stage = Stage::new();
    let observers = ["agent:one", "agent:two", "agent:three"].map(|handle| stage.world.actor(handle));
    for observer in &observers {
        stage.ann.revoke_all_of(observer.actor().id).unwrap();
        stage.ann.grant(observer.actor(), "observe", None).unwrap();
    }
    // What is the host's own and changes it is not an observer's to abuse.
    let all = stage.calls.iter().filter(|call| !call.row().terms.who.is_hosts());
    let all: Vec<(&str, Value)> = all.map(|call| (call.row().name, params(call))).collect();
    assert!(all.len() > 30, "{all:?}");
    let (over, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut took = Vec::new();
    std::thread::scope(|scope| {
        for observer in &observers {
            let (mut raw, all, over, rounds) = (Raw::of(&stage.world, observer), &all, &over, &rounds);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    for (method, params) in all {
                        raw.ask(method, params, &[]);
                    }
                    raw.answers(all.len());
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        until("all of it to be asked", || rounds.load(Ordering::Relaxed) > 3);
        for _ in 0..100 {
            let began = Instant::now();
            stage.ann.seize(false).expect("a seizure is answered");
            took.push(began.elapsed());
            stage.ann.release().unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    took.sort();
    println!(
        "seizures: p50 {:?}, p99 {:?}, {} rounds of {} questions",
        took[49],
        took[98],
        rounds.into_inner(),
        all.len()
    );
}

#[test]
fn whoever_has_not_said_who_it_is_may_say_little() {
    let world = World::new();
    world.session("work", "exec cat");
    let mut stranger = UnixStream::connect(world.home().host_socket()).unwrap();
    stranger.set_read_timeout(Some(holdfast_harness::PATIENCE)).unwrap();
    let claims = 7u32 << 20;
    stranger.write_all(&[&claims.to_le_bytes()[..], &[1]].concat()).unwrap();
    assert_eq!(stranger.read(&mut [0; 64]).unwrap(), 0, "closed at its first word");
    // Somebody who is known may paste.
    let ann = world.actor("human:ann");
    let mut known = Raw::of(&world, &ann);
    let fault = known.call("session.get", &json!({ "session": "x".repeat(1 << 20) }), &[]).unwrap_err();
    assert_eq!(fault.code, holdfast_wire::Code::NotFound);
}
