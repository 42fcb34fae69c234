//! What a keeper costs: `cargo run --release --example figures -- <keeper binary> [sessions]`.
//!
//! Starts idle sessions (of `sleep`, so that the child costs nothing), one after the other, and prints the time one takes
//! from the keeper's exec to its answer, and the memory of each keeper, shared pages counted in proportion.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_abi::start::{STARTED_BYTES, Stage, Start, Started};

fn main() {
    let mut args = std::env::args().skip(1);
    let keeper = args.next().expect("the keeper binary comes first");
    let count: usize = args.next().map_or(50, |count| count.parse().expect("a number of sessions"));
    let dir = std::env::temp_dir().join(format!("hf-figures-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("a directory of our own");
    let path = |name: String| dir.join(name).into_os_string().into_encoded_bytes();
    let mut sessions: Vec<(Child, Started)> = vec![];
    let mut times: Vec<Duration> = vec![];
    for n in 0..count {
        let start = Start {
            ring_path: path(format!("{n}.ring")),
            socket_path: path(format!("{n}.sock")),
            ring_bytes: 1 << 20,
            size: (80, 24),
            umask: 0o22,
            cwd: b"/".to_vec(),
            argv: vec![b"sleep".to_vec(), b"1000".to_vec()],
            env: std::env::vars().map(|(key, value)| format!("{key}={value}").into_bytes()).collect(),
            ..Start::default()
        };
        let begun = Instant::now();
        sessions.push(launch(&keeper, &start));
        times.push(begun.elapsed());
    }
    // A keeper gives its pages back after a second of quiet.
    std::thread::sleep(Duration::from_millis(1300));
    let mut kib: Vec<u64> = sessions.iter().map(|(keeper, _)| pss_kib(keeper.id())).collect();
    for (keeper, started) in &mut sessions {
        let child = started.child_pid as i32;
        holdfast_keeper::sys::kill(child, libc::SIGKILL);
        let _ = keeper.wait();
    }
    let _ = std::fs::remove_dir_all(&dir);
    times.sort();
    kib.sort_unstable();
    let mean = times.iter().sum::<Duration>() / count as u32;
    println!("create: mean {mean:?}, median {:?}", times[count / 2]);
    println!("memory: mean {} KiB, largest {} KiB", kib.iter().sum::<u64>() / count as u64, kib[count - 1]);
}

fn launch(keeper: &str, start: &Start) -> (Child, Started) {
    let (mut ours, theirs) = UnixStream::pair().expect("a socket pair");
    let process =
        Command::new(keeper).arg("figures").stdin(Stdio::from(OwnedFd::from(theirs))).spawn().expect("a keeper");
    ours.write_all(&start.encode()).expect("a keeper that reads");
    let mut answer = [0; STARTED_BYTES];
    ours.read_exact(&mut answer).expect("a keeper that answers");
    let started = Started::decode(&answer).expect("an answer");
    assert_eq!(started.stage, Stage::Running, "errno {}", started.errno);
    (process, started)
}

fn pss_kib(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("a keeper that lives");
    let line = rollup.lines().find(|line| line.starts_with("Pss:")).expect("a Pss line");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}
