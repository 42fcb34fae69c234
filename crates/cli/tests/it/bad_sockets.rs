//! WebSockets of clients that do not behave: they read nothing, ask too much, leave without a word, or come by the hundred.

use crate::http::Http;
use crate::websocket::Line;
use holdfast_harness::until;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::Duration;
use tungstenite::Message;

/// More than the host holds for one that does not read.
const LARGE_ANSWERS: usize = 30;
/// More than the host answers at once for one connection.
const MANY_WAITS: usize = 80;
/// As many observers as a test on a busy machine can have; the benchmark has a thousand. More than can be attached at once.
const CROWD: usize = 300;
/// As many of them as one agent may have attached.
const ATTACHED_MAX: usize = holdfast_authority::OPERATORS.of_one;

fn clients(http: &Http) -> Value {
    http.home.json(&["info", "one", "--json"])["clients"].clone()
}

fn attach(line: &mut Line) -> Value {
    line.ask("session.attach", json!({ "session": "one", "size": "80x24" }), b"").0
}

#[test]
fn one_that_read_nothing_and_leaves_is_gone() {
    let http = Http::new();
    http.home.ok(&["new", "-d", "-n", "one", "--", "sh", "-c", "head -c 900000 /dev/zero; read x"]);
    until("the output", || http.home.json(&["info", "one", "--json"])["head"].as_u64() >= Some(900_000));
    let mut line = Line::open(&http, &http.token).unwrap();
    attach(&mut line);
    for _ in 0..LARGE_ANSWERS {
        line.say("session.read", json!({ "session": "one", "from": 0 }), b"");
    }
    // As many as it has room for wait to be read: from here on it takes no question.
    drop(line);
    until("it has gone", || clients(&http) == json!([]));
    until("nothing is answered any more", || http.open_requests() == 1);
}

#[test]
fn one_that_leaves_while_more_waits_than_is_answered_at_once_is_gone_and_so_is_what_it_waited_for() {
    let http = Http::new();
    http.home.session("one", "read x");
    let mut line = Line::open(&http, &http.token).unwrap();
    attach(&mut line);
    for _ in 0..MANY_WAITS {
        line.say("session.wait", json!({ "session": "one", "until": "exit" }), b"");
    }
    until("it waits", || http.open_requests() > 60);
    drop(line);
    until("it has gone", || clients(&http) == json!([]));
    until("nobody waits", || http.open_requests() == 1);
}

#[test]
fn one_at_the_unix_socket_that_is_killed_leaves_no_wait_behind() {
    let http = Http::new();
    http.home.session("one", "read x");
    let mut waits = http.home.command(&["wait", "one", "--for", "port:1"]).spawn().unwrap();
    until("it waits", || http.open_requests() == 2);
    waits.kill().unwrap();
    waits.wait().unwrap();
    until("nobody waits", || http.open_requests() == 1);
}

#[test]
fn one_at_the_unix_socket_that_only_listens_is_still_answered() {
    let http = Http::new();
    let path = http.home.json(&["host", "status"])["socket"].as_str().unwrap().to_owned();
    let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(holdfast_harness::PATIENCE)).unwrap();
    let json = json!({ "jsonrpc": "2.0", "id": 1, "method": "hello", "params": { "versions": [1] } }).to_string();
    let length = (json.len() as u32 + 1).to_le_bytes();
    stream.write_all(&[&length, &[1][..], json.as_bytes()].concat()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("\"version\":1"), "{answer:?}");
}

#[test]
fn answers_of_fields_alone_are_bounded_too_for_one_that_reads_none() {
    let http = Http::new();
    http.home.ok(&["new", "-d", "-n", "one", "--", "sh", "-c", "seq 3000; read x"]);
    http.home.until_screen_shows("one", "3000");
    let mut line = Line::open(&http, &http.token).unwrap();
    let (screen, _) = line.ask("session.screen", json!({ "session": "one", "history": 3000 }), b"");
    assert!(screen.to_string().len() > 10_000, "{screen}");
    let before = http.peak_kib();
    line.socket.get_ref().set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut asked = 0;
    let question = json!({ "session": "one", "history": 3000 });
    while asked < 4000 {
        line.id += 1;
        let json = json!({ "jsonrpc": "2.0", "id": line.id, "method": "session.screen", "params": question });
        if line.socket.send(Message::Binary([b"\x01", json.to_string().as_bytes()].concat().into())).is_err() {
            break;
        }
        asked += 1;
    }
    let grown = http.peak_kib() - before;
    assert!(grown < 64 * 1024, "{asked} questions, and the host took {grown} KiB");
    assert_eq!(http.get("/sessions/one").status, 200);
}

