//! One session that is watched: which processes and sockets are known, and what of it is news.
//!
//! Snapshots are the truth, and the kernel's events are quick. Each tells some things first, and neither twice.

use holdfast_graph::{Graph, PROCESSES_MAX, Port, ProcessId, SocketId, SocketNode, SocketState, ports};
use holdfast_wire::graphs::{ConnectionView, GraphNews};
use std::collections::{HashMap, HashSet};

/// Snapshots a process may be missing from before it is forgotten: its end may be reported late, or it is one that Holdfast
/// leaves out.
const ABSENCES_MAX: u32 = 8;

/// A process that is known.
#[derive(Debug)]
struct Process {
    /// Known once a snapshot had it.
    id: Option<ProcessId>,
    exe: Option<String>,
    /// Snapshots in a row that did not have it.
    absences: u32,
}

impl Process {
    fn new(id: Option<ProcessId>, exe: Option<String>) -> Process {
        Process { id, exe, absences: 0 }
    }
}

/// What is known of one session.
#[derive(Debug)]
pub(super) struct Tracked {
    keeper: u32,
    processes: HashMap<u32, Process>,
    /// Those that were said to end since the snapshot before the last: they may be seen dying.
    ended: [HashSet<u32>; 2],
    ports: HashMap<SocketId, Port>,
    connections: HashMap<SocketId, ConnectionView>,
}

impl Tracked {
    /// A session as it is found: nothing of it is news.
    pub(super) fn new(keeper: u32, graph: &Graph) -> Tracked {
        let mut tracked = Tracked {
            keeper,
            processes: HashMap::new(),
            ended: Default::default(),
            ports: HashMap::new(),
            connections: HashMap::new(),
        };
        tracked.look(graph, false);
        tracked
    }

    /// The kernel says that somebody forked.
    pub(super) fn fork(&mut self, parent: u32, pid: u32) -> Option<GraphNews> {
        let is_ours = parent == self.keeper || self.processes.get(&parent).is_some_and(|parent| parent.absences == 0);
        if !is_ours || self.processes.contains_key(&pid) || self.processes.len() >= PROCESSES_MAX {
            return None;
        }
        for ended in &mut self.ended {
            ended.remove(&pid);
        }
        self.processes.insert(pid, Process::new(None, None));
        Some(GraphNews::Fork { pid, parent })
    }

