//! Races by their order: the host stops at a named point, something else happens, and it goes on or dies there.

use holdfast_abi::protocol::{FromKeeper, ToKeeper, refused as keeper_refused};
use holdfast_abi::ring::Ring;
use holdfast_authority::{Act, Burst, Change};
use holdfast_client::Incoming;
use holdfast_harness::{Direct, Operator, Raw, World, received, refused, until};
use holdfast_types::{Fence, SessionId};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::{AttachAnswer, NewParams};
use holdfast_wire::runs::{RunEnd, RunStartParams, RunState};
use holdfast_wire::turns::TurnParams;
use rustix::process::Signal;
use serde_json::{Value, json};

/// An operator's own client that has the turn, and is named to the keeper.
fn writer(operator: &mut Operator) -> (AttachAnswer, Direct, Fence) {
    let attached = operator.attach().unwrap();
    let direct = Direct::of(&attached);
    ask_for_turn(operator);
    operator.hears("answer");
    let fence = operator.turn().unwrap().fence;
    (attached, direct, fence)
}

/// Asks without waiting: the events that come before the answer are not to be missed.
fn ask_for_turn(operator: &mut Operator) -> u64 {
    let params = TurnParams { session: operator.session.to_string(), client: operator.client, proof: None };
    operator.link.ask::<op::Take>(&params, &[]).unwrap()
}

#[test]
fn a_query_that_a_client_answered_before_it_left_is_not_answered_again_by_the_host() {
    let world = World::new();
    let (go, file) = (world.path("go"), world.path("answers"));
    let wait = format!("while [ ! -e {} ]; do sleep 0.01; done", go.display());
    let query = format!("stty raw -echo; echo ready; {wait}; printf '\\033[c'; exec cat > {}", file.display());
    let session = world.session("asks", &query);
    world.shows(session, "ready");
    let mut root = world.root(session);
    let (attached, mut direct, fence) = writer(&mut root);
    let ring = ring(&attached);
    let before = ring.head();
    std::fs::write(go, "").unwrap();
    until("the query", || ring.head() >= before + 3);
    // Whatever the keeper says meanwhile, the host hears at once: what was typed, and that the client left.
    world.signal_host(Signal::STOP);
    direct.types(fence, b"ANSWER").unwrap();
    until("the client's answer", || received(&file) == b"ANSWER");
    drop(direct);
    world.signal_host(Signal::CONT);
    let mut other = world.root(session);
    until("the client to be gone", || other.view().unwrap().clients.is_empty());
    other.send(b"END").unwrap();
    until("the end", || received(&file).ends_with(b"END"));
    assert_eq!(String::from_utf8_lossy(&received(&file)), "ANSWEREND");
    let journal = world.journal(session);
    let at = |what: &dyn Fn(&Act) -> bool| journal.iter().position(|entry| what(&entry.record.act)).unwrap();
    let (typed, cut) = (at(&|act| matches!(act, Act::Typed(_))), at(&|act| matches!(act, Act::CutOff(_))));
    assert!(typed < cut, "what it typed stands before its departure");
}

fn ring(attached: &AttachAnswer) -> Ring {
    Ring::open(&std::fs::File::open(&attached.ring).unwrap()).unwrap()
}

/// Everything typed by keys, as the journal has it: the keys, the output before the first and before the last, and up to
/// where the keeper's log was read with the last.
fn typed(world: &World, session: SessionId) -> (Vec<u8>, u64, u64, u64) {
    let (mut keys, mut bursts, mut logged) = (Vec::new(), Vec::new(), 0);
    for entry in world.journal(session) {
        let Act::Typed(Burst { from, to, keys: Some(more), .. }) = &entry.record.act else { continue };
        keys.extend_from_slice(&more.0);
        bursts.push((*from, *to));
        let log = |change: &Change| if let Change::Logged(log) = change { Some(*log) } else { None };
        logged = entry.record.changes.iter().find_map(log).unwrap_or(0);
    }
    (keys, bursts[0].0, bursts[bursts.len() - 1].1, logged)
}

