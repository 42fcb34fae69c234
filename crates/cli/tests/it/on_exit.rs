//! `run --on-exit`: the end of a run reaches its receiver at least once, whatever happens to host and receiver.

use crate::notify::{posted, receive};
use holdfast_harness::{Home, holds_within, kill, until};
use serde_json::Value;
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// A receiver, and its address.
fn receiver() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, format!("http://127.0.0.1:{port}/hook-token"))
}

/// A home with a session of bash.
fn with_shell() -> Home {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "work", "--", "bash"]);
    home
}

/// Starts a run and does not wait for it; its id.
fn start(home: &Home, args: &[&str]) -> String {
    let ran = home.run(&[&["--json", "run"], args].concat());
    let answer: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{args:?}: {ran}"));
    answer["id"].as_str().unwrap().to_owned()
}

/// The next request, not answered yet: its connection, its delivery and its body.
fn next(listener: &TcpListener) -> (TcpStream, String, Value) {
    let (mut stream, _) = listener.accept().unwrap();
    let (head, body) = receive(&mut stream);
    (stream, delivery(&head), serde_json::from_str(&body).unwrap())
}

fn delivery(head: &str) -> String {
    head.lines().find_map(|line| line.strip_prefix("x-holdfast-delivery: ")).unwrap().to_owned()
}

fn answer(stream: &mut TcpStream, status: &str) {
    stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
}

/// Files of those who are still to be told.
fn kept(home: &Home) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(home.join("hooks")).into_iter().flatten().flatten();
    // One that is written anew is there under its name all the same.
    files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

#[test]
fn the_end_of_a_run_is_posted_signed_and_tried_again() {
    let (listener, url) = receiver();
    let home = with_shell();
    std::fs::write(home.join("secret"), "key\n").unwrap();
    let secret = home.join("secret").display().to_string();
    let command = "echo out; sh -c 'exit 3'";
    let told = ["--on-exit", &url, "--on-exit-secret", &secret];
    let id = start(&home, &[&["work", "--key", "deploy 1"], &told[..], &["--", command]].concat());
    let [file] = &kept(&home)[..] else { panic!("one file") };
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let (head, told) = posted(&listener, &["500 Broken", "503 Busy"]);
    assert!(head.starts_with("post /hook-token "), "{head}");
    assert_eq!((delivery(&head), &told["delivery"]), (id.clone(), &id.as_str().into()));
    let run = &told["run"];
    assert_eq!((&run["id"], &run["key"], &run["command"]), (&id.as_str().into(), &"deploy 1".into(), &command.into()));
    assert_eq!((&run["state"], &run["exit_code"], &run["end"]), (&"ended".into(), &3.into(), &"exact".into()));
    assert_eq!((&run["name"], &told["on"]), (&"work".into(), &"run".into()));
    assert!(run["from"].as_u64() < run["to"].as_u64() && told["at_ms"].as_u64() >= run["ended_ms"].as_u64(), "{told}");
    assert_eq!(run["cwd"], home.path().to_string_lossy().as_ref());
    until("the hook to be forgotten", || kept(&home).is_empty());
    let log = std::fs::read_to_string(home.join("host.log")).unwrap();
    let shown = [home.ok(&["--json", "run", "status", "deploy 1"]), home.ok(&["--json", "journal", "work"]), log];
    assert!(shown.iter().all(|text| !text.contains("hook-token") && !text.contains("\"key\"}")), "{shown:?}");
}

#[test]
fn a_host_that_is_killed_before_the_receiver_answers_tells_it_again() {
    let (listener, url) = receiver();
    let home = with_shell();
    let id = start(&home, &["work", "--on-exit", &url, "--", "sh -c 'exit 4'"]);
    let (first, delivered, told) = next(&listener);
    kill(home.host_pid());
    drop(first);
    home.ok(&["host", "start"]);
    let (mut second, again, told_again) = next(&listener);
    answer(&mut second, "200 OK");
    assert_eq!((&delivered, &again), (&id, &id));
    assert_eq!((told["run"]["exit_code"].clone(), &told), (4.into(), &told_again), "the same each time");
    until("the hook to be forgotten", || kept(&home).is_empty());
}

