//! Nobody takes all places: one actor has its share, who says nothing goes first, and people always get in.

use crate::http::Http;
use holdfast_harness::{Home, until};
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// More than the host ever takes at once.
const FLOOD: usize = 4200;

fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Opens a session of the protocol; its id, or why there is none.
fn initialize(http: &Http, token: &str) -> Result<String, String> {
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
    let answer = mcp(http, token, "", &body);
    let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ").map(str::to_owned));
    id.ok_or(answer)
}

fn mcp(http: &Http, token: &str, headers: &str, body: &str) -> String {
    let head = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close";
    let whose = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {}", body.len());
    http.raw(&format!("POST /mcp HTTP/1.1\r\n{head}\r\n{whose}\r\n{headers}\r\n{body}"))
}

#[test]
fn a_flood_of_connections_without_a_token_keeps_nobody_out() {
    raise_file_limit();
    let http = Http::new();
    let token = http.home.ok(&["token", "new"]).trim().to_owned();
    // Each has begun a request, and goes on to say nothing.
    let flood: Vec<TcpStream> = (0..FLOOD)
        .map(|_| {
            let mut stream = TcpStream::connect(http.address()).unwrap();
            let _ = stream.write_all(b"GET /v1/host HTTP/1.1\r\nHost: localhost\r\n");
            stream
        })
        .collect();
    let mut ann = TcpStream::connect(http.address()).unwrap();
    // Sooner than those would be let go for being slow.
    ann.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let head = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close");
    ann.write_all(format!("GET /v1/host HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    ann.read_to_string(&mut answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(flood);
}

#[test]
fn connections_at_the_socket_that_say_nothing_go_for_those_that_do() {
    let home = Home::new();
    home.ok(&["host", "start"]);
    let socket = home.places().host_socket();
    let mut silent: Vec<UnixStream> = (0..300).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    assert!(home.connect().unwrap().call::<op::Status>(&Nothing {}).is_ok());
    // The oldest was told to go; the newest is still waited for.
    silent[0].set_read_timeout(Some(holdfast_harness::PATIENCE)).unwrap();
    assert_eq!(silent[0].read(&mut [0; 1]).unwrap(), 0);
    let last = silent.last_mut().unwrap();
    last.set_nonblocking(true).unwrap();
    assert_eq!(last.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn protocol_sessions_of_one_actor_are_bounded_and_its_oldest_goes_first() {
    let http = Http::new();
    let before = http.peak_kib();
    let sessions: Vec<String> = (0..200).map(|_| initialize(&http, &http.token).unwrap()).collect();
    let asks = |session: &str| {
        let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
        let answer = mcp(&http, &http.token, &format!("Mcp-Session-Id: {session}\r\n"), &body);
        answer.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!((asks(&sessions[0]).as_str(), asks(&sessions[199]).as_str()), ("404", "200"));
    let known = sessions.iter().filter(|session| asks(session) == "200").count();
    assert_eq!(known, 64);
    let ann = http.home.ok(&["token", "new"]).trim().to_owned();
    initialize(&http, &ann).unwrap();
    println!("200 protocol sessions: {} KiB more", http.peak_kib() - before);
}

#[test]
fn a_protocol_session_that_is_deleted_is_gone_and_the_answer_is_what_clients_expect() {
    let http = Http::new();
    let session = initialize(&http, &http.token).unwrap();
    let whose = format!("Host: localhost\r\nAuthorization: Bearer {}\r\nMcp-Session-Id: {session}", http.token);
    let delete = || http.status_of(&format!("DELETE /mcp HTTP/1.1\r\n{whose}"));
    assert_eq!((delete().as_str(), delete().as_str()), ("204", "404"));
}

#[test]
fn one_agents_questions_and_tokens_leave_room_for_others() {
    let http = Http::new();
    http.home.session("work", "read x");
    let ask = |token: &str, n: usize| {
        http.ask_as(token, "POST", "/questions", Some(json!({ "session": "work", "text": format!("question {n}?") })))
    };
    let made = (0..70).filter(|n| ask(&http.token, *n).status == 200).count();
    assert_eq!(made, 16);
    let refused = ask(&http.token, 99);
    assert_eq!((refused.status, &refused.body["code"]), (429, &json!("too_many")));
    assert!(refused.body["hint"].as_str().unwrap().contains("withdraw"), "{refused:?}");
    let ann = http.home.ok(&["token", "new"]).trim().to_owned();
    assert_eq!(ask(&ann, 0).status, 200);
    let tokens = (0..120).filter(|_| http.post("/tokens", json!({ "actor": "agent:bot" })).status == 201).count();
    assert!((90..=100).contains(&tokens), "{tokens}");
    let refused = http.post("/tokens", json!({ "actor": "agent:bot" }));
    assert_eq!(refused.body["code"], json!("too_many"));
    let listed: Value = http.home.json(&["token", "ls"]);
    assert!(listed.as_array().is_some_and(|all| all.len() >= 100));
    until("a person's token", || (!http.home.ok(&["token", "new"]).is_empty()).then_some(()));
}
