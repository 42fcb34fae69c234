//! A run's act and its end: which record of the journal it is, and that its end is told once, however it came.

use crate::http::Http;
use crate::watching::Watch;
use holdfast_harness::{Home, TESTER, kill, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};

const BOT: &str = "agent:bot";

fn with_bash() -> Home {
    let home = Home::new();
    home.ok(&["actor", "new", BOT]);
    home.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc", "--noprofile"]);
    home
}

/// The answer to a run of the agent's, whatever its status.
fn run(home: &Home, args: &[&str]) -> Value {
    let ran = home.run_as(BOT, &[&["run", "--json"], args].concat());
    serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{args:?}: {ran}"))
}

fn id(run: &Value) -> &str {
    run["id"].as_str().unwrap()
}

/// What a record of the session's journal says was done.
fn act(home: &Home, session: &str, number: &Value) -> Value {
    let journal = home.ok(&["--json", "journal", session]);
    let mut records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.find(|record| record["seq"] == *number).unwrap_or_else(|| panic!("no {number} in {journal}"))
}

#[test]
fn a_run_says_which_record_it_is_also_to_the_next_host() {
    let home = with_bash();
    home.run_as(TESTER, &["send", "work", "--enter", "true"]);
    home.ok(&["release", "work"]);
    until("the prompt", || home.run_as(BOT, &["run", "work", "--", "true"]).status == 0);
    let in_shell = run(&home, &["work", "--key", "k", "--", "echo one"]);
    let own = run(&home, &["--new", "--name", "own", "--keep", "--", "sh", "-c", "exit 4"]);
    let on = run(&home, &["work", "--timeout", "0", "--", "sleep 1000"]);
    let check = |when: &str| {
        let asked = act(&home, "work", &in_shell["act"]);
        assert_eq!(asked["act"]["asked"]["run"]["command"], "echo one", "{when}: {asked}");
        let asked = act(&home, "work", &on["act"]);
        assert_eq!(asked["act"]["asked"]["run"]["command"], "sleep 1000", "{when}: {asked}");
        let started = act(&home, "own", &own["act"]);
        assert_eq!((&started["act"], &started["by"]["actor"]["handle"]), (&json!("started"), &json!(BOT)), "{started}");
        for one in [&in_shell, &own, &on] {
            assert_eq!(home.json(&["run", "status", id(one)])["act"], one["act"], "{when}");
        }
    };
    check("the host that saw it");
    kill(home.host_pid());
    check("the next one");
    assert_eq!(run(&home, &["work", "--key", "k", "--", "echo one"])["act"], in_shell["act"]);
    let cancelled = run(&home, &["cancel", id(&on)]);
    assert_eq!((&cancelled["state"], &cancelled["act"]), (&json!("cancelled"), &on["act"]));
}

/// What was told of runs, without what differs each time.
fn told(watch: &Watch, event: &str) -> Vec<Value> {
    let of_runs = watch.seen.iter().filter(|one| one["event"] == event);
    of_runs.map(|one| json!([one["run"], one["state"], one["exit_code"], one["act"]])).collect()
}

#[test]
fn every_runs_end_is_told_once_however_it_ended() {
    let home = with_bash();
    // An agent runs what no shell accepts: under a policy it would be asked about.
    std::fs::write(home.join("config.toml"), "policy = \"off\"\n").unwrap();
    home.ok(&["host", "restart"]);
    home.ok(&["new", "-d", "-n", "sh", "--env", "PS1=sh> ", "--", "/bin/sh"]);
    home.until_screen_shows("sh", "sh>");
    let mut watch = Watch::start(&home, TESTER, &["--all"]);
    watch.next("state", |one| one["name"] == "work");
    let long = format!("true {}", "x".repeat(300));
    let mut runs = vec![
        run(&home, &["work", "--", "true"]),
        run(&home, &["work", "--", "cd /usr; sh -c 'exit 7'"]),
        run(&home, &["work", "--", &long]),
        run(&home, &["work", "--timeout", "15", "--", "echo ) wrong"]),
        run(&home, &["sh", "--detect", "prompt:^sh> $", "--", "echo watched"]),
        run(&home, &["--new", "--", "sh", "-c", "exit 3"]),
    ];
    let on = run(&home, &["work", "--timeout", "0", "--", "sleep 1000"]);
    runs.push(run(&home, &["cancel", id(&on)]));
    // The session goes, and its run with it.
    runs.push(run(&home, &["work", "--", "exit 5"]));
    let states: Vec<_> = runs.iter().map(|run| json!([run["state"], run["exit_code"]])).collect();
    let ended = |code: i32| json!(["ended", code]);
    assert_eq!(states[..3], [ended(0), ended(7), ended(0)]);
    assert_eq!(states[4..6], [json!(["ended", null]), ended(3)]);
    assert_eq!(states[6..], [json!(["cancelled", 130]), ended(5)]);
    watch.next("exit", |one| one["name"] == "work");
    let expected: Vec<_> =
        runs.iter().map(|run| json!([run["id"], run["state"], run["exit_code"], run["act"]])).collect();
    assert_eq!(told(&watch, "run_ended"), expected);
    let started: Vec<_> = runs.iter().map(|run| json!([run["id"], null, null, run["act"]])).collect();
    assert_eq!(told(&watch, "run_started"), started);
    let event = |n: usize| watch.seen.iter().find(|one| one["event"] == "run_ended" && one["run"] == runs[n]["id"]);
    assert_eq!((&event(0).unwrap()["by"], &event(0).unwrap()["command"]), (&json!(BOT), &json!("true")));
    let cut = event(2).unwrap()["command"].as_str().unwrap();
    assert!(cut.chars().count() == 257 && cut.ends_with('…') && long.starts_with(cut.trim_end_matches('…')), "{cut}");
}

