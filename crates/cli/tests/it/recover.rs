//! A session whose keeper is gone is lost, not ended; it gets another life, and never two.

use crate::http::Http;
use crate::killed::{initialize, tell};
use holdfast_harness::{Home, gone, kill, signal, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The steps of a recovery at which its host is killed.
const STEPS: [&str; 5] = ["deed.recorded", "recover.moved", "recover.recorded", "recover.saved", "recover.started"];

/// A shell without anybody's own files.
fn shell(home: &Home, name: &str, more: &[&str]) {
    let words = [&["new", "-d", "-n", name], more, &["--", "/bin/bash", "--norc", "--noprofile"]].concat();
    home.ok(&words);
}

fn keeper(home: &Home, name: &str) -> u32 {
    home.number(name, "keeper_pid") as u32
}

fn info(home: &Home, name: &str) -> Value {
    home.json(&["info", name])
}

fn life(home: &Home, name: &str) -> String {
    info(home, name)["life"].as_str().unwrap().to_owned()
}

/// Kills a session's keeper; the host notices.
fn lose(home: &Home, name: &str) {
    kill(keeper(home, name));
    until("the loss", || (life(home, name) == "lost").then_some(()));
}

/// The keepers of a session that live.
fn keepers(home: &Home, id: &str) -> Vec<u32> {
    let is_its = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.next().is_some_and(|program| String::from_utf8_lossy(program).contains("holdfast-keeper"))
            && words.next() == Some(id.as_bytes())
    };
    let all =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let _ = home;
    all.filter(is_its).collect()
}

#[test]
fn a_lost_session_keeps_its_name_says_why_and_comes_back_in_its_last_directory_below_its_history() {
    let home = Home::new();
    std::fs::create_dir(home.join("deep")).unwrap();
    shell(&home, "work", &["--env", "PLAIN=1"]);
    let id = info(&home, "work")["id"].as_str().unwrap().to_owned();
    home.ok(&["run", "work", "--", "cd deep; echo before-$((6*7))"]);
    // The directory is looked at a while after something was typed.
    until("the last directory", || {
        let kept = std::fs::read_to_string(home.session_dir("work").join("life")).unwrap_or_default();
        kept.contains("/deep").then_some(())
    });
    let head = home.number("work", "head");
    lose(&home, "work");
    let lost = info(&home, "work");
    assert_eq!((lost["id"].as_str().unwrap(), &lost["lost"]["cause"]["number"]), (id.as_str(), &9.into()), "{lost}");
    assert!(lost["lost"]["processes"].to_string().contains("bash"), "{lost}");
    assert!(home.ok(&["ls"]).contains("lost"));
    assert!(home.ok(&["screen", "work"]).contains("before-42"));
    let refused = home.fails(&["send", "work", "x"]);
    assert!(refused.contains("was lost") && refused.contains("holdfast recover work"), "{refused}");
    // Nobody gets its name.
    assert!(home.fails(&["new", "-d", "-n", "work", "--", "true"]).contains("a lost session has the name work"));

    let told = home.json(&["recover", "work"]);
    assert_eq!((&told["began"], &told["session"]["incarnation"]), (&true.into(), &2.into()), "{told}");
    assert_eq!(told["session"]["id"].as_str().unwrap(), id);
    home.until_screen_shows("work", "life 2 begins here");
    let screen = home.ok(&["screen", "work"]);
    assert!(screen.find("before-42").unwrap() < screen.find("life 2 begins here").unwrap(), "{screen}");
    assert!(
        screen.contains("killed by signal 9") && screen.contains("variables whose values are not kept: PLAIN"),
        "{screen}"
    );
    let run = home.json(&["run", "work", "--", "pwd; echo inc=$HOLDFAST_INCARNATION fence=$HOLDFAST_FENCE"]);
    let output = run["output"].as_str().unwrap_or_default().to_owned();
    assert!(output.contains("/deep") && output.contains("inc=2"), "{run}");
    let fence: u64 = output.split("fence=").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!(fence > 0, "{output}");
    // Offsets go on: nothing has two meanings.
    assert!(home.number("work", "oldest") >= head);
    let journal = home.ok(&["journal", "work"]);
    assert!(journal.contains("recovered the session") && journal.contains("the session started again"), "{journal}");
    home.ok(&["journal", "work", "--verify"]);
    // Asked again it is there already.
    assert_eq!(home.json(&["recover", "work"])["began"], false);
}

