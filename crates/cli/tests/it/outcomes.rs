//! `run` as an agent uses it: what it expects, what it is told, and what is left behind.

use holdfast_harness::{Home, kill, until};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A home with a session of this shell, named after it, that reads this file first.
fn with_shell(shell: &str, rc: &str) -> Home {
    let home = Home::new();
    let file = match shell {
        "bash" => ".bashrc",
        "zsh" => ".zshrc",
        _ => ".config/fish/config.fish",
    };
    std::fs::create_dir_all(home.join(".config/fish")).unwrap();
    // zsh would ask a newcomer what it shall do.
    std::fs::write(home.join(".zshrc"), "\n").unwrap();
    std::fs::write(home.join(file), rc).unwrap();
    home.ok(&["new", "-d", "-n", shell, "--", shell]);
    home
}

/// The answer to a run, whatever its status.
fn run(home: &Home, args: &[&str]) -> Value {
    let ran = home.run(&[&["run", "--json"], args].concat());
    serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{args:?}: {ran}"))
}

fn error_of(home: &Home, args: &[&str]) -> Value {
    let ran = home.run(&[&["run", "--json"], args].concat());
    let error: Value = serde_json::from_str(&ran.err).unwrap_or_else(|_| panic!("{args:?}: {ran}"));
    error["error"].clone()
}

#[test]
fn a_run_is_answered_when_it_ends_and_not_when_somebody_asks_again() {
    // A question waits twenty seconds at the host: a missed end would show as that.
    const AT_ONCE: Duration = Duration::from_secs(15);
    let home = Home::new();
    std::fs::write(home.join(".zshrc"), "\n").unwrap();
    std::thread::scope(|scope| {
        for shell in ["bash", "zsh", "fish"] {
            let home = &home;
            scope.spawn(move || {
                home.ok(&["new", "-d", "-n", shell, "--", shell]);
                for n in 0..30 {
                    let began = Instant::now();
                    let ran = home.run(&["run", shell, "--", "echo hello; false"]);
                    assert_eq!((ran.status, ran.out.as_str()), (1, "hello\n"), "{shell} {n}: {ran}");
                    assert!(began.elapsed() < AT_ONCE, "{shell} {n}: {:?}", began.elapsed());
                    // Others look meanwhile, and read what the run waits for.
                    home.ok(&["screen", shell]);
                }
            });
        }
    });
}

#[test]
fn what_is_expected_decides_the_status() {
    let home = with_shell("bash", "");
    let cases: &[(&[&str], &str, i32, &[&str])] = &[
        (&["exit:0"], "true", 0, &[]),
        (&["exit:0"], "sh -c 'exit 7'", 7, &["exit:0"]),
        (&["exit:0,7"], "sh -c 'exit 7'", 0, &[]),
        (&["exit:7"], "true", 1, &["exit:7"]),
        (&["text:^done$", "no-text:error"], "echo done", 0, &[]),
        (&["text:^done$", "no-text:error"], "echo done; echo an error", 1, &["no-text:error"]),
        (&["exit:1", "text:never"], "echo x; false", 1, &["text:never"]),
        // In the middle, which is not shown.
        (&["text:^needle$"], "seq 9000; echo needle; seq 9000", 0, &[]),
        (&["no-text:^needle$"], "seq 9000; echo needle; seq 9000", 1, &["no-text:^needle$"]),
    ];
    for (expects, command, status, unmet) in cases {
        let mut args = vec!["bash"];
        expects.iter().for_each(|expect| args.extend(["--expect", expect]));
        args.extend(["--", command]);
        let answer = run(&home, &args);
        let expected = json!({ "met": unmet.is_empty(), "unmet": unmet });
        assert_eq!(answer["expected"], expected, "{expects:?} {command}");
        let ran = home.run(&[&["run"], args.as_slice()].concat());
        assert_eq!(ran.status, *status, "{expects:?} {command}: {}", ran.err);
        assert!(unmet.iter().all(|unmet| ran.err.contains(unmet)), "{ran}");
    }
    let slow = run(&home, &["bash", "--timeout", "0", "--expect", "exit:3", "--", "sleep 1; sh -c 'exit 3'"]);
    assert_eq!((&slow["exit_code"], &slow["expected"]), (&Value::Null, &Value::Null), "it is not over: {slow}");
    assert_eq!(home.run(&["run", "wait", slow["id"].as_str().unwrap(), "--expect", "exit:3"]).status, 0);
    assert_eq!(home.run(&["run", "bash", "--expect", "exit:x", "--", "true"]).status, 2);
}

