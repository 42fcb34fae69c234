//! The state, and the one way it changes.

use crate::act::{Act, Ask, By, Change, Outcome, Record};
use crate::deed::{Deed, DeedId, Open};
use crate::grants::{Grant, Ledger};
use crate::refusal::Refusal;
use crate::turn::{Frozen, Hold, How, OperatorId, Turn, Waiting};
use holdfast_types::{Actor, ActorId};
use holdfast_types::{Fence, Offset, TimeMs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Past fences whose holders are remembered: a host that was away learns late what was typed under them.
const PAST_MAX: usize = 64;
/// Clients' connections to the keeper that are remembered: several times as many as it serves at once.
const JOINED_MAX: usize = 256;

/// An attached actor.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Operator {
    /// Who.
    pub actor: Actor,
    /// Cut off since then.
    pub away_since: Option<TimeMs>,
}

/// Everything an authority knows: a function of its records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct State {
    pub(super) turn: Turn,
    pub(super) fence: Fence,
    pub(super) incarnation: u32,
    pub(super) queue: VecDeque<Waiting>,
    pub(super) frozen: Option<Frozen>,
    pub(super) operators: BTreeMap<OperatorId, Operator>,
    pub(super) last_operator: u32,
    pub(super) ledger: Ledger,
    /// Who held the latest fences.
    pub(super) past: VecDeque<(Fence, Actor)>,
    /// The host's latest numbers at the keeper of this life.
    #[serde(default)]
    pub(super) links: VecDeque<u32>,
    /// Clients' latest numbers at the keeper of this life, and whose they are.
    #[serde(default)]
    pub(super) joined: VecDeque<(u32, ActorId)>,
    /// When somebody whom the host did not let in typed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stranger_ms: Option<TimeMs>,
    /// How far the keeper's log is in the journal.
    #[serde(default)]
    pub(super) logged: u64,
    /// The output head when a terminal last typed by itself.
    #[serde(default)]
    pub(super) wrote_at: Offset,
    /// How many hosts came back to this session.
    #[serde(default)]
    pub(super) restarts: u32,
    /// Deeds that are not over.
    #[serde(default)]
    pub(super) open: BTreeMap<DeedId, Open>,
    #[serde(default)]
    pub(super) last_deed: u64,
    /// What is missing of the journal, as the host found it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) damaged: Option<String>,
    /// When the last record was written.
    pub(super) time_ms: TimeMs,
    /// The last record, if it was a refusal: who asked, what, and the code.
    pub(super) refused: Option<(ActorId, String, String)>,
}

impl State {
    /// Who may write now.
    #[must_use]
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    /// The newest fence.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Whether a seizure may be among the changes that a keeper with this fence has not heard of: what it was typed before that and its
    /// program has not read must go. A turn that only passed on drops nothing, as it would have with its host alive.
    #[must_use]
    pub fn owes_flush(&self, keeper: Fence) -> bool {
        let is_seized = self.turn.hold().is_some_and(|hold| hold.how == How::Seized);
        keeper < self.fence && (is_seized || keeper.0 + 1 < self.fence.0)
    }

    /// Which life of the session this is.
    #[must_use]
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Requests for the turn, first in first.
    pub fn queue(&self) -> impl Iterator<Item = &Waiting> {
        self.queue.iter()
    }

    /// Who froze the session, while it is frozen.
    #[must_use]
    pub fn frozen(&self) -> Option<&Frozen> {
        self.frozen.as_ref()
    }

    /// Attached actors.
    pub fn operators(&self) -> impl Iterator<Item = (OperatorId, &Operator)> {
        self.operators.iter().map(|(id, operator)| (*id, operator))
    }