#[test]
fn what_was_said_before_leaving_is_done() {
    let http = Http::new();
    http.home.session("one", "cat");
    for n in 0..5 {
        let mut line = Line::open(&http, &http.token).unwrap();
        for part in 0..20_u64 {
            let text = format!("{n}:{part}\r");
            line.say("session.send", json!({ "session": "one", "stream": n + 1, "seq": part + 1 }), text.as_bytes());
        }
        line.socket.close(None).unwrap();
        while line.socket.read().is_ok() {}
        http.home.until_screen_shows("one", &format!("{n}:19"));
    }
}

#[test]
fn why_a_connection_is_closed_fits_a_close_frame() {
    let http = Http::new();
    let mut line = Line::open(&http, &http.token).unwrap();
    let long = json!({ "jsonrpc": "2.0", "id": "x".repeat(4000), "method": "hello" }).to_string();
    line.socket.send(Message::Binary([b"\x01", long.as_bytes()].concat().into())).unwrap();
    let why = loop {
        match line.socket.read().unwrap() {
            Message::Close(why) => break why.unwrap(),
            _ => continue,
        }
    };
    assert_eq!(u16::from(why.code), 1007);
    assert!(why.reason.starts_with("not a JSON-RPC message: "), "{why}");
}

#[test]
fn unknown_operations_and_fields_are_refused_and_the_connection_goes_on() {
    let http = Http::new();
    http.home.session("one", "read x");
    let mut line = Line::open(&http, &http.token).unwrap();
    for (code, method, params) in [
        ("unknown_operation", "session.nothing", json!({})),
        ("unknown_operation", "", json!({})),
        ("bad_request", "session.get", json!({ "session": "one", "more": 1 })),
        ("bad_request", "session.get", json!([1])),
        ("bad_request", "session.read", json!({ "session": "one", "from": -1 })),
        ("bad_request", "session.read", json!({ "session": "one", "from": 1e40 })),
        ("bad_request", "identify", json!({})),
        ("ahead", "session.read", json!({ "session": "one", "from": u64::MAX })),
        ("ahead", "session.read", json!({ "session": "one", "from": u64::MAX, "wait_ms": u64::MAX })),
    ] {
        let (refused, _) = line.ask(method, params.clone(), b"");
        assert_eq!(refused["data"]["code"], code, "{method} {params}: {refused}");
    }
    let after = json!({ "session": "one", "after": u64::MAX });
    assert!(line.ask("session.watch", after.clone(), b"").0["to"].is_u64());
    assert!(line.ask("session.journal", after, b"").0["to"].is_u64());
}

#[test]
fn hundreds_of_observers_are_told_the_same_and_cost_little() {
    let http = Http::new();
    http.home.session("one", "stty -echo -opost; read x; seq 2000; printf '\\377end'; read x");
    http.home.ok(&["wait", "one", "--for", "waiting", "--timeout", "20"]);
    let before = http.peak_kib();
    let mut lines: Vec<Line> = (0..CROWD).map(|_| Line::open(&http, &http.token).unwrap()).collect();
    for (n, line) in lines.iter_mut().enumerate() {
        let params = json!({ "session": "one", "size": "80x24", "read_only": true });
        let (attached, _) = line.ask("session.attach", params, b"");
        let refused = attached["data"]["code"] == "too_many";
        assert_eq!(refused, n >= ATTACHED_MAX, "{n}: {attached}");
    }
    assert_eq!(clients(&http).as_array().unwrap().len(), ATTACHED_MAX);
    http.home.ok(&["send", "one", "--enter", "x"]);
    let expected: Vec<u8> = (1..=2000).flat_map(|n| format!("{n}\n").into_bytes()).chain(*b"\xffend").collect();
    // Whoever is not attached may read all the same.
    for line in &mut lines {
        let mut seen = Vec::new();
        while !seen.ends_with(b"\xffend") {
            let at = seen.len() as u64;
            let (read, bytes) = line.ask("session.read", json!({ "session": "one", "from": at, "wait_ms": 9000 }), b"");
            assert_eq!(read["from"], at, "{read}");
            seen.extend(bytes);
        }
        assert!(seen == expected, "{} bytes in place of {}", seen.len(), expected.len());
    }
    let grown = http.peak_kib() - before;
    assert!(grown < 40 * 1024, "{CROWD} observers took {grown} KiB");
    drop(lines);
    until("all have gone", || clients(&http) == json!([]) && http.open_requests() == 1);
}
