//! One session's authority: who may do what now.
//!
//! The state changes only in [`State::apply`], by records; deciding reads the state and writes records. So the records of a
//! session, one behind the other, are its state, and a record that was written before a crash counts after it.

mod asks;
mod connections;
mod lapses;
mod revokes;
mod state;
mod writes;

pub use state::{Operator, State};

use crate::act::{Act, Ask, By, Change, Forked, Gate, Lapse, Leased, Outcome, Record, Restored};
use crate::effect::{Answer, Audience, Caller, Effect, Input, Moment, Reply, Said, Source};
use crate::grants::{Grant, GrantId, Policy};
use crate::journal::Link;
use crate::pace::{COMING, HUMANS_COMING, Paces};
use crate::refusal::{Refusal, Rule};
use crate::turn::{Hold, How, OperatorId, Turn};
use holdfast_types::Notice;
use holdfast_types::Proof;
use holdfast_types::{Actor, ActorClass};
use holdfast_types::{Fence, SessionId, TimeMs};
use holdfast_types::{Full, Places};
use holdfast_types::{Right, Rights, WRITING};

/// Most operators at once: beyond it a session is a broadcast, which is another product. No program needs a quarter of them, and
/// people always find a place.
pub const OPERATORS: Places = Places { all: 256, not_human: 192, of_one: 64, of_human: 192 };
/// Most requests that wait: nobody waits behind more. An actor waits once.
pub const QUEUE: Places = Places { all: 64, not_human: 48, of_one: 1, of_human: 1 };
/// Most live grants, by who gave them: a hand-made list is far shorter, and each act looks through it.
pub const GRANTS: Places = Places { all: 1024, not_human: 768, of_one: 256, of_human: 768 };
/// Most deeds that are not over: all but a few are over at once.
pub const OPEN_MAX: usize = 64;

/// One session's authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    state: State,
    policy: Policy,
    paces: Paces,
}

/// One input being handled.
struct Step {
    now: Moment,
    proof: Option<Proof>,
    gate: Option<Gate>,
    effects: Vec<Effect>,
}

impl Step {
    fn tell(&mut self, to: Audience, notice: Notice) {
        self.effects.push(Effect::Tell { to, notice });
    }
}

