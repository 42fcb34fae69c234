//! What the journal has of typing: what the keeper's log has, once, under whose turn it was.

use crate::world::{HOST, World, actor};
use holdfast_abi::log::{FLAG_ECHO_OFF, FLAG_ECHO_ON};
use holdfast_authority::{Act, Ask, Authority, By, Change, Input, Policy};
use holdfast_screen::ShellMark;
use holdfast_session::is_own_stream;

/// Who typed what, as the journal has it; lengths where the keys are not kept.
fn typed(world: &World) -> Vec<(String, Result<String, u64>)> {
    let typed = |record: &holdfast_authority::Record| match &record.act {
        Act::Typed(burst) => {
            let keys = burst.keys.as_ref().map(|keys| String::from_utf8(keys.0.clone()).unwrap());
            let by = match &record.by {
                By::Host => "host".to_owned(),
                By::Unknown => "unknown".to_owned(),
                By::Actor(actor) => actor.handle.to_string(),
            };
            Some((by, keys.ok_or(burst.len)))
        }
        _ => None,
    };
    world.out.records.iter().filter_map(typed).collect()
}

#[test]
fn typing_through_the_host_is_recorded_from_the_keepers_log_and_nowhere_else() {
    let mut world = World::new();
    world.send("agent:bot", 9, 1, "ls\r");
    assert_eq!(typed(&world), [], "the keeper has not written it yet");
    let took: Vec<&Act> = world.out.records.iter().map(|record| &record.act).filter(|act| **act == Act::Took).collect();
    assert_eq!(took.len(), 1, "but whose the turn is is on record before");
    world.writes(HOST, 1, 9, b"ls\r", FLAG_ECHO_ON);
    world.decide(Input::Tick).unwrap();
    assert_eq!(typed(&world), [("agent:bot".into(), Ok("ls\r".into()))]);
    world.decide(Input::Tick).unwrap();
    assert_eq!(typed(&world).len(), 1, "once");
}

#[test]
fn what_was_not_echoed_is_a_length_whatever_the_way() {
    let mut world = World::new();
    world.send("agent:bot", 9, 1, "x");
    world.writes(HOST, 1, 9, b"hunter2\r", FLAG_ECHO_OFF);
    world.writes(HOST, 1, 0xf0_1d5e << 40 | 9, b"forced", FLAG_ECHO_ON);
    world.decide(Input::Tick).unwrap();
    let lengths: Vec<Result<String, u64>> = typed(&world).into_iter().map(|(_, keys)| keys).collect();
    assert_eq!(lengths, [Err(14)]);
}

#[test]
fn the_hosts_own_words_are_nobodys_typing_and_a_terminals_are_even_under_such_a_stream() {
    let mut world = World::new();
    let terminal = 20 + world.attach("agent:bot");
    world.send("agent:bot", 9, 1, "x");
    let own = 0xf0_1dfa << 40 | 5;
    assert!(is_own_stream(own));
    world.writes(HOST, 1, own, b"\x1b[0n", FLAG_ECHO_ON);
    world.decide(Input::Tick).unwrap();
    assert_eq!(typed(&world), []);
    world.writes(terminal, 1, own, b"rm\r", FLAG_ECHO_ON);
    world.decide(Input::Tick).unwrap();
    assert_eq!(typed(&world), [("agent:bot".into(), Ok("rm\r".into()))]);
}

#[test]
fn what_came_by_a_connection_that_the_host_let_in_for_nobody_is_nobodys() {
    let mut world = World::new();
    let terminal = 20 + world.attach("human:ann");
    world.ask("human:ann", Ask::Take).unwrap();
    let fence = world.core.authority().state().fence().0;
    for connection in [terminal, 77] {
        world.writes(connection, fence, 9, b"rm\r", FLAG_ECHO_ON);
    }
    world.decide(Input::Tick).unwrap();
    let by: Vec<String> = typed(&world).into_iter().map(|(by, _)| by).collect();
    assert_eq!(by, ["human:ann", "unknown"]);
    assert!(world.core.authority().state().stranger_ms().is_some());
    let later = Authority::replay(Policy::default(), &world.out.records);
    assert!(later.state().is_client_of(actor("human:ann").id, terminal), "a later host knows it too");
    assert!(later.state().stranger_ms().is_some());
}

