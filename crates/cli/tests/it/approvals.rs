//! Approvals: an act waits as data until a human answers; it happens once or not at all, whatever becomes of the host.

use crate::gate::{BOT, CATASTROPHIC, bot_releases, bot_runs, with_bash};
use crate::http::Http;
use holdfast_harness::{Home, kill, settle, until};
use serde_json::{Value, json};
use std::process::Stdio;

/// Asked about, and leaves a line behind each time it runs: `eval` of what only the shell knows.
const LEAVES: &str = "eval \"echo x >> left$NOTHING\"";

fn lines(home: &Home) -> usize {
    std::fs::read_to_string(home.join("project/left")).unwrap_or_default().lines().count()
}

/// Runs as the agent what must be approved; the approval's id.
fn held(home: &Home, command: &str) -> String {
    let error = &bot_runs(home, &["--", command])["error"];
    assert_eq!(error["code"], "approval_needed", "{error}");
    error["details"]["approval"].as_str().unwrap().to_owned()
}

fn shown(home: &Home, id: &str) -> Value {
    home.json(&["approvals", "show", id])
}

fn until_state(home: &Home, id: &str, state: &str) -> Value {
    let mut view = Value::Null;
    until(&format!("{id} to be {state}"), || {
        view = shown(home, id);
        view["state"] == state
    });
    view
}

#[test]
fn an_approved_run_happens_once_and_the_agent_finds_it() {
    let home = with_bash("");
    let id = held(&home, LEAVES);
    // Asked again, it is the same.
    assert_eq!(held(&home, LEAVES), id);
    let open = home.json(&["approvals", "ls"]);
    assert_eq!(open.as_array().unwrap().len(), 1, "{open}");
    assert_eq!((&open[0]["command"], &open[0]["rule"]), (&json!(LEAVES), &json!("solo.opaque")));
    assert_eq!((&open[0]["by"]["handle"], &open[0]["state"], lines(&home)), (&json!(BOT), &json!("open"), 0));
    let text = home.ok(&["approvals", "show", &id[..12]]);
    assert!(text.contains("rule       solo.opaque: the gate cannot tell") && text.contains("approve it: "), "{text}");
    home.ok(&["approvals", "approve", &id, "--reason", "go on"]);
    let done = until_state(&home, &id, "done");
    until("the run", || lines(&home) == 1);
    let run = done["run"].as_str().unwrap();
    let ran = home.run_as(BOT, &["--json", "run", "status", run]);
    assert!(ran.out.contains(run), "{ran}");
    // Answered is answered.
    let again = home.run(&["--json", "approvals", "approve", &id]);
    assert!(again.status == 1 && again.err.contains("approval_closed"), "{again}");
    let journal = home.ok(&["journal", "work", "--json"]);
    assert!(journal.contains(&format!("{id}: approve")), "{journal}");
    assert!(journal.lines().any(|act| act.contains("\"gate\"") && act.contains(&id)), "the run names its approval");
    home.ok(&["journal", "work", "--verify"]);
    // Once is once: the same again is asked about again.
    assert_ne!(held(&home, LEAVES), id);
    assert_eq!(lines(&home), 1);
}

#[test]
fn whoever_waits_gets_the_run_or_the_humans_reason() {
    let home = with_bash("");
    let wait = |command: &str| {
        let args = ["--as", BOT, "--json", "run", "work", "--wait-approval", "60", "--", command];
        home.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let open = |home: &Home| {
        let mut id = String::new();
        until("an approval", || {
            let all = home.json(&["approvals", "ls"]);
            id = all[0]["id"].as_str().unwrap_or_default().to_owned();
            !id.is_empty()
        });
        id
    };
    let waiting = wait("eval \"echo said$NOTHING\"");
    home.ok(&["approvals", "approve", &open(&home)]);
    let answer: Value = serde_json::from_slice(&waiting.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&answer["output"], &answer["exit_code"]), (&json!("said\n"), &json!(0)), "{answer}");
    let waiting = wait(LEAVES);
    home.ok(&["approvals", "deny", &open(&home), "--reason", "use the other file"]);
    let output = waiting.wait_with_output().unwrap();
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["code"], "denied", "{error}");
    assert!(
        error["error"]["message"].as_str().unwrap().contains("human:tester denied it: use the other file"),
        "{error}"
    );
    // Nobody is asked the same again right away.
    let again = &bot_runs(&home, &["--", LEAVES])["error"];
    assert_eq!(again["code"], "denied", "{again}");
    assert_eq!((home.json(&["approvals", "ls"]), lines(&home)), (json!([]), 0));
}

