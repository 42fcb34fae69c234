//! A thousand sessions come and go, and leave nothing behind.

use holdfast_client::Incoming;
use holdfast_harness::{Home, Random, Terminal, gone, open_files, until};
use holdfast_wire::operations::op;
use holdfast_wire::params::{EndParams, NewParams, SessionView};
use std::collections::BTreeSet;
use std::path::Path;

const SESSIONS: usize = 1000;
/// Requests under way at once: what one connection may have open at a host.
const AT_ONCE: usize = 64;

fn names(dir: &Path) -> BTreeSet<String> {
    std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Asks for all of them, a few at a time, and gives the answers.
fn call_all<O: holdfast_wire::Operation>(home: &Home, all: &[O::Params]) -> Vec<O::Answer> {
    let mut host = home.connect().unwrap();
    let mut answers = Vec::new();
    let mut asked = 0;
    while answers.len() < all.len() {
        while asked < all.len() && asked - answers.len() < AT_ONCE {
            host.ask::<O>(&all[asked], &[]).unwrap();
            asked += 1;
        }
        if let Incoming::Answer { result, .. } = host.receive().unwrap() {
            answers.push(serde_json::from_value(result.unwrap()).unwrap());
        }
    }
    answers
}

/// The socket of a keeper that was started ahead.
const WAITING: usize = 1;

#[test]
fn a_thousand_sessions_leave_no_process_descriptor_or_file() {
    let mut random = Random::from_seed();
    let home = Home::new();
    home.session("warm", "exit 0");
    home.run(&["wait", "warm"]);
    let host = home.host_pid();
    // What terminals have seen stays for when they come back; that is bounded by itself.
    let sockets =
        || -> BTreeSet<String> { names(&home.join("run")).into_iter().filter(|name| name != "terminals").collect() };
    let (files, run) = (open_files(host), sockets());
    let new = |n: usize| NewParams {
        name: Some(format!("s{n}").parse().unwrap()),
        command: vec!["/bin/sleep".into(), "100000".into()],
        cwd: Some("/".into()),
        env: Some(vec![format!("HOLDFAST_HOME={}", home.path().display())]),
        ring_bytes: Some(256 * 1024),
        ..NewParams::default()
    };
    let started = call_all::<op::New>(&home, &(0..SESSIONS).map(new).collect::<Vec<_>>());
    let pids: Vec<u32> = started.iter().flat_map(|s: &SessionView| [s.pid, s.keeper_pid]).collect();
    assert!(pids.iter().all(|pid| *pid > 0 && !gone(*pid)));
    for round in 0..8 {
        let name = format!("s{}", random.below(SESSIONS as u64));
        let (terminal, mut client) = Terminal::attached(&home, &name, "80x24");
        match round % 3 {
            0 => terminal.types(holdfast_harness::DETACH),
            1 => client.kill(),
            _ => drop(terminal),
        }
        client.wait();
    }
    home.kill_host();
    let again = home.json(&["ls"]);
    assert_eq!(again.as_array().unwrap().len(), SESSIONS, "all of them outlive a host");
    let host = home.host_pid();
    let ends: Vec<EndParams> =
        started.iter().map(|s| EndParams { session: s.id.to_string(), grace_ms: 2000, proof: None }).collect();
    call_all::<op::End>(&home, &ends);
    until("the last process", || pids.iter().all(|pid| gone(*pid)).then_some(()));
    until("the last descriptor", || (open_files(host) <= files + WAITING).then_some(()));
    until("the last socket", || (sockets() == run).then_some(()));
    assert!(names(&home.join("run/terminals")).len() <= 64);
    until("nobody but the host", || (home.processes_at_work() == [host]).then_some(()));
    let children = std::fs::read_to_string(format!("/proc/{host}/task/{host}/children")).unwrap();
    let zombies = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .filter(|pid| home.waiting_keeper() != Some(*pid));
    assert_eq!(zombies.collect::<Vec<u32>>(), [0; 0]);
    assert_eq!(names(&home.join("sessions")).len(), SESSIONS + 1, "the records of the ended ones");
    // The host may be writing one just now.
    let odd = || -> Vec<String> {
        let dirs = std::fs::read_dir(home.join("sessions")).unwrap().flatten();
        dirs.flat_map(|entry| names(&entry.path())).filter(|name| name.ends_with(".new")).collect()
    };
    until(&format!("no half-written file; the host is {host}, and there are {:?}", odd()), || odd().is_empty());
}
