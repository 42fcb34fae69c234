//! Portable sessions: their processes come back from a checkpoint, once, with all they had. Needs root and CRIU, which `cargo xtask test`
//! fetches.

use holdfast_harness::{Home, criu, gone, kill, until};
use serde_json::Value;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::Stdio;

/// The steps of a checkpoint at which its host is killed.
const MAKING: [&str; 5] =
    ["checkpoint.recorded", "checkpoint.dumped", "checkpoint.sealed", "checkpoint.named", "checkpoint.stops"];
/// And of a restore.
const RESTORING: [&str; 5] = ["deed.recorded", "recover.moved", "recover.recorded", "recover.saved", "restore.started"];

/// A program that counts, has the number in its memory alone, and tells it in a file. It appends: of a file that is open for anything else
/// CRIU wants the size as it was.
pub const COUNTS: &str = "n=0; while :; do n=$((n+1)); echo $n >> count; sleep 0.02; done";

/// A home whose host is root's and finds CRIU; none where a test is not run by root, who alone can have portable sessions.
pub fn home() -> Option<Home> {
    let home = Home::new();
    if !rustix::process::getuid().is_root() {
        let refused = home.fails(&["new", "-d", "--portable"]);
        assert!(
            refused.contains("needs a host that runs as root") && refused.contains("holdfast recover"),
            "{refused}"
        );
        return None;
    }
    assert!(criu().is_file(), "{} is missing: `cargo xtask test` fetches it", criu().display());
    Some(home)
}

pub fn start(home: &Home, name: &str, command: &[&str]) {
    home.ok(&[&["new", "-d", "-n", name, "--portable", "--"], command].concat());
}

pub fn shell(home: &Home, name: &str) {
    start(home, name, &["/bin/bash", "--norc", "--noprofile"]);
}

pub fn info(home: &Home, name: &str) -> Value {
    home.json(&["info", name])
}

pub fn life(home: &Home, name: &str) -> String {
    info(home, name)["life"].as_str().unwrap().to_owned()
}

pub fn count(home: &Home) -> u64 {
    let text = std::fs::read_to_string(home.join("count")).unwrap_or_default();
    text.lines().last().and_then(|line| line.trim().parse().ok()).unwrap_or(0)
}

/// Waits until it has counted on.
pub fn counts_on(home: &Home, from: u64) -> u64 {
    until("it counts on", || Some(count(home)).filter(|now| *now > from))
}

/// Its keeper is killed, and all that is in it is gone.
pub fn lose(home: &Home, name: &str) {
    let (keeper, command) = (home.number(name, "keeper_pid") as u32, home.number(name, "pid") as u32);
    kill(keeper);
    until("the loss", || (life(home, name) == "lost").then_some(()));
    until("the end of its processes", || gone(command).then_some(()));
}

/// Processes that are the init of a session: those that have its directory as their own.
pub fn inits(home: &Home, name: &str) -> usize {
    use std::os::unix::fs::MetadataExt;
    let own = home.places().state.join("own");
    let identity = |path: std::path::PathBuf| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let dir = identity(home.session_dir(name));
    let is_its = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).next() == Some(own.join("portable").as_os_str().as_encoded_bytes())
            && identity(format!("/proc/{pid}/root{}", own.display()).into()) == dir
    };
    home.processes().iter().filter(|pid| is_its(pid)).count()
}

pub fn type_line(home: &Home, name: &str, line: &str) {
    home.ok(&["send", name, "--enter", line]);
}

