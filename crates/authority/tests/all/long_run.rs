//! Long random lives of a session, with crashes, from a seed.

use crate::model::{Move, Node};
use holdfast_authority::journal::{Chain, read, verify};
use holdfast_authority::{Ask, Authority, Moment, Refusal};
use holdfast_types::SessionId;

/// A small generator: tests bring their own chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n
    }
}

fn live(seed: u64, steps: usize) -> [usize; 5] {
    let mut chance = Chance(seed);
    let mut node = Node::start(&["ann", "bob", "bot", "kit"], &[("bot", "seize,grant")]);
    let session = SessionId::from_random_bits(u128::from(seed));
    let mut chain = Chain::default();
    // The first segment's state is in its header, as of any later one.
    chain.append(&Authority::new(node.authority.policy().clone()).rotate(session, None, Moment { time_ms: 0, at: 0 }));
    let mut segment = Vec::new();
    let [mut forwarded, mut seized, mut refused, mut crashed, mut granted] = [0; 5];
    for step in 0..steps {
        if step % 500 == 0 {
            let moment = Moment { time_ms: node.now, at: 0 };
            segment = chain.append(&node.authority.rotate(session, chain.last(), moment));
        }
        let mut moves = node.moves(&[700, 10_000, 31_000]);
        if chance.below(3) == 0 {
            moves = node.grant_moves(&["type,grant", "seize,grant", "end", "observe"], &[20_000]);
        }
        let made = moves.swap_remove(chance.below(moves.len()));
        let fail = |what: String| -> ! { panic!("seed {seed} step {step} {made:?}: {what}") };
        let result = node.make(&made).unwrap_or_else(|what| fail(what));
        if step % 7 == 0 {
            node.crash_inside(&result).unwrap_or_else(|what| fail(what));
        }
        result.records.iter().for_each(|record| segment.extend(chain.append(record)));
        match (&made, &result.answer.reply) {
            (Move::Type(_), Ok(_)) => forwarded += 1,
            (Move::Crash, _) => crashed += 1,
            (Move::Ask(_, Ask::Seize { .. }), Ok(_)) => seized += 1,
            (Move::Ask(_, Ask::Grant { .. }), Ok(_)) => granted += 1,
            (_, Err(Refusal::TurnHeld { .. })) => refused += 1,
            (_, _) => {}
        }
        node = result.node;
    }
    verify(&segment, None).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    let entries = read(&segment, None).entries;
    let replayed = Authority::replay(node.authority.policy().clone(), entries.iter().map(|entry| &entry.record));
    assert_eq!(replayed, node.authority, "seed {seed}");
    [forwarded, seized, refused, crashed, granted]
}

#[test]
fn long_random_lives_stay_sound_and_come_back_from_their_last_segment() {
    for seed in [1, 0x9e37_79b9_7f4a_7c15, 0x00c0_ffee] {
        let seen = live(seed, 3_000);
        println!("seed {seed}: forwarded, seized, turn_held, crashed, granted {seen:?}");
        assert!(seen.iter().all(|n| *n > 5), "seed {seed}: {seen:?}");
    }
}
