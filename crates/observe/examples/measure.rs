//! How long snapshots and looks at a terminal take, beside lsof(8) and ps(1), in one run. As root:
//!
//! ```text
//! cargo run --release -p holdfast-observe --example measure
//! ```
//!
//! Each tree has a leader and leaves with about eleven descriptors: files of which one is locked, pipes, a pair of unix
//! sockets, and a TCP port on every tenth.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_observe::Spared;
use holdfast_observe::graph::{Depth, ports, snapshot};
use holdfast_observe::waiting::{Doing, TerminalFacts, state};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, major, minor, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["leader", count, dir] => leader(count.parse()?, dir),
        ["leaf", number, dir] => leaf(number.parse()?, Path::new(dir)),
        _ => measure(),
    }
}

fn measure() -> Outcome<()> {
    println!("medians in milliseconds (least)\n");
    println!(
        "{:>9} {:>7} {:>6} {:>15} {:>15} {:>15} {:>15} {:>15}",
        "processes", "fds", "ports", "processes", "sockets", "full", "lsof -p", "ps --forest"
    );
    for count in [10, 100, 1000] {
        trees(count)?;
    }
    println!("\nmedians in microseconds (least)\n");
    looks(&["bash", "--norc", "--noprofile", "-i"], "bash, idle")?;
    looks(&["python3", "-c", "input()"], "python3 input()")?;
    looks(&["sh", "-c", "sleep 9999 | cat | cat /dev/tty"], "a pipeline of three")?;
    Ok(())
}

fn trees(count: usize) -> Outcome<()> {
    let dir = std::env::temp_dir().join(format!("hf-measure-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let mut leader = Command::new(std::env::current_exe()?)
        .args(["leader", &count.to_string()])
        .arg(&dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    // Every leaf says that it is ready.
    let mut ready = vec![0; count];
    leader.stdout.as_mut().ok_or("no output")?.read_exact(&mut ready)?;

    let keeper = std::process::id();
    let rounds = if count > 100 { 11 } else { 31 };
    let take = |depth| median(rounds, || snapshot(keeper, depth, None, &Spared::default()).map(black_box).map(drop));
    let full = snapshot(keeper, Depth::Full, None, &Spared::default())?;
    let pids: Vec<String> = full.processes.iter().map(|process| process.pid.to_string()).collect();
    let fds: usize = full.processes.iter().map(|process| process.fds.len()).sum();
    let quiet = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).status().map(drop);
    println!(
        "{:>9} {fds:>7} {:>6} {:>15} {:>15} {:>15} {:>15} {:>15}",
        full.processes.len(),
        ports(&full).len(),
        take(Depth::Processes)?,
        take(Depth::Sockets)?,
        take(Depth::Full)?,
        median(5, || quiet(Command::new("lsof").args(["-nP", "-p", &pids.join(",")])))?,
        median(5, || quiet(Command::new("ps").args(["-ef", "--forest"])))?,
    );
    drop(leader.stdin.take());
    leader.wait()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Starts the leaves; all end when our input does.
fn leader(count: usize, dir: &str) -> Outcome<()> {
    let us = std::env::current_exe()?;
    let start = |number: usize| Command::new(&us).args(["leaf", &number.to_string(), dir]).spawn();
    let leaves: Vec<_> = (1..count).map(start).collect::<Result<_, _>>()?;
    say_ready_and_wait()?;
    for mut leaf in leaves {
        leaf.wait()?;
    }
    Ok(())
}

fn leaf(number: usize, dir: &Path) -> Outcome<()> {
    let file =
        |at: usize| OpenOptions::new().create(true).append(true).open(dir.join(format!("{}", (number + at) % 50)));
    let files: Vec<File> = (0..5).map(file).collect::<Result<_, _>>()?;
    flock(&files[0], FlockOperation::LockShared)?;
    let _pair = UnixStream::pair()?;
    let _port = number.is_multiple_of(10).then(|| TcpListener::bind("127.0.0.1:0")).transpose()?;
    say_ready_and_wait()
}

fn say_ready_and_wait() -> Outcome<()> {
    std::io::stdout().write_all(b"x")?;
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Looks at a program that waits at a terminal.
fn looks(program: &[&str], name: &str) -> Outcome<()> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let path = ptsname(&master, Vec::new())?;
    let slave = open(path.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    let end = || slave.try_clone().map(Stdio::from);
    let mut shell =
        Command::new("setsid").arg("--ctty").args(program).stdin(end()?).stdout(end()?).stderr(end()?).spawn()?;
    let device = fstat(&slave)?.st_rdev;
    let facts = || -> Outcome<TerminalFacts> {
        Ok(TerminalFacts {
            foreground: rustix::termios::tcgetpgrp(&master).map_or(0, |group| group.as_raw_nonzero().get() as u32),
            iflag: 0,
            oflag: 0,
            lflag: rustix::termios::tcgetattr(&slave)?.local_modes.bits(),
            unread: 0,
            device: (major(device), minor(device)),
            alternate_screen: false,
            shell_prompt: None,
        })
    };
    let look = |facts: &TerminalFacts| state(std::process::id(), shell.id(), facts);
    let started = Instant::now();
    while !matches!(look(&facts()?), Doing::IdlePrompt { .. } | Doing::Waiting { .. }) {
        if started.elapsed() > Duration::from_secs(30) {
            return Err(format!("{name} does not wait for input").into());
        }
        std::thread::yield_now();
    }
    let facts = facts()?;
    let mut took: Vec<Duration> = (0..2000).map(|_| time(|| _ = black_box(look(&facts)))).collect();
    took.sort_unstable();
    println!("{name:<22} {:>5.0} ({:.0})", micros(took[took.len() / 2]), micros(took[0]));
    shell.kill()?;
    shell.wait()?;
    Ok(())
}

fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}

fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// The median and the least of so many runs.
fn median(rounds: usize, mut work: impl FnMut() -> std::io::Result<()>) -> Outcome<String> {
    let mut took = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let started = Instant::now();
        work()?;
        took.push(started.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    Ok(format!("{:.1} ({:.1})", took[rounds / 2], took[0]))
}