#[test]
fn for_some_minutes_the_same_needs_no_answer_and_nothing_else_does() {
    let home = with_bash("");
    let id = held(&home, LEAVES);
    home.ok(&["approvals", "approve", &id, "--for", "5"]);
    until("the run", || lines(&home) == 1);
    until("a prompt", || home.json(&["state", "work"])["state"] == "idle_prompt");
    assert_eq!(bot_runs(&home, &["--", LEAVES])["exit_code"], 0);
    assert_eq!(lines(&home), 2);
    held(&home, "eval \"echo other$NOTHING\"");
    // In another directory it is another act.
    bot_releases(&home);
    home.ok(&["run", "work", "--", "cd /tmp"]);
    home.ok(&["release", "work"]);
    held(&home, LEAVES);
}

#[test]
fn what_has_changed_since_it_was_asked_is_asked_about_again() {
    let home = with_bash("");
    std::fs::write(home.join("project/step.sh"), "echo x >> left\n").unwrap();
    let command = format!("bash step.sh; {CATASTROPHIC}");
    let id = held(&home, &command);
    let before = shown(&home, &id)["hash"].clone();
    std::fs::write(home.join("project/step.sh"), "echo x >> left; echo evil >> left\n").unwrap();
    let changed = home.run(&["--json", "approvals", "approve", &id]);
    let view = until_state(&home, &id, "open");
    assert_eq!((&view["again"], lines(&home)), (&json!(true), 0), "{changed}");
    assert_ne!(view["hash"], before);
    home.ok(&["approvals", "approve", &id]);
    until_state(&home, &id, "done");
    until("the run", || lines(&home) == 2);
}

#[test]
fn no_agent_answers_for_itself_over_any_surface() {
    let home = with_bash("");
    settle(home.path(), "human:ann");
    home.ok(&["actor", "new", "agent:other"]);
    let http = Http::with(home);
    let home = &http.home;
    let id = held(home, LEAVES);
    for agent in [BOT, "agent:other"] {
        // Nor where a human grants it everything.
        home.ok(&["grant", "work", "--to", agent, "--can", "observe,approve,configure,grant"]);
        for word in ["approve", "deny"] {
            let refused = home.run_as(agent, &["--json", "approvals", word, &id]);
            let error = &serde_json::from_str::<Value>(&refused.err).unwrap()["error"];
            assert_eq!(
                (&error["code"], &error["details"]["rule"]),
                (&json!("denied"), &json!("humans_approve")),
                "{error}"
            );
        }
    }
    // Over HTTP the agent's token is the agent.
    let seen = shown(home, &id)["hash"].clone();
    let said = http.post(&format!("/approvals/{id}/answer"), json!({ "seen": seen, "approve": true }));
    assert_eq!((said.status, &said.body["details"]["rule"]), (403, &json!("humans_approve")), "{said:?}");
    assert_eq!(http.get(&format!("/approvals/{id}")).body["state"], "open");
    // A person who may not approve here does not either.
    home.ok(&["revoke", "work", "--to", "human:ann"]);
    home.ok(&["grant", "work", "--to", "human:ann", "--can", "observe"]);
    let refused = home.run_as("human:ann", &["--json", "approvals", "approve", &id]);
    assert!(refused.err.contains("\"right\":\"approve\""), "{refused}");
    assert_eq!((shown(home, &id)["state"].clone(), lines(home)), (json!("open"), 0));
    // An answer to something else than what was read counts for nothing.
    home.ok(&["approvals", "deny", &id]);
    assert_eq!(shown(home, &id)["state"], "denied");
}

#[test]
fn a_human_does_not_approve_their_own_act() {
    let home = with_bash("");
    std::fs::create_dir(home.join("policy")).unwrap();
    let rule = "@id(\"own.ask\")\n@ask(\"sure?\")\nforbid (principal, action == Action::\"run\", resource)\nwhen { context.names.contains(\"uname\") };\n";
    std::fs::write(home.join("policy/own.cedar"), rule).unwrap();
    settle(home.path(), "human:ann");
    let ran = home.run(&["--json", "run", "work", "--", "uname"]);
    let error: Value = serde_json::from_str(&ran.err).unwrap();
    let id = error["error"]["details"]["approval"].as_str().unwrap().to_owned();
    let refused = home.run(&["--json", "approvals", "approve", &id]);
    assert!(refused.err.contains("humans_approve"), "{refused}");
    assert_eq!(home.run_as("human:ann", &["approvals", "approve", &id]).status, 0);
    until_state(&home, &id, "done");
}

