//! Flows over HTTP and MCP: the host passes questions on to their service, and says who asks.

use crate::http::Http;
use crate::mcp::Agent;
use holdfast_harness::{Home, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

const WAITS: &str = "flow: A\nsteps:\n- signal: go\n- ask: Ship?\n  name: Ship\n- run: Say\n  command: echo {{ go }} {{ Ship }} {{ input }}\n";

#[test]
fn a_flow_is_started_steered_and_answered_over_http() {
    let http = Http::new();
    let home = &http.home;
    assert_eq!(http.get("/flows").body, json!([]));
    assert_eq!(http.get("/flows/A-1").status, 404);
    assert!(!home.join("flows.db").exists(), "who looks starts no service");
    let start = json!({ "definition": WAITS, "input": "rye", "flow": "A-1", "cwd": "/" });
    let started = http.post("/flows", start.clone());
    assert_eq!((started.status / 100, &started.body["status"]), (2, &json!("WAITING_FOR(go)")), "{started:?}");
    assert_eq!(
        (&started.body["by"], http.post("/flows", start).body["existing"].clone()),
        (&json!("agent:bot"), json!(true))
    );
    let wrong = http.post("/flows", json!({ "definition": "flow: A\nsteps:\n- slep: 1s\n" }));
    assert_eq!((wrong.status, &wrong.body["code"]), (400, &json!("bad_request")), "{wrong:?}");
    assert!(wrong.body["message"].as_str().unwrap().starts_with("line 3:"), "{wrong:?}");
    for _ in 0..2 {
        let signalled = http.post("/flows/A-1/signal", json!({ "name": "go", "value": "now", "id": "s1" }));
        assert_eq!(signalled.body["status"], "WAITING_FOR(Ship)", "{signalled:?}");
    }
    // An agent does not answer, and a person's token does.
    let answer = json!({ "text": "yes" });
    let refused = http.post("/flows/A-1/answer", answer.clone());
    assert_eq!((refused.status, &refused.body["code"]), (403, &json!("denied")), "{refused:?}");
    let human = home.ok(&["token", "new"]).trim().to_owned();
    let answered = http.ask_as(&human, "POST", "/flows/A-1/answer", Some(answer));
    assert_eq!(answered.status, 200, "{answered:?}");
    let ended = until("the end", || {
        let view = http.get("/flows/A-1?wait_ms=1000&after=6").body;
        (view["state"] == "completed").then_some(view)
    });
    assert_eq!(ended["value"], "now yes rye");
    assert_eq!(http.get("/flows").body, json!([]), "open ones");
    assert_eq!(http.get("/flows?all=true").body[0]["id"], "A-1");

    // Somebody else's flow is not there for an agent, and is for a person.
    home.ok(&["actor", "new", "agent:eve"]);
    let eve = home.ok(&["--as", "agent:eve", "token", "new"]).trim().to_owned();
    assert_eq!(http.ask_as(&eve, "GET", "/flows/A-1", None).status, 404);
    assert_eq!(http.ask_as(&eve, "GET", "/flows?all=true", None).body, json!([]));
    assert_eq!(http.ask_as(&human, "GET", "/flows?all=true", None).body[0]["id"], "A-1");
    let other = http.post("/flows", json!({ "definition": WAITS, "flow": "A-2" }));
    assert_eq!(other.status / 100, 2, "{other:?}");
    assert_eq!(http.ask_as(&eve, "POST", "/flows/A-2/cancel", Some(json!({}))).status, 403);
    assert_eq!(http.post("/flows/A-2/cancel", json!({ "reason": "enough" })).body["status"], "CANCELLED");
}

#[test]
fn a_person_follows_all_flows_and_decides_about_a_stuck_one_over_http() {
    let http = Http::new();
    let human = http.home.ok(&["token", "new"]).trim().to_owned();
    let (ask, post) = (
        |path: &str| http.ask_as(&human, "GET", path, None).body,
        |path: &str, body: Value| http.ask_as(&human, "POST", path, Some(body)),
    );
    let mended = http.home.join("mended").display().to_string();
    let text = format!(
        "flow: U\nsteps:\n- run: Do\n  command: echo done\n  undo: '[ -e {mended} ]'\n- run: Break\n  command: exit 1\n"
    );
    assert_eq!(post("/flows", json!({ "definition": text, "flow": "U-1", "cwd": "/" })).status / 100, 2);
    let mut after = 0;
    let stuck = until("a stuck step", || {
        let changed = ask(&format!("/flows?all=true&wait_ms=20000&after={after}"));
        let flow = changed.as_array().unwrap().first()?.clone();
        after = flow["changed"].as_u64().unwrap();
        flow["status"].as_str().unwrap().starts_with("STUCK").then_some(flow)
    });
    assert_eq!((&stuck["waits_for"][0]["name"], &stuck["waits_for"][0]["attempt"]), (&json!("undo Do"), &json!(4)));
    let refused = post("/flows/U-1/retry", json!({ "verdict": "perhaps" }));
    assert_eq!((refused.status, &refused.body["code"]), (400, &json!("bad_request")), "{refused:?}");
    // What is stuck is a human's to decide, whoever started it.
    assert_eq!(http.post("/flows/U-1/retry", json!({})).status, 403);
    std::fs::write(http.home.join("mended"), "").unwrap();
    assert_eq!(post("/flows/U-1/retry", json!({})).status, 200);
    until("the end", || ask("/flows/U-1")["state"] == "failed");
    assert_eq!(post("/flows/U-1/retry", json!({})).body["code"], "ended");
}

#[test]
fn a_token_with_fewer_rights_than_its_actor_starts_no_flow() {
    let http = Http::new();
    let narrow = http.home.ok(&["--as", "agent:bot", "token", "new", "--can", "observe,run,start"]).trim().to_owned();
    let start = json!({ "definition": WAITS, "flow": "A-1" });
    let refused = http.ask_as(&narrow, "POST", "/flows", Some(start.clone()));
    assert_eq!((refused.status, &refused.body["code"]), (403, &json!("too_wide")), "{refused:?}");
    let looks = http.home.ok(&["--as", "agent:bot", "token", "new", "--can", "observe"]).trim().to_owned();
    assert_eq!(http.post("/flows", start).status / 100, 2);
    assert_eq!(http.ask_as(&looks, "GET", "/flows/A-1", None).status, 200);
    let refused = http.ask_as(&looks, "POST", "/flows/A-1/signal", Some(json!({ "name": "go" })));
    assert_eq!((refused.status, &refused.body["details"]["right"]), (403, &json!("run")), "{refused:?}");
    // An actor without a key in this home cannot be acted for later.
    let human = http.home.ok(&["token", "new"]).trim().to_owned();
    let made = http.ask_as(&human, "POST", "/tokens", Some(json!({ "actor": "agent:far" })));
    let far = made.body["text"].as_str().unwrap().to_owned();
    let refused = http.ask_as(&far, "POST", "/flows", Some(json!({ "definition": WAITS })));
    assert_eq!((refused.status / 100, &refused.body["code"]), (4, &json!("unidentified")), "{refused:?}");
}

#[test]
fn only_the_host_speaks_for_others() {
    let home = Home::new();
    home.ok(&["flow", "ls"]);
    let actor: Value =
        serde_json::from_slice(&std::fs::read(home.places().actor_public(&"human:tester".parse().unwrap())).unwrap())
            .unwrap();
    let claimed = json!({ "id": actor["id"], "handle": actor["handle"] });
    for said in [json!({ "actor": claimed, "vouched": true }), json!({ "actor": claimed })] {
        let stream = UnixStream::connect(home.places().run.join("flows.sock")).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        lines.next().unwrap().unwrap();
        (&stream).write_all(format!("{said}\n{}\n", json!({ "id": 1, "do": "list" })).as_bytes()).unwrap();
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(0), &json!("unidentified")), "{answer}");
    }
}

#[test]
fn an_agent_starts_looks_at_and_signals_flows_by_tools() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let none = agent.ok("flow_status", json!({}));
    assert_eq!(none["flows"], json!([]));
    let text = "flow: A\nsteps:\n- signal: go\n- run: Say\n  command: echo {{ go }} {{ input }}\n";
    let started = agent.ok("start_flow", json!({ "definition": text, "input": "rye", "id": "A-1" }));
    assert_eq!(started["flows"][0], "A-1 WAITING_FOR(go)");
    assert_eq!(agent.ok("flow_status", json!({}))["flows"][0], "A-1 WAITING_FOR(go)");
    agent.ok("signal_flow", json!({ "flow": "A-1", "name": "go", "value": "now" }));
    until("the end", || {
        let shown = agent.ok("flow_status", json!({ "flow": "A-1", "wait_ms": 1000 }));
        shown["flows"][0] == "A-1 COMPLETED: now rye"
    });
    assert_eq!(agent.refused("flow_status", json!({ "flow": "B-1" }))["code"], "not_found");
    assert!(home.json(&["flow", "show", "A-1"])["by"].as_str().unwrap().starts_with("agent:"));
}