    /// Whether a process is known.
    pub(super) fn knows(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// The kernel says that somebody ended.
    pub(super) fn exit(&mut self, pid: u32, code: Option<u8>, signal: Option<u8>) -> Option<GraphNews> {
        self.processes.remove(&pid)?;
        self.ended[0].insert(pid);
        Some(GraphNews::Exit { pid, code, signal })
    }

    /// What a snapshot shows that was not known. With the kernel's events it need not tell who became another program or
    /// ended: those say it themselves.
    pub(super) fn look(&mut self, graph: &Graph, has_events: bool) -> Vec<GraphNews> {
        let mut news = self.look_at_processes(graph, has_events);
        self.look_at_sockets(graph, &mut news);
        news
    }

    fn look_at_processes(&mut self, graph: &Graph, has_events: bool) -> Vec<GraphNews> {
        let mut news = Vec::new();
        self.processes.values_mut().for_each(|process| process.absences += 1);
        for node in graph.processes.iter().filter(|node| node.state != 'Z' && node.state != 'X') {
            let is_other = |known: &Process| known.id.is_some_and(|id| id != node.id);
            if self.processes.get(&node.pid).is_some_and(is_other) {
                // The same number again, and no event said that the first one ended.
                news.extend(self.exit(node.pid, None, None));
                self.ended[0].remove(&node.pid);
            }
            if self.ended.iter().any(|ended| ended.contains(&node.pid)) {
                continue;
            }
            match self.processes.get_mut(&node.pid) {
                None => {
                    news.push(GraphNews::Fork { pid: node.pid, parent: node.parent_pid });
                    self.processes.insert(node.pid, Process::new(Some(node.id), node.exe.clone()));
                }
                Some(known) => {
                    let is_exec = known.exe.is_some() && node.exe.is_some() && known.exe != node.exe;
                    if is_exec && !has_events {
                        news.push(GraphNews::Exec { pid: node.pid, argv: node.argv.clone() });
                    }
                    *known = Process::new(Some(node.id), node.exe.clone());
                }
            }
        }
        if has_events {
            self.processes.retain(|_, process| process.absences < ABSENCES_MAX);
        } else {
            let mut gone: Vec<u32> =
                self.processes.iter().filter(|(_, process)| process.absences > 0).map(|(pid, _)| *pid).collect();
            gone.sort_unstable();
            news.extend(gone.into_iter().filter_map(|pid| self.exit(pid, None, None)));
        }
        self.ended[1] = std::mem::take(&mut self.ended[0]);
        news
    }

    fn look_at_sockets(&mut self, graph: &Graph, news: &mut Vec<GraphNews>) {
        // One the kernel says nothing of this time is as it was.
        let untold: Vec<SocketId> =
            graph.sockets.iter().filter(|socket| socket.unknown).map(|socket| socket.id).collect();
        let mut now: HashMap<SocketId, Port> = ports(graph).into_iter().map(|port| (port.socket, port)).collect();
        let mut connected: HashMap<SocketId, ConnectionView> =
            graph.sockets.iter().filter_map(|socket| Some((socket.id, connection(socket)?))).collect();
        for id in untold {
            self.ports.get(&id).into_iter().for_each(|port| drop(now.insert(id, port.clone())));
            self.connections.get(&id).into_iter().for_each(|there| drop(connected.insert(id, there.clone())));
        }
        let mut changed: Vec<(SocketId, GraphNews)> = Vec::new();
        let gone = |port: &&Port| !now.contains_key(&port.socket);
        let port = |port: &Port| (port.socket, GraphNews::NotListening { port: port.clone() });
        changed.extend(self.ports.values().filter(gone).map(port));
        let over = |(id, _): &(&SocketId, &ConnectionView)| !connected.contains_key(id);
        let closed = |(id, there): (&SocketId, &ConnectionView)| (*id, GraphNews::Closed { connection: there.clone() });
        changed.extend(self.connections.iter().filter(over).map(closed));
        let new = |port: &&Port| !self.ports.contains_key(&port.socket);
        changed.extend(now.values().filter(new).map(|port| (port.socket, GraphNews::Listen { port: port.clone() })));
        let begun = |(id, _): &(&SocketId, &ConnectionView)| !self.connections.contains_key(id);
        let connect =
            |(id, there): (&SocketId, &ConnectionView)| (*id, GraphNews::Connect { connection: there.clone() });
        changed.extend(connected.iter().filter(begun).map(connect));
        changed.sort_by_key(|(id, _)| *id);
        news.extend(changed.into_iter().map(|(_, what)| what));
        (self.ports, self.connections) = (now, connected);
    }
}

fn connection(socket: &SocketNode) -> Option<ConnectionView> {
    let (kind, local, remote) = (socket.kind?, socket.local?, socket.remote?);
    let is_up = socket.state? == SocketState::Established;
    is_up.then(|| ConnectionView { kind, local, remote, holders: socket.holders.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_graph::{Depth, ProcessNode, SocketKind};

    const KEEPER: u32 = 1;

    fn process(pid: u32, exe: &str) -> ProcessNode {
        ProcessNode {
            id: ProcessId { pid, start: 1 },
            pid,
            parent: None,
            parent_pid: KEEPER,
            group: pid,
            session: pid,
            foreground: None,
            started_ms: 0,
            state: 'S',
            comm: String::new(),
            argv: vec![exe.to_owned()],
            argv_cut: false,
            exe: Some(exe.to_owned()),
            cwd: None,
            cpu_ms: 0,
            rss_bytes: 0,
            threads: 1,
            uid: None,
            cgroup: None,
            fds: vec![],
            more_fds: 0,
            unknown: false,
        }
    }

    fn graph(processes: &[(u32, &str)], sockets: &[(u64, SocketState, Option<&str>)]) -> Graph {
        let socket = |(id, state, remote): &(u64, SocketState, Option<&str>)| SocketNode {
            id: SocketId(*id),
            family: None,
            kind: Some(SocketKind::Stream),
            state: Some(*state),
            protocol: None,
            local: Some("127.0.0.1:80".parse().unwrap()),
            remote: remote.map(|remote| remote.parse().unwrap()),
            path: None,
            peer: None,
            holders: vec![],
            elsewhere: false,
            unknown: false,
        };
        Graph {
            at_ms: 0,
            depth: Depth::Sockets,
            processes: processes.iter().map(|(pid, exe)| process(*pid, exe)).collect(),
            sockets: sockets.iter().map(socket).collect(),
            pipes: vec![],
            partial: false,
        }
    }

    fn texts(news: &[GraphNews]) -> Vec<String> {
        let word = |news: &GraphNews| match news {
            GraphNews::Fork { pid, .. } => format!("fork {pid}"),
            GraphNews::Exec { pid, argv } => format!("exec {pid} {}", argv.join(" ")),
            GraphNews::Exit { pid, .. } => format!("exit {pid}"),
            GraphNews::Listen { port } => format!("listen {}", port.socket),
            GraphNews::Connect { .. } => "connect".into(),
            GraphNews::NotListening { port } => format!("not listening {}", port.socket),
            GraphNews::Closed { .. } => "closed".into(),
        };
        news.iter().map(word).collect()
    }

    #[test]
    fn without_the_kernels_events_snapshots_tell_everything() {
        let mut tracked = Tracked::new(KEEPER, &graph(&[(10, "sh")], &[]));
        let mut look = |processes: &[(u32, &str)]| texts(&tracked.look(&graph(processes, &[]), false));
        assert_eq!(look(&[(10, "sh")]), [""; 0]);
        assert_eq!(look(&[(10, "sh"), (11, "sh")]), ["fork 11"]);
        assert_eq!(look(&[(10, "sh"), (11, "make")]), ["exec 11 make"]);
        assert_eq!(look(&[(10, "sh")]), ["exit 11"]);
        assert_eq!(look(&[(10, "sh")]), [""; 0]);
    }

    #[test]
    fn what_the_kernel_told_no_snapshot_tells_again() {
        let mut tracked = Tracked::new(KEEPER, &graph(&[(10, "sh")], &[]));
        assert!(tracked.fork(10, 11).is_some());
        assert_eq!(tracked.fork(10, 11), None);
        assert_eq!(tracked.fork(99, 12), None, "somebody else's");
        assert_eq!(texts(&tracked.look(&graph(&[(10, "sh"), (11, "make")], &[]), true)), [""; 0]);
        assert!(tracked.exit(11, Some(0), None).is_some());
        assert_eq!(tracked.exit(11, Some(0), None), None);
        assert_eq!(texts(&tracked.look(&graph(&[(10, "sh"), (11, "make")], &[]), true)), [""; 0], "it is dying");
        assert_eq!(tracked.exit(99, None, None), None);
    }

    #[test]
    fn who_is_missing_from_a_snapshot_may_still_be_said_to_end_but_makes_no_children_here() {
        let mut tracked = Tracked::new(KEEPER, &graph(&[(10, "sh"), (11, "host")], &[]));
        assert_eq!(texts(&tracked.look(&graph(&[(10, "sh")], &[]), true)), [""; 0]);
        assert_eq!(tracked.fork(11, 12), None);
        assert!(tracked.exit(11, None, Some(9)).is_some());
    }

    #[test]
    fn ports_and_connections_come_and_go() {
        use SocketState::{Closing, Established, Listening};
        let mut tracked = Tracked::new(KEEPER, &graph(&[], &[]));
        let mut look = |sockets: &[(u64, SocketState, Option<&str>)]| texts(&tracked.look(&graph(&[], sockets), true));
        assert_eq!(look(&[(5, Listening, None)]), ["listen s5"]);
        assert_eq!(look(&[(5, Listening, None), (6, Established, Some("127.0.0.1:9"))]), ["connect"]);
        assert_eq!(look(&[(5, Listening, None), (6, Closing, Some("127.0.0.1:9"))]), ["closed"]);
        assert_eq!(look(&[]), ["not listening s5"]);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut tracked = Tracked::new(KEEPER, &graph(&[(10, "sh"), (11, "a")], &[]));
        let mut again = graph(&[(10, "sh"), (11, "b")], &[]);
        again.processes[1].id.start = 9;
        assert_eq!(texts(&tracked.look(&again, true)), ["exit 11", "fork 11"]);
    }
}
