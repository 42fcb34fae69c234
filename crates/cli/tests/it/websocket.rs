//! The protocol over WebSocket, spoken by somebody else's library.

use crate::http::Http;
use holdfast_harness::until;
use serde_json::{Value, json};
use std::net::TcpStream;
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

pub struct Line {
    pub socket: WebSocket<TcpStream>,
    pub id: u64,
}

impl Line {
    pub fn open(http: &Http, token: &str) -> Result<Line, u16> {
        let mut request = format!("ws://{}/v1/connect", http.address()).into_client_request().unwrap();
        let protocols = format!("holdfast.v1, holdfast.token.{token}");
        request.headers_mut().insert("sec-websocket-protocol", protocols.parse().unwrap());
        let Ok(stream) = TcpStream::connect(http.address()) else { return Err(503) };
        stream.set_read_timeout(Some(holdfast_harness::PATIENCE)).unwrap();
        match tungstenite::client(request, stream) {
            Ok((socket, response)) => {
                assert_eq!(response.headers()["sec-websocket-protocol"], "holdfast.v1");
                Ok(Line { socket, id: 0 })
            }
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
                Err(response.status().as_u16())
            }
            // A host that was killed, or is about to be there.
            Err(_) => Err(503),
        }
    }

    pub fn say(&mut self, method: &str, params: Value, bytes: &[u8]) -> u64 {
        self.id += 1;
        let json = json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }).to_string();
        let mut frame = vec![if bytes.is_empty() { 1 } else { 2 }];
        if !bytes.is_empty() {
            frame.extend_from_slice(&(json.len() as u32).to_le_bytes());
        }
        frame.extend_from_slice(json.as_bytes());
        frame.extend_from_slice(bytes);
        self.socket.send(Message::Binary(frame.into())).unwrap();
        self.id
    }

    /// Reads until a question was answered; the answers are no matter.
    pub fn until_answered(&mut self, id: u64) {
        let answered = format!("\"id\":{id},");
        loop {
            let Message::Binary(frame) = self.socket.read().unwrap() else { continue };
            if String::from_utf8_lossy(&frame).contains(&answered) {
                return;
            }
        }
    }

    /// The next message, and its bytes.
    pub fn next(&mut self) -> (Value, Vec<u8>) {
        loop {
            let Message::Binary(frame) = self.socket.read().unwrap() else { continue };
            let (json, bytes) = match frame[0] {
                1 => (&frame[1..], &[][..]),
                2 => {
                    let length = u32::from_le_bytes(frame[1..5].try_into().unwrap()) as usize;
                    frame[5..].split_at(length)
                }
                other => panic!("kind {other}"),
            };
            return (serde_json::from_slice(json).unwrap(), bytes.to_vec());
        }
    }

    /// The answer, `result` or `error`, and its bytes.
    pub fn ask(&mut self, method: &str, params: Value, bytes: &[u8]) -> (Value, Vec<u8>) {
        let id = self.say(method, params, bytes);
        loop {
            let (message, bytes) = self.next();
            if message["id"] == id {
                return (message.get("result").or(message.get("error")).unwrap().clone(), bytes);
            }
        }
    }
}

#[test]
fn a_session_is_steered_over_a_websocket_with_the_turn_and_the_operators_number() {
    let http = Http::new();
    let mut line = Line::open(&http, &http.token).unwrap();
    assert_eq!(line.ask("hello", json!({ "versions": [1] }), b"").0["version"], 1);
    let new = json!({ "name": "one", "command": ["/bin/sh"], "cwd": "/", "env": ["PS1=> "] });
    line.ask("session.new", new, b"");
    let (attached, _) = line.ask("session.attach", json!({ "session": "one", "size": "100x40" }), b"");
    let client = &attached["client"];
    assert_eq!(attached["painted"]["size"], "80x24", "whoever comes over a network does not size: {attached}");
    assert_eq!((&attached["token"], &attached["ring"]), (&json!(""), &json!("")), "and has no way past the host");
    let send = json!({ "session": "one", "stream": 7, "seq": 1, "client": client });
    line.ask("session.send", send.clone(), b"echo o''ne\r");
    line.ask("session.send", send, b"echo o''ne\r");
    let (mut from, mut seen) = (attached["painted"]["offset"].clone(), Vec::new());
    while !seen.ends_with(b"one\r\n> ") {
        let (read, bytes) = line.ask("session.read", json!({ "session": "one", "from": from, "wait_ms": 9000 }), b"");
        assert_eq!(read["from"], from, "{read}");
        from = read["to"].clone();
        seen.extend(bytes);
    }
    assert_eq!(String::from_utf8_lossy(&seen).matches("one\r\n").count(), 1, "the same number types once");
    assert_eq!(http.home.json(&["turn", "one", "--json"])["holder"]["client"], *client);
    assert_eq!(http.home.json(&["info", "one", "--json"])["clients"][0]["actor"]["handle"], "agent:bot");
    let mut other = Line::open(&http, &http.token).unwrap();
    let (second, _) = other.ask("session.attach", json!({ "session": "one", "size": "80x24" }), b"");
    other.ask("session.leave", json!({ "session": "one", "client": second["client"] }), b"");
    let there = http.home.json(&["info", "one", "--json"])["clients"].as_array().unwrap().len();
    assert_eq!(there, 1, "who left is gone, although its connection is there");
    drop(line);
    until("the operator has gone", || http.home.json(&["info", "one", "--json"])["clients"] == json!([]));
}

