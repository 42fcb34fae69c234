//! A portable session goes to another host and back, over a real ssh, and whoever is killed when: it has one life. Needs root and CRIU,
//! which `cargo xtask test` fetches.

use crate::elsewhere::Two;
use holdfast_client::{Connection, Identity};
use holdfast_harness::{DETACH, Home, Terminal, criu, gone, kill, until};
use holdfast_wire::Code;
use holdfast_wire::moves::{ArriveParams, ArriveStep, MoveOffer, MoveParams, MoveParcel, MoveStep, SentFile};
use holdfast_wire::operations::op;
use serde_json::Value;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Two hosts that are root's; none where the test is not run by root.
pub fn two() -> Option<Two> {
    if !rustix::process::getuid().is_root() {
        eprintln!("not run by root: moves are not tested");
        return None;
    }
    assert!(criu().is_file(), "{} is missing: `cargo xtask test` fetches it", criu().display());
    let two = Two::new();
    ready(&two);
    Some(two)
}

pub fn ready(two: &Two) {
    two.far.ok(&["ls"]);
    two.add();
}

pub fn life(home: &Home, name: &str) -> String {
    let ran = home.run(&["--json", "info", name]);
    let info: Value = serde_json::from_str(&ran.out).unwrap_or_default();
    info["life"].as_str().unwrap_or("nowhere").to_owned()
}

/// Counts in its memory, and tells each number once: two lives, or a step back, would be seen in the file.
fn counter(two: &Two, name: &str, dir: &Path) {
    counter_with(two, name, dir, &[]);
}

pub fn counter_with(two: &Two, name: &str, dir: &Path, options: &[&str]) {
    let script = format!("cd {}; n=0; while :; do n=$((n+1)); echo $n >> {name}; sleep 0.02; done", dir.display());
    let new = [&["new", "-d", "-n", name, "--portable"], options, &["--", "sh", "-c", &script]].concat();
    two.near.ok(&new);
    counts_on(dir, name);
}