    /// Live grants, oldest first.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.ledger.grants.values()
    }

    /// Actors whose class default was revoked.
    pub fn barred(&self) -> impl Iterator<Item = ActorId> {
        self.ledger.barred.iter().copied()
    }

    /// Whether this connection to the keeper is, or was not long ago, a host's.
    #[must_use]
    pub fn is_link(&self, connection: u32) -> bool {
        self.links.contains(&connection)
    }

    /// Whether this connection to the keeper is, or was not long ago, that of a client of this actor.
    #[must_use]
    pub fn is_client_of(&self, actor: ActorId, connection: u32) -> bool {
        self.joined.contains(&(connection, actor))
    }

    /// When somebody whom the host did not let in typed last, if that ever happened.
    #[must_use]
    pub fn stranger_ms(&self) -> Option<TimeMs> {
        self.stranger_ms
    }

    /// The position up to which the keeper's log is in the journal.
    #[must_use]
    pub fn logged(&self) -> u64 {
        self.logged
    }

    /// The output head when a terminal last typed by itself, without the host.
    #[must_use]
    pub fn wrote_at(&self) -> Offset {
        self.wrote_at
    }

    /// How many hosts came back to this session.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// What is missing of the journal, if it was ever damaged.
    #[must_use]
    pub fn damaged(&self) -> Option<&str> {
        self.damaged.as_deref()
    }

    /// Deeds that were recorded and are not over, oldest first.
    pub fn open(&self) -> impl Iterator<Item = (DeedId, &Open)> {
        self.open.iter().map(|(id, open)| (*id, open))
    }

    /// Who held a fence, if that is not long ago.
    #[must_use]
    pub fn holder_of(&self, fence: Fence) -> Option<&Actor> {
        self.past.iter().rev().find(|(past, _)| *past == fence).map(|(_, actor)| actor)
    }

    /// Whether somebody else than this actor had the turn after that fence. What is not remembered counts as somebody else's.
    #[must_use]
    pub fn was_anothers(&self, actor: ActorId, since: Fence) -> bool {
        let is_forgotten = self.past.len() >= PAST_MAX && self.past.front().is_some_and(|(oldest, _)| *oldest > since);
        is_forgotten || self.past.iter().any(|(fence, by)| *fence > since && by.id != actor)
    }

    /// Whether an operator was told to let go, and has not.
    #[must_use]
    pub fn is_letting_go(&self, operator: OperatorId) -> bool {
        let tells = |deed: &Deed| matches!(deed, Deed::Detach { operators } if operators.contains(&operator));
        self.open.values().any(|open| tells(&open.deed))
    }

    pub(super) fn waits(&self, actor: ActorId) -> bool {
        self.queue.iter().any(|waiting| waiting.by.id == actor)
    }

    pub(super) fn is_repeated(&self, by: &Actor, ask: &Ask, refusal: &Refusal) -> bool {
        self.refused
            .as_ref()
            .is_some_and(|(who, what, code)| *who == by.id && what == ask.word() && code == refusal.code())
    }

    /// Takes in one record: the only way the state changes.
    pub fn apply(&mut self, record: &Record) {
        if let Act::Header { state: Some(state), .. } = &record.act {
            *self = (**state).clone();
        }
        self.time_ms = self.time_ms.max(record.time_ms);
        for change in &record.changes {
            self.change(change, record);
        }
        self.fence = self.fence.max(record.fence);
        if record.act == Act::Restarted {
            self.restarts += 1;
        }
        if record.by == By::Unknown {
            self.stranger_ms = Some(record.time_ms);
        }
        self.refused = match (&record.outcome, record.by.actor(), &record.act) {
            (Outcome::Refused(refusal), Some(by), Act::Asked(ask)) => {
                Some((by.id, ask.word().to_owned(), refusal.code().to_owned()))
            }
            (Outcome::Refused(_), _, _) | (Outcome::Done, _, _) => None,
        };
        if record.outcome == Outcome::Done && record.act.writes() {
            self.active(record);
        }
    }

    /// A client of an actor has a connection to the keeper.
    fn join(&mut self, connection: u32, actor: ActorId) {
        self.joined.retain(|(other, _)| *other != connection);
        self.joined.push_back((connection, actor));
        if self.joined.len() > JOINED_MAX {
            self.joined.pop_front();
        }
    }

    /// The holder wrote.
    fn active(&mut self, record: &Record) {
        let Turn::Held(hold) = &mut self.turn else { return };
        if record.fence == hold.fence && record.by.actor().is_some_and(|by| by.id == hold.by.id) {
            hold.active = hold.active.max(record.time_ms);
            if hold.operator.is_none() || hold.how == How::Lent {
                let keeps = record.time_ms.saturating_add(Hold::keeps_ms(hold.how));
                hold.ends = hold.ends.max(Some(keeps));
            }
        }
    }

    fn change(&mut self, change: &Change, record: &Record) {
        match change {
            Change::Turn(turn) => {
                if let Some(hold) = turn.hold().filter(|hold| self.past.back().is_none_or(|(f, _)| *f < hold.fence)) {
                    self.past.push_back((hold.fence, hold.by.clone()));
                    if self.past.len() > PAST_MAX {
                        self.past.pop_front();
                    }
                }
                self.turn = turn.clone();
            }
            Change::Waits(waiting) => match self.queue.iter_mut().find(|other| other.by.id == waiting.by.id) {
                Some(other) => *other = waiting.clone(),
                None => self.queue.push_back(waiting.clone()),
            },
            Change::WaitsNoMore(actor) => self.queue.retain(|waiting| waiting.by.id != *actor),
            Change::Freeze(frozen) => self.frozen = frozen.clone(),
            Change::Here(id, actor) => {
                self.operators.insert(*id, Operator { actor: actor.clone(), away_since: None });
                self.last_operator = self.last_operator.max(id.0);
            }
            Change::Away(id) => {
                if let Some(operator) = self.operators.get_mut(id) {
                    operator.away_since = Some(record.time_ms);
                }
            }
            Change::Gone(id) => {
                self.operators.remove(id);
            }
            Change::Granted(grant) => {
                self.ledger.last = self.ledger.last.max(grant.id.0);
                self.ledger.grants.insert(grant.id, grant.clone());
            }
            Change::Dropped(id) => {
                self.ledger.grants.remove(id);
            }
            Change::Barred(actor) => {
                self.ledger.barred.insert(*actor);
            }
            Change::HumansOnly => {
                self.ledger.humans_only = true;
                if let Act::Damaged { what } = &record.act {
                    self.damaged = Some(what.clone());
                }
            }
            Change::Opened(id) => {
                self.last_deed = self.last_deed.max(id.0);
                if let (Some(by), Act::Asked(ask)) = (record.by.actor(), &record.act)
                    && let Some(deed) = Deed::of(ask)
                {
                    self.open.insert(*id, Open { deed, by: by.clone(), since: record.time_ms });
                }
            }
            Change::Closed(id) => {
                self.open.remove(id);
            }
            Change::Incarnation(number) => {
                self.incarnation = *number;
                self.links.clear();
                self.joined.clear();
                self.logged = 0;
            }
            Change::Link(connection) => {
                self.links.retain(|other| other != connection);
                self.links.push_back(*connection);
                if self.links.len() > PAST_MAX {
                    self.links.pop_front();
                }
            }
            Change::Joined(connection, actor) => self.join(*connection, *actor),
            Change::Forwarded(position) => self.logged = *position,
            Change::Logged(position) => {
                self.logged = *position;
                if let Act::Typed(burst) = &record.act {
                    self.wrote_at = self.wrote_at.max(burst.to);
                }
            }
        }
    }
}
