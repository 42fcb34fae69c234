//! How fast a seizure takes effect: `cargo bench -p holdfast --bench seize`.
//!
//! A real host, a real session, an agent that writes as fast as its connection takes it. A human seizes the turn again and again.
//! Two times are taken, both from the human's request: until the keeper has answered behind the new fence and the flush, from
//! where on no byte of the old holder reaches the terminal (`cut`, as the host measures it), and until the answer is back.
//! With freeze: until the whole tree stands still, for one looping writer and for a tree of 500 processes, the first time (its
//! processes are moved into a cgroup) and later. Last, the same while agents that only observe ask for everything that is
//! expensive, as fast as they are answered: of a tree of 500 processes, ten thousand lines of history, fifty sessions.

use holdfast_authority::Ask;
use holdfast_client::{Connection, Identity, connect};
use holdfast_graph::Depth;
use holdfast_types::{Home, SessionId};
use holdfast_wire::graphs::{GraphParams, PortsParams};
use holdfast_wire::operations::op;
use holdfast_wire::params::{
    EndParams, ListParams, NewParams, Nothing, PaintParams, ScreenParams, SendParams, SessionParams,
};
use holdfast_wire::turns::{JournalParams, SeizeAnswer, SeizeParams, TurnParams};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CUTS: usize = 500;
const FREEZES: usize = 100;
const FIRSTS: usize = 20;
/// Questions a client keeps under way.
const PIPELINED: usize = 32;
/// Agents that ask for everything at once.
const OBSERVERS: usize = 8;

struct World {
    dir: tempfile::TempDir,
    host: Child,
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.host.kill();
        let _ = self.host.wait();
    }
}

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let home = Home::under(dir.path());
    let human = Identity::make(&home, &"human:ann".parse().expect("a handle"), None).expect("a key");
    let agent = Identity::make(&home, &"agent:bot".parse().expect("a handle"), None).expect("a key");
    let host = Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .args(["host", "run"])
        .env("HOLDFAST_HOME", dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program");
    let world = World { dir, host };
    println!("{:<44} {:>9} {:>9} {:>9}", "microseconds", "p50", "p99", "max");
    cuts(&world, &human, &agent);
    freezes(&world, &human, "looping writer", "while :; do echo x; done");
    let tree = "i=0; while [ $i -lt 499 ]; do sleep 100000 & i=$((i+1)); done; echo grown; wait";
    freezes(&world, &human, "500 processes", tree);
    abused(&world, &human, tree);
}

