//! The gate: what the policy allows, asks about and denies, through the real host. The commands are harmless where the gate fails.

use crate::http::Http;
use holdfast_harness::{Home, until};
use serde_json::{Value, json};

pub const BOT: &str = "agent:bot";
/// Denied by every policy; there is no such device.
const UNTHINKABLE: &str = "mkfs.ext4 /dev/sdzz9";
/// Asked about by every policy but `locked`; there is no repository.
pub const CATASTROPHIC: &str = "git -C /nonexistent push --force";

/// A home with an agent and a session of bash, under this configuration.
pub fn with_bash(config: &str) -> Home {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), config).unwrap();
    home.ok(&["actor", "new", BOT]);
    std::fs::create_dir(home.join("project")).unwrap();
    let project = home.join("project");
    home.ok(&["new", "-d", "-n", "work", "--cwd", project.to_str().unwrap(), "--", "bash"]);
    home
}

/// What a run of an agent comes to: its output, or the error.
pub fn bot_runs(home: &Home, args: &[&str]) -> Value {
    let ran = home.run_as(BOT, &[&["--json", "run", "work"], args].concat());
    let text = if ran.out.trim().is_empty() { &ran.err } else { &ran.out };
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{args:?}: {ran}"))
}

/// The agent lets go of the turn, so that a person can act.
pub fn bot_releases(home: &Home) {
    home.run_as(BOT, &["release", "work"]);
}

#[test]
fn solo_leaves_agents_free_but_for_the_catastrophic_and_the_unthinkable() {
    let home = with_bash("");
    for (command, output) in [("echo hi", "hi\n"), ("rm -rf build && echo gone", "gone\n"), ("echo $((1+1))", "2\n")] {
        assert_eq!(bot_runs(&home, &["--", command])["output"], output, "{command}");
    }
    let denied = &bot_runs(&home, &["--", UNTHINKABLE])["error"];
    assert_eq!(denied["code"], "denied", "{denied}");
    assert_eq!(
        (&denied["details"]["rule"], &denied["details"]["code"]),
        (&json!("solo.unthinkable"), &json!("forbidden"))
    );
    assert!(denied["message"].as_str().unwrap().contains("destroy the system or a disk"), "{denied}");
    let held = &bot_runs(&home, &["--", CATASTROPHIC])["error"];
    assert_eq!((&held["code"], &held["details"]["rule"]), (&json!("approval_needed"), &json!("solo.catastrophic")));
    let opaque = &bot_runs(&home, &["--", "eval \"$NOTHING\""])["error"];
    assert_eq!((&opaque["code"], &opaque["details"]["rule"]), (&json!("approval_needed"), &json!("solo.opaque")));
    // A person runs the same.
    bot_releases(&home);
    assert_eq!(home.run(&["run", "work", "--", "eval", "true"]).status, 0);
    assert_ne!(home.run(&["run", "work", "--", CATASTROPHIC]).status, 1);
    // Nothing of what was refused was typed, and the journal says why.
    let journal = home.ok(&["journal", "work", "--json"]);
    let acts: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |text: &str| acts.iter().find(|act| act.to_string().contains(text)).unwrap()["seq"].to_string();
    let why = |act: &str| home.json(&["policy", "why", "work", act]);
    let allowed = why(&of("\"command\":\"echo hi\""));
    assert_eq!((&allowed["outcome"], &allowed["rule"]), (&json!("allowed"), &json!("solo.free")), "{allowed}");
    let denied = why(&of("sdzz9"));
    assert_eq!((&denied["outcome"], &denied["rule"]), (&json!("denied"), &json!("solo.unthinkable")), "{denied}");
    assert_eq!(why(&of("--force"))["outcome"], "held");
    home.ok(&["journal", "work", "--verify"]);
    assert!(!home.ok(&["screen", "work", "--history", "100"]).contains("sdzz9"));
}

#[test]
fn a_line_that_the_shell_cannot_read_is_refused_at_once_and_no_human_is_asked() {
    let home = with_bash("");
    let denied = &bot_runs(&home, &["--", "touch made; echo ) oops"])["error"];
    assert_eq!((&denied["code"], &denied["details"]["rule"]), (&json!("denied"), &json!("gate.syntax")), "{denied}");
    let message = denied["message"].as_str().unwrap();
    assert!(message.contains("nothing ran") && message.contains("syntax error"), "{message}");
    assert_eq!(home.json(&["approvals", "ls"]), json!([]));
    assert!(!home.join("project/made").exists());
    assert_eq!(bot_runs(&home, &["--", "echo fine"])["output"], "fine\n");
}