#[test]
fn of_a_session_that_was_lost_no_value_of_a_variable_that_may_be_secret_is_on_disk() {
    let home = Home::new();
    shell(&home, "work", &["--env", "API_KEY=hunter2-never-on-disk"]);
    let dir = home.session_dir("work");
    lose(&home, "work");
    let mut read = 0;
    for entry in std::fs::read_dir(&dir).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        read += 1;
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"), "{:?}", entry.path());
    }
    assert!(read > 3, "there are files");
    assert!(std::fs::read_to_string(dir.join("birth")).unwrap().contains("API_KEY"));
    // Whoever recovers it and has the variable gives it back.
    let ran = home.command(&["recover", "work"]).env("API_KEY", "again").env("LD_PRELOAD", "").output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let run = home.json(&["run", "work", "--", "echo key=$API_KEY"]);
    assert!(run["output"].as_str().unwrap_or_default().contains("key=again"), "{run}");
}

#[test]
fn a_command_is_run_again_only_where_that_is_asked_for() {
    let home = Home::new();
    let script = format!("echo ran >> {}; exec cat", home.join("ran").display());
    home.session("server", &script);
    let runs = || std::fs::read_to_string(home.join("ran")).unwrap_or_default().lines().count();
    until("the first run", || (runs() == 1).then_some(()));
    lose(&home, "server");
    let told = home.ok(&["recover", "server"]);
    assert!(told.contains("in its place"), "{told}");
    home.until_screen_shows("server", "not run again");
    assert_eq!(runs(), 1);
    lose(&home, "server");
    assert_eq!(home.json(&["recover", "server", "--run"])["session"]["incarnation"], 3);
    until("the second run", || (runs() == 2).then_some(()));
    assert!(info(&home, "server")["stand_in"].is_null());
}

#[test]
fn runs_are_lost_and_grants_and_questions_go_on() {
    let home = Home::new();
    shell(&home, "work", &[]);
    home.ok(&["actor", "new", "agent:helper"]);
    home.ok(&["grant", "work", "--to", "agent:helper", "--can", "observe,type"]);
    home.run(&["run", "work", "--timeout", "0.1", "--", "sleep 1000"]);
    let id = home.json(&["run", "ls", "work"])[0]["id"].as_str().unwrap().to_owned();
    home.run_as("agent:helper", &["ask", "-t", "work", "--timeout", "0.1", "go on?"]);
    lose(&home, "work");
    assert_eq!(home.json(&["run", "status", &id])["state"], "lost");
    assert!(info(&home, "work")["lost"]["runs"].to_string().contains(&id));
    home.ok(&["recover", "work"]);
    assert!(home.ok(&["grants", "work"]).contains("agent:helper"));
    assert!(home.ok(&["questions"]).contains("go on?"));
    assert_eq!(home.json(&["run", "status", &id])["state"], "lost");
}

#[test]
fn a_live_keeper_without_a_socket_is_not_lost_and_gets_no_second_life() {
    let home = Home::new();
    shell(&home, "work", &[]);
    let id = info(&home, "work")["id"].as_str().unwrap().to_owned();
    let pid = keeper(&home, "work");
    let sockets: Vec<_> = std::fs::read_dir(home.join("run")).unwrap().flatten().map(|entry| entry.path()).collect();
    let socket = sockets.into_iter().find(|path| path.to_string_lossy().contains(&id)).unwrap();
    std::fs::remove_file(socket).unwrap();
    home.kill_host();
    // The next host cannot reach it, and does not take it for dead.
    assert_eq!(life(&home, "work"), "running");
    assert_eq!(home.json(&["recover", "work"])["began"], false);
    assert_eq!(keepers(&home, &id), [pid]);
    kill(pid);
    until("the loss", || (life(&home, "work") == "lost").then_some(()));
    assert_eq!(home.json(&["recover", "work"])["began"], true);
    assert_eq!(keepers(&home, &id).len(), 1);
}

