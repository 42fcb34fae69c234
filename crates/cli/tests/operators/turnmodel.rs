//! The turn, its fence, the queue and the grants of one session, one call at a time: what is promised and nothing else.
//!
//! Actors are numbers: humans first, then agents, then those who hold nothing by themselves. Only humans grant and revoke
//! here, so no grant stands on another.

use crate::linear::{Call, Model};

/// A turn that was taken by writing, without being attached, is free again this long after the last write, at the earliest.
/// A little less than promised: the host counts whole milliseconds.
const PASSING_NS: u64 = 2_990_000_000;

/// The rights that matter here, as bits.
pub const OBSERVE: u8 = 1;
pub const TYPE: u8 = 2;
pub const SEIZE: u8 = 4;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Take,
    Request,
    Withdraw,
    Give { to: u8 },
    Release,
    Seize,
    Send { under: Option<u64> },
    Grant { to: u8, rights: u8 },
    RevokeGrant { id: u32 },
    RevokeActor { actor: u8 },
    Look,
    Attach,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It was allowed, and the caller has the turn under this fence.
    Turn(u64),
    /// It waits behind so many.
    Waiting(u32),
    /// It was allowed.
    Done,
    /// The grant made.
    Granted(u32),
    /// The grants that fell.
    Revoked(Vec<u32>),
    /// Who has the turn, the fence, who waits.
    View(Option<u8>, u64, Vec<u8>),
    /// Somebody else has it.
    TurnHeld(u8),
    /// The turn has changed since.
    FenceStale(u64),
    NotHolder,
    Denied,
    NoSuchGrant,
    /// The connection broke.
    Unknown,
}

/// One call.
#[derive(Debug, Clone)]
pub struct What {
    pub by: u8,
    /// Through an attached client: the turn may follow it to that terminal, under a new fence.
    pub attached: bool,
    pub asked: Asked,
    pub heard: Heard,
    /// How the turn stood right behind it, where the answer says so.
    pub view: Option<(Option<u8>, u64, Vec<u8>)>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub holder: Option<u8>,
    pub fence: u64,
    pub queue: Vec<u8>,
    /// The holder wrote without asking: when its last write was made.
    pub wrote: Option<u64>,
    pub barred: u16,
    pub grants: Vec<(u32, u8, u8)>,
    pub last_grant: u32,
}

/// Who there is: so many humans, then so many agents.
#[derive(Debug, Clone, Copy)]
pub struct TurnModel {
    pub humans: u8,
    pub agents: u8,
}

impl TurnModel {
    fn is_human(&self, actor: u8) -> bool {
        actor < self.humans
    }

    fn rights(&self, state: &State, actor: u8) -> u8 {
        let by_class = match actor {
            human if self.is_human(human) => OBSERVE | TYPE | SEIZE,
            agent if agent < self.humans + self.agents => OBSERVE | TYPE,
            _ => 0,
        };
        let default = if state.barred >> actor & 1 == 1 { 0 } else { by_class };
        let granted = state.grants.iter().filter(|(_, to, _)| *to == actor);
        granted.fold(default, |all, (_, _, rights)| all | rights)
    }

    fn may_write(&self, state: &State, actor: u8) -> bool {
        self.rights(state, actor) & (TYPE | SEIZE) != 0
    }

    /// The turn to somebody, or to nobody: under a new fence.
    fn pass(state: &mut State, to: Option<u8>) {
        state.fence += 1;
        state.holder = to;
        state.wrote = None;
        state.queue.retain(|waiting| Some(*waiting) != to);
    }

    /// What follows from every change: who may not write has and waits for nothing, and a free turn goes to who waits first.
    fn settle(&self, mut state: State) -> State {
        if state.holder.is_some_and(|holder| !self.may_write(&state, holder)) {
            TurnModel::pass(&mut state, None);
        }
        let here = state.clone();
        state.queue.retain(|waiting| self.may_write(&here, *waiting));
        if let (None, Some(first)) = (state.holder, state.queue.first().copied()) {
            TurnModel::pass(&mut state, Some(first));
        }
        state
    }

