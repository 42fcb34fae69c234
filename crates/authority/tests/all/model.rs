//! The real authority beside a modelled keeper and clock: every move there is, and what must hold after each.

use crate::world::{Keeper, START_MS, actor, burst, policy};
use holdfast_authority::*;
use holdfast_types::Actor;
use holdfast_types::{Fence, TimeMs};
use std::collections::BTreeMap;

/// One thing that can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    Attach(usize),
    Resume(usize),
    Leave(usize),
    CutOff(usize),
    Type(usize),
    TypeLate(usize),
    Ask(usize, Ask),
    Pass(TimeMs),
    Crash,
}

/// A session in one state, its keeper and the time.
#[derive(Clone)]
pub struct Node {
    pub authority: Authority,
    pub keeper: Keeper,
    pub now: TimeMs,
    pub names: &'static [&'static str],
    /// The operator each actor last attached as.
    pub attached: Vec<Option<OperatorId>>,
}

/// What came of a move.
pub struct Made {
    pub node: Node,
    pub answer: Answer,
    pub records: Vec<Record>,
}

impl Node {
    /// Started by ann, who then granted these.
    pub fn start(names: &'static [&'static str], grants: &[(&str, &str)]) -> Node {
        let mut node = Node {
            authority: Authority::new(policy()),
            keeper: Keeper::default(),
            now: START_MS,
            names,
            attached: vec![None; names.len()],
        };
        let now = Moment { time_ms: START_MS, at: 0 };
        let started = node.authority.handle(Input::Started { by: actor("ann") }, now);
        node.keeper.perform(&started.effects).unwrap();
        for (to, rights) in grants {
            let ask = Ask::Grant { to: actor(to), rights: rights.parse().unwrap(), until: None };
            let by = Caller { actor: actor("ann"), operator: None, token: None };
            let granted = node.authority.handle(Input::Asked { by, ask, proof: None }, now);
            assert!(granted.reply.is_ok());
        }
        node
    }

    /// Whether an actor is attached; `Some(false)` while it is cut off.
    fn here(&self, i: usize) -> Option<bool> {
        let id = self.attached[i]?;
        let mut operators = self.authority.state().operators();
        operators.find(|(other, _)| *other == id).map(|(_, operator)| operator.away_since.is_none())
    }

    /// None of its operators is left, not even a dead one.
    fn is_gone(&self, i: usize) -> bool {
        self.authority.state().operators().all(|(_, operator)| operator.actor != actor(self.names[i]))
    }

    fn caller(&self, i: usize) -> Caller {
        let operator = self.attached[i].filter(|_| self.here(i) == Some(true));
        Caller { actor: actor(self.names[i]), operator, token: None }
    }

    /// Every move of turns and connections that makes sense here.
    pub fn moves(&self, steps_ms: &[TimeMs]) -> Vec<Move> {
        let mut moves: Vec<Move> = steps_ms.iter().map(|step| Move::Pass(*step)).collect();
        moves.push(Move::Crash);
        for i in 0..self.names.len() {
            moves.extend([Move::Type(i), Move::TypeLate(i)]);
            match self.here(i) {
                None if self.is_gone(i) => moves.push(Move::Attach(i)),
                None => {}
                Some(true) => moves.extend([Move::Leave(i), Move::CutOff(i)]),
                Some(false) => {
                    moves.extend([Move::Resume(i), Move::Leave(i)]);
                    // Cut off twice without time passing is enough: more only adds dead operators.
                    let own = self.authority.state().operators().filter(|(_, o)| o.actor == actor(self.names[i]));
                    if own.count() < 2 {
                        moves.push(Move::Attach(i));
                    }
                }
            }
            let seize = |freeze| Ask::Seize { freeze, reason: String::new() };
            let asks = [Ask::Take, Ask::Request, Ask::Release, seize(false), seize(true), Ask::Thaw];
            moves.extend(asks.into_iter().map(|ask| Move::Ask(i, ask)));
            let others = (0..self.names.len()).filter(|j| *j != i);
            moves.extend(others.map(|j| Move::Ask(i, Ask::Give { to: actor(self.names[j]) })));
        }
        moves
    }

    /// Every move of grants.
    pub fn grant_moves(&self, rights: &[&str], steps_ms: &[TimeMs]) -> Vec<Move> {
        let mut moves = Vec::new();
        for i in 0..self.names.len() {
            for j in (0..self.names.len()).filter(|j| *j != i) {
                let to = actor(self.names[j]);
                moves.push(Move::Ask(i, Ask::Revoke(Revoke::Actor(to.id))));
                for rights in rights {
                    for until in [None].into_iter().chain(steps_ms.iter().map(|step| Some(self.now + step * 2))) {
                        let ask = Ask::Grant { to: to.clone(), rights: rights.parse().unwrap(), until };
                        moves.push(Move::Ask(i, ask));
                    }
                }
            }
            moves.extend(self.authority.state().grants().map(|g| Move::Ask(i, Ask::Revoke(Revoke::Grant(g.id)))));
        }
        moves
    }

    fn input(&mut self, made: &Move) -> Input {
        match made {
            Move::Attach(i) => {
                let operator = self.authority.next_operator();
                self.attached[*i] = Some(operator);
                Input::Attached { by: actor(self.names[*i]), operator }
            }
            Move::Resume(i) => Input::Resumed { by: actor(self.names[*i]), operator: self.attached[*i].unwrap() },
            Move::Leave(i) => Input::Left { operator: self.attached[*i].take().unwrap() },
            Move::CutOff(i) => Input::CutOff { operator: self.attached[*i].unwrap() },
            Move::Type(i) => Input::Types { by: self.caller(*i), fence: None },
            Move::TypeLate(i) => {
                let fence = Some(Fence(self.authority.state().fence().0.wrapping_sub(1)));
                Input::Types { by: self.caller(*i), fence }
            }
            Move::Ask(i, ask) => Input::Asked { by: self.caller(*i), ask: ask.clone(), proof: None },
            Move::Pass(step) => {
                self.now += step;
                Input::Tick
            }
            Move::Crash => Input::Restarted { keeper_fence: self.keeper.fence, connection: 1 },
        }
    }

    /// Makes a move and checks everything that must hold.
    pub fn make(&self, made: &Move) -> Result<Made, String> {
        let mut node = self.clone();
        let input = node.input(made);
        let types = matches!(input, Input::Types { .. });
        let now = Moment { time_ms: node.now, at: 0 };
        let mut answer = node.authority.handle(input, now);
        if let (true, Ok(Reply::Turn { fence })) = (types, &answer.reply) {
            if node.keeper.frozen {
                return Err("input while frozen".into());
            }
            // The keeper has the bytes, and tells the host of them.
            let wrote = Input::Wrote { fence: *fence, burst: burst(0, "x"), log: 0, from: Source::Host };
            answer.effects.extend(node.authority.handle(wrote, now).effects);
        }
        node.keeper.perform(&answer.effects)?;
        let records = records(&answer.effects);
        let made = Made { node, answer, records };
        made.node.must_be_sound()?;
        self.must_follow(&made)?;
        Ok(made)
    }

    /// What holds in every state.
    fn must_be_sound(&self) -> Result<(), String> {
        let state = self.authority.state();
        let must = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        must(self.keeper.fence == state.fence(), "the keeper has the newest fence")?;
        must(self.keeper.frozen == state.frozen().is_some(), "the tree is frozen as recorded")?;
        must(self.authority.unsupported().is_empty(), "no grant is wider or longer than its giver's")?;
        must(self.authority.next_deadline().is_none_or(|at| at > self.now), "nothing is overdue")?;
        if let Turn::Held(hold) = state.turn() {
            must(hold.fence == state.fence(), "the holder has the newest fence")?;
            let rights = self.authority.rights(&hold.by, self.now);
            must(rights.meets("type,run,seize".parse().unwrap()), "the holder may write")?;
            let mut operators = state.operators();
            let is_there = |id| operators.any(|(other, operator)| other == id && operator.actor == hold.by);
            must(hold.operator.is_none_or(is_there), "the holder is attached as it says")?;
        }
        Ok(())
    }

    /// What holds of every step, record by record.
    fn must_follow(&self, made: &Made) -> Result<(), String> {
        let mut state = self.authority.state().clone();
        for record in &made.records {
            let before = state.clone();
            state.apply(record);
            follows(self.authority.policy(), &before, record, &state)?;
        }
        if state == *made.node.authority.state() { Ok(()) } else { Err("the records are not the state".into()) }
    }

    /// A host that dies at any point of a step comes back sound, and its keeper with it.
    pub fn crash_inside(&self, made: &Made) -> Result<usize, String> {
        let effects = &made.answer.effects;
        for cut in 0..effects.len() {
            let mut node = Node { now: made.node.now, ..self.clone() };
            node.keeper.perform(&effects[..cut])?;
            let mut state = self.authority.clone();
            let written = records(&effects[..cut]);
            state.replay_more(&written);
            node.authority = state;
            node.make(&Move::Crash).map_err(|what| format!("after a crash behind effect {cut}: {what}"))?;
        }
        Ok(effects.len())
    }

    /// Two nodes with the same key behave alike: times relative, numbers left out.
    pub fn key(&self) -> String {
        use std::fmt::Write;
        let state = self.authority.state();
        let name = |actor: &Actor| actor.handle.name().to_owned();
        let age = |at: TimeMs| (self.now - at).min(31_000) / 1000;
        let rank: BTreeMap<OperatorId, usize> = state.operators().enumerate().map(|(i, (id, _))| (id, i)).collect();
        let place = |id: Option<OperatorId>| id.map(|id| rank.get(&id).copied());
        let mut key = String::new();
        if let Turn::Held(hold) = state.turn() {
            let ends = hold.ends.map(|ends| ends - self.now);
            let active = if ends.is_some() { 0 } else { age(hold.active) };
            let _ = write!(key, "{} {:?} {active} {ends:?} {:?};", name(&hold.by), place(hold.operator), hold.how);
        }
        for waiting in state.queue() {
            let _ = write!(key, "{} {:?};", name(&waiting.by), place(waiting.operator));
        }
        let _ = write!(key, "|{:?}|", state.frozen().map(|frozen| name(&frozen.by)));
        for (id, operator) in state.operators() {
            let mine = self.attached.contains(&Some(id));
            let _ = write!(key, "{} {:?} {mine};", name(&operator.actor), operator.away_since.map(age));
        }
        for grant in state.grants() {
            let ends = grant.until.map(|until| until - self.now);
            let _ = write!(key, "{} {:?} {} {ends:?};", name(&grant.to), grant.by.as_ref().map(name), grant.rights);
        }
        for id in state.barred() {
            let _ = write!(key, "{id:?}");
        }
        key
    }
}