#[test]
fn a_session_made_for_a_run_passes_with_it_unless_it_is_kept() {
    let home = Home::new();
    let listed = |name: &str| {
        let all = home.json(&["ls", "--all"]);
        all.as_array().unwrap().iter().any(|session| session["name"] == *name)
    };
    let call = ["--new", "--name", "once", "--key", "k", "--", "sh", "-c", "echo out; exit 3"];
    let answer = run(&home, &call);
    assert_eq!((&answer["exit_code"], &answer["output"]), (&3.into(), &"out\n".into()), "{answer}");
    assert!(!listed("once"));
    assert_eq!(home.run(&["info", "once"]).status, 1);
    let id = answer["id"].as_str().unwrap();
    for _ in 0..2 {
        assert_eq!(home.json(&["run", "status", id])["exit_code"], 3);
        assert_eq!(home.ok(&["run", "output", "--plain", id]), "out\n");
        assert_eq!(run(&home, &call)["id"], answer["id"]);
        assert!(!listed("once"));
        kill(home.host_pid());
    }
    // While it runs it is there as any other.
    let call = ["--new", "--name", "slow", "--timeout", "0", "--", "sleep", "1000"];
    let slow = run(&home, &call);
    assert!(slow["state"] == "running" && listed("slow"), "{slow}");
    home.ok(&["run", "cancel", slow["id"].as_str().unwrap()]);
    until("it to pass", || !listed("slow"));
    assert_eq!(home.run(&["run", "--new", "--name", "kept", "--keep", "--", "sh", "-c", "exit 4"]).status, 4);
    assert!(listed("kept"));
}

#[test]
fn a_key_says_how_its_run_ended_when_the_session_is_cleared() {
    let home = with_shell("bash", "");
    std::fs::write(home.join("config.toml"), "ended_keep = \"1s\"\n").unwrap();
    let call = ["bash", "--key", "k", "--", "echo x >> ran; sh -c 'exit 5'"];
    let id = run(&home, &call)["id"].clone();
    home.ok(&["end", "bash", "--grace", "0"]);
    home.ok(&["host", "restart"]);
    until("the session to be cleared", || home.json(&["ls", "--all"]).as_array().unwrap().is_empty());
    home.ok(&["new", "-d", "-n", "bash", "--", "bash"]);
    let again = run(&home, &call);
    assert_eq!((&again["id"], &again["state"], &again["exit_code"]), (&id, &"ended".into(), &5.into()), "{again}");
    assert_eq!(home.run(&["run", "bash", "--key", "k", "--", "echo x >> ran; sh -c 'exit 5'"]).status, 5);
    assert_eq!(std::fs::read_to_string(home.join("ran")).unwrap(), "x\n");
}

#[test]
fn a_key_whose_run_was_never_recorded_still_runs_once() {
    let home = with_shell("bash", "");
    let session = home.json(&["info", "bash"])["id"].clone();
    // A host took it and was killed before it wrote the run down.
    let key: String = "k".bytes().map(|byte| format!("{byte:02x}")).collect();
    let command = "echo x >> ran";
    let run_id = format!("run_{}", "0".repeat(26));
    let entry =
        json!({ "key": "k", "session": session, "run": run_id, "command": command, "own": false, "created_ms": 5 });
    std::fs::create_dir_all(home.join("runs")).unwrap();
    std::fs::write(home.join(&format!("runs/{key}.json")), entry.to_string()).unwrap();
    assert_eq!(error_of(&home, &["bash", "--key", "k", "--", "echo other"])["code"], "key_conflict");
    let (first, again) =
        (run(&home, &["bash", "--key", "k", "--", command]), run(&home, &["bash", "--key", "k", "--", command]));
    assert_eq!((&first["exit_code"], &first["existing"]), (&0.into(), &false.into()), "{first}");
    assert_eq!((&again["id"], &again["existing"]), (&first["id"], &true.into()), "{again}");
    assert_eq!(std::fs::read_to_string(home.join("ran")).unwrap(), "x\n");
    // With another session nobody can tell.
    home.ok(&["new", "-d", "-n", "other", "--", "bash"]);
    assert_eq!(error_of(&home, &["other", "--key", "k", "--", command])["code"], "key_conflict");
}

#[test]
fn json_may_stand_anywhere() {
    let home = Home::new();
    let id = run(&home, &["--new", "--", "true"])["id"].as_str().unwrap().to_owned();
    for args in [
        ["--json", "run", "status", &id],
        ["run", "--json", "status", &id],
        ["run", "status", "--json", &id],
        ["run", "status", &id, "--json"],
    ] {
        let answer: Value = serde_json::from_str(&home.ok(&args)).unwrap();
        assert_eq!(answer["id"], *id, "{args:?}");
    }
    for args in [["run", "some", "status", &id], ["run", "--new", "status", &id]] {
        let ran = home.run(&args);
        assert!(ran.status == 2 && ran.err.contains("cannot combine a command"), "{args:?} {ran}");
    }
}

