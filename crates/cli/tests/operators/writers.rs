//! Two writers at full speed into one program: within a turn there is never a byte of the other.

use holdfast_authority::Act;
use holdfast_authority::journal::Entry;
use holdfast_client::CallError;
use holdfast_harness::{Operator, Random, World, received, refusal, until};
use holdfast_types::SessionId;
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// What a writer was told of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Typed, under this fence.
    Typed(u64),
    /// Typed; its first answer was lost, so the fence may be a later one.
    TypedBefore,
    Refused,
}

struct Writer<'a> {
    world: &'a World,
    tag: char,
    operator: Operator,
    random: Random,
    told: BTreeMap<String, Told>,
    lines: u64,
    repeated: u64,
}

impl<'a> Writer<'a> {
    fn new(world: &'a World, session: SessionId, tag: char, handle: &str, seed: u64) -> Writer<'a> {
        let operator = world.operator(handle, session);
        let random = Random::of(seed, u64::from(u32::from(tag)));
        Writer { world, tag, operator, random, told: BTreeMap::new(), lines: 0, repeated: 0 }
    }

    fn reconnect(&mut self) {
        let Operator { who, session, stream, seq, .. } = &self.operator;
        let again = self.world.as_operator(who, *session);
        // The same stream: the host must know what it had before.
        self.operator = Operator { stream: *stream, seq: *seq, ..again };
    }

    /// Types a line, again with the same number where the answer was lost.
    fn line(&mut self) {
        self.lines += 1;
        let filler = "·".repeat(self.random.below(40) as usize);
        let line = format!("{}{:05} {filler}\n", self.tag, self.lines);
        let params = self.operator.next_send(line.as_bytes(), None);
        let mut first = true;
        let told = loop {
            match self.operator.link.call_with_bytes::<op::Send>(&params, line.as_bytes()) {
                Ok((answer, _)) if first => break Told::Typed(answer.fence.0),
                Ok(_) => break Told::TypedBefore,
                Err(error) => match refusal(&error).map(|fault| fault.code) {
                    Some(Code::TurnHeld) => break Told::Refused,
                    Some(Code::Busy) | None => {
                        first = false;
                        self.repeated += 1;
                        if matches!(error, CallError::Broken(_)) {
                            self.reconnect();
                        }
                    }
                    Some(other) => panic!("{other:?}: {error}"),
                },
            }
        };
        self.told.insert(line, told);
    }

    fn write_until(mut self, stop: &AtomicBool, lines: &AtomicU64) -> Writer<'a> {
        while !stop.load(Ordering::SeqCst) {
            let asked = match self.random.below(12) {
                0 => self.operator.take().map(drop),
                1 => self.operator.request().map(drop),
                2 | 3 => self.operator.release().map(drop),
                _ => {
                    self.line();
                    lines.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                }
            };
            if let Err(CallError::Broken(_)) = asked {
                self.reconnect();
            }
        }
        // No seizure ends the duel: it would flush what the program has not read yet.
        let _ = self.operator.withdraw();
        let _ = self.operator.release();
        self
    }
}

/// What the program read is what was acknowledged, once, in order, and the fences of its lines never go back.
fn check(seed: u64, text: &str, told: &BTreeMap<String, Told>) -> (usize, usize) {
    let (mut fence, mut turns, mut last) = (0, 0, [String::new(), String::new()]);
    let mut holder = ' ';
    let mut read = Vec::new();
    for line in text.split_inclusive('\n') {
        let tag = line.chars().next().unwrap();
        let was = told.get(line).unwrap_or_else(|| panic!("seed {seed}: a torn or mixed line: {line:?}"));
        assert_ne!(*was, Told::Refused, "seed {seed}: {line:?}");
        if let Told::Typed(under) = was {
            assert!(*under >= fence, "seed {seed}: {line:?} under {under} behind {fence}");
            assert!(*under > fence || tag == holder, "seed {seed}: {line:?} in the other's turn {fence}");
            turns += usize::from(*under > fence);
            (fence, holder) = (*under, tag);
        }
        let before = &mut last[usize::from(tag == 'B')];
        assert!(before.as_str() < line, "seed {seed}: {line:?} behind {before:?}");
        *before = line.to_owned();
        read.push(line);
    }
    read.sort_unstable();
    for (line, told) in told.iter().filter(|(_, told)| **told != Told::Refused) {
        assert!(read.binary_search(&line.as_str()).is_ok(), "seed {seed}: {line:?} is not there: {told:?}");
    }
    (read.len(), turns)
}

