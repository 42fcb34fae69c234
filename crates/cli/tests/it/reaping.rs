//! Sessions that nobody uses are ended where that is configured: after a warning, on record, and never while they are used.

use crate::http::Http;
use crate::watching::Watch;
use holdfast_harness::{Home, TESTER, Terminal, gone, kill, settle, until};
use serde_json::{Value, json};
use std::process::{Child, Stdio};

/// Short times: a session is idle for 2 s, and warned for the second of them.
const SHORT: &str = "reap_after = \"2s\"\nreap_warn = \"1s\"\n";

fn home(config: &str) -> Home {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), config).unwrap();
    home
}

/// A shell without anybody's own files.
fn shell(home: &Home, name: &str, more: &[&str]) {
    home.ok(&[&["new", "-d", "-n", name], more, &["--", "/bin/bash", "--norc", "--noprofile"]].concat());
}

fn info(home: &Home, name: &str) -> Value {
    home.json(&["info", name])
}

fn life(home: &Home, name: &str) -> String {
    info(home, name)["life"].as_str().unwrap().to_owned()
}

fn until_ended(home: &Home, name: &str) {
    until(&format!("the end of {name}"), || life(home, name) == "ended");
}

fn idle_since(home: &Home, name: &str) -> u64 {
    until(&format!("{name} to be idle"), || info(home, name)["reap"]["idle_since_ms"].as_u64())
}

/// The acts of the reaper in a session, refused ones too.
fn by_reaper(home: &Home, name: &str) -> Vec<Value> {
    let text = home.ok(&["journal", name, "--json"]);
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|act| act["by"].to_string().contains("service:reaper")).collect()
}

/// Ends a process with the test, however that ends.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_idle_session_is_warned_and_then_ended_by_the_reaper_on_record() {
    let home = Home::new();
    let told = home.join("told");
    let notify =
        format!("[[notify]]\non = [\"reap\"]\ncommand = [\"/bin/sh\", \"-c\", \"cat >> {}\"]\n", told.display());
    std::fs::write(home.join("config.toml"), format!("{SHORT}{notify}")).unwrap();
    home.ok(&["host", "start"]);
    let mut watch = Watch::start(&home, TESTER, &["--all"]);
    shell(&home, "work", &[]);
    let warned = watch.next("reap_soon", |one| one["name"] == "work");
    assert_eq!(warned["why"], "idle", "{warned}");
    assert!(warned["ends_ms"].as_u64() > warned["at_ms"].as_u64(), "{warned}");
    let reaped = watch.next("reaped", |one| one["name"] == "work");
    // Both are rounded to a millisecond.
    assert!(reaped["at_ms"].as_u64().unwrap() + 2 >= warned["ends_ms"].as_u64().unwrap(), "{warned} {reaped}");
    watch.next("exit", |one| one["name"] == "work");
    until_ended(&home, "work");
    assert_eq!(info(&home, "work")["reap"]["reaped"], "idle");
    assert!(home.ok(&["ls", "--all"]).contains("reaped"));
    assert!(home.ok(&["info", "work"]).contains("by service:reaper: it is idle"));
    let journal = home.ok(&["journal", "work"]);
    assert!(journal.contains("service:reaper") && journal.contains("ended the session"), "{journal}");
    assert_eq!(by_reaper(&home, "work").len(), 1);
    home.ok(&["journal", "work", "--verify"]);
    let metrics = home.ok(&["host", "metrics"]);
    for line in ["holdfast_reap_warnings_total{why=\"idle\"} 1", "holdfast_reaps_total{why=\"idle\"} 1"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let lines = || std::fs::read_to_string(&told).unwrap_or_default();
    until("both notifications", || lines().lines().count() == 2);
    let texts: Vec<Value> = lines().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(texts[0]["answer"], "holdfast keep work", "{texts:?}");
    assert!(texts[1]["text"].as_str().unwrap().contains("work was ended: it is idle"), "{texts:?}");
}

#[test]
fn nothing_is_reaped_unless_it_was_asked_for() {
    let home = home("");
    shell(&home, "mine", &[]);
    shell(&home, "short", &["--reap-after", "1s"]);
    // What has a time of its own goes, with the default warning; everything else has none.
    let reap =
        until("a deadline", || Some(info(&home, "short")["reap"].clone()).filter(|reap| reap["ends_ms"].is_u64()));
    assert_eq!(reap["after_ms"], 1_000, "{reap}");
    assert!(info(&home, "mine")["reap"].is_null());
}

