//! Every reachable state of the real authority, breadth first: within a bound of time steps and actors this is a proof.

use crate::model::{Move, Node};
use holdfast_authority::{Ask, Refusal, Reply, Rule, Turn};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// What an exploration saw: proof that it was not empty.
#[derive(Debug, Default)]
struct Seen {
    states: usize,
    moves: usize,
    crashes: usize,
    depth: usize,
    depth_max: usize,
    /// It ended because there was nothing new, not because of the depth.
    complete: bool,
    counts: BTreeMap<&'static str, usize>,
}

impl Seen {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    #[track_caller]
    fn must_have(&self, what: &[&'static str]) {
        // Every state nearer than the depth was expanded: the exploration ended for want of new ones, or at its bound.
        assert!(
            self.complete || self.depth == self.depth_max,
            "it ended at depth {} of {}",
            self.depth,
            self.depth_max
        );
        assert!(self.states > 1_000, "only {} states", self.states);
        for what in what {
            assert!(self.counts.get(what).is_some_and(|n| *n > 0), "no {what} in {self:?}");
        }
    }
}

/// Explores from a node up to a depth; `moves` says what can happen, `inside` whether crashes inside steps are tried.
fn explore(start: Node, depth_max: usize, inside: bool, moves: impl Fn(&Node) -> Vec<Move>) -> Seen {
    let mut seen = Seen { depth_max, ..Seen::default() };
    let mut known = HashSet::from([start.key()]);
    let mut open: VecDeque<(Node, Vec<Move>)> = VecDeque::from([(start, vec![])]);
    seen.complete = true;
    while let Some((node, path)) = open.pop_front() {
        seen.states += 1;
        seen.depth = path.len();
        for step in moves(&node) {
            let fail = |what: String| -> ! { panic!("{what}\nafter {path:#?}\nby {step:?}") };
            let made = node.make(&step).unwrap_or_else(|what| fail(what));
            tally(&mut seen, &node, &step, &made.answer.reply);
            if let Err(what) = claims(&node, &step, &made.answer.reply) {
                fail(what);
            }
            if inside {
                seen.crashes += node.crash_inside(&made).unwrap_or_else(|what| fail(what));
            }
            let key = made.node.key();
            if known.contains(&key) {
                continue;
            }
            if path.len() == depth_max {
                seen.complete = false;
                continue;
            }
            known.insert(key);
            let path = path.iter().cloned().chain([step]).collect();
            open.push_back((made.node, path));
        }
    }
    seen
}

/// What an answer must be, whatever the state.
fn claims(node: &Node, step: &Move, reply: &Result<Reply, Refusal>) -> Result<(), String> {
    let human = |i: &usize| matches!(node.names[*i], "ann" | "bob");
    match step {
        Move::TypeLate(_) if reply.is_ok() => Err("a write under an old fence was accepted".into()),
        Move::Ask(i, Ask::Seize { .. }) if human(i) => {
            let entitled =
                node.authority.rights(&crate::world::actor(node.names[*i]), node.now).covers("seize".parse().unwrap());
            let got = matches!(reply, Ok(Reply::Turn { .. }));
            if got == entitled { Ok(()) } else { Err(format!("seize by a human, entitled: {entitled}, got it: {got}")) }
        }
        Move::Type(_) if reply.is_ok() && node.authority.state().frozen().is_some() => Err("input while frozen".into()),
        _ => Ok(()),
    }
}

fn tally(seen: &mut Seen, node: &Node, step: &Move, reply: &Result<Reply, Refusal>) {
    seen.moves += 1;
    let held = matches!(node.authority.state().turn(), Turn::Held(_));
    match (step, reply) {
        (Move::Type(_), Ok(_)) => seen.count("typed"),
        (Move::Crash, Ok(_)) if held => seen.count("crash while held"),
        (Move::Ask(_, Ask::Seize { .. }), Ok(_)) if held => seen.count("seized"),
        (Move::Ask(_, Ask::Give { .. }), Ok(_)) => seen.count("gave"),
        (Move::Ask(_, Ask::Thaw), Ok(_)) => seen.count("thawed"),
        (Move::Ask(_, Ask::Grant { .. }), Ok(_)) => seen.count("granted"),
        (Move::Ask(_, Ask::Revoke(_)), Ok(Reply::Revoked(ids))) if ids.len() > 1 => seen.count("cascaded"),
        (Move::Ask(_, Ask::Revoke(_)), Ok(_)) => seen.count("revoked"),
        (_, Ok(Reply::Waiting { .. })) => seen.count("waited"),
        (_, Ok(_)) => {}
        (_, Err(Refusal::TurnHeld { .. })) => seen.count("turn_held"),
        (_, Err(Refusal::FenceStale { .. })) => seen.count("fence_stale"),
        (_, Err(Refusal::Frozen { .. })) => seen.count("frozen"),
        (_, Err(Refusal::TooWide { .. })) => seen.count("too_wide"),
        (_, Err(Refusal::TooLong { .. })) => seen.count("too_long"),
        (_, Err(Refusal::Denied { rule: Rule::HumansFirst, .. })) => seen.count("humans_first"),
        (_, Err(Refusal::Denied { .. })) => seen.count("denied"),
        (_, Err(_)) => {}
    }
}

const TURN: &[&str] = &[
    "typed",
    "seized",
    "gave",
    "thawed",
    "waited",
    "turn_held",
    "fence_stale",
    "frozen",
    "humans_first",
    "crash while held",
];

#[test]
fn every_state_of_a_human_and_an_agent_is_sound_also_after_a_crash_inside_any_step() {
    let start = Node::start(&["ann", "bot"], &[("bot", "seize")]);
    let seen = explore(start, 6, true, |node| node.moves(&[31_000]));
    println!("{seen:?}");
    seen.must_have(TURN);
}

#[test]
fn two_humans_and_an_agent_stay_sound_to_a_depth() {
    let start = Node::start(&["ann", "bob", "bot"], &[("bot", "seize")]);
    let seen = explore(start, 4, false, |node| node.moves(&[10_000, 31_000]));
    println!("{seen:?}");
    seen.must_have(TURN);
}

#[test]
fn no_order_of_grants_and_revocations_makes_one_wider_than_its_giver() {
    let start = Node::start(&["ann", "bot", "kit"], &[]);
    let seen = explore(start, 3, false, |node| {
        let mut moves = node.grant_moves(&["seize,grant", "end"], &[10_000]);
        moves.push(Move::Pass(10_000));
        moves.push(Move::Crash);
        moves
    });
    println!("{seen:?}");
    seen.must_have(&["granted", "revoked", "cascaded", "too_wide", "too_long", "humans_first", "denied"]);
}