#[test]
fn a_run_that_ends_while_no_host_is_there_is_told_by_the_next() {
    for new in [false, true] {
        let (listener, url) = receiver();
        let home = with_shell();
        let (go, done) = (home.join("go"), home.join("done"));
        let script = format!("until test -e {}; do sleep 0.01; done; : > {}; exit 5", go.display(), done.display());
        let mut args = if new { vec!["--new"] } else { vec!["work"] };
        args.extend(["--timeout", "0", "--on-exit", &url, "--", "sh", "-c", &script]);
        let id = start(&home, &args);
        kill(home.host_pid());
        std::fs::write(&go, "").unwrap();
        until("the run's end", || done.exists());
        home.ok(&["host", "start"]);
        let (mut stream, delivered, told) = next(&listener);
        answer(&mut stream, "204 No Content");
        assert_eq!((delivered, &told["run"]["exit_code"]), (id, &5.into()), "{told}");
    }
}

#[test]
fn what_was_cancelled_and_what_was_lost_is_told_too() {
    let (listener, url) = receiver();
    let home = with_shell();
    let id = start(&home, &["work", "--timeout", "0", "--on-exit", &url, "--", "sleep 1000"]);
    home.ok(&["run", "cancel", &id]);
    let (mut stream, _, told) = next(&listener);
    answer(&mut stream, "200 OK");
    assert_eq!(told["run"]["state"], "cancelled", "{told}");
    let id = start(&home, &["work", "--timeout", "0", "--on-exit", &url, "--", "sleep 1000"]);
    let keeper = home.json(&["info", "work"])["keeper_pid"].as_u64().unwrap();
    kill(u32::try_from(keeper).unwrap());
    let (mut stream, delivered, told) = next(&listener);
    answer(&mut stream, "200 OK");
    assert_eq!((delivered, &told["run"]["state"]), (id, &"lost".into()), "{told}");
}

#[test]
fn a_receiver_that_never_answers_holds_up_nobody_and_is_told_again() {
    let (silent, silent_url) = receiver();
    let (other, other_url) = receiver();
    let home = with_shell();
    let id = start(&home, &["work", "--on-exit", &silent_url, "--", "true"]);
    let (held, delivered, _) = next(&silent);
    start(&home, &["work", "--on-exit", &other_url, "--", "false"]);
    let (mut stream, _, told) = next(&other);
    answer(&mut stream, "200 OK");
    assert_eq!(told["run"]["exit_code"], 1);
    let (mut stream, again, _) = next(&silent);
    answer(&mut stream, "200 OK");
    assert_eq!((&delivered, &again), (&id, &id));
    drop(held);
    until("the hooks to be forgotten", || kept(&home).is_empty());
}

