//! A session of another user: the wall between an agent and the keys of the human who runs the host.

use holdfast_harness::{Home, gone, until};
use std::process::Stdio;

/// A user that every system has, and that owns nothing.
const NOBODY: &str = "nobody";

#[test]
fn a_run_of_another_user_is_that_users_and_types_into_no_terminal() {
    let home = Home::new();
    if !rustix::process::getuid().is_root() {
        return;
    }
    let ran = |script: &str| home.ok(&["run", "--new", "--user", NOBODY, "--", "sh", "-c", script]);
    assert_eq!(ran("id -u").trim(), "65534");
    // TIOCSTI and TIOCLINUX on its own terminal.
    for request in ["0x5412", "0x541c"] {
        let tries = format!("my $key = \"x\"; print ioctl(STDIN, {request}, $key) ? \"typed\" : $! + 0");
        assert_eq!(ran(&format!("perl -e '{tries}'")).trim(), "1", "{request}: EPERM");
    }
    assert_eq!(ran("stty size >/dev/null && echo works").trim(), "works");
}

#[test]
fn a_session_of_another_user_reaches_nothing_of_the_hosts_and_is_steered_as_any_other() {
    let home = Home::new();
    if !rustix::process::getuid().is_root() {
        assert!(home.fails(&["new", "-d", "--user", NOBODY]).contains("does not run as root"));
        return;
    }
    let script = format!(
        "echo uid $(id -u) $(id -un); for d in actors sessions run bin; do ls {0}/$d 2>/dev/null && echo OPEN; done; env | grep -q SECRET && echo LEAKED; \
         echo on >$(tty) && echo tty; pwd; echo $GIVEN; echo ready; exec cat",
        home.path().display()
    );
    let args = ["new", "-d", "-n", "walled", "--user", NOBODY, "--env", "GIVEN=given", "--", "sh", "-c", &script];
    let mut new = home.command(&args);
    new.env("MY_SECRET", "hunter2").env("SSH_AUTH_SOCK", "/tmp/agent").stdout(Stdio::null());
    assert!(new.status().unwrap().success());
    home.until_screen_shows("walled", "ready");
    let shown = home.ok(&["screen", "walled"]);
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    assert!(shown.starts_with("uid 65534 nobody\non\ntty\n"), "{shown}");
    assert!(lines.contains(&"/") && lines.contains(&"given"), "{shown}");
    assert!(!shown.contains("OPEN") && !shown.contains("LEAKED"), "{shown}");
    let view = home.json(&["info", "walled"]);
    assert_eq!(view["user"], NOBODY);
    let pid = view["pid"].as_u64().unwrap() as u32;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert_eq!(line("Uid:"), "Uid:\t65534\t65534\t65534\t65534");
    assert_eq!(line("CapEff:"), "CapEff:\t0000000000000000");
    home.ok(&["send", "walled", "--enter", "hello"]);
    home.until_screen_shows("walled", "hello\nhello");
    home.ok(&["seize", "walled", "--freeze", "--reason", "a look"]);
    home.ok(&["thaw", "walled"]);
    home.ok(&["end", "walled", "--grace", "0"]);
    until("its end", || gone(pid).then_some(()));
    assert!(home.fails(&["new", "-d", "--user", "root"]).contains("keeps nobody out"));
    assert!(home.fails(&["new", "-d", "--user", "no-such-user"]).contains("there is no user"));
}
