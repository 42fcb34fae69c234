//! Who runs inside a session, or was started by an agent, is no human unasked: by what the kernel says of the process, whatever
//! its environment says. A person there proves to be oneself from outside.

use holdfast_harness::{Home, TESTER, Terminal, program, settle, until};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};

const ANN: &str = "human:ann";
const BOT: &str = "agent:bot";

/// A home with two people, an agent, and a session whose shell does what it is told.
fn settled() -> Home {
    let home = Home::new();
    settle(home.path(), ANN);
    home.ok(&["actor", "new", BOT]);
    let script =
        "mkfifo go; echo ready; while read -r line < go; do sh -c \"$line\" > out 2>&1; echo $? > status; done";
    home.session("work", script);
    home.until_screen_shows("work", "ready");
    home
}

/// The program without anything in its environment that tells where it is, at a terminal of its own.
fn bare(home: &Home, args: &str) -> String {
    let own = format!("HOLDFAST_HOME={0} HOME={0} PATH=/usr/bin:/bin TERM=xterm", home.path().display());
    format!("env -i {own} script -qec '{} {args}' /dev/null", program().display())
}

/// Has the session's shell run a line, and does not wait.
fn begin(home: &Home, line: &str) {
    let _ = std::fs::remove_file(home.join("status"));
    std::fs::write(home.join("go"), format!("{line}\n")).unwrap();
}

/// How that ended, and what it printed.
fn ended(home: &Home) -> (i32, String) {
    let read = |name: &str| std::fs::read_to_string(home.join(name)).unwrap_or_default();
    let status = until("the end of what the session runs", || read("status").trim().parse().ok());
    (status, read("out"))
}

fn inside(home: &Home, line: &str) -> (i32, String) {
    begin(home, line);
    ended(home)
}

fn asked(home: &Home) -> String {
    let ran = home.run_as(BOT, &["--json", "ask", "-t", "work", "--timeout", "0", "Deploy?"]);
    serde_json::from_str::<Value>(&ran.out).unwrap()["id"].as_str().unwrap().to_owned()
}

fn state(home: &Home, id: &str) -> Value {
    let all = home.json(&["questions", "--all"]);
    all.as_array().unwrap().iter().find(|one| one["id"] == id).unwrap()["state"].clone()
}

/// The one question besides this, as soon as it is there.
fn confirmation(home: &Home, besides: &str) -> Value {
    until("the host to ask", || {
        let open = home.json(&["questions"]);
        open.as_array().unwrap().iter().find(|one| one["id"] != besides).cloned()
    })
}

#[test]
fn a_process_of_a_session_is_an_agent_whatever_its_environment_and_terminal() {
    let home = settled();
    let (status, out) = inside(&home, &bare(&home, "--json whoami"));
    assert_eq!(status, 0, "{out}");
    let me: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    assert!(me["actor"]["handle"].as_str().unwrap().starts_with("agent:") && me["because"] == "inside", "{me}");
    // Daemons too: their parent is the keeper.
    let daemon = format!("setsid -f {} > daemon 2>&1", bare(&home, "--json whoami"));
    inside(&home, &daemon);
    until("the daemon's word", || {
        std::fs::read_to_string(home.join("daemon")).unwrap_or_default().contains("inside").then_some(())
    });
    let id = asked(&home);
    let (status, out) = inside(&home, &bare(&home, &format!("answer {id} yes")));
    assert!(status == 1 && out.contains("human"), "{status}: {out}");
    assert_eq!(state(&home, &id), "open");
}

#[test]
fn saying_to_be_a_human_inside_a_session_is_not_enough() {
    let home = settled();
    let id = asked(&home);
    // By a variable: refused at once.
    let program = program();
    let line = format!("HOLDFAST_ACTOR={TESTER} {} answer {id} yes", program.display());
    let (status, out) = inside(&home, &line);
    assert!(status == 1 && out.contains("inside session work"), "{status}: {out}");
    assert_eq!(state(&home, &id), "open");
    // By `--as`: the person is asked, and only the person's own yes counts.
    for (by, answer) in [(TESTER, "no"), (ANN, "yes")] {
        begin(&home, &format!("{} --as {TESTER} answer {id} yes", program.display()));
        let asks = confirmation(&home, &id);
        assert_eq!((&asks["by"]["handle"], &asks["options"]), (&json!(TESTER), &json!(["no", "yes"])));
        assert!(asks["text"].as_str().unwrap().contains("pid") && asks["text"].as_str().unwrap().contains("answer"));
        home.run_as(by, &["answer", asks["id"].as_str().unwrap(), answer]);
        let (status, out) = ended(&home);
        assert!(status == 1 && out.contains("not confirmed"), "{by} {answer}: {out}");
        assert_eq!(state(&home, &id), "open");
    }
    begin(&home, &format!("{} --as {TESTER} answer {id} yes", program.display()));
    let asks = confirmation(&home, &id);
    home.ok(&["answer", asks["id"].as_str().unwrap(), "yes"]);
    let (status, out) = ended(&home);
    assert_eq!(status, 0, "{out}");
    assert_eq!(state(&home, &id), "answered");
}