#[test]
fn a_redirect_is_not_followed() {
    let (listener, url) = receiver();
    let (elsewhere, elsewhere_url) = receiver();
    let home = with_shell();
    start(&home, &["work", "--on-exit", &url, "--", "true"]);
    let (mut stream, _, _) = next(&listener);
    let moved = format!("HTTP/1.1 307 Moved\r\nLocation: {elsewhere_url}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(moved.as_bytes()).unwrap();
    // Asked again is the one that was named.
    let (mut stream, _, _) = next(&listener);
    answer(&mut stream, "410 Gone");
    until("the hook to be given up", || kept(&home).is_empty());
    elsewhere.set_nonblocking(true).unwrap();
    assert_eq!(elsewhere.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn who_is_told_is_settled_when_the_run_starts() {
    let (listener, url) = receiver();
    let home = with_shell();
    let wrong = home.run(&["run", "work", "--on-exit", "ftp://example.org", "--", "true"]);
    assert!(wrong.err.contains("http:// or https://"), "{wrong}");
    start(&home, &["work", "--key", "once", "--on-exit", &url, "--timeout", "0", "--", "sleep 1000"]);
    let busy = home.run(&["run", "work", "--on-exit", &url, "--", "true"]);
    assert!(busy.err.contains("holdfast:"), "{busy}");
    start(&home, &["work", "--key", "once", "--on-exit", "http://127.0.0.1:1/", "--timeout", "0", "--", "sleep 1000"]);
    assert_eq!(kept(&home).len(), 1, "neither what was not run nor what was there");
    home.ok(&["run", "cancel", "once"]);
    let (mut stream, _, _) = next(&listener);
    answer(&mut stream, "200 OK");
    until("the hook to be forgotten", || kept(&home).is_empty());
}

#[test]
fn a_host_that_is_stopped_does_not_wait_for_a_receiver() {
    let (listener, url) = receiver();
    let home = with_shell();
    let id = start(&home, &["work", "--on-exit", &url, "--", "true"]);
    let (held, _, _) = next(&listener);
    let host = home.host_pid();
    home.ok(&["host", "stop"]);
    let gone = || !std::path::Path::new(&format!("/proc/{host}")).exists();
    // Shorter than an attempt may take.
    assert!(holds_within(Duration::from_secs(6), gone));
    home.ok(&["host", "start"]);
    let (mut stream, again, _) = next(&listener);
    answer(&mut stream, "200 OK");
    assert_eq!(again, id);
    drop(held);
}

#[test]
fn a_session_is_not_cleared_before_what_is_told_of_it_is_kept() {
    let (listener, url) = receiver();
    let home = Home::new();
    std::fs::write(home.join("config.toml"), "ended_keep = \"0s\"\n").unwrap();
    let id = start(&home, &["--new", "--on-exit", &url, "--timeout", "0", "--", "sh", "-c", "exit 6"]);
    let (first, _, told) = next(&listener);
    until("the session to be cleared", || home.run(&["run", "status", &id]).err.contains("no run "));
    kill(home.host_pid());
    drop(first);
    home.ok(&["host", "start"]);
    let (mut stream, _, again) = next(&listener);
    answer(&mut stream, "200 OK");
    assert_eq!((&told["run"]["exit_code"], &told), (&6.into(), &again));
}

#[test]
fn of_a_run_that_a_killed_host_never_started_lost_is_told_unless_its_key_is_free() {
    let (listener, url) = receiver();
    let home = with_shell();
    let id = start(&home, &["work", "--timeout", "0", "--on-exit", &url, "--", "sleep 1000"]);
    kill(home.host_pid());
    let file = std::fs::read(&kept(&home)[0]).unwrap();
    let text = String::from_utf8(holdfast_store::HOOK.open(&file).unwrap().bytes().to_vec()).unwrap();
    // As a host leaves them that is killed before the session is made.
    let leave = |number: usize, key: Option<&str>| {
        let other = format!("run_{number:026}");
        let mut hook: Value = serde_json::from_str(&text.replace(&id, &other)).unwrap();
        hook["session"] = format!("ses_{number:026}").into();
        hook["run"]["key"] = key.into();
        std::fs::write(home.join("hooks").join(format!("{other}.json")), hook.to_string()).unwrap();
        other
    };
    let lost = leave(1, None);
    leave(2, Some("free"));
    home.ok(&["host", "start"]);
    let (mut stream, delivered, told) = next(&listener);
    answer(&mut stream, "200 OK");
    assert_eq!((delivered, &told["run"]["state"]), (lost, &"lost".into()), "{told}");
    until("nobody else to be told", || kept(&home).len() == 1);
    assert!(kept(&home)[0].ends_with(format!("{id}.json")), "what is on is told when it is over");
    home.ok(&["run", "cancel", &id]);
    let (mut stream, delivered, _) = next(&listener);
    answer(&mut stream, "200 OK");
    assert_eq!(delivered, id);
}
