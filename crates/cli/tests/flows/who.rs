//! Who may speak to the flow service.

use crate::Kitchen;
use holdfast_client::Identity;
use holdfast_flows::Client;
use holdfast_flows::protocol::Request;
use holdfast_harness::{TESTER, kill, until};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

#[test]
fn a_stranger_and_a_forged_proof_are_refused_and_the_socket_is_the_users_own() {
    let kitchen = Kitchen::new();
    kitchen.service_pid();
    let home = kitchen.home.places();
    let socket = holdfast_flows::socket(&home);
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(holdfast_flows::database(&home)).unwrap().permissions().mode() & 0o777, 0o600);
    let refused = |who: &Identity| {
        let mut client = Client::connect(&home, who).unwrap();
        client.ask::<Value>(&Request::Status {}).unwrap_err().to_string()
    };
    let stranger = Identity::new("agent:stranger".parse().unwrap(), [7; 32]);
    assert!(refused(&stranger).contains("does not know agent:stranger"), "{}", refused(&stranger));
    // Somebody's handle with another key.
    let forged = Identity::new(TESTER.parse().unwrap(), [7; 32]);
    assert!(refused(&forged).contains("does not know human:tester"));
    // What is signed for the host is no proof here: the binding differs.
    let mut stream = UnixStream::connect(&socket).unwrap();
    let tester = Identity::load(&home, &TESTER.parse().unwrap()).unwrap();
    let mut byte = [0];
    let mut line = Vec::new();
    while stream.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    let hello: holdfast_flows::protocol::Hello = serde_json::from_slice(&line).unwrap();
    let (actor, signature) = (tester.actor().clone(), tester.answer(&hello.challenge));
    let prove =
        holdfast_flows::protocol::Prove { actor, signature: Some(signature), ticket: String::new(), vouched: false };
    stream.write_all(format!("{}\n", serde_json::to_string(&prove).unwrap()).as_bytes()).unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    assert!(told.contains("the signature does not fit"), "{told}");
}

#[test]
fn nonsense_ends_or_is_told_and_the_service_goes_on() {
    let kitchen = Kitchen::new();
    let pid = kitchen.service_pid();
    let home = kitchen.home.places();
    let socket = holdfast_flows::socket(&home);
    for nonsense in [b"\n".to_vec(), vec![0xff; 64], vec![b'x'; 100_000], b"{}\n".to_vec()] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let _ = stream.write_all(&nonsense);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    let tester = Identity::load(&home, &TESTER.parse().unwrap()).unwrap();
    let mut client = Client::connect(&home, &tester).unwrap();
    // A worker that answers for a flow that it was not given, and for one that is not there.
    kitchen.start("flow: A\nsteps:\n- sleep: 1000s\n", "A-1");
    for flow in ["A-1", "none"] {
        let turn = Request::Turn { flow: flow.into(), at: 1, commands: vec![], blocked: None, code: String::new() };
        assert!(client.ask::<Value>(&turn).is_err(), "{flow}");
    }
    assert_eq!(kitchen.service_pid(), pid);
    kitchen.home.ok(&["flow", "cancel", "A-1"]);
}

#[test]
fn inside_a_session_nobody_starts_a_flow_as_a_human() {
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    let file = kitchen.file("flow: A\nsteps:\n- run: Say\n  command: echo hi\n");
    home.ok(&["new", "-d", "-n", "in", "--", "bash", "--norc", "--noprofile"]);
    let program = holdfast_harness::program();
    let command = format!("HOLDFAST_ACTOR= {} --as human:tester flow start {file} --id A-1", program.display());
    let ran = until("a prompt", || {
        let ran = home.run(&["run", "in", "--", &command]);
        (!ran.err.contains("busy")).then_some(ran)
    });
    assert_ne!(ran.status, 0, "{ran}");
    assert!(home.fails(&["flow", "show", "A-1"]).contains("no flow A-1"));
    let command = format!("HOLDFAST_ACTOR= {} flow start {file} --id A-2", program.display());
    assert_eq!(home.run(&["run", "in", "--", &command]).status, 0);
    let flow = kitchen.until_status("A-2", "COMPLETED");
    assert!(flow["by"].as_str().unwrap().starts_with("agent:"), "{flow}");
}

#[test]
fn a_step_that_a_rule_asks_about_waits_for_a_human_and_happens_once() {
    const BOT: &str = "agent:bot";
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    home.ok(&["actor", "new", BOT]);
    // What the shell makes of it nobody can tell before.
    let command = kitchen.effect("pay", "eval \"true$NOTHING\"");
    let file = kitchen.file(&format!("flow: A\nsteps:\n- run: Pay\n  command: {command}\n"));
    let start = |id: &str| {
        let started = home.run_as(BOT, &["flow", "start", &file, "--id", id]);
        assert_eq!(started.status, 0, "{started}");
        until("an approval", || home.json(&["approvals", "ls"])[0]["id"].as_str().map(str::to_owned))
    };
    let id = start("A-1");
    let waits = until("what it waits for", || {
        let text = kitchen.flow("A-1").to_string();
        text.contains("a human must approve this").then_some(text)
    });
    assert!(waits.contains(&id) && kitchen.counted().is_empty(), "{waits}");
    kill(kitchen.service_pid());
    home.ok(&["approvals", "approve", &id]);
    kitchen.until_status("A-1", "COMPLETED");
    assert_eq!(kitchen.counted()["A-1 pay"], 1);
    // Denied is denied: it blocks, and says why.
    home.ok(&["approvals", "deny", &start("A-2"), "--reason", "not today"]);
    until("the reason", || kitchen.flow("A-2").to_string().contains("not today"));
    assert!(!kitchen.counted().contains_key("A-2 pay"));
}