#[test]
fn a_killed_host_neither_loses_a_held_act_nor_does_it_unasked_or_twice() {
    let home = with_bash("");
    let id = held(&home, LEAVES);
    kill(home.host_pid());
    assert_eq!((shown(&home, &id)["state"].clone(), lines(&home)), (json!("open"), 0), "held by the next host");
    // Approved in the journal, not yet on disk: it waits on.
    let paused = |id: &str, point: &str, runs: usize| {
        let pause = home.pause(point);
        let approve = home.command(&["approvals", "approve", id]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut approve = approve.unwrap();
        let reached = pause.reached();
        drop(pause);
        until("the runs so far", || lines(&home) == runs);
        kill(home.host_pid());
        drop(reached);
        let _ = approve.kill();
        let _ = approve.wait();
    };
    paused(&id, "approval.recorded", 0);
    assert_eq!((shown(&home, &id)["state"].clone(), lines(&home)), (json!("open"), 0), "nothing was decided");
    // On disk, and not done yet: the next host does it.
    paused(&id, "approval.kept", 0);
    until_state(&home, &id, "done");
    until("the run", || lines(&home) == 1);
    // Done, and not marked yet: the next host marks it, and does not do it again.
    let second = held(&home, LEAVES);
    paused(&second, "approval.released", 2);
    until_state(&home, &second, "done");
    bot_releases(&home);
    home.ok(&["run", "work", "--", "true"]);
    assert_eq!(lines(&home), 2, "once each");
}

#[test]
fn acts_that_wait_are_bounded_and_end_with_their_session() {
    let home = with_bash("");
    let mut last = Value::Null;
    for n in 0..9 {
        last = bot_runs(&home, &["--", &format!("eval \"echo {n}$NOTHING\"")])["error"].clone();
    }
    assert_eq!(last["code"], "too_many", "{last}");
    assert_eq!(home.json(&["approvals", "ls"]).as_array().unwrap().len(), 8);
    home.ok(&["end", "work"]);
    assert_eq!(home.json(&["approvals", "ls"]), json!([]));
    assert_eq!(home.json(&["approvals", "ls", "--all"])[0]["state"], "expired");
}

#[test]
fn a_new_session_waits_for_approval_too() {
    let home = with_bash("");
    let project = home.join("project");
    let args = ["--json", "run", "--new", "--", "sh", "-c", LEAVES];
    let mut command = home.command(&[&["--as", BOT][..], &args].concat());
    let ran = command.current_dir(&project).output().unwrap();
    let error: Value = serde_json::from_slice(&ran.stderr).unwrap();
    assert_eq!(error["error"]["code"], "approval_needed", "{error}");
    let id = error["error"]["details"]["approval"].as_str().unwrap().to_owned();
    assert!(home.run_as(BOT, &["--json", "approvals", "approve", &id]).err.contains("humans_approve"));
    assert_eq!(lines(&home), 0);
    home.ok(&["approvals", "approve", &id]);
    until("the run", || lines(&home) == 1);
    until_state(&home, &id, "done");
}

#[test]
fn another_life_and_the_end_of_a_lost_session_are_judged() {
    let home = with_bash("policy = \"careful\"");
    let project = home.join("project");
    let line = format!("{LEAVES}; sleep 100000");
    home.ok(&["new", "-d", "-n", "job", "--cwd", project.to_str().unwrap(), "--", "sh", "-c", &line]);
    home.ok(&["grant", "job", "--to", BOT, "--can", "end"]);
    until("the first life", || lines(&home) == 1);
    let life = || home.json(&["info", "job"])["life"].clone();
    let lose = || {
        kill(home.number("job", "keeper_pid") as u32);
        until("the loss", || life() == "lost");
    };
    let asked = |args: &[&str]| {
        let error: Value = serde_json::from_str(&home.run_as(BOT, &[&["--json"], args].concat()).err).unwrap();
        assert_eq!(error["error"]["code"], "approval_needed", "{error}");
        error["error"]["details"]["approval"].as_str().unwrap().to_owned()
    };
    lose();
    let id = asked(&["recover", "job", "--run"]);
    assert_eq!((life(), lines(&home)), (json!("lost"), 1));
    home.ok(&["approvals", "approve", &id]);
    until_state(&home, &id, "done");
    until("the second life", || lines(&home) == 2);
    assert_eq!(life(), "running");
    lose();
    let id = asked(&["end", "job"]);
    home.ok(&["approvals", "deny", &id, "--reason", "it is wanted"]);
    assert_eq!(life(), "lost");
    home.ok(&["recover", "job"]);
    assert_eq!((life(), lines(&home)), (json!("running"), 2), "a human is free, and nothing is run again unasked");
}
