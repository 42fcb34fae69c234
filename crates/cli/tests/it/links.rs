//! What logs in, or stands for somebody, is in no argument and no environment: every user of the machine can read the one, and
//! every program that is started inherits the other.

use crate::actors::run_on_terminal;
use crate::http::Http;
use holdfast_harness::{Home, program, until};
use std::os::unix::fs::PermissionsExt;

/// A browser that writes down how it was started, and asks what it was sent to.
const BROWSER: &str = r#"#!/bin/bash
tr '\0' '\n' < /proc/$$/cmdline > "$HOME/opened.args"
tr '\0' '\n' < /proc/$$/environ > "$HOME/opened.env"
address=${1#http://}; address=${address%%/*}
exec 3<>"/dev/tcp/${address%:*}/${address##*:}"
printf 'GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$address" >&3
cat <&3 > "$HOME/opened.answer"
"#;

#[test]
fn a_login_link_reaches_the_browser_by_no_argument_and_no_environment() {
    let http = Http::new();
    let browser = http.home.join("browser/xdg-open");
    std::fs::create_dir(http.home.join("browser")).unwrap();
    std::fs::write(&browser, BROWSER).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = http.home.command(&["web"]);
    command.env("DISPLAY", ":7").env("PATH", format!("{}:/usr/bin:/bin", http.home.join("browser").display()));
    let ran = run_on_terminal(command);
    assert_eq!(ran.status, 0, "{ran}");
    let link = ran.out.lines().find(|line| line.contains("/#code=")).unwrap_or_else(|| panic!("{ran}")).trim();
    let code = link.split_once("#code=").unwrap().1;
    let read = |name: &str| std::fs::read_to_string(http.home.join(name)).unwrap();
    for seen in ["opened.args", "opened.env"] {
        assert!(!read(seen).contains(code), "{seen}: {}", read(seen));
    }
    // The program is done once it has answered, the browser once it has written that down.
    let answer = until("what the browser was told", || {
        std::fs::read_to_string(http.home.join("opened.answer")).ok().filter(|answer| answer.contains("\r\n\r\n"))
    });
    assert!(answer.contains(&format!("\r\nLocation: {link}\r\n")) && answer.contains("no-store"), "{answer}");
}

#[test]
fn a_terminal_that_others_watch_shows_no_link_and_no_token() {
    let home = Home::new();
    let program = program();
    let call = |what: &str| format!("{} {what}; echo status $?", program.display());
    home.session("work", &format!("{}; {}; {}; exec cat", call("token new"), call("web"), call("token new | wc -c")));
    home.until_screen_shows("work", "status 0");
    let logs = home.ok(&["logs", "work"]);
    assert!(!logs.contains("hf_") && !logs.contains("code="), "{logs}");
    assert_eq!(logs.matches("status 1").count(), 2, "{logs}");
    assert_eq!(home.json(&["token", "ls"]).as_array().unwrap().len(), 1, "none was made in vain");
}

#[test]
fn a_token_of_the_environment_stays_with_the_program_that_has_it() {
    let home = Home::new();
    let script = "env > of-session; exec cat";
    let mut command = home.command(&["new", "-d", "-n", "work", "--", "/bin/sh", "-c", script]);
    command.env("HOLDFAST_TOKEN", "hf_mine").env("HOLDFAST_URL", "http://127.0.0.1:1").env("KEPT", "kept");
    assert!(command.stdout(std::process::Stdio::null()).status().unwrap().success());
    let session = until("the session's variables", || {
        std::fs::read_to_string(home.join("of-session")).ok().filter(|env| env.contains("KEPT="))
    });
    let host = std::fs::read(format!("/proc/{}/environ", home.host_pid())).unwrap();
    assert!(!session.contains("hf_mine") && !session.contains("HOLDFAST_URL"), "{session}");
    assert!(!String::from_utf8_lossy(&host).contains("hf_mine"), "the host has it");
}
