//! What flows cost: throughput, CPU of the service, memory of those that sleep, and how soon a service is there.
//!
//! `cargo bench --workspace --bench flows [-- NAME…]`; with `--profile dev` the same in a debug build. Prints one line a figure. The service is a process
//! of its own (this program again), so that its CPU and memory are its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measurement fails loudly and prints

use holdfast_client::Identity;
use holdfast_flow::{Command, Event, Lineage};
use holdfast_flows::protocol::{FlowAnswer, FlowView, Request, Status, Task};
use holdfast_flows::{Client, Keeping, database, serve};
use holdfast_types::Home;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A home with a service in it.
struct Place {
    dir: tempfile::TempDir,
    service: Child,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let service = Place::spawn(dir.path());
        let place = Place { dir, service };
        place.client();
        place
    }

    fn spawn(dir: &Path) -> Child {
        let me = std::env::current_exe().unwrap();
        std::process::Command::new(me).arg("serve").arg(dir).spawn().unwrap()
    }

    fn home(&self) -> Home {
        Home::under(self.dir.path())
    }

    fn client(&self) -> Client {
        let home = self.home();
        holdfast_store::make_dir(&home.state).unwrap();
        let who = Identity::load_or_make(&home, &"agent:bench".parse().unwrap()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            match Client::connect(&home, &who) {
                Ok(client) => return client,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Milliseconds of CPU that the service has used: the scheduler's count, which is finer than ticks.
    fn cpu_ms(&self) -> f64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.service.id())).unwrap();
        let one = |entry: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<f64>().ok()
        };
        threads.filter_map(one).sum::<f64>() / 1e6
    }

    fn status(&self, key: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.service.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn kill(&mut self) {
        self.service.kill().unwrap();
        self.service.wait().unwrap();
    }

    /// Kills the service and starts another; milliseconds until that one answers.
    fn again_ms(&mut self) -> f64 {
        self.kill();
        let began = Instant::now();
        self.service = Place::spawn(self.dir.path());
        let _: Status = self.client().ask(&Request::Status {}).unwrap();
        began.elapsed().as_secs_f64() * 1e3
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.kill();
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

fn named(flow: String, name: &str) -> Request {
    let (flow, name) = (Some(flow), Some(name.to_owned()));
    Request::Start {
        flow,
        definition: None,
        name,
        input: Value::Null,
        cwd: None,
        skip_timers: false,
        code: String::new(),
        hosted: None,
    }
}

fn percent(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part) as usize]
}

fn step(n: u32) -> Command {
    Command::Step { name: format!("step {n}"), ok: true, value: json!(n) }
}

/// Five steps and the end, in the one turn that a worker needs for them.
fn five() -> Vec<(u32, Command)> {
    let end = Command::End { ok: true, value: json!("done") };
    (0..5).map(|n| (n, step(n))).chain([(5, end)]).collect()
}

/// A worker that gives every flow its five steps, until so many are done.
fn work(mut client: Client, count: usize, done: &AtomicUsize) {
    let names = vec!["Five".to_owned()];
    while done.load(Ordering::Relaxed) < count {
        let tasks: Vec<Task> =
            client.ask(&Request::Tasks { names: names.clone(), max: 32, wait_ms: 100, code: String::new() }).unwrap();
        for Task { flow, at, .. } in tasks {
            client
                .ask::<Value>(&Request::Turn { flow, at, commands: five(), blocked: None, code: String::new() })
                .unwrap();
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn throughput() {
    const COUNT: usize = 2_000;
    const STARTERS: usize = 8;
    let place = Place::new();
    let (began, before) = (Instant::now(), place.cpu_ms());
    let done = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (client, done) = (place.client(), Arc::clone(&done));
            scope.spawn(move || work(client, COUNT, &done));
        }
        for starter in 0..STARTERS {
            let mut client = place.client();
            scope.spawn(move || {
                for n in (starter..COUNT).step_by(STARTERS) {
                    client.ask::<Value>(&named(format!("Five-{n}"), "Five")).unwrap();
                }
            });
        }
    });
    let (took, cpu) = (began.elapsed().as_secs_f64(), place.cpu_ms() - before);
    println!(
        "five no-op steps: {:.0} flows/s, {:.2} ms CPU of the service a flow",
        COUNT as f64 / took,
        cpu / COUNT as f64
    );
}

fn latency() {
    const COUNT: usize = 1_000;
    let place = Place::new();
    let done = Arc::new(AtomicUsize::new(0));
    let mut asked = Vec::new();
    std::thread::scope(|scope| {
        let (worker, done) = (place.client(), Arc::clone(&done));
        scope.spawn(move || work(worker, COUNT, &done));
        let mut client = place.client();
        let began = Instant::now();
        for n in 0..COUNT {
            std::thread::sleep(
                (began + Duration::from_millis(10 * n as u64)).saturating_duration_since(Instant::now()),
            );
            asked.push(now_ms());
            client.ask::<Value>(&named(format!("Five-{n}"), "Five")).unwrap();
        }
    });
    let flows: Vec<FlowView> = place.client().ask(&Request::List { all: true, after: 0, wait_ms: 0 }).unwrap();
    let took = |flow: &FlowView| {
        let n: usize = flow.id.strip_prefix("Five-")?.parse().ok()?;
        Some(flow.ended_ms?.saturating_sub(asked[n]) as f64)
    };
    let mut all: Vec<f64> = flows.iter().filter_map(took).collect();
    let (p50, p99) = (percent(&mut all, 0.5), percent(&mut all, 0.99));
    println!("100 flows/s of five no-op steps: p50 {p50:.0} ms, p99 {p99:.0} ms of {}", all.len());
}

