//! A seizure takes effect whatever the holder does and whoever waits.

use holdfast_authority::QUEUE;
use holdfast_client::Incoming;
use holdfast_harness::{Heard, Operator, World, detail, received, refused, until};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::{SendAnswer, SessionParams};
use holdfast_wire::turns::{SeizeParams, TurnParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Requests a connection may have open: more would wait for room.
const OPEN: usize = 60;

/// What a looping writer was told of its messages: typed under which fence, or who had the turn.
type Told = BTreeMap<u64, Result<u64, String>>;

/// Types numbered lines as fast as the host takes them, without waiting for answers, until it is told to stop.
fn write_in_a_loop(mut bot: Operator, stop: &AtomicBool) -> Told {
    let mut open = BTreeMap::new();
    let mut told = Told::new();
    while !stop.load(Ordering::SeqCst) || !open.is_empty() {
        while open.len() < OPEN && !stop.load(Ordering::SeqCst) {
            let line = bot.seq + 1;
            // A stream of its own each: one that is refused holds no other up.
            bot.stream += 1;
            let send = bot.next_send(b"v", None);
            let id = bot.link.ask::<op::Send>(&send, format!("v{line:06}\n").as_bytes()).unwrap();
            open.insert(id, line);
        }
        if let Incoming::Answer { id, result, .. } = bot.link.receive().unwrap()
            && let Some(line) = open.remove(&id)
        {
            let answer = result.map(|answer| answer["fence"].as_u64().expect("a fence"));
            told.insert(line, answer.map_err(|fault| detail(&fault, "/by/handle").unwrap_or(format!("{fault:?}"))));
        }
    }
    told
}

#[test]
fn behind_a_seizure_no_byte_of_the_old_holder_reaches_the_program() {
    let world = World::new();
    let (session, file) = world.recorder("cat");
    let bot = world.operator("agent:bot", session);
    let mut ann = world.operator("human:ann", session);
    let stop = AtomicBool::new(false);
    let told = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_in_a_loop(bot, &stop));
        until("a writer at full speed", || (received(&file).len() > 2000).then_some(()));
        let seized = ann.seize(false).unwrap();
        ann.send_under(b"SEIZED\n", Some(seized.fence)).unwrap();
        until("the seizer's line", || received(&file).ends_with(b"SEIZED\n").then_some(()));
        // The loop goes on: it must have been refused often before it is stopped.
        (0..50).for_each(|_| drop(ann.turn().unwrap()));
        ann.send_under(b"STILL\n", Some(seized.fence)).unwrap();
        stop.store(true, Ordering::SeqCst);
        writer.join().unwrap()
    });
    ann.send(b"END\n").unwrap();
    until("the end", || received(&file).ends_with(b"END\n").then_some(()));
    let text = String::from_utf8(received(&file)).unwrap();
    let (before, behind) = text.split_once("SEIZED\n").unwrap();
    assert_eq!(behind, "STILL\nEND\n");
    let lines: Vec<u64> = before.lines().filter_map(|line| line.strip_prefix('v')?.parse().ok()).collect();
    assert!(lines.is_sorted_by(|a, b| a < b), "in order, once each");
    let typed = told.iter().filter(|(_, told)| told.is_ok());
    let refused = told.values().filter(|told| told.as_ref().is_err_and(|by| by == "human:ann")).count();
    for (line, _) in told.iter().filter(|(_, told)| told.is_err()) {
        assert!(!lines.contains(line), "v{line:06} was refused");
    }
    println!("{} lines, {} answered, {refused} refused", lines.len(), typed.count());
    assert!(refused > OPEN && told.values().all(|told| told.as_ref().map_or_else(|by| by == "human:ann", |_| true)));
}

#[test]
fn what_the_program_had_not_read_yet_is_gone() {
    let world = World::new();
    let (go, file) = (world.path("go"), world.path("late"));
    let wait = format!("while [ ! -e {} ]; do sleep 0.01; done", go.display());
    let session = world.session("late", &format!("stty raw -echo; echo ready; {wait}; exec cat > {}", file.display()));
    world.shows(session, "ready");
    let (mut bot, mut ann) = (world.operator("agent:bot", session), world.operator("human:ann", session));
    bot.send(b"rm -rf everything").unwrap();
    ann.seize(false).unwrap();
    ann.send(b"ls").unwrap();
    std::fs::write(go, "").unwrap();
    until("what was typed since", || (received(&file) == b"ls").then_some(()));
}

#[test]
fn a_frozen_session_stands_still_through_a_kill_of_the_host_until_it_is_thawed() {
    let world = World::new();
    let session = world.session("loop", "stty raw -echo; while :; do echo tick tock; sleep 0.001; done");
    let (mut bot, mut ann) = (world.operator("agent:bot", session), world.operator("human:ann", session));
    let head = |of: &mut Operator| of.view().unwrap().head;
    until("output", || (head(&mut ann) > 100).then_some(()));
    bot.take().unwrap();
    ann.seize(true).unwrap();
    // What the tree wrote before it stood still may be on its way.
    let mut last = 0;
    let stopped = until("the last of it", || {
        let now = head(&mut ann);
        (std::mem::replace(&mut last, now) == now).then_some(now)
    });
    for _ in 0..3 {
        assert_eq!(refused(bot.send(b"x")), Code::Frozen);
        assert_eq!(refused(ann.send(b"x")), Code::Frozen, "for who froze it too");
        assert_eq!(refused(bot.thaw()), Code::Denied);
        assert_eq!(ann.turn().unwrap().frozen.map(|frozen| frozen.by), Some(ann.actor()));
        assert_eq!(head(&mut ann), stopped);
        world.kill_host();
        world.start_host();
        (bot, ann) = (world.as_operator(&bot.who, session), world.as_operator(&ann.who, session));
        assert_eq!(head(&mut ann), stopped);
    }
    ann.thaw().unwrap();
    until("output again", || (head(&mut ann) > stopped + 100).then_some(()));
    assert_eq!(refused(ann.thaw()), Code::NotFrozen);
    assert_eq!(refused(bot.send(b"x")), Code::TurnHeld);
    assert!(ann.send(b"x").is_ok(), "the turn is still the seizer's");
}

