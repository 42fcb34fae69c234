//! Every host at once: one list, one stream of events, and a host that is away holds up nobody.

use crate::machines::Machines;
use crate::mcp::Agent;
use crate::watching::Watch;
use holdfast_harness::Home;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn one_list_has_the_sessions_of_all_hosts_by_the_names_that_attach_takes() {
    let machines = Machines::new(&["cpu", "gpu"]);
    machines.near.session("work", "exec cat");
    machines.far("gpu").session("train", "exec cat");
    machines.calls();
    let listed = machines.ok(&["ls", "--all-hosts"]);
    let names: Vec<&str> = listed.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["NAME", "work", "gpu/train"], "{listed}");
    let calls = machines.calls();
    assert!(!calls.is_empty() && calls.iter().all(|call| call.contains("BatchMode=yes")), "{calls:?}");
    let (status, all) = machines.json(&["ls", "--all-hosts"]);
    assert_eq!((status, all.as_array().unwrap().len()), (0, 3), "{all}");
    assert_eq!((&all[0]["host"], &all[0]["sessions"][0]["name"]), (&json!(null), &json!("work")));
    assert_eq!(all[1], json!({"host": "cpu", "state": "up", "sessions": []}));
    assert_eq!((&all[2]["host"], &all[2]["sessions"][0]["name"]), (&json!("gpu"), &json!("train")));
    // One that is away is told, and the others are listed.
    machines.becomes("cpu", "away");
    let ran = machines.run(&["ls", "--all-hosts"]);
    assert!(ran.status == 1 && ran.out.contains("work") && ran.out.contains("gpu/train"), "{ran}");
    let away = "holdfast: cpu: unreachable (ssh: ssh: connect to host cpu port 22: Connection refused)\n";
    assert_eq!(ran.err, away);
    // One that never answers takes a bounded time.
    machines.becomes("cpu", "silent");
    let asked = Instant::now();
    let (status, all) = machines.json(&["ls", "--all-hosts"]);
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    assert_eq!((status, &all[1]["state"], &all[2]["state"]), (1, &json!("silent"), &json!("up")), "{all}");
    let refused = machines.run(&["--host", "gpu", "ls", "--all-hosts"]);
    assert!(refused.status == 2 && refused.err.contains("--all-hosts asks every host"), "{refused}");
}

#[test]
fn a_question_of_another_host_is_found_and_answered_by_its_name() {
    let machines = Machines::new(&["gpu"]);
    machines.near.session("work", "exec cat");
    let gpu = machines.far("gpu");
    gpu.session("train", "exec cat");
    assert_eq!(machines.ok(&["questions", "--all-hosts"]), "no open questions\n");
    let asked = gpu.run_as("agent:bot", &["--json", "ask", "-t", "train", "--timeout", "0", "go on?"]);
    assert_eq!(asked.status, 124, "{asked}");
    machines.near.run_as("agent:bot", &["ask", "-t", "work", "--timeout", "0", "and here?"]);
    let listed = machines.ok(&["questions", "--all-hosts"]);
    assert!(listed.contains("gpu/train  agent:bot asks: go on?"), "{listed}");
    assert!(listed.contains("  work       agent:bot asks: and here?"), "{listed}");
    let called = listed.split_whitespace().find(|word| word.starts_with("gpu/que_")).unwrap();
    let (_, all) = machines.json(&["questions", "--all-hosts"]);
    assert_eq!(format!("gpu/{}", all[1]["questions"][0]["id"].as_str().unwrap()), called, "{all}");
    assert!(machines.ok(&["answer", called, "yes"]).contains("answered agent:bot in train: yes"));
    assert_eq!(machines.ok(&["ask", "--wait", called]), "yes\n");
    assert!(!machines.ok(&["questions", "--all-hosts"]).contains("gpu/"));
}

#[test]
fn events_of_all_hosts_come_in_one_stream_and_a_host_that_went_away_is_followed_again() {
    let machines = Machines::new(&["cpu", "gpu"]);
    machines.becomes("cpu", "away");
    machines.near.session("work", "exec cat");
    let gpu = machines.far("gpu");
    gpu.session("train", "exec cat");
    let mut watch = Watch::of(machines.command(&["--json", "watch", "--all-hosts"]));
    watch.any(|one| one["host"].is_null() && one["name"] == "work" && one["event"] == "state");
    watch.any(|one| one["host"] == "gpu" && one["name"] == "train" && one["event"] == "state");
    let down = watch.any(|one| one["host"] == "cpu" && one["state"] == "down" && one["event"].is_null());
    assert!(down["why"].as_str().unwrap().contains("Connection refused"), "{down}");
    gpu.ok(&["rename", "train", "tune"]);
    watch.any(|one| one["host"] == "gpu" && one["event"] == "renamed" && one["name"] == "tune");
    // Its host dies, and the machine with it: that is told once.
    machines.becomes("gpu", "away");
    gpu.kill_host();
    watch.any(|one| one["host"] == "gpu" && one["state"] == "down" && one["event"].is_null());
    machines.near.ok(&["rename", "work", "play"]);
    watch.any(|one| one["host"].is_null() && one["event"] == "renamed");
    for name in ["gpu", "cpu"] {
        machines.back(name);
    }
    watch.any(|one| one["host"] == "gpu" && one["state"] == "up" && one["event"].is_null());
    gpu.ok(&["rename", "tune", "done"]);
    watch.any(|one| one["host"] == "gpu" && one["event"] == "renamed" && one["name"] == "done");
    machines.far("cpu").session("build", "exec cat");
    watch.any(|one| one["host"] == "cpu" && one["name"] == "build");
    let downs = watch.seen.iter().filter(|one| one["state"] == "down").count();
    assert_eq!(downs, 2, "once for each: {:#?}", watch.seen);
}

