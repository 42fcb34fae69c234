//! `spec/vectors`: frames as bytes and what they mean, made from the real types and replayed by every client.
//!
//! `HOLDFAST_BLESS=1 cargo test -p holdfast-wire --test vectors` writes the files anew.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // reads and writes the files of the vectors

mod example;

use example::{actor, minimal};
use holdfast_types::{Exit, Handle, Notice, Right, Rights, SessionId};
use holdfast_wire::attention::{Event as Happened, Now, RingEvent, WatchAnswer, What};
use holdfast_wire::events::{EVENTS, Event};
use holdfast_wire::follow::{FollowParams, OutputEvent};
use holdfast_wire::frame::{FRAME_BYTES_MAX, Frame, FrameError, KIND_JSON, KIND_JSON_BYTES};
use holdfast_wire::hello::HelloParams;
use holdfast_wire::params::*;
use holdfast_wire::runs::{Detect, RunId, RunStartParams, RunState};
use holdfast_wire::turns::{NoticeEvent, WritesEvent};
use holdfast_wire::{Body, Call, Code, Fault, Message, OPERATIONS, schema};
use serde::Serialize;
use serde_json::{Value, json};

/// One frame of `frames.json`.
#[derive(Serialize)]
struct Vector {
    name: String,
    doc: String,
    hex: String,
    kind: u8,
    message: Value,
    bytes: String,
}

fn hex(bytes: &[u8]) -> String {
    holdfast_types::hex_text(bytes)
}

fn vector(name: impl Into<String>, doc: impl Into<String>, body: Body, bytes: &[u8]) -> Vector {
    let message = Message { body, bytes: bytes.to_vec() };
    let mut out = vec![];
    message.encode(&mut out);
    let (frame, taken) = Frame::decode(&out, FRAME_BYTES_MAX).unwrap().unwrap();
    assert_eq!((taken, Message::decode(frame).unwrap()), (out.len(), message));
    Vector {
        name: name.into(),
        doc: doc.into(),
        hex: hex(&out),
        kind: out[4],
        message: serde_json::from_slice(frame.json).unwrap(),
        bytes: hex(bytes),
    }
}

fn request(name: &str, doc: &str, method: &str, params: impl Serialize, bytes: &[u8]) -> Vector {
    let params = serde_json::to_value(params).unwrap();
    Call::decode(method, params.clone()).unwrap();
    vector(name, doc, Body::Request { id: 7, method: method.into(), params }, bytes)
}

fn answer(name: &str, doc: &str, result: impl Serialize, bytes: &[u8]) -> Vector {
    vector(name, doc, Body::Answer { id: 7, result: Ok(serde_json::to_value(result).unwrap()) }, bytes)
}

fn event<E: Event>(name: &str, params: &E) -> Vector {
    event_with_bytes(name, params, b"")
}

fn event_with_bytes<E: Event>(name: &str, params: &E, bytes: &[u8]) -> Vector {
    let params = serde_json::to_value(params).unwrap();
    vector(name, E::ROW.doc, Body::Event { method: E::ROW.name.into(), params }, bytes)
}

/// Every operation with the least it can be asked with.
fn every_request(all: &Value) -> Vec<Vector> {
    let row = |row: &holdfast_wire::Row| {
        let params = minimal(all, &all["operations"][row.name]["params"]);
        request(&format!("request {}", row.name), row.doc, row.name, params, b"")
    };
    OPERATIONS.iter().map(row).collect()
}

