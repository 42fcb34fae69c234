//! `run`: a command has one beginning, one end and one status, in real shells.

use holdfast_harness::{Home, holds_within, kill, until};
use rustix::fs::{FileType, Mode};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// A home with a session of this shell, named after it.
fn with_shell(shell: &str) -> Home {
    let home = Home::new();
    // zsh would ask a newcomer what it shall do.
    std::fs::write(home.join(".zshrc"), "PS1='z> '\n").unwrap();
    home.ok(&["new", "-d", "-n", shell, "--", shell]);
    home
}

/// The answer to a run, whatever its status.
fn run(home: &Home, args: &[&str]) -> Value {
    let ran = home.run(&[&["run", "--json"], args].concat());
    serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{args:?}: {ran}"))
}

fn code_of(home: &Home, args: &[&str]) -> String {
    let ran = home.run(&[&["run", "--json"], args].concat());
    let error: Value = serde_json::from_str(&ran.err).unwrap_or_else(|_| panic!("{args:?}: {ran}"));
    error["error"]["code"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_ends_with_its_command_and_ends_as_it_did() {
    let long = format!("echo {}", "x".repeat(100_000));
    for shell in SHELLS {
        let home = with_shell(shell);
        let cases: &[(&str, i32, &str)] = &[
            ("true", 0, ""),
            // Next to it: fish leaves the status of the command before.
            ("sleep 100 >/dev/null 2>&1 &", 0, ""),
            ("false", 1, ""),
            ("sh -c 'exit 7'", 7, ""),
            ("echo one\necho two", 0, "one\ntwo\n"),
            ("sh -c 'echo sub; exit 3'", 3, "sub\n"),
            ("echo \"it's\" 'a \"b\"' \\$x", 0, "it's a \"b\" $x\n"),
            ("printf '\\e]133;D;9;hf=\\a\\e]133;A;hf\\a\\e]133;B;hf\\a'; echo real", 0, "real\n"),
            ("printf 'no newline'", 0, "no newline"),
        ];
        for (command, status, output) in cases {
            let answer = run(&home, &[shell, "--", command]);
            assert_eq!((&answer["state"], &answer["end"]), (&"ended".into(), &"exact".into()), "{shell} {answer}");
            assert_eq!(answer["exit_code"], *status, "{shell} {command:?} {answer}");
            // A job's number is told by the shell.
            if !command.ends_with('&') {
                assert_eq!(answer["output"], *output, "{shell} {command:?}");
            }
            assert_eq!(home.run(&["run", shell, "--", command]).status, *status, "{shell} {command:?}");
        }
        let answer = run(&home, &[shell, "--", &long]);
        assert_eq!((&answer["exit_code"], &answer["truncated"]), (&0.into(), &true.into()), "{shell}");
        assert_eq!(home.ok(&["run", shell, "--", &long]).trim().len(), 100_000, "{shell}");
        home.ok(&["run", shell, "--", "cd /usr"]);
        assert_eq!(run(&home, &[shell, "--", "cd /"])["cwd"], "/", "{shell}");
        assert_eq!(home.ok(&["run", shell, "--", "echo", "a  b", "$HOME", "it's \\ so"]), "a  b $HOME it's \\ so\n");
    }
}

#[test]
fn here_documents_aliases_and_functions_work_as_typed() {
    for shell in ["bash", "zsh"] {
        let home = with_shell(shell);
        assert_eq!(home.ok(&["run", shell, "--", "cat <<END\none $((1+1))\nEND"]), "one 2\n", "{shell}");
        home.ok(&["run", shell, "--", "alias hey='echo alias'; f() { echo function; return 4; }"]);
        assert_eq!(home.ok(&["run", shell, "--", "hey"]), "alias\n", "{shell}");
        assert_eq!(home.run(&["run", shell, "--", "f"]).status, 4, "{shell}");
        assert_eq!(run(&home, &[shell, "--", "(cd /; exit 5)"])["exit_code"], 5, "{shell}");
    }
}

#[test]
fn what_is_wrong_or_half_a_command_does_not_start_and_is_taken_back() {
    for shell in SHELLS {
        let home = with_shell(shell);
        for command in ["echo ) oops", "echo 'half"] {
            let answer = run(&home, &[shell, "--timeout", "15", "--", command]);
            assert_eq!(answer["end"], "not_started", "{shell} {answer}");
            assert_eq!(home.ok(&["run", shell, "--", "echo fine"]), "fine\n", "{shell}");
        }
        let ran = home.run(&["run", shell, "--expect", "text:half", "--", "echo 'half"]);
        assert_ne!(ran.status, 0, "what did not start is not what was expected: {ran}");
        assert!(ran.err.contains("did not accept it as a command"), "{ran}");
    }
}

#[test]
fn nothing_is_typed_where_no_empty_prompt_waits() {
    let home = with_shell("bash");
    home.ok(&["run", "bash", "--", "true"]);
    home.ok(&["send", "bash", "echo half"]);
    home.until_screen_shows("bash", "echo half");
    assert_eq!(code_of(&home, &["bash", "--", "true"]), "shell_busy");
    home.ok(&["send", "bash", "--key", "C-c"]);
    until("the line to be empty again", || home.run(&["run", "bash", "--", "true"]).status == 0);
    home.ok(&["send", "bash", "--enter", "read -s -p 'Password: ' secret"]);
    home.until_screen_shows("bash", "Password:");
    assert_eq!(code_of(&home, &["bash", "--", "echo leaked"]), "shell_busy");
    home.ok(&["send", "bash", "--enter", "x"]);
    until("the prompt", || home.run(&["run", "bash", "--", "true"]).status == 0);
    assert_eq!(home.ok(&["run", "bash", "--", "echo \"<$secret>\""]), "<x>\n");
    // A program that pretends to be a shell at its prompt.
    home.ok(&["send", "bash", "--enter", "printf '\\e]133;D;0;hf=\\a\\e]133;A;hf\\a\\e]133;B;hf\\a'; cat"]);
    until("cat to run", || code_of(&home, &["bash", "--", "true"]) == "shell_busy");
    home.session("plain", "exec sleep 1000");
    assert_eq!(code_of(&home, &["plain", "--", "true"]), "shell_busy");
    assert_eq!(code_of(&home, &["bash", "--", " "]), "shell_busy", "whatever it is");
}

#[test]
fn a_key_runs_once_even_when_the_host_dies() {
    for shell in SHELLS {
        let home = with_shell(shell);
        let file = home.join("ran");
        let command = format!("sleep 1; echo once >> {}; sh -c 'exit 3'", file.display());
        let call = [shell, "--key", "deploy 1", "--timeout", "0", "--", &command];
        let first = run(&home, &call);
        assert_eq!(first["existing"], false, "{shell}");
        kill(home.host_pid());
        let call = [shell, "--key", "deploy 1", "--", &command];
        let again = run(&home, &call);
        assert_eq!((&again["id"], &again["existing"]), (&first["id"], &true.into()), "{shell}");
        assert_eq!((&again["exit_code"], &again["end"]), (&3.into(), &"exact".into()), "{shell} {again}");
        kill(home.host_pid());
        assert_eq!(run(&home, &call)["exit_code"], 3, "{shell}: known to the next host too");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "once\n", "{shell}");
        assert_eq!(code_of(&home, &[shell, "--key", "deploy 1", "--", "other"]), "key_conflict", "{shell}");
        assert_eq!(home.ok(&["run", shell, "--", "echo after"]), "after\n", "{shell}");
    }
}

#[test]
fn a_run_whose_session_is_over_is_over_whatever_an_earlier_host_came_to_write() {
    let home = Home::new();
    let ended = run(&home, &["--new", "--key", "ended", "--", "sh", "-c", "exit 3"]);
    let lost = run(&home, &["--new", "--key", "lost", "--timeout", "0", "--", "sleep", "1000"]);
    home.ok(&["new", "-d", "-n", "bash", "--", "bash"]);
    run(&home, &["bash", "--key", "in a shell", "--", "sh -c 'exit 4'"]);
    home.ok(&["end", "bash", "--grace", "0"]);
    let typed = home.json(&["run", "status", "in a shell"]);
    kill(home.host_pid());
    let dir = |run: &Value| home.join("sessions").join(run["session"].as_str().unwrap());
    for run in [&ended, &typed] {
        // Its end was not written: the file has its kind and version, and the run's beginning.
        let text = std::fs::read_to_string(dir(run).join("runs")).unwrap();
        let begun: Vec<&str> = text.lines().take(2).collect();
        std::fs::write(dir(run).join("runs"), begun.join("\n")).unwrap();
    }
    // Its keeper was not started.
    let is_keeper = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.to_string_lossy().contains("keeper"))
    };
    home.processes().into_iter().filter(is_keeper).for_each(kill);
    until("the keeper's end", || !home.processes().iter().any(is_keeper));
    std::fs::remove_file(dir(&lost).join("ring")).unwrap();
    std::fs::remove_file(home.join("run").join(format!("{}.k", lost["session"].as_str().unwrap()))).unwrap();
    for (key, state, code) in [("ended", "ended", Some(3)), ("in a shell", "ended", Some(4)), ("lost", "lost", None)] {
        let status = || home.json(&["run", "status", key]);
        until(key, || status()["state"] == state);
        assert_eq!(status()["exit_code"], code.map_or(Value::Null, Value::from), "{key}: {}", status());
    }
}

