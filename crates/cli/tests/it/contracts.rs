//! Runs under contracts: what they promise is checked first, what they do is measured, and both are compared. The host runs as root
//! here, so the kernel tells; one test takes that from it.

use crate::gate::{BOT, bot_releases, bot_runs, with_bash};
use holdfast_harness::{Home, program, until};
use serde_json::{Value, json};
use std::process::Command;

const NOTHING_LEFT: [&str; 2] = ["--may-leave", "0"];

/// The agent's run under a contract, and its trace.
fn under(home: &Home, contract: &[&str], command: &str) -> (Value, Value) {
    let ran = bot_runs(home, &[contract, &["--", command]].concat());
    let id = ran["id"].as_str().unwrap_or_else(|| panic!("{command}: {ran}")).to_owned();
    (ran, home.json(&["trace", &id]))
}

fn beyond(ran: &Value) -> Vec<String> {
    let all = ran["outcome"]["unexpected"].as_array().unwrap_or_else(|| panic!("{ran}"));
    all.iter().map(|one| format!("{} {}", one["kind"].as_str().unwrap(), one["what"].as_str().unwrap())).collect()
}

#[test]
fn a_run_that_keeps_its_contract_is_valid_and_counts() {
    let home = with_bash("");
    let script = "mkdir out && echo 1 > out/a && cp out/a out/b && echo 2 > src.tmp && mv src.tmp src.txt && rm out/b";
    let contract = ["--intent", "build it", "--may-change", "out/**", "--may-change", "src.*", "--may-leave", "0"];
    let (ran, trace) = under(&home, &contract, script);
    assert_eq!((&ran["outcome"]["validity"], &ran["outcome"]["success"]), (&json!("valid"), &json!(true)), "{trace:#}");
    let project = home.join("project").canonicalize().unwrap();
    let at = |name: &str| project.join(name).to_str().unwrap().to_owned();
    let files = &trace["effects"]["files"];
    assert_eq!(files["created"], json!([at("out"), at("out/a")]), "{trace:#}");
    assert_eq!((&files["changed"], &files["passing"]), (&json!([at("src.txt")]), &json!(1)), "{trace:#}");
    let measured = &trace["effects"]["files_measured"];
    assert_eq!((&measured["complete"], &measured["by"]), (&json!(true), &json!("fanotify")), "{trace:#}");
    assert_eq!((&trace["contract"]["intent"], &trace["decision"]["rule"]), (&json!("build it"), &json!("solo.free")));
    let record = home.json(&["record", BOT]);
    assert_eq!(
        (&record["runs"], &record["valid"], &record["unexpected"]),
        (&json!(1), &json!(1), &json!(0)),
        "{record}"
    );
    assert_eq!(record["actions"][0]["action"], "mkdir", "{record}");
    // For people, and for what reads OpenTelemetry.
    let id = ran["id"].as_str().unwrap();
    let text = home.ok(&["trace", id]);
    assert!(text.contains("valid, succeeded") && text.contains("complete, by fanotify"), "{text}");
    let spans: Value = serde_json::from_str(&home.ok(&["trace", id, "--otlp"])).unwrap();
    let spans = &spans["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!(spans[0]["name"], "holdfast.run", "{spans}");
    assert_eq!(spans[0]["traceId"].as_str().map(str::len), Some(32), "{spans}");
    assert_eq!(spans[1]["parentSpanId"], spans[0]["spanId"], "{spans}");
}

#[test]
fn what_goes_beyond_a_contract_is_named_whatever_it_is() {
    let home = with_bash("");
    let project = home.join("project").canonicalize().unwrap();
    std::fs::write(project.join("there"), "x").unwrap();
    let inside = ["--may-change", "ok/**"];
    let (ran, _) = under(&home, &inside, "mkdir ok; echo >> there; touch ok/x");
    assert_eq!(beyond(&ran), [format!("file changed {}/there", project.display())], "{ran:#}");
    let (ran, _) = under(&home, &inside, "rm there; mv ok/x elsewhere");
    let moved = format!("file moved {0}/ok/x to {0}/elsewhere", project.display());
    assert_eq!(beyond(&ran), [format!("file deleted {}/there", project.display()), moved], "{ran:#}");
    // By a shell below, in another directory.
    let (ran, _) = under(&home, &inside, "(cd ok && sh -c 'echo 1 > ../../deep')");
    assert_eq!(beyond(&ran).len(), 1, "{ran:#}");
    let (ran, _) = under(&home, &NOTHING_LEFT, "(setsid sleep 1000 </dev/null >/dev/null 2>&1 &)");
    assert!(beyond(&ran)[0].starts_with("process ") && beyond(&ran)[0].ends_with("sleep 1000"), "{ran:#}");
    let serve = "python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); \
                 open(\"port\",\"w\").write(str(s.getsockname()[1])); time.sleep(1000)' & until [ -s port ]; do :; done";
    let (ran, _) = under(&home, &["--may-listen", "nothing"], serve);
    let port = std::fs::read_to_string(project.join("port")).unwrap();
    assert_eq!(beyond(&ran), [format!("port {port}")], "{ran:#}");
    // Its exit status is a promise too, and the program says all of it.
    let (ran, _) = under(&home, &["--may-change", "nothing", "--expect", "exit:3"], "sh -c 'exit 3'");
    assert_eq!((&ran["outcome"]["success"], &ran["outcome"]["validity"]), (&json!(true), &json!("valid")), "{ran:#}");
    let told = home.run_as(BOT, &["run", "work", "--may-change", "nothing", "--", "touch it"]);
    assert!(told.status == 1 && told.err.contains("effects beyond the contract: file created"), "{told}");
    let record = home.json(&["record", BOT]);
    assert!(record["unexpected"].as_u64() >= Some(6), "{record}");
    bot_releases(&home);
    let suggested = home.ok(&["policy", "suggest"]);
    assert!(
        suggested.contains("Narrow: agent:bot ran touch 1 times") && suggested.contains("own.watch-"),
        "{suggested}"
    );
    let file = home.join("suggested.cedar");
    std::fs::write(&file, suggested.replace("# ", "// ")).unwrap();
    home.ok(&["policy", "check", file.to_str().unwrap()]);
    home.ok(&["end", "work"]);
}

#[test]
fn malformed_contracts_and_those_beyond_the_policy_reach_no_shell() {
    let home = with_bash("policy = \"careful\"\n");
    until("a prompt", || home.run_as(BOT, &["run", "work", "--", "true"]).status == 0);
    for (args, part) in [
        (&["--retries", "2"][..], "idempotent"),
        (&["--may-change", "../x"], "`..`"),
        (&["--may-connect", "example"], "ADDRESS:PORT"),
        (&["--may-change", "nothing", "--may-change", "x"], "no other"),
    ] {
        let ran = home.run_as(BOT, &[&["run", "work"], args, &["--", "touch made"]].concat());
        assert!(ran.status == 2 && ran.err.contains(part), "{args:?}: {ran}");
    }
    let file = home.join("c.json");
    std::fs::write(&file, r#"{"expect": {"may_chnage": []}}"#).unwrap();
    let ran = home.run_as(BOT, &["run", "work", "--contract", file.to_str().unwrap(), "--", "touch made"]);
    assert!(ran.status == 2 && ran.err.contains("may_chnage"), "{ran}");
    // What it says that it may change is judged as if it did.
    let held = bot_runs(&home, &["--may-change", "/etc/**", "--", "touch made"]);
    assert_eq!(held["error"]["code"], "approval_needed", "{held}");
    assert!(!home.join("project/made").exists());
    assert_eq!(home.json(&["record", BOT])["runs"], 0);
}

#[test]
fn a_policy_demands_contracts_and_a_record() {
    let home = with_bash("");
    std::fs::create_dir(home.join("policy")).unwrap();
    let rule = r#"
@id("own.contract")
@why("say what it changes")
forbid (principal, action == Action::"run", resource)
when { principal.class == "agent" } unless { context has contract && context.contract.promises.contains("files") };
@id("own.earned")
@ask("it has not earned this yet")
forbid (principal, action == Action::"run", resource)
when { context.names.contains("cp") }
unless { principal.record.unexpected == 0 && principal.record.runs >= 2 && context.record.runs >= 0 };
"#;
    std::fs::write(home.join("policy/own.cedar"), rule).unwrap();
    home.ok(&["policy", "check"]);
    let denied = bot_runs(&home, &["--", "touch a"]);
    assert_eq!(denied["error"]["details"]["rule"], "own.contract", "{denied}");
    let may = ["--may-change", "*"];
    let asked = bot_runs(&home, &[&may[..], &["--", "cp a b"]].concat());
    assert_eq!(asked["error"]["code"], "approval_needed", "{asked}");
    for _ in 0..2 {
        let (ran, _) = under(&home, &may, "touch a");
        assert_eq!(ran["outcome"]["validity"], "valid", "{ran:#}");
    }
    let (ran, _) = under(&home, &may, "cp a b");
    assert_eq!(ran["exit_code"], 0, "{ran:#}");
    // One unexpected effect takes it back. An agent cannot count a run twice, nor measure one without a promise into its record.
    under(&home, &["--may-change", "nothing"], "touch c");
    let again = bot_runs(&home, &[&may[..], &["--", "cp a d"]].concat());
    assert_eq!(again["error"]["code"], "approval_needed", "{again}");
    let before = home.json(&["record", BOT]);
    let key = ["--key", "once", "--may-change", "nothing", "--", "true"];
    assert_eq!(bot_runs(&home, &key)["id"], bot_runs(&home, &key)["id"]);
    assert_eq!(home.json(&["record", BOT])["runs"].as_u64(), before["runs"].as_u64().map(|runs| runs + 1));
}

#[test]
fn two_actors_in_one_directory_are_told_apart() {
    let home = with_bash("");
    let project = home.join("project").canonicalize().unwrap();
    home.ok(&["actor", "new", "agent:other"]);
    home.ok(&["new", "-d", "-n", "two", "--cwd", project.to_str().unwrap(), "--", "bash"]);
    let churn = |name: &str| format!("for i in $(seq 40); do echo $i > {name}.$i; cat {name}.$i > {name}.copy; done");
    let runs: Vec<Value> = std::thread::scope(|scope| {
        let all = [("work", BOT, "a"), ("two", "agent:other", "b")].map(|(session, actor, name)| {
            let (home, script) = (&home, churn(name));
            scope.spawn(move || {
                let may = format!("{name}.*");
                let args = ["--json", "run", session, "--may-change", &may, "--", &script];
                let ran = home.run_as(actor, &args);
                serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran}"))
            })
        });
        all.map(|one| one.join().unwrap()).into()
    });
    for ran in runs {
        assert_eq!(ran["outcome"]["validity"], "valid", "{ran:#}");
        let trace = home.json(&["trace", ran["id"].as_str().unwrap()]);
        assert_eq!(trace["effects"]["files"]["count"], 41, "{trace:#}");
    }
}

#[test]
fn what_is_idempotent_is_run_again_until_it_succeeds() {
    let home = with_bash("");
    let script = "echo x >> tries; test $(wc -l < tries) -ge 3";
    let ran = bot_runs(
        &home,
        &["--idempotent", "--retries", "4", "--backoff", "0.05", "--may-change", "tries", "--", script],
    );
    assert_eq!((&ran["exit_code"], &ran["attempt"]), (&json!(0), &json!(3)), "{ran:#}");
    let trace = home.json(&["trace", ran["id"].as_str().unwrap()]);
    let exits: Vec<&Value> = trace["attempts"].as_array().unwrap().iter().map(|one| &one["exit_code"]).collect();
    assert_eq!(exits, [&json!(1), &json!(1), &json!(0)], "{trace:#}");
    // By its first attempt's id it is the same.
    let first = trace["attempts"][0]["run"].as_str().unwrap();
    assert_eq!(home.json(&["run", "status", first])["id"], ran["id"]);
    let failed = bot_runs(&home, &["--idempotent", "--retries", "1", "--backoff", "0.05", "--", "false"]);
    assert_eq!((&failed["exit_code"], &failed["attempt"]), (&json!(1), &json!(2)), "{failed:#}");
}

#[test]
fn a_session_of_its_own_is_measured_from_its_first_process_on() {
    let home = with_bash("");
    let cwd = home.join("project");
    let mut command = home.command(&[
        "--json",
        "run",
        "--new",
        "--may-change",
        "*",
        "--may-leave",
        "0",
        "--",
        "sh",
        "-c",
        "echo 1 > one; echo 2 > ../two",
    ]);
    let out = command.current_dir(&cwd).output().unwrap();
    let ran: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{out:?}"));
    let two = home.path().canonicalize().unwrap().join("two");
    assert_eq!(beyond(&ran), [format!("file created {}", two.display())], "{ran:#}");
    let trace = home.json(&["trace", ran["id"].as_str().unwrap()]);
    assert_eq!(trace["effects"]["files"]["count"], 2, "{trace:#}");
}

#[test]
fn a_host_killed_meanwhile_leaves_the_contract_and_says_what_it_missed() {
    let home = with_bash("");
    let started = home.run_as(
        BOT,
        &[
            "--json",
            "run",
            "work",
            "--timeout",
            "0.2",
            "--may-change",
            "*",
            "--may-leave",
            "0",
            "--",
            "touch a; until [ -e go ]; do sleep 0.05; done",
        ],
    );
    let ran: Value = serde_json::from_str(&started.out).unwrap_or_else(|_| panic!("{started}"));
    let id = ran["id"].as_str().unwrap();
    home.kill_host();
    std::fs::write(home.join("project/go"), "").unwrap();
    let trace = until("an outcome", || Some(home.json(&["trace", id])).filter(|trace| trace["outcome"].is_object()));
    assert_eq!((&trace["state"], &trace["exit_code"]), (&json!("ended"), &json!(0)), "{trace:#}");
    assert_eq!(trace["contract"]["expect"]["may_change"], json!(["*"]), "{trace:#}");
    assert_eq!(
        (&trace["outcome"]["validity"], &trace["outcome"]["untold"]),
        (&json!("unknown"), &json!(["files"])),
        "{trace:#}"
    );
    assert!(trace["effects"]["files_measured"]["why"].as_str().unwrap().contains("stopped"), "{trace:#}");
    let record = home.json(&["record", BOT]);
    assert_eq!((&record["runs"], &record["unknown"]), (&json!(1), &json!(1)), "{record}");
    // Killed between the end and the outcome: the same, once.
    let pause = home.pause("contract.over");
    let mut run = home.command(&["--as", BOT, "run", "work", "--may-change", "*", "--", "touch b"]).spawn().unwrap();
    drop(pause.reached());
    drop(pause);
    home.kill_host();
    run.wait().unwrap();
    until("two runs", || home.json(&["record", BOT])["runs"] == 2);
}

#[test]
fn without_the_kernels_word_the_directory_is_looked_at_and_that_is_said() {
    let home = Home::new();
    std::fs::create_dir(home.join("project")).unwrap();
    // A host that may not watch file systems.
    let given = home.command(&["host", "start"]);
    let mut weak = Command::new("setpriv");
    weak.args(["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]).arg(program()).args(given.get_args());
    weak.env_clear().envs(given.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(home.path());
    let out = weak.output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let project = home.join("project");
    home.ok(&["new", "-d", "-n", "work", "--cwd", project.to_str().unwrap(), "--", "bash"]);
    let run = |may: &str, command: &str| -> (Value, Value) {
        let ran = home.run(&["--json", "run", "work", "--may-change", may, "--may-leave", "0", "--", command]);
        let ran: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran}"));
        let trace = home.json(&["trace", ran["id"].as_str().unwrap()]);
        (ran, trace)
    };
    let (ran, trace) = run("*", "touch a; echo 1 > b; sleep 1000 & ");
    let measured = &trace["effects"]["files_measured"];
    assert_eq!((&measured["complete"], &measured["by"]), (&json!(false), &json!("ctime")), "{trace:#}");
    assert_eq!(trace["effects"]["files"]["created"].as_array().map(Vec::len), Some(2), "{trace:#}");
    assert!(beyond(&ran)[0].ends_with("sleep 1000"), "{ran:#}");
    let (ran, _) = run("*", "true");
    assert_eq!(
        (&ran["outcome"]["validity"], &ran["outcome"]["untold"]),
        (&json!("unknown"), &json!(["files"])),
        "{ran:#}"
    );
    let (ran, _) = run("x", "rm a");
    assert_eq!(ran["outcome"]["validity"], "invalid", "what was seen counts: {ran:#}");
}