fn fuller_requests() -> Vec<Vector> {
    let hello = HelloParams { versions: vec![1], program: "vectors 1".into() };
    let new = NewParams {
        name: Some("work".parse().unwrap()),
        command: vec!["sh".into(), "-c".into(), "echo \"ä\"\n".into()],
        cwd: Some("/".into()),
        env: Some(vec!["TERM=xterm-256color".into()]),
        ..NewParams::default()
    };
    let read = ReadParams { session: "work".into(), from: Some(4096), max: None, wait_ms: 1000 };
    let follow = FollowParams { session: "work".into(), follow: 3, from: Some(4096), credit: 262_144 };
    let send = SendParams {
        session: "work".into(),
        stream: 0x1f_ffff_ffff_ffff,
        seq: 1,
        client: None,
        fence: None,
        secret: false,
        force: false,
        in_order: false,
    };
    let start = RunStartParams {
        session: Some("work".into()),
        key: Some("build-7".into()),
        run: Some(RunId::from_random_bits(1)),
        command: "cargo build".into(),
        wait_ms: 5000,
        detect: Some(Detect::Quiet(300)),
        ..RunStartParams::default()
    };
    vec![
        request("hello", "The first request of a connection.", "hello", hello, b""),
        request("a session with a name", "Text beyond ASCII is UTF-8.", "session.new", new, b""),
        request("read from an offset", "An absent number is null, or left out.", "session.read", read, b""),
        request("output to be pushed", "The client names what it follows.", "session.follow", follow, b""),
        request("bytes to type", "The bytes stand behind the JSON.", "session.send", send, b"ls\r\0\xff"),
        request("a run", "An enum with a value is an object of one field.", "run.start", start, b""),
    ]
}

fn answers() -> Vec<Vector> {
    let gap = ReadAnswer {
        gap: Some(Gap { from: 0, to: 4096 }),
        from: 4096,
        to: 4099,
        head: 4099,
        end: false,
        size: "80x24".parse().unwrap(),
    };
    let none = ReadAnswer { gap: None, from: 4099, to: 4099, head: 4099, end: true, size: "80x24".parse().unwrap() };
    let happened = |seq, what| Happened {
        seq,
        at_ms: 1_700_000_000_000,
        session: SessionId::from_random_bits(1),
        name: "work".parse().unwrap(),
        what,
    };
    let by: Handle = "agent:bot".parse().unwrap();
    let ended = Now::Ended { exit: Exit::Code(3) };
    let (run, state, exit_code) = (RunId::from_random_bits(1), RunState::Ended, Some(2));
    let over = What::RunEnded { run, by: by.clone(), command: "make".into(), state, exit_code, act: Some(4) };
    let watched = WatchAnswer {
        events: vec![
            happened(1, What::Started { by: by.clone() }),
            happened(2, What::Turn { holder: Some(by.clone()) }),
            happened(3, What::RunStarted { run, by: by.clone(), command: "make".into(), act: Some(4) }),
            happened(4, over),
            happened(5, What::State { now: ended, pid: None, since_ms: 1_700_000_000_000 }),
            happened(6, What::Exit { exit: Exit::Signal(9) }),
        ],
        to: 6,
        lost: 0,
    };
    vec![
        answer("output", "The answer of session.read: a gap, and the bytes behind it.", gap, b"\x1b[1mhi"),
        answer("no output", "An answer without bytes is of the first kind.", none, b""),
        answer("events", "The answer of session.watch.", watched, b""),
        answer("nothing", "Most acts answer an empty object.", Nothing {}, b""),
        answer("null", "An answer may be null.", Value::Null, b""),
    ]
}