/// The records among effects.
pub fn records(effects: &[Effect]) -> Vec<Record> {
    let record = |effect: &Effect| if let Effect::Record(record) = effect { Some((**record).clone()) } else { None };
    effects.iter().filter_map(record).collect()
}

/// What holds of every record.
fn follows(policy: &Policy, before: &State, record: &Record, after: &State) -> Result<(), String> {
    let must = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}: {record:?}")) };
    let turned = before.turn().hold().map(|h| h.fence) != after.turn().hold().map(|h| h.fence);
    must(after.fence() >= before.fence(), "fences never shrink")?;
    must(!turned || after.fence() > before.fence(), "every change of turn has a larger fence")?;
    let by = record.by.actor();
    let done = record.outcome == Outcome::Done;
    match &record.act {
        Act::Typed(_) if done => {
            let hold = after.turn().hold();
            must(hold.is_some_and(|hold| Some(&hold.by) == by), "only the holder writes")?;
            must(before.frozen().is_none(), "a frozen session takes no input")?;
        }
        Act::Asked(Ask::Seize { .. }) => {
            let human = by.is_some_and(|by| policy.is_human(by));
            let victim = before.turn().hold().map(|hold| &hold.by);
            let from_human = victim.is_some_and(|victim| policy.is_human(victim) && Some(victim) != by);
            must(!done || human || !from_human, "an agent never seizes from a human")?;
            must(!done || after.turn().hold().map(|h| &h.by) == by, "whoever seizes has the turn")?;
        }
        Act::Asked(Ask::Revoke(Revoke::Grant(id))) if done => {
            must(after.grants().all(|grant| grant.id != *id), "what was revoked is gone")?;
        }
        _ => {}
    }
    // Nothing but itself, time, a restart and another human ends a human's turn.
    let lost = before.turn().hold().filter(|hold| turned && policy.is_human(&hold.by)).map(|hold| &hold.by);
    let itself = by.is_none() || by == lost || by.is_some_and(|by| policy.is_human(by));
    must(lost.is_none() || itself, "a human's turn was taken")
}
