//! Sessions end: naturally, by a signal, by hand, with everything they started.

use holdfast_harness::{Home, Terminal, gone, until};
use std::path::Path;

/// The process number a script wrote into a file.
#[track_caller]
fn pid_in(path: &Path) -> u32 {
    until(&format!("a number in {}", path.display()), || std::fs::read_to_string(path).ok()?.trim().parse().ok())
}

#[test]
fn end_reaches_daemonised_children_too() {
    let home = Home::new();
    let script = "
        sh -c 'echo $$ > plain; exec sleep 1000' &
        nohup sh -c 'trap \"\" HUP; echo $$ > nohup; while :; do sleep 1000; done' >/dev/null 2>&1 &
        setsid sh -c 'trap \"\" HUP TERM; echo $$ > setsid; while :; do sleep 1000; done' >/dev/null 2>&1 </dev/null &
        (setsid sh -c '(trap \"\" HUP TERM; sh -c \"echo \\$PPID > daemon\"; while :; do sleep 1000; done) &' >/dev/null 2>&1 </dev/null)
        sh -c 'echo $$ > stopped; kill -STOP $$; exec sleep 1000' &
        echo started; wait";
    home.session("s", script);
    let pids: Vec<u32> =
        ["plain", "nohup", "setsid", "daemon", "stopped"].iter().map(|name| pid_in(&home.join(name))).collect();
    assert!(pids.iter().all(|pid| !gone(*pid)));
    home.ok(&["end", "s", "--grace", "0.2"]);
    for pid in pids {
        until(&format!("the end of {pid}"), || gone(pid).then_some(()));
    }
    assert_eq!(home.json(&["info", "s"])["life"], "ended");
}

#[test]
fn the_way_a_command_ended_is_told_by_wait_info_and_the_attached_client() {
    let home = Home::new();
    for (script, status) in
        [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("exit 255", 255)]
    {
        let name = format!("s{status}");
        home.session(&name, &format!("read go; {script}"));
        let waiter = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| home.run(&["wait", &name]).status);
            let (terminal, mut client) = Terminal::attached(&home, &name, "80x24");
            terminal.types("go\r");
            assert_eq!(client.wait(), status, "attach mirrors `{script}`");
            assert!(terminal.peek(|seen| !seen.screen.alternate()));
            waiter.join().unwrap()
        });
        assert_eq!(waiter, status, "wait mirrors `{script}`");
        assert_eq!(home.run(&["wait", &name]).status, status, "also afterwards");
        let exit = &home.json(&["info", &name])["exit"];
        let told = exit["code"].as_i64().or_else(|| exit["signal"].as_i64().map(|n| n + 128));
        assert_eq!(told, Some(status.into()), "{exit}");
    }
}

#[test]
fn a_command_that_ends_at_once_is_a_session_that_ended() {
    let home = Home::new();
    for n in 0..20 {
        let name = format!("s{n}");
        home.ok(&["new", "-d", "-n", &name, "--", "sh", "-c", "echo the last words; exit 4"]);
        assert_eq!(home.run(&["wait", &name]).status, 4);
        assert!(home.ok(&["screen", &name]).contains("the last words"), "{n}");
        assert!(home.ok(&["logs", &name]).contains("the last words"), "{n}");
    }
}

#[test]
fn the_last_output_of_a_large_flood_is_there_after_the_end() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "s", "--", "sh", "-c", "seq 1 500000; echo last"]);
    assert_eq!(home.run(&["wait", "s"]).status, 0);
    let logs = home.ok(&["logs", "s"]);
    assert!(logs.ends_with("500000\r\nlast\r\n"), "{:?}", &logs[logs.len().saturating_sub(80)..]);
    assert!(home.ok(&["screen", "s"]).contains("last"));
    home.kill_host();
    assert!(home.ok(&["screen", "s"]).contains("last"), "also for the next host");
    assert_eq!(home.run(&["wait", "s"]).status, 0);
}

#[test]
fn a_session_whose_command_ends_while_no_host_runs_is_told_by_the_next_host() {
    let home = Home::new();
    home.session("s", "while [ ! -e go ]; do sleep 0.01; done; echo bye; exit 6");
    let keeper = home.number("s", "keeper_pid") as u32;
    home.kill_host();
    std::fs::write(home.join("go"), "").unwrap();
    until("the keeper's end", || gone(keeper).then_some(()));
    assert_eq!(home.run(&["wait", "s"]).status, 6);
    assert!(home.ok(&["screen", "s"]).contains("bye"));
}

#[test]
fn a_killed_keeper_is_told_as_lost_and_takes_only_its_session() {
    let home = Home::new();
    home.session("one", "echo ready; exec cat");
    home.session("two", "echo ready; exec cat");
    home.until_screen_shows("one", "ready");
    let (terminal, mut client) = Terminal::attached(&home, "one", "80x24");
    terminal.wait_text("ready");
    holdfast_harness::kill(home.number("one", "keeper_pid") as u32);
    assert_eq!(client.wait(), 1);
    until("the end", || (home.json(&["info", "one"])["life"] == "lost").then_some(()));
    assert_eq!(home.json(&["info", "one"])["exit"], "lost");
    assert_eq!(home.json(&["info", "two"])["life"], "running");
}
