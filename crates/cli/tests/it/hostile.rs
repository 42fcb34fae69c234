//! Processes that make it hard to be looked at: forks without end, names that are none.

use holdfast_harness::{Home, holds_within, until};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

/// Seconds of work, and many times that on a busy machine.
const FORKING: Duration = Duration::from_secs(180);

/// Forks in waves, so that at most so many are alive at once, then takes commands.
const FORKS: &str = "import os
for wave in range(40):
    for _ in range(250):
        if os.fork() == 0: os._exit(0)
    while True:
        try: os.wait()
        except ChildProcessError: break
print('made them all')
input()
os.execvp('sleep', ['sleep', '614'])";

/// Most memory the host has had, in KiB.
fn peak_kib(home: &Home) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", home.host_pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn ten_thousand_forks_are_followed_within_bounds_and_the_host_answers() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "forks", "--", "python3", "-u", "-c", &format!("input()\n{FORKS}")]);
    home.session("other", "exec cat");
    home.ok(&["wait", "forks", "--for", "waiting", "--timeout", "20"]);
    let out = home.join("events");
    let mut command = home.command(&["--json", "graph", "forks", "--watch"]);
    let mut watch = command.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    let events = || -> Vec<Value> {
        let text = std::fs::read_to_string(&out).unwrap();
        // The last line may be in the middle of being written.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    until("the watch", || events().iter().any(|line| line["watching"].is_string()));
    let before = peak_kib(&home);
    home.ok(&["send", "forks", "--enter", ""]);
    let mut looks = 0;
    let is_done = holds_within(FORKING, || {
        assert!(home.ok(&["ps"]).contains("forks"));
        home.json(&["graph", "forks"]);
        assert_eq!(home.json(&["state", "other"])["state"], "waiting");
        looks += 1;
        home.ok(&["screen", "forks"]).contains("made them all")
    });
    assert!(is_done && looks > 0, "after {looks} looks");
    // What is told afterwards is right again.
    home.ok(&["send", "forks", "--enter", ""]);
    let words = serde_json::json!(["sleep", "614"]);
    until("the exec", || events().iter().any(|line| line["event"] == "exec" && line["argv"] == words));
    let events = events();
    let forks = events.iter().filter(|line| line["event"] == "fork").count();
    let is_lossy = events.iter().any(|line| line["lost"] == true || line["watching"] == "polling");
    assert!(forks == 10_000 || is_lossy, "{forks} forks, and no loss was told");
    let grown = peak_kib(&home) - before;
    println!("{looks} looks, {forks} forks told, the host has grown by {grown} KiB");
    assert!(grown < 64 * 1024, "the host has grown by {grown} KiB");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

/// A name with an escape sequence that sets a title, one of eight bits, one that turns the writing direction, and markup.
const EVIL: &str = "ev\\033]0;pwned\\007\\302\\233\\342\\200\\256<b>&\"\\r\\nil";

/// Takes such a name as its words and as what the kernel calls it, and listens at a port.
const LISTENER: &str = "import ctypes, socket, sys
ctypes.CDLL(None).prctl(15, b'e\\x1b]0;p\\x07\\r\\nil', 0, 0, 0)
s = socket.create_server(('127.0.0.1', 0))
print('ready')
input()";

#[track_caller]
fn is_harmless(what: &str, text: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(bad), "{what}: {text:?}");
    assert!(text.contains("ev") && text.contains("pwned"), "{what}: {text:?}");
}

#[test]
fn control_characters_in_a_name_reach_no_terminal() {
    let home = Home::new();
    let script = "read go; exec -a \"$(printf \"$0\")\" python3 -u -c \"$1\"";
    home.ok(&["new", "-d", "-n", "work", "--", "bash", "-c", script, EVIL, LISTENER]);
    home.ok(&["wait", "work", "--for", "waiting", "--timeout", "20"]);
    let out = |name: &str| std::fs::File::create(home.join(name)).unwrap();
    let follow = |args: &[&str], name: &str| {
        home.command(args).stdout(out(name)).stderr(out(&format!("{name}.err"))).spawn().unwrap()
    };
    let mut watches = [follow(&["graph", "work", "--watch"], "graph"), follow(&["watch", "work"], "watch")];
    let told = |name: &str| std::fs::read_to_string(home.join(name)).unwrap();
    until("both watches", || told("watch").contains("waiting") && told("graph.err").contains("watching"));
    home.ok(&["send", "work", "--enter", ""]);
    home.until_screen_shows("work", "ready");
    is_harmless("ps", &home.ok(&["ps", "work"]));
    is_harmless("graph", &home.ok(&["graph", "work"]));
    is_harmless("tree", &home.ok(&["graph", "work", "--tree"]));
    is_harmless("ports", &home.ok(&["ports", "work"]));
    is_harmless("info", &home.ok(&["info", "work"]));
    let svg = home.ok(&["graph", "work", "--svg", "-"]);
    is_harmless("svg", &svg);
    assert!(!svg.contains("<b>"), "{svg}");
    for name in ["graph", "watch"] {
        until(name, || told(name).contains("pwned"));
        is_harmless(name, &told(name));
    }
    for watch in &mut watches {
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
}

/// Turns the writing direction, begins an 8-bit escape sequence, and hides what follows.
const TURNED: &str = "for \u{202e}toor\u{2066}\u{9b}31m\u{200f}";

#[test]
fn a_note_of_a_token_turns_no_text_around_and_neither_does_json() {
    let home = Home::new();
    home.ok(&["--as", "agent:bot", "token", "new", "--note", "for \u{202e}toor\u{2066}\u{200f}"]);
    home.ok(&["new", "-d", "-n", "work", "--", "/bin/sh", "-c", "exec cat", TURNED]);
    let bad = |c: char| (c.is_control() && c != '\n') || "\u{200e}\u{200f}\u{202e}\u{2066}".contains(c);
    let asked = home.run(&["--as", "agent:bot", "ask", "-t", "work", "--timeout", "0", TURNED]);
    assert!(!asked.err.contains(bad), "{asked:?}");
    for args in [&["token", "ls"][..], &["ls"], &["info", "work"], &["questions"], &["actor", "ls"]] {
        let told = home.ok(args);
        assert!(!told.contains(bad), "{args:?}: {told:?}");
        let json = home.ok(&[&["--json"], args].concat());
        assert!(!json.contains(bad), "{args:?} --json: {json:?}");
    }
    assert!(home.ok(&["token", "ls"]).contains("for \\u{202e}toor"));
    // A reader of JSON has the text as it is.
    assert_eq!(home.json(&["info", "work"])["command"][3], TURNED);
}
