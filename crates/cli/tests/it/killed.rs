//! The host is killed in the midst of what is asked over the network: nothing is done twice, and everybody is told where they are.

use crate::http::{Http, Said};
use holdfast_harness::{Home, PATIENCE, holds_within, kill, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Keyed runs, and how often the host is killed among them.
const RUNS: usize = 12;
const KILLS: usize = 4;

/// A host at a port it comes back to, kept by a session.
fn lasting() -> Http {
    let http = Http::new();
    http.home.session("one", "read x");
    let port = http.address().rsplit_once(':').unwrap().1.to_owned();
    http.home.ok(&["host", "start", "--http", &port]);
    http
}

/// One request on a connection of its own; none: the host went away before it had answered.
fn ask(address: &str, token: &str, head: &str, body: &str) -> Option<Said> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(holdfast_harness::PATIENCE)).unwrap();
    let own = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json");
    let length = format!("Content-Length: {}\r\nConnection: close", body.len());
    stream.write_all(format!("{head} HTTP/1.1\r\n{own}\r\n{length}\r\n\r\n{body}").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some(Said { status, body: serde_json::from_str(body).ok()? })
}

#[test]
fn keyed_runs_are_done_once_each_or_told_to_be_lost_however_often_the_host_is_killed() {
    let http = lasting();
    let (address, token) = (http.address().to_owned(), http.token.clone());
    let cwd = http.home.path().to_str().unwrap().to_owned();
    let done = Arc::new(AtomicUsize::new(0));
    let asks = std::thread::spawn({
        let done = Arc::clone(&done);
        move || {
            // Killed between the key and the start: it says so, and was not done, or not to its end.
            let mut lost = Vec::new();
            for n in 0..RUNS {
                let command = format!("echo {n} >> effects");
                let body = json!({ "new": { "command": ["sh", "-c", command], "cwd": cwd } });
                let mut last = None;
                let came = holds_within(PATIENCE, || {
                    let said = ask(&address, &token, &format!("PUT /v1/runs/k{n}?wait=20"), &body.to_string());
                    last = said.or(last.take());
                    last.as_ref().is_some_and(|said| said.status < 300 && said.body["state"] != "running")
                });
                assert!(came, "run {n}: {last:?}");
                if last.is_some_and(|said| said.body["state"] == "lost") {
                    lost.push(n);
                }
                done.fetch_add(1, Ordering::SeqCst);
            }
            lost
        }
    });
    for n in 0..KILLS {
        let wanted = n * RUNS / KILLS;
        until("more runs", || done.load(Ordering::SeqCst) >= wanted);
        kill(http.home.host_pid());
    }
    let lost = asks.join().unwrap();
    let effects = std::fs::read_to_string(http.home.join("effects")).unwrap();
    for n in 0..RUNS {
        let times = effects.lines().filter(|line| *line == n.to_string()).count();
        assert!(times == 1 || (times == 0 && lost.contains(&n)), "{n} was done {times} times, lost are {lost:?}");
    }
    assert!(lost.len() <= KILLS, "{lost:?}");
}

/// A message of the Model Context Protocol: the status, the session it is in, and the answer.
pub fn tell(http: &Http, session: Option<&str>, message: &Value) -> Option<(u16, Option<String>, Value)> {
    let mut stream = TcpStream::connect(http.address()).ok()?;
    stream.set_read_timeout(Some(holdfast_harness::PATIENCE)).unwrap();
    let body = message.to_string();
    let own = format!("Host: localhost\r\nAuthorization: Bearer {}\r\nConnection: close", http.token);
    let kinds = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    let head = format!("POST /mcp HTTP/1.1\r\n{own}\r\n{kinds}\r\n{session}Content-Length: {}", body.len());
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ").map(str::to_owned));
    // As an event, or as it is.
    let data = body.lines().find_map(|line| line.strip_prefix("data: ").filter(|data| data.starts_with('{')));
    Some((status, session, serde_json::from_str(data.unwrap_or(body)).unwrap_or(Value::Null)))
}

