//! Who a process is taken for, and the actors of a home.

use holdfast_harness::{Home, Ran, TESTER, until};
use rustix::pty::OpenptFlags;
use std::io::Read;
use std::process::Command;

/// Whom the program takes itself for, and why, when run on a terminal or without one, with these variables.
fn whoami(home: &Home, on_terminal: bool, variables: &[(&str, &str)]) -> String {
    let mut command = home.command(&["whoami"]);
    command.env_remove("HOLDFAST_ACTOR").envs(variables.iter().copied());
    let ran = if on_terminal { run_on_terminal(command) } else { command.output().unwrap().into() };
    assert_eq!(ran.status, 0, "{ran}");
    let line = |name: &str| ran.out.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    format!("{}: {}", line("actor"), line("because"))
}

/// Runs a command to its end with a terminal for its input and output.
pub fn run_on_terminal(mut command: Command) -> Ran {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let slave = rustix::pty::ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = std::fs::OpenOptions::new().read(true).write(true).open(slave).unwrap();
    command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    // It holds copies of the other end.
    drop(command);
    let mut out = Vec::new();
    // Ends with an error once nobody has the other end.
    let _ = std::fs::File::from(master).read_to_end(&mut out);
    let status = child.wait().unwrap().code().unwrap_or(-1);
    Ran { status, out: String::from_utf8_lossy(&out).replace("\r\n", "\n"), err: String::new() }
}

fn login() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_lowercase()
}

#[test]
fn only_a_person_at_a_terminal_outside_any_session_is_human_without_saying_so() {
    let home = Home::new();
    let (inside, marked) = (("HOLDFAST_SESSION", "ses_00000000000000000000000007"), ("CLAUDECODE", "1"));
    let said = ("HOLDFAST_ACTOR", TESTER);
    let (human, agent) = (format!("human:{}", login()), format!("agent:{}", login()));
    let at_terminal = format!("{human}: you are at a terminal");
    assert_eq!(whoami(&home, true, &[]), at_terminal);
    assert_eq!(whoami(&home, false, &[]), format!("{agent}: there is no terminal"));
    assert_eq!(whoami(&home, true, &[inside]), format!("{agent}: this shell runs inside a session"));
    let is_claude = "agent:claude: the environment has a coding agent's marker";
    for on_terminal in [true, false] {
        assert_eq!(whoami(&home, on_terminal, &[marked]), is_claude);
        assert_eq!(whoami(&home, on_terminal, &[marked, inside]), is_claude);
        assert_eq!(
            whoami(&home, on_terminal, &[marked, inside, said]),
            "human:tester: --as or HOLDFAST_ACTOR names it"
        );
    }
    assert_eq!(whoami(&home, true, &[]), at_terminal, "the same key serves again");
    let keys = std::fs::read_dir(home.join("actors")).unwrap();
    let keys = keys.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "key"));
    assert_eq!(keys.count(), 4, "one for each");
}

#[test]
fn whoami_tells_the_key_the_reason_and_whether_the_host_knows_it() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!("whoami", home.run(&["whoami"]));
    assert_eq!(home.processes(), [0u32; 0], "looking starts nothing");
    home.ok(&["host", "start"]);
    let mine = home.json(&["whoami"]);
    assert_eq!((&mine["known"], &mine["because"]), (&true.into(), &"said".into()));
    let removed = home.join("actors/human.tester.pub");
    std::fs::rename(&removed, home.join("kept")).unwrap();
    assert!(home.ok(&["whoami"]).contains("does not know you"));
    std::fs::rename(home.join("kept"), removed).unwrap();
    assert!(home.ok(&["whoami"]).contains("knows you"));
}

#[test]
fn what_runs_in_a_session_does_not_inherit_who_started_it() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_holdfast");
    home.session("work", &format!("{program} whoami; exec cat"));
    home.until_screen_shows("work", &format!("agent:{}", login()));
    home.until_screen_shows("work", "this shell runs inside a session");
}

#[test]
fn a_person_denied_in_a_sessions_shell_reads_who_they_are_and_how_to_say_otherwise() {
    let home = Home::new();
    let person = format!("human:{}", login());
    let mut new = home.command(&["actor", "new", &person]);
    new.env_remove("HOLDFAST_ACTOR");
    assert_eq!(run_on_terminal(new).status, 0);
    home.session("work", &format!("{} end work; exec cat", env!("CARGO_BIN_EXE_holdfast")));
    home.until_screen_shows("work", &format!("agent:{} may not end this session", login()));
    home.until_screen_shows("work", &format!("if you are a person, try --as {person}"));
}

#[test]
fn actors_are_made_listed_and_forgotten() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!(home.told(&[
        &[TESTER, "actor", "new", "agent:claude"],
        &[TESTER, "actor", "new", "agent:claude"],
        &[TESTER, "actor", "new", "service:deploy", "--key", "deploy.key"],
        &["./deploy.key", "whoami"],
        &[TESTER, "actor", "new", "human:bob"],
        &["human:bob", "ls"],
        &["./nothing.key", "ls"],
        &["agent:new", "ls"],
        &["agent:new", "ls"],
        &[TESTER, "actor", "ls"],
        &[TESTER, "actor", "remove", "agent:claude"],
        &[TESTER, "actor", "remove", "agent:claude"],
        &[TESTER, "actor", "ls"],
    ]));
    let made = home.json(&["actor", "new", "device:phone"]);
    assert_eq!(made["actor"]["handle"], "device:phone");
    assert_eq!(made["key_file"], home.join("actors/device.phone.key").to_str().unwrap());
    assert_eq!(home.json(&["actor", "ls"]).as_array().unwrap().len(), 4);
}

