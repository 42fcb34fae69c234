//! `[[notify]]`: who shall know is told, once, with how to answer.

use holdfast_harness::{Home, until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

/// A home with these rules.
fn home(rules: &str) -> Home {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), rules).unwrap();
    home
}

/// What a command wrote into a file, one JSON document a line.
fn told(home: &Home) -> Vec<Value> {
    let text = std::fs::read_to_string(home.join("told")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_command_is_told_who_waits_for_what_and_how_to_answer() {
    let place = tempfile::tempdir().unwrap();
    let vars = place.path().join("vars");
    let home = Home::new();
    let script =
        format!("cat >> {}; env | grep ^HOLDFAST_EVENT | sort >> {}", home.join("told").display(), vars.display());
    let rules = format!(
        "[[notify]]\non = [\"waiting\", \"exit\"]\nsession = \"work*\"\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n"
    );
    std::fs::write(home.join("config.toml"), rules).unwrap();
    home.session("other", "read x");
    home.ok(&["new", "-d", "-n", "work-1", "--", "bash", "-c", "read -sp 'Password: ' x; exit 3"]);
    until("the first notification", || told(&home).len() == 1);
    let first = &told(&home)[0];
    assert_eq!((&first["on"], &first["event"]["prompt"]), (&"waiting".into(), &"Password:".into()));
    let text = first["text"].as_str().unwrap();
    assert!(text.contains("work-1 waits for a password: \"Password:\""), "{text}");
    assert!(text.contains("holdfast send work-1 --secret"), "{text}");
    home.run_with_input(&["send", "work-1", "--secret", "--stdin"], b"hush\n");
    until("the second notification", || told(&home).len() == 2);
    assert_eq!(told(&home)[1]["event"]["exit"]["code"], 3);
    let vars = || std::fs::read_to_string(&vars).unwrap_or_default();
    until("the variables", || vars().matches("HOLDFAST_EVENT=").count() == 2);
    assert!(vars().contains("HOLDFAST_EVENT_PROMPT=Password:\n"), "{}", vars());
    assert!(vars().contains("HOLDFAST_EVENT_NAME=work-1\n"), "{}", vars());
}

/// One request: its head and its body.
pub fn receive(stream: &mut TcpStream) -> (String, String) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

/// What a webhook is told: its head and body, after it has answered the first ones with these statuses.
pub fn posted(listener: &TcpListener, failures: &[&str]) -> (String, Value) {
    let mut first = None;
    for status in failures.iter().chain(&["204 No Content"]) {
        let (mut stream, _) = listener.accept().unwrap();
        let (head, body) = receive(&mut stream);
        stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
        let (before, told) = first.get_or_insert_with(|| (head.clone(), body.clone()));
        assert_eq!((signature(&head), &body), (signature(before), &*told), "the same each time");
    }
    let (head, body) = first.unwrap();
    assert_eq!(signature(&head), hmac("key", &body));
    (head, serde_json::from_str(&body).unwrap())
}

pub fn signature(head: &str) -> &str {
    head.lines().find_map(|line| line.strip_prefix("x-holdfast-signature: sha256=")).unwrap()
}

/// By another implementation than our own.
pub fn hmac(key: &str, body: &str) -> String {
    let script = "import hmac,sys; print(hmac.new(sys.argv[1].encode(), sys.argv[2].encode(), 'sha256').hexdigest())";
    let digest = Command::new("python3").args(["-c", script, key, body]).output().unwrap();
    String::from_utf8(digest.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_webhook_is_signed_and_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let rules = format!("[[notify]]\non = [\"exit\"]\nwebhook = \"http://127.0.0.1:{port}/hook\"\nsecret = \"key\"\n");
    let home = home(&rules);
    home.session("work", "exit 3");
    let (head, told) = posted(&listener, &["503 Busy", "500 Broken"]);
    assert!(head.starts_with("post /hook "), "{head}");
    assert_eq!((&told["on"], &told["event"]["exit"]["code"]), (&"exit".into(), &3.into()));
}

#[test]
fn everything_there_is_to_tell_reaches_a_command_and_a_webhook() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let home = Home::new();
    let on = r#"on = ["waiting", "exit", "approval", "turn_requested"]"#;
    let script = format!("cat >> {}", home.join("told").display());
    let rules = format!(
        "[[notify]]\n{on}\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n\
         [[notify]]\n{on}\nwebhook = \"http://127.0.0.1:{port}/\"\nsecret = \"key\"\n"
    );
    std::fs::write(home.join("config.toml"), rules).unwrap();
    home.ok(&["new", "-d", "-n", "work", "--", "bash", "-c", "read -p 'Name? ' x; exit 4"]);
    let (_, waits) = posted(&listener, &[]);
    assert_eq!((&waits["on"], &waits["event"]["prompt"]), (&"waiting".into(), &"Name?".into()));
    assert_eq!(waits["answer"], "holdfast attach work");
    home.ok(&["take", "work"]);
    // It waits for its answer, and is asked to wait no longer.
    home.run_as("agent:bot", &["request", "work"]);
    let (_, asks) = posted(&listener, &[]);
    assert_eq!((&asks["on"], &asks["event"]["by"]), (&"turn_requested".into(), &"agent:bot".into()));
    assert_eq!(asks["answer"], "holdfast give work --to agent:bot");
    home.ok(&["send", "work", "--enter", "ann"]);
    let (_, ends) = posted(&listener, &[]);
    assert_eq!((&ends["on"], &ends["event"]["exit"]["code"]), (&"exit".into(), &4.into()));
    until("the command to be told the same", || told(&home).len() == 3);
    let mut told = told(&home);
    told.sort_by_key(|one| one["event"]["seq"].as_u64());
    assert_eq!(told, [waits, asks, ends]);
}

#[test]
fn a_mistake_in_a_rule_is_told_with_its_place() {
    let home = home("grace = 1\n[[notify]]\non = [\"aproval\"]\nring = true\n");
    let ran = home.run(&["new", "-d"]);
    assert_eq!(ran.status, 1);
    let expected = "config.toml:2: notify: rule 1: on: expected waiting, exit, approval, turn_requested, question, run_ended or reap, not \"aproval\"";
    assert!(ran.err.contains(expected), "{ran}");
}