fn events(all: &Value) -> Vec<Vector> {
    let by: Handle = "human:ann".parse().unwrap();
    let from = Some("agent:bot".parse().unwrap());
    let notices = [
        Notice::Turn { holder: None },
        Notice::Requested { by: by.clone() },
        Notice::Seized { by: by.clone(), from, reason: "it loops".into() },
        Notice::Frozen { by: by.clone() },
        Notice::Thawed { by },
        Notice::Rights { rights: Rights::of(&[Right::Observe, Right::Run]) },
    ];
    let every = EVENTS.iter().map(|row| {
        let params = minimal(all, &all["events"][row.name]["params"]);
        vector(format!("event {}", row.name), row.doc, Body::Event { method: row.name.into(), params }, b"")
    });
    let mut list: Vec<Vector> = every.collect();
    list.extend(notices.map(|notice| {
        let kind = serde_json::to_value(&notice).unwrap()["kind"].as_str().unwrap().to_owned();
        event(&format!("notice of {kind}"), &NoticeEvent { client: 3, notice })
    }));
    list.push(event("the turn to write", &WritesEvent { client: 3, writes: true, fence: holdfast_types::Fence(12) }));
    list.push(event("a ring", &RingEvent { client: 3, text: "build waits for a password".into() }));
    list.push(event("a detached client", &DetachedEvent { client: 3 }));
    list.push(event("a terminal that answers", &AnswerEvent { client: 3, from: 1 << 33 }));
    let size = "80x24".parse().unwrap();
    let output = OutputEvent { follow: 3, gap: None, from: 4096, to: 4101, size, end: false, fault: None };
    let lapped = OutputEvent { gap: Some(Gap { from: 0, to: 4096 }), ..output.clone() };
    let fault = Some(Fault::new(Code::Denied, "the right to observe was taken back"));
    let (ended, denied) = (OutputEvent { end: true, ..output.clone() }, OutputEvent { fault, ..output.clone() });
    list.push(event_with_bytes("pushed output", &output, b"\x1b[1mh"));
    list.push(event_with_bytes("pushed output behind a gap", &lapped, b"\0\xff\x1b[m"));
    list.push(event("the end of output", &OutputEvent { from: 4101, ..ended }));
    list.push(event("output that may no longer be seen", &OutputEvent { from: 4101, ..denied }));
    list
}

/// An error answer for every code, and those with more than a code.
fn faults(all: &Value) -> Vec<Vector> {
    let failed =
        |name: String, doc: &str, fault: Fault| vector(name, doc, Body::Answer { id: 7, result: Err(fault) }, b"");
    let codes = all["$defs"]["Code"]["oneOf"].as_array().unwrap().iter();
    let mut list: Vec<Vector> = codes
        .map(|code| {
            let word: Code = serde_json::from_value(code["const"].clone()).unwrap();
            let fault = Fault::new(word, "it is refused").hint("do something else");
            failed(format!("error {}", code["const"].as_str().unwrap()), code["description"].as_str().unwrap(), fault)
        })
        .collect();
    let mut held = Fault::new(Code::TurnHeld, "human:ann has the turn").hint("wait for it");
    held.details = Some(Box::new(json!({ "holder": actor() })));
    list.push(failed("an error with details".into(), "What belongs to the code.", held));
    list.push(failed("an error without a hint".into(), "A hint may be left out.", Fault::new(Code::Internal, "oh")));
    list
}

