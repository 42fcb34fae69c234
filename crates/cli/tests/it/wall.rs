//! `new --wall`: what a session's processes can write, signal and connect to; and that neither the host nor another life lets them out.

use holdfast_harness::{Home, gone, kill, until};
use serde_json::Value;
use std::net::TcpListener;
use std::path::PathBuf;

const BOT: &str = "agent:bot";

/// A home with a walled session of bash, an agent, and a directory on either side; none where this kernel has no Landlock.
fn walled(more: &[&str]) -> Option<(Home, PathBuf, PathBuf)> {
    let home = Home::new();
    // Not in the home: a wall never leaves that open.
    let outside = tempfile::tempdir().unwrap().keep();
    let inside = outside.join("work");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(outside.join("kept"), "kept").unwrap();
    home.ok(&["actor", "new", BOT]);
    let wall = inside.to_str().unwrap();
    let args = ["new", "-d", "-n", "w", "--cwd", wall, "--wall", wall];
    let made = home.run(&[&args[..], more, &["--", "bash"]].concat());
    if made.err.contains("this kernel cannot put up the wall") {
        eprintln!("not tested: {made}");
        return None;
    }
    assert_eq!(made.status, 0, "{made}");
    Some((home, inside, outside))
}

fn run(home: &Home, command: &str) -> Value {
    let ran = home.run(&["--json", "run", "w", "--", command]);
    serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{command}: {ran}"))
}

fn exit(home: &Home, command: &str) -> i64 {
    run(home, command)["exit_code"].as_i64().unwrap()
}

#[test]
fn processes_write_below_the_walls_directories_and_nowhere_else() {
    let Some((home, inside, outside)) = walled(&[]) else { return };
    assert_eq!(exit(&home, "echo x > here && mkdir -p a/b && mv here a/b/there && cat ../kept"), 0);
    assert_eq!(std::fs::read_to_string(inside.join("a/b/there")).unwrap(), "x\n");
    for attempt in [
        "echo x > ../new",
        "echo x >> ../kept",
        "rm ../kept",
        "mv ../kept .",
        "ln ../kept own",
        "truncate -s 0 ../kept",
    ] {
        assert_ne!(exit(&home, &format!("{attempt} 2>&1")), 0, "{attempt}");
    }
    assert_ne!(exit(&home, "python3 -c 'import os; os.truncate(\"../kept\", 0)' 2>&1"), 0);
    assert_eq!(std::fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 2);
    // Temporary files have a place of the session's own, and devices are there.
    assert_eq!(exit(&home, "f=$(mktemp) && echo x > $f && cat $f > /dev/null"), 0);
    assert_ne!(exit(&home, "echo x > $HOLDFAST_HOME/policy.cedar"), 0);
    assert!(home.ok(&["info", "w"]).contains(&format!("writes below {}", inside.display())));
    std::fs::remove_dir_all(outside).unwrap();
}

#[test]
fn processes_signal_nothing_outside_and_connect_to_the_named_ports_alone() {
    let (open, closed) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port().to_string();
    let Some((home, _, outside)) = walled(&["--wall-ports", &port(&open)]) else { return };
    let connects =
        |listener: &TcpListener| exit(&home, &format!("exec 3<>/dev/tcp/127.0.0.1/{} && exec 3>&-", port(listener)));
    assert_eq!((connects(&open), connects(&closed)), (0, 1));
    let (host, keeper) = (home.host_pid(), home.number("w", "keeper_pid") as u32);
    assert_ne!(exit(&home, &format!("kill -9 {host} {keeper}")), 0);
    assert!(!gone(host) && !gone(keeper));
    assert_eq!(exit(&home, "sleep 100 & kill -9 $!"), 0, "its own it may");
    std::fs::remove_dir_all(outside).unwrap();
}

#[test]
fn neither_the_host_nor_another_life_lets_them_out() {
    let Some((home, _, outside)) = walled(&[]) else { return };
    home.ok(&["new", "-d", "-n", "other", "--", "bash"]);
    let program = env!("CARGO_BIN_EXE_holdfast");
    let asks = |args: &str| run(&home, &format!("{program} --as {BOT} {args} 2>&1"));
    let ran = asks("run --new --name side -- 'echo x > ../new; echo said'");
    assert!(ran["output"].as_str().unwrap().contains("said"), "{ran}");
    assert!(!outside.join("new").exists(), "a session that it starts has the same wall");
    for act in [
        "send other 'echo x > ../new'",
        "run other -- true",
        "token new | cat",
        "recover other",
        "grant w --to agent:bot --can end",
    ] {
        let refused = asks(act);
        let output = refused["output"].as_str().unwrap();
        assert!(output.contains("behind the wall of session w"), "{act}: {refused}");
    }
    assert!(asks("ls")["output"].as_str().unwrap().contains("other"), "it may look");
    kill(home.number("w", "keeper_pid") as u32);
    until("the loss", || home.json(&["info", "w"])["life"] == "lost");
    home.ok(&["recover", "w"]);
    assert_ne!(exit(&home, &format!("cd {} && echo x > new", outside.display())), 0);
    std::fs::remove_dir_all(outside).unwrap();
}

#[test]
fn a_wall_that_would_not_hold_is_not_put_up() {
    let home = Home::new();
    home.ok(&["host", "start"]);
    let refused = |dir: &str| {
        let made = home.run(&["new", "-d", "--wall", dir, "--", "true"]);
        assert_eq!(made.status, 1, "{dir}: {made}");
        made.err
    };
    if refused("/").contains("this kernel cannot put up the wall") {
        return;
    }
    assert!(refused("/").contains("would leave Holdfast's own"));
    assert!(refused(home.path().to_str().unwrap()).contains("would leave Holdfast's own"));
    assert!(refused(home.join("actors").to_str().unwrap()).contains("would leave Holdfast's own"));
    assert!(refused("/nonexistent").contains("is no directory"));
    assert_eq!(home.json(&["ls", "--all"]), serde_json::json!([]));
}
