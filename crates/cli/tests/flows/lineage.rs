//! Flows that start flows, and histories that are taken back to a step: with the real service and host, killed in between.

use crate::Kitchen;
use holdfast_harness::{kill, until};
use serde_json::Value;

/// An order whose pizzas are flows of the same file.
fn order(kitchen: &Kitchen, bake: &str) -> String {
    format!(
        "flow: Order
steps:
- run: Take
  command: {take}
  undo: {untake}
- all:
  - child: First
    flow: Bake
    input: '{{{{ input }}}}'
  - child: Second
    flow: Bake
    input: big {{{{ input }}}}
- run: Deliver
  command: echo {{{{ First }}}} {{{{ Second }}}}
flows:
- flow: Bake
  steps:
  - run: Oven
    command: {oven}
    undo: {unoven}
  - signal: ready
  - run: Box
    command: {bake}
",
        take = kitchen.effect("take", "true"),
        untake = kitchen.effect("untake", "true"),
        oven = kitchen.effect("oven", "true"),
        unoven = kitchen.effect("unoven", "true"),
    )
}

#[test]
fn children_are_steps_that_are_found_again_and_give_what_their_flow_gave() {
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    kitchen.start(&order(&kitchen, &kitchen.effect("box", "echo BOXED {{ input }}")), "O-1");
    for child in ["O-1.2", "O-1.3"] {
        until("the child", || home.run(&["flow", "show", child]).status == 0);
        kitchen.until_status(child, "WAITING_FOR(ready)");
    }
    let parent = kitchen.flow("O-1");
    assert_eq!(parent["children"][1]["id"], "O-1.3");
    assert_eq!(parent["waits_for"][0]["flow"], "O-1.2");
    assert_eq!(kitchen.flow("O-1.2")["parent"], "O-1");
    let shown = home.ok(&["flow", "show", "O-1"]);
    assert!(shown.contains("[O-1.2 WAITING_FOR(ready)]"), "{shown}");
    assert!(home.ok(&["flow", "show", "O-1.2"]).contains("started by a step of O-1"));
    kill(kitchen.service_pid());
    home.ok(&["flow", "signal", "O-1.2", "ready"]);
    kitchen.until_status("O-1.2", "COMPLETED");
    kill(kitchen.service_pid());
    home.ok(&["flow", "signal", "O-1.3", "ready"]);
    assert_eq!(kitchen.until_status("O-1", "COMPLETED")["value"], "BOXED margherita BOXED big margherita");
    assert!(kitchen.counted().values().all(|count| *count == 1), "{:?}", kitchen.counted());
    assert_eq!(kitchen.counted().len(), 5, "{:?}", kitchen.counted());
}

#[test]
fn a_child_that_fails_fails_its_step_and_a_cancelled_flow_cancels_its_children_first() {
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    kitchen.start(&order(&kitchen, "exit 3"), "O-1");
    until("the child", || home.run(&["flow", "signal", "O-1.2", "ready"]).status == 0);
    let failed = kitchen.until_status("O-1", "FAILED");
    assert_eq!(failed["value"], "First: Box: exit 3");
    assert_eq!(kitchen.flow("O-1.3")["status"], "CANCELLED", "what was still open is cancelled");
    let ledger = std::fs::read_to_string(kitchen.ledger()).unwrap();
    let lines: Vec<&str> = ledger.lines().collect();
    assert_eq!(lines.last(), Some(&"O-1 untake"), "the children are undone before their parent: {ledger}");
    assert_eq!(lines.len(), 6, "{ledger}");

    kitchen.start(&order(&kitchen, "true"), "O-2");
    until("the child", || home.run(&["flow", "show", "O-2.3"]).status == 0);
    kitchen.until_status("O-2.3", "WAITING_FOR(ready)");
    home.ok(&["flow", "cancel", "O-2", "--reason", "no money"]);
    kill(kitchen.service_pid());
    kitchen.until_status("O-2", "CANCELLED");
    for child in ["O-2.2", "O-2.3"] {
        assert_eq!(kitchen.flow(child)["status"], "CANCELLED");
    }
    for line in ["O-2 untake", "O-2.2 unoven", "O-2.3 unoven"] {
        assert_eq!(kitchen.counted().get(line), Some(&1), "{line}");
    }
}

