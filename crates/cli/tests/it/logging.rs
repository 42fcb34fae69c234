//! The host's log: its formats, its levels, and what is never in it.

use holdfast_harness::{Home, until};
use serde_json::Value;

/// The lines of the log so far, each of which is an object.
fn lines(home: &Home) -> Vec<Value> {
    let log = std::fs::read_to_string(home.join("host.log")).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// The span of a line.
fn span(line: &Value, name: &str) -> Option<Value> {
    line["spans"].as_array()?.iter().find(|span| span["name"] == name).cloned()
}

#[test]
fn everything_is_logged_as_json_but_what_is_typed_or_secret() {
    let home = Home::new();
    let start = home.command(&["host", "start", "--log", "json"]).env("HOLDFAST_LOG", "trace").output().unwrap();
    assert!(start.status.success(), "{start:?}");
    let secrets = ["typed-in-plain", "typed-in-secret", "printed-by-it", "asked-as-text", "a-token-note"];
    home.session("work", "read -r x; stty -echo; read -r y; echo printed-by-it; cat");
    home.ok(&["send", "work", "typed-in-plain", "--enter"]);
    until("a terminal that does not echo", || {
        home.run_with_input(&["send", "work", "--secret", "--stdin"], b"typed-in-secret\n").status == 0
    });
    home.until_screen_shows("work", "printed-by-it");
    home.run(&["ask", "-t", "work", "--timeout", "0", "asked-as-text"]);
    assert!(home.ok(&["questions"]).contains("asked-as-text"));
    let token = home.json(&["token", "new", "--as", "agent:ci", "--can", "observe", "--note", "a-token-note"]);
    assert_eq!(home.run_as("agent:ci", &["end", "work"]).status, 1, "an agent may not");
    let lines = lines(&home);
    let id = home.json(&["info", "work"])["id"].clone();
    let acts: Vec<Value> = lines.iter().filter_map(|line| span(line, "act")).collect();
    let sent = acts.iter().find(|act| act["what"] == "session.send").expect("the act is logged");
    assert_eq!((&sent["who"], &sent["session"]), (&"human:tester".into(), &id));
    assert!(sent["seq"].as_u64().is_some(), "{sent}");
    let is_refusal = |line: &&Value| line["code"] == "denied" && span(line, "act").is_some();
    assert_eq!(lines.iter().filter(is_refusal).count(), 1);
    assert!(lines.iter().any(|line| line["message"].as_str().unwrap().starts_with("listens on")));
    let log = std::fs::read_to_string(home.join("host.log")).unwrap();
    for secret in secrets.into_iter().chain([token["text"].as_str().unwrap()]) {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
}

#[test]
fn the_log_is_text_and_quiet_about_acts_until_it_is_told_otherwise() {
    let home = Home::new();
    home.session("work", "cat");
    home.ok(&["send", "work", "hello", "--enter"]);
    let log = || std::fs::read_to_string(home.join("host.log")).unwrap();
    let first = log();
    assert!(first.contains(" INFO holdfast_host: listens on ") && !first.contains("act{"), "{first}");
    std::fs::write(home.join("config.toml"), "log = \"debug\"\n").unwrap();
    home.ok(&["host", "restart"]);
    home.ok(&["send", "work", "again", "--enter"]);
    let (second, id) = (log(), home.json(&["info", "work"])["id"].clone());
    let line = second.lines().find(|line| line.contains("what=\"session.send\"")).expect(&second);
    assert!(
        line.contains(" DEBUG act{who=human:tester") && line.contains(&format!("session={}", id.as_str().unwrap())),
        "{line}"
    );
    assert!(home.ok(&["host", "start", "--log", "json"]).contains("restarted; 1 session kept running"));
    assert!(log().lines().last().unwrap().starts_with('{'), "{}", log());
}
