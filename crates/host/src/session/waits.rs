//! Waiting for a session: its end, a state, a port.

use super::Session;
use holdfast_graph::{SocketKind, ports};
use holdfast_observe::Spared;
use holdfast_observe::graph::{Depth, snapshot};
use holdfast_observe::network::Network;
use holdfast_wire::attention::{Listener, Now, Until};
use holdfast_wire::params::{Life, WaitAnswer, WaitParams};
use std::time::Duration;
use tokio::time::Instant;

/// Between two readings of how many sockets there are; when the number has moved they are looked at.
const PORT_PAUSE: Duration = Duration::from_millis(40);
/// Looked at all the same after this long: one socket that closes hides another that opens.
const PORT_SURE: Duration = Duration::from_secs(1);

/// Counts who waits for a state, however the waiting ends.
struct Waiter<'a>(&'a Session);

impl<'a> Waiter<'a> {
    fn new(session: &'a Session) -> Waiter<'a> {
        session.track.waiters.set(session.track.waiters.get() + 1);
        Waiter(session)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.track.waiters.set(self.0.track.waiters.get() - 1);
    }
}

impl Session {
    /// Waits until something has come, or the session has ended.
    pub async fn wait(&self, params: &WaitParams) -> WaitAnswer {
        let limit = params.timeout_ms.map(Duration::from_millis);
        let mut answer = WaitAnswer { exit: None, state: None, listener: None };
        match params.until {
            Until::Exit => {
                self.until(limit, || (self.view_life() != Life::Running).then_some(())).await;
            }
            Until::Idle => answer.state = self.wait_state(limit, |now| *now == Now::IdlePrompt).await,
            Until::Waiting => answer.state = self.wait_state(limit, |now| matches!(now, Now::Waiting { .. })).await,
            Until::Port(port) => answer.listener = self.wait_port(limit, port).await,
        }
        answer.exit = self.state.borrow().spec.exit;
        answer
    }

    /// A state that was seen from now on.
    async fn wait_state(
        &self,
        limit: Option<Duration>,
        wanted: impl Fn(&Now) -> bool,
    ) -> Option<holdfast_wire::attention::StateView> {
        let _waiter = Waiter::new(self);
        let before = self.track.looks.get();
        self.stirred();
        let come = self.until(limit, || {
            if self.view_life() != Life::Running {
                return Some(None);
            }
            let seen = self.track.seen.borrow();
            let fresh = seen.as_ref().filter(|_| self.track.looks.get() > before);
            fresh.filter(|seen| wanted(&seen.now)).cloned().map(Some)
        });
        come.await.flatten().map(|seen| self.state_view(&seen))
    }

    async fn wait_port(&self, limit: Option<Duration>, port: u16) -> Option<Listener> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        let mut counts = Network::new(false).ok();
        loop {
            if self.view_life() != Life::Running {
                return None;
            }
            let (keeper, spared) = (self.state.borrow().keeper_pid, self.own.spared());
            // Milliseconds for a large tree: off this thread.
            let looked = crate::shares::aside(move || Ok(listener(keeper, port, &spared)));
            if let Some(found) = looked.await.ok().flatten() {
                return Some(found);
            }
            let sure = Instant::now() + PORT_SURE;
            loop {
                let now = Instant::now();
                if deadline.is_some_and(|at| at <= now) {
                    return None;
                }
                let until = deadline.map_or(now + PORT_PAUSE, |at| at.min(now + PORT_PAUSE));
                let ended = || (self.view_life() != Life::Running).then_some(());
                let is_over = self.until(Some(until - now), ended).await.is_some();
                if is_over || Instant::now() >= sure || counts.as_mut().is_some_and(Network::moved) {
                    break;
                }
            }
        }
    }
}

fn listener(keeper: u32, port: u16, spared: &Spared) -> Option<Listener> {
    let graph = snapshot(keeper, Depth::Sockets, None, spared).ok()?;
    let open = ports(&graph).into_iter().find(|open| open.kind == SocketKind::Stream && open.address.port() == port)?;
    let holder = graph.processes.iter().find(|process| open.holders.contains(&process.id))?;
    Some(Listener { pid: holder.pid, address: open.address })
}
