//! The live graph: processes, ports, who started them, what changed, and watching it.

use holdfast_harness::{Home, Ran, TESTER, settle, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

const ANN: &str = "human:ann";
const BOT: &str = "agent:bot";

/// A session with an interactive shell that has job control.
pub fn shell(home: &Home) {
    home.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc", "--noprofile", "-i"]);
    home.ok(&["send", "work", "--enter", "PS1='ready> '"]);
    home.until_screen_shows("work", "ready>");
}

/// Something that is still at its port when the test looks.
const SERVER: &str = "python3 -u -c 'import socket, time
s = socket.create_server((\"127.0.0.1\", 0))
print(\"port is\", s.getsockname()[1])
time.sleep(600)'";

fn find<'a>(processes: &'a Value, words: &str) -> Option<&'a Value> {
    let shows = |process: &&Value| {
        let argv = process["argv"].as_array().map(|argv| argv.iter().filter_map(Value::as_str).collect::<Vec<_>>());
        argv.is_some_and(|argv| argv.join(" ").contains(words))
    };
    processes.as_array()?.iter().find(shows)
}

pub fn binding<'a>(graph: &'a Value, id: &Value) -> &'a Value {
    let all = graph["bindings"].as_array().unwrap();
    all.iter().find(|binding| binding["of"] == *id).unwrap_or(&Value::Null)
}

#[test]
fn a_server_is_found_with_its_session_and_who_started_it() {
    let home = Home::new();
    home.ok(&["actor", "new", BOT]);
    shell(&home);
    assert_eq!(home.ok(&["ports"]), "no listening ports\n");
    home.ok(&["release", "work"]);
    assert_eq!(home.run_as(BOT, &["send", "work", "--enter", &format!("{SERVER} &")]).status, 0);
    until("the port", || home.json(&["ports", "work"]) != json!([]));
    let ports = home.json(&["ports"]);
    let port = &ports[0];
    let known = if crate::cgroups::are_usable() { "cgroup" } else { "time" };
    assert_eq!((&port["name"], &port["kind"], &port["by"]), (&json!("work"), &json!("stream"), &json!(known)));
    assert_eq!(port["actor"]["handle"], BOT);
    assert!(port["act"].as_u64().is_some_and(|act| act > 1), "{port}");
    let local = port["address"].as_str().unwrap();
    home.until_screen_shows("work", &format!("port is {}", local.rsplit(':').next().unwrap()));
    let told = home.ok(&["ports", "work"]);
    assert!(told.contains(local) && told.contains(BOT) && told.contains(" work "), "{told}");

    let graph = home.json(&["graph", "work"]);
    let server = find(&graph["processes"], "create_server").unwrap();
    assert_eq!(server["id"], port["process"]);
    assert_eq!(binding(&graph, &server["id"])["actor"]["handle"], BOT);
    assert_eq!(binding(&graph, &port["socket"])["actor"]["handle"], BOT);
    let pid = &home.json(&["info", "work"])["pid"];
    let root = graph["processes"].as_array().unwrap().iter().find(|process| process["pid"] == *pid).unwrap();
    let started = binding(&graph, &root["id"]);
    assert_eq!((&started["actor"]["handle"], &started["by"]), (&json!(TESTER), &json!("lineage")));
    let held = graph["sockets"].as_array().unwrap().iter().any(|socket| socket["id"] == port["socket"]);
    assert!(held && graph["terminal"]["modes"]["iflag"].is_u64(), "{graph}");

    let tree = home.ok(&["graph", "work"]);
    let line = tree.lines().find(|line| line.contains("create_server")).unwrap();
    assert!(line.contains(local) && line.ends_with(BOT), "{tree}");
    let listed = home.ok(&["ps"]);
    assert!(listed.lines().any(|line| line.contains(BOT) && line.contains("create_server")), "{listed}");
    let info = home.ok(&["info", "work"]);
    assert!(info.contains("processes") && info.contains(&format!("tcp {local}")), "{info}");
    assert_eq!(home.json(&["info", "work"])["graph"]["ports"][0]["address"], local);
}

#[test]
fn a_daemon_without_a_parent_is_shown_and_stays_its_starters() {
    let home = Home::new();
    settle(home.path(), ANN);
    shell(&home);
    home.ok(&["send", "work", "--enter", "(setsid sh -c 'sleep 611 & exec sleep 612' &)"]);
    home.ok(&["give", "work", "--to", ANN]);
    assert_eq!(home.run_as(ANN, &["send", "work", "--enter", "sleep 613 &"]).status, 0);
    let mut graph = Value::Null;
    until("all of them", || {
        graph = home.json(&["graph", "work"]);
        ["sleep 611", "sleep 612", "sleep 613"].iter().all(|words| find(&graph["processes"], words).is_some())
    });
    let starter = |words: &str| {
        let process = find(&graph["processes"], words).unwrap();
        binding(&graph, &process["id"])["actor"]["handle"].clone()
    };
    assert_eq!(find(&graph["processes"], "sleep 612").unwrap()["parent"], Value::Null, "its parent is gone");
    assert_eq!([starter("sleep 611"), starter("sleep 612"), starter("sleep 613")], [TESTER, TESTER, ANN]);
}

