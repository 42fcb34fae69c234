use super::*;
use crate::{Depth, SocketKind, SocketNode, SocketState};
use holdfast_types::ActorId;

const SHELL: u32 = 10;

fn actor(name: &str) -> Actor {
    Actor { id: ActorId([name.len() as u8; 32]), handle: name.parse().unwrap() }
}

fn act(seq: u64, name: &str, at_ms: u64) -> WritingAct {
    let fence = Fence(if seq == 1 { 0 } else { seq });
    WritingAct { seq, actor: Some(actor(name)), from_ms: at_ms, at_ms, is_start: seq == 1, fence }
}

/// pid, parent (1 is the keeper), group, kernel session, born.
type Line = (u32, u32, u32, u32, u64);

fn process((pid, parent, group, session, born): Line) -> ProcessNode {
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

fn graph(processes: &[Line]) -> Graph {
    let mut processes: Vec<ProcessNode> = processes.iter().copied().map(process).collect();
    let ids: HashMap<u32, ProcessId> = processes.iter().map(|process| (process.pid, process.id)).collect();
    processes.iter_mut().for_each(|process| process.parent = ids.get(&process.parent_pid).copied());
    Graph { at_ms: 0, depth: Depth::Sockets, processes, sockets: vec![], pipes: vec![], partial: false }
}

/// Who started each, and how that is known: `pid actor how`.
fn bound(graph: &Graph, acts: &[WritingAct]) -> Vec<String> {
    told_with(graph, acts, None)
}

fn told_with(graph: &Graph, acts: &[WritingAct], spots: Option<&Spots>) -> Vec<String> {
    let line = |binding: Binding| {
        let of = match binding.of {
            Bound::Process(id) => id.pid.to_string(),
            Bound::Socket(id) => id.to_string(),
        };
        let who = binding.actor.map_or("-".to_owned(), |actor| actor.to_string());
        format!("{of} {who} {}", binding.by.word())
    };
    bind(graph, SHELL, acts, spots).into_iter().map(line).collect()
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
        bound(&graph, &turns()),
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
    assert_eq!(bound(&graph, &turns())[2..], [bot(14), bot(15), bot(16)]);
}

#[test]
fn a_job_of_a_shell_inside_the_shell_is_its_writers() {
    let graph = graph(&[
        (SHELL, 1, 10, 10, 1_000),
        (12, SHELL, 12, 10, 5_020),
        (14, 12, 14, 10, 9_500),
        (15, 14, 14, 10, 9_600),
    ]);
    assert_eq!(bound(&graph, &turns())[2..], ["14 human:ann time", "15 human:ann lineage"]);
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
        bound(&graph, &turns())[1..],
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
    assert_eq!(bound(&graph, &acts)[1..], ["11 human:ann time", "12 agent:bot time"]);
}

#[test]
fn what_the_journal_does_not_tell_is_unknown() {
    let graph = graph(&[(SHELL, 1, 10, 10, 1_000), (11, SHELL, 11, 10, 2_000), (12, 11, 11, 10, 6_000)]);
    let kept = [act(4, "agent:bot", 5_000)];
    assert_eq!(bound(&graph, &kept), ["10 - unknown", "11 - unknown", "12 - unknown"]);
    let nameless = [act(1, "human:ann", 1_000), WritingAct { actor: None, ..act(2, "agent:bot", 1_500) }];
    assert_eq!(bound(&graph, &nameless)[1..], ["11 - unknown", "12 - unknown"]);
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
    assert_eq!(bound(&graph, &turns())[3], "s7 agent:bot time");
    let text = serde_json::to_string(&bind(&graph, SHELL, &turns(), None)[3]).unwrap();
    assert!(text.starts_with(r#"{"of":"s7","by":"time","act":4,"actor":"#), "{text}");
    assert_eq!(serde_json::from_str::<Binding>(&text).unwrap().of, Bound::Socket(SocketId(7)));
}

#[test]
fn a_graph_that_goes_round_in_circles_ends() {
    let graph = graph(&[(11, 12, 11, 11, 5_500), (12, 11, 11, 11, 5_500)]);
    assert_eq!(bound(&graph, &turns()).len(), 2);
}

#[test]
fn a_long_chain_is_bound_in_one_pass() {
    let mut all = vec![(SHELL, 1, 10, 10, 1_000), (11, SHELL, 11, 10, 5_500)];
    all.extend((12..5_000).map(|pid| (pid, pid - 1, 11, 10, 9_500)));
    let bound = bound(&graph(&all), &turns());
    assert!(bound[2..].iter().all(|line| line.ends_with("agent:bot lineage")), "{:?}", bound.last());
}

const HOME: &str = "/user";

/// The graph with each process in a cgroup: below the session's own, or the keeper's.
fn placed(processes: &[(Line, &str)]) -> (Graph, Spots) {
    let spots = Spots { path: format!("{HOME}/holdfast-a"), home: HOME.into(), since: Some(3) };
    let mut graph = graph(&processes.iter().map(|(process, _)| *process).collect::<Vec<_>>());
    for (process, (_, name)) in graph.processes.iter_mut().zip(processes) {
        let path = if name.is_empty() { HOME.to_owned() } else { format!("{}/{name}", spots.path) };
        process.cgroup = Some(path.trim_end_matches('/').to_owned());
    }
    (graph, spots)
}

#[test]
fn a_daemon_is_its_turns_whenever_it_was_born() {
    let (graph, spots) = placed(&[
        ((SHELL, 1, 10, 10, 1_000), "t9"),
        // Ann's, by elimination: born before bot wrote, and long after.
        ((20, 1, 20, 20, 1_500), ""),
        ((21, 1, 21, 21, 9_500), "/"),
        // Bot's, in its turn and in ann's.
        ((22, 1, 22, 22, 5_500), "t4"),
        ((23, 1, 23, 23, 9_500), "t4"),
        ((24, 23, 23, 23, 9_600), "t4"),
        // A fence at which nobody wrote: the next writer is its holder, who came back.
        ((25, 1, 25, 25, 9_500), "t3"),
        // In somebody else's cgroup.
        ((26, 1, 26, 26, 9_500), "../docker"),
    ]);
    assert_eq!(
        told_with(&graph, &turns(), Some(&spots))[1..],
        [
            "20 human:ann cgroup",
            "21 human:ann cgroup",
            "22 agent:bot cgroup",
            "23 agent:bot cgroup",
            "24 agent:bot cgroup",
            "25 agent:bot cgroup",
            "26 human:ann time",
        ]
    );
    let acts: Vec<_> = bind(&graph, SHELL, &turns(), Some(&spots)).iter().map(|binding| binding.act).collect();
    assert_eq!(acts[1..6], [Some(1), None, Some(4), Some(4), Some(4)], "no act where it cannot be bound");
}

#[test]
fn what_the_shell_starts_is_by_cgroup_where_time_says_the_same() {
    let (graph, spots) = placed(&[
        ((SHELL, 1, 10, 10, 1_000), "t9"),
        ((11, SHELL, 11, 10, 9_500), "t9"),
        ((12, 11, 11, 10, 9_600), "t9"),
        // Ann has the turn and wrote nothing yet: the shell goes on with bot's line.
        ((13, SHELL, 13, 10, 8_000), "t9"),
        // A move that failed.
        ((14, SHELL, 14, 10, 9_700), "t4"),
        // A turn at which nobody wrote.
        ((15, SHELL, 15, 10, 9_700), "t99"),
    ]);
    assert_eq!(
        told_with(&graph, &turns(), Some(&spots))[1..],
        ["11 human:ann cgroup", "12 human:ann cgroup", "13 agent:bot time", "14 human:ann time", "15 human:ann time",]
    );
}

#[test]
fn what_is_in_a_runs_cgroup_is_the_runs_whoever_wrote_meanwhile() {
    let (graph, spots) = placed(&[
        ((SHELL, 1, 10, 10, 1_000), "r4"),
        ((11, SHELL, 11, 10, 9_500), "r4"),
        ((12, 1, 12, 12, 9_600), "r4"),
        ((13, 1, 13, 13, 9_600), "r77"),
    ]);
    assert_eq!(
        told_with(&graph, &turns(), Some(&spots))[1..],
        ["11 agent:bot cgroup", "12 agent:bot cgroup", "13 human:ann time"]
    );
}

#[test]
fn a_job_of_a_shell_inside_the_shell_is_known_by_time() {
    let (graph, spots) = placed(&[
        ((SHELL, 1, 10, 10, 1_000), "t9"),
        ((12, SHELL, 12, 10, 5_020), "t4"),
        ((14, 12, 14, 10, 9_500), "t4"),
        ((15, 14, 14, 10, 9_600), "t4"),
    ]);
    assert_eq!(
        told_with(&graph, &turns(), Some(&spots))[1..],
        ["12 agent:bot cgroup", "14 human:ann time", "15 human:ann lineage"]
    );
}

#[test]
fn a_daemon_beside_a_shell_inside_the_shell_is_known_by_time_where_that_says_another() {
    let daemon = ((21, 1, 21, 21, 9_500), "t4");
    let bound = |argv: &[&str], place| {
        let (mut graph, spots) =
            placed(&[((SHELL, 1, 10, 10, 1_000), "t9"), ((12, SHELL, 12, 10, 5_020), place), daemon]);
        graph.processes[1].comm = "bash".into();
        graph.processes[1].argv = argv.iter().map(|word| (*word).to_owned()).collect();
        told_with(&graph, &turns(), Some(&spots)).remove(2)
    };
    assert_eq!(bound(&["-bash", "-i"], "t4"), "21 human:ann time");
    assert_eq!(bound(&["bash", "build.sh"], "t4"), "21 agent:bot cgroup");
    assert_eq!(bound(&["-bash"], "t9"), "21 agent:bot cgroup");
}

#[test]
fn names_of_cgroups_come_back_and_others_are_none() {
    for spot in [Spot::Turn(Fence(0)), Spot::Turn(Fence(u64::MAX)), Spot::Run(17)] {
        assert_eq!(Spot::parse(&spot.to_string()), Some(spot));
    }
    for name in ["", "t", "r-1", "t+1", "t01", "x1", "t1.service", "r99999999999999999999"] {
        assert_eq!(Spot::parse(name), None, "{name}");
    }
}
