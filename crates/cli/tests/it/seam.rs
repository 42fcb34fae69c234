//! `new --gate exec`: every program that a session's processes start is judged, whatever the line said; and what becomes of those that
//! wait when the host is killed. The programs are stand-ins that leave a line behind.

use crate::gate::{BOT, bot_releases, bot_runs};
use holdfast_harness::{Home, kill, until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Denied by every policy, by its name and its operand.
const FORMATS: &str = "mkfs.ext4 /dev/sdzz9";
/// A user that is not root: root looks into everything.
const SOMEBODY: u32 = 65_534;
/// Asked about by `solo` and `careful`.
const PUSHES: &str = "git push --force";

/// A home with a session of bash whose programs are judged, an agent, and programs in the session's directory that leave a line behind.
fn gated(config: &str, more: &[&str]) -> Option<Home> {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), config).unwrap();
    home.ok(&["actor", "new", BOT]);
    let bin = home.join("project/bin");
    std::fs::create_dir_all(&bin).unwrap();
    for name in ["mkfs.ext4", "git"] {
        write(&home, &format!("bin/{name}"), "#!/bin/sh\necho ran >> left\n");
    }
    // What the line gate does not look into.
    write(&home, "formats", &format!("#!/bin/sh\nbin/{FORMATS} || echo status $?\n"));
    write(&home, "pushes", &format!("#!/bin/sh\nbin/{PUSHES} || echo status $?\n"));
    let project = home.join("project");
    let args = ["new", "-d", "-n", "work", "--cwd", project.to_str().unwrap(), "--gate", "exec"];
    let made = home.run(&[&args[..], more, &["--", "bash"]].concat());
    if made.err.contains("programs cannot be judged here") {
        eprintln!("not tested: {made}");
        return None;
    }
    assert_eq!(made.status, 0, "{made}");
    Some(home)
}

fn write(home: &Home, name: &str, text: &str) {
    let path = home.join("project").join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn lines(home: &Home) -> usize {
    std::fs::read_to_string(home.join("project/left")).unwrap_or_default().lines().count()
}

fn output(ran: &Value) -> String {
    ran["output"].as_str().unwrap_or_else(|| panic!("{ran}")).to_owned()
}

/// A run of the agent that goes on in the background.
fn bot_begins(home: &Home, command: &str) -> Child {
    let args = ["--as", BOT, "--json", "run", "work", "--", command];
    home.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    serde_json::from_slice(text).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(text)))
}

/// The one approval that is open.
fn open(home: &Home) -> Value {
    let mut found = Value::Null;
    until("an approval", || {
        let all = home.json(&["approvals", "ls"]);
        found = all[0].clone();
        assert!(all.as_array().unwrap().len() <= 1, "one question for all of a run: {all}");
        !found.is_null()
    });
    found
}

fn until_state(home: &Home, id: &str, state: &str) {
    until(&format!("{id} to be {state}"), || home.json(&["approvals", "show", id])["state"] == state);
}