/// Bytes that are no frame, or a frame that is no message, and why.
fn refused() -> Vec<Value> {
    let no_frame: &[(&str, &[u8], FrameError)] = &[
        (
            "a frame over the limit",
            b"\x01\0\0\x04\x01",
            FrameError::TooLong { bytes: FRAME_BYTES_MAX + 1, max: FRAME_BYTES_MAX },
        ),
        ("another protocol", b"GET / HTTP/1.1\r\n", FrameError::TooLong { bytes: 0x2054_4547, max: FRAME_BYTES_MAX }),
        ("an unknown kind", b"\x03\0\0\0\x03{}", FrameError::Unknown(3)),
        ("kind 0", b"\x03\0\0\0\0{}", FrameError::Unknown(0)),
        ("an unknown kind before the rest has come", b"\xff\0\0\0\x09", FrameError::Unknown(9)),
        ("an empty frame", b"\0\0\0\0", FrameError::Malformed),
        ("the text's length is cut short", b"\x04\0\0\0\x02\x02\0\0", FrameError::Malformed),
        ("the text is longer than the frame", b"\x07\0\0\0\x02\x03\0\0\0{}", FrameError::Malformed),
        ("the text's length is huge", b"\x07\0\0\0\x02\xff\xff\xff\xff{}", FrameError::Malformed),
    ];
    let no_message: &[(&str, &[u8])] = &[
        ("no text", b""),
        ("no JSON", b"nonsense"),
        ("JSON cut short", b"{\"jsonrpc\":\"2.0\""),
        ("a list", b"[]"),
        ("an empty object", b"{}"),
        ("another version of JSON-RPC", b"{\"jsonrpc\":\"1.0\",\"method\":\"x\"}"),
        ("neither request, answer nor event", b"{\"jsonrpc\":\"2.0\"}"),
        ("an answer without an id", b"{\"jsonrpc\":\"2.0\",\"result\":{}}"),
        ("an id that is a text", b"{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"method\":\"x\"}"),
        ("a negative id", b"{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"x\"}"),
        (
            "a result and an error",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{\"code\":1,\"message\":\"\"}}",
        ),
        ("a request with a result", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"result\":1}"),
        ("a method that is a number", b"{\"jsonrpc\":\"2.0\",\"method\":1}"),
        ("text that is not UTF-8", b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}"),
    ];
    let frames = no_frame.iter().map(|(name, bytes, error)| {
        assert_eq!(Frame::decode(bytes, FRAME_BYTES_MAX).unwrap_err(), *error, "{name}");
        let why = match error {
            FrameError::TooLong { .. } => "too_long",
            FrameError::Unknown(_) => "unknown_kind",
            FrameError::Malformed => "malformed",
        };
        json!({ "name": name, "why": why, "message": error.to_string(), "hex": hex(bytes) })
    });
    let messages = no_message.iter().map(|(name, text)| {
        let mut out = vec![];
        Frame { json: text, bytes: b"" }.encode(&mut out);
        let (frame, _) = Frame::decode(&out, FRAME_BYTES_MAX).unwrap().unwrap();
        assert_eq!(Message::decode(frame).unwrap_err().code, Code::BadRequest, "{name}");
        json!({ "name": name, "why": "not_a_message", "message": "not a JSON-RPC 2.0 message", "hex": hex(&out) })
    });
    frames.chain(messages).collect()
}

/// Beginnings of frames: nothing is wrong with them, more bytes must come.
fn incomplete() -> Vec<Value> {
    let cases: &[(&str, &[u8])] = &[
        ("nothing", b""),
        ("a length cut short", b"\x03\0\0"),
        ("a length alone", b"\x03\0\0\0"),
        ("a kind without its text", b"\x03\0\0\0\x01"),
        ("a text cut short", b"\x03\0\0\0\x01{"),
        ("bytes cut short", b"\x09\0\0\0\x02\x02\0\0\0{}\xff"),
        ("the largest frame's beginning", b"\0\0\0\x04\x02"),
    ];
    let case = |(name, bytes): &(&str, &[u8])| {
        assert_eq!(Frame::decode(bytes, FRAME_BYTES_MAX), Ok(None), "{name}");
        json!({ "name": name, "hex": hex(bytes) })
    };
    cases.iter().map(case).collect()
}

fn compare(file: &str, value: &impl Serialize) {
    let path = format!("{}/../../spec/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = format!("{}\n", serde_json::to_string_pretty(value).unwrap());
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "spec/vectors/{file} is not what the types say: write it anew with HOLDFAST_BLESS=1");
}

#[test]
fn the_written_frames_are_those_of_the_types() {
    let all = schema::document();
    let mut list = every_request(&all);
    list.extend(fuller_requests());
    list.extend(answers());
    list.extend(events(&all));
    list.extend(faults(&all));
    for kind in [KIND_JSON, KIND_JSON_BYTES] {
        assert!(list.iter().any(|vector| vector.kind == kind), "kind {kind}");
    }
    for (i, vector) in list.iter().enumerate() {
        assert!(list[..i].iter().all(|other| other.name != vector.name), "two are called {:?}", vector.name);
    }
    compare("frames.json", &list);
}

#[test]
fn the_written_refusals_are_those_of_the_reader() {
    let max = FRAME_BYTES_MAX;
    compare("refused.json", &json!({ "frame_bytes_max": max, "refused": refused(), "incomplete": incomplete() }));
}
