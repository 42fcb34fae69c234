//! Flows that steps of other flows start: found again under their id, cancelled with their parent, and their end is its outcome.

use super::views::unrecorded;
use super::{Engine, Live, OPEN_FLOWS_MAX};
use crate::clock::now_ms;
use crate::protocol::Trouble;
use crate::store::Row;
use holdfast_flow::{Event, Flow, Hosted, Lineage, Parent, Recorded, State, text_of};
use serde_json::{Value, json};

impl Engine {
    /// Starts the flow of a step, or finds it: it runs, or has ended while nobody told its parent.
    pub(super) fn start_child(&mut self, id: &str, n: u32, child: &str, name: String, input: Value) {
        let Some(parent) = self.live.get(id).map(|live| live.flow.as_parent(n)) else { return };
        let started = match self.store.row(child) {
            Ok(None) => self.begin_child(id, child, name, input, parent),
            Ok(Some(row)) => self.find_child(&row, &parent),
            Err(error) => Err(unrecorded(&error)),
        };
        if let Err(trouble) = started {
            let why = format!("{child} cannot be started: {}", trouble.message);
            self.change(id, |flow| Ok(flow.block(&why, now_ms())));
        }
    }

    fn begin_child(
        &mut self,
        id: &str,
        child: &str,
        name: String,
        input: Value,
        parent: Parent,
    ) -> Result<(), Trouble> {
        if self.open_flows() >= OPEN_FLOWS_MAX {
            return Err(Trouble::new("too_many", format!("{OPEN_FLOWS_MAX} flows are open")));
        }
        let Some(live) = self.live.get(id) else { return Ok(()) };
        // A flow of the parent's own file goes on with that file; any other is a worker's.
        let is_ours = live.definition.as_ref().is_some_and(|file| file.named(&name).is_some());
        let code = if is_ours { live.flow.code.clone() } else { String::new() };
        let (by, cwd, skip_timers) = (live.flow.by.clone(), live.flow.cwd.clone(), live.flow.skips_timers());
        let lineage = Lineage { parent: Some(parent), ..Lineage::default() };
        let nonce = super::requests::nonce()?;
        let hosted =
            live.flow.hosted.clone().filter(|how| how.names.contains(&name)).map(|how| (live.flow.coded.clone(), how));
        self.begin(child, Event::Started { name, input, code, by, nonce, cwd, skip_timers, lineage }, hosted)
    }

    /// Records a flow's beginning, and lets it decide.
    pub(super) fn begin(&mut self, id: &str, started: Event, hosted: Option<(String, Hosted)>) -> Result<(), Trouble> {
        let mut flow = Flow::new(id);
        let decided = match hosted {
            Some(hosted) => flow.start_hosted(started, hosted, now_ms()),
            None => flow.start(started, now_ms()),
        };
        let definition = self.definition(&flow.code, &flow.name).map_err(|error| unrecorded(&error))?;
        self.live.insert(id.to_owned(), Live::new(flow, definition));
        self.note(id, (0, 1), decided)?;
        self.decide(id)
    }

    /// One that is there: it must be this step's own.
    fn find_child(&mut self, row: &Row, parent: &Parent) -> Result<(), Trouble> {
        let known = match self.live.get(&row.id) {
            Some(live) => live.flow.parent.clone(),
            None => self.replayed(&row.id)?.parent,
        };
        if known.as_ref() != Some(parent) {
            return Err(Trouble::new("id_taken", "another flow has this id".to_owned()));
        }
        if row.ended_ms.is_some() {
            self.tell_parent(&row.id);
        }
        Ok(())
    }

    fn replayed(&self, id: &str) -> Result<Flow, Trouble> {
        let history: Vec<Recorded> = self.store.history(id, 0).map_err(|error| unrecorded(&error))?;
        Ok(Flow::replay(id, &history))
    }

    /// Cancels the flow of a step whose own flow ends; one that never began is over at once.
    pub(super) fn stop_child(&mut self, id: &str, n: u32, child: &str) {
        let is_own = |parent: &Option<Parent>| parent.as_ref().is_some_and(|one| one.flow == id && one.n == n);
        self.awaken(child);
        match self.live.get(child).map(|live| is_own(&live.flow.parent)) {
            Some(true) => {
                let by = self.live.get(id).map(|live| live.flow.by.clone()).unwrap_or_default();
                // One that is ending already is waited for.
                self.change(child, |flow| flow.cancel(&format!("{id} ends"), &by, now_ms()));
            }
            Some(false) => self.child_over(id, n, child, false, json!({"why": "it was not started"})),
            None => match self.replayed(child) {
                Ok(flow) if is_own(&flow.parent) => self.tell_parent(child),
                Ok(_) | Err(_) => self.child_over(id, n, child, false, json!({"why": "it was not started"})),
            },
        }
    }

    /// A flow has ended: the step that started it is over.
    pub(super) fn tell_parent(&mut self, id: &str) {
        let (parent, state) = match self.live.get(id) {
            Some(live) => (live.flow.parent.clone(), live.flow.state()),
            None => match self.replayed(id) {
                Ok(flow) => (flow.parent.clone(), flow.state()),
                Err(_) => return,
            },
        };
        let Some(parent) = parent else { return };
        // A flow that got the parent's id later is another one.
        if self.live.get(&parent.flow).is_none_or(|live| live.flow.as_parent(parent.n) != parent) {
            return;
        }
        let failed = |word: &str, value: &Value| {
            let why = text_of(value).chars().take(1_000).collect::<String>();
            (false, json!({"flow": id, "state": word, "why": why}))
        };
        let (ok, value) = match &state {
            State::Completed { value } => (true, value.clone()),
            State::Failed { value } => failed("failed", value),
            State::Cancelled { value } => failed("cancelled", value),
            State::Deciding | State::Waiting | State::Blocked { .. } | State::Undoing | State::Continued => return,
        };
        self.child_over(&parent.flow, parent.n, id, ok, value);
    }

    fn child_over(&mut self, id: &str, n: u32, child: &str, ok: bool, value: Value) {
        self.change(id, |flow| Ok(flow.child_over(n, child, ok, value, now_ms())));
    }
}
