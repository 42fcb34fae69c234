//! `holdfast mcp` as an agent's program uses it: lines of JSON over its standard input and output.

use holdfast_harness::{Home, PATIENCE, TESTER, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// An agent's program, and the server it started.
pub struct Agent {
    server: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    next: u64,
    /// What came that was no answer.
    notes: Vec<Value>,
}

/// What a tool answered.
pub struct Told {
    pub text: String,
    pub content: Value,
    pub is_error: bool,
}

impl Agent {
    pub fn start(home: &Home, args: &[&str], name: &str) -> Agent {
        Agent::of(home.command(&[&["mcp"], args].concat()), name)
    }

    pub fn of(mut command: Command, name: &str) -> Agent {
        command.env("SHELL", "/bin/bash").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().expect("the program can be started");
        let (tell, from) = channel();
        let lines = BufReader::new(server.stdout.take().expect("piped")).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = tell.send(serde_json::from_str(&line).expect("every line is JSON"));
            }
        });
        let to = server.stdin.take();
        let mut agent = Agent { server, to, from, next: 1, notes: Vec::new() };
        let who = json!({ "name": name, "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who });
        assert_eq!(agent.ask("initialize", params)["serverInfo"]["name"], "holdfast");
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn send(&mut self, message: &Value) {
        let to = self.to.as_mut().expect("open");
        to.write_all(format!("{message}\n").as_bytes()).and_then(|()| to.flush()).expect("the server reads");
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn take(&mut self) -> Value {
        self.from.recv_timeout(PATIENCE).expect("the server says something in time")
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.take();
            if message["id"] == id {
                return message;
            }
            self.notes.push(message);
        }
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.answer(id);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Told {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        Told {
            text: result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
            content: result["structuredContent"].clone(),
            is_error: result["isError"] == true,
        }
    }

    /// What a tool gave; it must have done it.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let told = self.call(tool, arguments);
        assert!(!told.is_error, "{tool}: {}", told.text);
        told.content
    }

    /// What a tool refused with.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let told = self.call(tool, arguments);
        assert!(told.is_error, "{tool}: {}", told.text);
        told.content["error"].clone()
    }

    /// Waits for a message that is no answer.
    pub fn until_noted(&mut self, method: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.notes.iter().position(|note| note["method"] == method) {
                return self.notes.remove(at)["params"].clone();
            }
            assert!(Instant::now() < deadline, "{method} comes");
            let message = self.take();
            self.notes.push(message);
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.to.take());
        let ended = self.server.wait().expect("the server ends with its input");
        assert!(ended.success() || std::thread::panicking(), "{ended}");
    }
}

#[test]
fn a_command_has_its_own_output_and_status_and_the_shell_keeps_its_state() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let first = agent.ok("run_command", json!({ "command": "cd /; export A=7; echo hi" }));
    assert_eq!((&first["output"], &first["exit_code"], &first["state"]), (&json!("hi\n"), &json!(0), &json!("ended")));
    // A name of before is served, though no longer listed.
    let second = agent.call("run", json!({ "command": "pwd; echo $A; false", "session": "" }));
    assert_eq!(second.content["output"], "/\n7\n");
    assert_eq!(second.content["exit_code"], 1);
    assert!(second.text.starts_with("[exit 1 · ") && second.text.ends_with("]\n/\n7\n"), "{}", second.text);
    // Who comes back finds its shell again.
    drop(agent);
    let mut agent = Agent::start(&home, &[], "bot");
    assert_eq!(agent.ok("run_command", json!({ "command": "echo $A" }))["output"], "7\n");
}

#[test]
fn an_agent_is_an_actor_of_its_own_and_never_a_human_by_accident() {
    let home = Home::new();
    // The tests' environment says HOLDFAST_ACTOR=human:tester, as a person's profile might.
    let mut agent = Agent::start(&home, &[], "Claude Code");
    agent.ok("run_command", json!({ "command": "true" }));
    let session = agent.ok("sessions", json!({}))["sessions"][0].clone();
    assert_eq!(session["name"], "claude-code");
    let by = home.json(&["run", "ls", "claude-code"])[0]["actor"]["handle"].clone();
    assert_eq!(by, "agent:claude-code");
    let verified = home.json(&["journal", "claude-code", "--verify"]);
    assert_eq!(verified["unsigned"], 0, "{verified}");
    let mut said = Agent::start(&home, &["--as", "service:deploy"], "Claude Code");
    let refused = said.refused("run_command", json!({ "command": "true", "session": "claude-code" }));
    assert_eq!(refused["code"], "denied", "a service holds nothing here: {refused}");
}

