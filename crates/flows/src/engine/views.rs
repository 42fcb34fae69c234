//! Flows as clients see them, and why something was refused.

use super::{Engine, Live};
use crate::protocol::{ChildView, FlowAnswer, FlowView, Trouble};
use crate::store::{StoreError, older_id};
use holdfast_flow::{Flow, Refusal, State};
use serde_json::Value;

/// Children whose status is looked up for one answer: each may be read from disk.
const CHILDREN_SHOWN_MAX: usize = 100;

impl Engine {
    pub(super) fn view_of(&self, id: &str) -> Result<FlowView, Trouble> {
        if let Some(live) = self.live.get(id) {
            return Ok(FlowView { changed: self.changes.of(id), ..view(&live.flow, Some(live), None) });
        }
        let Some(row) = self.store.row(id).map_err(|error| unrecorded(&error))? else { return Err(self.not_open(id)) };
        let history = self.store.history(id, 0).map_err(|error| unrecorded(&error))?;
        let mut flow = Flow::replay(id, &history);
        flow.wants &= row.asleep.is_none();
        Ok(FlowView { changed: self.changes.of(id), ..view(&flow, None, row.ended_ms) })
    }

    /// A flow and its history: the one that goes on, or an older one by its number.
    pub(super) fn get(&self, id: &str, after: u64, generation: Option<u32>) -> Result<FlowAnswer, Trouble> {
        let flow = self.view_of(id)?;
        if let Some(older) = generation.filter(|wanted| *wanted != flow.generation) {
            return self.older(id, older, after);
        }
        let history = self.store.history(id, after).map_err(|error| unrecorded(&error))?;
        let children = if after == 0 { self.children(id) } else { Vec::new() };
        Ok(FlowAnswer { flow, children, history })
    }

    fn older(&self, id: &str, generation: u32, after: u64) -> Result<FlowAnswer, Trouble> {
        let all = self.store.history(&older_id(id, generation), 0).map_err(|error| unrecorded(&error))?;
        if all.is_empty() {
            let message = format!("{id} has no history {generation}");
            let hint = format!("the current one: holdfast flow history {id}; older ones are kept for 30 days");
            return Err(Trouble::new("no_such_flow", message).hint(hint));
        }
        let replayed = Flow::replay(id, &all);
        let mut flow = view(&replayed, None, None);
        (flow.state, flow.generation) = (State::Continued, generation);
        (flow.status, flow.waits_for) = (flow.state.words(&[]), Vec::new());
        let history = all.into_iter().skip(after as usize).collect();
        Ok(FlowAnswer { flow, children: Vec::new(), history })
    }

    /// The flows that the steps of a flow started.
    fn children(&self, id: &str) -> Vec<ChildView> {
        let replayed = |id: &str| self.store.history(id, 0).ok().map(|history| Flow::replay(id, &history));
        let of = |flow: &Flow| {
            let one = |(n, child): (u32, &holdfast_flow::Child)| {
                let status = self.view_of(&child.id).map_or_else(|_| "NOT STARTED".to_owned(), |view| view.status);
                ChildView { n, id: child.id.clone(), name: child.flow.clone(), status }
            };
            flow.children().take(CHILDREN_SHOWN_MAX).map(one).collect()
        };
        match self.live.get(id) {
            Some(live) => of(&live.flow),
            None => replayed(id).as_ref().map(of).unwrap_or_default(),
        }
    }
}

fn view(flow: &Flow, live: Option<&Live>, ended_ms: Option<u64>) -> FlowView {
    let state = flow.state();
    let mut waits_for = flow.waits();
    if let Some(live) = live {
        for one in &mut waits_for {
            if let Some((session, held_up)) = live.runs.get(&one.n) {
                one.session = session.clone().or_else(|| one.session.take());
                one.held_up.clone_from(held_up);
            }
        }
    }
    let status = match &state {
        State::Deciding if live.is_some_and(|live| live.definition.is_none() && live.leased.is_none()) => {
            "WAITING_FOR(worker)".to_owned()
        }
        state => state.words(&waits_for),
    };
    FlowView {
        id: flow.id.clone(),
        name: flow.name.clone(),
        by: flow.by.clone(),
        started_ms: flow.started_ms,
        ended_ms,
        events: flow.seq,
        changed: 0,
        generation: flow.generation,
        parent: flow.parent.as_ref().map(|parent| parent.flow.clone()),
        state,
        status,
        waits_for,
    }
}

pub(super) fn in_json(answer: &impl serde::Serialize) -> Result<Value, Trouble> {
    serde_json::to_value(answer).map_err(|e| Trouble::new("internal", e.to_string()))
}

pub(super) fn refused(refusal: &Refusal) -> Trouble {
    let (code, hint) = match refusal {
        Refusal::Moved => ("history_moved", ""),
        Refusal::Ended => ("ended", ""),
        Refusal::NoQuestion => ("no_question", "see what it waits for: holdfast flow show ID"),
        Refusal::WhichQuestion => ("ambiguous", "use --step N"),
        Refusal::NoOption(_) => ("bad_request", ""),
        Refusal::TooMany(_) => ("too_many", ""),
        Refusal::NoStep(_) => ("no_step", "see its steps: holdfast flow history ID"),
        Refusal::StillOn(_) => ("busy", "wait for it, or cancel the flow"),
        Refusal::Undone(..) => ("undone", "go back to it or a step before it"),
        Refusal::Twice(_) => ("twice", "if that is right: --again"),
        Refusal::NotStuck => ("not_stuck", "see what it waits for: holdfast flow show ID"),
    };
    Trouble::new(code, refusal.to_string()).hint(hint)
}

pub(super) fn unrecorded(error: &StoreError) -> Trouble {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Trouble::new("unrecorded", format!("{error}{cause}")).hint("nothing was done; check the disk and ask again")
}