#[test]
fn a_program_is_allowed_or_denied_by_its_real_words_and_the_terminal_says_why() {
    let Some(home) = gated("", &[]) else { return };
    assert!(home.ok(&["info", "work"]).contains("every program its processes start is judged"));
    assert_eq!(home.json(&["info", "work"])["gate"], "exec");
    assert_eq!(output(&bot_runs(&home, &["--", "ls formats; true; sh -c 'echo in a shell'"])), "formats\nin a shell\n");
    let said = output(&bot_runs(&home, &["--", "./formats"]));
    assert!(said.contains(&format!("holdfast: denied: {FORMATS} (solo.unthinkable: this would destroy")), "{said}");
    assert!(said.contains("Permission denied") && said.contains("status 126"), "{said}");
    // However it is called, and whoever starts it.
    for way in [
        "bash -c 'exec -a harmless bin/mkfs.ext4 /dev/sdzz9'",
        "ln -sf mkfs.ext4 bin/other; bin/other /dev/sdzz9",
        "bash -c 'bash -c ./formats'",
        "env -i /bin/sh ./formats",
        "python3 -c 'import os; os.execv(\"bin/mkfs.ext4\", [\"ls\", \"/dev/sdzz9\"])'",
        "setsid ./formats > said 2>&1; cat said",
        "find formats -exec bin/mkfs.ext4 /dev/sdzz9 ';'",
        "X='bin/mkfs.ext4 /dev/sdzz9'; eval \"$X\"",
        "PATH=/nonexistent:/etc/passwd:$PWD/bin mkfs.ext4 /dev/sdzz9",
    ] {
        write(&home, "way", &format!("#!/bin/bash\nexec 2>&1\n{way}\n"));
        let ran = bot_runs(&home, &["--", "./way"]);
        assert!(output(&ran).contains("ermission denied"), "{way}: {ran}");
    }
    assert_eq!(lines(&home), 0);
    let journal = home.ok(&["journal", "work", "--json"]);
    let noted = journal.lines().find(|act| act.contains("session.exec") && act.contains("solo.unthinkable"));
    assert!(noted.is_some_and(|act| act.contains(BOT)), "{journal}");
    home.ok(&["journal", "work", "--verify"]);
    // A person is free.
    bot_releases(&home);
    home.ok(&["run", "work", "--", "./formats"]);
    assert_eq!(lines(&home), 1);
}

#[test]
fn a_program_that_a_rule_asks_about_waits_until_a_human_has_answered() {
    let Some(home) = gated("", &[]) else { return };
    let waits = bot_begins(&home, "./pushes");
    let held = open(&home);
    assert_eq!(
        (&held["act"], &held["command"], &held["rule"], &held["by"]["handle"]),
        (&json!("exec"), &json!(PUSHES), &json!("solo.catastrophic"), &json!(BOT)),
        "{held}"
    );
    assert_eq!(held["cwd"].as_str(), home.join("project").canonicalize().unwrap().to_str());
    let id = held["id"].as_str().unwrap();
    let refused = home.run_as(BOT, &["--json", "approvals", "approve", id]);
    assert!(refused.err.contains("humans_approve"), "{refused}");
    assert_eq!(lines(&home), 0);
    home.ok(&["approvals", "approve", id]);
    assert_eq!(ended(waits)["exit_code"], 0);
    until_state(&home, id, "done");
    assert_eq!(lines(&home), 1);
    // Once is once: in another run it is asked about again. Denied, the agent reads why.
    let waits = bot_begins(&home, "./pushes");
    let second = open(&home)["id"].as_str().unwrap().to_owned();
    assert_ne!(second, id);
    home.ok(&["approvals", "deny", &second, "--reason", "not on a Friday"]);
    let ran = ended(waits);
    assert!(output(&ran).contains("human:tester denied it: not on a Friday"), "{ran}");
    assert_eq!(lines(&home), 1);
    let journal = home.ok(&["journal", "work", "--json"]);
    assert!(journal.lines().any(|act| act.contains("session.exec") && act.contains(&second)), "{journal}");
    home.ok(&["journal", "work", "--verify"]);
}

#[test]
fn a_program_that_is_another_than_was_approved_does_not_start() {
    let Some(home) = gated("", &[]) else { return };
    let waits = bot_begins(&home, "./pushes");
    let held = open(&home);
    write(&home, "bin/git", "#!/bin/sh\necho evil >> left\n");
    home.ok(&["approvals", "approve", held["id"].as_str().unwrap()]);
    let said = output(&ended(waits));
    assert!(said.contains("has changed since") && lines(&home) == 0, "{said}");
}

#[test]
fn one_answer_counts_for_a_run_and_one_that_was_approved_is_not_asked_about_again() {
    let Some(home) = gated("", &[]) else { return };
    write(&home, "many", &format!("#!/bin/sh\nfor n in 1 2 3; do bin/{PUSHES} & done; wait\n bin/{PUSHES}\n"));
    let waits = bot_begins(&home, "./many");
    let id = open(&home)["id"].as_str().unwrap().to_owned();
    home.ok(&["approvals", "approve", &id]);
    assert_eq!(ended(waits)["exit_code"], 0);
    assert_eq!((lines(&home), home.json(&["approvals", "ls"])), (4, json!([])));
    // A line that a human approved has programs of its own.
    let line = format!("bin/{PUSHES}");
    let error = &bot_runs(&home, &["--", &line])["error"];
    assert_eq!(error["code"], "approval_needed", "{error}");
    home.ok(&["approvals", "approve", error["details"]["approval"].as_str().unwrap()]);
    until("the approved run", || lines(&home) == 5);
}