/// Has the person at the terminal enter a line in the session's shell; how it ended, and what it printed.
fn entered(home: &Home, terminal: &Terminal, line: &str) {
    let _ = std::fs::remove_file(home.join("status"));
    terminal.types(format!("{line} > out 2>&1; echo $? > status\r"));
}

#[test]
fn a_confirmation_is_remembered_for_the_shell_until_somebody_else_has_the_turn() {
    let home = Home::new();
    home.ok(&["actor", "new", BOT]);
    home.session("work", "exec sh");
    let (terminal, _client) = Terminal::attached(&home, "work", "100x24");
    let program = program();
    let rename = |name: &str| format!("HOLDFAST_ACTOR={TESTER} {} rename work {name}", program.display());
    let enter = |line: &str| {
        entered(&home, &terminal, line);
        ended(&home)
    };
    let refused = |line: &str, why: &str| {
        let (status, out) = enter(line);
        assert!(status == 1 && out.contains("not confirmed"), "{why}: {status}: {out}");
    };
    refused(&rename("no"), "nobody has confirmed anything");
    // Once, with `--as`; a plain yes counts for that command alone.
    for (answer, counts_on) in [("yes", false), ("for 15m", true)] {
        entered(&home, &terminal, &format!("{} --as {TESTER} rename work work", program.display()));
        let asks = confirmation(&home, "");
        assert_eq!(asks["options"], json!(["no", "yes", "for 15m"]));
        home.ok(&["answer", asks["id"].as_str().unwrap(), answer]);
        assert_eq!(ended(&home).0, 0, "{}", ended(&home).1);
        let (status, out) = enter(&rename("work"));
        assert_eq!(status == 0, counts_on, "after {answer}: {out}");
    }
    let (status, out) = enter(&format!("{} --as {TESTER} rename work work", program.display()));
    assert_eq!((status, home.json(&["questions"])), (0, json!([])), "nobody is asked again: {out}");
    // Neither for what runs below the shell, nor beside something, nor for another program.
    refused(&format!("sh -c '{}; exit $?'", rename("no")), "from another shell");
    refused(&format!("sleep 1000 & {}", rename("no")), "beside another process");
    enter("kill $!; wait $!");
    let (status, out) = enter(&rename("work"));
    assert_eq!(status, 0, "{out}");
    // Another actor has the turn, and the person again: what was confirmed before counts no more.
    home.ok(&["give", "work", "--to", BOT]);
    home.run_as(BOT, &["release", "work"]);
    refused(&rename("no"), "somebody else had the turn");
    assert_eq!(home.json(&["info", "work"])["name"], "work");
}

#[test]
fn who_gives_up_waiting_to_be_confirmed_leaves_no_question_behind() {
    let home = settled();
    begin(&home, &format!("echo $$ > pid; exec {} --as {TESTER} end work", program().display()));
    let asks = confirmation(&home, "");
    let pid: u32 = std::fs::read_to_string(home.join("pid")).unwrap().trim().parse().unwrap();
    holdfast_harness::kill(pid);
    ended(&home);
    until("the question to go", || (state(&home, asks["id"].as_str().unwrap()) != "open").then_some(()));
    assert_eq!(home.json(&["info", "work"])["life"], "running");
}

/// A shell that a coding agent started, outside any session.
fn agents_shell(home: &Home, line: &str) -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{line}; exit $?")]).env_clear().env("CLAUDECODE", "1").env("PATH", "/usr/bin:/bin");
    shell.current_dir(home.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn what_an_agent_started_is_an_agent_though_its_environment_was_cleared() {
    let home = settled();
    let output = agents_shell(&home, &bare(&home, "--json whoami")).wait_with_output().unwrap();
    let me: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    assert_eq!((&me["actor"]["handle"], &me["because"]), (&json!("agent:claude"), &json!("marked")));
    let id = asked(&home);
    for line in [bare(&home, &format!("answer {id} yes")), bare(&home, &format!("--as {TESTER} answer {id} yes"))] {
        let output = agents_shell(&home, &line).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(state(&home, &id), "open", "{line}");
    }
    // And nobody makes a new human there.
    let output = agents_shell(&home, &bare(&home, "actor new human:eve")).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (status, out) = inside(&home, &bare(&home, "actor new human:eve"));
    assert!(status == 1 && !home.join("actors/human.eve.key").exists(), "{out}");
}
