//! What each command does.

use crate::Kitchen;
use holdfast_harness::kill;
use serde_json::{Value, json};

#[test]
fn a_step_that_fails_is_tried_again_and_the_flow_goes_on() {
    let kitchen = Kitchen::new();
    let count = format!("[ $(grep -c bake {}) -ge 3 ]", kitchen.ledger().display());
    let bake = kitchen.effect("bake", &count);
    kitchen
        .start(&format!("flow: A\nsteps:\n- run: Bake\n  command: \"{bake}\"\n  retries: 4\n  backoff: 10ms\n"), "A-1");
    kitchen.until_status("A-1", "COMPLETED");
    assert_eq!(kitchen.counted()["A-1 bake"], 3);
    let history = kitchen.home.ok(&["flow", "history", "A-1"]);
    assert_eq!(
        history,
        "   Bake attempt 1 ✗ exit 1; tried again\n   Bake attempt 2 ✗ exit 1; tried again\n1. Bake → \n"
    );
}

#[test]
fn a_flow_that_fails_or_is_cancelled_undoes_what_was_done_the_last_first() {
    let kitchen = Kitchen::new();
    let step = |name: &str| {
        let (what, undo) = (kitchen.effect(name, "echo DONE"), kitchen.effect(&format!("undo-{name}"), "true"));
        format!("- run: {name}\n  command: {what}\n  undo: {undo}\n")
    };
    let text = format!("flow: Saga\nsteps:\n{}{}- run: Deliver\n  command: exit 9\n", step("Take"), step("Bake"));
    kitchen.start(&text, "Saga-1");
    let failed = kitchen.until_status("Saga-1", "FAILED");
    assert_eq!(failed["value"], "Deliver: exit 9");
    let ledger = std::fs::read_to_string(kitchen.ledger()).unwrap();
    assert_eq!(ledger, "Saga-1 Take\nSaga-1 Bake\nSaga-1 undo-Bake\nSaga-1 undo-Take\n");
    assert_eq!(kitchen.home.run(&["flow", "watch", "Saga-1"]).status, 1);

    let text = format!("flow: Saga\nsteps:\n{}- run: Wait\n  command: sleep 1000\n", step("Take"));
    kitchen.start(&text, "Saga-2");
    kitchen.until_status("Saga-2", "WAITING_FOR(Wait)");
    holdfast_harness::until("the run", || !kitchen.flow("Saga-2")["waits_for"][0]["session"].is_null());
    kitchen.home.ok(&["flow", "cancel", "Saga-2", "--reason", "no money"]);
    let cancelled = kitchen.until_status("Saga-2", "CANCELLED");
    assert_eq!(cancelled["value"], "cancelled by human:tester: no money");
    assert_eq!(kitchen.counted()["Saga-2 undo-Take"], 1);
    let again = kitchen.home.fails(&["flow", "cancel", "Saga-2"]);
    assert!(again.contains("has ended"), "{again}");
}

#[test]
fn questions_and_signals_wait_for_people_and_an_agent_cannot_answer() {
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    home.ok(&["actor", "new", "agent:bot"]);
    let text = "flow: B\nsteps:\n- ask: Deliver {{ input }}?\n  options: [yes, no]\n  expect: yes\n  name: Deliver\n- signal: manager\n- run: Say\n  command: echo {{ Deliver }} {{ manager }}\n";
    kitchen.start(text, "B-1");
    let view = kitchen.until_status("B-1", "WAITING_FOR(Deliver)");
    assert_eq!(view["waits_for"][0]["question"], "Deliver margherita?");
    // It stands with the questions of sessions too.
    let listed = home.ok(&["questions"]);
    assert!(listed.contains("flow B-1") && listed.contains("asks: Deliver margherita?"), "{listed}");
    assert!(listed.contains("holdfast flow answer B-1 --step 1 yes|no") && !listed.contains("no open"), "{listed}");
    assert_eq!(home.json(&["questions"])[0]["flow"], "B-1");
    // A signal that comes early is kept, and the same one counts once.
    for _ in 0..2 {
        home.ok(&["flow", "signal", "B-1", "manager", "of course", "--id", "s1"]);
    }
    assert!(home.run_as("agent:bot", &["flow", "answer", "B-1", "yes"]).err.contains("only humans may"));
    assert!(home.run_as("agent:bot", &["flow", "cancel", "B-1"]).err.contains("may not steer"));
    assert!(home.fails(&["flow", "answer", "B-1", "perhaps"]).contains("expected one of: yes, no"));
    home.ok(&["flow", "answer", "B-1", "yes"]);
    let done = kitchen.until_status("B-1", "COMPLETED");
    assert_eq!(done["value"], "yes of course");
    let signals = done["history"].as_array().unwrap().iter().filter(|one| one["event"] == "signal").count();
    assert_eq!(signals, 1);
    kitchen.start(text, "B-2");
    home.ok(&["flow", "answer", "B-2", "no"]);
    assert_eq!(kitchen.until_status("B-2", "FAILED")["value"], "Deliver: no");
}

#[test]
fn steps_at_once_share_a_session_that_people_see_and_wait_for_its_shell() {
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    home.ok(&["new", "-d", "-n", "oven", "--", "bash", "--norc", "--noprofile"]);
    let text = "flow: C\nsteps:\n- all:\n  - run: One\n    command: sleep 0.2; echo 1\n    session: oven\n  - run: Two\n    command: echo 2\n    session: oven\n  - run: Three\n    command: echo 3\n- race:\n  - sleep: 1000s\n  - run: Four\n    command: echo {{ One }}{{ Two }}{{ Three }}\n    session: oven\n";
    kitchen.start(text, "C-1");
    let done = kitchen.until_status("C-1", "COMPLETED");
    assert_eq!(done["value"], "123");
    assert!(home.ok(&["journal", "oven"]).contains("human:tester"));
}