#[test]
fn the_last_keys_before_a_decision_are_in_the_journal_with_their_place_and_once() {
    let world = World::new();
    let session = world.session("echo", "stty raw -echo; echo ready; exec cat");
    world.shows(session, "ready");
    let mut root = world.root(session);
    let (attached, mut direct, fence) = writer(&mut root);
    let ring = ring(&attached);
    // The host reads nothing until all of it is in the log.
    world.signal_host(Signal::STOP);
    let before = ring.head();
    for (n, key) in [(1, b"a"), (2, b"b")] {
        direct.types(fence, key).unwrap();
        until("its echo", || ring.head() == before + n);
    }
    direct.send(ToKeeper::Resize { fence: fence.0, cols: 81, rows: 24 });
    let log_head = || ring.log_head();
    direct.receive("the new size", |frame| matches!(frame, FromKeeper::Resized { .. }).then_some(()));
    let logged = log_head();
    world.signal_host(Signal::CONT);
    root.release().unwrap();
    let expected = (b"ab".to_vec(), before, before + 1, logged);
    assert_eq!(typed(&world, session), expected, "keys, before the first, before the last, the log");
    world.kill_host();
    world.start_host();
    world.root(session).take().unwrap();
    assert_eq!(typed(&world, session), expected, "the next host reads none of it again");
}

#[test]
fn questions_of_a_client_that_reads_no_answers_are_not_taken_without_end() {
    let world = World::new();
    let session = world.session("much", "head -c 400000 /dev/zero | tr '\\0' x; echo; echo ready; exec cat");
    world.shows(session, "ready");
    let mut raw = Raw::of(&world, &world.actor("human:ann"));
    let read = json!({ "session": session, "from": 0, "max": 256 * 1024 });
    // Fifty megabytes of answers: the bound is eight, and the few questions that were taken before it was reached.
    for _ in 0..200 {
        raw.ask("session.read", &read, &[]);
    }
    let last = raw.ask("session.rename", &json!({ "session": session, "name": "late" }), &[]);
    let mut other = world.root(session);
    let name = |other: &mut Operator| other.view().unwrap().name.to_string();
    // The host takes from all connections in turn: each of these looks would have been time for one question.
    (0..500).for_each(|_| assert_eq!(name(&mut other), "much", "a question behind fifty megabytes was taken"));
    raw.answered(last).unwrap();
    assert_eq!(name(&mut other), "late");
}

#[test]
fn nobody_is_named_to_write_before_the_shell_was_moved_for_their_turn() {
    let world = World::new();
    let (session, file) = world.recorder("cat");
    let mut ann = world.operator("human:ann", session);
    let mut direct = Direct::of(&ann.attach().unwrap());
    let moves = world.pause("shell.move");
    ask_for_turn(&mut ann);
    let held = moves.reached();
    drop(moves);
    // All that was said to ann before the answer to this came before it.
    let params = TurnParams { session: session.to_string(), client: ann.client, proof: None };
    let asked = ann.link.ask::<op::Take>(&params, &[]).unwrap();
    let mut told = Vec::new();
    let fence = loop {
        match ann.link.receive().unwrap() {
            Incoming::Answer { id, result, .. } if id == asked => {
                break Fence(result.unwrap()["fence"].as_u64().unwrap());
            }
            Incoming::Answer { .. } => {}
            Incoming::Event { method, params, .. } => told.push((method, params)),
        }
    };
    let writes = |(method, params): &(String, Value)| method == "writes" && params["writes"] == true;
    assert!(!told.iter().any(writes), "{told:?}");
    assert_eq!(direct.types(fence, b"early"), Err(keeper_refused::WRITER));
    drop(held);
    until("to be named", || direct.types(fence, b"x").is_ok());
    until("the byte", || received(&file) == b"x");
}

