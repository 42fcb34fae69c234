//! Each turn has a cgroup, and so has a run into which somebody else writes: whose a process is, whatever became of its parents and whoever writes now.
//!
//! As root, or with a cgroup delegated to us; where neither is, there is nothing to see.

use crate::graph::{binding, shell};
use holdfast_harness::{Home, TESTER, kill, settle, until};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

const ANN: &str = "human:ann";
const BOT: &str = "agent:bot";

/// The cgroup v2 that the tests are in, and so the hosts and keepers they start.
fn own() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?.split(' ').nth(1)?.to_owned();
    Some(PathBuf::from(mount).join(own))
}

/// Whether a cgroup can be made here, and a process moved into it.
pub fn are_usable() -> bool {
    static MADE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let Some(own) = own() else { return false };
    let number = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let probe = own.join(format!("hf-probe-{}-{number}", std::process::id()));
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let moved = fs::create_dir(&probe).and_then(|()| fs::write(probe.join("cgroup.procs"), child.id().to_string()));
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = fs::remove_dir(&probe);
    moved.is_ok()
}

/// Says why nothing is tested where nothing can be.
fn are_missing() -> bool {
    let missing = !are_usable();
    if missing {
        eprintln!("skipped: no cgroup v2 may be made here; run it as root, or in a delegated cgroup");
    }
    missing
}

/// Where the session's cgroups are.
fn cgroup(home: &Home, session: &str) -> PathBuf {
    let id = home.json(&["info", session])["id"].as_str().unwrap().to_owned();
    own().unwrap().join(format!("holdfast-{id}"))
}

/// Names of those that are a turn's or a run's.
fn spots(home: &Home, session: &str) -> Vec<String> {
    let names = fs::read_dir(cgroup(home, session)).into_iter().flatten().flatten();
    let names = names.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('a')).collect();
    names.sort();
    names
}

/// A daemon that forks twice, has no environment, waits for a word, and then leaves a process behind and becomes another.
struct Daemon {
    go: PathBuf,
    seconds: [u32; 2],
}

impl Daemon {
    fn start(home: &Home, actor: &str, seconds: [u32; 2]) -> Daemon {
        let go = home.join(&format!("go{}", seconds[0]));
        let made = std::process::Command::new("mkfifo").arg(&go).status().unwrap();
        assert!(made.success());
        let [first, second] = seconds;
        let then = format!("read x < {}; (/bin/sleep {first} &); exec /bin/sleep {second}", go.display());
        let line = format!("setsid env -i /bin/sh -c '(/bin/sh -c \"{then}\" &)' &");
        assert_eq!(home.run_as(actor, &["send", "work", "--enter", &line]).status, 0);
        let daemon = Daemon { go, seconds };
        until("the daemon, alone", || {
            let graph = home.json(&["graph", "work"]);
            let go = daemon.go.display().to_string();
            let named = |process: &&Value| process["argv"].to_string().contains(&go);
            let all: Vec<&Value> = graph["processes"].as_array().unwrap().iter().filter(named).collect();
            matches!(all[..], [process] if process["parent"].is_null())
        });
        daemon
    }

    /// Tells it to go on, and gives who started what came of it, as `ps` tells.
    fn goes_on(&self, home: &Home) -> Vec<(String, String)> {
        let mut go = fs::OpenOptions::new().read(true).write(true).open(&self.go).unwrap();
        go.write_all(b"x\n").unwrap();
        self.seconds.map(|seconds| starter(home, &format!("/bin/sleep {seconds}"))).to_vec()
    }
}

/// The process with exactly these words.
fn find<'a>(graph: &'a Value, words: &str) -> Option<&'a Value> {
    let words: Vec<&str> = words.split(' ').collect();
    graph["processes"].as_array()?.iter().find(|process| process["argv"] == serde_json::json!(words))
}

/// Who started the process with these words and how that is known, as soon as it is there.
fn starter(home: &Home, words: &str) -> (String, String) {
    let mut found = None;
    until(words, || {
        let graphs = home.json(&["ps", "work"]);
        let graph = &graphs[0];
        found = find(graph, words).map(|process| binding(graph, &process["id"]).clone());
        found.is_some()
    });
    let found = found.unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    (text(&found["actor"]["handle"]), text(&found["by"]))
}

fn by_cgroup(actor: &str) -> (String, String) {
    (actor.to_owned(), "cgroup".to_owned())
}

/// A session in which the tester, then the bot left a daemon, and ann has the turn and wrote.
fn three_turns(home: &Home) -> [Daemon; 2] {
    settle(home.path(), ANN);
    home.ok(&["actor", "new", BOT]);
    shell(home);
    let testers = Daemon::start(home, TESTER, [621, 622]);
    assert!(spots(home, "work").is_empty(), "nobody else wrote yet");
    home.ok(&["release", "work"]);
    let bots = Daemon::start(home, BOT, [623, 624]);
    assert_eq!(home.run_as(ANN, &["seize", "work", "--reason", "mine"]).status, 0);
    assert_eq!(home.run_as(ANN, &["send", "work", "--enter", "sleep 625 &"]).status, 0);
    assert_eq!(starter(home, "sleep 625"), by_cgroup(ANN));
    [testers, bots]
}