pub fn numbers(dir: &Path, name: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

pub fn counts_on(dir: &Path, name: &str) {
    let from = numbers(dir, name).len();
    until("it counts on", || (numbers(dir, name).len() > from + 2).then_some(()));
}

#[track_caller]
pub fn one_life(dir: &Path, name: &str, when: &str) {
    let all = numbers(dir, name);
    let expected: Vec<u64> = (1..=all.len() as u64).collect();
    assert_eq!(all, expected, "{when}: each number once");
}

#[test]
fn a_shell_goes_to_another_host_and_back_with_all_it_had() {
    let Some(two) = two() else { return };
    two.near.ok(&["new", "-d", "-n", "work", "--portable", "--", "/bin/bash", "--norc", "--noprofile"]);
    two.near.ok(&["run", "work", "--key", "once", "--", "V=forty-two; sleep 1000 & sleep 0.1"]);
    two.near.ok(&["actor", "new", "agent:bot"]);
    two.near.ok(&["grant", "work", "--to", "agent:bot", "--can", "observe,checkpoint,end"]);
    let refused = two.run(&["--as", "agent:bot", "move", "work", "gpu"]);
    assert!(!refused.0 && refused.2.contains("only a human with all rights"), "{refused:?}");
    two.near.ok(&["send", "work", "--enter", "python3 -q"]);
    two.near.until_screen_shows("work", ">>>");
    two.near.ok(&["send", "work", "--enter", "x = 6"]);
    two.near.ok(&["send", "work", "print(x * 7, "]);
    two.near.until_screen_shows("work", "print(x * 7,");
    let before = two.near.json(&["info", "work"]);
    assert!(two.ok(&["move", "--check", "work", "gpu"]).contains("work can be moved to gpu"));
    assert_eq!(life(&two.near, "work"), "running");

    let moved: Value = serde_json::from_str(&two.ok(&["--json", "move", "work", "gpu"])).unwrap();
    assert_eq!((&moved["session"], &moved["incarnation"]), (&before["id"], &2.into()), "{moved}");
    assert!(moved["still_ms"].as_u64().unwrap() > 0 && moved["sent_bytes"].as_u64().unwrap() > 10_000, "{moved}");
    let there = two.far.json(&["info", "work"]);
    assert_eq!((&there["life"], &there["id"]), (&"running".into(), &before["id"]), "{there}");
    assert!(there["oldest"].as_u64() >= before["head"].as_u64(), "offsets go on: {there}");
    assert!(two.far.ok(&["screen", "work"]).trim_end().ends_with("print(x * 7,"));
    // Here it lives never again.
    assert!(two.near.ok(&["ls"]).contains("moved to gpu"));
    for words in [&["recover", "work"][..], &["restore", "work"], &["send", "work", "x"]] {
        assert!(two.near.fails(words).contains("was moved to gpu"), "{words:?}");
    }
    assert!(two.fails(&["move", "work", "gpu"]).contains("was moved to gpu"));
    two.near.kill_host();
    assert!(two.near.fails(&["recover", "work"]).contains("was moved to gpu"), "also for the next host");

    two.ok(&["send", "gpu/work", "--enter", "8)"]);
    two.far.until_screen_shows("work", "42 8");
    two.ok(&["send", "gpu/work", "--enter", "exit()"]);
    // The same key is the same run, which is not run again.
    let again = until("its prompt", || {
        let (good, out, _) = two.run(&["--json", "run", "gpu/work", "--", "echo $V $(jobs -r | wc -l)"]);
        good.then(|| serde_json::from_str::<Value>(&out).unwrap())
    });
    assert_eq!(again["output"], "forty-two 1\n", "{again}");
    let known: Value = serde_json::from_str(&two.run(&["--json", "run", "status", "gpu/once"]).1).unwrap_or_default();
    let rerun = two.run(&["--json", "run", "gpu/work", "--key", "once", "--", "V=forty-two; sleep 1000 & sleep 0.1"]);
    assert_eq!(two.ok(&["run", "gpu/work", "--", "jobs -r | wc -l"]).trim(), "1", "{known} {rerun:?}");
    // Who was granted something is still so, and both journals are sound.
    assert!(two.far.ok(&["grants", "work"]).contains("agent:bot"));
    for verify in [two.far.ok(&["journal", "work", "--verify"]), two.ok(&["journal", "gpu/work", "--verify"])] {
        assert!(verify.contains("sound") && verify.contains("here from"), "{verify}");
    }
    assert!(two.near.ok(&["journal", "work"]).contains("moved the session to gpu"));
    two.near.ok(&["journal", "work", "--verify"]);

    // And back: it is at home again.
    let told = two.ok(&["move", "gpu/work", "here"]);
    assert!(told.contains("(life 3)") && told.contains("it stood still for"), "{told}");
    assert_eq!((life(&two.near, "work").as_str(), life(&two.far, "work").as_str()), ("running", "lost"));
    assert_eq!(two.near.json(&["run", "work", "--", "echo back-$V"])["output"], "back-forty-two\n");
    two.near.ok(&["journal", "work", "--verify"]);
    two.near.ok(&["end", "work", "--grace", "0"]);
}

#[test]
fn an_attached_terminal_follows_its_session_to_the_other_host() {
    let Some(two) = two() else { return };
    two.near.ok(&["new", "-d", "-n", "work", "--portable", "--", "/bin/bash", "--norc", "--noprofile"]);
    let terminal = Terminal::new("90x30");
    let mut client = terminal.start(two.command(&["attach", "work"]));
    terminal.wait_text("bash-");
    terminal.types("n=0; f() { n=$((n+1)); echo typed-$n; }; f\r");
    terminal.wait_text("typed-1");
    two.ok(&["move", "work", "gpu"]);
    terminal.types("f\r");
    terminal.wait_text("typed-2");
    until("it is attached there", || (two.far.clients("work") == 1).then_some(()));
    assert!(!two.far.ok(&["screen", "work"]).contains("typed-3"), "each line once");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    // Who attaches where it was goes on where it is.
    let terminal = Terminal::new("90x30");
    let mut client = terminal.start(two.command(&["attach", "work"]));
    terminal.wait_text("typed-2");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    two.far.ok(&["end", "work", "--grace", "0"]);
}

/// Begins a move that stops at a step of one of the two hosts.
pub fn begin(two: &Two, name: &str) -> Child {
    let mut command = two.command(&["move", name, "gpu"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Whatever was left is finished: it lives at the other host, once.
pub fn finish(two: &Two, name: &str, dir: &Path, when: &str) {
    let mut before = numbers(dir, name).len();
    until("it lives there", || {
        let now = numbers(dir, name).len();
        if life(&two.far, name) == "running" && std::mem::replace(&mut before, now) < now {
            return Some(());
        }
        if life(&two.near, name) != "nowhere" {
            eprintln!("{:?}", two.run(&["move", name, "gpu"]));
        }
        // A host that was killed while it restored it may have left it lost.
        if life(&two.far, name) == "lost" {
            eprintln!("{}", two.far.run(&["restore", name]));
        }
        None
    });
    counts_on(dir, name);
    one_life(dir, name, when);
    assert_ne!(life(&two.near, name), "running", "{when}");
    two.far.ok(&["journal", name, "--verify"]);
    two.far.ok(&["end", name, "--grace", "0"]);
    two.near.run(&["end", name]);
    for home in [&two.near, &two.far] {
        let left = std::fs::read_dir(home.join("arriving")).into_iter().flatten().count();
        assert_eq!(left, 0, "{when}: nothing half-made is left");
    }
}

#[test]
fn whichever_host_is_killed_at_any_step_of_a_move_there_is_one_life() {
    let Some(two) = two() else { return };
    let dir = tempfile::tempdir().unwrap();
    let steps = [
        (true, "move.recorded"),
        (true, "move.dumped"),
        (true, "move.held"),
        (true, "move.commits"),
        (true, "move.committed"),
        (false, "arrive.begun"),
        (false, "arrive.whole"),
        (false, "arrive.unlocked"),
        (false, "arrive.settled"),
        (false, "restore.started"),
    ];
    for (n, (is_near, step)) in steps.into_iter().enumerate() {
        let name = format!("host{n}");
        counter(&two, &name, dir.path());
        let home = if is_near { &two.near } else { &two.far };
        let host = home.host_pid();
        let held = home.pause(step);
        let mut mover = begin(&two, &name);
        let reached = held.reached();
        kill(host);
        until("the host's end", || gone(host).then_some(()));
        drop((reached, held));
        mover.wait().unwrap();
        // The next one may have been started by ssh, and knows no points to stop at.
        home.run(&["host", "stop"]);
        home.ok(&["ls"]);
        finish(&two, &name, dir.path(), step);
    }
}

#[test]
fn a_mover_that_is_killed_leaves_the_session_where_it_is_or_a_move_to_finish() {
    let Some(two) = two() else { return };
    let dir = tempfile::tempdir().unwrap();
    let steps = [(true, "move.held", false), (false, "arrive.whole", false), (true, "move.committed", true)];
    for (n, (is_near, step, is_committed)) in steps.into_iter().enumerate() {
        let name = format!("mover{n}");
        counter(&two, &name, dir.path());
        let home = if is_near { &two.near } else { &two.far };
        let held = home.pause(step);
        let mut mover = begin(&two, &name);
        let reached = held.reached();
        mover.kill().unwrap();
        mover.wait().unwrap();
        drop((reached, held));
        if is_committed {
            until("it is moved", || two.near.ok(&["ls"]).contains("moved to gpu").then_some(()));
        } else {
            // It goes on by itself.
            counts_on(dir.path(), &name);
            assert_eq!(life(&two.near, &name), "running", "{step}");
        }
        finish(&two, &name, dir.path(), step);
    }
}

#[test]
fn a_host_without_a_file_criu_or_room_is_refused_by_name_and_the_session_goes_on() {
    let Some(two) = two() else { return };
    // A program below the home's own directory, which is another one there.
    let tool = two.near.join("tool");
    std::fs::copy("/bin/sleep", &tool).unwrap();
    two.near.ok(&["new", "-d", "-n", "work", "--portable", "--", tool.to_str().unwrap(), "1000"]);
    let refused = |what: &str| {
        let (good, out, err) = two.run(&["move", "work", "gpu"]);
        assert!(!good && out.contains(what), "{out}{err}");
        assert_eq!(life(&two.near, "work"), "running");
    };
    refused("tool is not there");
    std::fs::copy("/bin/sleep", two.far.join("tool")).unwrap();
    let mut bytes = std::fs::read("/bin/sleep").unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(two.far.join("tool"), &bytes).unwrap();
    refused("tool has other content there");
    bytes.push(0);
    std::fs::write(two.far.join("tool"), &bytes).unwrap();
    refused("bytes there, not");
    std::fs::copy("/bin/sleep", two.far.join("tool")).unwrap();
    // A host that finds no CRIU.
    two.far.ok(&["host", "stop"]);
    assert!(two.far.command(&["ls"]).env("HOLDFAST_CRIU", "/no/criu").status().unwrap().success());
    if !["/usr/sbin/criu", "/usr/bin/criu", "/usr/local/sbin/criu"].iter().any(|path| Path::new(path).exists()) {
        refused("CRIU is not installed there");
    }
    two.far.ok(&["host", "stop"]);
    two.far.ok(&["new", "-d", "-n", "work", "--", "cat"]);
    refused("has the name work");
    two.far.ok(&["end", "work", "--grace", "0"]);
    two.ok(&["move", "work", "gpu"]);
    two.far.ok(&["end", "work", "--grace", "0"]);
}

/// A file system of its own, as long as this lives.
struct Disk<'a>(&'a Path);

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_disk_that_is_full_there_costs_nothing_here() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let two = Two::new();
    let far = two.far.path().to_owned();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=256m,mode=700", "none"]).arg(&far).status().unwrap();
    assert!(mounted.success());
    let _disk = Disk(&far);
    holdfast_harness::settle(&far, "human:tester");
    two.far.ok(&["ls"]);
    two.add();
    let dir = tempfile::tempdir().unwrap();
    counter(&two, "counter", dir.path());
    let held = two.far.pause("arrive.begun");
    let mover = two.command(&["move", "counter", "gpu"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let reached = held.reached();
    let fill = Command::new("dd").args(["if=/dev/zero", "bs=1M"]).arg(format!("of={}/fill", far.display())).output();
    assert!(!fill.unwrap().status.success(), "until it is full");
    drop((reached, held));
    let ended = mover.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success() && said.contains("what arrives cannot be kept"), "{said}");
    counts_on(dir.path(), "counter");
    one_life(dir.path(), "counter", "a full disk");
    let refused = two.run(&["move", "counter", "gpu"]);
    assert!(refused.1.contains("there is no room"), "{refused:?}");
    std::fs::remove_file(far.join("fill")).unwrap();
    finish(&two, "counter", dir.path(), "with room again");
    two.far.ok(&["host", "stop"]);
}

#[test]
fn what_a_hostile_host_sends_takes_no_path_name_or_session_of_others() {
    let Some(two) = two() else { return };
    two.near.ok(&["new", "-d", "-n", "work", "--portable", "--", "cat"]);
    two.far.ok(&["new", "-d", "-n", "theirs", "--", "cat"]);
    let open = |home: &Home| {
        let who = Identity::load_or_make(&home.places(), &"human:tester".parse().unwrap()).unwrap();
        Connection::open(UnixStream::connect(home.places().host_socket()).unwrap(), &who).unwrap()
    };
    let mut near = open(&two.near);
    let ask = MoveParams { session: "work".into(), step: MoveStep::Offer, proof: None };
    let offer: MoveOffer = *near.call::<op::Move>(&ask).unwrap().offer.unwrap();
    let mut far = open(&two.far);
    let mut arrive = |step: ArriveStep| far.call::<op::Arrive>(&ArriveParams { step });
    // A session that is there already, and a name.
    let theirs = two.far.json(&["info", "theirs"])["id"].as_str().unwrap().parse().unwrap();
    let taken = arrive(ArriveStep::Check { offer: Box::new(MoveOffer { session: theirs, ..offer.clone() }) }).unwrap();
    assert!(taken.refused.iter().any(|why| why.contains("is there already")), "{taken:?}");
    let named = MoveOffer { name: "theirs".parse().unwrap(), ..offer.clone() };
    let named = arrive(ArriveStep::Check { offer: Box::new(named) }).unwrap();
    assert!(named.refused.iter().any(|why| why.contains("has the name theirs")), "{named:?}");
    let checkpoint = "ckp_0123456789ab".to_owned();
    let sent = |path: &str, bytes: u64| SentFile { path: path.into(), mode: 0o4777, bytes, sum: "0".repeat(16) };
    let needed = ["spec", "portable", "carried", "keys"].map(str::to_owned);
    let beside = ["manifest", "screen", "input"].map(|name| format!("checkpoints/{checkpoint}/{name}"));
    let files: Vec<SentFile> = needed.iter().chain(&beside).map(|path| sent(path, 4)).collect();
    let parcel = |files: Vec<SentFile>| {
        let (id, lock) = ("mov_0".to_owned(), "0".repeat(64));
        Box::new(MoveParcel { id, offer: offer.clone(), checkpoint: checkpoint.clone(), lock, files })
    };
    for path in ["../../spec", "/etc/cron.d/x", "moved", "ring", "shell/../../x", "checkpoints/../../x"] {
        let odd = files.iter().cloned().chain([sent(path, 1)]).collect();
        let refused = arrive(ArriveStep::Begin { parcel: parcel(odd) }).unwrap_err();
        assert!(refused.to_string().contains("is not taken in"), "{path}: {refused}");
    }
    let huge = files.iter().cloned().map(|file| SentFile { bytes: u64::MAX / 2, ..file }).collect();
    assert!(arrive(ArriveStep::Begin { parcel: parcel(huge) }).unwrap_err().to_string().contains("no room"));
    // What was announced, and no byte more; and nothing of it lives without the key.
    arrive(ArriveStep::Begin { parcel: parcel(files) }).unwrap();
    let arriving = two.far.join("arriving").join(offer.session.to_string());
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(arriving.join("portable")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7022, 0, "{mode:o}");
    let write = ArriveStep::Write { session: offer.session, file: 0, from: 0 };
    let more = far.call_with_bytes::<op::Arrive>(&ArriveParams { step: write }, b"12345").unwrap_err();
    assert!(more.to_string().contains("not expected"), "{more}");
    let mut arrive = |step: ArriveStep| far.call::<op::Arrive>(&ArriveParams { step });
    arrive(ArriveStep::Whole { session: offer.session }).unwrap_err();
    let locked = arrive(ArriveStep::Finish { session: offer.session, key: "guessed".into() }).unwrap_err();
    assert!(matches!(&locked, holdfast_client::CallError::Fault(fault) if fault.code == Code::NotFound), "{locked}");
    // The next host clears away what never became whole.
    two.far.kill_host();
    two.far.ok(&["ls"]);
    assert!(!arriving.exists());
    assert_eq!(life(&two.near, "work"), "running");
}