#[test]
fn every_surface_is_judged_alike() {
    let http = Http::new();
    let cwd = http.home.path().to_str().unwrap();
    let new = |command: &str| json!({ "new": { "command": ["sh", "-c", command], "cwd": cwd } });
    let denied = http.post("/runs", new(UNTHINKABLE));
    assert_eq!((denied.status, &denied.body["details"]["rule"]), (403, &json!("solo.unthinkable")), "{denied:?}");
    let held = http.post("/runs", new("eval \"$X\""));
    assert_eq!((held.status, &held.body["code"]), (403, &json!("approval_needed")), "{held:?}");
    // A session whose command is the act.
    let started = http.post("/sessions", json!({ "command": ["mkfs.ext4", "/dev/sdzz9"], "cwd": cwd }));
    assert_eq!((started.status, &started.body["details"]["rule"]), (403, &json!("solo.unthinkable")), "{started:?}");
    assert_eq!(http.post("/sessions", json!({ "command": ["bash"], "cwd": cwd, "name": "shell" })).status, 201);
    until("a prompt", || http.home.run_as(BOT, &["run", "shell", "--", "true"]).status == 0);
    let run = http.post("/runs", json!({ "session": "shell", "command": UNTHINKABLE }));
    assert_eq!((run.status, &run.body["code"]), (403, &json!("denied")), "{run:?}");
    // What it may do is told without doing it.
    let may = http.post("/policy/may", json!({ "session": "shell", "command": "rm -rf \"$X\"/*" }));
    assert_eq!((may.status, &may.body["outcome"]), (200, &json!("ask")), "{may:?}");
    assert_eq!(may.body["instead"][0].as_str().map(|text| text.is_empty()), Some(false));
    let policy = http.get("/policy");
    assert_eq!((policy.status, &policy.body["policy"]), (200, &json!("solo")), "{policy:?}");
}

#[test]
fn a_line_that_an_agent_types_at_a_prompt_is_judged() {
    let home = with_bash("");
    until("a prompt", || home.run_as(BOT, &["run", "work", "--", "true"]).status == 0);
    let send = |keys: &str| home.run_as(BOT, &["--json", "send", "work", keys]);
    let refused = send(&format!("{UNTHINKABLE}\r"));
    assert!(refused.err.contains("solo.unthinkable"), "{refused}");
    // In two pieces.
    assert_eq!(send("mkfs.ext4 /dev/").status, 0);
    let refused = send("sdzz9\r");
    assert!(refused.err.contains("solo.unthinkable"), "{refused}");
    assert_eq!(send("\u{3}").status, 0);
    assert_eq!(send("echo typed-$((20+3))\r").status, 0);
    home.until_screen_shows("work", "typed-23");
    // From the shell's history: only the shell knows it.
    until("a prompt", || home.json(&["state", "work"])["state"] == "idle_prompt");
    let refused = send("\u{1b}[A\r");
    assert!(refused.err.contains("solo.opaque"), "{refused}");
    // A person types what they like.
    bot_releases(&home);
    home.ok(&["send", "work", "--key", "C-c"]);
    assert_eq!(home.run(&["send", "work", "--enter", "eval true"]).status, 0);
}

#[test]
fn careful_asks_beyond_the_directory_and_locked_runs_only_what_is_listed() {
    let home = with_bash("policy = \"careful\"\n");
    assert_eq!(bot_runs(&home, &["--", "echo x > here.txt; rm here.txt; echo ok"])["output"], "ok\n");
    let link = home.join("project/link");
    std::os::unix::fs::symlink("/", &link).unwrap();
    for (command, rule) in [
        ("echo x > /nonexistent-dir/x", "careful.outside"),
        ("rm -f link/nonexistent-holdfast", "careful.outside"),
        ("curl --version", "careful.network"),
        ("sudo --version", "careful.escalates"),
        ("PATH=/bin:$PATH ls", "careful.loader"),
    ] {
        let held = &bot_runs(&home, &["--", command])["error"];
        assert_eq!(
            (&held["code"], &held["details"]["rule"]),
            (&json!("approval_needed"), &json!(rule)),
            "{command}: {held}"
        );
    }
    // The link itself lies inside.
    assert_eq!(bot_runs(&home, &["--", "rm link && echo gone"])["output"], "gone\n");
    let locked = with_bash("policy = \"locked\"\n");
    assert_eq!(bot_runs(&locked, &["--", "echo listed"])["output"], "listed\n");
    let denied = &bot_runs(&locked, &["--", "touch x"])["error"];
    assert_eq!((&denied["code"], &denied["details"]["rule"]), (&json!("denied"), &json!("gate.unlisted")));
    bot_releases(&locked);
    assert_eq!(locked.run(&["run", "work", "--", "touch x"]).status, 0, "people are free");
}

