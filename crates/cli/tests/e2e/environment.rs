//! What a session may take over from the client that attached last.

use holdfast_harness::{DETACH, Home, Terminal, until};
use std::path::Path;

#[test]
fn the_agent_link_and_the_variables_follow_the_latest_client() {
    let home = Home::new();
    let mut command = home.command(&["new", "-d", "-n", "s", "--", "bash", "--norc", "-c"]);
    command.arg("echo agent=$SSH_AUTH_SOCK; echo file=$HOLDFAST_ENV; exec cat").env("SSH_AUTH_SOCK", "/nowhere/first");
    assert!(command.stdout(std::process::Stdio::null()).status().unwrap().success());
    home.ok(&["resize", "s", "200x24"]);
    home.until_screen_shows("s", "file=");
    let logs = home.ok(&["logs", "s"]);
    let value = |key: &str| logs.lines().find_map(|line| line.trim_end().strip_prefix(key)).unwrap().to_owned();
    let (link, file) = (value("agent="), value("file="));
    assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("/nowhere/first"));
    for (agent, display, lang) in
        [("/nowhere/se'cond", ":1", "C.UTF-8"), ("/nowhere/third", "a 'quoted' $(touch pwned) \"d\" \\", "")]
    {
        let terminal = Terminal::new("200x24");
        let mut command = home.command(&["attach", "s"]);
        command.env("SSH_AUTH_SOCK", agent).env("DISPLAY", display).env("LANG", lang).env("TERM", "xterm-kitty");
        let mut client = terminal.start(command);
        until("the link to follow", || (std::fs::read_link(&link).unwrap() == Path::new(agent)).then_some(()));
        until("the file", || Path::new(&file).exists().then_some(()));
        let sourced = |name: &str| {
            let script = format!("set -u; . \"$0\"; printf %s \"${name}\"");
            let output = std::process::Command::new("bash").args(["-c", &script, &file]).env_clear().output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        until("the file to follow", || (sourced("DISPLAY") == display).then_some(()));
        assert_eq!(sourced("SSH_AUTH_SOCK"), link, "the stable link, not the agent itself");
        assert_eq!((sourced("TERM"), sourced("LANG")), ("xterm-kitty".into(), lang.into()));
        terminal.wait_text("agent=");
        terminal.types(DETACH);
        assert_eq!(client.wait(), 0);
    }
    assert!(!home.join("pwned").exists());
    home.kill_host();
    home.ok(&["ls"]);
    assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("/nowhere/third"));
}

#[test]
fn a_session_knows_its_name_and_id_and_refuses_to_be_nested() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_holdfast");
    home.session(
        "outer",
        &format!("echo $HOLDFAST_SESSION $HOLDFAST_SESSION_NAME; {program} attach outer; echo status $?; exec cat"),
    );
    let id = home.json(&["info", "outer"])["id"].as_str().unwrap().to_owned();
    home.until_screen_shows("outer", &format!("{id} outer"));
    home.until_screen_shows("outer", "status 1");
    assert!(home.ok(&["screen", "outer"]).contains("inside session outer"));
}