#[test]
fn whoever_holds_the_rings_lock_or_the_keepers_name_keeps_a_session_from_another_life() {
    use std::os::unix::process::CommandExt;
    let home = Home::new();
    shell(&home, "work", &[]);
    let id = info(&home, "work")["id"].as_str().unwrap().to_owned();
    lose(&home, "work");
    let ring = std::fs::File::open(home.session_dir("work").join("ring")).unwrap();
    rustix::fs::flock(&ring, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert!(home.fails(&["recover", "work"]).contains("still alive"));
    drop(ring);
    let mut posing = std::process::Command::new("tail")
        .arg0("/old/holdfast-keeper-1")
        .args([&id, "-f", "/dev/null"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the other keeper", || (keepers(&home, &id) == [posing.id()]).then_some(()));
    let refused = home.fails(&["recover", "work"]);
    assert!(refused.contains(&format!("kill {}", posing.id())), "{refused}");
    posing.kill().unwrap();
    posing.wait().unwrap();
    assert_eq!(life(&home, "work"), "lost");
    home.ok(&["recover", "work"]);
    assert_eq!(keepers(&home, &id).len(), 1);
}

#[test]
fn two_recoveries_at_once_give_one_life() {
    let home = Home::new();
    shell(&home, "work", &[]);
    let id = info(&home, "work")["id"].as_str().unwrap().to_owned();
    lose(&home, "work");
    let held = home.pause("recover.saved");
    let spawn = || home.command(&["--json", "recover", "work"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let first = spawn();
    let reached = held.reached();
    let second = spawn();
    drop((reached, held));
    let began = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        (told["began"].as_bool().unwrap(), told["session"]["incarnation"].as_u64().unwrap())
    };
    let mut told = [began(first), began(second)];
    told.sort_unstable();
    assert_eq!(told, [(false, 2), (true, 2)]);
    assert_eq!(keepers(&home, &id).len(), 1);
}

#[test]
fn a_host_that_is_killed_at_any_step_of_a_recovery_leaves_one_life() {
    for step in STEPS {
        let home = Home::new();
        shell(&home, "work", &[]);
        let id = info(&home, "work")["id"].as_str().unwrap().to_owned();
        lose(&home, "work");
        // A host that stands still tells nobody who it is.
        let host = home.host_pid();
        let held = home.pause(step);
        let mut asked = home.command(&["recover", "work"]);
        let mut asked = asked.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let reached = held.reached();
        kill(host);
        until("the host's end", || gone(host).then_some(()));
        drop((reached, held));
        until("another life", || (life(&home, "work") == "running" && keepers(&home, &id).len() == 1).then_some(()));
        asked.wait().unwrap();
        let run = home.json(&["run", "work", "--", "echo alive-$((1+1))"]);
        assert!(run["output"].as_str().unwrap_or_default().contains("alive-2"), "{step}: {run}");
        assert_eq!(keepers(&home, &id).len(), 1, "{step}");
        home.ok(&["journal", "work", "--verify"]);
        assert!(home.ok(&["end", "work"]).contains("work"), "{step}");
    }
}

#[test]
fn who_may_not_run_there_may_not_recover_and_a_dismissed_session_is_over() {
    let home = Home::new();
    shell(&home, "work", &[]);
    home.ok(&["actor", "new", "agent:eye"]);
    home.ok(&["revoke", "work", "--to", "agent:eye"]);
    home.ok(&["grant", "work", "--to", "agent:eye", "--can", "observe"]);
    lose(&home, "work");
    let refused = home.run_as("agent:eye", &["recover", "work"]);
    assert!(refused.status != 0 && refused.err.contains("may not"), "{refused}");
    assert_eq!(life(&home, "work"), "lost");
    home.ok(&["end", "work"]);
    assert_eq!(life(&home, "work"), "ended");
    assert!(home.fails(&["recover", "work"]).contains("has ended"));
    // Its name is free.
    shell(&home, "work", &[]);
}

#[test]
fn another_boot_is_told_and_no_offset_is_used_twice() {
    let home = Home::new();
    shell(&home, "work", &[]);
    home.ok(&["run", "work", "--", "echo hello"]);
    let file = home.session_dir("work").join("life");
    until("its life is kept", || std::fs::read_to_string(&file).is_ok_and(|text| text.contains("bash")).then_some(()));
    let (pid, head) = (keeper(&home, "work"), home.number("work", "head"));
    let host = home.host_pid();
    signal(host, Signal::STOP);
    kill(pid);
    kill(host);
    until("both to be gone", || (gone(pid) && gone(host)).then_some(()));
    // As if the machine had been started anew: the file says another boot.
    let text = std::fs::read_to_string(&file).unwrap();
    let (_, json) = text.split_once('\n').unwrap();
    let mut kept: Value = serde_json::from_str(json).unwrap();
    kept["boot"] = "00000000-0000-0000-0000-000000000000".into();
    let sealed = holdfast_store::LIFE.seal(kept.to_string().as_bytes());
    std::fs::write(&file, sealed).unwrap();
    let lost = info(&home, "work");
    assert_eq!((&lost["life"], &lost["lost"]["cause"]["is"]), (&"lost".into(), &"reboot".into()), "{lost}");
    assert!(home.ok(&["screen", "work"]).contains("hello"));
    home.ok(&["recover", "work"]);
    home.until_screen_shows("work", "the machine was restarted");
    assert!(home.ok(&["screen", "work"]).contains("hello"));
    assert!(home.number("work", "oldest") > head + (1 << 35));
}

#[test]
fn a_session_that_recovers_by_itself_does_so() {
    let home = Home::new();
    shell(&home, "work", &["--recover", "auto"]);
    kill(keeper(&home, "work"));
    until("the second life", || {
        (home.number("work", "incarnation") == 2 && life(&home, "work") == "running").then_some(())
    });
    assert!(home.ok(&["journal", "work"]).contains("the session started again"));
}

#[test]
fn a_failing_command_is_run_again_with_pauses_up_to_its_limit_and_not_once_it_was_ended() {
    let home = Home::new();
    let file = home.join("ran");
    let script = format!("echo ran >> {}; exit 3", file.display());
    home.ok(&["new", "-d", "-n", "flaky", "--restart", "on-failure:2", "--", "/bin/sh", "-c", &script]);
    let runs = || std::fs::read_to_string(&file).unwrap_or_default().lines().count();
    until("three runs", || (runs() == 3).then_some(()));
    until("that it rests", || info(&home, "flaky")["note"].to_string().contains("2 lives").then_some(()));
    assert_eq!((runs(), life(&home, "flaky").as_str()), (3, "ended"));
    let kept = home.join("kept");
    let script = format!("echo ran >> {}; exec sleep 1000", kept.display());
    home.ok(&["new", "-d", "-n", "server", "--restart", "on-failure", "--", "/bin/sh", "-c", &script]);
    home.ok(&["end", "server", "--grace", "0"]);
    assert_eq!(life(&home, "server"), "ended");
    assert!(info(&home, "server")["next_life_ms"].is_null());
}

#[test]
fn a_directory_that_is_gone_is_said_and_another_taken() {
    let home = Home::new();
    std::fs::create_dir(home.join("gone")).unwrap();
    shell(&home, "work", &["--cwd", home.join("gone").to_str().unwrap()]);
    lose(&home, "work");
    std::fs::remove_dir(home.join("gone")).unwrap();
    home.ok(&["recover", "work"]);
    home.until_screen_shows("work", "the last directory is gone");
    home.ok(&["run", "work", "--", "true"]);
}

#[test]
fn programs_recover_over_http_and_agents_by_opening_the_session_again() {
    let http = Http::new();
    let home = &http.home;
    shell(home, "work", &[]);
    lose(home, "work");
    let refused = http.post("/sessions/work/input", json!({ "text": "x" }));
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("lost")), "{refused:?}");
    let said = http.post("/sessions/work/recover", json!({}));
    assert_eq!((said.status, &said.body["began"]), (200, &json!(true)), "{said:?}");
    assert_eq!(said.body["session"]["incarnation"], 2);
    lose(home, "work");
    let session = initialize(&http).unwrap();
    let params = json!({ "name": "open_session", "arguments": { "name": "work" } });
    let message = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let (_, _, answer) = tell(&http, Some(&session), &message).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["session"]["life"], "running", "{answer}");
    assert_eq!(home.number("work", "incarnation"), 3);
}

#[test]
fn what_was_typed_before_the_loss_is_not_typed_again_by_a_sender_that_repeats_it() {
    let http = Http::new();
    let home = &http.home;
    shell(home, "work", &[]);
    let send = |seq: u64, word: &str| {
        let text = format!("echo {word} >> effects\r");
        http.post("/sessions/work/input", json!({ "text": text, "stream": 77, "seq": seq }))
    };
    let said = send(1, "once");
    assert!(said.status < 300, "{said:?}");
    let effects = || std::fs::read_to_string(home.join("effects")).unwrap_or_default();
    until("the effect", || (effects() == "once\n").then_some(()));
    lose(home, "work");
    home.ok(&["recover", "work"]);
    let again = send(1, "once");
    assert!(again.status < 300, "it was taken: {again:?}");
    assert!(send(2, "more").status < 300);
    until("what comes behind it", || effects().ends_with("more\n").then_some(()));
    assert_eq!(effects(), "once\nmore\n");
}
