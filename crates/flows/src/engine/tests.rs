//! The engine against a disk that is full: nothing is acknowledged that is not written.

use super::{Engine, Input};
use crate::link::Place;
use crate::protocol::{Request, Trouble};
use crate::store::Store;
use holdfast_flow::Command;
use holdfast_types::{Actor, ActorId, Home};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// An engine on a thread of its own, and a client of it.
struct Rig {
    tell: Sender<Input>,
    reply: Sender<(u64, Result<Value, Trouble>)>,
    answers: Receiver<(u64, Result<Value, Trouble>)>,
    running: Option<std::thread::JoinHandle<()>>,
}

impl Rig {
    fn start(dir: &Path, pages_max: Option<u32>) -> Rig {
        let (tell, inputs) = channel();
        let (reply, answers) = channel();
        let (path, home, engine_tell) = (dir.join("flows.db"), Home::under(dir), tell.clone());
        let running = std::thread::spawn(move || {
            let store = Store::open(&path).unwrap();
            if let Some(pages_max) = pages_max {
                store.limit_pages(pages_max);
            }
            let place = Place { home, program: PathBuf::from("/nonexistent") };
            Engine::new(store, place, engine_tell).unwrap().run(&inputs);
        });
        let rig = Rig { tell, reply, answers, running: Some(running) };
        rig.tell.send(Input::Came).unwrap();
        rig
    }

    fn ask(&self, request: Request) -> Result<Value, Trouble> {
        let by = Actor { id: ActorId([1; 32]), handle: "human:ann".parse().unwrap() };
        let input = Input::Asked { connection: 1, by, vouched: false, id: 7, request, reply: self.reply.clone() };
        self.tell.send(input).unwrap();
        self.answers.recv_timeout(PATIENCE).unwrap().1
    }

    fn sleeper(&self, id: &str, input: &str) -> Result<Value, Trouble> {
        self.ask(Request::Start {
            flow: Some(id.into()),
            definition: Some("flow: A\nsteps:\n- signal: go\n- sleep: 5d\n".into()),
            name: None,
            input: input.into(),
            cwd: None,
            skip_timers: false,
        })
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.ask(Request::Stop {});
        let _ = self.running.take().map(std::thread::JoinHandle::join);
    }
}

#[test]
fn a_full_disk_acknowledges_nothing_that_is_not_written_and_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let (mut written, mut refused) = (Vec::new(), 0);
    {
        let rig = Rig::start(dir.path(), Some(40));
        for n in 0..200 {
            let id = format!("A-{n}");
            match rig.sleeper(&id, &"x".repeat(2_000)) {
                Ok(_) => written.push(id),
                Err(trouble) => {
                    assert_eq!(trouble.code, "unrecorded", "{trouble}");
                    refused += 1;
                }
            }
        }
        // A signal to a flow that is there is refused too, and leaves no trace in memory.
        let big = Value::String("y".repeat(60_000));
        let signal = Request::Signal { flow: "A-0".into(), name: "go".into(), value: big, signal: "s".into() };
        assert_eq!(rig.ask(signal).unwrap_err().code, "unrecorded");
        let view = rig.ask(Request::Get { flow: "A-0".into(), after: 0, wait_ms: 0, generation: None }).unwrap();
        assert_eq!(view["status"], "WAITING_FOR(go)");
    }
    assert!(written.len() > 5 && refused > 5, "{} {refused}", written.len());
    let rig = Rig::start(dir.path(), None);
    let listed = rig.ask(Request::List { all: true, after: 0, wait_ms: 0 }).unwrap();
    let mut listed: Vec<String> =
        listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().into()).collect();
    listed.sort();
    written.sort();
    assert_eq!(listed, written, "what was acknowledged is there, and nothing else");
    let signal = Request::Signal { flow: "A-0".into(), name: "go".into(), value: "yes".into(), signal: "s".into() };
    assert_eq!(rig.ask(signal).unwrap()["status"], "WAITING_FOR(Timer)");
}

#[test]
fn a_database_that_somebody_else_has_locked_refuses_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::start(dir.path(), None);
    rig.sleeper("A-1", "").unwrap();
    let backup = rusqlite::Connection::open(dir.path().join("flows.db")).unwrap();
    backup.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(rig.sleeper("A-2", "").unwrap_err().code, "unrecorded");
    backup.execute_batch("ROLLBACK").unwrap();
    rig.sleeper("A-2", "").unwrap();
    let signal = Request::Signal { flow: "A-1".into(), name: "go".into(), value: "yes".into(), signal: "s".into() };
    assert_eq!(rig.ask(signal).unwrap()["status"], "WAITING_FOR(Timer)");
}