#[test]
fn a_portable_session_has_pids_terminals_and_shared_memory_of_its_own_and_everyday_commands_work() {
    let Some(home) = home() else { return };
    shell(&home, "work");
    let run = |command: &str| {
        let run = home.json(&["run", "work", "--", command]);
        assert_eq!(run["exit_code"], 0, "{command}: {run}");
        run["output"].as_str().unwrap_or_default().to_owned()
    };
    assert!(run("tty").contains("/dev/pts/0"));
    let processes = run("ps -e -o pid,comm");
    assert!(processes.contains("1 portable") && processes.lines().count() < 8, "{processes}");
    assert!(run("pwd; touch made; ls").contains("made"));
    assert!(home.join("made").exists(), "its files are the machine's");
    run("git init -q repo && git -C repo status");
    assert!(run("python3 -c 'import multiprocessing.shared_memory as m; s=m.SharedMemory(create=True,size=9); s.close(); s.unlink(); print(7*6)'").contains("42"));
    assert!(
        run("tmux -L hf -f /dev/null new -d 'sleep 9' && tmux -L hf ls && tmux -L hf kill-server")
            .contains("1 windows")
    );
    run("echo kept > /dev/shm/of-this-session");
    assert!(!std::path::Path::new("/dev/shm/of-this-session").exists());
    assert!(info(&home, "work")["portable"] == true);
    // Its command's end is its own.
    start(&home, "seven", &["sh", "-c", "sleep 1000 & exit 7"]);
    assert_eq!(home.run(&["wait", "seven"]).status, 7);
    start(&home, "none", &["/no/such/program"]);
    assert_eq!(home.run(&["wait", "none"]).status, 127);
    assert!(home.ok(&["screen", "none"]).contains("cannot run /no/such/program"));
    // One that is not portable says so.
    home.session("plain", "exec cat");
    let refused = home.fails(&["checkpoint", "plain"]);
    assert!(refused.contains("is not portable") && refused.contains("new --portable"), "{refused}");
    let checked = home.run(&["checkpoint", "--check", "plain"]);
    assert!(checked.status == 1 && checked.out.contains("is not portable"), "{checked}");
    home.ok(&["end", "work"]);
    until("nothing is left of it", || (inits(&home, "work") == 0).then_some(()));
}

#[test]
fn processes_come_back_with_their_variables_jobs_half_typed_lines_and_terminal() {
    let Some(home) = home() else { return };
    shell(&home, "work");
    let id = info(&home, "work")["id"].clone();
    home.ok(&["run", "work", "--", "V=forty-two; sleep 1000 & sleep 0.1"]);
    type_line(&home, "work", "python3 -q");
    home.until_screen_shows("work", ">>>");
    type_line(&home, "work", "x = 6");
    home.ok(&["send", "work", "print(x * 7, "]);
    home.until_screen_shows("work", "print(x * 7,");
    let head = home.number("work", "head");
    let made = home.json(&["checkpoint", "work"]);
    assert!(made["programs"].to_string().contains("python3"), "{made}");
    let lost = info(&home, "work");
    assert_eq!((&lost["life"], &lost["lost"]["cause"]["is"]), (&"lost".into(), &"checkpoint".into()), "{lost}");
    assert_eq!(lost["lost"]["checkpoint"], made["id"]);
    until("nothing runs", || (inits(&home, "work") == 0).then_some(()));
    assert!(home.fails(&["send", "work", "x"]).contains("holdfast restore work"));

    let told = home.json(&["restore", "work"]);
    assert_eq!((&told["session"]["id"], &told["session"]["incarnation"]), (&id, &2.into()), "{told}");
    let screen = home.ok(&["screen", "work"]);
    assert!(screen.trim_end().ends_with("print(x * 7,"), "{screen}");
    assert!(home.number("work", "oldest") >= head, "offsets go on");
    type_line(&home, "work", "8)");
    home.until_screen_shows("work", "42 8");
    type_line(&home, "work", "exit()");
    type_line(&home, "work", "echo $V $(jobs -r | wc -l); echo to-the-terminal > /dev/tty");
    home.until_screen_shows("work", "forty-two 1");
    home.until_screen_shows("work", "\nto-the-terminal");
    // Job control: the terminal is everybody's again.
    type_line(&home, "work", "sleep 1000");
    until("it sleeps", || home.ok(&["ps", "work"]).contains("sleep 1000").then_some(()));
    home.ok(&["send", "work", "--key", "C-c"]);
    let run = until("the prompt", || {
        Some(home.json(&["run", "work", "--", "echo again-$((1+1))"])).filter(|run| run["exit_code"] == 0)
    });
    assert!(run["output"].as_str().unwrap().contains("again-2"), "{run}");
    // One life at a time.
    assert!(home.fails(&["restore", "work"]).contains("one life at a time"));
    let journal = home.ok(&["journal", "work"]);
    assert!(journal.contains("made a checkpoint and stopped the session"), "{journal}");
    assert!(journal.contains("restored the session from its newest checkpoint"), "{journal}");
    home.ok(&["journal", "work", "--verify"]);
    assert_eq!(inits(&home, "work"), 1);
}

