//! The host over HTTP: the same operations, their answers and refusals.

use base64::Engine as _;
use holdfast_harness::{Home, kill, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A host that listens, and a token.
pub struct Http {
    pub home: Home,
    pub url: String,
    pub token: String,
    agent: ureq::Agent,
}

/// An answer: its status, and its body as JSON.
#[derive(Debug, PartialEq)]
pub struct Said {
    pub status: u16,
    pub body: Value,
}

impl Http {
    pub fn new() -> Http {
        Http::with(Home::new())
    }

    pub fn with(home: Home) -> Http {
        let status = home.json(&["host", "start", "--http", "127.0.0.1:0", "--json"]);
        let url = status["http"].as_str().unwrap_or_else(|| panic!("{status}")).to_owned();
        let token = home.ok(&["--as", "agent:bot", "token", "new"]).trim().to_owned();
        let config = ureq::Agent::config_builder().http_status_as_error(false).allow_non_standard_methods(true);
        Http { home, url, token, agent: config.build().into() }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").expect("no TLS")
    }

    pub fn ask_as(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Said {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}/v1{path}", self.url))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let mut response = self.agent.run(request.body(body).unwrap()).unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Said { status: response.status().as_u16(), body }
    }

    pub fn get(&self, path: &str) -> Said {
        self.ask_as(&self.token, "GET", path, None)
    }

    pub fn post(&self, path: &str, body: Value) -> Said {
        self.ask_as(&self.token, "POST", path, Some(body))
    }

    /// Requests the host is answering, the one that asks included.
    pub fn open_requests(&self) -> u64 {
        let metrics = self.get("/host/metrics").body["text"].as_str().unwrap().to_owned();
        let line = metrics.lines().find_map(|line| line.strip_prefix("holdfast_requests ")).unwrap();
        line.trim().parse().unwrap()
    }

    /// The most memory the host has taken, in KiB.
    pub fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.home.host_pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// A connection with a request on it, whose answer nobody has read yet.
    pub fn begin(&self, head: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(holdfast_harness::PATIENCE)).unwrap();
        let token = format!("Host: localhost\r\nAuthorization: Bearer {}", self.token);
        stream.write_all(format!("{head}\r\n{token}\r\n\r\n").as_bytes()).unwrap();
        stream
    }

    /// A request as it stands, and the whole answer.
    pub fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(holdfast_harness::PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    pub fn status_of(&self, head: &str) -> String {
        let answer = self.raw(&format!("{head}\r\nConnection: close\r\n\r\n"));
        answer.split_whitespace().nth(1).unwrap_or_default().to_owned()
    }
}

#[test]
fn what_the_program_does_can_be_done_over_http() {
    let http = Http::new();
    let new = http.post("/sessions", json!({ "name": "one", "command": ["/bin/sh"], "cwd": "/" }));
    assert_eq!((new.status, &new.body["name"]), (201, &json!("one")));
    assert_eq!(http.home.json(&["ls", "--json"])[0]["name"], "one");
    let typed = http.post("/sessions/one/input", json!({ "text": "printf '\\377\\nok\\n'\r" }));
    assert_eq!(typed.status, 200, "{typed:?}");
    let mut read = http.get("/sessions/one/output");
    until("the output", || {
        read = http.get("/sessions/one/output");
        read.body["text"].as_str().is_some_and(|text| text.contains("\nok"))
    });
    assert!(read.body["text"].as_str().unwrap().contains('\u{fffd}'), "lossily: {read:?}");
    let exact = base64::engine::general_purpose::STANDARD.decode(read.body["base64"].as_str().unwrap()).unwrap();
    assert!(exact.contains(&0xff), "exactly: {exact:?}");
    let beyond = http.get("/sessions/one/output?from=999999999");
    assert_eq!((beyond.status, &beyond.body["code"]), (416, &json!("ahead")));
    assert_eq!(http.get("/sessions/one/screen").body["rows"].as_array().unwrap().len(), 24);
    assert_eq!(http.get("/sessions/one/turn").body["holder"]["actor"]["handle"], "agent:bot");
    let ended = http.ask_as(&http.token, "DELETE", "/sessions/one", None);
    assert_eq!((ended.status, &ended.body["life"]), (200, &json!("ended")), "{ended:?}");
    assert_eq!(http.post("/sessions/one/input", json!({ "text": "x" })).status, 410);
    let last = http.get("/sessions/one/journal?last=1").body;
    let record: Value = serde_json::from_str(last["text"].as_str().unwrap()).unwrap();
    assert_eq!((&record["seq"], &last["from"], &last["end"]), (&last["to"], &last["to"], &json!(true)), "{last}");
}

#[test]
fn raw_bytes_come_as_they_are_where_that_is_asked_for() {
    let http = Http::new();
    http.home.ok(&["new", "-d", "-n", "one", "--", "sh", "-c", "stty -opost; printf 'a\\377b'; read x"]);
    let ask = |from: &str| {
        let head = format!("GET /v1/sessions/one/output?wait=5{from} HTTP/1.1\r\nHost: localhost\r\n");
        let accept = format!("Authorization: Bearer {}\r\nAccept: application/octet-stream\r\n", http.token);
        let mut stream = TcpStream::connect(http.address()).unwrap();
        stream.write_all(format!("{head}{accept}Connection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    };
    until("all bytes", || ask("").ends_with(b"\r\n\r\na\xffb"));
    let head = String::from_utf8_lossy(&ask("&from=1")).into_owned();
    assert!(head.contains("holdfast-answer: {") && head.contains("\"from\":1"), "{head}");
}

#[test]
fn a_key_runs_once_and_its_run_is_found_by_it() {
    let http = Http::new();
    let run = |command: &str| json!({ "new": { "command": ["sh", "-c", command], "cwd": "/" } });
    let put = |command: &str| http.ask_as(&http.token, "PUT", "/runs/deploy%2F7?wait=20", Some(run(command)));
    let count = http.home.join("count");
    let command = format!("echo x >> {}; exit 3", count.display());
    let made = put(&command);
    assert_eq!((made.status, &made.body["exit_code"]), (201, &json!(3)), "{made:?}");
    let again = put(&command);
    assert_eq!((again.status, &again.body["id"]), (200, &made.body["id"]), "{again:?}");
    let other = put("true");
    assert_eq!((other.status, &other.body["code"]), (409, &json!("key_conflict")));
    assert_eq!(std::fs::read_to_string(count).unwrap(), "x\n", "it ran once");
    let id = made.body["id"].as_str().unwrap();
    assert_eq!(http.get(&format!("/runs/{id}?wait=5")).body["state"], "ended");
}

#[test]
fn what_is_wrong_is_refused_by_name() {
    let http = Http::new();
    http.home.session("one", "read x");
    let token = format!("Host: localhost\r\nAuthorization: Bearer {}", http.token);
    for (status, code, method, path, body) in [
        (404, "unknown_operation", "GET", "/nothing", None),
        (404, "not_found", "GET", "/sessions/none", None),
        (405, "unknown_operation", "PUT", "/sessions/one", None),
        (400, "bad_request", "GET", "/sessions?al=true", None),
        (400, "bad_request", "GET", "/sessions?all=maybe", None),
        (400, "bad_request", "GET", "/sessions?all=true&all=true", None),
        (400, "bad_request", "POST", "/sessions/one/signal", Some(json!({ "number": 1, "session": "two" }))),
        (400, "bad_request", "POST", "/sessions/one/signal", Some(json!([1]))),
        (400, "bad_request", "POST", "/sessions/one/input", Some(json!({ "text": "x", "base64": "eA==" }))),
        (400, "bad_request", "GET", "/sessions", Some(json!({ "all": true }))),
        (404, "no_such_run", "GET", "/runs/run_00000000000000000000000000", None),
    ] {
        let said = http.ask_as(&http.token, method, path, body);
        assert_eq!((said.status, said.body["code"].as_str()), (status, Some(code)), "{method} {path}: {said:?}");
    }
    let kind = "POST /v1/sessions/one/signal HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 2";
    assert_eq!(http.status_of(&format!("{kind}\r\n{token}\r\n\r\n{{}}")), "400");
    let long =
        format!("POST /v1/sessions HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n{token}");
    assert_eq!(http.status_of(&long), "413");
    assert!(http.raw("nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
}

#[test]
fn pages_of_strangers_and_names_that_are_not_ours_are_refused() {
    let http = Http::new();
    let token = format!("Authorization: Bearer {}", http.token);
    let status = |headers: &str| http.status_of(&format!("GET /v1/sessions HTTP/1.1\r\n{token}\r\n{headers}"));
    let own = format!("Host: {0}\r\nOrigin: http://{0}", http.address());
    assert_eq!(status("Host: localhost"), "200");
    assert_eq!(status(&own), "200");
    assert_eq!(status("Host: evil.example"), "403");
    assert_eq!(status("Host: localhost\r\nOrigin: http://evil.example"), "403");
    assert_eq!(status("Host: localhost\r\nOrigin: null"), "403");
    let answer =
        http.raw(&format!("GET /v1/sessions HTTP/1.1\r\n{token}\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    assert!(!answer.to_ascii_lowercase().contains("access-control"), "{answer}");
}

#[test]
fn events_are_streamed_and_gone_on_with_behind_the_last() {
    let http = Http::new();
    let follow = |last: Option<&str>| {
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let head = format!("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{last}");
        let mut stream = TcpStream::connect(http.address()).unwrap();
        stream.set_read_timeout(Some(holdfast_harness::PATIENCE)).unwrap();
        stream.write_all(format!("{head}Authorization: Bearer {}\r\n\r\n", http.token).as_bytes()).unwrap();
        BufReader::new(stream).lines().map(Result::unwrap)
    };
    let mut lines = follow(None);
    // The head, and that nothing happened yet: what starts from here on is told.
    assert!(lines.by_ref().any(|line| line.starts_with(": nothing")));
    http.home.session("one", "read x");
    assert!(lines.by_ref().any(|line| line == "event: started"));
    let id = lines.find_map(|line| line.strip_prefix("id: ").map(str::to_owned)).unwrap();
    drop(lines);
    http.home.ok(&["end", "one"]);
    let mut later = follow(Some(&id));
    let data = later.by_ref().skip_while(|line| line != "event: exit").find(|line| line.starts_with("data: ")).unwrap();
    let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!((&event["event"], &event["name"]), (&json!("exit"), &json!("one")));
}

#[test]
fn a_host_that_was_killed_listens_again_where_it_did() {
    let http = Http::new();
    http.home.session("one", "read x");
    let port = http.address().rsplit_once(':').unwrap().1.to_owned();
    http.home.ok(&["host", "start", "--http", &port]);
    let killed = http.home.host_pid();
    kill(killed);
    // Nobody at this machine asks for it: who comes over a network finds it all the same.
    until("the next host", || {
        let ask = http.agent.get(format!("{}/v1/openapi.json", http.url)).call();
        ask.is_ok_and(|answer| answer.status() == 200)
    });
    assert_eq!(http.get("/sessions/one").body["life"], "running");
    assert_ne!(http.home.host_pid(), killed);
}