#[test]
fn a_program_that_floods_its_terminal_keeps_no_seizure_out() {
    let world = World::new();
    let session = world.session("flood", "exec yes tick tock tick tock");
    let (mut ann, mut bob) = (world.operator("human:ann", session), world.operator("human:bob", session));
    let look = SessionParams { session: session.to_string() };
    let looked = bob.link.ask::<op::Get>(&look, &[]).unwrap();
    let freeze = SeizeParams { freeze: true, ..ann.seize_params() };
    let asked = ann.link.ask::<op::Seize>(&freeze, &[]).unwrap();
    let seized = ann.answered(asked).unwrap();
    assert!(seized["froze"]["processes"].as_u64() > Some(0), "{seized}");
    assert_eq!(bob.answered(looked).unwrap()["name"], "flood");
}

#[test]
fn as_many_as_can_wait_delay_a_seizure_by_nothing() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let mut bot = world.operator("agent:bot", session);
    bot.take().unwrap();
    let mut waiting: Vec<_> = (0..QUEUE.not_human).map(|n| world.operator(&format!("agent:w{n}"), session)).collect();
    for (n, operator) in waiting.iter_mut().enumerate() {
        assert_eq!(operator.request().unwrap().before, Some(n as u32));
    }
    let mut ann = world.operator("human:ann", session);
    let began = Instant::now();
    let seized = ann.seize(false).unwrap();
    // One that waited for each of them would take much longer, however busy the machine.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert!(seized.turn.queue.is_empty() && seized.turn.holder.is_some_and(|holder| holder.actor == ann.actor()));
    assert!(waiting.iter_mut().all(|operator| refused(operator.send(b"x")) == Code::TurnHeld));
}

#[test]
fn of_two_who_seize_at_once_each_is_told_its_own_fence() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let mut hands = [world.operator("human:ann", session), world.operator("human:bob", session)];
    let fences: Vec<_> = std::thread::scope(|scope| {
        let seize =
            |operator: &mut Operator| (0..100).map(|_| operator.seize(false).unwrap().fence).collect::<Vec<_>>();
        let spawned: Vec<_> = hands.iter_mut().map(|hand| scope.spawn(move || seize(hand))).collect();
        spawned.into_iter().flat_map(|hand| hand.join().unwrap()).collect()
    });
    let mut once = fences.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), fences.len(), "a fence is one holder's");
}

/// A message of many chunks on its way: what `ann` does in its middle, and then the answer it got and everything that was read.
fn interrupt(ann_does: impl FnOnce(&mut Operator)) -> (Heard<SendAnswer>, Vec<u8>) {
    let world = World::new();
    let (session, file) = world.recorder("cat");
    let (mut bot, mut ann) = (world.operator("agent:bot", session), world.operator("human:ann", session));
    let answer = std::thread::scope(|scope| {
        let victim = scope.spawn(|| bot.send(&[b'v'; LONG]));
        until("the middle of the message", || (received(&file).len() > 20_000).then_some(()));
        ann_does(&mut ann);
        victim.join().unwrap()
    });
    // Another seizure would flush what was not read yet.
    until("the turn", || ann.send(b"Z").ok());
    until("the end", || received(&file).ends_with(b"Z").then_some(()));
    (answer, received(&file))
}

/// Bytes of a message of many chunks: enough to be in its middle for a while.
const LONG: usize = 600_000;

#[test]
fn a_long_message_that_was_seized_in_the_middle_never_goes_on() {
    let (answer, all) = interrupt(|ann| {
        ann.seize(false).unwrap();
        ann.send(b"X").unwrap();
    });
    assert_eq!(refused(answer), Code::TurnHeld);
    let at = all.iter().position(|byte| *byte == b'X').expect("the seizer's byte");
    assert!(all[..at].iter().all(|byte| *byte == b'v') && at < LONG, "it was in the middle: {at}");
    assert_eq!(&all[at..], b"XZ");
}

#[test]
fn a_long_message_does_not_take_the_turn_anew_after_a_seizure_in_its_middle() {
    let (answer, all) = interrupt(|ann| {
        let (seize, turn) =
            (ann.seize_params(), TurnParams { session: ann.session.to_string(), client: None, proof: None });
        // At once: the turn is free again before the next chunk is looked at.
        ann.link.ask::<op::Seize>(&seize, &[]).unwrap();
        ann.link.call::<op::Release>(&turn).unwrap();
    });
    assert!(matches!(refused(answer), Code::TurnHeld | Code::FenceStale));
    assert!(all.len() < LONG, "{}", all.len());
}

#[test]
fn the_old_holder_is_told_at_once_by_whom_and_why() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let (mut bot, mut ann) = (world.operator("agent:bot", session), world.operator("human:ann", session));
    bot.attach().unwrap();
    bot.take().unwrap();
    ann.seize(false).unwrap();
    let seized = loop {
        let event = bot.hears("notice");
        if event["notice"]["kind"] == "seized" {
            break event["notice"].clone();
        }
    };
    assert_eq!(seized, json!({"kind": "seized", "by": "human:ann", "from": "agent:bot", "reason": "a test"}));
}