#[test]
fn own_files_load_when_they_change_and_a_broken_one_replaces_nothing() {
    let home = with_bash("");
    let dir = home.join("policy");
    std::fs::create_dir(&dir).unwrap();
    let file = dir.join("own.cedar");
    let rule = |word: &str, name: &str| {
        format!(
            "@id(\"own.no-{name}\")\n@{word}(\"not here\")\n@example(\"{name} -x\")\nforbid (principal, action == Action::\"run\", resource)\nwhen {{ principal.class != \"human\" && context.names.contains(\"{name}\") }};\n"
        )
    };
    std::fs::write(&file, rule("why", "hostname")).unwrap();
    let denied = &bot_runs(&home, &["--", "hostname"])["error"];
    assert_eq!(
        (&denied["code"], &denied["details"]["rule"]),
        (&json!("denied"), &json!("own.no-hostname")),
        "{denied}"
    );
    assert_eq!(home.run(&["policy", "check"]).status, 0);
    // Broken: the old one stays, and is told with its place.
    std::fs::write(&file, rule("why", "uname").replace("context.names", "context.nmaes")).unwrap();
    let checked = home.run(&["policy", "check"]);
    assert!(checked.status == 1 && checked.out.contains("own.cedar:5:") && checked.out.contains("nmaes"), "{checked}");
    assert_eq!(bot_runs(&home, &["--", "hostname"])["error"]["details"]["rule"], "own.no-hostname");
    let shown = home.run(&["policy", "show"]);
    assert!(
        shown.status == 1 && shown.out.contains("not loaded: ") && shown.out.contains("own.no-hostname"),
        "{shown}"
    );
    // Mended, without a restart.
    std::fs::write(&file, rule("why", "uname")).unwrap();
    assert_eq!(bot_runs(&home, &["--", "uname"])["error"]["details"]["rule"], "own.no-uname");
    assert_eq!(bot_runs(&home, &["--", "hostname"])["exit_code"], 0);
    // A host that begins with a broken one does not know what is forbidden: it asks.
    std::fs::write(&file, "garbage").unwrap();
    home.kill_host();
    assert_eq!(bot_runs(&home, &["--", "uname"])["error"]["details"]["rule"], "gate.broken");
    bot_releases(&home);
    assert_eq!(home.run(&["run", "work", "--", "uname"]).status, 0);
    home.ok(&["release", "work"]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(bot_runs(&home, &["--", "uname"])["exit_code"], 0);
}

#[test]
fn policy_answers_without_doing_anything() {
    let home = with_bash("");
    let may = |actor: &str, command: &str| {
        let ran = home.run(&["policy", "may", "-t", "work", "--actor", actor, "--", command]);
        (ran.status, ran.out)
    };
    assert_eq!(may(BOT, "touch made").0, 0);
    assert!(!home.join("project/made").exists());
    let (status, text) = may(BOT, "rm -rf \"$X\"/*");
    assert!(status == 3 && text.starts_with("ask by solo.catastrophic") && text.contains("instead: "), "{text}");
    assert_eq!(may(BOT, UNTHINKABLE).0, 4);
    assert_eq!(may("human:tester", UNTHINKABLE).0, 0);
    let explained = home.ok(&["policy", "explain", "-t", "work", "--", "cd sub && rm -rf ../logs > /dev/null"]);
    let logs = home.join("project/logs");
    assert!(
        explained.contains(&format!("deletes    {}", logs.canonicalize().unwrap_or(logs).display())),
        "{explained}"
    );
    std::fs::write(home.join("cases"), "# cases\nallow agent:x ls\ndeny agent:x rm -rf /\nask agent:x rm -rf ~\n")
        .unwrap();
    let cases = home.join("cases");
    assert_eq!(home.ok(&["policy", "test", cases.to_str().unwrap()]), "3 cases, 0 wrong\n");
    std::fs::write(&cases, "allow agent:x rm -rf /\n").unwrap();
    let wrong = home.run(&["policy", "test", cases.to_str().unwrap()]);
    assert!(wrong.status == 1 && wrong.out.contains("cases:1: deny by solo.unthinkable, expected allow"), "{wrong}");
    // Nothing waits for anybody.
    assert_eq!(home.json(&["approvals", "ls"]), json!([]));
}

#[test]
fn agents_do_not_reach_policy_and_records_by_commands() {
    let home = with_bash("");
    let config = home.join("config.toml");
    let sessions = home.join("sessions");
    for command in [
        format!("echo 'policy = \"off\"' >> {}", config.display()),
        format!("rm -rf {}/x", sessions.display()),
        format!("cd {} && rm -rf x", sessions.display()),
        format!("cp /dev/null {}/policy/own.cedar", home.path().display()),
        "holdfast approvals approve apr_1".to_owned(),
    ] {
        let denied = &bot_runs(&home, &["--", &command])["error"];
        assert_eq!(
            (&denied["code"], &denied["details"]["rule"]),
            (&json!("denied"), &json!("solo.holdfast")),
            "{command}"
        );
    }
    // The environment of who starts the host does not lower it.
    let off = home.command(&["host", "restart"]).env("HOLDFAST_POLICY", "off").output().unwrap();
    assert!(off.status.success());
    assert_eq!(home.json(&["policy", "show"])["policy"], "solo");
}