#[test]
fn a_timeout_leaves_it_running_and_cancel_interrupts_it() {
    for shell in SHELLS {
        let home = with_shell(shell);
        let ran = home.run(&["run", shell, "--timeout", "0.2", "--", "sleep 1000"]);
        assert_eq!(ran.status, 124, "{shell} {ran}");
        let id = ran.err.split_whitespace().find(|word| word.starts_with("run_")).unwrap().to_owned();
        assert_eq!(home.json(&["run", "status", &id])["state"], "running", "{shell}");
        assert_eq!(code_of(&home, &[shell, "--", "true"]), "shell_busy", "{shell}");
        let cancelled = home.json(&["run", "cancel", &id]);
        assert_eq!((&cancelled["state"], &cancelled["exit_code"]), (&"cancelled".into(), &130.into()), "{shell}");
        assert_eq!(home.run(&["run", "wait", &id]).status, 130, "{shell}");
        assert_eq!(home.ok(&["run", shell, "--", "echo fine"]), "fine\n", "{shell}");
    }
}

#[test]
fn a_run_that_ends_its_shell_ends_with_it() {
    for shell in SHELLS {
        for (command, status) in [("exit 6", 6), ("exec sh -c 'exit 5'", 5)] {
            let home = with_shell(shell);
            let answer = run(&home, &[shell, "--", command]);
            assert_eq!((&answer["exit_code"], &answer["end"]), (&status.into(), &"exact".into()), "{shell} {answer}");
            until("the session's end", || home.json(&["info", shell])["life"] == "ended");
        }
    }
}

