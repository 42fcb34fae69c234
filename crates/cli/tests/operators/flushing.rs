//! Nobody flushes a journal by making noise.

use holdfast_authority::By;
use holdfast_harness::{Raw, World};
use serde_json::json;

const TIMES: usize = 1_500;

/// Records of an agent, and all.
fn counted(world: &World, session: holdfast_types::SessionId) -> (usize, usize) {
    let entries = world.journal(session);
    let bots = |by: &By| by.actor().is_some_and(|actor| actor.handle.to_string() == "agent:bot");
    (entries.iter().filter(|entry| bots(&entry.record.by)).count(), entries.len())
}

#[test]
fn an_agent_that_asks_for_nothing_again_and_again_leaves_no_record() {
    let world = World::new();
    let session = world.session("work", "exec cat");
    let bot = world.actor("agent:bot");
    let mut raw = Raw::of(&world, &bot);
    for _ in 0..TIMES {
        assert!(raw.call("session.detach", &json!({ "session": "work", "clients": [] }), &[]).is_err());
    }
    assert_eq!(counted(&world, session).0, 0);
}

#[test]
fn refusals_that_alternate_are_recorded_for_a_while_and_then_counted() {
    let world = World::new();
    let session = world.session("work", "exec cat");
    let bot = world.actor("agent:bot");
    let mut raw = Raw::of(&world, &bot);
    for _ in 0..TIMES / 2 {
        let size = json!({ "session": "work", "name": "mine" });
        assert!(raw.call("session.rename", &size, &[]).is_err());
        assert!(raw.call("session.end", &json!({ "session": "work", "grace_ms": 0 }), &[]).is_err());
    }
    let (bots, _) = counted(&world, session);
    assert!((1..200).contains(&bots), "{bots}");
}

#[test]
fn who_comes_and_goes_all_the_time_is_slowed_down() {
    let world = World::new();
    let session = world.session("work", "exec cat");
    let bot = world.actor("agent:bot");
    let mut raw = Raw::of(&world, &bot);
    let mut came = 0;
    for _ in 0..TIMES {
        let attach = json!({ "session": "work", "size": "80x24", "read_only": true, "tty": "", "pid": 0, "env": [], "remote": true });
        match raw.call("session.attach", &attach, &[]) {
            Ok(answer) => {
                came += 1;
                let leave = json!({ "session": "work", "client": answer["client"] });
                raw.call("session.leave", &leave, &[]).unwrap();
            }
            Err(fault) => assert_eq!(fault.code, holdfast_wire::Code::TooFast),
        }
    }
    let (bots, _) = counted(&world, session);
    assert!(came < TIMES / 2 && bots <= 2 * came + 1, "{came} times, {bots} records");
    // Nobody else is held up by that.
    let ann = world.actor("human:ann");
    world.as_operator(&ann, session).attach().unwrap();
}
