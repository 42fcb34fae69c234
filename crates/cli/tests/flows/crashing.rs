//! The service, the host and both killed at every step and at named points: each effect happens once, by a ledger outside.

use crate::Kitchen;
use holdfast_harness::{Random, kill, until};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Everything a flow can do.
fn everything(kitchen: &Kitchen) -> String {
    let effect = |what: &str, rest: &str| kitchen.effect(what, rest);
    let third = format!("[ $(grep -c -e {{{{ flow }}}}.bake {}) -ge 3 ]", kitchen.ledger().display());
    format!(
        "flow: Storm
steps:
- run: Take
  command: {take}
  undo: {untake}
- all:
  - run: Bake
    command: {bake}
    retries: 5
    backoff: 20ms
    undo: {unbake}
  - run: Box
    command: {box_}
    session: shared
  - sleep: 300ms
- signal: manager
- ask: Deliver?
  options: [yes, no]
  name: Deliver
- run: Go
  command: {go}
",
        take = effect("take", "sleep 0.1; echo ORDER"),
        untake = effect("untake", "true"),
        bake = effect("bake", &third),
        unbake = effect("unbake", "true"),
        box_ = effect("box", "sleep 0.2"),
        go = effect("go", "[ {{ Deliver }} = yes ]"),
    )
}

/// What the ledger must have of a flow.
fn wanted(id: &str, delivered: bool) -> Vec<(String, usize)> {
    let mut all = vec![("take", 1), ("bake", 3), ("box", 1), ("go", 1)];
    if !delivered {
        all.extend([("untake", 1), ("unbake", 1)]);
    }
    all.into_iter().map(|(what, count)| (format!("{id} {what}"), count)).collect()
}

fn settle(kitchen: &Kitchen, ids: &[String]) {
    let mut counted = kitchen.counted();
    for (number, id) in ids.iter().enumerate() {
        let delivered = number % 3 != 2;
        let flow = kitchen.until_status(id, if delivered { "COMPLETED" } else { "FAILED" });
        for (line, count) in wanted(id, delivered) {
            assert_eq!(counted.remove(&line), Some(count), "{line}\n{flow:#}");
        }
    }
    assert!(counted.is_empty(), "nobody asked for {counted:?}");
}

/// What a person does about a step that a host lost while it was starting it: looks whether it happened, and says so.
fn decide(kitchen: &Kitchen, id: &str, waits: &Value, refuses: bool) {
    let stuck = waits.as_array().unwrap().iter().find(|one| !one["stuck"].is_null()).unwrap();
    let name = stuck["name"].as_str().unwrap().to_lowercase().replace("undo ", "un");
    let happened = kitchen.counted().get(&format!("{id} {name}")).copied().unwrap_or(0);
    let verdict: &[&str] = match (name.as_str(), happened) {
        ("bake", 3..) | ("take" | "box" | "untake" | "unbake", 1..) => &["--done", "ORDER"],
        ("go", 1..) if refuses => &["--failed"],
        ("go", 1..) => &["--done", ""],
        _ => &[],
    };
    kitchen.home.run(&[&["flow", "retry", id], verdict].concat());
}

