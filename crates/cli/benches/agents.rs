//! What agents wait for: `cargo bench -p holdfast --bench agents`.
//!
//! How long `holdfast mcp` takes from its start to its first answer. How long an agent's first command takes where its shell reads
//! slow startup files, asked for at once and a while after the handshake. Commands of one agent one after the other, in turns with a
//! bare `bash -c true`. Then a hundred agents at once that run twenty commands each, every one with a key, in shells with such startup
//! files: all must succeed, and the time beyond the shell's own start is shown.
//!
//! `HOLDFAST_BENCH_AGENTS=10` has fewer agents, and fewer rounds of the rest: for a look whether all of it works.

use holdfast_client::Identity;
use holdfast_types::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const AGENTS: usize = 100;
const RUNS: usize = 20;
const ROUNDS: usize = 300;
const WARM: usize = 20;
/// What a person's startup files may take.
const STARTUP: &str = "sleep 0.3\n";

fn main() {
    let agents = std::env::var("HOLDFAST_BENCH_AGENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(AGENTS);
    let rounds = ROUNDS * agents.min(AGENTS) / AGENTS;
    let dir = tempfile::tempdir().expect("a directory");
    let _host = Running::start(dir.path());
    println!("{:<52} {:>9} {:>9} {:>9}", "milliseconds", "p50", "p90", "p99");
    starts(dir.path(), rounds.max(10));
    one_after_the_other(dir.path(), rounds.max(10));
    std::fs::write(dir.path().join(".bashrc"), STARTUP).expect("a file");
    first_commands(dir.path());
    crowd(dir.path(), agents);
}

/// The host, and its sessions: they end with this, also where something failed.
struct Running<'a>(&'a Path);

impl Running<'_> {
    fn start(dir: &Path) -> Running<'_> {
        // Whoever may end the sessions of all agents.
        Identity::make(&Home::under(dir), &"human:ann".parse().expect("a handle"), None).expect("a key");
        let started = program(dir).args(["host", "start"]).stdout(Stdio::null()).status();
        assert!(started.expect("the program").success());
        Running(dir)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        for words in [&["end", "--all", "--grace", "0"][..], &["host", "stop"]] {
            let _ = program(self.0).args(["--as", "human:ann"]).args(words).output();
        }
    }
}

fn starts(dir: &Path, rounds: usize) {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        let agent = Agent::open(dir, "starts");
        times.push(began.elapsed());
        drop(agent);
    }
    show("`holdfast mcp` to its first answer (target 15)", &mut times);
}

fn one_after_the_other(dir: &Path, rounds: usize) {
    let mut agent = Agent::open(dir, "sequential");
    let (mut bare, mut tools) = (Vec::new(), Vec::new());
    for round in 0..WARM + rounds {
        let (own, tool) = (
            timed(|| assert!(Command::new("bash").args(["-c", "true"]).status().expect("bash").success())),
            timed(|| assert_eq!(agent.run("true", None)["exit_code"], 0)),
        );
        if round >= WARM {
            bare.push(own);
            tools.push(tool);
        }
    }
    let bare = show("bash -c true", &mut bare);
    let tool = show("the tool `run_command` with `true`", &mut tools);
    println!("{:<52} {:>8.2}x", "of bash -c true (target 2.5x)", tool / bare);
}

fn first_commands(dir: &Path) {
    let (mut at_once, mut later) = (Vec::new(), Vec::new());
    for n in 0..10 {
        // A name of its own: none finds the shell of another.
        let mut agent = Agent::open(dir, &format!("hasty{n}"));
        at_once.push(timed(|| assert_eq!(agent.run("true", None)["exit_code"], 0)));
        agent.end_own();
        let mut agent = Agent::open(dir, &format!("calm{n}"));
        std::thread::sleep(Duration::from_secs(1));
        later.push(timed(|| assert_eq!(agent.run("true", None)["exit_code"], 0)));
        agent.end_own();
    }
    show("the first command at once, startup files of 300 ms", &mut at_once);
    show("the same a second after the handshake", &mut later);
}

