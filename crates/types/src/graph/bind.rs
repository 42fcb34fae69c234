//! Which act started which process.
//!
//! The kernel tells lineage and birth, the journal tells who wrote when. A process that the session's shell made is bound
//! to the last act that wrote before its birth: known by *time*. So is a job of a shell inside that shell, which has a
//! process group of its own on the session's terminal. Whatever such a process makes is its maker's, however late and
//! whoever has the turn by then: known by *lineage*. A daemon that lost its parent is its session's or its group's
//! leader's, or else known by its birth.
//!
//! By time is not by proof: a job that a shell starts by itself (`at`, a timer in its prompt) counts as the last writer's.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Graph, ProcessId, ProcessNode, SocketId};
use crate::{Actor, TimeMs};

/// A birth is known to a clock tick, and rounded down: what was born up to this much before an act may be its doing.
pub const TICK_MS: u64 = 10;

/// Keys that a keeper took by itself are recorded up to this much after they were typed: two seconds for a burst, and a
/// moment for a busy host.
pub const RECORD_LAG_MS: u64 = 2_500;

/// An act that can start a process, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritingAct {
    /// Its number in the journal.
    pub seq: u64,
    /// Whose; none: the host could not tell.
    pub actor: Option<Actor>,
    /// It took effect at this time or later.
    pub from_ms: TimeMs,
    /// When it was recorded.
    pub at_ms: TimeMs,
    /// It started the session itself.
    pub is_start: bool,
}

/// How a binding is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// By who made it.
    Lineage,
    /// By when it was made.
    Time,
    /// It is not: the journal does not reach back so far, or has no name.
    Unknown,
}

/// What is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// A process.
    Process(ProcessId),
    /// A socket: its oldest holder's act.
    Socket(SocketId),
}

/// A process or socket, and the act that started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// What.
    pub of: Bound,
    /// How that is known.
    pub by: Known,
    /// The act's number in the session's journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// When it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<TimeMs>,
}

/// Binds every process and every socket of a graph, in its order; `root` is the pid of the session's command, and the
/// acts are in the journal's order.
#[must_use]
pub fn bind(graph: &Graph, root: u32, acts: &[WritingAct]) -> Vec<Binding> {
    let by_pid: HashMap<u32, &ProcessNode> = graph.processes.iter().map(|process| (process.pid, process)).collect();
    let lineage = Lineage { root, by_pid };
    let mut known: HashMap<ProcessId, (Option<&WritingAct>, Known)> = HashMap::new();
    for process in &graph.processes {
        let mut path = vec![process];
        // A graph that says of two processes that each is below the other ends with the second.
        while let Some(maker) = path.last().and_then(|last| lineage.maker(last)) {
            if known.contains_key(&maker.id) || path.iter().any(|other| other.id == maker.id) {
                break;
            }
            path.push(maker);
        }
        while let Some(process) = path.pop() {
            let inherited = lineage.maker(process).and_then(|maker| known.get(&maker.id));
            let found = match inherited {
                Some((Some(act), _)) => (Some(*act), Known::Lineage),
                Some((None, _)) => (None, Known::Unknown),
                None => by_birth(process, root, acts),
            };
            known.insert(process.id, found);
        }
    }
    let binding = |of: Bound, id: Option<ProcessId>| {
        let (act, by) = id.and_then(|id| known.get(&id).copied()).unwrap_or((None, Known::Unknown));
        let actor = act.and_then(|act| act.actor.clone());
        let by = if actor.is_none() { Known::Unknown } else { by };
        Binding { of, by, act: act.map(|act| act.seq), actor, at_ms: act.map(|act| act.at_ms) }
    };
    let processes = graph.processes.iter().map(|process| binding(Bound::Process(process.id), Some(process.id)));
    let oldest = |holders: &[ProcessId]| holders.iter().copied().min_by_key(|holder| (holder.start, holder.pid));
    let sockets = graph.sockets.iter().map(|socket| binding(Bound::Socket(socket.id), oldest(&socket.holders)));
    processes.chain(sockets).collect()
}

struct Lineage<'a> {
    root: u32,
    by_pid: HashMap<u32, &'a ProcessNode>,
}

