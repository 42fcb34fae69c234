//! An agent's everyday: its shell is there before it needs it, and what it reads says what to do.

use crate::mcp::Agent;
use holdfast_harness::{Home, TESTER, kill, until};
use serde_json::{Value, json};
use std::process::Command;

/// A home whose bash notes that it begins, and then waits until it may go on.
fn with_slow_shell() -> Home {
    let home = Home::new();
    std::fs::write(home.join(".bashrc"), "echo x >> begun\nuntil [ -e ready ]; do sleep 0.02; done\n").unwrap();
    home.ok(&["host", "start"]);
    home
}

fn server(home: &Home) -> Command {
    let mut command = home.command(&["mcp"]);
    command.env("HOME", home.path());
    command
}

/// How many shells have begun to read their files.
fn begun(home: &Home) -> usize {
    std::fs::read_to_string(home.join("begun")).unwrap_or_default().lines().count()
}

/// Sessions on disk, whoever is shown them.
fn kept(home: &Home) -> usize {
    std::fs::read_dir(home.join("sessions")).unwrap().count()
}

#[test]
fn an_agents_shell_is_started_before_it_is_needed_and_nobody_is_shown_it_until_then() {
    let home = with_slow_shell();
    let mut agent = Agent::of(server(&home), "bot");
    until("the shell", || begun(&home) == 1);
    assert_eq!(home.json(&["ls", "--all"]), json!([]));
    let status = home.json(&["host", "status"]);
    assert_eq!((&status["running"], &status["ended"]), (&json!(0), &json!(0)));
    assert!(home.fails(&["info", "bot"]).contains("no session"));
    assert_eq!(agent.ok("overview", json!({}))["sessions"], json!([]));
    // It is in nobody's way: its name is free.
    home.ok(&["new", "-d", "-n", "bot", "--", "cat"]);
    home.ok(&["end", "bot", "--grace", "0"]);
    std::fs::write(home.join("ready"), "").unwrap();
    let ran = agent.ok("run_command", json!({ "command": "echo $HOLDFAST_SESSION_NAME" }));
    assert_eq!((&ran["output"], &ran["session"]), (&json!("bot\n"), &json!("bot")), "{ran}");
    assert_eq!(begun(&home), 1, "the one that was started ahead");
    let listed = home.json(&["ls"]);
    assert_eq!((&listed[0]["name"], listed.as_array().unwrap().len()), (&json!("bot"), 1), "{listed}");
    // Its session is one like others: it stays, and who comes back starts none.
    drop(agent);
    let mut back = Agent::of(server(&home), "bot");
    assert_eq!(back.ok("run_command", json!({ "command": "echo on" }))["output"], "on\n");
    assert_eq!(begun(&home), 1);
}

#[test]
fn a_shell_that_nobody_wanted_ends_with_its_connection_and_with_its_host() {
    let home = with_slow_shell();
    let agent = Agent::of(server(&home), "bot");
    until("the shell", || begun(&home) == 1);
    drop(agent);
    until("its end", || kept(&home) == 0);
    let other = Agent::of(server(&home), "bot");
    until("another one", || begun(&home) == 2);
    // A killed host cannot end it; the next one does.
    home.kill_host();
    home.ok(&["host", "start"]);
    until("its end", || kept(&home) == 0);
    drop(other);
    let third = Agent::of(server(&home), "bot");
    until("a third one", || begun(&home) == 3);
    home.ok(&["host", "stop"]);
    until("its end", || kept(&home) == 0);
    drop(third);
}

#[test]
fn few_shells_are_started_ahead_and_each_agent_still_has_its_own() {
    let home = with_slow_shell();
    let mut agents: Vec<Agent> = (0..6).map(|_| Agent::of(server(&home), "bot")).collect();
    until("those that may wait", || begun(&home) == 4);
    std::fs::write(home.join("ready"), "").unwrap();
    for agent in &mut agents {
        agent.ok("run_command", json!({ "command": "x=$((x + 1))" }));
    }
    for agent in &mut agents {
        assert_eq!(agent.ok("run_command", json!({ "command": "echo $x" }))["output"], "1\n");
    }
    assert_eq!((begun(&home), kept(&home)), (6, 6));
}