fn crowd(dir: &Path, agents: usize) {
    let alone = own_start();
    let ready = Arc::new(Barrier::new(agents));
    let threads: Vec<_> = (0..agents)
        .map(|n| {
            let (dir, ready) = (dir.to_owned(), Arc::clone(&ready));
            std::thread::spawn(move || {
                let mut agent = Agent::open(&dir, &format!("crowd{}", n % 10));
                ready.wait();
                let run = |k: usize| {
                    let file = format!("crowd-{n}-{k}");
                    let command = format!("echo x >> {file}");
                    let took = timed(|| {
                        let answer = agent.run(&command, Some(&file));
                        assert_eq!(answer["exit_code"], 0, "{answer}");
                    });
                    let effects = std::fs::read_to_string(dir.join(&file)).expect("it ran");
                    assert_eq!(effects, "x\n", "{file} happened once");
                    // The first one waits for its shell.
                    if k == 0 { took.saturating_sub(alone) } else { took }
                };
                (0..RUNS).map(run).collect::<Vec<Duration>>()
            })
        })
        .collect();
    let mut times: Vec<Duration> = threads.into_iter().flat_map(|thread| thread.join().expect("an agent")).collect();
    assert_eq!(times.len(), agents * RUNS);
    println!("{:<52} {:>9}", "shell's own start, alone", alone.as_millis());
    let what = format!("{agents} agents x {RUNS} keyed runs, beyond that (p99 2000)");
    show(&what, &mut times);
    println!("{:<52} {:>9}", "of them failed", 0);
}

/// What bash takes to its first prompt with these startup files, without anything of ours.
fn own_start() -> Duration {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join(".bashrc"), STARTUP).expect("a file");
    timed(|| {
        let ended = Command::new("bash").args(["-ic", "true"]).env("HOME", dir.path()).stderr(Stdio::null()).status();
        assert!(ended.expect("bash").success());
    })
}

/// `holdfast mcp`, as an agent's program uses it.
struct Agent {
    server: Child,
    say: Option<ChildStdin>,
    hear: BufReader<ChildStdout>,
    id: u64,
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.say.take());
        let _ = self.server.wait();
    }
}

impl Agent {
    /// Has its first answer.
    fn open(dir: &Path, name: &str) -> Agent {
        let mut server = program(dir)
            .arg("mcp")
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program");
        let (say, hear) = (server.stdin.take(), server.stdout.take().expect("piped"));
        let mut agent = Agent { server, say, hear: BufReader::new(hear), id: 0 };
        let client = json!({ "name": name, "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        agent.ask("initialize", &params);
        agent.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn tell(&mut self, message: &Value) {
        let say = self.say.as_mut().expect("it is open");
        writeln!(say, "{message}").expect("it is sent");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            self.hear.read_line(&mut line).expect("an answer");
            let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line:?}"));
            if answer["id"] == id {
                return answer["result"].clone();
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))["structuredContent"].clone()
    }

    fn run(&mut self, command: &str, key: Option<&str>) -> Value {
        self.call("run_command", &json!({ "command": command, "key": key, "yield_ms": 60_000 }))
    }

    fn end_own(&mut self) {
        self.call("end_session", &json!({}));
    }
}

fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.env("HOLDFAST_HOME", dir).env("HOME", dir).env_remove("HOLDFAST_ACTOR").env("SHELL", "/bin/bash");
    command
}

fn timed(what: impl FnOnce()) -> Duration {
    let began = Instant::now();
    what();
    began.elapsed()
}

/// Prints a row, and gives its median in milliseconds.
fn show(what: &str, times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1000.0;
    println!("{what:<52} {:>9.2} {:>9.2} {:>9.2}", at(50), at(90), at(99));
    at(50)
}