fn asleep() {
    const COUNT: usize = 10_000;
    const STARTERS: usize = 8;
    let mut place = Place::new();
    let alone = place.status("VmRSS:");
    let far = "flow: Sleeper\nsteps:\n- sleep: 5d\n";
    std::thread::scope(|scope| {
        for starter in 0..STARTERS {
            let mut client = place.client();
            scope.spawn(move || {
                for n in (starter..COUNT).step_by(STARTERS) {
                    let (flow, definition) = (Some(format!("Sleeper-{n}")), Some(far.to_owned()));
                    let start = Request::Start {
                        flow,
                        definition,
                        name: None,
                        input: Value::Null,
                        cwd: None,
                        skip_timers: false,
                        code: String::new(),
                        hosted: None,
                    };
                    client.ask::<Value>(&start).unwrap();
                }
            });
        }
    });
    let took = place.again_ms();
    let switches = |place: &Place| {
        let threads = std::fs::read_dir(format!("/proc/{}/task", place.service.id())).unwrap();
        let one = |entry: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(entry.ok()?.path().join("status")).ok()?;
            let count = |key: &str| {
                text.lines().find(|line| line.starts_with(key))?.split_whitespace().nth(1)?.parse::<u64>().ok()
            };
            Some(count("voluntary_ctxt")? + count("nonvoluntary_ctxt")?)
        };
        threads.filter_map(one).sum::<u64>()
    };
    // Its client has just left.
    std::thread::sleep(Duration::from_secs(1));
    let (rss, cpu, before) = (place.status("VmRSS:"), place.cpu_ms(), switches(&place));
    std::thread::sleep(Duration::from_secs(10));
    let (used, woken) = (place.cpu_ms() - cpu, switches(&place) - before);
    println!(
        "10,000 asleep: {} kB resident ({alone} kB without flows), {used:.1} ms CPU and {woken} context switches in 10 s",
        rss
    );
    println!("10,000 asleep: taken up {took:.0} ms after kill -9");
}

fn late() {
    const COUNT: usize = 10_000;
    const STARTERS: usize = 8;
    let place = Place::new();
    let at = now_ms() + 30_000;
    std::thread::scope(|scope| {
        let worker = || {
            let mut client = place.client();
            move || loop {
                let names = vec!["Until".to_owned()];
                let tasks: Vec<Task> =
                    client.ask(&Request::Tasks { names, max: 64, wait_ms: 1_000, code: String::new() }).unwrap();
                if tasks.is_empty() && now_ms() > at {
                    return;
                }
                for Task { flow, at: known, history, .. } in tasks {
                    let is_new = !history.iter().any(|one| matches!(one.event, Event::Done { .. }));
                    // Spread over ten seconds.
                    let number: u64 = flow.rsplit('-').next().unwrap().parse().unwrap();
                    let until = Command::Until { name: "Timer".into(), at_ms: at + number };
                    let end = Command::End { ok: true, value: Value::Null };
                    let commands = if is_new { vec![(0, until)] } else { vec![(1, end)] };
                    let _ = client.ask::<Value>(&Request::Turn {
                        flow,
                        at: known,
                        commands,
                        blocked: None,
                        code: String::new(),
                    });
                }
            }
        };
        scope.spawn(worker());
        for starter in 0..STARTERS {
            let mut client = place.client();
            scope.spawn(move || {
                for n in (starter..COUNT).step_by(STARTERS) {
                    client.ask::<Value>(&named(format!("Until-{n}"), "Until")).unwrap();
                }
            });
        }
    });
    let mut client = place.client();
    let mut late: Vec<f64> = Vec::new();
    for n in 0..COUNT {
        let get = Request::Get { flow: format!("Until-{n}"), after: 0, wait_ms: 0, generation: None };
        let answer: FlowAnswer = client.ask(&get).unwrap();
        let asked = answer.history.iter().find(|one| matches!(one.event, Event::Asked { .. }));
        let done = answer.history.iter().find(|one| matches!(one.event, Event::Done { .. }));
        if let (Some(asked), Some(done)) = (asked, done)
            && asked.at_ms < at
        {
            late.push(done.at_ms as f64 - (at + n as u64) as f64);
        }
    }
    let (p50, p99) = (percent(&mut late, 0.5), percent(&mut late, 0.99));
    println!("10,000 timers, 1,000 a second: late p50 {p50:.0} ms, p99 {p99:.0} ms of {}", late.len());
}