#[test]
fn what_takes_long_is_answered_with_its_handle_and_goes_on() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let wait = "until [ -e go ]; do sleep 0.02; done; echo gone; exit_code() { return 3; }; exit_code";
    let on = agent.ok("run_command", json!({ "command": wait, "yield_ms": 100 }));
    assert_eq!((&on["state"], &on["exit_code"]), (&json!("running"), &Value::Null));
    let busy = agent.refused("run_command", json!({ "command": "echo no" }));
    assert_eq!(busy["code"], "shell_busy");
    assert!(busy["hint"].as_str().unwrap().contains(on["run"].as_str().unwrap()), "{busy}");
    assert_eq!(agent.ok("session_state", json!({}))["run"], on["run"]);
    // A second question is answered while one waits, and who gives up waiting stops nothing.
    let params = json!({ "name": "wait_for", "arguments": { "run": on["run"] }, "_meta": { "progressToken": "p" } });
    let waiting = agent.begin("tools/call", params);
    assert_eq!(agent.until_noted("notifications/progress")["progressToken"], "p");
    agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": waiting } }));
    assert_eq!(agent.ok("session_state", json!({}))["run"], on["run"]);
    std::fs::write(home.join("go"), "").unwrap();
    let over = agent.ok("wait_for", json!({ "run": on["run"] }))["run"].clone();
    assert_eq!((&over["state"], &over["exit_code"], &over["output"]), (&json!("ended"), &json!(3), &json!("gone\n")));
}

#[test]
fn a_password_is_a_persons_and_any_other_question_can_be_answered() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let asks = agent.ok("run_command", json!({ "command": "read -s -p 'Password: ' x; echo", "yield_ms": 15_000 }));
    assert_eq!(asks["doing"]["kind"], "password", "{asks}");
    let refused = agent.refused("send_input", json!({ "text": "guess\n" }));
    assert_eq!((&refused["code"], &refused["details"]["kind"]), (&json!("waiting_for_input"), &json!("password")));
    assert!(refused["hint"].as_str().unwrap().contains("ask_human"), "{refused}");
    let over = agent.ok("interrupt", json!({ "run": asks["run"] }))["run"].clone();
    assert_eq!(over["state"], "cancelled");
    // The agent has the turn, and has just acted; the person types all the same.
    let asks = agent
        .ok("run_command", json!({ "command": "read -s -p 'Password: ' x; echo; echo ${#x}", "yield_ms": 15_000 }));
    agent.ok("turn", json!({ "session": "bot", "action": "take" }));
    let sent = home.run_with_input(&["send", "bot", "--secret", "--stdin"], b"hunter2\n");
    assert_eq!(sent.status, 0, "{sent}");
    let over = agent.ok("wait_for", json!({ "run": asks["run"] }))["run"].clone();
    assert!(over["exit_code"] == 0 && over["output"].as_str().unwrap().ends_with("\n7\n"), "{over}");
    until("the lent turn to go back", || !home.ok(&["turn", "bot", "--json"]).contains(TESTER));
    let asks = agent.ok("run_command", json!({ "command": "read -p 'Sure? ' x; echo got $x", "yield_ms": 15_000 }));
    assert_eq!(asks["doing"]["prompt"], "Sure?", "{asks}");
    let wrote = agent.ok("send_input", json!({ "text": "yes\n" }));
    assert!(wrote["output"].as_str().unwrap().contains("got yes"), "{wrote}");
    assert_eq!(agent.ok("wait_for", json!({ "run": asks["run"] }))["run"]["exit_code"], 0);
}

#[test]
fn who_waits_without_a_word_is_waited_for_and_a_question_is_told_once() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let silent = agent.ok("run_command", json!({ "command": "cat", "yield_ms": 1_500 }));
    assert!(silent["duration_ms"].as_u64().unwrap() > 1_200, "{silent}");
    assert_eq!(silent["doing"]["state"], "waiting", "{silent}");
    agent.ok("interrupt", json!({}));
    let asks =
        agent.ok("run_command", json!({ "command": "read -p 'Sure? ' x; read -p 'Really? ' x", "yield_ms": 15_000 }));
    assert_eq!(asks["doing"]["prompt"], "Sure?");
    let again = agent.ok("wait_for", json!({ "run": asks["run"], "timeout_ms": 700 }));
    assert_eq!((&again["outcome"], &again["run"]["doing"]["prompt"]), (&json!("timeout"), &json!("Sure?")));
    agent.ok("send_input", json!({ "text": "y\n" }));
    assert_eq!(agent.ok("session_state", json!({}))["doing"]["prompt"], "Really?");
    agent.ok("interrupt", json!({ "run": asks["run"] }));
}

