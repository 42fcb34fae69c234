//! What clients ask about contracts: everything of a run, and an actor's record.

use super::follow::attempts;
use crate::serve::Server;
use holdfast_types::{Actor, ActorId};
use holdfast_wire::contracts::{RecordParams, RecordView, TraceParams, TraceView};
use holdfast_wire::{Code, Fault};

impl Server {
    /// Everything that is known of a run.
    pub(crate) fn run_trace(&self, params: &TraceParams, actor: &Actor) -> Result<TraceView, Fault> {
        let (session, run) = self.run_there(&params.run, actor)?;
        let latest = session.contracts.latest(run.id);
        let run = session.run(latest).unwrap_or(run);
        let trace = session.contracts.get(run.id);
        Ok(TraceView {
            attempts: attempts(&session, run.id),
            run: session.with_contract(session.run_view(&run)),
            contract: trace.as_ref().map(|trace| trace.contract.clone()),
            decision: trace.as_ref().and_then(|trace| trace.decision.clone()),
            effects: trace.as_ref().and_then(|trace| trace.effects.clone()),
            outcome: trace.and_then(|trace| trace.outcome),
        })
    }

    /// How an actor's runs under contracts came out. Where it went wrong is shown to humans, and to the actor itself.
    pub(crate) fn actor_record(&self, params: &RecordParams, actor: &Actor) -> Result<RecordView, Fault> {
        let known = self.registry.shared.actors.borrow().by_handle(&params.handle);
        let Some(whose) = known.filter(|known| known.id != ActorId([0; 32])) else {
            return Err(
                Fault::new(Code::NotFound, format!("no actor {}", params.handle)).hint("list them: holdfast actor ls")
            );
        };
        let mut view = self.gate().records.borrow().view(&whose, params.action.as_deref());
        if whose.id != actor.id && !self.registry.shared.policy_is_human(actor) {
            view.actions.iter_mut().for_each(|one| one.last_unexpected = None);
        }
        Ok(view)
    }
}
