//! A session's ports as its watchers were told of them.

use super::Session;
use super::graph::ports_of;
use holdfast_graph::SocketId;
use holdfast_wire::attention::{OpenPort, What};
use holdfast_wire::graphs::PortView;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// What was told.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    told: RefCell<BTreeMap<SocketId, OpenPort>>,
    /// Whether it was looked at since somebody began to watch.
    is_known: Cell<bool>,
}

impl Ports {
    /// Somebody new watches, or nobody does: the next look tells all that are open.
    pub fn forget(&self) {
        self.told.borrow_mut().clear();
        self.is_known.set(false);
    }

    /// Whether it was looked at.
    pub fn is_known(&self) -> bool {
        self.is_known.get()
    }
}

impl Session {
    /// These sockets are open now: tells watchers what of it is new. Whose they are is read only where something is.
    pub(crate) async fn ports_are(&self, open: &BTreeSet<SocketId>) {
        let ports = &self.track.ports;
        ports.is_known.set(true);
        if ports.told.borrow().keys().eq(open) {
            return;
        }
        let views = match self.tree().await {
            Ok(tree) => ports_of(vec![tree]).await.unwrap_or_default(),
            // It ends, which is told as what it is.
            Err(_) => return,
        };
        let open: BTreeMap<SocketId, OpenPort> =
            views.into_iter().map(|view| (view.port.socket, open_port(view))).collect();
        let mut told = ports.told.borrow_mut();
        let gone: Vec<OpenPort> = told.extract_if(.., |socket, _| !open.contains_key(socket)).map(|(_, p)| p).collect();
        let new: Vec<OpenPort> =
            open.into_iter().filter(|(socket, _)| !told.contains_key(socket)).map(|(_, port)| port).collect();
        told.extend(new.iter().map(|port| (port.socket, port.clone())));
        drop(told);
        gone.into_iter().for_each(|port| self.tell_watchers(What::NotListening { port }));
        new.into_iter().for_each(|port| self.tell_watchers(What::Listen { port }));
    }
}

fn open_port(view: PortView) -> OpenPort {
    OpenPort {
        socket: view.port.socket,
        kind: view.port.kind,
        address: view.port.address,
        port: view.port.address.port(),
        pid: view.process.map(|process| process.pid),
        argv: view.argv,
        by: view.actor.map(|actor| actor.handle),
        act: view.act,
        known: view.by,
    }
}