#[test]
fn a_person_answers_what_an_agent_asks() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let asked = json!({ "question": "deploy now?", "options": ["yes", "no"], "timeout_ms": 0 });
    let open = agent.ok("ask_human", asked.clone());
    assert_eq!((&open["state"], &open["answer"]), (&json!("open"), &Value::Null));
    let id = open["id"].as_str().unwrap().to_owned();
    // An agent that lost its memory asks the same, and finds what it asked.
    assert_eq!(agent.ok("ask_human", asked)["id"], id.as_str());
    let overview = agent.ok("overview", json!({}));
    assert_eq!((&overview["questions"][0]["id"], overview["questions"].as_array().unwrap().len()), (&json!(id), 1));
    let waiting = agent.begin("tools/call", json!({ "name": "ask_human", "arguments": { "id": id } }));
    home.ok(&["answer", &id, "no"]);
    let answered = agent.answer(waiting)["result"]["structuredContent"].clone();
    assert_eq!((&answered["answer"], &answered["by"]), (&json!("no"), &json!(TESTER)), "{answered}");
}

#[test]
fn who_does_not_have_the_turn_writes_nothing_and_is_told_who_has_it() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "work", "--", "/bin/bash"]);
    home.ok(&["take", "work"]);
    let mut agent = Agent::start(&home, &[], "bot");
    let held = agent.refused("send_input", json!({ "session": "work", "text": "x" }));
    assert_eq!((&held["code"], &held["details"]["by"]["handle"]), (&json!("turn_held"), &json!(TESTER)));
    assert!(held["hint"].as_str().unwrap().contains("request"), "{held}");
    let asked = agent.ok("turn", json!({ "session": "work", "action": "request" }));
    assert_eq!((&asked["yours"], &asked["before"]), (&json!(false), &json!(0)));
    home.ok(&["release", "work"]);
    assert_eq!(agent.ok("turn", json!({ "session": "work", "action": "take" }))["yours"], true);
    let given = agent.ok("turn", json!({ "session": "work", "action": "give", "to": TESTER }));
    assert_eq!(given["holder"], TESTER);
}

#[test]
fn output_is_bounded_and_every_byte_of_it_can_be_had() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let long = agent.ok("run_command", json!({ "command": "seq 20000", "max_output_bytes": 400 }));
    let shown = long["output"].as_str().unwrap();
    assert!(shown.starts_with("1\n2\n") && shown.ends_with("20000\n") && shown.len() < 600, "{shown}");
    let (mut from, mut whole) = (long["from"].as_u64().unwrap(), String::new());
    loop {
        let piece = agent.ok("read_output", json!({ "run": long["run"], "from": from, "max_bytes": 65_536 }));
        whole.push_str(piece["text"].as_str().unwrap());
        from = piece["to"].as_u64().unwrap();
        if piece["end"] == true {
            break;
        }
    }
    let expected: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    assert!(whole == expected, "{} bytes in place of {}", whole.len(), expected.len());
    let odd = agent.ok("run_command", json!({ "command": r"printf 'a\377b'" }));
    assert_eq!((&odd["lossy"], &odd["output"]), (&json!(true), &json!("a\u{fffd}b")));
    let exact = agent.ok("read_output", json!({ "run": odd["run"], "encoding": "base64" }));
    assert_eq!(exact["base64"], "Yf9i");
}

#[test]
fn a_key_runs_once() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let once = json!({ "command": "echo x >> log", "key": "k" });
    let first = agent.ok("run_command", once.clone());
    let again = agent.ok("run_command", once);
    assert_eq!((&again["run"], &again["existing"]), (&first["run"], &json!(true)));
    assert_eq!(agent.ok("wait_for", json!({ "run": "k" }))["run"]["run"], first["run"], "a key names its run");
    assert_eq!(agent.ok("runs", json!({ "state": "ended" }))["runs"][0]["key"], "k");
    assert_eq!(std::fs::read_to_string(home.join("log")).unwrap(), "x\n");
    assert_eq!(agent.refused("run_command", json!({ "command": "echo y", "key": "k" }))["code"], "key_conflict");
}

