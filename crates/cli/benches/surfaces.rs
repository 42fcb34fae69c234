//! What agents and programs pay: `cargo bench -p holdfast --bench surfaces`.
//!
//! In turns: a bare `bash -c true`; the run of `true` in a session's bash over HTTP, on one connection; the same by the MCP tool
//! `run` of `holdfast mcp` on its standard input. Then what a thousand WebSockets cost the host that each wait for a session's
//! output. Then 200 agents with a session each that run a command every second, over HTTP.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 300;
const WARM: usize = 20;
const OBSERVERS: usize = 1000;
/// Those of one session: not all of its 256 places are for programs.
const OBSERVED: usize = 125;
/// Those of one actor: a program has 64 places in a session.
const OF_ONE: usize = 25;
const AGENTS: usize = 200;
const AGENT_SECONDS: u32 = 20;

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let status = told(program(dir.path()).args(["host", "start", "--http", "127.0.0.1:0", "--json"]));
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let address = status["http"].as_str().expect("it listens").trim_start_matches("http://").to_owned();
    let host = status["pid"].as_u64().expect("its process");
    let token = told(program(dir.path()).args(["--as", "agent:bench", "token", "new"])).trim().to_owned();
    println!("{:<44} {:>9} {:>9} {:>9}", "milliseconds", "p50", "p90", "p99");
    runs(dir.path(), &address, &token);
    let tokens: Vec<String> = (0..OBSERVERS / OF_ONE)
        .map(|n| {
            told(program(dir.path()).args(["--as", &format!("agent:observer-{n}"), "token", "new"])).trim().to_owned()
        })
        .collect();
    observers(&address, &token, &tokens, host);
    agents(&address, &token);
    let _ = program(dir.path()).args(["--as", "agent:bench", "end", "--all", "--grace", "0"]).output();
    let _ = program(dir.path()).args(["host", "stop"]).output();
}

fn runs(dir: &Path, address: &str, token: &str) {
    let mut http = Http::open(address, token);
    http.ask("POST", "/v1/sessions", &json!({ "name": "one", "command": ["bash"], "cwd": "/" }));
    let mut mcp = Mcp::open(dir);
    let (mut bare, mut over_http, mut over_mcp) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..WARM + ROUNDS {
        bare.push(timed(|| {
            assert!(Command::new("bash").args(["-c", "true"]).status().expect("bash").success());
        }));
        over_http.push(timed(|| http.run("one")));
        over_mcp.push(timed(|| mcp.run()));
    }
    let bare = show("bash -c true", &mut bare);
    let http = show("HTTP run of true", &mut over_http);
    let mcp = show("MCP run of true", &mut over_mcp);
    println!("{:<44} {:>8.2}x {:>8.2}x", "of bash -c true: HTTP, MCP (target 3x)", http / bare, mcp / bare);
}

