//! `[[notify]]`: who shall know is told, once, with how to answer.

use crate::home::{Home, until};
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
fn receive(stream: &mut TcpStream) -> (String, String) {
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

#[test]
fn a_webhook_is_signed_and_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let rules = format!("[[notify]]\non = [\"exit\"]\nwebhook = \"http://127.0.0.1:{port}/hook\"\nsecret = \"key\"\n");
    let home = home(&rules);
    home.session("work", "exit 3");
    let (mut refused, _) = listener.accept().unwrap();
    let (_, first) = receive(&mut refused);
    refused.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n").unwrap();
    drop(refused);
    let (mut taken, _) = listener.accept().unwrap();
    let (head, body) = receive(&mut taken);
    taken.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    assert_eq!(first, body);
    assert!(head.starts_with("post /hook "), "{head}");
    let event: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&event["on"], &event["event"]["exit"]["code"]), (&"exit".into(), &3.into()));
    // By another implementation than our own.
    let file = home.join("body");
    std::fs::write(&file, &body).unwrap();
    let check = "import hmac,sys; print(hmac.new(b'key', open(sys.argv[1],'rb').read(), 'sha256').hexdigest())";
    let digest = Command::new("python3").args(["-c", check]).arg(&file).output().unwrap();
    let digest = String::from_utf8(digest.stdout).unwrap();
    assert!(head.contains(&format!("x-holdfast-signature: sha256={}", digest.trim())), "{head}");
}

#[test]
fn a_mistake_in_a_rule_is_told_with_its_place() {
    let home = home("grace = 1\n[[notify]]\non = [\"approval\"]\nring = true\n");
    let ran = home.run(&["new", "-d"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("config.toml:2: notify: rule 1: on: \"approval\" is not there yet"), "{ran}");
}