    /// Bytes of who may write: it has the turn, or takes it.
    fn write(mut next: State, made: u64, what: &What) -> Vec<(State, Heard)> {
        let holds = next.holder == Some(what.by);
        let mut ways = Vec::new();
        if holds {
            next.wrote = next.wrote.map(|_| made);
            ways.push(next.clone());
        }
        if !holds || what.attached {
            let wrote = if holds { next.wrote } else { Some(made) };
            TurnModel::pass(&mut next, Some(what.by));
            ways.push(State { wrote, ..next });
        }
        ways.into_iter().map(|way| (way.clone(), Heard::Turn(way.fence))).collect()
    }

    /// What a human grants or takes back.
    fn change_rights(mut next: State, asked: &Asked) -> (State, Heard) {
        let live = |state: &State| state.grants.iter().map(|(id, ..)| *id).collect::<Vec<_>>();
        let before = live(&next);
        match asked {
            Asked::Grant { to, rights } => {
                next.last_grant += 1;
                next.grants.push((next.last_grant, *to, *rights));
                let id = next.last_grant;
                return (next, Heard::Granted(id));
            }
            Asked::RevokeGrant { id } if !before.contains(id) => return (next, Heard::NoSuchGrant),
            Asked::RevokeGrant { id } => next.grants.retain(|(live, ..)| live != id),
            Asked::RevokeActor { actor } => {
                next.grants.retain(|(_, to, _)| to != actor);
                next.barred |= 1 << actor;
            }
            other => unreachable!("{other:?} changes no rights"),
        }
        let after = live(&next);
        (next, Heard::Revoked(before.into_iter().filter(|id| !after.contains(id)).collect()))
    }

    /// What the call does to a state where nothing passes by itself, and what it answers.
    fn act(&self, state: &State, made: u64, what: &What) -> Vec<(State, Heard)> {
        let by = what.by;
        let mut next = state.clone();
        let one = |state: State, heard: Heard| vec![(self.settle(state), heard)];
        let refuse = |heard: Heard| vec![(state.clone(), heard)];
        let has = |right: u8| self.rights(state, by) & right != 0;
        let holds = state.holder == Some(by);
        match &what.asked {
            Asked::Take | Asked::Request | Asked::Withdraw | Asked::Give { .. } | Asked::Release
                if !self.may_write(state, by) =>
            {
                refuse(Heard::Denied)
            }
            Asked::Request if holds => refuse(Heard::Turn(state.fence)),
            Asked::Take | Asked::Request if state.holder.is_none() || holds => {
                TurnModel::pass(&mut next, Some(by));
                let fence = next.fence;
                one(next, Heard::Turn(fence))
            }
            Asked::Take => refuse(Heard::TurnHeld(state.holder.unwrap())),
            Asked::Request => {
                if !next.queue.contains(&by) {
                    next.queue.push(by);
                }
                let before = next.queue.iter().position(|waiting| *waiting == by).unwrap();
                one(next, Heard::Waiting(before as u32))
            }
            Asked::Withdraw => {
                next.queue.retain(|waiting| *waiting != by);
                one(next, Heard::Done)
            }
            Asked::Give { .. } | Asked::Release if !holds => refuse(Heard::NotHolder),
            Asked::Give { to } if !self.may_write(state, *to) => refuse(Heard::Denied),
            Asked::Give { to } => {
                TurnModel::pass(&mut next, Some(*to));
                one(next, Heard::Done)
            }
            Asked::Release => {
                TurnModel::pass(&mut next, None);
                one(next, Heard::Done)
            }
            Asked::Seize if !has(SEIZE) => refuse(Heard::Denied),
            Asked::Seize
                if state.holder.is_some_and(|from| self.is_human(from) && from != by) && !self.is_human(by) =>
            {
                refuse(Heard::Denied)
            }
            Asked::Seize => {
                next.queue.clear();
                TurnModel::pass(&mut next, Some(by));
                let fence = next.fence;
                one(next, Heard::Turn(fence))
            }
            Asked::Send { .. } if !has(TYPE) => refuse(Heard::Denied),
            Asked::Send { .. } if state.holder.is_some_and(|holder| holder != by) => {
                refuse(Heard::TurnHeld(state.holder.unwrap()))
            }
            Asked::Send { under: Some(fence) } if *fence != state.fence => refuse(Heard::FenceStale(state.fence)),
            Asked::Send { .. } => TurnModel::write(next, made, what),
            Asked::Grant { .. } | Asked::RevokeGrant { .. } | Asked::RevokeActor { .. } => {
                let (next, heard) = TurnModel::change_rights(next, &what.asked);
                one(next, heard)
            }
            Asked::Look | Asked::Attach if !has(OBSERVE) => refuse(Heard::Denied),
            Asked::Look => refuse(Heard::View(state.holder, state.fence, state.queue.clone())),
            Asked::Attach => {
                let mut ways = refuse(Heard::Turn(state.fence));
                if holds {
                    // It comes back to a turn it had without this terminal: under a new fence.
                    TurnModel::pass(&mut next, Some(by));
                    let fence = next.fence;
                    ways.push((next, Heard::Turn(fence)));
                }
                ways
            }
        }
    }
}

