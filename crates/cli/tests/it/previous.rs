//! Today's program with the version before: its host is played from what it once answered, its client from what it once asked
//! (`tests/previous/calls.json`).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use holdfast_client::Identity;
use holdfast_harness::{Home, TESTER};
use holdfast_types::Challenge;
use holdfast_wire::frame::{FRAME_BYTES_MAX, Frame};
use holdfast_wire::{Body, Code, Fault, Message};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What a person asks most. Nothing of it is signed by itself, and all of it prints the same for the same answers.
const COMMANDS: &[&[&str]] = &[
    &["ls", "--json"],
    &["info", "work", "--json"],
    &["state", "work", "--json"],
    &["screen", "work"],
    &["logs", "work", "--json"],
    &["turn", "work", "--json"],
    &["grants", "work", "--json"],
    &["questions", "--json"],
    &["send", "work", "--enter", "hello"],
    &["journal", "work", "--json"],
    &["token", "ls", "--json"],
    &["host", "status", "--json"],
];

/// Set by who records the version that just landed.
const RECORD: &str = "HOLDFAST_RECORD_PREVIOUS";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/previous").join(name)
}

/// Messages of one connection, in one direction.
struct Incoming {
    stream: UnixStream,
    bytes: Vec<u8>,
}

impl Incoming {
    fn of(stream: &UnixStream) -> Incoming {
        Incoming { stream: stream.try_clone().unwrap(), bytes: Vec::new() }
    }

    fn next(&mut self) -> Option<Message> {
        loop {
            if let Some((frame, taken)) = Frame::decode(&self.bytes, FRAME_BYTES_MAX).unwrap() {
                let message = Message::decode(frame).unwrap();
                self.bytes.drain(..taken);
                return Some(message);
            }
            let mut more = [0; 4096];
            match self.stream.read(&mut more) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.bytes.extend(&more[..count]),
            }
        }
    }
}

fn send(stream: &mut UnixStream, message: &Message) {
    let mut out = Vec::new();
    message.encode(&mut out);
    // A client that has what it wanted goes away.
    let _ = stream.write_all(&out);
}

/// What was asked and answered, in the order of the questions.
type Calls = Arc<Mutex<Vec<Value>>>;

fn bind(home: &Home) -> UnixListener {
    let path = home.places().host_socket();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::set_permissions(path.parent().unwrap(), std::fs::Permissions::from_mode(0o700)).unwrap();
    UnixListener::bind(path).unwrap()
}

/// Serves every connection on a thread of its own, until the test ends.
fn serving(listener: UnixListener, serve: impl Fn(UnixStream) + Send + Sync + 'static) {
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
}

/// Stands between clients and the host, and writes down what they say.
fn listen_in(home: &Home) -> Calls {
    let behind = home.join("run/behind.sock");
    std::fs::rename(home.places().host_socket(), &behind).unwrap();
    let calls = Calls::default();
    let kept = Arc::clone(&calls);
    serving(bind(home), move |mut client| {
        let mut host = UnixStream::connect(&behind).unwrap();
        let (mut asked, mut answered) = (Incoming::of(&client), Incoming::of(&host));
        let kept = Arc::clone(&kept);
        let first = kept.lock().unwrap().len();
        let answers = Arc::clone(&kept);
        std::thread::spawn(move || {
            while let Some(message) = answered.next() {
                if let Body::Answer { id, result } = &message.body {
                    let mut all = answers.lock().unwrap();
                    let call = all.iter_mut().skip(first).find(|call| call["id"] == *id).unwrap();
                    match result {
                        Ok(result) => call["result"] = result.clone(),
                        Err(fault) => call["error"] = json!(fault),
                    }
                    call["bytes"] = json!(BASE64_STANDARD.encode(&message.bytes));
                }
                send(&mut client, &message);
            }
        });
        while let Some(message) = asked.next() {
            if let Body::Request { id, method, params } = &message.body {
                kept.lock().unwrap().push(json!({ "id": id, "method": method, "params": params }));
            }
            send(&mut host, &message);
        }
    });
    calls
}

/// A document with an entry a line: what changed can be read.
fn lines(document: &Value) -> String {
    let row = |(key, value): (&String, &Value)| format!("  {}: {value}", json!(key));
    let part = |(key, value): (&String, &Value)| match value.as_object() {
        Some(map) if map.len() > 3 => {
            format!(" {}: {{\n{}\n }}", json!(key), map.iter().map(row).collect::<Vec<_>>().join(",\n"))
        }
        _ => format!(" {}: {value}", json!(key)),
    };
    format!("{{\n{}\n}}\n", document.as_object().unwrap().iter().map(part).collect::<Vec<_>>().join(",\n"))
}

/// Without what is for people.
fn stripped(schema: &Value) -> Value {
    const FOR_PEOPLE: [&str; 7] = ["description", "doc", "title", "format", "minimum", "maximum", "default"];
    match schema {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, value)| value.is_object() || !FOR_PEOPLE.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), stripped(value))).collect())
        }
        Value::Array(all) => Value::Array(all.iter().map(stripped).collect()),
        other => other.clone(),
    }
}

