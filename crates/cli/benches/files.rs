//! How fast files go into and out of a session, beside cp(1): `cargo bench -p holdfast --bench files`.
//!
//! One file of 1 GB of noise, in the page cache. Each round copies it with `cp`, downloads it and uploads it, and does the first and the last
//! once more over a file that is there, with the program as a person starts it. What a step made is removed before the next: each finds as
//! much free memory. What counts is the middle of the rounds, each with the `cp` of its own round. `HOLDFAST_BENCH_BYTES` and
//! `HOLDFAST_BENCH_ROUNDS` choose others.

use holdfast_client::Identity;
use holdfast_types::Home;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BYTES: u64 = 1_000_000_000;
const ROUNDS: u64 = 7;

struct World {
    dir: tempfile::TempDir,
    host: Child,
}

impl World {
    fn run(&self, args: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.args(args).env("HOLDFAST_HOME", self.dir.path()).env("HOLDFAST_ACTOR", "human:ann");
        let ran = command.stdin(Stdio::null()).output().expect("the program");
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.run(&["end", "work"]);
        let _ = self.host.kill();
        let _ = self.host.wait();
    }
}

fn main() {
    let (bytes, rounds) = (chosen("HOLDFAST_BENCH_BYTES", BYTES), chosen("HOLDFAST_BENCH_ROUNDS", ROUNDS));
    let dir = tempfile::tempdir().expect("a directory");
    Identity::make(&Home::under(dir.path()), &"human:ann".parse().expect("a handle"), None).expect("a key");
    let mut host = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    host.args(["host", "run"]).env("HOLDFAST_HOME", dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let world = World { host: host.spawn().expect("the program"), dir };
    let (tree, near) = (world.dir.path().join("tree"), world.dir.path().join("near"));
    for dir in [&tree, &near] {
        std::fs::create_dir(dir).expect("a directory");
    }
    world.run(&["new", "-d", "-n", "work", "--cwd", text(&tree), "--", "cat"]);
    let (source, copied, got, up) = (near.join("source"), near.join("copied"), near.join("got"), tree.join("up"));
    noise(&source, bytes);
    std::fs::hard_link(&source, tree.join("source")).expect("a link");
    let mut all = Vec::new();
    // The first round warms the page cache.
    for round in 0..=rounds {
        let copy = || {
            let ran = Command::new("cp").args([&source, &copied]).status();
            assert!(ran.is_ok_and(|status| status.success()), "cp");
        };
        let cp = timed(&copied, copy);
        let down = timed(&got, || world.run(&["files", "get", "work:source", text(&got)]));
        let put = || world.run(&["files", "put", text(&source), "work:up"]);
        let new = timed(&up, put);
        put();
        let over = timed(&up, put);
        copy();
        let cp_over = timed(&copied, copy);
        if round > 0 {
            all.push([cp, down, new, cp_over, over]);
        }
    }
    println!("{:<32} {:>9} {:>9} {:>9}", "milliseconds", "p50", "max", "x cp");
    // Each beside its own cp: a file system writes out what replaces something, whoever replaces it.
    let rows = [("cp", 0), ("files get", 0), ("files put", 0), ("cp over a file", 3), ("files put over a file", 3)];
    for (at, (name, beside)) in rows.into_iter().enumerate() {
        let mut times: Vec<Duration> = all.iter().map(|round| round[at]).collect();
        let ratio = |round: &[Duration; 5]| round[beside].as_secs_f64() / round[at].as_secs_f64();
        let mut ratios: Vec<f64> = all.iter().map(ratio).collect();
        times.sort_unstable();
        ratios.sort_by(f64::total_cmp);
        let (middle, last) = (times.len() / 2, times.len() - 1);
        println!("{name:<32} {:>9} {:>9} {:>9.2}", times[middle].as_millis(), times[last].as_millis(), ratios[middle]);
    }
}

fn chosen(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of UTF-8")
}

/// How long it takes to make this file, which is removed after.
fn timed(makes: &Path, work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    let took = began.elapsed();
    std::fs::remove_file(makes).expect("what was made");
    took
}

/// Bytes that no file system makes smaller.
fn noise(path: &Path, bytes: u64) {
    let mut file = std::io::BufWriter::new(File::create(path).expect("a file"));
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..bytes.div_ceil(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        file.write_all(&(state ^ state >> 29).to_le_bytes()).expect("space");
    }
    let file = file.into_inner().expect("space");
    file.set_len(bytes).expect("space");
    file.sync_all().expect("space");
}
