//! Keepers of an earlier version, and sessions that do not begin to count at zero.

use holdfast_abi::ring::{BASE_MAX, Base, MAGIC, MAGIC_V1};
use holdfast_abi::start::{STARTED_BYTES, Stage, Started};
use holdfast_harness::{Home, Terminal, gone, kill, until};
use holdfast_host::HostConfig;
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Answers each line; `flood` prints more than a ring holds.
const SCRIPT: &str = "stty -echo; echo ready; \
    while read -r line; do case $line in flood) seq 1 300000;; *) echo got $line;; esac; done";

/// The keeper of ring version 1, built from its sources; cargo's own lock lets one test build it at a time.
fn keeper_v1() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/keeper-v1/Cargo.toml");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("keeper-v1");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--locked", "--manifest-path"]).arg(source).arg("--target-dir").arg(&target);
    // What an outer build was told is not meant for this one.
    for key in
        ["RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"]
    {
        cargo.env_remove(key);
    }
    let built = cargo.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("debug/holdfast-keeper")
}

/// The block a host of that version started a keeper with.
fn block_v1(spec: &Value, ring: &Path, socket: &Path, script: &str) -> Vec<u8> {
    fn text(out: &mut Vec<u8>, bytes: &[u8]) {
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    }
    let secret = u128::from_str_radix(spec["secret"].as_str().unwrap(), 16).unwrap().to_be_bytes();
    let mut out = secret.to_vec();
    text(&mut out, ring.to_str().unwrap().as_bytes());
    text(&mut out, socket.to_str().unwrap().as_bytes());
    out.extend_from_slice(&spec["ring_bytes"].as_u64().unwrap().to_le_bytes());
    out.extend_from_slice(&[80, 0, 24, 0]);
    out.extend_from_slice(&0o22u32.to_le_bytes());
    out.extend_from_slice(&0u64.to_le_bytes());
    text(&mut out, b"/");
    text(&mut out, b"");
    for list in [&["/bin/sh", "-c", script][..], &["PATH=/usr/bin:/bin", "TERM=xterm-256color"]] {
        out.extend_from_slice(&(list.len() as u32).to_le_bytes());
        list.iter().for_each(|item| text(&mut out, item.as_bytes()));
    }
    [&(out.len() as u32).to_le_bytes()[..], &out].concat()
}

