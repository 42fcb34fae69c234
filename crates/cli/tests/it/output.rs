//! `screen` and `logs`: text and bytes by offset.

use holdfast_harness::{Home, PATIENCE, kill};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

/// Writes this many numbered lines of 100 bytes each.
fn lines(count: u32) -> String {
    format!("i=0; while [ $i -lt {count} ]; do printf '%098d\\n' $i; i=$((i+1)); done")
}

#[test]
fn logs_are_the_bytes_and_resume_at_any_offset() {
    let home = Home::new();
    home.session("work", "printf 'one\\033[31m two\\033[m\\r\\nthree\\n'");
    home.run(&["wait", "work"]);
    let all = "one\x1b[31m two\x1b[m\r\r\nthree\r\n";
    assert_eq!(home.ok(&["logs", "work"]), all);
    for from in [0, 4, all.len() - 1, all.len()] {
        assert_eq!(home.ok(&["logs", "work", "--from", &from.to_string()]), all[from..], "from {from}");
    }
    assert_eq!(home.ok(&["logs", "work", "--plain"]), "one two\nthree\n");
    let document = home.json(&["logs", "work", "--from", "18"]);
    let expected = json!({
        "from": 18, "to": 25, "end": true, "gaps": [], "text": "three\r\n", "bytes_base64": "dGhyZWUNCg==",
    });
    assert_eq!(document, expected);
}

#[test]
fn plain_output_shows_each_command_once() {
    for shell in ["bash", "zsh", "fish"] {
        let home = Home::new();
        std::fs::write(home.join(".zshrc"), "PS1='z> '\n").unwrap();
        home.ok(&["new", "-d", "-n", "work", "--", shell]);
        let mut follower = home.command(&["logs", "work", "--follow", "--plain"]);
        let follower = follower.stdout(Stdio::piped()).spawn().unwrap();
        home.ok(&["run", "work", "--", "echo 'first thing'"]);
        home.ok(&["run", "work", "--", "echo 'second\nthing'"]);
        let text = home.ok(&["logs", "work", "--plain"]);
        let once = |text: &str, what: &str| assert_eq!(text.matches(what).count(), 1, "{shell} {what}: {text}");
        let commands = |text: &str| {
            once(text, "echo 'first thing'");
            once(text, "echo 'second\n");
            assert!(!text.contains("holdfast/run"), "{shell}: {text}");
        };
        commands(&text);
        home.ok(&["end", "work"]);
        let followed = follower.wait_with_output().unwrap();
        commands(&String::from_utf8_lossy(&followed.stdout));
    }
}

#[test]
fn what_rolled_out_of_the_ring_is_a_gap_never_silence() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "work", "--ring", "256k", "--", "sh", "-c", &lines(6000)]);
    home.run(&["wait", "work"]);
    let total = 6000 * 100;
    let view = home.json(&["info", "work"]);
    assert_eq!(view["head"], total);
    let oldest = view["oldest"].as_u64().unwrap();
    assert!(oldest > 0, "the ring was lapped");
    let ran = home.run(&["logs", "work", "--from", "100"]);
    assert_eq!(ran.err, format!("holdfast: gap: bytes 100..{oldest} are no longer kept\n"));
    assert_eq!(ran.out.len() as u64, total - oldest, "everything behind the gap");
    assert!(ran.out.ends_with(&format!("{:098}\r\n", 5999)));
    assert_eq!(home.json(&["logs", "work", "--from", "100"])["gaps"], json!([{"from": 100, "to": oldest}]));
    let followed = home.ok(&["--json", "logs", "work", "--from", "100", "--follow"]);
    let first: Value = serde_json::from_str(followed.lines().next().unwrap()).unwrap();
    assert_eq!(first, json!({"gap": {"from": 100, "to": oldest}}));
}

#[test]
fn follow_goes_on_until_the_session_ends() {
    let home = Home::new();
    home.session("work", "echo ready; read line; echo got $line; exit 3");
    home.until_screen_shows("work", "ready");
    let mut command = home.command(&["--json", "logs", "work", "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(follower.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&out.next().unwrap().unwrap()).unwrap();
    assert_eq!(first, json!({"offset": 0, "text": "ready\r\n", "bytes_base64": "cmVhZHkNCg=="}));
    home.ok(&["send", "work", "--enter", "hello"]);
    let rest: Vec<Value> = out.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let text: String = rest.iter().filter_map(|line| line["text"].as_str()).collect();
    assert_eq!(text, "hello\r\ngot hello\r\n");
    assert_eq!(rest.last().unwrap(), &json!({"end": {"offset": 7 + text.len()}}));
    assert!(follower.wait().unwrap().success());
}

#[test]
fn a_follower_survives_the_crash_of_its_host_without_losing_or_doubling_a_byte() {
    let home = Home::new();
    let (crashes, count) = (5, 2000);
    let script = format!("stty -echo; echo ready; for flood in $(seq {crashes}); do read go; {}; done", lines(count));
    home.ok(&["new", "-d", "-n", "work", "--ring", "4m", "--", "sh", "-c", &script]);
    // Before that what is sent would be shown, and be more than the floods.
    home.until_screen_shows("work", "ready");
    let mut command = home.command(&["logs", "work", "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = follower.stdout.take().unwrap();
    let (sender, pieces) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut piece = [0; 8192];
        while let count @ 1.. = out.read(&mut piece).unwrap() {
            sender.send(piece[..count].to_vec()).unwrap();
        }
    });
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\n") {
        bytes.extend(pieces.recv_timeout(PATIENCE).unwrap());
    }
    for _ in 0..crashes {
        home.ok(&["send", "work", "--enter", "go"]);
        // The host dies in the middle of the flood; the follower, or the next `send`, starts another.
        bytes.extend(pieces.recv_timeout(PATIENCE).unwrap());
        kill(home.host_pid());
        bytes.extend(pieces.try_iter().flatten());
    }
    bytes.extend(pieces.iter().flatten());
    reader.join().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(follower.wait().unwrap().success());
    let flood: String = (0..count).map(|i| format!("{i:098}\r\n")).collect();
    let expected = format!("ready\r\n{}", flood.repeat(crashes));
    assert!(text == expected, "{} bytes instead of {}", text.len(), expected.len());
}

#[test]
fn the_screen_is_told_as_text_with_attributes_and_with_history() {
    let home = Home::new();
    let script = "i=1; while [ $i -le 9 ]; do echo line $i; i=$((i+1)); done; printf '\\033[31mred\\033[m'; exec cat";
    home.ok(&["new", "-d", "-n", "work", "--size", "40x4", "--", "sh", "-c", script]);
    home.until_screen_shows("work", "red");
    assert_eq!(home.ok(&["screen", "work"]), "line 7\nline 8\nline 9\nred\n");
    assert_eq!(home.ok(&["screen", "work", "--history", "2"]), "line 5\nline 6\nline 7\nline 8\nline 9\nred\n");
    let coloured = home.ok(&["screen", "work", "--ansi"]);
    assert!(coloured.contains("\x1b[") && coloured.contains("red"), "{coloured:?}");
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!(home.ok(&["--json", "screen", "work", "--history", "1"]));
}