#[test]
fn a_worker_is_shown_a_signal_that_came_before_it_was_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::start(dir.path(), None);
    let (flow, name) = (Some("A-1".to_owned()), Some("A".to_owned()));
    let (definition, cwd) = (None, None);
    rig.ask(Request::Start { flow, definition, name, input: Value::Null, cwd, skip_timers: false }).unwrap();
    let signal = Request::Signal { flow: "A-1".into(), name: "go".into(), value: "yes".into(), signal: "s".into() };
    rig.ask(signal).unwrap();
    let tasks = || rig.ask(Request::Tasks { names: vec!["A".into()], max: 1, wait_ms: 0 }).unwrap();
    let task = tasks();
    let at = task[0]["at"].as_u64().unwrap();
    let command = Command::Signal { name: "go".into(), timeout_ms: None };
    let turn = Request::Turn { flow: "A-1".into(), at, commands: vec![(0, command)], blocked: None };
    rig.ask(turn.clone()).unwrap();
    assert_eq!(rig.ask(turn).unwrap_err().code, "history_moved", "an answer that comes twice counts once");
    let next = tasks();
    let events: Vec<&str> =
        next[0]["history"].as_array().unwrap().iter().map(|one| one["event"].as_str().unwrap()).collect();
    assert_eq!((next[0]["from"].as_u64(), events), (Some(at), vec!["asked", "done"]));
}

#[test]
fn who_watches_all_flows_is_told_what_changed_and_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::start(dir.path(), None);
    let list = |after: u64, wait_ms: u64| Request::List { all: true, after, wait_ms };
    let ids = |listed: &Value| -> Vec<String> {
        listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let newest = |listed: &Value| listed.as_array().unwrap().iter().map(|one| one["changed"].as_u64().unwrap()).max();
    // Who waits for the first flow is answered when it comes: before whoever started it, or after.
    let by = Actor { id: ActorId([1; 32]), handle: "human:ann".parse().unwrap() };
    let watch = |request: Request| {
        let (by, reply) = (by.clone(), rig.reply.clone());
        rig.tell.send(Input::Asked { connection: 2, by, vouched: true, id: 99, request, reply }).unwrap();
    };
    watch(list(0, 60_000));
    let started = rig.sleeper("A-1", "").unwrap();
    let told = rig.answers.recv_timeout(PATIENCE).unwrap().1.unwrap();
    let told = if told.is_array() { told } else { started };
    assert_eq!(ids(&told), ["A-1"]);
    let after = newest(&told).unwrap();
    assert_eq!(rig.ask(list(after, 0)).unwrap(), Value::Array(Vec::new()), "nothing is told twice");
    rig.sleeper("A-2", "").unwrap();
    let second = rig.ask(list(after, 60_000)).unwrap();
    assert_eq!(ids(&second), ["A-2"], "what came meanwhile is there at once");
    let after = newest(&second).unwrap();
    rig.ask(Request::Cancel { flow: "A-1".into(), reason: String::new() }).unwrap();
    let ended = rig.ask(list(after, 60_000)).unwrap();
    assert_eq!((ids(&ended), &ended[0]["state"]), (vec!["A-1".to_owned()], &Value::from("cancelled")));
    // A number of another life, or one that is long gone, gives everything.
    for after in [0, 1, u64::MAX / 2] {
        assert_eq!(rig.ask(list(after, 0)).unwrap().as_array().unwrap().len(), 2, "{after}");
    }
    // An agent that the host speaks for sees its own alone, and is not woken by others.
    let bot = Actor { id: ActorId([2; 32]), handle: "agent:bot".parse().unwrap() };
    let asked =
        Input::Asked { connection: 3, by: bot, vouched: true, id: 5, request: list(0, 0), reply: rig.reply.clone() };
    rig.tell.send(asked).unwrap();
    assert_eq!(rig.answers.recv_timeout(PATIENCE).unwrap().1.unwrap(), Value::Array(Vec::new()));
}

#[test]
fn a_history_of_a_newer_version_is_left_alone_and_said() {
    let dir = tempfile::tempdir().unwrap();
    {
        let rig = Rig::start(dir.path(), None);
        rig.sleeper("A-1", "").unwrap();
        rig.sleeper("A-2", "").unwrap();
    }
    let sql = rusqlite::Connection::open(dir.path().join("flows.db")).unwrap();
    let later = "INSERT INTO events (flow, seq, at_ms, body) SELECT rowid, 99, 1, '{\"event\":\"beamed\"}' FROM flows WHERE id = 'A-1'";
    assert_eq!(sql.execute(later, []).unwrap(), 1);
    drop(sql);
    let rig = Rig::start(dir.path(), None);
    let signal = |flow: &str| Request::Signal {
        flow: flow.into(),
        name: "go".into(),
        value: "yes".into(),
        signal: String::new(),
    };
    assert_eq!(rig.ask(signal("A-1")).unwrap_err().code, "damaged");
    let get = Request::Get { flow: "A-1".into(), after: 0, wait_ms: 0, generation: None };
    assert!(rig.ask(get).unwrap_err().message.contains("the history of A-1 is damaged"));
    assert_eq!(rig.ask(signal("A-2")).unwrap()["status"], "WAITING_FOR(Timer)", "the others go on");
}
