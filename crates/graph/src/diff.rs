//! What happened between two snapshots of a session.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Graph, Port, ProcessId, ProcessNode, SocketId, ports};

/// What is in one snapshot and not in the other. What came and went in between is in neither.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphDiff {
    /// When the earlier one was taken.
    pub from_ms: u64,
    /// When the later one was taken.
    pub to_ms: u64,
    /// New processes, parents first.
    pub started: Vec<ProcessId>,
    /// Processes that are gone, or zombies now.
    pub ended: Vec<ProcessId>,
    /// Processes that run another program or show other words.
    pub changed: Vec<Exec>,
    /// New sockets.
    pub opened: Vec<SocketId>,
    /// Sockets that no process of the session holds any more.
    pub closed: Vec<SocketId>,
    /// Ports that are open since: new sockets, and older ones that listen now.
    pub listening: Vec<Port>,
    /// Ports that are not open any more.
    pub no_longer_listening: Vec<Port>,
    /// One of the two is partial, or they were not read equally deep: what is only in one may just be missing in the
    /// other.
    pub partial: bool,
}

/// A process that became another program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exec {
    /// Who.
    pub process: ProcessId,
    /// Its words before.
    pub before: Vec<String>,
    /// Its words now.
    pub after: Vec<String>,
}

/// Compares two snapshots of the same session, the earlier one first.
pub fn diff(before: &Graph, after: &Graph) -> GraphDiff {
    let live = |graph: &Graph| -> Vec<ProcessId> {
        graph.processes.iter().filter(|process| process.state != 'Z').map(|process| process.id).collect()
    };
    let sockets = |graph: &Graph| -> Vec<SocketId> { graph.sockets.iter().map(|socket| socket.id).collect() };
    let (ports_before, ports_after) = (ports(before), ports(after));
    let is_new_port = |port: &Port, others: &[Port]| !others.iter().any(|other| other.socket == port.socket);
    GraphDiff {
        from_ms: before.at_ms,
        to_ms: after.at_ms,
        started: only_in(&live(after), &live(before)),
        ended: only_in(&live(before), &live(after)),
        changed: changed(before, after),
        opened: only_in(&sockets(after), &sockets(before)),
        closed: only_in(&sockets(before), &sockets(after)),
        listening: ports_after.iter().filter(|port| is_new_port(port, &ports_before)).cloned().collect(),
        no_longer_listening: ports_before.iter().filter(|port| is_new_port(port, &ports_after)).cloned().collect(),
        partial: before.partial || after.partial || before.depth != after.depth,
    }
}

fn only_in<T: Copy + Eq + std::hash::Hash>(these: &[T], those: &[T]) -> Vec<T> {
    let those: std::collections::HashSet<T> = those.iter().copied().collect();
    these.iter().copied().filter(|item| !those.contains(item)).collect()
}

fn changed(before: &Graph, after: &Graph) -> Vec<Exec> {
    let was: HashMap<ProcessId, &ProcessNode> = before.processes.iter().map(|node| (node.id, node)).collect();
    let exec = |now: &ProcessNode| {
        let was = was.get(&now.id).filter(|_| now.state != 'Z')?;
        // A program that may not be read, or not any more, is no other program.
        let is_other_exe = was.exe.is_some() && now.exe.is_some() && was.exe != now.exe;
        let is_changed = is_other_exe || was.argv != now.argv;
        is_changed.then(|| Exec { process: now.id, before: was.argv.clone(), after: now.argv.clone() })
    };
    after.processes.iter().filter_map(exec).collect()
}
