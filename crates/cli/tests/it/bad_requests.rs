//! HTTP of clients that do not behave: they go away, read nothing, say half of it, or say nonsense.

use crate::http::Http;
use crate::websocket::Line;
use base64::Engine as _;
use holdfast_harness::until;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

#[test]
fn whoever_goes_away_or_stops_speaking_is_not_waited_for() {
    let http = Http::new();
    http.home.session("one", "read x");
    let polls = ["sessions/one/output?from=0&wait=9999", "sessions/one/journal?after=999&wait=9999"];
    for poll in polls {
        for half in [false, true] {
            let stream = http.begin(&format!("GET /v1/{poll} HTTP/1.1"));
            until("it waits", || http.open_requests() == 2);
            if half {
                stream.shutdown(Shutdown::Write).unwrap();
                until("one that only listens counts as gone", || http.open_requests() == 1);
            }
            drop(stream);
            until("nobody waits", || http.open_requests() == 1);
        }
    }
    let doing = http.home.json(&["actor", "ls", "--json"]);
    let bot = doing.as_array().unwrap().iter().find(|one| one["actor"]["handle"] == "agent:bot").unwrap().clone();
    assert_eq!(bot["doing"].as_array().map_or(0, Vec::len), 0, "{bot}");
}

#[test]
fn whoever_waits_for_what_it_started_and_goes_away_has_it_done_all_the_same() {
    let http = Http::new();
    let command = "until [ -e go ]; do sleep 0.02; done; echo x >> count";
    let cwd = http.home.path().to_str().unwrap();
    let body = json!({ "new": { "command": ["sh", "-c", command], "cwd": cwd } }).to_string();
    let head = "PUT /v1/runs/k?wait=9999 HTTP/1.1\r\nContent-Type: application/json";
    let mut stream = http.begin(&format!("{head}\r\nContent-Length: {}", body.len()));
    stream.write_all(body.as_bytes()).unwrap();
    until("it runs", || http.get("/runs/k").body["state"] == "running");
    drop(stream);
    until("nobody waits", || http.open_requests() == 1);
    assert_eq!(http.get("/runs/k").body["state"], "running");
    std::fs::write(http.home.join("go"), "").unwrap();
    assert_eq!(http.get("/runs/k?wait=20").body["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(http.home.join("count")).unwrap(), "x\n");
    http.home.session("one", "read x");
    let body = json!({ "session": "one", "text": "sure?" }).to_string();
    let head = "POST /v1/questions?wait=9999 HTTP/1.1\r\nContent-Type: application/json";
    let mut stream = http.begin(&format!("{head}\r\nContent-Length: {}", body.len()));
    stream.write_all(body.as_bytes()).unwrap();
    until("it asks", || http.get("/questions").body[0]["text"] == "sure?");
    drop(stream);
    until("nobody waits", || http.open_requests() == 1);
    assert_eq!(http.get("/questions").body[0]["state"], "open");
}

#[test]
fn a_head_that_does_not_end_is_not_waited_for_long() {
    let http = Http::new();
    let mut stream = TcpStream::connect(http.address()).unwrap();
    stream.set_read_timeout(Some(holdfast_harness::PATIENCE)).unwrap();
    stream.write_all(b"GET /v1/host HTTP/1.1\r\nHost: local").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the host closes it by itself");
    assert_eq!(http.get("/host").status, 200);
}

#[test]
fn what_is_too_large_is_refused_before_it_comes_wherever_it_goes() {
    let http = Http::new();
    let json = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
    let token = format!("Host: localhost\r\nAuthorization: Bearer {}", http.token);
    for (path, length) in [("/v1/sessions", 9_000_000), ("/mcp", 9_000_000)] {
        let head = format!("POST {path} HTTP/1.1\r\n{token}\r\n{json}\r\nContent-Length: {length}");
        assert_eq!(http.status_of(&head), "413", "{path}");
    }
    let page = format!("Host: {0}\r\nOrigin: http://{0}\r\nSec-Fetch-Site: same-origin", http.address());
    let head = format!("POST /v1/login HTTP/1.1\r\n{page}\r\n{json}\r\nContent-Length: 5000");
    assert_eq!(http.status_of(&head), "413", "whoever nobody knows says little");
}

#[test]
fn a_body_without_a_length_is_bounded_too() {
    let http = Http::new();
    let head = "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream";
    let mut stream = http.begin(&format!("{head}\r\nTransfer-Encoding: chunked"));
    let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
    // It is answered, and closed, long before so much has come.
    let sent = (0..1000).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(sent < 400, "{sent} pieces of 64 KiB");
}

#[test]
fn every_operation_refuses_a_field_it_does_not_know() {
    let http = Http::new();
    http.home.session("one", "read x");
    let document = http.get("/openapi.json").body;
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys().filter(|key| key.len() <= 6) {
            if ["/v1/connect", "/v1/login", "/v1/logout"].contains(&path.as_str()) {
                continue;
            }
            let known = path.split('/').map(|part| if part.starts_with('{') { "one" } else { part });
            let path = known.collect::<Vec<_>>().join("/").replacen("/v1", "", 1);
            let method = method.to_uppercase();
            let in_query = http.ask_as(&http.token, &method, &format!("{path}?nonsense=1"), None);
            assert_eq!(
                (in_query.status, &in_query.body["code"]),
                (400, &json!("bad_request")),
                "{method} {path}: {in_query:?}"
            );
            asked += 1;
        }
    }
    assert!(asked > 40, "{asked} operations");
    assert_eq!(http.get("/sessions/one").body["life"], "running");
}

#[test]
fn nonsense_in_paths_queries_and_headers_is_refused_by_name() {
    let http = Http::new();
    http.home.session("one", "read x");
    for path in [
        "/sessions/%FF",
        "/sessions/one/output?wait=1&wait=2",
        "/sessions/one/output?wait=1&wait_ms=2",
        "/sessions/one/output?wait=NaN",
        "/sessions/one/output?wait=-1",
        "/sessions/one/output?from=-1",
        "/sessions/one/output?from=18446744073709551616",
    ] {
        let said = http.get(path);
        assert_eq!((said.status, said.body["code"].as_str()), (400, Some("bad_request")), "{path}: {said:?}");
    }
    let token = format!("Host: localhost\r\nAuthorization: Bearer {}", http.token);
    let status = |path: &str, more: &str| http.status_of(&format!("GET {path} HTTP/1.1\r\n{token}\r\n{more}"));
    assert_eq!(status("/v1/events", "Accept: text/event-stream\r\nLast-Event-ID: yesterday"), "400");
    assert_eq!(status("/v1/sessions", "Host: evil.example"), "403");
    assert_eq!(status("http://evil.example/v1/sessions", "X: y"), "403");
    assert_eq!(status("http://localhost/v1/sessions", "X: y"), "200");
    assert_eq!(status("/../../../etc/passwd", "X: y"), "404".replace("404", &status("/nothing", "X: y")));
    let plain = http.raw(&format!("GET /v1/connect HTTP/1.1\r\n{token}\r\nConnection: close\r\n\r\n"));
    assert!(plain.contains("\"code\":\"bad_request\""), "{plain}");
}

#[test]
fn offsets_behind_the_end_are_refused_and_what_is_gone_is_told() {
    let http = Http::new();
    http.home.session("one", "read x");
    let run = json!({ "new": { "command": ["sh", "-c", "printf 'a\\377b'"], "cwd": "/" } });
    let run = http.post("/runs?wait=20", run).body;
    assert_eq!((&run["output"], &run["exit_code"]), (&json!("a\u{fffd}b"), &json!(0)), "{run}");
    let id = run["id"].as_str().unwrap();
    let read = http.get(&format!("/runs/{id}/output")).body;
    let exact = base64::engine::general_purpose::STANDARD.decode(read["base64"].as_str().unwrap()).unwrap();
    assert_eq!((exact.as_slice(), &read["end"]), (&b"a\xffb"[..], &json!(true)), "{read}");
    let beyond = http.get(&format!("/runs/{id}/output?from=99999"));
    assert!(beyond.status == 416 || beyond.body["to"].as_u64() <= run["to"].as_u64(), "{beyond:?}");
    assert_eq!(http.get("/sessions/one/output?from=99999").body["code"], "ahead");
    let later = http.get(&format!("/events?after={}", u64::MAX));
    assert_eq!(later.status, 200, "{later:?}");
    assert_eq!(http.get("/sessions/one/journal?after=99999999").status, 200);
}

/// Far more than a ring keeps. Of a gigabyte the same holds, and takes a minute here.
const OUTPUT_BYTES: u64 = 100_000_000;

#[test]
fn a_run_that_prints_far_more_than_is_kept_is_answered_within_bounds_and_its_gap_is_told() {
    let http = Http::new();
    http.get("/host");
    let before = http.peak_kib();
    // Lines of 16 bytes that say where they stand.
    let script = "import os, sys\nn = int(sys.argv[1]) // 16\nfor at in range(0, n, 65536):\n    \
        os.write(1, b''.join(b'%015d\\n' % i for i in range(at, min(at + 65536, n))))";
    let count = OUTPUT_BYTES.to_string();
    let command = ["sh", "-c", "stty -opost; exec \"$@\"", "sh", "python3", "-c", script, count.as_str()];
    let body = json!({ "new": { "command": command, "cwd": "/" }, "keep": true });
    let run = http.post("/runs?wait=100", body).body;
    assert_eq!((&run["exit_code"], &run["truncated"]), (&json!(0), &json!(true)), "{run}");
    assert_eq!(run["to"].as_u64().unwrap() - run["from"].as_u64().unwrap(), OUTPUT_BYTES);
    let output = run["output"].as_str().unwrap();
    let last = format!("{:015}\n", OUTPUT_BYTES / 16 - 1);
    assert!(output.len() < 256 * 1024 && output.ends_with(&last), "{} bytes", output.len());
    let id = run["id"].as_str().unwrap();
    let read = http.get(&format!("/runs/{id}/output?from={}", run["from"])).body;
    let gap = (read["gap"]["from"].as_u64().unwrap(), read["gap"]["to"].as_u64().unwrap());
    assert_eq!(gap, (run["from"].as_u64().unwrap(), read["from"].as_u64().unwrap()), "what is gone is told");
    // The first whole line behind the gap says where it stands.
    let start = read["from"].as_u64().unwrap() - run["from"].as_u64().unwrap();
    let skip = (16 - start % 16) as usize % 16;
    let line = &read["text"].as_str().unwrap()[skip..skip + 15];
    assert_eq!(line.parse::<u64>().unwrap(), (start + skip as u64) / 16);
    let grown = http.peak_kib() - before;
    assert!(grown < 64 * 1024, "the host took {grown} KiB");
}

#[test]
fn a_reader_of_events_that_does_not_read_costs_little_and_is_told_what_it_lost() {
    let http = Http::new();
    http.home.session("one", "read x");
    let stream = http.begin("GET /v1/events HTTP/1.1\r\nAccept: text/event-stream");
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line.starts_with(": nothing")));
    let before = http.peak_kib();
    // A human: the acts of others have a pace.
    let human = http.home.ok(&["token", "new"]).trim().to_owned();
    let mut line = Line::open(&http, &human).unwrap();
    // Each is two events, in all ten times as many as are kept; the sockets between us hold some.
    for _ in 0..200 {
        let asked: Vec<u64> = (0..100)
            .map(|n| line.say(["turn.take", "turn.release"][n % 2], json!({ "session": "one" }), b""))
            .collect();
        line.until_answered(*asked.last().unwrap());
    }
    let grown = http.peak_kib() - before;
    assert!(grown < 32 * 1024, "the host took {grown} KiB");
    let (mut told, mut lost, mut last) = (0, 0, 0);
    let newest = http.get("/events").body["to"].as_u64().unwrap();
    for line in lines {
        if let Some(id) = line.strip_prefix("id: ") {
            last = id.parse().unwrap();
        } else if line.starts_with("event: turn") {
            told += 1;
        } else if let Some(data) = line.strip_prefix("data: {\"lost\":") {
            lost += data.trim_end_matches('}').parse::<u64>().unwrap();
        } else if line.is_empty() && last >= newest {
            break;
        }
    }
    assert!(told > 0 && told + lost >= 20_000, "{told} told, {lost} lost");
}