#[test]
fn a_flow_waits_for_what_comes_in_a_session_whatever_dies_meanwhile() {
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    let gate = home.join("gate");
    let ends = format!("until [ -e {} ]; do sleep 0.02; done; exit 7", gate.display());
    home.ok(&["new", "-d", "-n", "oven", "--", "sh", "-c", &ends]);
    home.ok(&["new", "-d", "-n", "desk", "--", "bash", "--norc", "--noprofile"]);
    let text = "flow: W\nsteps:\n- wait: desk\n  for: idle\n  name: Desk\n- wait: oven\n  name: Oven\n- run: Say\n  command: echo {{ Oven.exit_code }}\n";
    kitchen.start(text, "W-1");
    kitchen.until_status("W-1", "WAITING_FOR(Oven)");
    kill(kitchen.service_pid());
    std::fs::write(&gate, "").unwrap();
    assert_eq!(kitchen.until_status("W-1", "COMPLETED")["value"], "7");
    let history = home.ok(&["flow", "history", "W-1"]);
    assert!(history.contains("2. Oven → it came in oven"), "{history}");
    // Tried out, it waits for no timer.
    let file = kitchen.file("flow: T\nsteps:\n- sleep: 5d\n- run: Say\n  command: echo tried\n");
    assert_eq!(home.ok(&["flow", "start", &file, "--skip-timers", "--wait"]), "tried\n");
    // What does not come in time fails the flow, and so does what cannot come.
    kitchen.start("flow: W\nsteps:\n- wait: desk\n  for: port:1\n  name: Up\n  timeout: 50ms\n", "W-2");
    assert_eq!(kitchen.until_status("W-2", "FAILED")["value"], "Up: it did not come in time");
    kitchen.start("flow: W\nsteps:\n- wait: nowhere\n  name: Up\n", "W-3");
    let why = kitchen.until_status("W-3", "FAILED")["value"].to_string();
    assert!(why.contains("nowhere"), "{why}");
}

#[test]
fn an_id_is_used_once_and_a_wrong_file_names_line_and_remedy() {
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    let file = kitchen.file("flow: D\nsteps:\n- sleep: 1000s\n");
    assert_eq!(home.ok(&["flow", "start", &file]), "D-1\n");
    assert_eq!(home.ok(&["flow", "start", &file]), "D-2\n");
    assert_eq!(home.json(&["flow", "start", &file, "--id", "D-2"])["existing"], true);
    let taken = home.fails(&["flow", "start", &file, "another input", "--id", "D-2"]);
    assert!(taken.contains("D-2 is another flow") && taken.contains("choose another --id"), "{taken}");
    let wrong = kitchen.file("flow: D\nsteps:\n- slep: 5s\n");
    for words in [["flow", "start", wrong.as_str()], ["flow", "check", wrong.as_str()]] {
        let told = home.fails(&words);
        assert!(
            told.contains("line 3: the step does not say what to do") && told.contains("begin it with one of"),
            "{told}"
        );
    }
    assert!(home.fails(&["flow", "show", "none"]).contains("no flow none"));
    assert_eq!(home.json(&["flow", "ls"]).as_array().unwrap().len(), 2);
    for id in ["D-1", "D-2"] {
        home.ok(&["flow", "cancel", id]);
    }
    assert_eq!(home.ok(&["flow", "ls"]), "no open flows\n");
    assert_eq!(home.json(&["flow", "ls", "--all"]).as_array().unwrap().len(), 2);
    let ids = home.run(&["__flows"]);
    assert_eq!(ids.out, "D-2\nD-1\n");
}

#[test]
fn a_refused_step_blocks_and_goes_on_once_it_is_allowed() {
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    home.ok(&["actor", "new", "agent:bot"]);
    home.ok(&["new", "-d", "-n", "oven", "--", "bash", "--norc", "--noprofile"]);
    home.ok(&["revoke", "oven", "--to", "agent:bot"]);
    let file = kitchen.file("flow: E\nsteps:\n- run: Bake\n  command: echo baked\n  session: oven\n");
    let ran = home.run_as("agent:bot", &["flow", "start", &file, "--id", "E-1"]);
    assert_eq!(ran.status, 0, "{ran}");
    let blocked = kitchen.until_status("E-1", "BLOCKED");
    assert!(blocked["why"].as_str().unwrap().contains("the host refuses it"), "{blocked}");
    home.ok(&["grant", "oven", "--to", "agent:bot", "--can", "observe,run,type"]);
    home.ok(&["flow", "retry", "E-1"]);
    assert_eq!(kitchen.until_status("E-1", "COMPLETED")["value"], "baked");
}

#[test]
fn output_that_is_long_stays_in_its_session() {
    let kitchen = Kitchen::new();
    kitchen.start("flow: G\nsteps:\n- run: Print\n  command: seq 1 100000\n", "G-1");
    let done = kitchen.until_status("G-1", "COMPLETED");
    let value = done["history"].as_array().unwrap().iter().find(|one| one["event"] == "done").unwrap()["value"].clone();
    assert_eq!(value["truncated"], json!(true));
    assert!(value["output"].as_str().unwrap().len() <= 32 * 1024, "{}", value["output"].as_str().unwrap().len());
    assert!(value["to"].as_u64().unwrap() - value["from"].as_u64().unwrap() > 500_000);
    let all: Value = value["run"].clone();
    assert!(kitchen.home.ok(&["run", "output", all.as_str().unwrap()]).contains("99999"));
}