#[test]
fn what_was_typed_before_a_seizure_is_on_record_before_it_and_under_its_own_actor() {
    let mut world = World::new();
    world.send("agent:bot", 9, 1, "x");
    world.writes(HOST, 1, 9, b"rm -rf\r", FLAG_ECHO_ON);
    world.ask("human:ann", Ask::Seize { freeze: false, reason: "no".into() }).unwrap();
    let acts: Vec<&Act> = world.out.records.iter().map(|record| &record.act).collect();
    let at = |is: &dyn Fn(&Act) -> bool| acts.iter().position(|act| is(act)).unwrap();
    assert!(at(&|act| matches!(act, Act::Typed(_))) < at(&|act| matches!(act, Act::Asked(Ask::Seize { .. }))));
    assert_eq!(typed(&world)[0].0, "agent:bot");
}

#[test]
fn the_last_burst_of_a_drain_reaches_to_the_logs_head() {
    let mut world = World::new();
    world.send("agent:bot", 9, 1, "x");
    world.writes(HOST, 1, 9, b"a\r", FLAG_ECHO_ON);
    world.writes(HOST, 1, 0xf0_1dfa << 40 | 5, b"answer", FLAG_ECHO_ON);
    let head = world.out.log.len() as u64;
    world.decide(Input::Tick).unwrap();
    let last = world.out.records.iter().rev().find(|record| matches!(record.act, Act::Typed(_))).unwrap();
    assert!(last.changes.contains(&Change::Forwarded(head)), "{:?}", last.changes);
}

#[test]
fn only_a_terminals_typing_tells_that_it_saw_what_was_before() {
    let mut world = World::new();
    world.send("agent:bot", 9, 1, "x");
    for (connection, direct) in [(HOST, false), (77, true)] {
        world.writes(connection, 1, 9, b"a\r", FLAG_ECHO_ON);
        world.decide(Input::Tick).unwrap();
        let last = &world.out.records.last().unwrap().changes;
        assert_eq!(last.iter().any(|change| matches!(change, Change::Logged(_))), direct, "{last:?}");
    }
}

/// A person types into a program that reads bytes as they come, which prints `output`; what the journal has of it.
fn typed_raw(who: &str, keys: &[u8], output: &str, at_prompt: bool) -> Result<String, u64> {
    let mut world = World::new();
    world.send(who, 9, 1, "x");
    if at_prompt {
        world.core.runs.told(0, ShellMark::PromptEnd, 0);
    }
    world.out.output = output.into();
    world.writes(HOST, 1, 9, keys, 0);
    world.decide(Input::Tick).unwrap();
    typed(&world).remove(0).1
}

#[test]
fn what_a_person_types_is_kept_where_the_screen_showed_it_or_the_shell_read_a_command() {
    assert_eq!(typed_raw("human:ann", b"hunter2\r", "\r\n", false), Err(8));
    assert_eq!(typed_raw("human:ann", b"hunter2\r", "*******\r\n", false), Err(8), "a masked prompt");
    assert_eq!(typed_raw("human:ann", b"hunter2\r", "spinner hunter2", false), Err(8), "shown later, by chance");
    assert_eq!(typed_raw("human:ann", b"ls\r", "\x1b[32ml\x1b[0ms\r\n", false), Ok("ls\r".into()), "shown");
    assert_eq!(typed_raw("human:ann", b"ls\r", "", true), Ok("ls\r".into()), "a command line");
    assert_eq!(typed_raw("human:ann", b"\x1b[A\r", "", false), Ok("\x1b[A\r".into()), "nothing to hide");
    assert_eq!(typed_raw("agent:bot", b"yes\r", "", false), Ok("yes\r".into()), "a program hides its own secrets");
}