#[test]
fn what_there_is_to_know_about_a_run_is_in_its_fields_and_in_its_text() {
    let home = Home::new();
    // A policy would ask a person about a line that does not parse.
    std::fs::write(home.join("config.toml"), "policy = \"off\"\n").unwrap();
    let mut agent = Agent::start(&home, &[], "bot");
    let mut notes = |arguments: Value, wanted: &str| {
        let told = agent.call("run_command", arguments);
        let notes = told.content["notes"].to_string();
        assert!(notes.contains(wanted), "{wanted}: {notes}");
        assert!(told.text.starts_with('[') && told.text.contains(&format!("\n[{wanted}")), "{}", told.text);
        told.content
    };
    let wrong = notes(json!({ "command": "echo )", "session": null, "same_shell": null }), "nothing ran: ");
    assert!(wrong["output"].as_str().unwrap().contains("syntax error"), "{wrong}");
    notes(json!({ "command": "seq 100000" }), "output is cut: `read_output` ");
    let on = notes(json!({ "command": "sleep 600", "yield_ms": 1000, "key": "k1" }), "it keeps running: `wait_for` ");
    assert_eq!(on["doing"]["state"], "running", "who waits for a clock works: {on}");
    notes(json!({ "command": "sleep 600", "yield_ms": 1, "key": "k1" }), "key k1 already ran; nothing was started now");
    agent.ok("interrupt", json!({ "run": "k1" }));
    // A program that draws its own screen is shown as it is.
    std::fs::write(home.join("text"), (1..=200).map(|n| format!("line {n}\n")).collect::<String>()).unwrap();
    let full = agent.ok("run_command", json!({ "command": "less text", "yield_ms": 2000 }));
    assert_eq!(full["doing"]["state"], "full_screen", "{full}");
    let screen = full["output"].as_str().unwrap();
    assert!(screen.starts_with("line 1\nline 2\n") && screen.lines().count() <= 40, "{full}");
    assert!(full["doing"]["advice"].as_str().unwrap().contains("q leaves a pager"), "{full}");
    agent.ok("send_input", json!({ "keys": ["q"] }));
    assert_eq!(agent.ok("wait_for", json!({ "run": full["run"] }))["run"]["exit_code"], 0);
    // In an agent's own shell nothing waits for a key to show its next page.
    assert_eq!(agent.ok("run_command", json!({ "command": "echo $PAGER $GIT_PAGER" }))["output"], "cat cat\n");
}

#[test]
fn a_line_that_does_not_parse_is_its_authors_to_correct_and_nobody_is_asked() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    for line in ["echo ) oops", "echo \"unterminated", "if true; then"] {
        let refused = agent.refused("run_command", json!({ "command": line }));
        let (message, hint) = (refused["message"].as_str().unwrap(), refused["hint"].as_str().unwrap());
        assert!(message.contains("nothing ran") && hint.starts_with("Correct the line"), "{refused}");
    }
    assert_eq!(home.json(&["approvals", "ls"]), json!([]));
    // What parses and cannot be known is still asked about.
    assert_eq!(agent.refused("run_command", json!({ "command": "eval \"$X\"" }))["code"], "approval_needed");
    assert_eq!(agent.ok("run_command", json!({ "command": "echo fine" }))["output"], "fine\n");
}

#[test]
fn a_wrong_argument_is_answered_with_those_that_are_allowed() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    for (tool, arguments, allowed) in [
        ("runs", json!({ "state": "over" }), "`cancelled`"),
        ("runs", json!({ "status": "ended" }), "`state`"),
        ("turn", json!({ "session": "x", "action": "grab" }), "`request`"),
        ("wait_for", json!({ "until": "done" }), "quiet:MS"),
        ("read_output", json!({ "view": "log" }), "`screen`"),
        ("graph", json!({ "depth": "deep" }), "`session`"),
        ("ask_human", json!({ "id": "x" }), "que_"),
        ("wait_for", json!({ "approval": "x" }), "apr_"),
    ] {
        let refused = agent.refused(tool, arguments);
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(allowed), "{tool}: {message}");
        assert!(!format!("{refused}").contains("holdfast "), "no commands of a shell: {refused}");
    }
}

#[test]
fn a_subscriber_of_a_run_is_told_of_its_end_by_its_handle_and_by_its_key() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let wait = "until [ -e go ]; do sleep 0.02; done";
    let on = agent.ok("run_command", json!({ "command": wait, "key": "wait 1", "yield_ms": 1 }));
    let by_handle = format!("run://{}", on["run"].as_str().unwrap());
    for uri in [by_handle.as_str(), "run://wait%201"] {
        agent.ask("resources/subscribe", json!({ "uri": uri }));
    }
    std::fs::write(home.join("go"), "").unwrap();
    let mut told: Vec<Value> =
        (0..2).map(|_| agent.until_noted("notifications/resources/updated")["uri"].clone()).collect();
    told.sort_by_key(Value::to_string);
    assert_eq!(told, [json!(by_handle), json!("run://wait%201")]);
    let read = agent.ask("resources/read", json!({ "uri": "run://wait%201" }));
    let text: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&text["state"], &text["exit_code"]), (&json!("ended"), &json!(0)), "{text}");
}