#[test]
fn two_graphs_are_compared() {
    let home = Home::new();
    shell(&home);
    let save = |name: &str| std::fs::write(home.join(name), home.ok(&["--json", "graph", "work"])).unwrap();
    save("a");
    assert!(home.ok(&["graph", "--diff", "a", "a"]).contains("nothing changed"));
    home.ok(&["send", "work", "--enter", &format!("{SERVER} &")]);
    until("the port", || home.json(&["ports", "work"]) != json!([]));
    save("b");
    let told = home.ok(&["graph", "--diff", "a", "b"]);
    assert!(told.contains("+ process ") && told.contains("create_server") && told.contains("+ port tcp "), "{told}");
    let back = home.json(&["graph", "--diff", "b", "a"]);
    assert_eq!(back["no_longer_listening"].as_array().unwrap().len(), 1, "{back}");
    home.session("other", "exec cat");
    std::fs::write(home.join("c"), home.ok(&["--json", "graph", "other"])).unwrap();
    std::fs::write(home.join("d"), "{}").unwrap();
    for (file, code) in [("c", "other_session"), ("d", "no_graph"), ("missing", "io")] {
        let ran = home.run(&["--json", "graph", "--diff", "a", file]);
        assert!(ran.status == 1 && ran.err.contains(&format!("\"code\":\"{code}\"")), "{ran}");
    }
}

#[test]
fn the_drawing_is_well_formed_whatever_programs_call_themselves() {
    let home = Home::new();
    let title = r#"import time; print("set"); time.sleep(600) # <b>&"']]>"#;
    home.ok(&["new", "-d", "-n", "odd", "--", "python3", "-u", "-c", title, "\u{1b}[31m\u{7}\u{202e}<x>\n"]);
    home.until_screen_shows("odd", "set");
    home.ok(&["graph", "odd", "--svg", "odd.svg"]);
    let check = "import sys, xml.dom.minidom as m; print(m.parse(sys.argv[1]).documentElement.tagName)";
    let parsed = std::process::Command::new("python3").args(["-c", check]).arg(home.join("odd.svg")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&parsed.stdout), "svg\n", "{}", String::from_utf8_lossy(&parsed.stderr));
    for text in [home.ok(&["graph", "odd"]), home.ok(&["ps", "odd"]), home.ok(&["info", "odd"])] {
        assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
    }
    assert!(home.ok(&["ps", "odd"]).contains("\\u{1b}[31m"), "it is shown, not obeyed");
}

/// A program that prints what happens, line by line.
struct Watch {
    child: Child,
    lines: Receiver<Value>,
    seen: Vec<Value>,
}

impl Watch {
    fn start(home: &Home, session: &str) -> Watch {
        let mut command = home.command(&["--json", "graph", session, "--watch"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let values = out.lines().map_while(Result::ok).map(|line| serde_json::from_str(&line).unwrap());
            values.for_each(|value| drop(send.send(value)));
        });
        let mut watch = Watch { child, lines, seen: Vec::new() };
        watch.until("the beginning", |line| !line["watching"].is_null());
        watch
    }

