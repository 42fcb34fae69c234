//! `send --secret`: to who does not show it, and into no file.

use holdfast_harness::{Home, Terminal, until};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

const SECRET: &str = "correct-horse-battery";

/// Files below a directory in which the secret stands.
fn files_with_secret(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files_with_secret(&path));
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

fn send_secret(home: &Home, more: &[&str]) -> holdfast_harness::Ran {
    home.run_with_input(
        &[&["--json", "send", "work", "--secret", "--stdin"], more].concat(),
        format!("{SECRET}\n").as_bytes(),
    )
}

#[test]
fn a_secret_goes_to_who_does_not_show_it_and_stays_nowhere() {
    let home = Home::new();
    home.ok(&[
        "new",
        "-d",
        "-n",
        "work",
        "--",
        "bash",
        "-c",
        "read -sp 'Password: ' x; echo; echo got ${#x}; sleep 1000",
    ]);
    home.ok(&["wait", "work", "--for", "waiting", "--timeout", "20"]);
    let follow = |args: &[&str]| home.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let followers =
        [&["logs", "work", "--follow"][..], &["journal", "work", "--follow"], &["--json", "watch", "work"]].map(follow);
    let sent = send_secret(&home, &[]);
    assert_eq!(sent.status, 0, "{sent}");
    home.until_screen_shows("work", &format!("got {}", SECRET.len()));
    let journal = home.ok(&["journal", "work", "--json"]);
    assert!(journal.contains(&format!("\"len\":{}", SECRET.len() + 1)), "{journal}");
    let looks: [&[&str]; 8] = [
        &["logs", "work"],
        &["--json", "logs", "work"],
        &["journal", "work"],
        &["--json", "journal", "work"],
        &["screen", "work", "--history", "100"],
        &["export", "work", "--asciicast", "--input"],
        &["--json", "graph", "work"],
        &["--json", "info", "work"],
    ];
    for look in looks {
        let told = home.ok(look);
        assert!(!told.is_empty() && !told.contains(SECRET), "{look:?}: {told}");
    }
    assert_eq!(files_with_secret(home.path()), [""; 0], "while it runs");
    home.ok(&["end", "work", "--grace", "0"]);
    for follower in followers {
        let told = follower.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout).into_owned() + &String::from_utf8_lossy(&told.stderr);
        assert!(!told.is_empty() && !told.contains(SECRET), "{told}");
    }
    home.ok(&["host", "stop"]);
    assert_eq!(files_with_secret(home.path()), [""; 0]);
}

#[test]
fn a_secret_is_refused_while_the_terminal_shows_what_is_typed() {
    let home = Home::new();
    home.session("work", "read x; echo \"<$x>\"; sleep 1000");
    home.ok(&["wait", "work", "--for", "waiting", "--timeout", "20"]);
    let refused = send_secret(&home, &[]);
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains("\"code\":\"echo_on\""), "{refused}");
    assert_eq!(files_with_secret(home.path()), [""; 0]);
    // Nothing was taken by it either.
    assert!(home.json(&["turn", "work"])["holder"].is_null());
    assert_eq!(send_secret(&home, &["--force"]).status, 0);
    home.until_screen_shows("work", &format!("<{SECRET}>"));
    assert!(!home.ok(&["journal", "work", "--json"]).contains(SECRET), "the journal keeps its length, forced or not");
}

#[test]
fn a_line_editor_is_no_password_prompt() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc", "--noprofile"]);
    home.ok(&["wait", "work", "--for", "idle", "--timeout", "20"]);
    let refused = send_secret(&home, &[]);
    assert!(refused.err.contains("echo_on"), "{refused}");
    until("nothing on the screen", || !home.ok(&["screen", "work"]).contains(SECRET));
}

#[test]
fn a_secret_has_a_bound_and_no_text_beside_it() {
    let home = Home::new();
    home.session("work", "stty -echo; read x; sleep 1000");
    let long = home.run_with_input(&["send", "work", "--secret", "--stdin"], &[b'x'; 5000]);
    assert!(long.err.contains("at most 4095 bytes"), "{long}");
    for wrong in [&["send", "work", "--secret", "text"][..], &["send", "work", "--force", "text"]] {
        assert_eq!(home.run(wrong).status, 2, "{wrong:?}");
    }
}

#[test]
fn what_a_person_types_into_a_program_that_does_not_show_it_is_a_length_in_the_journal() {
    let getpass = "python3 -c 'import getpass; print(\"got\", len(getpass.getpass()))'";
    let programs: [&[&str]; 3] = [
        &["bash", "-c", "echo Password:; IFS= read -rs -n 21 x; echo got ${#x}; sleep 1000"],
        &["bash", "-c", &format!("script -qec \"{}\" /dev/null; sleep 1000", getpass.replace('"', "\\\""))],
        &["fish", "-c", "read -s -P Password: x; echo got (string length $x); sleep 1000"],
    ];
    let home = Home::new();
    for (n, program) in programs.iter().enumerate() {
        let name = format!("asks-{n}");
        home.ok(&[&["new", "-d", "-n", &name, "--"][..], program].concat());
        let (terminal, _client) = Terminal::attached(&home, &name, "80x24");
        terminal.wait_text("Password:");
        terminal.types(format!("{SECRET}\r"));
        terminal.wait_text(&format!("got {}", SECRET.len()));
        let journal = home.ok(&["--json", "journal", &name]);
        assert!(!journal.contains(SECRET), "{program:?}: {journal}");
        let typed = |line: &str| line.contains("\"typed\"").then(|| serde_json::from_str::<Value>(line).unwrap());
        let lengths: u64 =
            journal.lines().filter_map(typed).map(|line| line["act"]["typed"]["len"].as_u64().unwrap()).sum();
        assert_eq!(lengths, SECRET.len() as u64 + 1, "{program:?}: {journal}");
        home.ok(&["end", &name, "--grace", "0"]);
    }
}

#[test]
fn what_a_person_types_at_a_prompt_is_in_the_journal() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        home.ok(&["new", "-d", "-n", shell, "--", shell]);
        let (terminal, _client) = Terminal::attached(&home, shell, "80x24");
        home.ok(&["run", shell, "--", "echo", "ready"]);
        terminal.types(format!("printf '%s-%d' {shell} 21\r"));
        terminal.wait_text(&format!("{shell}-21"));
        let journal = home.ok(&["journal", shell]);
        assert!(journal.contains(&format!("printf '%s-%d' {shell} 21")), "{journal}");
        home.ok(&["end", shell, "--grace", "0"]);
    }
}