#[test]
fn an_agent_without_a_memory_finds_everything_in_one_call() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let first = agent.ok("run_command", json!({ "command": "cd /usr; export DEPLOY=1; (exit 3)", "key": "k1" }));
    let listen = "import socket,time\ns=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\ntime.sleep(600)";
    agent.ok("open_session", json!({ "name": "srv", "command": ["python3", "-c", listen] }));
    until("the port", || !agent.ok("ports", json!({}))["ports"].as_array().unwrap().is_empty());
    agent.ok("open_session", json!({ "name": "short", "command": ["sh", "-c", "exit 4"] }));
    agent.ok("wait_for", json!({ "session": "short", "until": "exit" }));
    let asked = agent.ok("ask_human", json!({ "question": "deploy?", "timeout_ms": 0 }));
    home.ok(&["answer", asked["id"].as_str().unwrap(), "yes"]);
    home.ok(&["take", "srv"]);
    drop(agent);
    // It knows neither handles nor names nor times.
    let mut agent = Agent::start(&home, &[], "bot");
    let told = agent.call("overview", json!({}));
    let found = &told.content;
    let session = |name: &str| {
        let all = found["sessions"].as_array().unwrap();
        all.iter().find(|session| session["session"] == name).cloned().unwrap_or_default()
    };
    let (own, srv) = (session("bot"), session("srv"));
    assert_eq!((&own["cwd_now"], &own["doing"]["state"]), (&json!("/usr"), &json!("idle_prompt")), "{found}");
    assert_eq!((&own["last_run"]["run"], &own["last_run"]["exit_code"]), (&first["run"], &json!(3)), "{found}");
    assert_eq!((srv["ports"].as_array().map(Vec::len), &srv["turn"]), (Some(1), &json!(TESTER)), "{found}");
    assert_eq!(found["gone"], json!([{ "session": "short", "life": "ended", "exit_code": 4 }]), "{found}");
    assert_eq!((&found["questions"][0]["id"], &found["questions"][0]["answer"]), (&asked["id"], &json!("yes")));
    assert!(told.text.contains("short is ended with 4") && told.text.contains("deploy?"), "{}", told.text);
    // And what is new since it looked.
    let since = json!({ "since_ms": found["now_ms"], "offsets": { "bot": own["head"] } });
    agent.ok("run_command", json!({ "command": "echo news", "key": "k2" }));
    let news = agent.ok("overview", since);
    assert_eq!((&news["runs"][0]["key"], &news["questions"], &news["gone"]), (&json!("k2"), &json!([]), &Value::Null));
    let own = news["sessions"].as_array().unwrap().iter().find(|session| session["session"] == "bot").cloned();
    assert!(own.unwrap()["new_bytes"].as_u64().unwrap() > 0, "{news}");
    // Who set which variable, also where that was a person.
    agent.ok("turn", json!({ "session": "bot", "action": "release" }));
    home.ok(&["run", "bot", "--", "export BY_HAND=1"]);
    let state = agent.ok("session_state", json!({ "environment": true }));
    let by = |name: &str| {
        let all = state["environment"].as_array().unwrap();
        all.iter().find(|changed| changed["name"] == name).map(|changed| changed["by"].clone())
    };
    assert_eq!((by("DEPLOY"), by("BY_HAND")), (Some(json!("agent:bot")), Some(json!(TESTER))), "{state}");
}

#[test]
fn standard_error_is_kept_apart_where_that_is_asked_for() {
    let home = Home::new();
    let script = "echo out; echo err >&2; test -t 1 && ! test -t 2; exit $((3 + $?))";
    let ran = home.run(&["run", "--new", "--separate-stderr", "--", "sh", "-c", script]);
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (3, "out\n", "err\n"));
    let together = home.json(&["run", "--new", "--", "sh", "-c", "echo err >&2"]);
    assert_eq!((&together["output"], &together["stderr"]), (&json!("err\n"), &Value::Null));
    // Of a flood beginning and end are kept, and nothing of it is waited for that others write later.
    let flood = "seq 300000 >&2; (trap '' HUP; sleep 600; echo late >&2) & exit 0";
    let ran = home.json(&["run", "--new", "--separate-stderr", "--key", "k", "--", "sh", "-c", flood]);
    let text = ran["stderr"].as_str().unwrap();
    assert!(text.starts_with("1\n2\n") && text.ends_with("299999\n300000\n") && text.len() < 20_000, "{text}");
    assert!(text.contains("bytes left out") && ran["output"] == "", "{ran}");
    let again = home.json(&["run", "--new", "--separate-stderr", "--key", "k", "--", "sh", "-c", flood]);
    assert_eq!((&again["existing"], &again["stderr"]), (&json!(true), &ran["stderr"]));
    // In a shell's own terminal there is nothing to keep apart.
    home.ok(&["new", "-d", "-n", "work", "--", "bash"]);
    let refused = home.fails(&["run", "work", "--separate-stderr", "--", "true"]);
    assert!(refused.contains("--new"), "{refused}");
    for pid in home.processes().into_iter().filter(|pid| holdfast_harness::command_line(*pid).contains("sleep")) {
        kill(pid);
    }
}