    fn until(&mut self, what: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(holdfast_harness::PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("waited in vain for {what}: {:?}", self.seen));
            self.seen.push(line.clone());
            if wanted(&line) {
                return line;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn who_watches_sees_processes_and_ports_come_and_go() {
    let home = Home::new();
    shell(&home);
    let mut watch = Watch::start(&home, "work");
    home.ok(&["send", "work", "--enter", SERVER]);
    let fork = watch.until("a fork", |line| line["event"] == "fork");
    let exec = watch.until("an exec", |line| line["event"] == "exec");
    assert_eq!(exec["pid"], fork["pid"]);
    let listen = watch.until("a port", |line| line["event"] == "listen");
    assert_eq!(home.json(&["ports", "work"])[0]["address"], listen["address"]);
    home.ok(&["send", "work", "--key", "C-c"]);
    // A process that ends closes its sockets first, and either may be seen first.
    let (mut is_over, mut is_closed) = (false, false);
    watch.until("its end and the port's", |line| {
        is_over |= line["event"] == "exit" && line["pid"] == fork["pid"];
        is_closed |= line["event"] == "not_listening";
        is_over && is_closed
    });
    let numbers: Vec<u64> = watch.seen.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(numbers.is_sorted() && numbers.len() > 4, "{numbers:?}");
    home.ok(&["end", "work", "--grace", "0"]);
    until("the watch to end with its session", || {
        watch.child.try_wait().unwrap().is_some_and(|status| status.success())
    });
}

/// One process that forks nobody: what its sockets do is told by no event of the kernel's.
const SOCKETS: &str = "import socket
input()
s = socket.create_server(('127.0.0.1', 0))
input()
c = socket.create_connection(s.getsockname())
input()
c.close()
input()
s.close()
input()";

#[test]
fn who_watches_sees_ports_and_connections_of_a_process_that_was_there_before() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "work", "--", "python3", "-u", "-c", SOCKETS]);
    home.ok(&["wait", "work", "--for", "waiting", "--timeout", "20"]);
    let mut watch = Watch::start(&home, "work");
    let mut next = |event: &str| {
        home.ok(&["send", "work", "--enter", ""]);
        watch.until(event, |line| line["event"] == event)
    };
    let listen = next("listen");
    let connect = next("connect");
    assert_eq!(connect["remote"], listen["address"]);
    assert_eq!(next("closed")["local"], connect["local"]);
    assert_eq!(next("not_listening")["socket"], listen["socket"]);
}

/// Sockets of the host that the kernel tells of processes by: its connector, netlink's eleventh protocol.
fn connectors(home: &Home) -> usize {
    let all = std::fs::read_dir(format!("/proc/{}/fd", home.host_pid())).unwrap();
    let links = all.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let held: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    let table = std::fs::read_to_string("/proc/net/netlink").unwrap();
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ours = |row: &Vec<&str>| row.len() > 9 && row[1] == "11" && held.contains(&format!("socket:[{}]", row[9]));
    rows.filter(ours).count()
}

#[test]
fn the_kernel_is_listened_to_only_while_somebody_watches() {
    let home = Home::new();
    home.session("work", "exec cat");
    assert_eq!(connectors(&home), 0);
    let watch = Watch::start(&home, "work");
    let is_told = watch.seen[0]["watching"] == "connector";
    assert_eq!(connectors(&home), usize::from(is_told), "{:?}", watch.seen);
    drop(watch);
    // A question of a watcher that is gone waits for half a minute at most, unless the session ends.
    home.ok(&["end", "work", "--grace", "0"]);
    until("the kernel's socket to be closed", || connectors(&home) == 0);
}

#[test]
fn a_thousand_processes_are_told() {
    let home = Home::new();
    home.session("many", "i=0; while [ $i -lt 1000 ]; do sleep 600 & i=$((i+1)); done; echo started; wait");
    home.until_screen_shows("many", "started");
    let graph = home.json(&["graph", "many"]);
    assert_eq!(graph["processes"].as_array().unwrap().len(), 1001);
    let lineage = |binding: &Value| binding["by"] == "lineage" && binding["actor"]["handle"] == TESTER;
    assert!(graph["bindings"].as_array().unwrap().iter().all(lineage), "nobody but its starter was there");
    assert_eq!(home.ok(&["ps", "many"]).lines().count(), 1002);
    assert!(home.ok(&["graph", "many", "--svg", "-"]).contains("1 more processes"));
    home.ok(&["end", "many", "--grace", "0"]);
    let refused = |ran: Ran| assert!(ran.status == 1 && ran.err.contains("\"code\":\"ended\""), "{ran}");
    refused(home.run(&["--json", "graph", "many"]));
    refused(home.run(&["--json", "ps", "many"]));
    refused(home.run(&["--json", "ports", "many"]));
    refused(home.run(&["--json", "graph", "many", "--watch"]));
}

#[test]
fn who_may_not_observe_sees_no_processes() {
    let home = Home::new();
    home.ok(&["actor", "new", BOT]);
    home.session("work", "exec cat");
    home.ok(&["revoke", "work", "--to", BOT]);
    for args in [&["graph", "work"][..], &["ps", "work"], &["ports", "work"], &["graph", "work", "--watch"]] {
        let ran = home.run_as(BOT, &[&["--json"], args].concat());
        assert!(ran.status == 1 && ran.err.contains("\"code\":\"denied\""), "{args:?}: {ran}");
    }
    assert_eq!(home.run_as(BOT, &["ports"]).out, "no listening ports\n");
    assert_eq!(home.run_as(BOT, &["ps"]).out.lines().count(), 1, "the heading alone");
}
