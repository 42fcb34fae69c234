//! `watch` and `wait --for`: what happens is told in order, and what is waited for comes.

use holdfast_harness::{Home, PATIENCE, until};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A running `holdfast watch --json`.
pub struct Watch {
    child: Child,
    lines: Receiver<Value>,
    pub seen: Vec<Value>,
}

impl Watch {
    pub fn start(home: &Home, who: &str, args: &[&str]) -> Watch {
        Watch::of(home.command(&[&["--as", who, "--json", "watch"], args].concat()))
    }

    /// One that was called with `--json`.
    pub fn of(mut command: Command) -> Watch {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = tell.send(serde_json::from_str(&line).unwrap());
            }
        });
        Watch { child, lines, seen: Vec::new() }
    }

    /// Waits for the next event of this kind that fits; those before it are passed over.
    pub fn next(&mut self, event: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.until(event, |one| one["event"] == event && fits(one))
    }

    /// Waits for a line that fits, or finds it among those that came already: several hosts have no common order.
    #[track_caller]
    pub fn any(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let seen = self.seen.iter().find(|one| fits(one)).cloned();
        seen.unwrap_or_else(|| self.until("such line", fits))
    }

    #[track_caller]
    fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(one) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.seen.push(one.clone());
            if fits(&one) {
                return one;
            }
        }
        panic!("no {what} among {:#?}", self.seen);
    }

    fn state(&mut self, session: &str, state: &str) -> Value {
        self.next("state", |one| one["name"] == session && one["state"] == state)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_happens_is_told_in_the_order_it_happened() {
    let home = Home::new();
    home.session("work", "read -p 'Name? ' x || read x; read y; sleep 1000");
    let mut watch = Watch::start(&home, holdfast_harness::TESTER, &["--all"]);
    watch.state("work", "waiting");
    home.ok(&["send", "work", "--enter", "x"]);
    watch.next("turn", |one| one["holder"] == holdfast_harness::TESTER);
    home.ok(&["send", "work", "--enter", "y"]);
    watch.state("work", "blocked_elsewhere");
    home.session("other", "read x; exit 4");
    let started = watch.next("started", |one| one["name"] == "other");
    assert_eq!(started["by"], holdfast_harness::TESTER);
    watch.state("other", "waiting");
    home.ok(&["send", "other", "--enter", "x"]);
    let exit = watch.next("exit", |one| one["name"] == "other");
    assert_eq!(exit["exit"]["code"], 4);
    home.ok(&["take", "work"]);
    let asked = home.run_as("agent:bot", &["request", "work"]);
    assert!(asked.status == 0 || asked.status == 1, "{asked}");
    watch.next("turn_requested", |one| one["by"] == "agent:bot");
    home.ok(&["rename", "work", "play"]);
    let renamed = watch.next("renamed", |one| one["name"] == "play");
    assert_eq!((&renamed["from"], &renamed["by"]), (&"work".into(), &holdfast_harness::TESTER.into()));
    let numbers: Vec<_> = watch.seen.iter().map(|one| one["seq"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

/// Listens at a port, says which, and stops when it is told to; then it stays.
const SERVER: &str = "python3 -u -c 'import socket
s = socket.create_server((\"127.0.0.1\", 0))
print(\"port is\", s.getsockname()[1])
input()
s.close()
input()'";

#[test]
fn ports_that_open_and_close_are_told_with_who_started_them() {
    let home = Home::new();
    home.ok(&["actor", "new", "agent:bot"]);
    home.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc", "--noprofile", "-i"]);
    home.session("quiet", "exec cat");
    let mut watch = Watch::start(&home, holdfast_harness::TESTER, &["--all"]);
    watch.state("work", "idle_prompt");
    assert_eq!(home.run_as("agent:bot", &["send", "work", "--enter", SERVER]).status, 0);
    let open = watch.next("listen", |one| one["name"] == "work");
    assert_eq!((&open["by"], &open["kind"]), (&"agent:bot".into(), &"stream".into()), "{open}");
    assert_eq!(open["address"], format!("127.0.0.1:{}", open["port"]));
    home.until_screen_shows("work", &format!("port is {}", open["port"]));
    let port = &home.json(&["ports", "work"])[0];
    assert_eq!((&open["socket"], &open["act"], &open["argv"]), (&port["socket"], &port["act"], &port["argv"]));
    assert!(port["process"].as_str().unwrap().starts_with(&format!("p{}-", open["pid"])), "{open} {port}");
    // Whoever begins to watch later is told what is open.
    let mut late = Watch::start(&home, holdfast_harness::TESTER, &["work"]);
    assert_eq!(late.next("listen", |_| true)["socket"], open["socket"]);
    assert_eq!(home.run_as("agent:bot", &["send", "work", "--enter", ""]).status, 0);
    for watch in [&mut watch, &mut late] {
        let closed = watch.next("not_listening", |_| true);
        assert_eq!((&closed["socket"], &closed["port"]), (&open["socket"], &open["port"]));
    }
    // A session that is new is watched too, from its first port on.
    home.ok(&["new", "-d", "-n", "server", "--", "sh", "-c", SERVER]);
    let first = watch.next("listen", |one| one["name"] == "server");
    assert_eq!(first["by"], holdfast_harness::TESTER);
    home.ok(&["send", "server", "--enter", ""]);
    watch.next("not_listening", |one| one["socket"] == first["socket"]);
    assert!(watch.seen.iter().all(|one| one["name"] != "quiet" || one["event"] != "listen"), "{:#?}", watch.seen);
}

#[test]
fn one_session_is_watched_until_it_ends() {
    let home = Home::new();
    home.session("work", "read x");
    home.session("noise", "read x");
    let mut watch = Watch::start(&home, holdfast_harness::TESTER, &["work"]);
    watch.state("work", "waiting");
    home.ok(&["send", "noise", "--enter", "x"]);
    home.ok(&["send", "work", "--enter", "x"]);
    watch.next("exit", |_| true);
    assert!(watch.seen.iter().all(|one| one["name"] == "work"), "{:#?}", watch.seen);
    assert!(watch.child.wait().unwrap().success());
}

/// As in `holdfast watch work | head -1`: where nothing more happens, nothing more is written.
#[test]
fn what_is_followed_ends_when_nobody_reads_it() {
    let home = Home::new();
    home.session("work", "exec cat");
    for args in [&["--json", "watch", "--all"][..], &["--json", "graph", "work", "--watch"]] {
        let mut child = home.command(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with('{'), "{line}");
        let mut status = None;
        until("its end", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success());
    }
}

#[test]
fn who_may_not_observe_is_told_nothing() {
    let home = Home::new();
    home.session("work", "read x; exit 0");
    holdfast_harness::settle(home.path(), "service:ops");
    assert_eq!(home.run_as("service:ops", &["watch", "work"]).status, 1);
    let mut all = Watch::start(&home, "service:ops", &["--all"]);
    let mut mine = Watch::start(&home, holdfast_harness::TESTER, &["--all"]);
    mine.state("work", "waiting");
    home.ok(&["send", "work", "--enter", "x"]);
    mine.next("exit", |_| true);
    assert!(all.lines.try_recv().is_err(), "nothing was for it");
    all.seen.clear();
}

#[test]
fn a_watcher_goes_on_with_the_next_host() {
    let home = Home::new();
    home.session("work", "read x; read y; sleep 1000");
    let mut watch = Watch::start(&home, holdfast_harness::TESTER, &["work"]);
    watch.state("work", "waiting");
    holdfast_harness::kill(home.host_pid());
    home.ok(&["send", "work", "--enter", "x"]);
    home.ok(&["send", "work", "--enter", "y"]);
    watch.state("work", "blocked_elsewhere");
}

#[test]
fn what_is_waited_for_comes() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc", "--noprofile"]);
    let idle = home.json(&["wait", "work", "--for", "idle", "--timeout", "20"]);
    assert_eq!((&idle["outcome"], &idle["seen"]["state"]), (&"came".into(), &"idle_prompt".into()));
    let from = home.json(&["info", "work"])["head"].as_u64().unwrap().to_string();
    home.ok(&["send", "work", "--enter", r"printf 'the \e[1man'; read -p 'swer: ' x; sleep 1000"]);
    let waiting = home.json(&["wait", "work", "--for", "waiting", "--timeout", "20"]);
    assert_eq!(waiting["seen"]["kind"], "line");
    let text = home.json(&["wait", "work", "--for", "text:^the an\\w+:", "--from", &from, "--timeout", "20"]);
    assert_eq!(text["seen"]["text"], "the answer:");
    assert!(text["seen"]["offset"].as_u64() >= from.parse().ok(), "{text}");
    let quiet = home.json(&["wait", "work", "--for", "quiet:0.2", "--timeout", "20"]);
    assert_eq!(quiet["outcome"], "came");
    // By HUP or, right behind it, by KILL: without a grace it is chance which of the two comes first.
    let ended = home.json(&["end", "work", "--grace", "0"]);
    let signal = ended["exit"]["signal"].as_i64().unwrap_or_else(|| panic!("{ended}"));
    assert!([1, 9].contains(&signal), "{ended}");
    assert_eq!(i64::from(home.run(&["wait", "work"]).status), 128 + signal, "ends as the command did");
    let gone = home.run(&["wait", "work", "--for", "idle"]);
    assert_eq!(gone.status, 1, "{gone}");
    assert!(gone.err.contains("ended first"), "{gone}");
}

#[test]
fn a_port_is_waited_for_in_the_sessions_own_tree() {
    let home = Home::new();
    let serve = "import socket,sys,time; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); \
                 print('port', s.getsockname()[1], 'x'); sys.stdout.flush(); time.sleep(1000)";
    home.ok(&["new", "-d", "-n", "server", "--", "bash", "-c", &format!("python3 -c \"{serve}\" & wait")]);
    home.until_screen_shows("server", " x");
    let screen = home.ok(&["screen", "server"]);
    let port = screen.split_whitespace().nth(1).unwrap().to_owned();
    let came = home.json(&["wait", "server", "--for", &format!("port:{port}"), "--timeout", "20"]);
    assert_eq!(came["seen"]["address"], format!("127.0.0.1:{port}"));
    home.session("other", "sleep 1000");
    assert_eq!(home.run(&["wait", "other", "--for", &format!("port:{port}"), "--timeout", "0.2"]).status, 124);
}

#[test]
fn what_does_not_come_ends_with_status_124() {
    let home = Home::new();
    home.session("work", "sleep 1000");
    for what in ["exit", "idle", "waiting", "text:never", "port:1", "quiet:1h"] {
        let ran = home.run(&["--json", "wait", "work", "--for", what, "--timeout", "0.2"]);
        assert_eq!(ran.status, 124, "{what}: {ran}");
    }
    for what in ["end", "text:(", "port:0"] {
        assert_eq!(home.run(&["wait", "work", "--for", what]).status, 2, "{what}");
    }
    assert_eq!(home.run(&["wait", "work", "--from", "1"]).status, 2);
}

/// A person does not look at a hundred prompts, so neither does the host: also where somebody is to be told of those that
/// begin to wait.
#[test]
fn idle_sessions_cost_nothing() {
    let rule = "[[notify]]\non = [\"waiting\"]\nring = true\n";
    for (config, rests_ms) in [("", 1_000), (rule, 5_000)] {
        let home = Home::new();
        std::fs::write(home.join("config.toml"), config).unwrap();
        for n in 0..20 {
            home.session(&format!("s{n}"), "read x");
        }
        let status = format!("/proc/{}/status", home.host_pid());
        let switches = || {
            let text = std::fs::read_to_string(&status).unwrap();
            text.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap().to_owned()
        };
        // It comes to rest and stays there: no thread of it is woken.
        let (mut last, mut since) = (switches(), Instant::now());
        until("the host to rest", || {
            let now = switches();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            since.elapsed().as_millis() > rests_ms
        });
    }
}