#[test]
fn each_connection_has_a_shell_of_its_own_and_a_client_that_comes_back_its_own() {
    let home = Home::new();
    let mut one = Agent::start(&home, &[], "bot");
    one.ok("run_command", json!({ "command": "x=one" }));
    let mut two = Agent::start(&home, &[], "bot");
    assert_eq!(two.ok("run_command", json!({ "command": "echo [$x]" }))["output"], "[]\n");
    drop(one);
    let mut back = Agent::start(&home, &[], "bot");
    let again = back.ok("run_command", json!({ "command": "echo [$x]" }));
    assert_eq!((&again["output"], &again["restarted"]), (&json!("[one]\n"), &Value::Null), "{again}");
    // Its shell ends: that is said, or refused.
    back.ok("send_input", json!({ "text": "exit\n" }));
    back.ok("wait_for", json!({ "session": "bot", "until": "exit" }));
    let refused = back.refused("run_command", json!({ "command": "echo [$x]", "same_shell": true }));
    assert_eq!(refused["code"], "shell_restarted");
    let fresh = back.ok("run_command", json!({ "command": "echo [$x] $PAGER" }));
    assert_eq!((&fresh["output"], &fresh["restarted"]), (&json!("[] cat\n"), &json!(true)), "{fresh}");
    let name = fresh["session"].as_str().unwrap().to_owned();
    back.ok("end_session", json!({}));
    assert_eq!(back.ok("wait_for", json!({ "session": name, "until": "exit" }))["outcome"], "came");
}

#[test]
fn parallel_commands_of_one_connection_wait_in_line_and_all_of_them_for_a_slow_shell() {
    let home = Home::new();
    std::fs::write(home.join(".bashrc"), "until [ -e ready ]; do sleep 0.02; done\n").unwrap();
    let mut command = home.command(&["mcp"]);
    command.env("HOME", home.path());
    let mut agent = Agent::of(command, "bot");
    let call = |n: u32| json!({ "name": "run_command", "arguments": { "command": format!("sleep 0.1; echo {n}") } });
    let calls: Vec<u64> = (0..3).map(|n| agent.begin("tools/call", call(n))).collect();
    agent.ok("sessions", json!({}));
    std::fs::write(home.join("ready"), "").unwrap();
    for (n, id) in calls.into_iter().enumerate() {
        let told = agent.answer(id)["result"].clone();
        assert_eq!(told["structuredContent"]["output"], format!("{n}\n"), "{told}");
        let text = told["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("[exit 0 · ") && text.ends_with(&format!("]\n{n}\n")), "the status is first: {text}");
    }
}

#[test]
fn a_host_that_was_killed_is_started_again_and_nothing_is_lost() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let on = agent
        .ok("run_command", json!({ "command": "until [ -e go ]; do sleep 0.02; done; echo gone", "yield_ms": 100 }));
    let waiting = agent.begin("tools/call", json!({ "name": "wait_for", "arguments": { "run": on["run"] } }));
    let host = rustix::process::Pid::from_raw(home.host_pid() as i32).unwrap();
    rustix::process::kill_process(host, rustix::process::Signal::KILL).unwrap();
    std::fs::write(home.join("go"), "").unwrap();
    let over = agent.answer(waiting)["result"]["structuredContent"]["run"].clone();
    assert_eq!((&over["exit_code"], &over["output"]), (&json!(0), &json!("gone\n")), "{over}");
    assert_eq!(agent.ok("run_command", json!({ "command": "echo on" }))["output"], "on\n");
}

#[test]
fn a_server_has_a_session_of_its_own_and_its_port_can_be_waited_for() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[], "bot");
    let script = "import socket,time\ns=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\nprint('port', s.getsockname()[1], flush=True)\ntime.sleep(600)";
    let opened = agent
        .ok("open_session", json!({ "name": "srv", "command": ["python3", "-c", script], "env_add": { "B": "8" } }));
    assert_eq!(opened["created"], true);
    assert_eq!(agent.ok("open_session", json!({ "name": "srv" }))["created"], false);
    let found =
        agent.ok("wait_for", json!({ "session": "srv", "until": r"text:port \d+", "from": 0 }))["found"].clone();
    let port = found["text"].as_str().unwrap().replace("port ", "");
    let came = agent.ok("wait_for", json!({ "session": "srv", "until": format!("port:{port}") }));
    let pid = came["listener"]["pid"].clone();
    let ports = agent.ok("ports", json!({}));
    assert_eq!((&ports["ports"][0]["pid"], &ports["ports"][0]["by"]), (&pid, &json!("agent:bot")));
    let graph = agent.ok("graph", json!({ "session": "srv" }));
    assert_eq!(graph["processes"][0]["pid"], pid);
    agent.ok("interrupt", json!({ "session": "srv" }));
    let over = agent.ok("wait_for", json!({ "session": "srv", "until": "exit" }));
    assert_eq!(over["outcome"], "came");
}