/// What a shell offers for the last of these words.
fn completed(machines: &Machines, words: &[&str]) -> String {
    let program = holdfast_harness::program();
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let script = "source <(holdfast completions bash); COMP_WORDS=(holdfast \"$@\"); COMP_CWORD=$#; _holdfast_named; echo \"${COMPREPLY[*]}\"";
    let mut bash = std::process::Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"]).args(words);
    let like = machines.command(&[]);
    bash.env_clear().envs(like.get_envs().filter_map(|(key, value)| Some((key, value?)))).env("PATH", path);
    String::from_utf8(bash.output().unwrap().stdout).unwrap().trim_end().to_owned()
}

#[test]
fn names_of_other_hosts_are_completed_and_nothing_is_started_or_asked_for_it() {
    let machines = Machines::new(&["cpu", "gpu"]);
    machines.near.session("work", "exec cat");
    let gpu = machines.far("gpu");
    gpu.session("train", "exec cat");
    gpu.session("tune", "exec cat");
    assert_eq!(completed(&machines, &["attach", ""]), "work cpu/ gpu/");
    assert_eq!(completed(&machines, &["attach", "g"]), "gpu/");
    machines.calls();
    assert_eq!(completed(&machines, &["attach", "gpu/"]), "gpu/train gpu/tune");
    assert_eq!(completed(&machines, &["seize", "gpu/tu"]), "gpu/tune");
    let calls = machines.calls();
    let is_quiet = |call: &String| call.contains("BatchMode=yes") && call.contains("--if-running");
    assert!(calls.len() == 2 && calls.iter().all(is_quiet), "{calls:?}");
    assert_eq!(completed(&machines, &["--host", "c"]), "cpu");
    assert_eq!(completed(&machines, &["hosts", "forget", ""]), "cpu gpu");
    assert_eq!(completed(&machines, &["connect", "g"]), "gpu");
    for words in [&["attach", "nowhere/"][..], &["attach", "cpu/"]] {
        assert_eq!(completed(&machines, words), "", "{words:?}");
    }
    // Where no host runs none is started.
    gpu.ok(&["host", "stop"]);
    assert_eq!(completed(&machines, &["attach", "gpu/"]), "");
    assert_eq!(gpu.host_answers(), None);
    // One that never answers does not hold up the person's line.
    machines.becomes("gpu", "silent");
    let asked = Instant::now();
    assert_eq!(completed(&machines, &["attach", "gpu/"]), "");
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    machines.becomes("gpu", "away");
    let ran = machines.run(&["__names", "gpu/"]);
    assert_eq!((ran.status, ran.out, ran.err), (0, String::new(), String::new()));
    // Who is not known there is not made known by a Tab.
    machines.back("gpu");
    gpu.ok(&["host", "start"]);
    machines.ok(&["actor", "new", "agent:new"]);
    machines.calls();
    let ran: holdfast_harness::Ran =
        machines.command(&["__names", "gpu/"]).env("HOLDFAST_ACTOR", "agent:new").output().unwrap().into();
    assert_eq!((ran.out, machines.calls()), (String::new(), Vec::new()));
}

#[test]
fn an_agent_works_in_sessions_of_another_host() {
    let machines = Machines::new(&["gpu"]);
    let gpu = machines.far("gpu");
    gpu.session("train", "exec cat");
    let served = ["--host", "gpu", "--as", "agent:bot", "mcp"];
    let mut agent = Agent::of(machines.command(&served), "bot");
    let ran = agent.ok("run_command", json!({ "command": "echo $HOLDFAST_SESSION_NAME at $HOME" }));
    let expected = format!("bot at {}\n", gpu.path().display());
    assert_eq!((&ran["output"], &ran["exit_code"]), (&json!(expected), &json!(0)), "{ran}");
    let names: Vec<String> = gpu.json(&["ls"]).as_array().unwrap().iter().map(|one| one["name"].to_string()).collect();
    assert_eq!(names, ["\"bot\"", "\"train\""]);
    assert!(gpu.ok(&["journal", "bot"]).contains("agent:bot."), "the journal names the agent");
    assert_eq!(machines.near.json(&["ls"]), json!([]));
    // Another server of the same agent has a session of its own, as on this machine.
    let mut second = Agent::of(machines.command(&served), "bot");
    assert!(second.ok("run_command", json!({ "command": "echo $HOLDFAST_SESSION_NAME" }))["output"] == "bot-2\n");
    // The host there dies and is started again by the next call.
    gpu.kill_host();
    assert_eq!(agent.ok("run_command", json!({ "command": "echo again" }))["output"], "again\n");
    // The machine goes away.
    machines.becomes("gpu", "away");
    gpu.kill_host();
    let refused = agent.refused("overview", json!({}));
    let text = refused.to_string();
    assert!(text.contains("cannot reach the host gpu") && text.contains("Nothing was done"), "{text}");
    machines.back("gpu");
    assert_eq!(agent.ok("run_command", json!({ "command": "echo back" }))["output"], "back\n");
    let unknown = machines.run(&["--host", "nowhere", "mcp"]);
    assert!(unknown.status == 1 && unknown.err.contains("no host is called nowhere"), "{unknown}");
    let entry = machines.ok(&["--host", "gpu", "mcp", "install", "claude", "--print"]);
    assert!(entry.contains("\"holdfast-gpu\"") && entry.contains("\"--host\""), "{entry}");
}