impl Model for TurnModel {
    type State = State;
    type What = What;

    fn step(&self, state: &State, call: &Call<What>) -> Vec<State> {
        let mut starts = vec![state.clone()];
        if state.wrote.is_some_and(|wrote| call.answered.saturating_sub(wrote) >= PASSING_NS) {
            let mut lapsed = state.clone();
            TurnModel::pass(&mut lapsed, None);
            starts.push(self.settle(lapsed));
        }
        let fits = |(next, heard): &(State, Heard)| {
            (call.doubtful || *heard == call.what.heard)
                && call.what.view.as_ref().is_none_or(|(holder, fence, queue)| {
                    (*holder, *fence) == (next.holder, next.fence) && *queue == next.queue
                })
        };
        let ways = starts.iter().flat_map(|start| self.act(start, call.made, &call.what));
        ways.filter(fits).map(|(next, _)| next).collect()
    }
}

/// A session nobody has the turn of; its first grant is the spawner's.
pub fn fresh() -> State {
    State { holder: None, fence: 0, queue: vec![], wrote: None, barred: 0, grants: vec![], last_grant: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::check;

    /// `actor asks: answer`, one behind the other, a second each; `&` begins together with the call before.
    fn explained(history: &str) -> bool {
        let mut calls: Vec<Call<What>> = Vec::new();
        for (n, line) in history.split(" | ").enumerate() {
            let (line, together) = line.strip_prefix("& ").map_or((line, false), |line| (line, true));
            let (asks, heard) = line.split_once(": ").unwrap();
            let words: Vec<&str> = asks.split(' ').collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
            let asked = match words[1] {
                "takes" => Asked::Take,
                "requests" => Asked::Request,
                "gives" => Asked::Give { to: number(2).unwrap() as u8 },
                "releases" => Asked::Release,
                "seizes" => Asked::Seize,
                "sends" => Asked::Send { under: number(2) },
                "grants" => Asked::Grant { to: number(2).unwrap() as u8, rights: OBSERVE | TYPE },
                "revokes" => Asked::RevokeActor { actor: number(2).unwrap() as u8 },
                "looks" => Asked::Look,
                other => panic!("{other}"),
            };
            let (word, of) = heard.split_once(' ').unwrap_or((heard, "0"));
            let of: u64 = of.parse().unwrap();
            let heard = match word {
                "turn" => Heard::Turn(of),
                "waits" => Heard::Waiting(of as u32),
                "done" => Heard::Done,
                "granted" => Heard::Granted(of as u32),
                "revoked" => Heard::Revoked(if of == 0 { vec![] } else { vec![of as u32] }),
                "held" => Heard::TurnHeld(of as u8),
                "stale" => Heard::FenceStale(of),
                "free" => Heard::View(None, of, vec![]),
                "has" => Heard::View(Some((of / 100) as u8), of % 100, vec![]),
                "nothing" => Heard::NotHolder,
                "denied" => Heard::Denied,
                "unknown" => Heard::Unknown,
                other => panic!("{other}"),
            };
            let made = if together { calls.last().unwrap().made + 1 } else { n as u64 * 1_000_000_000 };
            let answered = n as u64 * 1_000_000_000 + 500;
            if together {
                calls.last_mut().unwrap().answered = answered;
            }
            let what = What { by: number(0).unwrap() as u8, attached: false, asked, heard, view: None };
            calls.push(Call { made, answered, doubtful: what.heard == Heard::Unknown, what });
        }
        // 0 and 1 are humans, 2 and 3 agents, 4 holds nothing.
        check(&TurnModel { humans: 2, agents: 2 }, fresh(), calls).is_ok()
    }

    #[test]
    fn histories_as_they_should_be_are_explained() {
        for good in [
            "2 takes: turn 1 | 3 takes: held 2 | 2 releases: done | 3 takes: turn 3",
            "2 takes: turn 1 | 3 requests: waits 0 | 2 releases: done | 3 sends 3: turn 3",
            "2 takes: turn 1 | & 3 takes: held 2",
            "3 takes: held 2 | & 2 takes: turn 1",
            "2 sends: turn 1 | 0 seizes: turn 2 | 2 sends: held 0 | 2 sends 1: held 0",
            "2 takes: turn 1 | 2 takes: turn 2 | 2 sends 1: stale 2",
            "4 takes: denied | 0 grants 4: granted 2 | 4 takes: turn 1 | 0 revokes 4: revoked 2 | 2 looks: free 2",
            "2 takes: unknown | 3 takes: held 2",
            "2 takes: unknown | 3 takes: turn 1",
            "2 takes: turn 1 | 0 seizes: unknown | 2 sends: turn 1",
            "2 sends: turn 1 | 3 takes: held 2 | 3 looks: has 201 | 0 looks: has 201 | 3 takes: turn 3",
        ] {
            assert!(explained(good), "{good}");
        }
    }

    #[test]
    fn histories_that_break_a_promise_are_not() {
        for bad in [
            "2 takes: turn 1 | 3 takes: turn 2",
            "2 takes: turn 1 | & 3 takes: turn 2",
            "2 takes: turn 1 | 3 takes: held 2 | 2 releases: done | 3 takes: turn 2",
            "2 takes: turn 1 | 2 takes: turn 2 | 2 sends 1: turn 1",
            "2 takes: turn 1 | 0 seizes: turn 2 | 2 sends: turn 1",
            "2 takes: turn 1 | 2 releases: done | 0 looks: has 201",
            "2 takes: turn 1 | 0 seizes: turn 2 | & 1 seizes: turn 2",
            "0 takes: turn 1 | 2 seizes: turn 2",
            "4 sends: turn 1",
            "0 grants 4: granted 2 | 4 takes: turn 1 | 0 revokes 4: revoked 2 | 4 sends 1: turn 1",
            "0 grants 4: granted 2 | 4 takes: turn 1 | 0 revokes 4: revoked 2 | 2 looks: has 401",
            "2 takes: turn 1 | 3 requests: waits 0 | 1 requests: waits 1 | 2 releases: done | 1 sends: turn 3",
            "2 sends: turn 1 | 3 takes: turn 3",
            "2 takes: turn 1 | 0 looks: free 2 | 0 looks: free 2 | 0 looks: free 2 | 0 looks: free 2",
        ] {
            assert!(!explained(bad), "{bad}");
        }
    }
}
