//! What a session's processes are and hold, and whose act started each. Read off this thread, whenever it is asked for.

use super::{Probed, Session};
use crate::journal::writing_acts;
use holdfast_graph::{Binding, Bound, Depth, Graph, Known, Port, ProcessId, ProcessNode, Spot, bind, ports};
use holdfast_observe::graph::snapshot;
use holdfast_observe::waiting::{self, TerminalFacts};
use holdfast_observe::{Spared, Turns};
use holdfast_types::{Actor, SessionId, SessionName};
use holdfast_wire::contracts::LeftProcess;
use holdfast_wire::graphs::{GraphAnswer, GraphParams, ModesView, PortView, TerminalView};
use holdfast_wire::params::Life;
use holdfast_wire::{Code, Fault};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// `ICANON` and `ECHO` of termios(3)'s `c_lflag`, the same on all machines that we run on.
const ICANON: u32 = 0o2;
const ECHO: u32 = 0o10;
/// No device has this number: the command has no terminal, or is gone.
const NO_DEVICE: (u32, u32) = (0, 0);

/// A process, and whose it is.
#[derive(Debug)]
pub(crate) struct Owned {
    pub id: ProcessId,
    pub group: u32,
    /// Its words, for people.
    pub command: String,
    /// How that is known.
    pub known: Known,
    pub actor: Actor,
    /// The act that started it, where that is known.
    pub act: Option<u64>,
}

/// What a graph is taken from; all that leaves this thread.
#[derive(Debug)]
pub(crate) struct Tree {
    id: SessionId,
    name: SessionName,
    keeper: u32,
    root: u32,
    /// The journal, the oldest file first.
    journal: Vec<PathBuf>,
    turns: Arc<Turns>,
    spared: Arc<Spared>,
}

impl Tree {
    /// Reads it all. Blocks.
    fn read(&self, depth: Depth, terminal: Option<&TerminalFacts>) -> io::Result<(Graph, Vec<Binding>)> {
        let graph = snapshot(self.keeper, depth, terminal, &self.spared)?;
        let born = graph.processes.iter().filter(|process| process.pid != self.root).map(|process| process.started_ms);
        let spots = self.turns.spots(self.keeper);
        let found = graph.processes.iter().filter_map(|process| spots.as_ref()?.of(process));
        let found: BTreeSet<Spot> = found.collect();
        let found: Vec<Spot> = found.into_iter().collect();
        let acts = writing_acts(&self.journal, born.min().unwrap_or(u64::MAX), &found);
        let bindings = bind(&graph, self.root, &acts, spots.as_ref());
        Ok((graph, bindings))
    }

    /// Every process with its group, and whose it is by which act; those of which nobody knows it are left out. Blocks.
    pub(crate) fn belongings(&self) -> io::Result<Vec<Owned>> {
        let (graph, bindings) = self.read(Depth::Processes, None)?;
        let bound: HashMap<Bound, &Binding> = bindings.iter().map(|binding| (binding.of, binding)).collect();
        let owner = |node: &ProcessNode| {
            let binding = bound.get(&Bound::Process(node.id))?;
            let (actor, command) = (binding.actor.clone()?, node.argv.join(" "));
            Some(Owned { id: node.id, group: node.group, command, known: binding.by, actor, act: binding.act })
        };
        Ok(graph.processes.iter().filter_map(owner).collect())
    }

    /// Who listens where. Blocks.
    fn ports(&self) -> io::Result<Vec<PortView>> {
        let (graph, bindings) = self.read(Depth::Sockets, None)?;
        let bound: HashMap<Bound, &Binding> = bindings.iter().map(|binding| (binding.of, binding)).collect();
        Ok(ports(&graph).into_iter().map(|port| self.port(&graph, &bound, port)).collect())
    }

    fn port(&self, graph: &Graph, bound: &HashMap<Bound, &Binding>, port: Port) -> PortView {
        let process = port.holders.iter().copied().min_by_key(|holder| (holder.start, holder.pid));
        let node = graph.processes.iter().find(|node| Some(node.id) == process);
        let binding = bound.get(&Bound::Socket(port.socket));
        PortView {
            session: self.id,
            name: self.name.clone(),
            process,
            argv: node.map(|node| node.argv.clone()).unwrap_or_default(),
            since_ms: node.map(|node| node.started_ms),
            actor: binding.and_then(|binding| binding.actor.clone()),
            act: binding.and_then(|binding| binding.act),
            by: binding.map_or(Known::Unknown, |binding| binding.by),
            port,
        }
    }
}

/// What processes of one act hold, and which they are.
#[derive(Debug, Default)]
pub(crate) struct Did {
    pub ports: Vec<u16>,
    /// Beyond this machine, as `ADDRESS:PORT`.
    pub connections: Vec<String>,
    pub processes: Vec<LeftProcess>,
    /// Something could not be read.
    pub partial: bool,
}