#[test]
fn a_session_that_has_just_begun_has_not_ended() {
    let http = Http::new();
    let mut line = Line::open(&http, &http.token).unwrap();
    for n in 0..10 {
        let name = format!("s{n}");
        line.say("session.new", json!({ "name": name, "command": ["sleep", "1000"], "cwd": "/" }), b"");
        let (read, _) = loop {
            let (read, bytes) = line.ask("session.read", json!({ "session": name, "wait_ms": 50 }), b"");
            // Not there yet: the two are asked at once.
            if read["data"]["code"] != "not_found" {
                break (read, bytes);
            }
        };
        assert_eq!(read["end"], false, "{read}");
    }
}

#[test]
fn bytes_behind_a_change_of_size_come_with_the_new_size() {
    let http = Http::new();
    http.home.session("one", "read a; echo first; read b; echo second; read c");
    let mut line = Line::open(&http, &http.token).unwrap();
    http.home.ok(&["send", "one", "--enter", "x"]);
    let mut read_until = |from: &Value, text: &str| {
        let (mut from, mut sizes, mut seen) = (from.clone(), Vec::new(), String::new());
        while !seen.contains(text) {
            let (read, bytes) =
                line.ask("session.read", json!({ "session": "one", "from": from, "wait_ms": 9000 }), b"");
            seen.push_str(&String::from_utf8_lossy(&bytes));
            from = read["to"].clone();
            sizes.push(read["size"].as_str().unwrap().to_owned());
        }
        (from, sizes)
    };
    let (from, sizes) = read_until(&json!(0), "first\r\n");
    assert!(sizes.iter().all(|size| size == "80x24"), "{sizes:?}");
    http.home.ok(&["resize", "one", "90x30"]);
    http.home.ok(&["send", "one", "--enter", "x"]);
    let (_, sizes) = read_until(&from, "second\r\n");
    assert_eq!(sizes.last().map(String::as_str), Some("90x30"), "{sizes:?}");
}

#[test]
fn a_token_is_judged_at_every_question() {
    let http = Http::new();
    http.home.session("one", "read x");
    assert_eq!(Line::open(&http, "hf_wrong").err(), Some(401));
    let observe = http.home.ok(&["--as", "agent:eye", "token", "new", "--can", "observe"]);
    let mut line = Line::open(&http, observe.trim()).unwrap();
    assert_eq!(line.ask("session.get", json!({ "session": "one" }), b"").0["name"], "one");
    let (refused, _) = line.ask("session.send", json!({ "session": "one", "stream": 1, "seq": 1 }), b"x");
    assert_eq!(refused["data"]["code"], "denied", "{refused}");
    let (attached, _) = line.ask("session.attach", json!({ "session": "one", "size": "80x24" }), b"");
    assert_eq!(attached["session"]["clients"][0]["read_only"], true, "{attached}");
    let id = http.home.json(&["token", "ls", "--json"]);
    let id = id.as_array().unwrap().iter().find(|token| token["actor"] == "agent:eye").unwrap()["id"].clone();
    http.home.ok(&["token", "revoke", id.as_str().unwrap()]);
    let closed = std::iter::from_fn(|| line.socket.read().ok()).any(|packet| packet.is_close());
    assert!(closed, "its connection was left open");
    assert_eq!(Line::open(&http, observe.trim()).err(), Some(401));
    until("the terminal to be let go", || http.get("/sessions/one").body["clients"] == json!([]));
}

#[test]
fn nonsense_ends_the_connection_and_nothing_else() {
    let http = Http::new();
    for packet in [
        Message::Text("{}".into()),
        Message::Binary(vec![].into()),
        Message::Binary(vec![9, 9].into()),
        Message::Binary(vec![2, 255, 255, 255, 255].into()),
        Message::Binary(b"\x01nonsense".to_vec().into()),
    ] {
        let mut line = Line::open(&http, &http.token).unwrap();
        line.socket.send(packet.clone()).unwrap();
        let closed = loop {
            match line.socket.read() {
                Ok(Message::Close(why)) => break why.is_some(),
                Ok(_) => {}
                Err(_) => break false,
            }
        };
        assert!(closed, "{packet:?} is answered with why");
    }
    assert_eq!(http.get("/sessions").status, 200);
}

#[test]
fn one_that_never_reads_is_not_answered_without_end() {
    let http = Http::new();
    http.home.ok(&["new", "-d", "-n", "one", "--", "sh", "-c", "head -c 900000 /dev/zero; read x"]);
    until("the output", || http.home.json(&["info", "one", "--json"])["head"].as_u64() >= Some(900_000));
    let mut line = Line::open(&http, &http.token).unwrap();
    line.socket.get_ref().set_write_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    let mut asked = 0;
    // 200 answers would be 180 MB: the host stops taking questions long before, so that writing them blocks or all are taken
    // and wait unanswered.
    for _ in 0..200 {
        line.id += 1;
        let json = json!({ "jsonrpc": "2.0", "id": line.id, "method": "session.read", "params": { "session": "one" } });
        if line.socket.send(Message::Binary([b"\x01", json.to_string().as_bytes()].concat().into())).is_err() {
            break;
        }
        asked += 1;
    }
    assert!(asked > 8);
    let pid = http.home.json(&["host", "status", "--json"])["pid"].as_u64().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kib = |field: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    assert!(kib("VmHWM:") < 120 * 1024, "the host took {} KiB", kib("VmHWM:"));
    assert_eq!(http.get("/sessions").status, 200);
}