impl<'a> Lineage<'a> {
    /// Whose act it shares; none: its birth tells.
    fn maker(&self, process: &ProcessNode) -> Option<&'a ProcessNode> {
        if process.pid == self.root {
            return None;
        }
        let listed = |pid: u32| self.by_pid.get(&pid).copied();
        // The command leads the kernel session of the session's terminal.
        let is_at_terminal = process.session == self.root;
        match process.parent.and_then(|parent| listed(parent.pid).filter(|found| found.id == parent)) {
            Some(parent) => {
                let is_job = is_at_terminal && process.group != parent.group;
                Some(parent).filter(|_| parent.pid != self.root && !is_job)
            }
            None => {
                let leads = |pid: u32| {
                    let leader = listed(pid).filter(|leader| leader.id != process.id && leader.pid != self.root)?;
                    // Else the pid is somebody else's by now.
                    Some(leader).filter(|leader| leader.id.start <= process.id.start)
                };
                let of_session = if is_at_terminal { None } else { leads(process.session) };
                of_session.or_else(|| leads(process.group))
            }
        }
    }
}

fn by_birth<'a>(process: &ProcessNode, root: u32, acts: &'a [WritingAct]) -> (Option<&'a WritingAct>, Known) {
    if process.pid == root {
        return (acts.iter().find(|act| act.is_start), Known::Lineage);
    }
    let born = process.started_ms.saturating_add(TICK_MS);
    match acts.iter().rev().find(|act| act.from_ms <= born) {
        // Nobody had written yet: whoever started the session started all of it.
        Some(act) if act.is_start => (Some(act), Known::Lineage),
        Some(act) => (Some(act), Known::Time),
        None => (None, Known::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ActorId;
    use crate::graph::{Depth, SocketKind, SocketNode, SocketState};

    const SHELL: u32 = 10;

    fn actor(name: &str) -> Actor {
        Actor { id: ActorId([name.len() as u8; 32]), handle: name.parse().unwrap() }
    }

    fn act(seq: u64, name: &str, at_ms: u64) -> WritingAct {
        WritingAct { seq, actor: Some(actor(name)), from_ms: at_ms, at_ms, is_start: seq == 1 }
    }

    /// pid, parent (1 is the keeper), group, kernel session, born.
    fn process((pid, parent, group, session, born): (u32, u32, u32, u32, u64)) -> ProcessNode {
        ProcessNode {
            id: ProcessId { pid, start: born },
            pid,
            parent: None,
            parent_pid: parent,
            group,
            session,
            foreground: None,
            started_ms: born,
            state: 'S',
            comm: String::new(),
            argv: Vec::new(),
            argv_cut: false,
            exe: None,
            cwd: None,
            cpu_ms: 0,
            rss_bytes: 0,
            threads: 1,
            uid: None,
            cgroup: None,
            fds: Vec::new(),
            more_fds: 0,
            unknown: false,
        }
    }

    fn graph(processes: &[(u32, u32, u32, u32, u64)]) -> Graph {
        let mut processes: Vec<ProcessNode> = processes.iter().copied().map(process).collect();
        let ids: HashMap<u32, ProcessId> = processes.iter().map(|process| (process.pid, process.id)).collect();
        processes.iter_mut().for_each(|process| process.parent = ids.get(&process.parent_pid).copied());
        Graph { at_ms: 0, depth: Depth::Sockets, processes, sockets: vec![], pipes: vec![], partial: false }
    }

    /// Who started each, and how that is known: `pid actor how`.
    fn told(graph: &Graph, acts: &[WritingAct]) -> Vec<String> {
        let line = |binding: Binding| {
            let of = match binding.of {
                Bound::Process(id) => id.pid.to_string(),
                Bound::Socket(id) => id.to_string(),
            };
            let who = binding.actor.map_or("-".to_owned(), |actor| actor.to_string());
            format!("{of} {who} {}", format!("{:?}", binding.by).to_lowercase())
        };
        bind(graph, SHELL, acts).into_iter().map(line).collect()
    }

    fn turns() -> Vec<WritingAct> {
        vec![act(1, "human:ann", 1_000), act(4, "agent:bot", 5_000), act(9, "human:ann", 9_000)]
    }

    #[test]
    fn what_a_shell_starts_is_the_last_writers() {
        let graph = graph(&[
            (SHELL, 1, 10, 10, 1_000),
            (11, SHELL, 10, 10, 1_500),
            (12, SHELL, 12, 10, 5_020),
            (13, SHELL, 13, 10, 8_999 + TICK_MS),
        ]);
        assert_eq!(
            told(&graph, &turns()),
            ["10 human:ann lineage", "11 human:ann lineage", "12 agent:bot time", "13 human:ann time"]
        );
    }

    #[test]
    fn what_a_program_makes_later_is_its_own_starters() {
        let graph = graph(&[
            (SHELL, 1, 10, 10, 1_000),
            (12, SHELL, 12, 10, 5_020),
            (14, 12, 12, 10, 9_500),
            (15, 14, 15, 15, 9_600),
            (16, 15, 16, 15, 9_700),
        ]);
        let bot = |pid: u32| format!("{pid} agent:bot lineage");
        assert_eq!(told(&graph, &turns())[2..], [bot(14), bot(15), bot(16)]);
    }

    #[test]
    fn a_job_of_a_shell_inside_the_shell_is_its_writers() {
        let graph = graph(&[
            (SHELL, 1, 10, 10, 1_000),
            (12, SHELL, 12, 10, 5_020),
            (14, 12, 14, 10, 9_500),
            (15, 14, 14, 10, 9_600),
        ]);
        assert_eq!(told(&graph, &turns())[2..], ["14 human:ann time", "15 human:ann lineage"]);
    }

    #[test]
    fn a_daemon_without_a_parent_keeps_its_starter_and_its_children_too() {
        let graph = graph(&[
            (SHELL, 1, 10, 10, 1_000),
            (20, 1, 20, 20, 5_030),
            (21, 20, 20, 20, 9_900),
            // Its maker is gone, the leader of its session is not.
            (22, 1, 20, 20, 9_950),
            // Neither is there.
            (23, 1, 99, 99, 5_040),
            // A leader that is younger is somebody else with the same pid.
            (24, 1, 25, 25, 5_050),
            (25, 1, 25, 25, 9_960),
        ]);
        assert_eq!(
            told(&graph, &turns())[1..],
            [
                "20 agent:bot time",
                "21 agent:bot lineage",
                "22 agent:bot lineage",
                "23 agent:bot time",
                "24 agent:bot time",
                "25 human:ann time",
            ]
        );
    }

    #[test]
    fn keys_that_were_recorded_late_started_what_was_born_between() {
        let late = WritingAct { from_ms: 7_000, ..act(5, "human:ann", 7_200) };
        let acts = vec![act(1, "human:ann", 1_000), act(4, "agent:bot", 5_000), late];
        let graph = graph(&[(SHELL, 1, 10, 10, 1_000), (11, SHELL, 11, 10, 7_005), (12, SHELL, 12, 10, 6_900)]);
        assert_eq!(told(&graph, &acts)[1..], ["11 human:ann time", "12 agent:bot time"]);
    }

    #[test]
    fn what_the_journal_does_not_tell_is_unknown() {
        let graph = graph(&[(SHELL, 1, 10, 10, 1_000), (11, SHELL, 11, 10, 2_000), (12, 11, 11, 10, 6_000)]);
        let kept = [act(4, "agent:bot", 5_000)];
        assert_eq!(told(&graph, &kept), ["10 - unknown", "11 - unknown", "12 - unknown"]);
        let nameless = [act(1, "human:ann", 1_000), WritingAct { actor: None, ..act(2, "agent:bot", 1_500) }];
        assert_eq!(told(&graph, &nameless)[1..], ["11 - unknown", "12 - unknown"]);
    }

    #[test]
    fn a_socket_is_its_oldest_holders() {
        let mut graph = graph(&[(SHELL, 1, 10, 10, 1_000), (12, SHELL, 12, 10, 5_020), (13, SHELL, 13, 10, 9_500)]);
        let holders = vec![graph.processes[2].id, graph.processes[1].id];
        graph.sockets.push(SocketNode {
            id: SocketId(7),
            family: None,
            kind: Some(SocketKind::Stream),
            state: Some(SocketState::Listening),
            protocol: None,
            local: None,
            remote: None,
            path: None,
            peer: None,
            holders,
            elsewhere: false,
            unknown: false,
        });
        assert_eq!(told(&graph, &turns())[3], "s7 agent:bot time");
        let text = serde_json::to_string(&bind(&graph, SHELL, &turns())[3]).unwrap();
        assert!(text.starts_with(r#"{"of":"s7","by":"time","act":4,"actor":"#), "{text}");
        assert_eq!(serde_json::from_str::<Binding>(&text).unwrap().of, Bound::Socket(SocketId(7)));
    }

    #[test]
    fn a_graph_that_goes_round_in_circles_ends() {
        let graph = graph(&[(11, 12, 11, 11, 5_500), (12, 11, 11, 11, 5_500)]);
        assert_eq!(told(&graph, &turns()).len(), 2);
    }

    #[test]
    fn a_long_chain_is_bound_in_one_pass() {
        let mut all = vec![(SHELL, 1, 10, 10, 1_000), (11, SHELL, 11, 10, 5_500)];
        all.extend((12..5_000).map(|pid| (pid, pid - 1, 11, 10, 9_500)));
        let told = told(&graph(&all), &turns());
        assert!(told[2..].iter().all(|line| line.ends_with("agent:bot lineage")), "{:?}", told.last());
    }
}