impl Tree {
    /// What the processes of an act hold; without one those of all acts. Blocks.
    fn did(&self, act: Option<u64>) -> io::Result<Did> {
        let (graph, bindings) = self.read(Depth::Sockets, None)?;
        let is_its = |binding: &&Binding| act.is_none() || binding.act == act;
        let its: BTreeSet<ProcessId> = bindings
            .iter()
            .filter(is_its)
            .filter_map(|binding| match binding.of {
                Bound::Process(id) => Some(id),
                Bound::Socket(_) => None,
            })
            .collect();
        // The shell is everybody's; what it holds itself it opened in this run, or before.
        let is_process = |node: &&ProcessNode| its.contains(&node.id) && node.pid != self.root;
        let processes = graph.processes.iter().filter(is_process).filter(|node| node.state != 'Z');
        let held = |holders: &[ProcessId]| holders.iter().any(|holder| its.contains(holder));
        let far = |address: &SocketAddr| {
            !address.ip().to_canonical().is_loopback() && !address.ip().is_unspecified() && address.port() != 0
        };
        let remotes = graph.sockets.iter().filter(|socket| held(&socket.holders)).filter_map(|socket| socket.remote);
        Ok(Did {
            ports: ports(&graph).iter().filter(|port| held(&port.holders)).map(|port| port.address.port()).collect(),
            connections: remotes.filter(far).map(|to| format!("{}:{}", to.ip().to_canonical(), to.port())).collect(),
            processes: processes.map(|node| LeftProcess { pid: node.pid, argv: node.argv.clone() }).collect(),
            partial: graph.partial,
        })
    }
}

/// Who listens where in these sessions; one that ends meanwhile has no ports.
pub(crate) async fn ports_of(trees: Vec<Tree>) -> Result<Vec<PortView>, Fault> {
    let all = crate::shares::aside(move || {
        Ok(trees.iter().flat_map(|tree| tree.ports().unwrap_or_default()).collect::<Vec<PortView>>())
    });
    all.await.map_err(|error| Fault::new(Code::Internal, format!("cannot read the ports: {error}")))
}

impl Session {
    /// Its graph, as JSON: large ones are made into text's parts off this thread too.
    pub async fn graph(&self, params: &GraphParams) -> Result<Value, Fault> {
        let tree = self.tree().await?;
        let probed = self.probe().await?;
        let terminal = self.terminal(probed);
        let depth = params.depth;
        let taken = crate::shares::aside(move || {
            let facts = probed.map(|probed| facts(probed, terminal, waiting::terminal_of(tree.root)));
            let (graph, bindings) = tree.read(depth, facts.as_ref())?;
            let doing = facts.filter(|facts| facts.device != NO_DEVICE);
            let doing = doing.map(|facts| waiting::state(tree.keeper, tree.root, &facts));
            let answer = GraphAnswer { session: tree.id, name: tree.name, terminal, doing, graph, bindings };
            serde_json::to_value(answer).map_err(io::Error::other)
        });
        match taken.await {
            Ok(value) => Ok(value),
            Err(error) => Err(self.unseen(&error).await),
        }
    }

    /// What the processes of an act hold now; none where they cannot be read.
    pub(crate) async fn did(&self, act: Option<u64>) -> Option<Did> {
        let tree = self.tree().await.ok()?;
        crate::off_thread(move || tree.did(act)).await.ok()
    }

    /// What its graph is taken from, while it runs; what was typed until now is in the journal.
    pub(crate) async fn tree(&self) -> Result<Tree, Fault> {
        self.running().await?;
        self.drain_log();
        let state = self.state.borrow();
        Ok(Tree {
            id: self.id,
            name: state.spec.name.clone(),
            keeper: state.keeper_pid,
            root: state.pid,
            journal: state.journal.files(),
            turns: Arc::clone(&self.turns),
            spared: self.own.spared(),
        })
    }

    /// The keeper, to look at what is below it.
    pub(crate) fn keeper_pid(&self) -> u32 {
        self.state.borrow().keeper_pid
    }

    fn terminal(&self, probed: Option<Probed>) -> TerminalView {
        self.look();
        let mut state = self.state.borrow_mut();
        let size = state.core.size;
        TerminalView {
            size,
            alternate_screen: state.picture.screen().alternate(),
            foreground: probed.map(|probed| probed.foreground).filter(|group| *group > 0),
            modes: probed.map(|probed| ModesView {
                canonical: probed.lflag & ICANON != 0,
                echo: probed.lflag & ECHO != 0,
                iflag: probed.iflag,
                oflag: probed.oflag,
                lflag: probed.lflag,
                unread: probed.unread,
            }),
        }
    }

    /// Its processes could not be read: mostly because it has just ended.
    async fn unseen(&self, error: &io::Error) -> Fault {
        let failed = || {
            Fault::new(Code::Internal, format!("cannot read the processes of {}: {error}", self.name()))
                .hint("try again; to see what this machine supports: holdfast doctor")
        };
        if error.kind() != io::ErrorKind::NotFound {
            return failed();
        }
        // Its keeper is gone, and the host is about to hear of it.
        self.until(Some(super::LINK_WAIT), || (self.view_life() != Life::Running).then_some(())).await;
        self.running().await.err().unwrap_or_else(failed)
    }
}

fn facts(probed: Probed, terminal: TerminalView, device: Option<(u32, u32)>) -> TerminalFacts {
    TerminalFacts {
        foreground: probed.foreground,
        iflag: probed.iflag,
        oflag: probed.oflag,
        lflag: probed.lflag,
        unread: probed.unread,
        device: device.unwrap_or(NO_DEVICE),
        alternate_screen: terminal.alternate_screen,
        shell_prompt: None,
    }
}
