//! Flows as clients see them, and why something was refused.

use super::{Engine, LISTED_MAX, Live};
use crate::protocol::{FlowAnswer, FlowView, Trouble};
use crate::store::StoreError;
use holdfast_flow::{Flow, Refusal, State};
use serde_json::Value;

impl Engine {
    pub(super) fn view_of(&self, id: &str) -> Result<FlowView, Trouble> {
        if let Some(live) = self.live.get(id) {
            return Ok(view(&live.flow, Some(live), None));
        }
        let Some(row) = self.store.row(id).map_err(|error| unrecorded(&error))? else { return Err(self.not_open(id)) };
        let history = self.store.history(id, 0).map_err(|error| unrecorded(&error))?;
        Ok(view(&Flow::replay(id, &history), None, row.ended_ms))
    }

    pub(super) fn list(&self, all: bool) -> Result<Vec<FlowView>, Trouble> {
        let rows = self.store.rows(all, LISTED_MAX).map_err(|error| unrecorded(&error))?;
        Ok(rows.iter().filter_map(|row| self.view_of(&row.id).ok()).collect())
    }

    pub(super) fn get(&self, id: &str, after: u64) -> Result<FlowAnswer, Trouble> {
        let flow = self.view_of(id)?;
        let history = self.store.history(id, after).map_err(|error| unrecorded(&error))?;
        Ok(FlowAnswer { flow, history })
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
        Refusal::NotStuck => ("not_stuck", "see what it waits for: holdfast flow show ID"),
    };
    Trouble::new(code, refusal.to_string()).hint(hint)
}

pub(super) fn unrecorded(error: &StoreError) -> Trouble {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Trouble::new("unrecorded", format!("{error}{cause}")).hint("nothing was done; check the disk and ask again")
}