/// The host's memory before and after a thousand WebSockets that are attached to a session and wait for its output.
fn observers(address: &str, token: &str, tokens: &[String], host: u64) {
    let mut http = Http::open(address, token);
    for n in 0..OBSERVERS / OBSERVED {
        let command = json!(["sh", "-c", "stty -echo -opost; read x; seq 1000; read x"]);
        http.ask("POST", "/v1/sessions", &json!({ "name": format!("o{n}"), "command": command, "cwd": "/" }));
    }
    let name = |n: usize| format!("o{}", n / OBSERVED);
    let before = resident_kib(host);
    let mut sockets: Vec<TcpStream> =
        (0..OBSERVERS).map(|n| observer(address, &tokens[n / OF_ONE], &name(n))).collect();
    // Each has answered its attach; then all wait.
    for (n, socket) in sockets.iter_mut().enumerate() {
        let wait = json!({ "session": name(n), "from": 0, "wait_ms": 600_000 });
        packet(socket, &json!({ "jsonrpc": "2.0", "id": 3, "method": "session.read", "params": wait }));
    }
    let mut last = http_status(address, token);
    while last < OBSERVERS as u64 {
        last = http_status(address, token);
    }
    let after = resident_kib(host);
    println!(
        "{OBSERVERS} idle WebSocket observers: {:.1} MiB in the host, {:.1} KiB each (target 40 MiB)",
        (after - before) as f64 / 1024.0,
        (after - before) as f64 / OBSERVERS as f64
    );
    // Each is told what its session prints, as soon as it does, and all leave at once.
    let mut http = Http::open(address, token);
    for n in 0..OBSERVERS / OBSERVED {
        http.ask("POST", &format!("/v1/sessions/o{n}/input"), &json!({ "text": "\n" }));
    }
    let expected: Vec<u8> = (1..=1000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    let mut held = after;
    for (n, socket) in sockets.iter_mut().enumerate() {
        let mut seen = Vec::new();
        loop {
            seen.extend(answer(socket));
            if seen.len() >= expected.len() {
                break;
            }
            let next = json!({ "session": name(n), "from": seen.len(), "wait_ms": 600_000 });
            packet(socket, &json!({ "jsonrpc": "2.0", "id": 4, "method": "session.read", "params": next }));
        }
        assert!(seen == expected, "{} bytes in place of {}", seen.len(), expected.len());
        held = held.max(resident_kib(host));
    }
    println!("{:<44} {:.1} MiB", "and while all are told what they print", (held - before) as f64 / 1024.0);
    drop(sockets);
    while http_status(address, token) > 0 {}
}

fn http_status(address: &str, token: &str) -> u64 {
    Http::open(address, token).ask("GET", "/v1/host", &Value::Null)["clients"].as_u64().expect("a number")
}

fn observer(address: &str, token: &str, session: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("a connection");
    let head = "GET /v1/connect HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    let keys = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    write!(socket, "{head}{keys}Authorization: Bearer {token}\r\n\r\n").expect("it is sent");
    let mut byte = [0];
    let mut answered = Vec::new();
    while !answered.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).expect("an answer");
        answered.push(byte[0]);
    }
    assert!(answered.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answered));
    packet(&mut socket, &json!({ "jsonrpc": "2.0", "id": 1, "method": "hello", "params": { "versions": [1] } }));
    answer(&mut socket);
    let attach = json!({ "session": session, "size": "80x24", "read_only": true });
    packet(&mut socket, &json!({ "jsonrpc": "2.0", "id": 2, "method": "session.attach", "params": attach }));
    answer(&mut socket);
    socket
}

/// Sends one frame, masked with zeros.
fn packet(socket: &mut TcpStream, message: &Value) {
    let text = message.to_string();
    let length = text.len() + 1;
    let mut frame = vec![0x82, 0x80 | 126];
    frame.extend_from_slice(&u16::try_from(length).expect("short").to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.push(1);
    frame.extend_from_slice(text.as_bytes());
    socket.write_all(&frame).expect("it is sent");
}

/// Reads one answer, and gives the bytes behind its fields.
fn answer(socket: &mut TcpStream) -> Vec<u8> {
    loop {
        let mut frame = frame(socket);
        let fields = match frame[0] {
            2 => 5 + u32::from_le_bytes(frame[1..5].try_into().expect("four bytes")) as usize,
            _ => frame.len(),
        };
        let said = String::from_utf8_lossy(&frame[1..fields]);
        assert!(!said.contains("\"error\""), "{said}");
        // What is told without being asked for has no number.
        if said.contains("\"id\":") {
            return frame.split_off(fields);
        }
    }
}

/// Reads one frame.
fn frame(socket: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 2];
    socket.read_exact(&mut head).expect("an answer");
    let length = match head[1] {
        126 => {
            let mut length = [0; 2];
            socket.read_exact(&mut length).expect("an answer");
            u64::from(u16::from_be_bytes(length))
        }
        127 => {
            let mut length = [0; 8];
            socket.read_exact(&mut length).expect("an answer");
            u64::from_be_bytes(length)
        }
        short => u64::from(short),
    };
    let mut frame = vec![0; usize::try_from(length).expect("it fits")];
    socket.read_exact(&mut frame).expect("an answer");
    frame
}