#[test]
fn a_restored_shell_takes_runs_at_its_prompt_and_none_behind_a_half_typed_line() {
    let Some(home) = home() else { return };
    let again = || {
        home.ok(&["checkpoint", "work"]);
        home.ok(&["restore", "work"]);
    };
    shell(&home, "work");
    home.ok(&["run", "work", "--", "V=1"]);
    again();
    assert_eq!(home.json(&["run", "work", "--", "echo v-$V"])["output"], "v-1\n");
    home.ok(&["send", "work", "touch half"]);
    home.until_screen_shows("work", "touch half");
    again();
    assert!(home.fails(&["run", "work", "--", "echo x"]).contains("not at an empty prompt"));
    // What a program types would become part of a line that nobody has judged.
    home.ok(&["actor", "new", "agent:bot"]);
    home.run(&["release", "work"]);
    let refused = home.run_as("agent:bot", &["send", "work", "--enter", "typed"]);
    assert!(refused.status != 0 && refused.err.contains("the gate cannot tell"), "{refused}");
    home.ok(&["send", "work", "--key", "C-u"]);
    assert_eq!(home.json(&["run", "work", "--", "echo again-$V"])["output"], "again-1\n");
}

#[test]
fn a_run_that_is_on_goes_on_after_a_restore_and_its_end_is_known_and_after_a_recovery_it_is_lost() {
    let Some(home) = home() else { return };
    shell(&home, "work");
    let begin = |key: &str| {
        let line = "echo begun; while [ ! -e go ]; do sleep 0.05; done; rm go; echo done-$((40+2)); (exit 7)";
        let run = home.run(&["--json", "run", "work", "--key", key, "--timeout", "0", "--", line]);
        home.until_screen_shows("work", "begun");
        serde_json::from_str::<Value>(&run.out).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let status = |run: &str| home.json(&["run", "status", run]);
    let id = begin("first");
    home.ok(&["checkpoint", "work"]);
    assert_eq!((life(&home, "work").as_str(), &status(&id)["state"]), ("lost", &"running".into()));
    assert_eq!(info(&home, "work")["lost"].get("runs").cloned().unwrap_or_default(), Value::Null);
    home.kill_host();
    assert_eq!(status(&id)["state"], "running", "also for the next host");
    home.ok(&["restore", "work"]);
    assert_eq!(status(&id)["state"], "running");
    // A host that is killed meanwhile changes nothing.
    home.kill_host();
    std::fs::write(home.join("go"), "").unwrap();
    let run = until("its end", || Some(status(&id)).filter(|run| run["state"] == "ended"));
    assert_eq!((&run["exit_code"], &run["end"]), (&7.into(), &"exact".into()), "{run}");
    let again = home.json(&["run", "work", "--", "echo again"]);
    assert_eq!(again["output"], "again\n");
    // A shell without the processes cannot end it.
    let id = begin("second");
    home.ok(&["checkpoint", "work"]);
    home.ok(&["recover", "work"]);
    assert_eq!(status(&id)["state"], "lost");
}

#[test]
fn a_session_that_keeps_running_goes_on_and_can_be_taken_back_to_then() {
    let Some(home) = home() else { return };
    start(&home, "counter", &["sh", "-c", COUNTS]);
    counts_on(&home, 3);
    let made = home.json(&["checkpoint", "counter", "--keep-running"]);
    let then = count(&home);
    let later = counts_on(&home, then + 5);
    assert_eq!(life(&home, "counter"), "running");
    let id = made["id"].as_str().unwrap();
    assert_eq!(home.json(&["checkpoints", "show", id])["session"], info(&home, "counter")["id"]);
    assert!(home.ok(&["checkpoints", "ls"]).contains(id));
    lose(&home, "counter");
    assert_eq!(info(&home, "counter")["lost"]["checkpoint"], made["id"]);
    std::fs::write(home.join("count"), "0\n").unwrap();
    home.ok(&["restore", id]);
    let now = counts_on(&home, 0);
    assert!((3..=later).contains(&now), "it counts from the checkpoint's number on: {now}, then {then}, later {later}");
    home.ok(&["checkpoints", "rm", id]);
    assert_eq!(home.json(&["checkpoints", "ls"]), serde_json::json!([]));
    assert!(home.fails(&["checkpoints", "rm", id]).contains("no checkpoint"));
    lose(&home, "counter");
    let refused = home.fails(&["restore", "counter"]);
    assert!(refused.contains("has no checkpoint") && refused.contains("holdfast recover counter"), "{refused}");
    // A life without processes is still to be had, and is portable too.
    home.ok(&["recover", "counter", "--run"]);
    counts_on(&home, 0);
    home.ok(&["checkpoint", "counter"]);
}

#[test]
fn what_was_typed_ahead_is_read_after_a_checkpoint_and_after_a_restore_and_a_follower_goes_on() {
    let Some(home) = home() else { return };
    std::fs::write(home.join("followed"), "").unwrap();
    shell(&home, "work");
    home.ok(&["run", "work", "--", "true"]);
    type_line(&home, "work", "while [ ! -e go ]; do sleep 0.05; done; rm go");
    type_line(&home, "work", "echo first-$((20+1))");
    home.ok(&["checkpoint", "work", "--keep-running"]);
    std::fs::write(home.join("go"), "").unwrap();
    home.until_screen_shows("work", "first-21");
    until("the loop's end", || (!home.join("go").exists()).then_some(()));
    type_line(&home, "work", "while [ ! -e go ]; do sleep 0.05; done; rm go");
    type_line(&home, "work", "echo second-$((20+2))");
    home.ok(&["checkpoint", "work"]);
    home.ok(&["restore", "work"]);
    std::fs::write(home.join("go"), "").unwrap();
    home.until_screen_shows("work", "second-22");
    // A wait without end is not interrupted in the session that goes on.
    type_line(&home, "work", "tail -f followed");
    until("it follows", || home.ok(&["ps", "work"]).contains("tail -f").then_some(()));
    home.ok(&["checkpoint", "work", "--keep-running"]);
    std::fs::write(home.join("followed"), "grew\n").unwrap();
    home.until_screen_shows("work", "grew");
}

#[test]
fn no_image_is_made_of_a_moment_in_which_nobody_has_the_terminal() {
    let Some(home) = home() else { return };
    // As a shell between two commands of a loop, for as long as the test wants.
    let script = "import os,signal,time\nsignal.signal(signal.SIGTTOU, signal.SIG_IGN)\nchild = os.fork()\nif not child: time.sleep(1000)\n\
                  os.setpgid(child, child)\nos.tcsetpgrp(0, child)\nos.kill(child, 9)\nos.waitpid(child, 0)\nprint('nobody', flush=True)\n\
                  while not os.path.exists('back'): time.sleep(0.01)\nos.tcsetpgrp(0, os.getpgrp())\nprint('back again', flush=True)\n\
                  print('heard', input(), flush=True)\ntime.sleep(1000)";
    start(&home, "work", &["python3", "-c", script]);
    home.until_screen_shows("work", "nobody");
    let refused = home.fails(&["checkpoint", "work"]);
    assert!(refused.contains("nobody has its terminal"), "{refused}");
    assert_eq!(life(&home, "work"), "running");
    std::fs::write(home.join("back"), "").unwrap();
    home.until_screen_shows("work", "back again");
    home.ok(&["checkpoint", "work"]);
    home.ok(&["restore", "work"]);
    type_line(&home, "work", "you");
    home.until_screen_shows("work", "heard you");
}

#[test]
fn a_check_names_what_is_refused_and_what_is_cut_by_process_and_descriptor() {
    let Some(home) = home() else { return };
    let (inside, outside) = (home.join("outside.sock"), TcpListener::bind("127.0.0.1:0").unwrap());
    let listener = UnixListener::bind(&inside).unwrap();
    let port = outside.local_addr().unwrap().port();
    let connects = |how: &str| format!("import socket,time;s={how};print('connected',flush=True);time.sleep(1000)");
    let unix = connects(&format!("socket.socket(socket.AF_UNIX);s.connect('{}')", inside.display()));
    let tcp = connects(&format!("socket.create_connection(('127.0.0.1',{port}))"));
    start(&home, "unix", &["python3", "-c", &unix]);
    start(&home, "tcp", &["python3", "-c", &tcp]);
    for name in ["unix", "tcp"] {
        home.until_screen_shows(name, "connected");
    }
    let check = |name: &str| {
        let ran = home.run(&["--json", "checkpoint", "--check", name]);
        (ran.status, serde_json::from_str::<Value>(&ran.out).unwrap())
    };
    let (status, refused) = check("unix");
    assert_eq!(status, 1, "{refused}");
    let one = &refused["refused"][0];
    assert!(one["what"].as_str().unwrap().contains("unix socket to a process outside"), "{refused}");
    assert_eq!((&one["program"], &one["fd"]), (&"python3".into(), &3.into()), "{refused}");
    let told = home.fails(&["checkpoint", "unix", "--keep-running"]);
    assert!(told.contains("cannot be checkpointed now") && told.contains("descriptor 3"), "{told}");
    assert_eq!(life(&home, "unix"), "running");
    assert_eq!(home.json(&["checkpoints", "ls"]), serde_json::json!([]));

    let (status, cut) = check("tcp");
    assert_eq!(status, 0, "{cut}");
    assert!(cut["cut"][0]["what"].as_str().unwrap().contains(&format!("127.0.0.1:{port}")), "{cut}");
    home.ok(&["checkpoint", "tcp"]);
    let told = home.ok(&["restore", "tcp"]);
    assert!(told.contains("connection cut") && told.contains(&port.to_string()), "{told}");
    let restored = info(&home, "tcp")["restored"]["cut"].to_string();
    assert!(restored.contains(&port.to_string()), "{restored}");
    drop(listener);
}

#[test]
fn a_damaged_image_is_refused_and_costs_nothing_else() {
    let Some(home) = home() else { return };
    start(&home, "counter", &["sh", "-c", COUNTS]);
    counts_on(&home, 1);
    let first = home.json(&["checkpoint", "counter", "--keep-running"])["id"].as_str().unwrap().to_owned();
    let second = home.json(&["checkpoint", "counter", "--keep-running"])["id"].as_str().unwrap().to_owned();
    let good = home.json(&["checkpoint", "counter"])["id"].as_str().unwrap().to_owned();
    let image = |id: &str| home.session_dir("counter").join("checkpoints").join(id);
    let modes = std::fs::read_dir(image(&good).join("img")).unwrap().flatten();
    use std::os::unix::fs::PermissionsExt;
    assert!(modes.map(|file| file.metadata().unwrap().permissions().mode()).all(|mode| mode & 0o077 == 0));
    // One is cut, one is changed in one byte, one has a manifest of a later version.
    let all = std::fs::read_dir(image(&first).join("img")).unwrap().flatten();
    let packed = all.map(|file| file.path()).find(|path| path.extension() == Some("lz4".as_ref())).unwrap();
    std::fs::OpenOptions::new().write(true).open(&packed).unwrap().set_len(1000).unwrap();
    let cut = format!("{} has 1000 bytes", packed.file_name().unwrap().display());
    let mut core = std::fs::OpenOptions::new().write(true).open(image(&second).join("img/core-1.img")).unwrap();
    core.write_all(b"X").unwrap();
    for (id, why) in [(&first, cut.as_str()), (&second, "core-1.img is damaged")] {
        let refused = home.fails(&["restore", id]);
        assert!(refused.contains(why) && refused.contains("holdfast recover counter"), "{refused}");
        assert_eq!((life(&home, "counter").as_str(), inits(&home, "counter")), ("lost", 0));
    }
    let manifest = std::fs::read_to_string(image(&second).join("manifest")).unwrap();
    std::fs::write(image(&second).join("manifest"), manifest.replacen(" 2 ", " 9 ", 1)).unwrap();
    assert!(home.ok(&["checkpoints", "ls"]).contains("damaged"));
    assert!(home.fails(&["restore", &second]).contains("cannot be restored"));
    // A file that the processes have open is gone: CRIU itself refuses, and nothing half-made is left.
    home.ok(&["restore", &good]);
    counts_on(&home, 1);
    home.ok(&["checkpoint", "counter"]);
    let program = home.session_dir("counter").join("portable");
    std::fs::rename(&program, home.join("away")).unwrap();
    assert!(home.fails(&["restore", "counter"]).contains("is gone from the session's directory"));
    std::fs::write(&program, "another").unwrap();
    let refused = home.fails(&["restore", "counter"]);
    assert!(refused.contains("cannot be restored"), "{refused}");
    assert_eq!(life(&home, "counter"), "lost");
    std::fs::rename(home.join("away"), &program).unwrap();
    std::fs::write(home.join("count"), "0\n").unwrap();
    home.ok(&["restore", "counter"]);
    counts_on(&home, 0);
    assert_eq!(inits(&home, "counter"), 1);
}

/// Asks for something during which the host is killed.
pub fn killed_at(home: &Home, step: &str, words: &[&str]) {
    let host = home.host_pid();
    let held = home.pause(step);
    let mut asked = home.command(words);
    let mut asked = asked.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let reached = held.reached();
    kill(host);
    until("the host's end", || gone(host).then_some(()));
    drop((reached, held));
    asked.wait().unwrap();
}

#[test]
fn a_host_that_is_killed_at_any_step_of_a_checkpoint_leaves_a_session_that_goes_on_or_a_whole_image() {
    let Some(home) = home() else { return };
    for (at, step) in MAKING.into_iter().enumerate() {
        let name = format!("counter{at}");
        std::fs::write(home.join("count"), "0\n").unwrap();
        start(&home, &name, &["sh", "-c", COUNTS]);
        counts_on(&home, 1);
        killed_at(&home, step, &["checkpoint", &name]);
        until("it goes on, or is stopped", || ["running", "lost"].contains(&life(&home, &name).as_str()).then_some(()));
        if life(&home, &name) == "running" {
            let now = count(&home);
            counts_on(&home, now + 2);
            home.ok(&["checkpoint", &name]);
        }
        let left = home.session_dir(&name).join("checkpoints");
        let odd = || std::fs::read_dir(&left).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
        until("nothing half-made is left", || {
            odd().all(|name| !name.contains("partial") && name != "still").then_some(())
        });
        std::fs::write(home.join("count"), "0\n").unwrap();
        home.ok(&["restore", &name]);
        assert!(counts_on(&home, 0) > 1, "{step}");
        assert_eq!(inits(&home, &name), 1, "{step}");
        home.ok(&["journal", &name, "--verify"]);
        home.ok(&["end", &name, "--grace", "0"]);
    }
}

#[test]
fn what_is_stopped_for_good_does_nothing_more_when_its_terminal_goes() {
    let Some(home) = home() else { return };
    // A terminal that hangs up tells its session's leader, and wakes it.
    let leader = r#"$SIG{HUP} = sub { open my $to, ">>", "hung-up"; print $to "once more\n" }; print "ready\n"; sleep 1 while 1"#;
    for name in ["one", "two", "three"] {
        start(&home, name, &["perl", "-e", &format!("$|=1; {leader}")]);
        home.until_screen_shows(name, "ready");
        home.ok(&["checkpoint", name]);
        assert_eq!(life(&home, name), "lost");
        assert!(!home.join("hung-up").exists(), "{name} acted once more behind its image");
        home.ok(&["restore", name]);
        assert!(!home.join("hung-up").exists());
        home.ok(&["end", name, "--grace", "0"]);
        std::fs::remove_file(home.join("hung-up")).unwrap_or_default();
    }
}

#[test]
fn a_host_that_is_killed_while_it_ends_what_it_has_the_image_of_leaves_the_next_one_to_finish() {
    let Some(home) = home() else { return };
    start(&home, "counter", &["sh", "-c", COUNTS]);
    counts_on(&home, 1);
    killed_at(&home, "portable.killed", &["checkpoint", "counter"]);
    let stood = count(&home);
    until("it is stopped", || (life(&home, "counter") == "lost").then_some(()));
    home.ok(&["restore", "counter"]);
    counts_on(&home, stood);
    assert_eq!(inits(&home, "counter"), 1);
    home.ok(&["end", "counter", "--grace", "0"]);
}

#[test]
fn the_next_host_lets_nothing_go_on_that_its_last_host_had_stand_still_before_it_knows_why() {
    let Some(home) = home() else { return };
    start(&home, "counter", &["sh", "-c", COUNTS]);
    counts_on(&home, 1);
    let (host, named) = (home.host_pid(), home.pause("checkpoint.named"));
    let mut asked = home.command(&["checkpoint", "counter"]);
    let mut asked = asked.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let reached = named.reached();
    let mends = home.pause("checkpoint.mends");
    kill(host);
    drop((reached, named));
    home.ok(&["ls"]);
    let reached = mends.reached();
    let command = home.number("counter", "pid");
    let state = || std::fs::read_to_string(format!("/proc/{command}/stat")).unwrap();
    for _ in 0..10 {
        // The host does other things meanwhile.
        home.ok(&["info", "counter"]);
        assert!(state().contains(") T "), "{}", state());
    }
    let stood = count(&home);
    drop((reached, mends));
    asked.wait().unwrap();
    if life(&home, "counter") == "running" {
        counts_on(&home, stood);
    }
    home.ok(&["end", "counter", "--grace", "0"]);
}

#[test]
fn a_host_that_is_killed_at_any_step_of_a_restore_leaves_at_most_one_life() {
    let Some(home) = home() else { return };
    start(&home, "counter", &["sh", "-c", COUNTS]);
    counts_on(&home, 1);
    home.ok(&["checkpoint", "counter", "--keep-running"]);
    for step in RESTORING {
        lose(&home, "counter");
        std::fs::write(home.join("count"), "0\n").unwrap();
        killed_at(&home, step, &["restore", "counter"]);
        // Its client asks the next host again; or the life that was about to begin is known to be none after a moment.
        until("a life, or none", || (count(&home) > 1 || life(&home, "counter") == "lost").then_some(()));
        if life(&home, "counter") == "lost" {
            home.ok(&["restore", "counter"]);
        }
        assert!(counts_on(&home, 0) > 1, "{step}");
        assert_eq!(inits(&home, "counter"), 1, "{step}");
        assert_eq!(life(&home, "counter"), "running", "{step}");
    }
    home.ok(&["journal", "counter", "--verify"]);
}

#[test]
fn who_may_not_checkpoint_does_not_and_who_may_not_end_stops_nothing() {
    let Some(home) = home() else { return };
    shell(&home, "work");
    home.ok(&["actor", "new", "agent:eye"]);
    home.ok(&["revoke", "work", "--to", "agent:eye"]);
    home.ok(&["grant", "work", "--to", "agent:eye", "--can", "observe"]);
    assert_eq!(home.run_as("agent:eye", &["checkpoint", "--check", "work"]).status, 0);
    for words in [&["checkpoint", "work"][..], &["checkpoint", "work", "--keep-running"]] {
        let refused = home.run_as("agent:eye", words);
        assert!(refused.status != 0 && refused.err.contains("may not"), "{refused}");
    }
    home.ok(&["grant", "work", "--to", "agent:eye", "--can", "checkpoint"]);
    let refused = home.run_as("agent:eye", &["checkpoint", "work"]);
    assert!(refused.status != 0 && refused.err.contains("may not"), "{refused}");
    assert_eq!(life(&home, "work"), "running");
    assert_eq!(home.run_as("agent:eye", &["checkpoint", "work", "--keep-running"]).status, 0);
    home.ok(&["checkpoint", "work"]);
    home.ok(&["revoke", "work", "--to", "agent:eye"]);
    home.ok(&["grant", "work", "--to", "agent:eye", "--can", "observe"]);
    let refused = home.run_as("agent:eye", &["restore", "work"]);
    assert!(refused.status != 0 && refused.err.contains("may not"), "{refused}");
    assert_eq!(life(&home, "work"), "lost");
}