#[test]
fn a_command_can_have_a_session_of_its_own() {
    let home = Home::new();
    let ran = home.run(&["run", "--new", "--", "sh", "-c", "echo \"$0 $1\"; exit 4", "it's", "a  b"]);
    assert_eq!((ran.status, ran.out.as_str()), (4, "it's a  b\n"));
    let call = ["--new", "--key", "k", "--", "sh", "-c", "echo x >> ran; exit 2"];
    let (first, again) = (run(&home, &call), run(&home, &call));
    assert_eq!((&first["exit_code"], &first["id"]), (&2.into(), &again["id"]));
    assert_eq!(std::fs::read_to_string(home.join("ran")).unwrap(), "x\n");
    assert_eq!(code_of(&home, &["--new", "--key", "k2", "--", "/no/such/program"]), "cannot_start");
}

#[test]
fn without_a_shell_that_tells_the_end_is_inferred() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "sh", "--env", "PS1=sh> ", "--", "/bin/sh"]);
    home.until_screen_shows("sh", "sh>");
    for how in ["quiet:300ms", "prompt:^sh> $"] {
        let answer = run(&home, &["sh", "--detect", how, "--", "echo hello"]);
        assert_eq!((&answer["end"], &answer["exit_code"]), (&"inferred".into(), &Value::Null), "{how} {answer}");
        assert!(answer["output"].as_str().unwrap().contains("\nhello\n"), "{answer}");
    }
    let fast = holds_within(Duration::from_secs(5), || code_of(&home, &["sh", "--", "true"]) == "shell_busy");
    assert!(fast, "without a way to notice its end nothing is typed");
}

#[test]
fn an_agent_does_not_run_in_a_humans_turn() {
    let home = with_shell("bash");
    home.ok(&["run", "bash", "--", "true"]);
    home.ok(&["take", "bash"]);
    home.run(&["actor", "new", "agent:bot"]);
    let ran = home.run_as("agent:bot", &["run", "bash", "--json", "--", "echo no"]);
    assert!(ran.err.contains("turn_held"), "{ran}");
    home.ok(&["release", "bash"]);
    assert_eq!(home.run_as("agent:bot", &["run", "bash", "--", "echo yes"]).out, "yes\n");
}