#[test]
fn a_process_that_is_interrupted_while_it_waits_leaves_no_question_behind() {
    let Some(home) = gated("", &[]) else { return };
    let waits = bot_begins(&home, "./pushes");
    let id = open(&home)["id"].as_str().unwrap().to_owned();
    home.run_as(BOT, &["send", "work", "--key", "C-c"]);
    until_state(&home, &id, "expired");
    ended(waits);
    assert_eq!(lines(&home), 0);
    assert_eq!(output(&bot_runs(&home, &["--", "echo on"])), "on\n");
}

#[test]
fn a_frozen_session_keeps_its_questions_and_goes_on() {
    let Some(home) = gated("", &[]) else { return };
    let waits = bot_begins(&home, "./pushes");
    let id = open(&home)["id"].as_str().unwrap().to_owned();
    let begun = Instant::now();
    home.ok(&["seize", "work", "--freeze", "--reason", "a look"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    home.ok(&["approvals", "approve", &id]);
    until_state(&home, &id, "done");
    assert_eq!(lines(&home), 0, "nothing runs while it is frozen");
    home.ok(&["thaw", "work"]);
    until("the program", || lines(&home) == 1);
    ended(waits);
}

#[test]
fn whenever_the_host_is_killed_no_program_starts_without_a_decision_or_waits_for_ever() {
    let Some(home) = gated("", &[]) else { return };
    // Before the kernel's question was taken: nobody is there to take it.
    let waits = bot_begins(&home, "sleep 0.2; ./formats; ./pushes");
    kill(home.host_pid());
    home.ok(&["host", "start"]);
    let id = open(&home)["id"].as_str().unwrap().to_owned();
    assert_eq!(lines(&home), 0);
    // While a human is asked.
    kill(home.host_pid());
    home.ok(&["host", "start"]);
    assert_eq!(open(&home)["id"], json!(id), "the same question");
    // Approved, on disk, and not told to the process.
    let pause = home.pause("approval.kept");
    let mut approve =
        home.command(&["approvals", "approve", &id]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let reached = pause.reached();
    drop(pause);
    kill(home.host_pid());
    drop(reached);
    let _ = approve.wait();
    home.ok(&["host", "start"]);
    until("the approved program", || lines(&home) == 1);
    until_state(&home, &id, "done");
    let _ = waits.wait_with_output();
    // Decided, and not told to the process: the next host decides the same.
    let pause = home.pause("exec.decided");
    let waits = bot_begins(&home, "./formats; echo over > end");
    let reached = pause.reached();
    drop(pause);
    kill(home.host_pid());
    drop(reached);
    home.ok(&["host", "start"]);
    until("the end of the run", || home.join("project/end").exists());
    let _ = waits.wait_with_output();
    assert_eq!((lines(&home), home.json(&["approvals", "ls"])), (1, json!([])), "once each");
}

#[test]
fn a_session_that_is_recovered_has_its_gate_again() {
    let Some(home) = gated("", &[]) else { return };
    kill(home.number("work", "keeper_pid") as u32);
    until("the loss", || home.json(&["info", "work"])["life"] == "lost");
    home.ok(&["recover", "work"]);
    let said = output(&bot_runs(&home, &["--", "./formats"]));
    assert!(said.contains("solo.unthinkable") && lines(&home) == 0, "{said}");
}

#[test]
fn a_walled_session_is_gated_too_and_no_ring_gets_past() {
    let dir = tempfile::tempdir().unwrap();
    let wall = dir.path().to_str().unwrap().to_owned();
    let Some(home) = gated("", &["--wall", &wall]) else { return };
    let said = output(&bot_runs(&home, &["--", "./formats"]));
    assert!(said.contains("solo.unthinkable") && lines(&home) == 0, "{said}");
    let ring = "python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); l.syscall(425, 1, 0); print(ctypes.get_errno())'";
    assert_eq!(output(&bot_runs(&home, &["--", ring])), "38\n", "ENOSYS");
}

#[test]
fn a_session_that_is_started_from_inside_is_gated_too() {
    let Some(home) = gated("", &[]) else { return };
    let program = env!("CARGO_BIN_EXE_holdfast");
    let ran = bot_runs(&home, &["--", &format!("{program} --as {BOT} run --new --keep --name side -- ./formats 2>&1")]);
    assert!(output(&ran).contains("solo.unthinkable") && lines(&home) == 0, "{ran}");
    assert_eq!(home.json(&["info", "side"])["gate"], "exec");
}

#[test]
fn nobody_of_the_same_user_takes_the_listener_and_sudo_is_given_up_only_without_root() {
    let Some(home) = gated("", &[]) else { return };
    let no_new_privs = |pid: u64| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("NoNewPrivs:")).unwrap().trim().to_owned()
    };
    if !rustix::process::getuid().is_root() {
        assert_eq!(no_new_privs(home.number("work", "pid")), "1");
        return;
    }
    assert_eq!(no_new_privs(home.number("work", "pid")), "0");
    // A session of another user has its programs judged too, by a warden that is not that user's.
    let args = ["new", "-d", "-n", "theirs", "--user", "nobody", "--gate", "exec", "--cwd", "/", "--", "sh"];
    home.ok(&args);
    let ran =
        home.run_as(BOT, &["send", "theirs", "--enter", "id -u; sh -c 'cp /bin/true /tmp/mkfs.ext4.$$; ls /dev/null'"]);
    assert_eq!(ran.status, 0, "{ran}");
    home.until_screen_shows("theirs", "/dev/null");
    // As a user that is not root, with a home of its own.
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let holdfast = dir.path().join("holdfast");
    std::fs::copy(env!("CARGO_BIN_EXE_holdfast"), &holdfast).unwrap();
    std::os::unix::fs::chown(dir.path(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    let run = |args: &[&str]| -> Value {
        let mut command = std::process::Command::new(&holdfast);
        command.uid(SOMEBODY).gid(SOMEBODY).env_clear().current_dir(dir.path());
        command.env("HOLDFAST_HOME", dir.path().join("home")).env("PATH", "/usr/bin:/bin");
        let ran = command.args(["--as", "agent:tester", "--json"]).args(args).output().unwrap();
        serde_json::from_slice(&ran.stdout)
            .unwrap_or_else(|_| panic!("{args:?}: {}", String::from_utf8_lossy(&ran.stderr)))
    };
    run(&["new", "-d", "-n", "mine", "--gate", "exec", "--", "bash"]);
    assert_eq!(no_new_privs(run(&["info", "mine"])["pid"].as_u64().unwrap()), "1");
    let host = run(&["host", "status"])["pid"].as_u64().unwrap();
    // Who is behind the filter is no host, whatever secret it shows.
    let answers = "import glob, json, os, re, socket, sys\n\
        home = sys.argv[1]\n\
        spec = open(glob.glob(home + '/sessions/*/spec')[0], 'rb').read().decode()\n\
        secret = bytes.fromhex(re.search('\"secret\": *\"([0-9a-f]+)\"', spec).group(1))\n\
        s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(glob.glob(home + '/run/*.w')[0])\n\
        s.send(b'h' + secret)\n\
        print('hung up' if s.recv(1) == b'' else 'answered')\n";
    std::fs::write(dir.path().join("answers.py"), answers).unwrap();
    let pretends = format!("python3 {0}/answers.py {0}/home", dir.path().display());
    assert_eq!(output(&run(&["run", "mine", "--", &pretends])), "hung up\n");
    let steal = "import ctypes, os, glob\n\
        l = ctypes.CDLL(None, use_errno=True)\n\
        def comm(p):\n\
        \x20   try: return open(f'/proc/{p}/comm').read().strip(), os.stat(f'/proc/{p}/cmdline').st_uid\n\
        \x20   except OSError: return '', 0\n\
        def uid(p):\n\
        \x20   return [l for l in open(f'/proc/{p}/status') if l.startswith('Uid:')][0].split()[1]\n\
        wardens = [int(p) for p in os.listdir('/proc') if p.isdigit() and comm(p)[0] == 'holdfast-warden' and uid(p) == str(os.getuid())]\n\
        taken = 0\n\
        for w in wardens:\n\
        \x20   fd = l.syscall(434, w, 0)\n\
        \x20   taken += sum(l.syscall(438, fd, n, 0) >= 0 for n in range(16))\n\
        print('wardens', len(wardens), 'taken', taken, 'errno', ctypes.get_errno())\n";
    std::fs::write(dir.path().join("steal.py"), steal).unwrap();
    let ran = run(&["run", "mine", "--", &format!("python3 {}", dir.path().join("steal.py").display())]);
    let said = output(&ran);
    let found: Vec<&str> = said.split_whitespace().collect();
    assert!(found[1].parse::<u32>().unwrap() > 0 && found[3] == "0" && found[5] == "1", "EPERM: {said}");
    run(&["end", "mine", "--grace", "0"]);
    kill(host as u32);
}

#[test]
fn rules_of_ones_own_judge_programs_by_file_and_locked_starts_only_what_is_listed() {
    let Some(home) = gated("", &[]) else { return };
    std::fs::create_dir(home.join("policy")).unwrap();
    let rule = "@id(\"own.py\")\n@why(\"no python here\")\nforbid (principal, action == Action::\"exec\", resource)\nwhen { principal.class == \"agent\" && context has program && context.program like \"*/python3*\" };\n";
    std::fs::write(home.join("policy/own.cedar"), rule).unwrap();
    let ran = || output(&bot_runs(&home, &["--", "python3 -c 'print(1 + 1)'"]));
    until("the rule", || ran().contains("own.py: no python here"));
    std::fs::remove_file(home.join("policy/own.cedar")).unwrap();
    until("it is gone", || ran() == "2\n");
    bot_releases(&home);
    home.ok(&["end", "work"]);
    std::fs::write(home.join("config.toml"), "policy = \"locked\"").unwrap();
    home.ok(&["host", "restart"]);
    let project = home.join("project");
    home.ok(&["new", "-d", "-n", "locked", "--cwd", project.to_str().unwrap(), "--gate", "exec", "--", "bash"]);
    let ran = home.run_as(BOT, &["run", "locked", "--", "ls formats; cat left || echo none"]);
    assert!(ran.out.contains("formats") && ran.out.contains("none"), "{ran}");
    write(&home, "ls", "#!/bin/sh\necho ran >> left\n");
    let ran = home.run_as(BOT, &["run", "locked", "--", "./ls"]);
    assert!(ran.out.contains("ermission denied") && lines(&home) == 0, "{ran}");
}

#[test]
fn many_programs_of_one_session_do_not_hold_up_another() {
    let Some(home) = gated("", &[]) else { return };
    home.ok(&["new", "-d", "-n", "other", "--", "bash"]);
    home.ok(&["run", "other", "--", "true"]);
    write(
        &home,
        "burst",
        "#!/usr/bin/python3\nimport os\nfor n in range(3000):\n    pid = os.posix_spawn('/bin/true', ['true'], {})\n    os.waitpid(pid, 0)\nfor n in range(200):\n    os.posix_spawn('/bin/sleep', ['sleep', '0.1'], {})\nopen('end', 'w')\n",
    );
    let burst = bot_begins(&home, "./burst");
    let mut slowest = Duration::ZERO;
    let mut looks = 0;
    while !home.join("project/end").exists() {
        let begun = Instant::now();
        assert_eq!(home.ok(&["run", "other", "--", "echo", "on"]), "on\n");
        slowest = slowest.max(begun.elapsed());
        looks += 1;
        assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    }
    assert!(looks > 0);
    eprintln!("{looks} runs beside the burst, the slowest {slowest:?}");
    ended(burst);
}