impl Authority {
    /// Whether there is a place for one more of an actor's among those of others.
    fn must_fit<'a>(
        &self,
        places: Places,
        what: &str,
        who: &Actor,
        others: impl Iterator<Item = &'a Actor>,
    ) -> Result<(), Refusal> {
        let taken = others.map(|other| (other.id, self.policy.is_human(other)));
        let full = |full: Full| Refusal::TooMany { what: full.of(what), max: full.max() as u32 };
        places.admit(&who.id, self.policy.is_human(who), taken).map_err(full)
    }

    /// A session before anything happened in it.
    #[must_use]
    pub fn new(policy: Policy) -> Authority {
        Authority { state: State::default(), policy, paces: Paces::default() }
    }

    /// The authority that wrote these records. Follow it with [`Input::Restarted`].
    pub fn replay<'a>(policy: Policy, records: impl IntoIterator<Item = &'a Record>) -> Authority {
        let mut state = State::default();
        records.into_iter().for_each(|record| state.apply(record));
        Authority { state, policy, paces: Paces::default() }
    }

    /// Takes in further records of the same session: a follower, or the next segment.
    pub fn replay_more<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) {
        records.into_iter().for_each(|record| self.state.apply(record));
    }

    /// Takes in what happened; the effects are to be performed in order, each record before what follows it.
    pub fn handle(&mut self, input: Input, now: Moment) -> Answer {
        // A clock that was set back must not make anything last longer.
        let now = Moment { time_ms: now.time_ms.max(self.state.time_ms), ..now };
        let mut step = Step { now, proof: None, gate: None, effects: Vec::new() };
        // What a keeper did while nobody listened comes before what passed meanwhile: a holder that typed was not idle.
        let is_news = matches!(
            input,
            Input::Damaged { .. } | Input::Restarted { .. } | Input::Linked { .. } | Input::Wrote { .. }
        );
        if !is_news {
            self.lapse(&mut step);
        }
        let reply = self.decide(&mut step, input);
        self.lapse(&mut step);
        Answer { reply, effects: step.effects }
    }

    fn decide(&mut self, step: &mut Step, input: Input) -> Result<Reply, Refusal> {
        match input {
            Input::Started { by } => self.started(step, by),
            Input::Forked { by, of, parent } => self.forked(step, by, of, &parent),
            Input::Restored(restored) => self.restored(step, restored),
            Input::Leased(leased) => self.leased(step, leased),
            Input::Began { incarnation } => self.began(step, incarnation),
            Input::Restarted { keeper_fence, connection } => self.restarted(step, keeper_fence, connection),
            Input::Damaged { what } => self.damaged(step, what),
            Input::Linked { connection, log } => self.linked(step, connection, log),
            Input::Attached { by, operator } => self.attached(step, by, operator),
            Input::Resumed { by, operator } => self.resumed(step, by, operator),
            Input::Left { operator } => self.left(step, operator),
            Input::CutOff { operator } => self.cut_off(step, operator),
            Input::Types { by, fence } => self.types(step, &by, fence),
            Input::Awaited { by } => self.awaited(step, &by),
            Input::Unawaited => self.unawaited(step),
            Input::Wrote { fence, burst, log, from } => self.wrote(step, fence, burst, log, from),
            Input::Joined { operator, connection } => self.joined(step, operator, connection),
            Input::Asked { by, ask, proof } => {
                step.proof = proof;
                let answer = self.may_act(step, &by.actor).and_then(|()| self.asked(step, &by, &ask));
                if let Err(refusal) = &answer {
                    self.refused(step, &by, ask, refusal);
                }
                answer
            }
            Input::Judged { by, ask, proof, said } => {
                step.proof = proof;
                let answer = self.may_act(step, &by.actor).and_then(|()| self.judged(step, &by, &ask, said));
                if let Err(refusal) = &answer {
                    self.refused(step, &by, ask, refusal);
                }
                answer
            }
            Input::Did { deed, ending } => self.did(step, deed, ending),
            Input::Forgotten { actor } => self.forgotten(step, actor),
            Input::TokensEnded { tokens } => self.tokens_ended(step, &tokens),
            Input::Ended { exit } => self.ended(step, exit),
            Input::Tick => Ok(Reply::Done),
        }
    }

    /// A segment of the journal begins: the record to write first in it.
    pub fn rotate(&mut self, session: SessionId, previous: Option<Link>, now: Moment) -> Record {
        let state = previous.is_some().then(|| Box::new(self.state.clone()));
        // What is kept is for who writes the files to say.
        let act = Act::Header { session, previous, state, oldest: None, kept: None };
        let record = self.record(
            &Step { now, proof: None, gate: None, effects: Vec::new() },
            By::Host,
            act,
            self.state.fence,
            vec![],
        );
        self.state.apply(&record);
        record
    }

    /// The state, for showing.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What the host says. After changing it, send a [`Input::Tick`]: somebody may have lost something.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.policy
    }

    /// What the host says.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The number of the next operator to attach.
    #[must_use]
    pub fn next_operator(&self) -> OperatorId {
        OperatorId(self.state.last_operator + 1)
    }

    /// What an actor may do at a moment.
    #[must_use]
    pub fn rights(&self, actor: &Actor, now: TimeMs) -> Rights {
        self.state.ledger.envelope(&self.policy, actor).rights(now)
    }

    /// What an actor may do, and each right until when.
    #[must_use]
    pub fn envelope(&self, actor: &Actor) -> holdfast_types::Envelope {
        self.state.ledger.envelope(&self.policy, actor)
    }

    /// Live grants that their givers could not make now: none, unless the policy changed.
    #[must_use]
    pub fn unsupported(&self) -> Vec<GrantId> {
        self.state.ledger.unsupported(&self.policy).into_iter().collect()
    }

    /// The actor holds one of these rights; a refusal names the first.
    fn must(&self, step: &Step, actor: &Actor, rights: impl Into<Rights>) -> Result<(), Refusal> {
        let rights = rights.into();
        let refused = rights.iter().next().filter(|_| !self.rights(actor, step.now.time_ms).meets(rights));
        refused.map_or(Ok(()), |right| Err(Refusal::Denied { right, rule: Rule::Envelope }))
    }

    /// The operator a caller speaks through is attached, and its own.
    fn must_be_attached(&self, by: &Caller) -> Result<(), Refusal> {
        let Some(id) = by.operator else { return Ok(()) };
        let operator = self.state.operators.get(&id);
        let is_its = operator.is_some_and(|operator| operator.actor == by.actor && operator.away_since.is_none());
        if is_its { Ok(()) } else { Err(Refusal::NotAttached) }
    }

    /// Nothing but a vouched-for human takes from whoever calls itself human.
    fn may_take_from(&self, by: &Actor, from: &Actor) -> bool {
        by.id == from.id || from.handle.class() != ActorClass::Human || self.policy.is_human(by)
    }

    fn mint(&self) -> Fence {
        Fence(self.state.fence.0 + 1)
    }

    fn record(&self, step: &Step, by: By, act: Act, fence: Fence, changes: Vec<Change>) -> Record {
        Record {
            time_ms: step.now.time_ms,
            at: step.now.at,
            by,
            act,
            fence,
            incarnation: self.state.incarnation,
            outcome: Outcome::Done,
            changes,
            proof: None,
            gate: None,
        }
    }

    /// Records an act with what it changes; effects are pushed after it.
    fn commit(&mut self, step: &mut Step, by: By, act: Act, fence: Fence, changes: Vec<Change>) {
        let mut record = self.record(step, by, act, fence, changes);
        if matches!(record.act, Act::Asked(_)) {
            record.proof = step.proof.take();
            record.gate = step.gate.take();
        }
        self.state.apply(&record);
        step.effects.push(Effect::Record(Box::new(record)));
    }

    /// A hold that starts now.
    fn hold(&self, step: &Step, by: &Caller, how: How) -> Hold {
        let now = step.now.time_ms;
        let ends = match by.operator {
            Some(_) => Hold::attached_until(how, now),
            None => Some(now.saturating_add(Hold::keeps_ms(how))),
        };
        Hold { by: by.actor.clone(), operator: by.operator, fence: self.mint(), since: now, active: now, ends, how }
    }

    /// Records an act by which the turn goes to somebody, or becomes free; then the keeper hears of it.
    fn pass(&mut self, step: &mut Step, by: By, act: Act, mut changes: Vec<Change>, turn: Turn) {
        let fence = self.mint();
        let writer = turn.hold().and_then(|hold| hold.operator);
        if let Some(hold) = turn.hold().filter(|hold| self.state.waits(hold.by.id)) {
            changes.push(Change::WaitsNoMore(hold.by.id));
        }
        changes.push(Change::Turn(turn));
        self.commit(step, by, act, fence, changes);
        step.effects.push(Effect::Fence { fence, writer });
    }

    fn tell_turn(&self, step: &mut Step) {
        let holder = self.state.turn.hold().map(|hold| hold.by.handle.clone());
        step.tell(Audience::All, Notice::Turn { holder });
    }

    fn tell_rights(&self, step: &mut Step, actor: &Actor) {
        let rights = self.rights(actor, step.now.time_ms);
        for (id, _) in self.state.operators.iter().filter(|(_, operator)| operator.actor.id == actor.id) {
            step.tell(Audience::One(*id), Notice::Rights { rights });
        }
    }

    /// Others than humans act at a pace: what they record must not push out what others did.
    fn may_act(&mut self, step: &Step, by: &Actor) -> Result<(), Refusal> {
        let may = self.policy.is_human(by) || self.paces.acts(by.id, step.now.time_ms);
        if may { Ok(()) } else { Err(Refusal::TooFast { what: "acts".into() }) }
    }

    /// And so does everybody come and go.
    fn may_come(&mut self, step: &Step, by: &Actor) -> Result<(), Refusal> {
        let pace = if self.policy.is_human(by) { HUMANS_COMING } else { COMING };
        let may = self.paces.comes(by.id, pace, step.now.time_ms);
        if may { Ok(()) } else { Err(Refusal::TooFast { what: "attached clients".into() }) }
    }

    /// A refusal is recorded once: from somebody who holds anything here, and not again while nothing else happened. Of many
    /// different ones the first are; the others are counted, and told in one record.
    fn refused(&mut self, step: &mut Step, by: &Caller, ask: Ask, refusal: &Refusal) {
        let is_known = !self.rights(&by.actor, step.now.time_ms).is_empty();
        if !is_known
            || self.state.is_repeated(&by.actor, &ask, refusal)
            || !self.paces.records_refusal(&by.actor, step.now.time_ms)
        {
            return;
        }
        let mut record = self.record(step, By::Actor(by.actor.clone()), Act::Asked(ask), self.state.fence, vec![]);
        record.outcome = Outcome::Refused(refusal.clone());
        record.proof = step.proof.take();
        self.state.apply(&record);
        step.effects.push(Effect::Record(Box::new(record)));
    }
}