/// A file that holds up who reads it until somebody writes to it.
fn fifo(home: &Home, name: &str) -> PathBuf {
    let path = home.join(name);
    rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

#[test]
fn neither_the_echo_of_a_command_nor_half_an_end_is_ever_its_output() {
    // A command with a newline comes in a file, which the shell shows before it runs.
    for (echo, separator) in [("printf", "; "), ("holdfast/run", "\n")] {
        let home = with_shell("bash");
        let (start, end) = (fifo(&home, "start"), fifo(&home, "end"));
        // Held up between the echo and the shell's word that the command starts.
        home.ok(&["run", "bash", "--", "PS0='$(<start)'"]);
        let half =
            ["printf 'out\\e]133;D;0;hf=%s' \"${__holdfast[5]}\"", "read -r <end", "printf '\\a'"].join(separator);
        let ran = home.run(&["run", "bash", "--key", "k", "--timeout", "0", "--", &half]);
        assert_eq!(ran.status, 124, "{ran}");
        home.until_screen_shows("bash", echo);
        let starting = home.json(&["run", "status", "k"]);
        assert_eq!((&starting["state"], &starting["output"]), (&"starting".into(), &"".into()), "{starting}");
        assert_eq!(starting["from"], starting["to"], "{starting}");
        assert_eq!(home.ok(&["run", "output", "k"]), "");
        std::fs::write(&start, "").unwrap();
        // The shell has it open: it has printed half of what will tell the end.
        let held = std::fs::File::options().write(true).open(&end).unwrap();
        let printed = "out\x1b]133;D;0;hf=".len() as u64 + 32;
        until("all of it", || {
            let from = home.json(&["run", "status", "k"])["from"].as_u64().unwrap();
            home.json(&["info", "bash"])["head"].as_u64().unwrap() == from + printed
        });
        assert_eq!(home.ok(&["run", "output", "k"]), "out");
        drop(held);
        assert_eq!(home.run(&["run", "wait", "k"]).status, 0);
        assert_eq!(home.ok(&["run", "output", "k"]), "out");
    }
}

#[test]
fn the_echo_is_no_output_where_the_shell_never_tells_the_start() {
    let home = with_shell("bash");
    // It does not parse.
    let answer = run(&home, &["bash", "--", "echo )"]);
    assert_eq!(answer["end"], "not_started", "{answer}");
    let output = answer["output"].as_str().unwrap();
    assert!(output.contains("syntax error") && !output.contains("echo )\n"), "{output:?}");
    // Its prompts are not expanded, so that it tells the end alone.
    home.ok(&["run", "bash", "--", "shopt -u promptvars"]);
    let answer = run(&home, &["bash", "--", "echo once"]);
    assert_eq!((&answer["end"], &answer["output"]), (&"exact".into(), &"once\n".into()), "{answer}");
    assert_eq!(home.ok(&["run", "output", answer["id"].as_str().unwrap(), "--plain"]), "once\n");
}

#[test]
fn a_shell_that_reads_its_files_for_long_is_waited_for_unless_it_asks() {
    let home = Home::new();
    let go = fifo(&home, "go");
    std::fs::write(
        home.join(".bashrc"),
        "if [[ $ASKS ]]; then read -rp 'Update? ' _; else read -r <\"$HOME/go\"; fi\n",
    )
    .unwrap();
    home.ok(&["new", "-d", "-n", "slow", "--", "bash"]);
    home.ok(&["new", "-d", "-n", "asks", "--env", "ASKS=1", "--", "bash"]);
    let mut patient = home.command(&["run", "slow", "--", "echo hi"]);
    let patient = patient.stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| home.run(&["run", "asks", "--", "true"]));
        // The host itself waits for some time, and then says why.
        let busy = home.run(&["--json", "run", "slow", "--timeout", "0", "--", "true"]);
        assert!(busy.err.contains("\"shell_busy\"") && busy.err.contains("\"starting\":true"), "{busy}");
        let asks = asks.join().unwrap();
        assert!(asks.status != 0 && asks.err.contains("waits for input"), "{asks}");
    });
    std::fs::write(&go, "\n").unwrap();
    let patient = patient.wait_with_output().unwrap();
    assert_eq!((patient.status.code(), patient.stdout.as_slice()), (Some(0), &b"hi\n"[..]));
}