#[test]
fn a_storm_of_kills_and_every_effect_happens_once() {
    let seed = Random::seed();
    let mut random = Random::of(seed, 20);
    let kills: usize = std::env::var("HOLDFAST_FLOW_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let flows = (kills / 4).clamp(3, 200);
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    home.ok(&["new", "-d", "-n", "shared", "--", "bash", "--norc", "--noprofile"]);
    let text = everything(&kitchen);
    let mut killed = [0; 3];
    let mut ids = Vec::new();
    let mut lost = 0;
    let deadline = Instant::now() + Duration::from_secs(40 + 4 * kills as u64);
    let mut open: Vec<usize> = Vec::new();
    while killed.iter().sum::<usize>() < kills || !open.is_empty() || ids.len() < flows {
        assert!(
            Instant::now() < deadline,
            "seed {seed}: {} kills, open {open:?}\n{}",
            killed.iter().sum::<usize>(),
            home.ok(&["flow", "ls"])
        );
        if ids.len() < flows && open.len() < 4 {
            let id = format!("Storm-{}", ids.len() + 1);
            kitchen.start(&text, &id);
            open.push(ids.len());
            ids.push(id);
        }
        if killed.iter().sum::<usize>() < kills {
            let whom = random.below(3) as usize;
            if whom != 1 {
                kill(kitchen.service_pid());
            }
            if whom != 0
                && let Some(pid) = home.host_answers()
            {
                kill(pid);
            }
            killed[whom] += 1;
        }
        // Somebody answers what is asked, however often it takes; the same signal counts once.
        for number in open.clone() {
            let id = &ids[number];
            let view = kitchen.flow(id);
            let status = view["status"].as_str().unwrap_or_default().to_owned();
            if status == "WAITING_FOR(manager)" {
                home.run(&["flow", "signal", id, "manager", "go", "--id", "only"]);
            }
            if status == "WAITING_FOR(Deliver)" {
                home.run(&["flow", "answer", id, if number % 3 == 2 { "no" } else { "yes" }]);
            }
            if status.starts_with("STUCK") {
                lost += 1;
                decide(&kitchen, id, &view["waits_for"], number % 3 == 2);
            }
            if ["COMPLETED", "FAILED", "CANCELLED"].contains(&status.as_str()) {
                open.retain(|one| *one != number);
            }
        }
        std::thread::sleep(Duration::from_millis(random.below(150)));
    }
    settle(&kitchen, &ids);
    println!("seed {seed}: {} flows; kills of service, host, both: {killed:?}; {lost} lost", ids.len());
    assert!(killed.iter().all(|count| *count > 0), "{killed:?}");
}

#[test]
fn killed_at_each_named_point_the_service_goes_on_where_it_was() {
    for point in ["flows.commit", "flows.committed", "flows.ask", "flows.answered"] {
        let kitchen = Kitchen::new();
        let home = &kitchen.home;
        // It is there, and has nothing to do.
        kitchen.service_pid();
        let text = format!(
            "flow: A\nsteps:\n- run: One\n  command: {}\n- sleep: 50ms\n- run: Two\n  command: {}\n",
            kitchen.effect("one", "echo 1"),
            kitchen.effect("two", "echo 2")
        );
        let file = kitchen.file(&text);
        let pause = home.pause(point);
        // The command may be answered late: its service dies first.
        let mut starting = home.command(&["flow", "start", &file, "--id", "A-1"]);
        let mut starting =
            starting.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        for _ in 0..3 {
            let held = pause.reached();
            let pid = service_by_lock(&kitchen);
            kill(pid);
            drop(held);
        }
        drop(pause);
        assert!(starting.wait().unwrap().success(), "{point}: the start is asked again");
        kitchen.until_status("A-1", "COMPLETED");
        let counted: Vec<_> = kitchen.counted().into_iter().collect();
        assert_eq!(counted, [("A-1 one".to_owned(), 1), ("A-1 two".to_owned(), 1)], "{point}");
    }
}

/// The process that has the service's lock: one that stands at a point answers nobody.
fn service_by_lock(kitchen: &Kitchen) -> u32 {
    use std::os::unix::fs::MetadataExt;
    until("a service", || {
        let inode = std::fs::metadata(holdfast_flows::lock_file(&kitchen.home.places())).ok()?.ino();
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        let held = |line: &&str| line.contains("FLOCK") && line.contains(&format!(":{inode} "));
        locks.lines().filter(|line| !line.contains("->")).find(held)?.split_whitespace().nth(4)?.parse().ok()
    })
}

#[test]
fn a_timer_survives_the_service_and_is_not_longer_for_it() {
    let kitchen = Kitchen::new();
    kitchen.start("flow: A\nsteps:\n- sleep: 2s\n", "A-1");
    kill(kitchen.service_pid());
    let done = kitchen.until_status("A-1", "COMPLETED");
    let at = |event: &str| {
        let history = done["history"].as_array().unwrap();
        history.iter().find(|one| one["event"] == event).unwrap()["at_ms"].as_u64().unwrap()
    };
    let took = at("done") - at("asked");
    assert!((2_000..12_000).contains(&took), "{took} ms");
}

#[test]
fn a_lost_step_waits_for_a_human() {
    let kitchen = Kitchen::new();
    let home = &kitchen.home;
    let text = format!("flow: A\nsteps:\n- run: Pay\n  command: {}\n", kitchen.effect("pay", "sleep 1000"));
    kitchen.start(&text, "A-1");
    let session = until("the run", || {
        let session = kitchen.flow("A-1")["waits_for"][0]["session"].as_str()?.to_owned();
        kitchen.counted().contains_key("A-1 pay").then_some(session)
    });
    // The keeper is killed: nobody can know what became of the step.
    let keeper = home.number(&session, "keeper_pid") as u32;
    kill(keeper);
    kitchen.until_status("A-1", "STUCK(Pay)");
    kill(kitchen.service_pid());
    kitchen.until_status("A-1", "STUCK(Pay)");
    assert_eq!(kitchen.counted()["A-1 pay"], 1, "never a second time unasked");
    home.ok(&["flow", "retry", "A-1", "--done", "PAID"]);
    assert_eq!(kitchen.until_status("A-1", "COMPLETED")["value"], "PAID");
    assert_eq!(kitchen.counted()["A-1 pay"], 1);
}
