//! The engine against a disk that is full: nothing is acknowledged that is not written.

use super::{Engine, Input, Standing};
use crate::Keeping;
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
        Rig::keeping(dir, pages_max, Keeping::default())
    }

    fn keeping(dir: &Path, pages_max: Option<u32>, keeping: Keeping) -> Rig {
        let (tell, inputs) = channel();
        let (reply, answers) = channel();
        let (path, home, engine_tell) = (dir.join("flows.db"), Home::under(dir), tell.clone());
        let running = std::thread::spawn(move || {
            let store = Store::open(&path).unwrap();
            if let Some(pages_max) = pages_max {
                store.limit_pages(pages_max);
            }
            let place = Place { home, program: PathBuf::from("/nonexistent") };
            Engine::new(store, place, keeping, engine_tell).unwrap().run(&inputs);
        });
        let rig = Rig { tell, reply, answers, running: Some(running) };
        rig.tell.send(Input::Came).unwrap();
        rig
    }

    fn ask(&self, request: Request) -> Result<Value, Trouble> {
        let by = Actor { id: ActorId([1; 32]), handle: "human:ann".parse().unwrap() };
        let input = Input::Asked {
            connection: 1,
            by,
            standing: Standing::Own,
            id: 7,
            request: Box::new(request),
            reply: self.reply.clone(),
        };
        self.tell.send(input).unwrap();
        self.answers.recv_timeout(PATIENCE).unwrap().1
    }

    fn sleeper(&self, id: &str, input: &str) -> Result<Value, Trouble> {
        self.begin(id, "flow: A\nsteps:\n- signal: go\n- sleep: 5d\n".into(), input)
    }

    fn start_yaml(&self, id: &str, definition: String) -> Result<Value, Trouble> {
        self.begin(id, definition, "")
    }

    fn begin(&self, id: &str, definition: String, input: &str) -> Result<Value, Trouble> {
        self.ask(Request::Start {
            flow: Some(id.into()),
            definition: Some(definition),
            name: None,
            input: input.into(),
            cwd: None,
            skip_timers: false,
            code: String::new(),
            hosted: None,
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
    rig.ask(Request::Start {
        flow,
        definition,
        name,
        input: Value::Null,
        cwd,
        skip_timers: false,
        code: String::new(),
        hosted: None,
    })
    .unwrap();
    let signal = Request::Signal { flow: "A-1".into(), name: "go".into(), value: "yes".into(), signal: "s".into() };
    rig.ask(signal).unwrap();
    let tasks =
        || rig.ask(Request::Tasks { names: vec!["A".into()], max: 1, wait_ms: 0, code: String::new() }).unwrap();
    let task = tasks();
    let at = task[0]["at"].as_u64().unwrap();
    let command = Command::Signal { name: "go".into(), timeout_ms: None };
    let turn =
        Request::Turn { flow: "A-1".into(), at, commands: vec![(0, command)], blocked: None, code: String::new() };
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
        let request = Box::new(request);
        rig.tell.send(Input::Asked { connection: 2, by, standing: Standing::Vouched, id: 99, request, reply }).unwrap();
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
    let asked = Input::Asked {
        connection: 3,
        by: bot,
        standing: Standing::Vouched,
        id: 5,
        request: Box::new(list(0, 0)),
        reply: rig.reply.clone(),
    };
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

fn a_signal(flow: &str) -> Request {
    Request::Signal { flow: flow.into(), name: "go".into(), value: "yes".into(), signal: "s".into() }
}

#[test]
fn flows_at_rest_are_not_read_at_start_and_wake_for_signals_answers_and_timers() {
    let dir = tempfile::tempdir().unwrap();
    let status = |rig: &Rig| {
        let status = rig.ask(Request::Status {}).unwrap();
        (status["open"].as_u64().unwrap(), status["in_memory"].as_u64().unwrap())
    };
    {
        let rig = Rig::start(dir.path(), None);
        (1..=6).for_each(|n| drop(rig.sleeper(&format!("A-{n}"), "").unwrap()));
        let definition = "flow: B\nsteps:\n- ask: Go?\n- sleep: 1ms\n- sleep: 1s\n".to_owned();
        rig.start_yaml("B-1", definition).unwrap();
        let both = "flow: C\nsteps:\n- all:\n  - signal: go\n  - sleep: 5d\n".to_owned();
        rig.start_yaml("C-1", both).unwrap();
        assert_eq!(rig.ask(a_signal("C-1")).unwrap()["status"], "WAITING_FOR(Timer)", "nothing is asked for then");
        assert_eq!(status(&rig), (8, 2), "those that came to rest last stay in memory");
        assert_eq!(rig.ask(a_signal("A-1")).unwrap()["status"], "WAITING_FOR(Timer)", "one that was let go");
    }
    {
        let rig = Rig::start(dir.path(), None);
        assert_eq!(status(&rig), (8, 0));
        let get = Request::Get { flow: "C-1".into(), after: 0, wait_ms: 0, generation: None };
        assert_eq!(rig.ask(get).unwrap()["status"], "WAITING_FOR(Timer)");
        assert_eq!(rig.ask(a_signal("A-1")).unwrap()["events"], 5, "the same signal counts once");
        assert_eq!(rig.ask(a_signal("A-2")).unwrap()["status"], "WAITING_FOR(Timer)");
        rig.ask(Request::Cancel { flow: "A-3".into(), reason: String::new() }).unwrap();
        let listed = rig.ask(Request::List { all: false, after: 0, wait_ms: 0 }).unwrap();
        assert_eq!(listed.as_array().unwrap().len(), 7, "those at rest are listed as well");
        rig.ask(Request::Answer { flow: "B-1".into(), n: None, text: "yes".into() }).unwrap();
    }
    // Its last timer fires in this service, or was due when none ran.
    let rig = Rig::start(dir.path(), None);
    let (flow, mut after) = ("B-1".to_owned(), 0);
    let ended = (0..20).any(|_| {
        let seen = rig.ask(Request::Get { flow: flow.clone(), after, wait_ms: 30_000, generation: None }).unwrap();
        after = seen["events"].as_u64().unwrap();
        seen["status"] == "COMPLETED"
    });
    assert!(ended, "a timer wakes its flow");
    assert_eq!(status(&rig).0, 6);
}

#[test]
fn a_file_of_the_version_before_is_taken_over_and_its_flows_are_at_rest_the_next_time() {
    let dir = tempfile::tempdir().unwrap();
    drop(Rig::start(dir.path(), None));
    let path = dir.path().join("flows.db");
    let sql = rusqlite::Connection::open(&path).unwrap();
    let back =
        "ALTER TABLE flows DROP COLUMN asleep; ALTER TABLE flows DROP COLUMN code; ALTER TABLE code DROP COLUMN file;
         PRAGMA user_version = 1;
         INSERT INTO flows (id, name, started_ms) VALUES ('C-1', 'C', 1);";
    sql.execute_batch(back).unwrap();
    let events = [
        r#"{"event":"started","name":"C","input":null,"code":"","by":"human:ann","nonce":"00"}"#,
        r#"{"event":"asked","n":0,"command":{"do":"sleep","name":"Timer","ms":900000000}}"#,
    ];
    for (seq, body) in events.into_iter().enumerate() {
        let add = "INSERT INTO events (flow, seq, at_ms, body) VALUES (1, ?, ?, ?)";
        sql.execute(add, (seq as i64, crate::clock::now_ms() as i64, body)).unwrap();
    }
    drop(sql);
    for in_memory in [1, 0] {
        let rig = Rig::start(dir.path(), None);
        let status = rig.ask(Request::Status {}).unwrap();
        assert_eq!((status["open"].as_u64(), status["in_memory"].as_u64()), (Some(1), Some(in_memory)));
        let get = Request::Get { flow: "C-1".into(), after: 0, wait_ms: 0, generation: None };
        assert_eq!(rig.ask(get).unwrap()["status"], "WAITING_FOR(Timer)");
    }
}

#[test]
fn what_ended_long_ago_is_archived_line_by_line_and_removed_and_stays_where_the_archive_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let now = Keeping { ended_ms: 0, archive: Some(dir.path().join("archive")) };
    let ids = |rig: &Rig| {
        let listed = rig.ask(Request::Histories { after: 0 }).unwrap();
        listed.as_array().unwrap().iter().map(|one| one["flow"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    {
        let rig = Rig::start(dir.path(), None);
        (1..=3).for_each(|n| drop(rig.sleeper(&format!("A-{n}"), "margherita").unwrap()));
        for flow in ["A-1", "A-3"] {
            rig.ask(Request::Cancel { flow: flow.into(), reason: "enough".into() }).unwrap();
        }
        assert_eq!(ids(&rig), ["A-1", "A-2", "A-3"]);
    }
    std::fs::write(dir.path().join("archive"), "a file where a directory should be").unwrap();
    {
        let rig = Rig::keeping(dir.path(), None, now.clone());
        assert_eq!(ids(&rig), ["A-1", "A-2", "A-3"], "nothing is removed that is not in the archive");
        assert!(rig.ask(Request::Status {}).unwrap()["trouble"].as_str().unwrap().contains("archive"));
    }
    std::fs::remove_file(dir.path().join("archive")).unwrap();
    let rig = Rig::keeping(dir.path(), None, now);
    assert_eq!(ids(&rig), ["A-2"]);
    assert_eq!(rig.ask(Request::Status {}).unwrap()["trouble"], Value::Null);
    let files: Vec<_> = std::fs::read_dir(dir.path().join("archive")).unwrap().map(|one| one.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |line: &Value| format!("{} {} {} {}", line["flow"], line["generation"], line["seq"], line["event"]);
    assert_eq!(told(&lines[0]), r#""A-1" 1 0 "started""#);
    assert_eq!(lines[0]["input"], "margherita");
    assert_eq!(told(lines.last().unwrap()), r#""A-3" 1 3 "ended""#);
}

#[test]
fn code_is_kept_for_flows_that_go_on_with_it_and_others_workers_get_only_what_they_can_read() {
    let dir = tempfile::tempdir().unwrap();
    let keep = |rig: &Rig, text: &str, file: &str| {
        let kept = rig.ask(Request::Keep { text: text.into(), file: file.into() }).unwrap();
        kept["code"].as_str().unwrap().to_owned()
    };
    let tasks = |rig: &Rig, code: &str| {
        let tasks = rig.ask(Request::Tasks { names: vec!["F".into()], max: 4, wait_ms: 1, code: code.into() }).unwrap();
        tasks.as_array().unwrap().clone()
    };
    let turn = |code: &str, at: u64, n: u32| {
        let command = Command::Signal { name: "go".into(), timeout_ms: None };
        Request::Turn { flow: "F-1".into(), at, commands: vec![(n, command)], blocked: None, code: code.into() }
    };
    let first;
    {
        let rig = Rig::start(dir.path(), None);
        first = keep(&rig, "v1", "f.py");
        keep(&rig, "nobody uses it", "g.py");
        assert_eq!(keep(&rig, "v1", "f.py"), first, "the same text is the same code");
        let bad =
            |text: &str, file: &str| rig.ask(Request::Keep { text: text.into(), file: file.into() }).unwrap_err().code;
        assert_eq!(
            (bad("", "f.py"), bad("x", "../f.py"), bad("x", "")),
            ("bad_request".into(), "bad_request".into(), "bad_request".into())
        );
        let start = Request::Start {
            flow: Some("F-1".into()),
            definition: None,
            name: Some("F".into()),
            input: Value::Null,
            cwd: None,
            skip_timers: false,
            code: String::new(),
            hosted: None,
        };
        rig.ask(start).unwrap();
        assert_eq!(tasks(&rig, &first)[0]["code"], Value::Null, "whoever comes first decides");
        assert_eq!(rig.ask(turn("00", 1, 0)).unwrap_err().code, "no_such_code");
        rig.ask(turn(&first, 1, 0)).unwrap();
    }
    let rig = Rig::start(dir.path(), None);
    let kept = rig.ask(Request::Code { code: first.clone() }).unwrap();
    assert_eq!((&kept["text"], &kept["file"]), (&"v1".into(), &"f.py".into()));
    let unused = super::requests::digest("nobody uses it");
    assert_eq!(rig.ask(Request::Code { code: unused }).unwrap_err().code, "no_such_code");
    rig.ask(a_signal("F-1")).unwrap();
    let other = keep(&rig, "v1 in another language", "f.mjs");
    assert!(tasks(&rig, &other).is_empty(), "a worker of another language cannot read it");
    let second = keep(&rig, "v2", "f.py");
    let task = tasks(&rig, &second);
    assert_eq!((&task[0]["code"], &task[0]["flow"]), (&first.as_str().into(), &"F-1".into()));
    // At event 5: started, coded, asked, signal, done.
    rig.ask(turn(&first, 5, 1)).unwrap();
    let human = Request::Retry { flow: "F-1".into(), verdict: "code".into(), value: Value::Null, hosted: None };
    rig.ask(human).unwrap();
    assert_eq!(tasks(&rig, &second)[0]["code"], Value::Null, "the newest decides from here on");
}

#[test]
fn a_worker_that_answers_twice_late_or_nonsense_changes_nothing_that_was_decided() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::start(dir.path(), None);
    let (flow, name) = ("F-1".to_owned(), Some("F".to_owned()));
    let start = Request::Start {
        flow: Some(flow),
        definition: None,
        name,
        input: Value::Null,
        cwd: None,
        skip_timers: false,
        code: String::new(),
        hosted: None,
    };
    rig.ask(start).unwrap();
    let asks = |at: u64, n: u32, name: &str| {
        let command = Command::Signal { name: name.into(), timeout_ms: None };
        Request::Turn { flow: "F-1".into(), at, commands: vec![(n, command)], blocked: None, code: String::new() }
    };
    let task = || rig.ask(Request::Tasks { names: vec!["F".into()], max: 4, wait_ms: 1, code: String::new() }).unwrap();
    let refused = |turn: Request| rig.ask(turn).unwrap_err().code;
    let status = || {
        let get = Request::Get { flow: "F-1".into(), after: 0, wait_ms: 0, generation: None };
        let seen = rig.ask(get).unwrap();
        (seen["status"].as_str().unwrap().to_owned(), seen["events"].as_u64().unwrap())
    };
    assert_eq!(refused(asks(1, 0, "go")), "history_moved", "nobody asked it");
    assert_eq!(task().as_array().unwrap().len(), 1);
    assert_eq!(task(), Value::Array(Vec::new()), "one worker at a time");
    assert_eq!(refused(asks(7, 0, "go")), "history_moved", "a history that there is not");
    assert_eq!(task()[0]["at"], 1, "somebody else may try");
    let big = Value::String("x".repeat(70_000));
    let end = vec![(0, Command::End { ok: true, value: big })];
    let too_long = Request::Turn { flow: "F-1".into(), at: 1, commands: end, blocked: None, code: String::new() };
    rig.ask(too_long).unwrap();
    assert_eq!(status().0, "BLOCKED", "a value without bounds");
    let retry = || Request::Retry { flow: "F-1".into(), verdict: "again".into(), value: Value::Null, hosted: None };
    rig.ask(retry()).unwrap();
    let at = task()[0]["at"].as_u64().unwrap();
    rig.ask(asks(at, 5, "go")).unwrap();
    assert_eq!(status().0, "BLOCKED", "a number that is not the next");
    rig.ask(retry()).unwrap();
    let at = task()[0]["at"].as_u64().unwrap();
    rig.ask(asks(at, 0, "go")).unwrap();
    let before = status();
    assert_eq!(before.0, "WAITING_FOR(go)");
    assert_eq!(refused(asks(at, 0, "stop")), "history_moved", "the same turn once more");
    assert_eq!(status(), before);
    // Late: another event came between its task and its answer.
    rig.ask(a_signal("F-1")).unwrap();
    let at = task()[0]["at"].as_u64().unwrap();
    let other = Request::Signal { flow: "F-1".into(), name: "other".into(), value: Value::Null, signal: String::new() };
    rig.ask(other).unwrap();
    assert_eq!(refused(asks(at, 1, "next")), "history_moved");
    assert_eq!(task()[0]["at"], at + 1);
    // One that never answers loses its task when it goes.
    rig.tell.send(Input::Gone(1)).unwrap();
    rig.tell.send(Input::Came).unwrap();
    assert_eq!(task()[0]["at"], at + 1);
}