/// Opens a session of the protocol; none: nobody answers yet.
pub fn initialize(http: &Http) -> Option<String> {
    let who = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who });
    let (status, session, answer) =
        tell(http, None, &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))?;
    assert_eq!((status, &answer["result"]["serverInfo"]["name"]), (200, &json!("holdfast")), "{answer}");
    tell(http, session.as_deref(), &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    session
}

#[test]
fn a_session_of_the_model_context_protocol_ends_with_its_host_by_name_and_is_opened_anew() {
    let http = lasting();
    http.home.ok(&["new", "-d", "-n", "work", "--", "/bin/bash"]);
    let session = initialize(&http).unwrap();
    let run = |session: &str, command: &str| {
        let params = json!({ "name": "run", "arguments": { "session": "work", "command": command } });
        tell(&http, Some(session), &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }))
    };
    let (status, _, answer) = run(&session, "printf 'a\\377b'").unwrap();
    let content = &answer["result"]["structuredContent"];
    assert_eq!((status, &content["output"], &content["lossy"]), (200, &json!("a\u{fffd}b"), &json!(true)), "{answer}");
    kill(http.home.host_pid());
    let mut said = None;
    until("the next host", || {
        said = run(&session, "true");
        said.is_some()
    });
    let (status, _, answer) = said.unwrap();
    assert_eq!(status, 404, "it says that the session is not there: {answer}");
    let session = initialize(&http).unwrap();
    let (_, _, answer) = run(&session, "echo on").unwrap();
    assert_eq!(answer["result"]["structuredContent"]["output"], "on\n", "{answer}");
}

#[test]
fn a_reader_of_events_goes_on_with_the_next_host() {
    let http = lasting();
    let follow = |last: Option<&str>| {
        let last = last.map(|id| format!("\r\nLast-Event-ID: {id}")).unwrap_or_default();
        let stream = http.begin(&format!("GET /v1/events HTTP/1.1\r\nAccept: text/event-stream{last}"));
        BufReader::new(stream).lines().map_while(|line| match line {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("it hangs"),
            line => line.ok(),
        })
    };
    let mut lines = follow(None);
    assert!(lines.by_ref().any(|line| line.starts_with(": nothing")));
    http.home.session("two", "read x");
    assert!(lines.by_ref().any(|line| line == "event: started"));
    let id = lines.by_ref().find_map(|line| line.strip_prefix("id: ").map(str::to_owned)).unwrap();
    kill(http.home.host_pid());
    // More may have come before; then it ends, and does not hang.
    let id = lines.filter_map(|line| line.strip_prefix("id: ").map(str::to_owned)).last().unwrap_or(id);
    until("the next host", || TcpStream::connect(http.address()).is_ok());
    http.home.session("three", "read x");
    let told = follow(Some(&id)).find(|line| line.starts_with("data: ") && line.contains("\"three\""));
    assert!(told.unwrap().contains("\"started\""));
}

#[test]
fn a_new_host_enters_no_run_behind_a_line_that_was_half_typed_before_it_came() {
    for shell in [&["/bin/bash", "--norc", "--noprofile"][..], &["/usr/bin/zsh", "-f"]] {
        let home = Home::new();
        home.ok(&[&["new", "-d", "-n", "work", "--"][..], shell].concat());
        home.ok(&["wait", "work", "--for", "idle"]);
        home.ok(&["send", "work", "echo half-"]);
        home.until_screen_shows("work", "echo half-");
        home.kill_host();
        let refused = home.fails(&["run", "work", "--", "echo whole"]);
        assert!(refused.contains("there is input at the prompt"), "{shell:?}: {refused}");
        assert!(!home.ok(&["screen", "work"]).contains("whole"), "{shell:?}");
        home.ok(&["send", "work", "--key", "C-c"]);
        home.kill_host();
        assert!(home.ok(&["run", "work", "--", "echo whole"]).contains("whole"), "{shell:?}");
    }
}