#[test]
fn a_person_at_a_terminal_makes_humans_and_nobody_else_does() {
    let home = Home::new();
    let new = |handle: &str| {
        let mut command = home.command(&["actor", "new", handle]);
        command.env_remove("HOLDFAST_ACTOR");
        command
    };
    assert_eq!(run_on_terminal(new("human:ann")).status, 0);
    let mut marked = new("human:bob");
    marked.env("CLAUDECODE", "1");
    let refused = run_on_terminal(marked);
    assert_eq!(refused.status, 1);
    assert_eq!(refused.out, "holdfast: only a human may create human:bob, and you are agent:claude\n");
    let refused = home.run(&["--json", "actor", "new", "human:bob"]);
    assert!(refused.err.contains("\"denied\""), "whatever it says of itself: {refused}");
    assert_eq!(home.json(&["actor", "ls"]).as_array().unwrap().len(), 2);
}

#[test]
fn a_wrong_variable_is_told_and_completions_make_no_keys() {
    let home = Home::new();
    let output = home.command(&["ls"]).env("HOLDFAST_ACTOR", "ann").output().unwrap();
    assert_eq!(
        Ran::from(output).err,
        "holdfast: HOLDFAST_ACTOR: expected CLASS:NAME, with the class human, agent, service or device\n"
    );
    home.ok(&["host", "start"]);
    let count = || std::fs::read_dir(home.join("actors")).unwrap().count();
    let before = count();
    for words in [&["__names"][..], &["__actors"], &["doctor"], &["host", "run"]] {
        let output = home.command(words).env_remove("HOLDFAST_ACTOR").output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", Ran::from(output));
        assert_eq!(count(), before, "{words:?}");
    }
}

/// What an actor is doing, as the tester is told: its texts.
fn doing(home: &Home, actor: &str) -> Vec<String> {
    let actors = home.json(&["actor", "ls"]);
    let view = actors.as_array().unwrap().iter().find(|view| view["actor"]["handle"] == actor).unwrap();
    let doing = view["doing"].as_array().cloned().unwrap_or_default();
    doing.iter().map(|one| format!("{}: {}", one["name"].as_str().unwrap(), one["text"].as_str().unwrap())).collect()
}

#[test]
fn what_an_actor_is_doing_is_seen_while_it_does_it() {
    let home = Home::new();
    home.run(&["actor", "new", "agent:bot"]);
    home.run(&["actor", "new", "agent:other"]);
    home.ok(&["new", "-d", "-n", "work", "--", "bash"]);
    assert_eq!(doing(&home, "agent:bot"), [""; 0]);
    home.run_as("agent:bot", &["run", "work", "--key", "long", "--shared", "--timeout", "0", "--", "sleep 1000"]);
    assert_eq!(doing(&home, "agent:bot"), ["work: run: sleep 1000"], "also when nobody waits for it");
    let mut waiting: Vec<_> =
        [("agent:other", "run wait long"), ("agent:bot", "run wait long"), ("agent:bot", "wait work")]
            .map(|(who, args)| {
                let args: Vec<&str> = ["--as", who].into_iter().chain(args.split(' ')).collect();
                home.command(&args).stdout(std::process::Stdio::null()).spawn().unwrap()
            })
            .into();
    until("who waits", || doing(&home, "agent:other") == ["work: waits for run: sleep 1000"]);
    until("who waits", || doing(&home, "agent:bot") == ["work: run: sleep 1000", "work: waits for its end"]);
    let told = home.ok(&["actor", "ls"]);
    assert!(told.contains("run: sleep 1000 in work for "), "{told}");
    let info = home.ok(&["info", "work"]);
    assert!(info.contains("sleep 1000 by agent:bot for "), "{info}");
    assert_eq!(home.json(&["info", "work"])["runs"][0]["actor"]["handle"], "agent:bot");
    let bot = || {
        let actors = home.json(&["actor", "ls"]);
        let view =
            actors.as_array().unwrap().iter().find(|view| view["actor"]["handle"] == "agent:bot").unwrap().clone();
        view["connected"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(bot(), 2, "its two connections");
    for child in &mut waiting {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    until("nobody to wait", || doing(&home, "agent:other").is_empty() && bot() == 0);
    assert_eq!(doing(&home, "agent:bot"), ["work: run: sleep 1000"]);
    assert_eq!(home.run_as("agent:bot", &["run", "cancel", "long"]).status, 0);
    assert_eq!(doing(&home, "agent:bot"), [""; 0]);
}

#[test]
fn what_is_done_in_a_session_is_told_to_who_may_observe_it() {
    let home = Home::new();
    home.run(&["actor", "new", "service:ci"]);
    home.ok(&["new", "-d", "-n", "work", "--", "bash"]);
    home.run(&["run", "work", "--timeout", "0", "--", "sleep 1000"]);
    let seen = |who: &str| home.run_as(who, &["--json", "actor", "ls"]).out.contains("sleep 1000");
    assert!(seen(TESTER) && !seen("service:ci"));
}