#[test]
fn a_session_that_is_used_in_any_way_is_not_reaped_and_goes_when_that_is_over() {
    let home = home(SHORT);
    home.ok(&["host", "start"]);
    shell(&home, "background", &[]);
    home.ok(&["run", "background", "--", "sleep 1000 & echo $! > job"]);
    shell(&home, "attached", &[]);
    let (terminal, mut client) = Terminal::attached(&home, "attached", "80x24");
    shell(&home, "runs", &[]);
    let mut run = home.command(&["run", "runs", "--", "sleep 1000"]);
    let _run = Running(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    shell(&home, "typed", &[]);
    home.ok(&["wait", "typed", "--for", "idle"]);
    home.ok(&["send", "typed", "half a command"]);
    shell(&home, "asked", &[]);
    let asked = home.run(&["--json", "ask", "-t", "asked", "--timeout", "0", "Still needed?"]);
    let question: Value = serde_json::from_str(&asked.out).unwrap();
    shell(&home, "kept", &[]);
    home.ok(&["keep", "kept"]);
    shell(&home, "never", &["--reap-after", "never"]);
    shell(&home, "bare", &["--no-integration"]);
    home.session("program", "exec cat");
    let used = ["background", "attached", "runs", "typed", "asked", "kept", "never", "bare", "program"];
    // Twice the time of a session that came later than all of them.
    for control in ["control", "another"] {
        shell(&home, control, &[]);
        until_ended(&home, control);
    }
    for name in used {
        assert_eq!(life(&home, name), "running", "{name}");
        assert_eq!(by_reaper(&home, name), Vec::<Value>::new(), "{name}");
        assert!(info(&home, name)["reap"]["warned"].is_null(), "{name}");
    }
    assert!(home.ok(&["ls"]).lines().any(|line| line.starts_with("kept") && line.contains(", kept")));
    let job: u32 = std::fs::read_to_string(home.join("job")).unwrap().trim().parse().unwrap();
    kill(job);
    terminal.types(b"\x1cd");
    client.wait();
    home.ok(&["send", "typed", "--key", "C-c"]);
    home.ok(&["keep", "kept", "--off"]);
    home.ok(&["answer", question["id"].as_str().unwrap(), "no"]);
    for name in ["background", "attached", "typed", "kept", "asked"] {
        until_ended(&home, name);
        assert_eq!(by_reaper(&home, name).len(), 1, "{name}");
    }
    for name in ["runs", "never", "bare", "program"] {
        assert_eq!(life(&home, name), "running", "{name}");
    }
}

#[test]
fn who_keeps_or_uses_a_session_that_was_warned_averts_its_end() {
    let home = home("reap_after = \"2s\"\nreap_warn = \"1h\"\n");
    home.ok(&["host", "start"]);
    let mut watch = Watch::start(&home, TESTER, &["--all"]);
    shell(&home, "work", &[]);
    watch.next("reap_soon", |one| one["name"] == "work");
    let warned = info(&home, "work");
    assert_eq!(warned["reap"]["warned"], "idle", "{warned}");
    assert!(home.ok(&["ls"]).contains("ends in"), "{warned}");
    assert!(home.ok(&["info", "work"]).contains("of idleness"));
    let kept = home.json(&["keep", "work", "--for", "2h"]);
    assert_eq!(kept["reap"]["kept"]["by"], TESTER, "{kept}");
    assert!(kept["reap"]["ends_ms"].is_null() && kept["reap"]["kept"]["until_ms"].is_u64(), "{kept}");
    watch.next("reap_averted", |one| one["name"] == "work");
    let journal = home.ok(&["journal", "work"]);
    assert!(journal.contains("keeps the session for 2h"), "{journal}");
    // No longer kept, it is warned again; a command in it averts that too.
    home.ok(&["keep", "work", "--off"]);
    watch.next("reap_soon", |one| one["name"] == "work");
    home.ok(&["run", "work", "--", "true"]);
    watch.next("reap_averted", |one| one["name"] == "work");
    assert_eq!(by_reaper(&home, "work"), Vec::<Value>::new());
}

#[test]
fn a_host_that_is_killed_after_the_warning_or_in_the_middle_of_the_end_ends_nothing_early_or_twice() {
    for (point, is_lost) in [("reap.warned", false), ("reap.due", false), ("deed.recorded", true)] {
        let home = home(SHORT);
        home.ok(&["host", "start"]);
        // A host that stands still tells nobody who it is.
        let host = home.host_pid();
        let held = home.pause(point);
        shell(&home, "work", &[]);
        let reached = held.reached();
        kill(host);
        until("the host's end", || gone(host));
        drop((reached, held));
        // The new host finds it alive, and warns anew or keeps to the time that was told.
        until_ended(&home, "work");
        let acts = by_reaper(&home, "work");
        assert_eq!(acts.len(), 1 + usize::from(is_lost), "{point}: {acts:?}");
        let journal = home.ok(&["journal", "work"]);
        assert_eq!(journal.contains("lost end of service:reaper"), is_lost, "{point}: {journal}");
        assert_eq!(info(&home, "work")["reap"]["reaped"], "idle", "{point}");
        home.ok(&["journal", "work", "--verify"]);
    }
}

#[test]
fn a_new_host_goes_on_counting_and_never_from_before_the_last_use() {
    let home = home("reap_after = \"1h\"\n");
    shell(&home, "work", &[]);
    let since = idle_since(&home, "work");
    let near = |one: u64, other: u64| one.abs_diff(other) < 1_000;
    home.kill_host();
    assert!(near(idle_since(&home, "work"), since), "counted on");
    // Whoever only looks in uses it.
    let looked = info(&home, "work")["reap"]["idle_since_ms"].as_u64().unwrap();
    let (terminal, mut client) = Terminal::attached(&home, "work", "80x24");
    let came = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    terminal.types(b"\x1cd");
    client.wait();
    home.kill_host();
    let again = idle_since(&home, "work");
    assert!(again >= came && again > looked, "{again} {came}");
}

#[test]
fn beyond_a_limit_of_sessions_those_go_that_are_idle_for_longest() {
    let home = home("reap_sessions_max = 2\nreap_warn = \"1s\"\n");
    shell(&home, "a", &[]);
    let first = idle_since(&home, "a");
    shell(&home, "b", &[]);
    idle_since(&home, "b");
    // Used again, it is no longer the one that was idle for longest.
    home.ok(&["run", "a", "--", "true"]);
    until("a to be idle anew", || info(&home, "a")["reap"]["idle_since_ms"].as_u64().filter(|since| *since > first));
    home.session("c", "exec cat");
    until_ended(&home, "b");
    assert_eq!(info(&home, "b")["reap"]["reaped"], "sessions");
    home.session("d", "exec cat");
    until_ended(&home, "a");
    // What is in use stays, however many that are.
    home.session("e", "exec cat");
    for name in ["c", "d", "e"] {
        assert_eq!(life(&home, name), "running", "{name}");
        assert_eq!(by_reaper(&home, name), Vec::<Value>::new(), "{name}");
    }
}

#[test]
fn beyond_a_limit_of_memory_an_idle_session_goes_and_one_that_works_stays() {
    let home = home("reap_memory_max = \"1MiB\"\nreap_warn = \"1s\"\n");
    shell(&home, "works", &[]);
    home.ok(&["run", "works", "--", "sleep 1000 & true"]);
    shell(&home, "idle", &[]);
    until_ended(&home, "idle");
    assert_eq!(info(&home, "idle")["reap"]["reaped"], "memory");
    assert_eq!(life(&home, "works"), "running");
    assert_eq!(by_reaper(&home, "works"), Vec::<Value>::new());
}

#[test]
fn a_policy_that_forbids_or_asks_about_it_keeps_the_reaper_from_ending() {
    let home = home(SHORT);
    std::fs::create_dir(home.join("policy")).unwrap();
    let rule = "@id(\"mine.keep\")\n@why(\"nothing here is reaped\")\nforbid (principal, action == Action::\"end\", resource)\nwhen { principal.handle == \"service:reaper\" };\n";
    std::fs::write(home.join("policy/keep.cedar"), rule).unwrap();
    home.ok(&["policy", "check"]);
    shell(&home, "work", &[]);
    let refused = until("a refusal", || by_reaper(&home, "work").pop());
    assert!(refused["outcome"].to_string().contains("mine.keep"), "{refused}");
    // It is not tried again and again.
    shell(&home, "other", &[]);
    until("another refusal", || !by_reaper(&home, "other").is_empty());
    assert_eq!((by_reaper(&home, "work").len(), life(&home, "work")), (1, "running".into()));
}

#[test]
fn nobody_speaks_as_the_reaper_and_keeping_needs_a_right() {
    let home = home("reap_after = \"1h\"\n");
    shell(&home, "work", &[]);
    home.ok(&["actor", "new", "agent:bot"]);
    let refused = home.run_as("agent:bot", &["keep", "work"]);
    assert!(refused.status != 0 && refused.err.contains("`configure`"), "{refused}");
    home.ok(&["grant", "work", "--to", "agent:bot", "--can", "configure"]);
    assert_eq!(home.run_as("agent:bot", &["keep", "work"]).status, 0);
    assert_eq!(info(&home, "work")["reap"]["kept"]["by"], "agent:bot");

    let reserved = "the host itself acts as service:reaper";
    assert!(home.fails(&["actor", "new", "service:reaper"]).contains(reserved));
    // A key that somebody put there by hand is not believed either.
    settle(home.path(), "service:reaper");
    for args in [&["end", "work"][..], &["ls"], &["keep", "work"]] {
        let forged = home.run_as("service:reaper", args);
        assert!(forged.status != 0 && forged.err.contains("service:reaper"), "{args:?}: {forged}");
    }
    assert!(!home.ok(&["actor", "ls"]).contains("service:reaper"));
    assert_ne!(home.run(&["grant", "work", "--to", "service:reaper", "--can", "end"]).status, 0);
    assert_eq!(life(&home, "work"), "running");
    assert_eq!(by_reaper(&home, "work"), Vec::<Value>::new());
}

#[test]
fn over_http_a_session_is_kept_and_measured_and_no_token_is_the_reapers() {
    let http = Http::with(home("reap_after = \"1h\"\n"));
    shell(&http.home, "work", &[]);
    let refused = http.ask_as(&http.token, "PUT", "/sessions/work/keep", Some(json!({})));
    assert_eq!((refused.status, &refused.body["code"]), (403, &json!("denied")), "{refused:?}");
    http.home.ok(&["grant", "work", "--to", "agent:bot", "--can", "configure"]);
    let kept = http.ask_as(&http.token, "PUT", "/sessions/work/keep", Some(json!({ "for_ms": 60_000 })));
    assert_eq!((kept.status, &kept.body["reap"]["kept"]["by"]), (200, &json!("agent:bot")), "{kept:?}");
    let costs = http.get("/costs");
    assert_eq!((costs.status, &costs.body[0]["processes"]), (200, &json!(1)), "{costs:?}");
    let mine = http.home.ok(&["token", "new"]).trim().to_owned();
    let made = http.ask_as(&mine, "POST", "/tokens", Some(json!({ "actor": "service:reaper" })));
    assert_eq!((made.status, &made.body["code"]), (403, &json!("denied")), "{made:?}");
}

#[test]
fn what_each_session_takes_up_is_told() {
    let home = Home::new();
    shell(&home, "work", &[]);
    home.ok(&["run", "work", "--", "sleep 1000 & sleep 1000 & true"]);
    let (_terminal, _client) = Terminal::attached(&home, "work", "80x24");
    home.ok(&["screen", "work"]);
    let listed = home.json(&["ls", "--cost"]);
    let cost = &listed[0]["cost"];
    assert_eq!((&listed[0]["name"], &cost["processes"]), (&json!("work"), &json!(3)), "{listed}");
    let number = |field: &str| cost[field].as_u64().unwrap_or_else(|| panic!("{field} of {listed}"));
    assert!(number("memory_bytes") > 1 << 20 && number("memory_bytes") < 1 << 30, "{cost}");
    assert!(number("disk_bytes") > 4096 && number("attached_ms") > 0 && number("looked_ms") > 0, "{cost}");
    let table = home.ok(&["ls", "--cost"]);
    let row = table.lines().find(|line| line.starts_with("work")).unwrap();
    assert!(row.contains("MiB") && row.contains("now"), "{table}");
    assert!(table.lines().last().unwrap().starts_with("1 session: "), "{table}");
}