/// A keeper that this test started, and collects.
struct Keeper(Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A session of the script, as a host of version 1 left it when it was killed. Its files are made by today's host, which has not
/// changed them since; its keeper and its ring are of version 1.
fn session_v1(home: &Home, name: &str) -> Keeper {
    home.session(name, "exec cat");
    until("its keeper", || (home.number(name, "keeper_pid") != 0).then_some(()));
    let (dir, keeper, child) = (home.session_dir(name), home.number(name, "keeper_pid"), home.number(name, "pid"));
    home.kill_host();
    for pid in [keeper, child] {
        kill(pid as u32);
        until("its end", || gone(pid as u32).then_some(()));
    }
    let socket = home.join("run").join(format!("{}.k", dir.file_name().unwrap().to_str().unwrap()));
    std::fs::remove_file(&socket).unwrap();
    std::fs::remove_file(dir.join("ring")).unwrap();
    let _ = std::fs::remove_file(dir.join("keyframe"));
    let spec: Value = holdfast_store::get_json(&holdfast_store::SPEC, &dir.join("spec")).unwrap().unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let process = Command::new(keeper_v1())
        .arg(spec["id"].as_str().unwrap())
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    let process = Keeper(process);
    ours.write_all(&block_v1(&spec, &dir.join("ring"), &socket, SCRIPT)).unwrap();
    let mut answer = [0; STARTED_BYTES];
    ours.read_exact(&mut answer).unwrap();
    assert_eq!(Started::decode(&answer).unwrap().stage, Stage::Running);
    process
}

fn magic(dir: &Path) -> [u8; 8] {
    let mut magic = [0; 8];
    std::fs::File::open(dir.join("ring")).unwrap().read_exact_at(&mut magic, 0).unwrap();
    magic
}

/// Sends a line, waits for its answer, and checks that it stands at the offset at which it must.
fn answers(home: &Home, name: &str, line: &str) {
    let before = home.number(name, "head");
    home.ok(&["send", name, "--enter", line]);
    home.until_screen_shows(name, &format!("got {line}"));
    let expected = format!("got {line}\r\n");
    let logs = home.json(&["logs", name, "--from", &before.to_string()]);
    assert_eq!((&logs["text"], &logs["gaps"]), (&json!(expected), &json!([])), "{line}");
    assert_eq!((&logs["from"], &logs["to"]), (&json!(before), &json!(before + expected.len() as u64)), "{line}");
}

/// Floods the ring: what rolled out is a gap from `first` on, and what is kept ends with the last line.
fn floods(home: &Home, name: &str, first: u64) {
    let before = home.number(name, "head");
    home.ok(&["send", name, "--enter", "flood"]);
    let flood: String = (1..=300_000).map(|n| format!("{n}\r\n")).collect();
    until("all of the flood", || (home.number(name, "head") == before + flood.len() as u64).then_some(()));
    let (oldest, head) = (home.number(name, "oldest"), home.number(name, "head"));
    assert!(oldest > before && head - oldest < 1 << 20);
    let ran = home.run(&["logs", name, "--from", &first.to_string()]);
    assert_eq!(ran.err, format!("holdfast: gap: bytes {first}..{oldest} are no longer kept\n"));
    assert!(ran.out == flood[(oldest - before) as usize..], "everything behind the gap");
    home.until_screen_shows(name, "300000");
    assert!(home.ok(&["screen", name, "--history", "5000"]).contains("\n298000\n"));
}

/// How many bytes were typed, as the journal has them: without echo it keeps lengths.
fn typed_bytes(home: &Home, name: &str) -> usize {
    let journal = home.ok(&["journal", name]);
    let counts =
        journal.lines().filter_map(|line| line.split_once(" typed ")?.1.split(' ').next()?.parse::<usize>().ok());
    counts.sum()
}

#[test]
fn a_session_under_a_version_1_keeper_is_served_by_todays_host() {
    let home = Home::new();
    let keeper = session_v1(&home, "old");
    let (id, pid) = (home.session_dir("old"), u64::from(keeper.0.id()));
    assert_eq!(magic(&id), MAGIC_V1);
    home.session("new", SCRIPT);
    assert_eq!(magic(&home.session_dir("new")), MAGIC, "it stands beside a session of today's");
    let view = home.json(&["info", "old"]);
    assert_eq!((&view["life"], &view["keeper_pid"], &view["oldest"]), (&json!("running"), &json!(pid), &json!(0)));
    assert_eq!(view["note"], Value::Null, "{view}");
    home.until_screen_shows("old", "ready");
    assert_eq!(home.json(&["logs", "old"])["text"], "ready\r\n");
    answers(&home, "old", "one");
    home.ok(&["resize", "old", "100x30"]);
    assert_eq!(home.size("old"), "100x30");
    let (terminal, mut client) = Terminal::attached(&home, "old", "100x30");
    terminal.wait_text("got one");
    terminal.types("two\r");
    terminal.wait_text("got two");
    home.kill_host();
    terminal.types("three\r");
    terminal.wait_text("got three");
    answers(&home, "old", "four");
    // An upgrade: another host, and the keeper program of the last one is gone from the disk.
    std::fs::remove_dir_all(home.join("bin")).unwrap();
    let told = home.json(&["upgrade"]);
    let stays =
        |name: &str| told["keepers"].as_array().unwrap().iter().find(|kept| kept["session"] == name).cloned().unwrap();
    let (old, new) = (stays("old"), stays("new"));
    assert_eq!((&old["current"], &old["served"], &old["pid"]), (&json!(false), &json!(true), &json!(pid)), "{told}");
    assert_eq!((&new["current"], &new["served"]), (&json!(true), &json!(true)), "{told}");
    let said = home.ok(&["upgrade", "--check"]);
    assert!(
        said.lines().any(|line| line.starts_with("old ")) && !said.lines().any(|line| line.starts_with("new ")),
        "{said}"
    );
    answers(&home, "old", "five");
    terminal.wait_text("got five");
    terminal.settle(&home, "old");
    client.kill();
    floods(&home, "old", 0);
    home.kill_host();
    answers(&home, "old", "six");
    assert_eq!(typed_bytes(&home, "old"), "one.two.three.four.five.flood.six.".len());
    assert_eq!(home.number("old", "keeper_pid"), pid, "all the time the same one");
    let head = home.number("old", "head");
    home.ok(&["end", "old", "--grace", "0"]);
    until("its keeper's end", || gone(pid as u32).then_some(()));
    let view = home.json(&["info", "old"]);
    assert_eq!((&view["life"], &view["head"]), (&json!("ended"), &json!(head)), "{view}");
    assert!(home.ok(&["logs", "old"]).ends_with("got six\r\n"), "its ring can still be read");
    answers(&home, "new", "on");
}

/// A host of this process, whose new sessions begin to count at a base: as one will be that goes on with a session of an earlier
/// life. Stopped at the end; what it started goes on.
fn with_host_at(home: &Home, base: Base, then: impl FnOnce()) {
    let places = home.places();
    let config = HostConfig { base, ..HostConfig::default() };
    let host = std::thread::spawn(move || holdfast_host::run(&places, &config).unwrap());
    home.host_pid();
    then();
    // Not by `host stop`, which waits for the end of the process.
    home.connect().unwrap().call::<op::Stop>(&Nothing {}).unwrap();
    host.join().unwrap();
}

/// Beyond what fits 32 bits, and not a multiple of anything the ring wraps by.
const BASE: Base = Base { output: (7 << 40) + 12_345, log: (3 << 33) + 72 };

#[test]
fn a_session_with_a_base_counts_from_there_for_every_reader() {
    let home = Home::new();
    let base = BASE.output;
    with_host_at(&home, BASE, || {
        home.session("s", SCRIPT);
        home.until_screen_shows("s", "ready");
        assert_eq!(home.number("s", "oldest"), base);
        assert_eq!(home.number("s", "head"), base + 7);
        answers(&home, "s", "first");
        home.ok(&["new", "-d", "-n", "shell", "--", "bash", "--norc"]);
        let ran = home.json(&["run", "shell", "--", "echo hello"]);
        assert_eq!(ran["output"], "hello\n", "{ran}");
        let (from, to) = (ran["from"].as_u64().unwrap(), ran["to"].as_u64().unwrap());
        assert!(from > base && to >= from + 7, "{ran}");
        let own = home.json(&["run", "--new", "--", "echo", "own"]);
        assert_eq!((&own["from"], &own["to"]), (&json!(base), &json!(base + 5)), "{own}");
    });
    // The program's own host takes them up.
    let ahead = home.fails(&["logs", "s", "--from", &(base + (1 << 30)).to_string()]);
    assert!(ahead.contains("does not exist yet"), "{ahead}");
    let logs = home.json(&["logs", "s", "--from", "5"]);
    assert_eq!(logs["gaps"], json!([{"from": 5, "to": base}]), "what was before the base is told");
    assert_eq!((&logs["from"], &logs["text"]), (&json!(5), &json!("ready\r\ngot first\r\n")));
    let at_base = home.json(&["logs", "s", "--from", &base.to_string()]);
    assert_eq!((&at_base["gaps"], &at_base["text"]), (&json!([]), &json!("ready\r\ngot first\r\n")));
    let again = home.json(&["run", "shell", "--", "echo again"]);
    assert_eq!(again["output"], "again\n", "{again}");
    let (terminal, mut client) = Terminal::attached(&home, "s", "90x20");
    terminal.wait_text("got first");
    until("its size", || (home.size("s") == "90x20").then_some(()));
    terminal.types("typed\r");
    terminal.wait_text("got typed");
    home.kill_host();
    terminal.types("blind\r");
    terminal.wait_text("got blind");
    answers(&home, "s", "seen");
    terminal.wait_text("got seen");
    terminal.settle(&home, "s");
    client.kill();
    assert_eq!(typed_bytes(&home, "s"), "first.typed.blind.seen.".len());
    let journal = home.ok(&["--json", "journal", "s"]);
    let record = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let offsets: Vec<u64> = journal.lines().filter_map(|line| record(line)["at"].as_u64()).collect();
    assert!(offsets.len() > 5 && offsets.iter().all(|at| *at >= base) && offsets.is_sorted(), "{offsets:?}");
    assert_eq!(home.json(&["info", "s"])["note"], Value::Null);
    floods(&home, "s", base);
    home.kill_host();
    answers(&home, "s", "after");
    home.ok(&["end", "s", "--grace", "0"]);
    assert!(home.ok(&["logs", "s"]).ends_with("got after\r\n"));
}

#[test]
fn a_base_too_large_starts_nothing_and_says_so() {
    let home = Home::new();
    with_host_at(&home, Base { output: BASE_MAX + 1, log: 0 }, || {
        let said = home.fails(&["new", "-d", "-n", "s", "--", "cat"]);
        assert!(said.contains("cannot create the ring file"), "{said}");
        assert_eq!(home.json(&["ls", "--all"]), json!([]));
    });
}