fn agents(address: &str, token: &str) {
    let began = Instant::now() + Duration::from_secs(1);
    let all: Vec<_> = (0..AGENTS)
        .map(|n| {
            let (address, token) = (address.to_owned(), token.to_owned());
            let mut http = Http::open(&address, &token);
            http.ask("POST", "/v1/sessions", &json!({ "name": format!("a{n}"), "command": ["bash"], "cwd": "/" }));
            http.run(&format!("a{n}"));
            (n, http)
        })
        .collect();
    let began = began.max(Instant::now() + Duration::from_secs(1));
    let threads: Vec<_> = all
        .into_iter()
        .map(|(n, mut http)| {
            std::thread::spawn(move || {
                let name = format!("a{n}");
                let phase = Duration::from_secs(1) * u32::try_from(n).expect("few") / AGENTS as u32;
                (0..AGENT_SECONDS)
                    .map(|round| {
                        let due = began + phase + Duration::from_secs(1) * round;
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        http.run(&name);
                        // From when it was due: one that is late for the one before counts as slow.
                        due.elapsed().as_micros() as u64
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let mut times: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().expect("an agent")).collect();
    show_all(&format!("{AGENTS} agents, a run a second each"), &mut times);
}

/// One HTTP connection.
struct Http {
    reader: BufReader<TcpStream>,
    token: String,
}

impl Http {
    fn open(address: &str, token: &str) -> Http {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        Http { reader: BufReader::new(stream), token: token.to_owned() }
    }

    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n", self.token);
        let length = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        self.reader.get_mut().write_all((head + &length).as_bytes()).expect("it is sent");
        let (mut line, mut length) = (String::new(), 0);
        loop {
            line.clear();
            self.reader.read_line(&mut line).expect("an answer");
            match line.trim_end().split_once(": ") {
                Some(("content-length", count)) => length = count.parse().expect("a number"),
                Some(_) => {}
                None if line == "\r\n" => break,
                None => assert!(line.starts_with("HTTP/1.1 2"), "{line}"),
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).expect("an answer");
        serde_json::from_slice(&body).expect("JSON")
    }

    fn run(&mut self, session: &str) {
        let answer = self.ask("POST", "/v1/runs", &json!({ "session": session, "command": "true", "wait_ms": 10_000 }));
        assert_eq!(answer["exit_code"], 0, "{answer}");
    }
}

/// `holdfast mcp`.
struct Mcp {
    child: Child,
    say: ChildStdin,
    hear: BufReader<ChildStdout>,
    id: u64,
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Mcp {
    fn open(dir: &Path) -> Mcp {
        let mut child =
            program(dir).arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program");
        let (say, hear) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut mcp = Mcp { child, say, hear: BufReader::new(hear), id: 0 };
        let client = json!({ "name": "bench", "version": "1" });
        mcp.ask("initialize", &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client }));
        writeln!(mcp.say, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .expect("it is sent");
        mcp.ask("tools/call", &json!({ "name": "open", "arguments": { "name": "two", "command": ["bash"] } }));
        mcp
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        writeln!(self.say, "{request}").expect("it is sent");
        loop {
            let mut line = String::new();
            self.hear.read_line(&mut line).expect("an answer");
            let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line:?}"));
            if answer["id"] == self.id {
                return answer["result"].clone();
            }
        }
    }

    fn run(&mut self) {
        let answer =
            self.ask("tools/call", &json!({ "name": "run", "arguments": { "session": "two", "command": "true" } }));
        assert_eq!(answer["structuredContent"]["exit_code"], 0, "{answer}");
    }
}

fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.env("HOLDFAST_HOME", dir).env("HOME", dir).env_remove("HOLDFAST_ACTOR").env("SHELL", "/bin/bash");
    command
}

fn told(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output().expect("the program");
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn resident_kib(pid: u64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the host runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

fn timed(what: impl FnOnce()) -> u64 {
    let began = Instant::now();
    what();
    began.elapsed().as_micros() as u64
}

/// Prints a row without the first rounds, and gives its median in milliseconds.
fn show(what: &str, times: &mut [u64]) -> f64 {
    show_all(what, &mut times[WARM..])
}

fn show_all(what: &str, times: &mut [u64]) -> f64 {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100] as f64 / 1000.0;
    println!("{what:<44} {:>9.2} {:>9.2} {:>9.2}", at(50), at(90), at(99));
    at(50)
}