#[test]
fn a_command_that_waits_goes_on_when_the_way_to_its_host_was_broken() {
    let machines = Machines::new(&["gpu"]);
    let gpu = machines.far("gpu");
    gpu.session("train", "echo one; read line; echo $line; read line; exit 7");
    let mut follow = machines.command(&["logs", "gpu/train", "--follow"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut err = BufReader::new(follow.stderr.take().unwrap()).lines();
    let mut next = || out.next().unwrap().unwrap().trim_end().to_owned();
    assert_eq!(next(), "one");
    machines.becomes("gpu", "away");
    gpu.kill_host();
    let said = err.next().unwrap().unwrap();
    assert!(said.contains("cannot reach the host gpu: ssh:") && said.ends_with("; trying again"), "{said}");
    machines.back("gpu");
    gpu.ok(&["send", "train", "--enter", "two"]);
    assert_eq!((next(), next()), ("two".into(), "two".into()), "echoed and printed, once each");
    gpu.ok(&["send", "train", "--enter", "end"]);
    assert!(follow.wait().unwrap().success());
}

/// A host as if it had another version: passes on what is said to a host and back, with these words replaced by others as long.
fn disguised(host: &Home, asked: [&'static str; 2], answered: [&'static str; 2]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let socket = holdfast_types::Home::under(dir.path()).host_socket();
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let real = host.places().host_socket();
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let far = UnixStream::connect(&real).unwrap();
            let ways = [(near.try_clone().unwrap(), far.try_clone().unwrap(), asked), (far, near, answered)];
            for (mut from, mut to, [word, other]) in ways {
                assert_eq!(word.len(), other.len(), "a frame has a length");
                std::thread::spawn(move || {
                    let mut buffer = [0; 16 * 1024];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        for at in 0..(count + 1).saturating_sub(word.len()) {
                            if buffer[at..].starts_with(word.as_bytes()) {
                                buffer[at..at + word.len()].copy_from_slice(other.as_bytes());
                            }
                        }
                        if to.write_all(&buffer[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    dir
}

#[test]
fn a_host_of_another_version_is_told_once_with_which_to_update() {
    const SAME: [&str; 2] = ["holdfast", "holdfast"];
    const OURS: &str = concat!("holdfast ", env!("CARGO_PKG_VERSION"));
    let machines = Machines::new(&["gpu"]);
    let gpu = machines.far("gpu");
    gpu.session("train", "exec cat");
    // `ok` sees that nothing is said where the versions are the same.
    machines.ok(&["--host", "gpu", "ls"]);
    let old: &str = Box::leak(OURS.replace(|c: char| c.is_ascii_digit(), "0").into_boxed_str());
    let new: &str = Box::leak(OURS.replacen(|c: char| c.is_ascii_digit(), "9", 1).into_boxed_str());
    for (theirs, expected) in [
        (old, format!("holdfast: gpu runs {old}, older than {OURS} here; install it there")),
        (new, format!("holdfast: gpu runs {new}, newer than {OURS} here; install it on this machine\n")),
    ] {
        let other = disguised(gpu, SAME, [OURS, theirs]);
        machines.becomes("gpu", other.path().to_str().unwrap());
        let ran = machines.run(&["info", "gpu/train"]);
        assert!(ran.status == 0 && ran.out.contains("train"), "{ran}");
        assert!(ran.err.starts_with(&expected) && ran.err.lines().count() == 1, "{ran}");
        let ran = machines.run(&["--json", "info", "gpu/train"]);
        assert_eq!((ran.status, &ran.err[..]), (0, ""));
    }
    // One that speaks another protocol.
    let other = disguised(gpu, [r#""versions":[1]"#, r#""versions":[7]"#], SAME);
    machines.becomes("gpu", other.path().to_str().unwrap());
    let ran = machines.run(&["info", "gpu/train"]);
    let said =
        ["cannot reach the host gpu: this host speaks protocol versions [1], not [7]", "install the newer one on both"];
    assert!(ran.status == 1 && said.iter().all(|text| ran.err.contains(text)), "{ran}");
}