#[test]
fn the_next_host_tells_the_ends_it_notices_and_none_again() {
    let home = with_bash();
    home.ok(&["new", "-d", "-n", "sh", "--env", "PS1=sh> ", "--", "/bin/sh"]);
    home.until_screen_shows("sh", "sh>");
    let mut watch = Watch::start(&home, TESTER, &["--all"]);
    watch.next("state", |one| one["name"] == "work");
    let before = run(&home, &["work", "--", "true"]);
    watch.next("run_ended", |one| one["run"] == before["id"]);
    let go = home.join("go");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done; (exit 6)", go.display());
    let shell = run(&home, &["work", "--timeout", "0", "--", &wait]);
    let watched = run(&home, &["sh", "--detect", "prompt:^never$", "--timeout", "0", "--", "sleep 1000"]);
    let wait = format!("{wait}; echo done > {}", home.join("done").display());
    let own = run(&home, &["--new", "--timeout", "0", "--", "sh", "-c", &wait]);
    kill(home.host_pid());
    // They end while there is no host, or as good as none.
    std::fs::write(&go, "").unwrap();
    until("the end of what ran", || home.join("done").exists());
    home.ok(&["ls"]);
    for (run, state, code) in [(&shell, "ended", json!(6)), (&watched, "lost", json!(null)), (&own, "ended", json!(0))]
    {
        let is_told =
            |watch: &Watch| watch.seen.iter().any(|one| one["event"] == "run_ended" && one["run"] == run["id"]);
        if !is_told(&watch) {
            watch.next("run_ended", |one| one["run"] == run["id"]);
        }
        let last = watch.seen.iter().rfind(|one| one["event"] == "run_ended" && one["run"] == run["id"]).unwrap();
        assert_eq!((&last["state"], &last["exit_code"], &last["act"]), (&json!(state), &code, &run["act"]), "{last}");
    }
    kill(home.host_pid());
    let last = run(&home, &["work", "--", "true"]);
    watch.next("run_ended", |one| one["run"] == last["id"]);
    for run in [&before, &shell, &watched, &own, &last] {
        let count = watch.seen.iter().filter(|one| one["event"] == "run_ended" && one["run"] == run["id"]).count();
        assert_eq!(count, 1, "{run}: {:#?}", watch.seen);
    }
}

#[test]
fn a_runs_end_is_told_in_words_and_to_whom_a_rule_says() {
    let home = Home::new();
    let script = format!("cat >> {0}; echo \"$HOLDFAST_EVENT_TEXT\" >> {0}.text", home.join("told").display());
    let rules = format!("[[notify]]\non = [\"run_ended\"]\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n");
    std::fs::write(home.join("config.toml"), rules).unwrap();
    home.ok(&["actor", "new", BOT]);
    home.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc", "--noprofile"]);
    let out = std::fs::File::create(home.join("watched")).unwrap();
    let mut watcher = home.command(&["watch", "work"]).stdout(out).spawn().unwrap();
    let read = |name: &str| std::fs::read_to_string(home.join(name)).unwrap_or_default();
    until("the watcher", || read("watched").ends_with('\n'));
    let one = run(&home, &["work", "--", "sh -c 'exit 7' \x1b"]);
    let id = id(&one);
    until("the notification", || read("told.text").ends_with('\n'));
    let event: Value = serde_json::from_str(&read("told")).unwrap();
    assert_eq!((&event["on"], &event["event"]["run"]), (&json!("run_ended"), &one["id"]));
    let text = read("told.text");
    let run = format!(
        "holdfast: in work a run of agent:bot ended with status 7: sh -c 'exit 7' \\u{{1b}} · see: holdfast run output {id}\n"
    );
    assert_eq!(text, run);
    let ended = format!("  work  run of agent:bot ended with status 7: sh -c 'exit 7' \\u{{1b}} ({id})\n");
    until("the end", || read("watched").contains(&ended));
    assert!(read("watched").contains(&format!("  work  agent:bot runs: sh -c 'exit 7' \\u{{1b}} ({id})\n")));
    watcher.kill().unwrap();
    watcher.wait().unwrap();
}

#[test]
fn a_runs_end_is_streamed() {
    let http = Http::new();
    let stream = http.begin("GET /v1/events HTTP/1.1\r\nAccept: text/event-stream");
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line.starts_with(": nothing")));
    let run = http.post("/runs", json!({ "new": {}, "command": "exit 3", "wait_ms": 20_000 })).body;
    let data = lines.by_ref().skip_while(|line| line != "event: run_ended").find(|line| line.starts_with("data: "));
    let event: Value = serde_json::from_str(data.unwrap().strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!((&event["run"], &event["exit_code"], &event["state"]), (&run["id"], &json!(3), &json!("ended")));
    assert!(event["act"].is_u64() && event["act"] == run["act"], "{event} {run}");
}
