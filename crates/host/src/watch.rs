//! `session.watch`: what happened, for those who may observe it.

use crate::serve::Server;
use holdfast_types::{Actor, Right, SessionId};
use holdfast_wire::Fault;
use holdfast_wire::attention::{Event, WatchAnswer, WatchParams};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Longest wait of one question: short against the lease that a watcher has ([`crate::attention`]).
const WAIT_MAX: Duration = Duration::from_secs(30);

impl Server {
    /// Events behind a number; waits for the first if asked to.
    pub(crate) async fn watch(&self, params: &WatchParams, actor: &Actor) -> Result<WatchAnswer, Fault> {
        let attention = &self.registry.shared.attention;
        let one = params.session.as_ref().map(|name| self.registry.find_for(name, actor, Right::Observe));
        let one = one.transpose()?;
        let after = params.after.unwrap_or_else(|| attention.newest());
        let anew = params.after.is_none();
        match &one {
            Some(session) => session.watch(anew),
            None => {
                for session in self.registry.all().iter().filter(|session| session.is_live()) {
                    session.watch(anew && session.rights(actor).has(Right::Observe));
                }
                attention.watch_all();
            }
        }
        let only = one.as_ref().map(|session| session.id);
        let deadline = Instant::now() + Duration::from_millis(params.wait_ms).min(WAIT_MAX);
        let mut from = after;
        loop {
            let grown = attention.grown.notified();
            tokio::pin!(grown);
            // Registered before the look, so that what comes between the two is not missed.
            grown.as_mut().enable();
            let mut answer = self.events(from, only, actor);
            if !answer.events.is_empty() || answer.lost > 0 || Instant::now() >= deadline {
                return Ok(answer);
            }
            from = std::mem::take(&mut answer.to);
            let _ = tokio::time::timeout_at(deadline, grown).await;
        }
    }

    /// Asked anew each time: what an actor may observe can change while it waits.
    fn events(&self, after: u64, only: Option<SessionId>, actor: &Actor) -> WatchAnswer {
        let sessions: BTreeMap<_, _> = self.registry.all().into_iter().map(|session| (session.id, session)).collect();
        let wanted = |event: &Event| {
            only.is_none_or(|id| id == event.session)
                && sessions.get(&event.session).is_some_and(|session| session.rights(actor).has(Right::Observe))
        };
        self.registry.shared.attention.behind(after, wanted)
    }
}