#[test]
fn a_line_that_was_ended_or_thrown_away_keeps_no_run_out() {
    let cases = [
        ("bash", ""),
        ("zsh", "PS1='z> '; RPROMPT='on the right'"),
        ("fish", "function fish_right_prompt; echo on the right; end"),
    ];
    for (shell, rc) in cases {
        let home = with_shell(shell, rc);
        let run_is_fine = |after: &str| {
            let ran = home.run(&["run", shell, "--", "echo fine"]);
            assert_eq!(ran.out, "fine\n", "{shell} after {after}: {ran}");
        };
        run_is_fine("nothing");
        let head = || home.json(&["info", shell])["head"].as_u64().unwrap();
        for (what, keys) in [("Enter", ["--key", "Enter"]), ("C-c", ["--key", "C-c"])] {
            if what == "C-c" {
                home.ok(&["send", shell, "half"]);
                home.until_screen_shows(shell, "half");
                let error = error_of(&home, &[shell, "--", "echo no"]);
                assert_eq!(error["code"], "shell_busy", "{shell} {error}");
            }
            let before = head();
            home.ok(&[&["send", shell], &keys[..]].concat());
            until("another prompt", || head() > before && home.json(&["state", shell])["state"] == "idle_prompt");
            until(what, || home.run(&["run", shell, "--", "true"]).status == 0);
            run_is_fine(what);
        }
        // On an empty line fish does not say a word.
        home.ok(&["send", shell, "--key", "C-c"]);
        until("C-c", || home.run(&["run", shell, "--", "true"]).status == 0);
        // What a command reads is typed while it runs.
        home.ok(&["send", shell, "--enter", "sh -c 'printf \"a%s\\n\" sk; read x; echo got $x'"]);
        home.until_screen_shows(shell, "ask");
        home.ok(&["send", shell, "--enter", "it"]);
        home.until_screen_shows(shell, "got it");
        home.ok(&["wait", shell, "--for", "idle", "--timeout", "20"]);
        run_is_fine("an answer");
    }
}