fn steps() {
    const COUNT: u32 = 3_000;
    let place = Place::new();
    let (mut client, mut starter) = (place.client(), place.client());
    starter.ask::<Value>(&named("Long-1".into(), "Long")).unwrap();
    let before = place.cpu_ms();
    let began = Instant::now();
    for n in 0..=COUNT {
        let names = vec!["Long".to_owned()];
        let tasks: Vec<Task> =
            client.ask(&Request::Tasks { names, max: 1, wait_ms: 10_000, code: String::new() }).unwrap();
        let Task { flow, at, .. } = tasks.into_iter().next().unwrap();
        let next = match n {
            COUNT => Command::End { ok: true, value: Value::Null },
            _ => Command::Sleep { name: "Timer".into(), ms: 0 },
        };
        client
            .ask::<Value>(&Request::Turn { flow, at, commands: vec![(n, next)], blocked: None, code: String::new() })
            .unwrap();
    }
    let (cpu, took) = (place.cpu_ms() - before, began.elapsed().as_secs_f64() * 1e3);
    let each = f64::from(COUNT);
    println!("3,000 steps in one flow: {:.2} ms CPU of the service and {:.2} ms each", cpu / each, took / each);
}

/// A database with so many flows of fifty events, of which some are open.
fn filled(dir: &Path, flows: u64, open: u64) {
    let home = Home::under(dir);
    make_tables(dir, &home);
    let mut sql = rusqlite::Connection::open(database(&home)).unwrap();
    let write = sql.transaction().unwrap();
    for number in 0..flows {
        let ended = (number >= open).then(|| now_ms() as i64);
        let id = format!("Old-{number}");
        write
            .execute("INSERT INTO flows (id, name, started_ms, ended_ms) VALUES (?, 'Old', 0, ?)", (&id, ended))
            .unwrap();
        let row = write.last_insert_rowid();
        let mut add = write.prepare_cached("INSERT INTO events (flow, seq, at_ms, body) VALUES (?, ?, ?, ?)").unwrap();
        for (seq, event) in history(ended.is_some()).into_iter().enumerate() {
            add.execute((row, seq as i64, now_ms() as i64, serde_json::to_string(&event).unwrap())).unwrap();
        }
    }
    write.commit().unwrap();
}

/// Fifty events: 24 steps, and what goes around them.
fn history(is_over: bool) -> Vec<Event> {
    let started = Event::Started {
        name: "Old".into(),
        input: json!("margherita"),
        code: String::new(),
        by: "agent:bench".into(),
        nonce: "00".into(),
        cwd: None,
        skip_timers: false,
        lineage: Lineage::default(),
    };
    let value =
        json!({"state": "ended", "exit_code": 0, "output": "DELIVERED\n", "session": "ses_0", "from": 0, "to": 9});
    let steps = (0..24).flat_map(|n| {
        let command = step(n);
        [Event::Asked { n, command }, Event::Done { n, ok: true, value: value.clone() }]
    });
    let last = match is_over {
        true => Event::Ended { ok: true, value: Value::Null },
        false => Event::Asked { n: 24, command: Command::Sleep { name: "Timer".into(), ms: 86_400_000 } },
    };
    std::iter::once(started).chain(steps).chain([last]).collect()
}

/// A service is there for a moment, and leaves its tables.
fn make_tables(dir: &Path, home: &Home) {
    let mut service = Place::spawn(dir);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holdfast_flows::socket(home).exists() {
        assert!(Instant::now() < deadline, "a service serves");
        std::thread::sleep(Duration::from_millis(1));
    }
    service.kill().unwrap();
    service.wait().unwrap();
}

fn startup() {
    for (open, what) in [(200, "200 of 20,000 flows open"), (20_000, "all of 20,000 flows open")] {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path(), 20_000, open);
        let began = Instant::now();
        let service = Place::spawn(dir.path());
        let mut place = Place { dir, service };
        let status: Status = place.client().ask(&Request::Status {}).unwrap();
        assert_eq!(status.open as u64, open);
        let took = began.elapsed().as_secs_f64();
        println!("1,000,000 events, {what}, none known to be at rest: the service answers after {took:.2} s");
        // The one before has written which are.
        let took = place.again_ms() / 1e3;
        let (rss, cpu) = (place.status("VmRSS:"), place.cpu_ms());
        println!(
            "1,000,000 events, {what}, all at rest: {took:.2} s after kill -9, {cpu:.0} ms CPU, {rss} kB resident"
        );
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [word, dir] = words.as_slice()
        && word == "serve"
    {
        serve(&Home::under(dir.as_ref()), "/nonexistent".into(), Keeping::default()).unwrap();
        return;
    }
    let rows: [(&str, fn()); 6] = [
        ("throughput", throughput),
        ("latency", latency),
        ("asleep", asleep),
        ("late", late),
        ("steps", steps),
        ("startup", startup),
    ];
    println!("a {} build", if cfg!(debug_assertions) { "debug" } else { "release" });
    for (name, row) in rows {
        if words.is_empty() || words.iter().any(|word| word == name) {
            row();
        }
    }
}