fn duel(seed: u64, kills: u64, lines_between: u64) {
    let world = World::new();
    let (session, file) = world.recorder("cat");
    let writers = [('A', "agent:a"), ('B', "human:b")].map(|(tag, who)| Writer::new(&world, session, tag, who, seed));
    let (stop, lines) = (AtomicBool::new(false), AtomicU64::new(0));
    let writers = std::thread::scope(|scope| {
        let spawned = writers.map(|writer| scope.spawn(|| writer.write_until(&stop, &lines)));
        for kill in 0..=kills {
            let aim = lines.load(Ordering::SeqCst) + lines_between;
            until("lines", || {
                (lines.load(Ordering::SeqCst) >= aim || spawned.iter().any(|s| s.is_finished())).then_some(())
            });
            if kill < kills {
                world.kill_host();
                world.start_host();
            }
        }
        stop.store(true, Ordering::SeqCst);
        spawned.map(|writer| writer.join().unwrap())
    });
    world.root(session).send(b"END").unwrap();
    until("the end", || received(&file).ends_with(b"END").then_some(()));
    let text = String::from_utf8(received(&file)).unwrap();
    let repeated: u64 = writers.iter().map(|writer| writer.repeated).sum();
    let told: BTreeMap<_, _> = writers.into_iter().flat_map(|writer| writer.told).collect();
    let refused = told.values().filter(|told| **told == Told::Refused).count();
    let (read, turns) = check(seed, text.trim_end_matches("END"), &told);
    println!("seed {seed}: {read} lines in {turns} turns, {refused} refused, {kills} kills, {repeated} sent again");
    assert!(read > 50 && turns > 10 && refused > 10 && (kills == 0 || repeated > 0), "seed {seed}: no duel");
    world.journal(session);
}

#[test]
fn two_writers_at_full_speed_never_mix_within_a_turn() {
    duel(Random::seed(), 0, 1500);
}

#[test]
fn nor_when_the_host_is_killed_again_and_again() {
    duel(Random::seed(), 6, 150);
}

#[test]
fn a_message_that_is_sent_again_is_typed_and_recorded_once() {
    for kill in [false, true] {
        let world = World::new();
        let (session, file) = world.recorder("cat");
        let mut bot = world.operator("agent:bot", session);
        let params = bot.next_send(b"once", None);
        let first = bot.link.call_with_bytes::<op::Send>(&params, b"once").unwrap().0;
        if kill {
            world.kill_host();
            world.start_host();
            bot = world.as_operator(&bot.who, session);
        }
        let again = bot.link.call_with_bytes::<op::Send>(&params, b"once").unwrap().0;
        assert_eq!(again.fence, first.fence, "killed: {kill}");
        bot.send(b"end").unwrap();
        until("the end", || received(&file).ends_with(b"end").then_some(()));
        assert_eq!(received(&file), b"onceend", "killed: {kill}");
        let keys = |entry: Entry| match entry.record.act {
            Act::Typed(burst) => burst.keys.map(|keys| keys.0),
            _ => None,
        };
        let typed: Vec<u8> = world.journal(session).into_iter().filter_map(keys).flatten().collect();
        assert_eq!(typed, b"onceend", "killed: {kill}");
    }
}

#[test]
fn who_only_sent_something_has_the_turn_for_a_breath() {
    let world = World::new();
    let (session, _) = world.recorder("cat");
    let (mut bot, mut ann) = (world.operator("agent:bot", session), world.operator("human:ann", session));
    let began = Instant::now();
    let typed = bot.send(b"x").unwrap();
    let waits = ann.request().unwrap();
    assert_eq!((waits.fence, waits.before), (None, Some(0)));
    let turn = until("the turn", || {
        let turn = ann.turn().unwrap();
        turn.holder.as_ref().is_some_and(|holder| holder.actor == ann.actor()).then_some(turn)
    });
    assert!(began.elapsed().as_millis() >= 2_990, "{:?}", began.elapsed());
    assert!(turn.fence > typed.fence && turn.queue.is_empty(), "{turn:?}");
}