/// While observers ask for everything that is expensive.
fn abused(world: &World, human: &Identity, tree: &str) {
    let mut link_of_human = link(world, human);
    let session = start(&mut link_of_human, &format!("seq 1 12000; {tree}"));
    grown(&mut link_of_human, session, true);
    let others: Vec<SessionId> = (0..50).map(|_| start(&mut link_of_human, "exec cat")).collect();
    let (stop, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut answered = Vec::new();
    std::thread::scope(|scope| {
        for n in 0..OBSERVERS {
            let home = Home::under(world.dir.path());
            let handle = format!("agent:observer{n}").parse().expect("a handle");
            let observer = Identity::make(&home, &handle, None).expect("a key");
            let (stop, asked) = (&stop, &asked);
            scope.spawn(move || look_on_and_on(link(world, &observer), session, stop, asked));
        }
        while asked.load(Ordering::Relaxed) < 100 {
            std::thread::sleep(Duration::from_millis(5));
        }
        for _ in 0..CUTS {
            answered.push(seize(&mut link_of_human, human, session, false).1);
            turn::<op::Release>(&mut link_of_human, session);
        }
        stop.store(true, Ordering::Relaxed);
    });
    row(&format!("seize: answered, {OBSERVERS} observers abuse"), answered);
    println!("({} of their questions were answered meanwhile)", asked.load(Ordering::Relaxed));
    others.into_iter().chain([session]).for_each(|session| end(&mut link_of_human, session));
}

/// Asks for everything that only looks, so many at once.
fn look_on_and_on(mut link: Connection, session: SessionId, stop: &AtomicBool, asked: &AtomicU64) {
    let one = || session.to_string();
    let mut under_way = 0;
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        while under_way < PIPELINED {
            number += 1;
            let sent = match number % 9 {
                0 => link.ask::<op::Graph>(&GraphParams { session: one(), depth: Depth::Full }, &[]),
                1 => link.ask::<op::Ports>(&PortsParams { session: None }, &[]),
                2 => link.ask::<op::Screen>(&ScreenParams { session: one(), ansi: true, history: 10_000 }, &[]),
                3 => {
                    link.ask::<op::Paint>(&PaintParams { session: one(), history: true, ..PaintParams::default() }, &[])
                }
                4 => link.ask::<op::List>(&ListParams { all: true }, &[]),
                5 => link.ask::<op::Actors>(&Nothing {}, &[]),
                6 => link.ask::<op::Metrics>(&Nothing {}, &[]),
                7 => link.ask::<op::Journal>(&JournalParams { session: one(), after: 0, last: None, wait_ms: 0 }, &[]),
                _ => link.ask::<op::State>(&SessionParams { session: one() }, &[]),
            };
            sent.expect("the host listens");
            under_way += 1;
        }
        if let holdfast_client::Incoming::Answer { .. } = link.receive().expect("the host answers") {
            under_way -= 1;
            asked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn link(world: &World, who: &Identity) -> Connection {
    let home = Home::under(world.dir.path());
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match connect(&home, who) {
            Ok(link) => return link,
            Err(error) if Instant::now() > until => panic!("no host: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn start(human: &mut Connection, script: &str) -> SessionId {
    let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let params = NewParams {
        command,
        cwd: Some("/".into()),
        env: Some(vec!["PATH=/usr/bin:/bin".into()]),
        ..NewParams::default()
    };
    human.call::<op::New>(&params).expect("a session").id
}

fn seize(link: &mut Connection, who: &Identity, session: SessionId, freeze: bool) -> (SeizeAnswer, u64) {
    let reason = "to measure it".to_owned();
    let proof = Some(who.prove(session, &Ask::Seize { freeze, reason: reason.clone() }));
    let params = SeizeParams { session: session.to_string(), client: None, freeze, reason, proof };
    let began = Instant::now();
    let answer = link.call::<op::Seize>(&params).expect("a human seizes");
    (answer, began.elapsed().as_micros() as u64)
}

fn turn<O>(link: &mut Connection, session: SessionId)
where
    O: holdfast_wire::Operation<Params = TurnParams>,
{
    let _ = link.call::<O>(&TurnParams { session: session.to_string(), client: None, proof: None });
}

fn end(link: &mut Connection, session: SessionId) {
    let params = EndParams { session: session.to_string(), grace_ms: 0, proof: None };
    link.call::<op::End>(&params).expect("it ends");
}

/// Against an agent that never stops writing.
fn cuts(world: &World, human: &Identity, agent: &Identity) {
    let mut link_of_human = link(world, human);
    let session = start(&mut link_of_human, "stty raw -echo; exec cat > /dev/null");
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut cut, mut answered) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| write_on_and_on(link(world, agent), session, &stop, &written));
        for _ in 0..CUTS {
            // The agent has it, and writes.
            let before = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) < before + 3 {
                std::thread::yield_now();
            }
            let (answer, us) = seize(&mut link_of_human, human, session, false);
            cut.push(answer.cut_us);
            answered.push(us);
            turn::<op::Release>(&mut link_of_human, session);
        }
        stop.store(true, Ordering::Relaxed);
    });
    row("seize: nothing more of the old holder", cut);
    row("seize: answered", answered);
    end(&mut link_of_human, session);
}

/// Sends without waiting for answers, but for their number.
fn write_on_and_on(mut link: Connection, session: SessionId, stop: &AtomicBool, written: &AtomicU64) {
    // A stream each: behind a message that was cut off, its stream would wait for it to come again.
    let params = |stream| SendParams {
        session: session.to_string(),
        stream,
        seq: 1,
        client: None,
        fence: None,
        secret: false,
        force: false,
        in_order: false,
    };
    let bytes = [b'x'; 256];
    let (mut sent, mut heard) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        while sent - heard < PIPELINED {
            sent += 1;
            link.ask::<op::Send>(&params(sent as u64), &bytes).expect("the host listens");
        }
        if let holdfast_client::Incoming::Answer { result, .. } = link.receive().expect("the host answers") {
            heard += 1;
            written.fetch_add(u64::from(result.is_ok()), Ordering::Relaxed);
        }
    }
}

fn freezes(world: &World, human: &Identity, what: &str, script: &str) {
    let mut link = link(world, human);
    let mut first = Vec::new();
    let mut later = Vec::new();
    let mut how = String::new();
    for round in 0..FIRSTS {
        let session = start(&mut link, script);
        grown(&mut link, session, script.contains("grown"));
        for again in 0..if round == 0 { FREEZES + 1 } else { 1 } {
            let (answer, _) = seize(&mut link, human, session, true);
            let froze = answer.froze.expect("it was frozen");
            how.clone_from(&froze.how);
            if again == 0 { &mut first } else { &mut later }.push(froze.us);
            turn::<op::Thaw>(&mut link, session);
        }
        end(&mut link, session);
    }
    row(&format!("freeze, {what}, by {how}: first"), first);
    row(&format!("freeze, {what}, by {how}: again"), later);
}

/// Waits until the tree is there.
fn grown(link: &mut Connection, session: SessionId, told: bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until {
        let view = link.call::<op::Get>(&SessionParams { session: session.to_string() }).expect("it is there");
        if view.head > 0 || !told {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the tree did not grow");
}

fn row(what: &str, mut figures: Vec<u64>) {
    figures.sort_unstable();
    let at = |part: usize| figures[(figures.len() * part / 100).min(figures.len() - 1)];
    println!("{what:<44} {:>9} {:>9} {:>9}", at(50), at(99), figures[figures.len() - 1]);
}
