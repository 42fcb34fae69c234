//! Ports that open and close in the sessions that somebody watches.
//!
//! The kernel tells of no ports. Its counts of sockets are read instead, some microseconds ten times a second, and only
//! when one has moved is it asked which sockets are open, and only when these are others are processes looked at. While
//! nobody watches nothing is read at all.

use crate::registry::Registry;
use crate::serve::Server;
use crate::session::Session;
use holdfast_graph::{SocketId, ports};
use holdfast_observe::Spared;
use holdfast_observe::graph::{Depth, snapshot};
use holdfast_observe::network::{Network, ports_mark};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// Between two readings of the counts: a person does not notice it, and it is one in ten thousand of a processor's time.
const PAUSE: Duration = Duration::from_millis(100);
/// Whatever the counts say, it is asked this often which sockets are open: one that closes hides another that opens.
const SURE: Duration = Duration::from_secs(10);
/// And where there are no counts.
const BLIND_PAUSE: Duration = Duration::from_secs(1);
/// Sessions that are new are looked for this often; a port that opens in one is noticed before.
const SESSIONS_PAUSE: Duration = Duration::from_millis(500);
/// Looks take at most this part of the time.
const COST_PART: u32 = 20;

/// Follows the ports for as long as the host runs.
pub(crate) async fn follow(server: Rc<Server>) {
    loop {
        server.registry.shared.attention.watched.notified().await;
        watch(&server.registry).await;
        server.registry.all().iter().for_each(|session| session.track.ports.forget());
    }
}

/// What is known of the ports of the whole machine.
struct Seen {
    counts: Option<Network>,
    mark: Option<u64>,
    sure_at: Instant,
}

impl Seen {
    /// Whether other ports may be open than the last time. Blocks for a millisecond at most.
    fn moved(&mut self) -> bool {
        let now = Instant::now();
        let is_moved = self.counts.as_mut().is_some_and(Network::moved);
        if !is_moved && now < self.sure_at {
            return false;
        }
        self.sure_at = now + if self.counts.is_some() { SURE } else { BLIND_PAUSE };
        let mark = ports_mark().ok();
        mark.is_none() || std::mem::replace(&mut self.mark, mark) != mark
    }
}

/// Watches until there is no watcher.
async fn watch(registry: &Registry) {
    let mut seen =
        Seen { counts: Network::new(false).ok(), mark: ports_mark().ok(), sure_at: Instant::now() + BLIND_PAUSE };
    let mut sessions_at = Instant::now();
    loop {
        let began = Instant::now();
        let is_moved = seen.moved();
        if is_moved || began >= sessions_at {
            let mut watched = registry.all();
            watched.retain(|session| session.is_live() && session.keeper_pid() != 0 && session.is_watched());
            if watched.is_empty() && !registry.shared.attention.is_watched() {
                return;
            }
            if !is_moved {
                // Those that are new, or that somebody begins to watch.
                watched.retain(|session| !session.track.ports.is_known());
            }
            if !watched.is_empty() {
                look(registry, &watched).await;
            }
            sessions_at = Instant::now() + SESSIONS_PAUSE;
        }
        let pause = tokio::time::sleep(PAUSE.max(began.elapsed() * COST_PART));
        let wanted = registry.shared.attention.watched.notified();
        tokio::select! {
            () = pause => {}
            // A client starts to watch, or asks for more: it gets what is new to it without delay.
            () = wanted => sessions_at = Instant::now(),
        }
    }
}

/// Looks at the sockets of these sessions, off this thread, and tells what is new.
async fn look(registry: &Registry, sessions: &[Rc<Session>]) {
    let keepers: Vec<u32> = sessions.iter().map(|session| session.keeper_pid()).collect();
    let spared = registry.shared.own.spared();
    let open = move |keeper| open(keeper, &spared);
    let looked = tokio::task::spawn_blocking(move || keepers.into_iter().map(open).collect::<Vec<_>>());
    let Ok(looked) = looked.await else { return };
    for (session, open) in sessions.iter().zip(looked) {
        // A session whose keeper is gone is about to be reported as ended.
        if let Some(open) = open {
            session.ports_are(&open).await;
        }
    }
}

fn open(keeper: u32, spared: &Spared) -> Option<BTreeSet<SocketId>> {
    let graph = snapshot(keeper, Depth::Sockets, None, spared).ok()?;
    Some(ports(&graph).into_iter().map(|port| port.socket).collect())
}