#[test]
fn a_seizure_that_was_recorded_counts_though_its_host_died_before_the_keeper_heard_of_it() {
    let world = World::new();
    let (session, file) = world.recorder("cat");
    let (mut bot, mut ann) = (world.operator("agent:bot", session), world.operator("human:ann", session));
    bot.send(b"v\n").unwrap();
    until("the first line", || received(&file) == b"v\n");
    // What was typed is on record: the next one is the seizure's.
    world.journal(session);
    let recorded = world.pause("act.recorded");
    let seize = ann.seize_params();
    ann.link.ask::<op::Seize>(&seize, &[]).unwrap();
    let held = recorded.reached();
    for _ in 0..40 {
        let send = bot.next_send(b"v\n", None);
        bot.link.ask::<op::Send>(&send, b"v\n").unwrap();
    }
    world.kill_host();
    drop((recorded, held));
    world.start_host();
    let (mut bot, mut ann) = (world.as_operator(&bot.who, session), world.as_operator(&ann.who, session));
    assert_eq!(ann.turn().unwrap().holder.map(|holder| holder.actor), Some(ann.actor()));
    assert_eq!(refused(bot.send(b"late\n")), Code::TurnHeld);
    ann.send(b"S\n").unwrap();
    until("the seizer's line", || received(&file).ends_with(b"S\n"));
    assert_eq!(received(&file), b"v\nS\n");
}

/// A session of a shell that tells of its runs.
fn shell(world: &World) -> Operator {
    let mut root = world.root(world.session("other", "exec cat"));
    let params = NewParams {
        name: Some("shell".parse().unwrap()),
        command: vec!["/bin/bash".into(), "--norc".into()],
        env: Some(vec!["PATH=/usr/bin:/bin".into(), "TERM=xterm-256color".into()]),
        ..NewParams::default()
    };
    root.session = root.link.call::<op::New>(&params).unwrap().id;
    root
}

/// Asks for a run with a key, which appends a line to a file; kills the host at a point of it; asks again.
fn killed_at(point: &str) -> (RunState, Option<RunEnd>, usize) {
    let world = World::new();
    let mut root = shell(&world);
    let file = world.path("effects");
    let params = RunStartParams {
        session: Some("shell".into()),
        key: Some("once".into()),
        command: format!("echo done >> {}", file.display()),
        wait_ms: 20_000,
        ..RunStartParams::default()
    };
    let first = RunStartParams { key: None, command: "true".into(), ..params.clone() };
    until("a shell at its prompt", || root.link.call::<op::RunStart>(&first).is_ok());
    let stops = world.pause(point);
    root.link.ask::<op::RunStart>(&params, &[]).unwrap();
    let held = stops.reached();
    world.kill_host();
    drop((stops, held));
    world.start_host();
    let mut root = world.root(root.session);
    let answer = until("the run's end", || {
        let answer = root.link.call::<op::RunStart>(&params).ok()?;
        answer.run.state.is_over().then_some(answer)
    });
    let lines = String::from_utf8(received(&file)).unwrap().lines().count();
    (answer.run.state, answer.run.end, lines)
}

#[test]
fn a_key_that_was_taken_by_a_host_that_died_before_its_run_was_recorded_is_free_again() {
    assert_eq!(killed_at("run.key_taken"), (RunState::Ended, Some(RunEnd::Exact), 1));
}

#[test]
fn a_run_that_was_recorded_by_a_host_that_died_before_it_was_typed_is_lost_and_said_not_to_have_started() {
    assert_eq!(killed_at("run.recorded"), (RunState::Lost, Some(RunEnd::NotStarted), 0));
}

#[test]
fn a_run_whose_session_is_being_made_is_waited_for_and_not_lost() {
    let world = World::new();
    world.session("work", "exec cat");
    let ann = world.actor("human:ann");
    let making = world.pause("run.own_key_taken");
    let mut starts = Raw::of(&world, &ann);
    let started = starts.ask("run.start", &json!({ "new": {}, "key": "k", "command": "true", "wait_ms": 0 }), &[]);
    let held = making.reached();
    drop(making);
    let mut asks = Raw::of(&world, &ann);
    asks.ask("run.get", &json!({ "run": "k", "wait_ms": 0 }), &[]);
    asks.ask("host.status", &json!({}), &[]);
    let first = asks.answers(1).remove(0).unwrap();
    assert!(first["command"].is_null(), "the key was taken, and the run was not there yet: {first}");
    drop(held);
    let answer = asks.answers(1).remove(0).unwrap();
    let run = starts.answered(started).unwrap();
    assert_eq!(answer["id"], run["id"], "{answer}");
    assert_ne!(answer["state"], "lost", "{answer}");
}