#[test]
fn a_subscriber_is_told_of_changes_and_only_until_it_lets_go() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "work", "--", "/bin/bash"]);
    let mut agent = Agent::start(&home, &[], "bot");
    let listed = agent.ask("resources/list", json!({}));
    let uris: Vec<&str> = listed["resources"].as_array().unwrap().iter().filter_map(|r| r["uri"].as_str()).collect();
    assert_eq!(uris, ["session://work/screen", "session://work/log", "session://work/graph"]);
    agent.ask("resources/subscribe", json!({ "uri": "session://work/log" }));
    agent.ok("run_command", json!({ "session": "work", "command": "echo needle" }));
    assert_eq!(agent.until_noted("notifications/resources/updated")["uri"], "session://work/log");
    let log = agent.ask("resources/read", json!({ "uri": "session://work/log" }));
    assert!(log["contents"][0]["text"].as_str().unwrap().contains("needle"), "{log}");
    agent.ask("resources/unsubscribe", json!({ "uri": "session://work/log" }));
    agent.ok("open_session", json!({ "name": "other" }));
    agent.until_noted("notifications/resources/list_changed");
    let refused = agent.begin("resources/read", json!({ "uri": "session://nobody/log" }));
    assert_eq!(agent.answer(refused)["error"]["code"], -32002);
    let of = json!({ "type": "ref/resource", "uri": "session://{session}/log" });
    let completed =
        agent.ask("completion/complete", json!({ "ref": of, "argument": { "name": "session", "value": "o" } }));
    assert_eq!(completed["completion"]["values"], json!(["other"]));
}

#[test]
fn a_configuration_is_written_once_shown_before_and_taken_back() {
    let home = Home::new();
    let file = home.join("mcp.json");
    std::fs::write(&file, "{\n  // mine\n  \"mcpServers\": {}\n}\n").unwrap();
    let path = file.to_str().unwrap();
    let unasked = home.run(&["mcp", "install", "cursor", "--file", path]);
    assert_eq!(unasked.status, 2, "{unasked}");
    assert!(unasked.out.contains("+    \"holdfast\": {") && unasked.err.contains("--yes"), "{unasked}");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("holdfast"));
    home.ok(&["mcp", "install", "cursor", "--yes", "--file", path]);
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("// mine") && written.contains("\"mcp\""), "{written}");
    assert!(home.ok(&["mcp", "install", "cursor", "--yes", "--file", path]).contains("nothing to change"));
    home.ok(&["mcp", "install", "cursor", "--yes", "--remove", "--file", path]);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("holdfast"));
    let codex = home.ok(&["mcp", "install", "codex", "--print"]);
    assert!(codex.starts_with("[mcp_servers.holdfast]\ncommand = ") && codex.contains("\"agent:codex\""), "{codex}");
}

#[test]
fn the_skill_is_short_and_names_every_tool() {
    let home = Home::new();
    let skill = home.ok(&["skill"]);
    assert!(skill.lines().count() <= 80);
    for tool in holdfast_mcp::listing() {
        let is_named = skill.contains(&format!("`{}", tool.name));
        assert!(is_named || ["sessions", "turn", "interrupt"].contains(&&*tool.name), "{}", tool.name);
    }
}

#[test]
fn the_document_lists_the_tools_that_are_served() {
    let document = include_str!("../../../../docs/mcp.md");
    let rows: Vec<String> = holdfast_mcp::listing()
        .iter()
        .map(|tool| {
            let looks = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) == Some(true);
            let title = tool.title.as_deref().unwrap_or_default();
            format!("| `{}` | {} | {title} |", tool.name, if looks { "no" } else { "yes" })
        })
        .collect();
    assert!(document.contains(&rows.join("\n")), "docs/mcp.md should have:\n{}", rows.join("\n"));
}
