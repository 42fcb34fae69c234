//! `send`: what is typed arrives once, in order, byte for byte.

use holdfast_harness::{Home, until};

/// A session that shows the bytes it reads, as it reads them.
fn showing_bytes(home: &Home) {
    home.session("work", "stty raw -echo; echo ready; exec od -An -v -tx1 -w1");
    home.until_screen_shows("work", "ready");
}

/// The bytes the session has read so far.
fn bytes_read(home: &Home) -> Vec<u8> {
    let text = home.ok(&["logs", "work", "--plain"]);
    text.split_whitespace().filter_map(|word| u8::from_str_radix(word, 16).ok()).collect()
}

#[test]
fn text_keys_and_standard_input_arrive_as_a_terminal_sends_them() {
    let home = Home::new();
    showing_bytes(&home);
    home.ok(&["send", "work", "ls", "x", "--enter"]);
    home.ok(&["send", "work", "--", "-la"]);
    home.ok(&["send", "work", "--enter"]);
    home.ok(&["send", "work", "--key", "C-c", "--key", "Up", "--key", "F1", "--key", "M-x", "--key", "C-\\"]);
    assert_eq!(home.run_with_input(&["send", "work", "--stdin"], b"\0\xffend\n").status, 0);
    let expected = b"ls x\r-la\r\x03\x1b[A\x1bOP\x1bx\x1c\0\xffend\n";
    // od writes when its buffer is full: enough more bytes make it speak.
    until("the bytes", || {
        home.run_with_input(&["send", "work", "--stdin"], &[b'.'; 512]);
        bytes_read(&home).len() >= expected.len()
    });
    assert_eq!(&bytes_read(&home)[..expected.len()], expected);
}

#[test]
fn a_long_text_arrives_whole_and_in_order() {
    let home = Home::new();
    let count = 200_000;
    home.session("work", &format!("stty raw -echo; echo ready; head -c {count} | cksum; exec cat"));
    home.until_screen_shows("work", "ready");
    let text: Vec<u8> = (0..count).map(|i: u32| b'a' + (i % 26) as u8).collect();
    let file = home.join("text");
    std::fs::write(&file, &text).unwrap();
    let ran = home.run_with_input(&["send", "work", "--stdin"], &text);
    assert_eq!(ran.status, 0, "{ran}");
    let sum = std::process::Command::new("cksum").arg(&file).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    home.until_screen_shows("work", sum.trim_end_matches(&format!(" {}\n", file.display())));
}

#[test]
fn typing_into_a_session_that_ended_is_refused() {
    let home = Home::new();
    home.session("work", "exit 0");
    home.run(&["wait", "work"]);
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!(home.run(&["send", "work", "x"]));
}

/// A program that asked for the application form of cursor keys gets it, as from a terminal.
#[test]
fn cursor_keys_come_in_the_form_the_program_asked_for() {
    let home = Home::new();
    let script = "stty raw -echo; printf '\\033[?1hready'; head -c 3 | od -An -c; printf '\\033[?1lnormal'; head -c 3 | od -An -c; cat";
    home.ok(&["new", "-d", "-n", "work", "--", "sh", "-c", script]);
    home.until_screen_shows("work", "ready");
    home.ok(&["send", "work", "--key", "Up"]);
    home.until_screen_shows("work", "033   O   A");
    home.until_screen_shows("work", "normal");
    home.ok(&["send", "work", "--key", "Up"]);
    home.until_screen_shows("work", "033   [   A");
}