#[test]
fn what_no_shell_can_hold_is_refused_and_not_typed() {
    use holdfast_wire::operations::op;
    let home = with_shell("bash", "PS1='b> '");
    home.ok(&["run", "bash", "--", "true"]);
    let place = holdfast_types::Home::under(home.path());
    let who = holdfast_client::Identity::load_or_make(&place, &holdfast_harness::TESTER.parse().unwrap()).unwrap();
    let mut host = holdfast_client::connect(&place, &who).unwrap();
    for (command, detect) in [
        ("echo a\0b".to_owned(), None),
        ("echo a\0b".to_owned(), Some(holdfast_wire::runs::Detect::Quiet(100))),
        ("x".repeat(1 << 21), None),
        (" \n".to_owned(), None),
    ] {
        let key = Some("k".to_owned());
        let session = Some("bash".to_owned());
        let params = holdfast_wire::runs::RunStartParams { session, command, detect, key, ..Default::default() };
        match host.call::<op::RunStart>(&params) {
            Err(holdfast_client::CallError::Fault(fault)) => assert_eq!(fault.code, holdfast_wire::Code::BadRequest),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(home.ok(&["run", "bash", "--key", "k", "--", "echo the key is free"]), "the key is free\n");
    assert!(!home.ok(&["screen", "bash"]).contains("echo a"));
}

#[test]
fn a_run_that_is_asked_for_again_after_a_lost_answer_runs_once() {
    use holdfast_wire::operations::op;
    use holdfast_wire::runs::{RunId, RunStartParams};
    let home = with_shell("bash", "PS1='b> '");
    home.ok(&["actor", "new", "agent:bot"]);
    let place = holdfast_types::Home::under(home.path());
    let link = |handle: &str| {
        let who = holdfast_client::Identity::load_or_make(&place, &handle.parse().unwrap()).unwrap();
        holdfast_client::connect(&place, &who).unwrap()
    };
    let params = RunStartParams {
        session: Some("bash".into()),
        run: Some(RunId::from_random_bits(7)),
        command: "echo once".into(),
        wait_ms: 20_000,
        ..RunStartParams::default()
    };
    // The first two at once: the second waits for the first, and finds it.
    let mut lost = link(holdfast_harness::TESTER);
    lost.ask::<op::RunStart>(&params, &[]).unwrap();
    drop(lost);
    let again = link(holdfast_harness::TESTER).call::<op::RunStart>(&params).unwrap();
    assert_eq!((Some(again.run.id), again.run.exit_code), (params.run, Some(0)));
    kill(home.host_pid());
    home.ok(&["ls"]);
    let later = link(holdfast_harness::TESTER).call::<op::RunStart>(&params).unwrap();
    assert_eq!((later.existing, later.run.exit_code), (true, Some(0)));
    assert_eq!(home.ok(&["logs", "bash", "--plain"]).matches("\nonce").count(), 1);
    let others = link("agent:bot").call::<op::RunStart>(&params);
    match others {
        Err(holdfast_client::CallError::Fault(fault)) => assert_eq!(fault.code, holdfast_wire::Code::BadRequest),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_watched_run_leaves_a_shell_that_tells_as_it_was() {
    let home = with_shell("bash", "PS1='b> '");
    home.ok(&["run", "bash", "--", "true"]);
    let answer = run(&home, &["bash", "--detect", "prompt:^b> $", "--", "echo watched"]);
    assert_eq!(answer["end"], "inferred", "{answer}");
    assert_eq!(home.ok(&["run", "bash", "--", "echo told"]), "told\n");
}

#[test]
fn a_refusal_says_what_the_session_does_instead() {
    let home = with_shell("bash", "");
    home.ok(&["send", "bash", "--enter", "read -s -p 'Password: ' secret"]);
    home.until_screen_shows("bash", "Password:");
    let error = error_of(&home, &["bash", "--", "echo leaked"]);
    assert_eq!(error["code"], "shell_busy", "{error}");
    assert_eq!(error["details"]["state"]["state"], "waiting", "{error}");
    assert!(error["message"].as_str().unwrap().ends_with("waits for input: Password:"), "{error}");
    assert!(!home.ok(&["screen", "bash"]).contains("leaked"));
    home.ok(&["send", "bash", "--enter", "x"]);
    home.ok(&["wait", "bash", "--for", "idle", "--timeout", "20"]);
    let first = run(&home, &["bash", "--timeout", "0", "--", "sleep 1000"]);
    let error = error_of(&home, &["bash", "--", "true"]);
    assert_eq!(error["details"]["run"], first["id"], "{error}");
    home.ok(&["run", "cancel", first["id"].as_str().unwrap()]);
}

#[test]
fn a_watched_run_is_lost_with_its_host_and_not_typed_again() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "sh", "--env", "PS1=sh> ", "--", "/bin/sh"]);
    home.until_screen_shows("sh", "sh>");
    let command = "sleep 1; echo once >> ran";
    let call = ["sh", "--key", "k", "--detect", "prompt:^sh> $", "--timeout", "0", "--", command];
    let first = run(&home, &call);
    kill(home.host_pid());
    let again = run(&home, &call);
    assert_eq!((&again["id"], &again["state"]), (&first["id"], &"lost".into()), "{again}");
    let ran = || std::fs::read_to_string(home.join("ran")).unwrap_or_default();
    until("what was typed to end", || ran() == "once\n");
    let mut last = call.to_vec();
    last.retain(|word| !["--timeout", "0"].contains(word));
    assert_eq!(run(&home, &last)["state"], "lost");
    assert_eq!(ran(), "once\n");
}

#[test]
fn a_long_command_is_in_the_journal_by_its_beginning_and_its_hash() {
    let home = with_shell("bash", "");
    let long = format!("true {}", "x".repeat(100_000));
    home.ok(&["run", "bash", "--key", "long", "--", &long]);
    let journal = home.ok(&["journal", "bash", "--json"]);
    assert!(journal.contains("100005 bytes, sha256") && journal.len() < 50_000, "{} bytes", journal.len());
    home.ok(&["journal", "bash", "--verify"]);
    assert_eq!(run(&home, &["bash", "--key", "long", "--", &long])["existing"], true);
    assert_eq!(error_of(&home, &["bash", "--key", "long", "--", &format!("{long}!")])["code"], "key_conflict");
}

#[test]
fn whatever_the_users_files_do_a_run_is_a_run() {
    let cases = [
        ("bash", "sleep 2"),
        ("bash", "if then fi (("),
        ("bash", "set -e"),
        ("bash", "PROMPT_COMMAND='PS1=\"[$((n+=1))] \"; false'"),
        ("bash", "PROMPT_COMMAND=(true 'PS1=\"> \"'); trap 'seen=1' DEBUG"),
        ("zsh", "sleep 2"),
        ("zsh", "setopt prompt_subst; precmd() { PS1=\"$((n+=1))> \" }; RPROMPT=%T"),
        ("zsh", "if then fi (("),
        ("fish", "sleep 2"),
        ("fish", "function fish_prompt; set -g n (math 0$n + 1); echo -n \"$n> \"; end"),
    ];
    std::thread::scope(|scope| {
        for half in cases.chunks(5) {
            scope.spawn(move || {
                for (shell, rc) in half {
                    let home = with_shell(shell, rc);
                    for _ in 0..2 {
                        let answer = run(&home, &[shell, "--", "echo one\necho two"]);
                        let told = (&answer["output"], &answer["exit_code"], &answer["end"]);
                        assert_eq!(told, (&"one\ntwo\n".into(), &0.into(), &"exact".into()), "{shell} {rc}: {answer}");
                    }
                }
            });
        }
    });
}