/// A session as both tests and the recording have it.
fn home_at_work() -> Home {
    let home = Home::new();
    home.session("work", "echo ready; exec cat");
    home.until_screen_shows("work", "ready");
    home
}

#[test]
fn the_version_that_landed_is_recorded_where_it_is_asked_for() {
    if std::env::var_os(RECORD).is_none() {
        return;
    }
    let home = home_at_work();
    let calls = listen_in(&home);
    let mut recorded = Vec::new();
    for args in COMMANDS {
        calls.lock().unwrap().clear();
        let out = home.ok(args);
        let mut said = std::mem::take(&mut *calls.lock().unwrap());
        for call in &mut said {
            call.as_object_mut().unwrap().remove("id");
        }
        recorded.push(json!({ "args": args, "out": out, "calls": said }));
    }
    let rows: Vec<String> = recorded.iter().map(|row| format!(" {row}")).collect();
    std::fs::write(fixture("calls.json"), format!("[\n{}\n]\n", rows.join(",\n"))).unwrap();
    std::fs::write(fixture("schema.json"), lines(&stripped(&holdfast_wire::schema::document()))).unwrap();
    std::fs::rename(home.join("run/behind.sock"), home.places().host_socket()).unwrap();
}

fn recorded() -> Vec<Value> {
    let text = std::fs::read_to_string(fixture("calls.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(
        rows.len() >= 10 && rows.iter().all(|row| row["calls"].as_array().unwrap().len() >= 3),
        "the fixture is whole"
    );
    rows
}

/// Answers as the recorded host did. What it was not asked then it does not know.
fn answer(calls: &[Value], method: &str) -> (Result<Value, Fault>, Vec<u8>) {
    let Some(call) = calls.iter().find(|call| call["method"] == method) else {
        return (Err(Fault::new(Code::UnknownOperation, format!("there is no operation {method}"))), Vec::new());
    };
    let result = match call.get("error") {
        Some(fault) => Err(serde_json::from_value(fault.clone()).unwrap()),
        None => Ok(call["result"].clone()),
    };
    (result, BASE64_STANDARD.decode(call["bytes"].as_str().unwrap_or_default()).unwrap())
}

#[test]
fn todays_client_works_with_a_host_of_the_version_before() {
    let home = Home::new();
    holdfast_harness::settle(home.path(), TESTER);
    let playing: Calls = Calls::default();
    let calls = Arc::clone(&playing);
    serving(bind(&home), move |mut stream| {
        let mut asked = Incoming::of(&stream);
        while let Some(message) = asked.next() {
            if let Body::Request { id, method, .. } = message.body {
                let (result, bytes) = answer(&calls.lock().unwrap(), &method);
                send(&mut stream, &Message { body: Body::Answer { id, result }, bytes });
            }
        }
    });
    for row in recorded() {
        *playing.lock().unwrap() = row["calls"].as_array().unwrap().clone();
        let args: Vec<&str> = row["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
        let ran = home.run(&args);
        assert_eq!((ran.status, ran.out.as_str()), (0, row["out"].as_str().unwrap()), "{args:?}: {ran}");
    }
    std::fs::remove_file(home.places().host_socket()).unwrap();
}

/// Puts today's session in the place of the recorded one.
fn in_place(value: &Value, was: &str, is: &str) -> Value {
    serde_json::from_str(&value.to_string().replace(was, is)).unwrap()
}

#[test]
fn todays_host_takes_what_a_client_of_the_version_before_asks() {
    let rows = recorded();
    let home = home_at_work();
    let id = home.json(&["info", "work"])["id"].as_str().unwrap().to_owned();
    let was = rows.iter().flat_map(|row| row["calls"].as_array().unwrap()).find(|call| call["method"] == "session.get");
    let was = was.unwrap()["result"]["id"].as_str().unwrap().to_owned();
    let who = Identity::load_or_make(&home.places(), &TESTER.parse().unwrap()).unwrap();
    let mut asked = 0;
    for row in &rows {
        let mut stream = UnixStream::connect(home.places().host_socket()).unwrap();
        let mut incoming = Incoming::of(&stream);
        let mut challenge = Challenge([0; 32]);
        for (n, call) in (1..).zip(row["calls"].as_array().unwrap()) {
            let method = call["method"].as_str().unwrap();
            let mut params = in_place(&call["params"], &was, &id);
            if method == "identify" {
                // The one that this host asks for, by today's key.
                params["actor"] = json!(who.actor());
                params["signature"] = json!(who.answer(&challenge));
            }
            let body = Body::Request { id: n, method: method.into(), params };
            send(&mut stream, &Message { body, bytes: Vec::new() });
            let result = loop {
                match incoming.next().unwrap_or_else(|| panic!("{method}: the host hung up")).body {
                    Body::Answer { id, result } if id == n => break result,
                    _ => {}
                }
            };
            let result = result.unwrap_or_else(|fault| panic!("{method}: {fault:?}"));
            for key in call["result"].as_object().into_iter().flatten().map(|(key, _)| key) {
                assert!(result.get(key).is_some(), "{method}: no {key} in {result}");
            }
            if method == "hello" {
                challenge = serde_json::from_value(result["challenge"].clone()).unwrap();
            }
            asked += 1;
        }
    }
    assert!(asked > 30, "{asked} questions");
}