#[test]
fn a_peer_whose_machine_goes_down_is_noticed() {
    let http = Http::new();
    http.home.session("one", "read x");
    let stream = http.begin("GET /v1/sessions/one/output?from=0&wait=9999 HTTP/1.1");
    until("it waits", || http.open_requests() == 2);
    let hex = |port: u16| format!(":{port:04X} ");
    let theirs = hex(http.address().rsplit_once(':').unwrap().1.parse().unwrap());
    let ours = hex(stream.local_addr().unwrap().port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let line = table.lines().find(|line| {
        let ends: Vec<&str> = line.split_whitespace().skip(1).take(2).collect();
        ends.len() == 2 && format!("{} ", ends[0]).ends_with(&theirs) && format!("{} ", ends[1]).ends_with(&ours)
    });
    let timer = line.unwrap().split_whitespace().nth(5).unwrap();
    assert!(timer.starts_with("02:"), "the kernel asks it from time to time: {timer}");
}

#[test]
fn a_token_makes_none_that_carries_more() {
    let http = Http::new();
    let narrow = http.home.ok(&["--as", "agent:bot", "token", "new", "--can", "observe,grant"]).trim().to_owned();
    let make = |can: Value| http.ask_as(&narrow, "POST", "/tokens", Some(json!({ "actor": "agent:bot", "can": can })));
    let wide = make(Value::Null);
    assert_eq!((wide.status, &wide.body["code"]), (403, &json!("too_wide")), "{wide:?}");
    assert_eq!(make("observe,type".into()).status, 403);
    assert_eq!(make("observe".into()).status, 201);
}