fn all_are_their_starters(home: &Home, [testers, bots]: [Daemon; 2]) {
    assert_eq!(testers.goes_on(home), [by_cgroup(TESTER), by_cgroup(TESTER)]);
    assert_eq!(bots.goes_on(home), [by_cgroup(BOT), by_cgroup(BOT)]);
    assert_eq!(starter(home, "sleep 625"), by_cgroup(ANN));
}

#[test]
fn a_daemon_is_its_starters_whatever_it_does_in_somebody_elses_turn() {
    if are_missing() {
        return;
    }
    let home = Home::new();
    let daemons = three_turns(&home);
    all_are_their_starters(&home, daemons);
    let listed = home.ok(&["ps", "work"]);
    let words = |line: &str| line.split_whitespace().skip(7).collect::<Vec<_>>().join(" ");
    assert!(listed.lines().any(|line| words(line) == format!("{BOT} cgroup /bin/sleep 624")), "{listed}");
}

#[test]
fn a_freeze_a_thaw_and_a_killed_host_change_nothing_of_it() {
    if are_missing() {
        return;
    }
    let home = Home::new();
    let daemons = three_turns(&home);
    let before = spots(&home, "work");
    assert_eq!(before.len(), 2, "the bot's and ann's: {before:?}");
    let froze: Value =
        serde_json::from_str(&home.run_as(ANN, &["--json", "seize", "work", "--freeze", "--reason", "a look"]).out)
            .unwrap();
    assert_eq!(froze["froze"]["how"], "cgroup", "{froze}");
    assert_eq!(froze["froze"]["refused"].as_array().map_or(0, Vec::len), 0, "{froze}");
    kill(home.host_pid());
    assert_eq!(home.run_as(ANN, &["thaw", "work"]).status, 0);
    kill(home.host_pid());
    all_are_their_starters(&home, daemons);
    home.ok(&["seize", "work", "--reason", "mine"]);
    home.ok(&["send", "work", "--enter", "sleep 626 &"]);
    assert_eq!(starter(&home, "sleep 626"), by_cgroup(TESTER));
}

#[test]
fn what_a_run_starts_is_the_runs_whoever_writes_meanwhile() {
    if are_missing() {
        return;
    }
    let home = Home::new();
    home.ok(&["actor", "new", BOT]);
    home.ok(&["new", "-d", "-n", "work", "--", "bash"]);
    let ran = home.run_as(BOT, &["run", "work", "--", "sleep 631 & (setsid sleep 632 &)"]);
    assert_eq!(ran.status, 0, "{ran}");
    assert_eq!(starter(&home, "sleep 631"), by_cgroup(BOT));
    assert_eq!(starter(&home, "sleep 632"), by_cgroup(BOT));
    let graph = home.json(&["graph", "work"]);
    let act = &binding(&graph, &find(&graph, "sleep 632").unwrap()["id"])["act"];
    let journal = home.ok(&["--json", "journal", "work"]);
    let records = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let record = records.into_iter().find(|record| record["seq"] == *act).unwrap();
    assert!(record["act"]["asked"]["run"]["command"].as_str().is_some_and(|text| text.contains("632")), "{record}");

    let waits = "read x; sleep 633 & (setsid sleep 634 &) ; echo $x";
    let ran = home.run_as(BOT, &["run", "work", "--timeout", "0", "--", waits]);
    assert_eq!(ran.status, 124, "{ran}");
    home.ok(&["seize", "work", "--reason", "it waits"]);
    home.ok(&["send", "work", "--enter", "go on"]);
    assert_eq!(starter(&home, "sleep 633"), by_cgroup(BOT), "the tester told it to go on, the bot what to do");
    assert_eq!(starter(&home, "sleep 634"), by_cgroup(BOT));
    until("the run to end", || home.json(&["run", "ls", "work"]).to_string().matches("\"ended\"").count() >= 2);
    home.ok(&["send", "work", "--enter", "(setsid sleep 635 &)"]);
    assert_eq!(starter(&home, "sleep 635"), by_cgroup(TESTER));
}

#[test]
fn empty_cgroups_go_and_none_is_left_behind_an_end() {
    if are_missing() {
        return;
    }
    let home = Home::new();
    home.ok(&["actor", "new", BOT]);
    shell(&home);
    let dir = cgroup(&home, "work");
    home.ok(&["send", "work", "--enter", "echo a$((1))"]);
    home.until_screen_shows("work", "a1");
    home.ok(&["seize", "work", "--reason", "again"]);
    assert!(!dir.exists(), "one actor alone needs none");
    for n in 2..5 {
        let who = if n % 2 == 0 { BOT } else { TESTER };
        home.run_as(TESTER, &["seize", "work", "--reason", "next"]);
        home.run_as(TESTER, &["release", "work"]);
        assert_eq!(home.run_as(who, &["send", "work", "--enter", &format!("echo a$(({n}))")]).status, 0);
        home.until_screen_shows("work", &format!("a{n}"));
        assert_eq!(spots(&home, "work").len(), 1, "the shell's own: {:?}", spots(&home, "work"));
    }
    home.ok(&["end", "work", "--grace", "0"]);
    until("the cgroup to go", || !dir.exists());
}
