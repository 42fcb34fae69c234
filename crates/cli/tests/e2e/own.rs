//! What is Holdfast's own in a session is known by what it is, not by what it calls itself.

use holdfast_harness::{Home, gone, program, until};

fn pid_in(home: &Home, name: &str) -> u32 {
    until(&format!("a number in {name}"), || std::fs::read_to_string(home.join(name)).ok()?.trim().parse().ok())
}

fn lists(home: &Home, session: &str, pid: u32) -> bool {
    let graphs = home.json(&["ps", session]);
    graphs[0]["processes"].as_array().unwrap().iter().any(|process| process["pid"] == pid)
}

#[test]
fn a_program_that_takes_our_name_is_listed_frozen_and_ended() {
    let home = Home::new();
    let named = |name: &str| {
        format!(
            "cp /bin/sh {name}; ./{name} -c 'trap \"\" HUP; echo $$ > {name}.pid; while :; do echo x; done' > {name}.out & "
        )
    };
    home.session("s", &format!("{}{}wait", named("holdfast-host"), named("holdfast-keeper")));
    let names = ["holdfast-host", "holdfast-keeper"];
    let pids = names.map(|name| pid_in(&home, &format!("{name}.pid")));
    let comm = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    assert_eq!(pids.map(comm), names.map(|name| format!("{name}\n")));
    assert!(pids.iter().all(|pid| lists(&home, "s", *pid)));
    home.ok(&["seize", "s", "--freeze", "--reason", "it writes"]);
    let sizes = || names.map(|name| std::fs::metadata(home.join(&format!("{name}.out"))).unwrap().len());
    let before = sizes();
    home.ok(&["ls"]);
    home.ok(&["ls"]);
    assert_eq!(sizes(), before, "they went on writing while the session was frozen");
    home.ok(&["thaw", "s"]);
    home.ok(&["end", "s", "--grace", "0"]);
    pids.iter().for_each(|pid| until("its end", || gone(*pid).then_some(())));
}

#[test]
fn a_host_and_keepers_inside_a_session_outlive_its_freeze_and_its_end() {
    let home = Home::new();
    let script = |n: u32| {
        format!("while [ ! -e go{n} ]; do sleep 0.01; done; {} ls; echo up; exec sleep 1000", program().display())
    };
    home.session("outer", &script(1));
    home.kill_host();
    std::fs::write(home.join("go1"), "").unwrap();
    let host = until("a host inside", || home.lock_holder());
    home.until_screen_shows("outer", "up");
    assert_eq!(home.host_pid(), host, "it is the one that was started inside");
    home.session("inner", "echo ready; exec cat");
    let keeper = home.number("inner", "keeper_pid") as u32;
    assert!(!lists(&home, "outer", host) && !lists(&home, "outer", keeper));
    home.ok(&["seize", "outer", "--freeze", "--reason", "look"]);
    home.until_screen_shows("inner", "ready");
    home.ok(&["thaw", "outer"]);
    // The keeper of inner is now outer's own child, and the next host runs outside.
    home.kill_host();
    assert_eq!(home.number("inner", "keeper_pid") as u32, keeper);
    assert!(!lists(&home, "outer", keeper));
    home.ok(&["end", "outer", "--grace", "0"]);
    assert_eq!(home.json(&["info", "outer"])["life"], "ended");
    assert_eq!(home.json(&["info", "inner"])["life"], "running");
    assert!(!gone(keeper));
}

#[test]
fn a_host_inside_ends_the_session_it_runs_in_and_goes_on() {
    let home = Home::new();
    let script =
        format!("while [ ! -e go ]; do sleep 0.01; done; {} ls; echo up; exec sleep 1000", program().display());
    home.session("outer", &script);
    home.kill_host();
    std::fs::write(home.join("go"), "").unwrap();
    let host = until("a host inside", || home.lock_holder());
    home.until_screen_shows("outer", "up");
    home.session("inner", "exec cat");
    home.ok(&["end", "outer", "--grace", "0"]);
    assert_eq!(home.host_pid(), host);
    assert_eq!(home.json(&["info", "inner"])["life"], "running");
}