#[test]
fn an_id_that_another_flow_has_blocks_the_step_and_takes_nothing_over() {
    let kitchen = Kitchen::new();
    kitchen.start("flow: Bake\nsteps:\n- signal: never\n", "O-1.2");
    kitchen.start(&order(&kitchen, "true"), "O-1");
    let blocked = kitchen.until_status("O-1", "BLOCKED");
    assert!(
        blocked["why"].as_str().unwrap().contains("O-1.2 cannot be started: another flow has this id"),
        "{blocked}"
    );
    assert_eq!(kitchen.flow("O-1.2")["status"], "WAITING_FOR(never)");
    kitchen.home.ok(&["flow", "cancel", "O-1"]);
    kitchen.until_status("O-1", "CANCELLED");
    assert_eq!(kitchen.flow("O-1.2")["status"], "WAITING_FOR(never)", "and cancels nothing of somebody else");
}

#[test]
fn a_failed_flow_is_taken_back_to_a_step_and_the_history_before_stays() {
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    let oven = home.join("oven");
    let text = format!(
        "flow: A\nsteps:\n- run: Take\n  command: {}\n- sleep: 10ms\n- run: Bake\n  command: {}\n- run: Say\n  command: echo {{{{ Take }}}} {{{{ Bake }}}}\n",
        kitchen.effect("take", "echo ORDER"),
        kitchen.effect("bake", &format!("cat {}", oven.display())),
    );
    kitchen.start(&text, "A-1");
    assert_eq!(kitchen.until_status("A-1", "FAILED")["value"], "Bake: exit 1");
    std::fs::write(&oven, "HOT").unwrap();
    let refused = home.fails(&["flow", "rewind", "A-1", "--to", "Bake"]);
    assert!(refused.contains("this does again: Bake") && refused.contains("--again"), "{refused}");
    assert!(home.fails(&["flow", "rewind", "A-1", "--to", "Fry"]).contains("no step Fry"));
    home.ok(&["actor", "new", "agent:bot"]);
    assert!(home.run_as("agent:bot", &["flow", "rewind", "A-1", "--to", "3", "--again"]).err.contains("may not steer"));
    assert_eq!(kitchen.flow("A-1")["status"], "FAILED", "a refusal changes nothing");
    home.ok(&["flow", "rewind", "A-1", "--to", "Bake", "--again"]);
    kill(kitchen.service_pid());
    let done = kitchen.until_status("A-1", "COMPLETED");
    assert_eq!((done["value"].as_str(), done["generation"].as_u64()), (Some("ORDER HOT"), Some(2)));
    assert_eq!((kitchen.counted()["A-1 take"], kitchen.counted()["A-1 bake"]), (1, 2));
    let now = home.ok(&["flow", "history", "A-1"]);
    assert_eq!(
        now,
        "1. Take → ORDER\n2. Timer → 10ms elapsed\n   back to step 3 by human:tester\n3. Bake → HOT\n4. Say → ORDER HOT\n"
    );
    let before = home.ok(&["flow", "history", "A-1", "--generation", "1"]);
    assert_eq!(before, "1. Take → ORDER\n2. Timer → 10ms elapsed\n3. Bake ✗ exit 1\n");
    assert!(home.fails(&["flow", "history", "A-1", "--generation", "7"]).contains("has no history 7"));
    assert_eq!(
        home.json(&["flow", "ls", "--all"]).as_array().unwrap().len(),
        1,
        "an older history is no flow of its own"
    );
    // The same start still finds it.
    let file = kitchen.file(&text);
    assert_eq!(home.json(&["flow", "start", &file, "margherita", "--id", "A-1"])["existing"], true);
    // Both histories go out, the older first, one event a line.
    let lines: Vec<Value> =
        home.ok(&["flow", "export", "--ended"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<String> = lines.iter().map(|one| format!("{} {}", one["generation"], one["event"])).collect();
    assert_eq!((told[0].as_str(), told.last().unwrap().as_str()), ("1 \"started\"", "2 \"ended\""), "{told:?}");
    assert!(told.contains(&"1 \"ended\"".into()) && told.contains(&"2 \"rewound\"".into()), "{told:?}");
    assert!(lines.iter().all(|one| one["flow"] == "A-1" && one["at_ms"].is_u64()));
    assert!(home.fails(&["flow", "export", "B-1"]).contains("no flow B-1"));
}
