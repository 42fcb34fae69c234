//! `env`: who changed what in a session's shell, in real shells, and never a value of it.

use holdfast_harness::{Home, TESTER, kill, until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
const BOT: &str = "agent:bot";

/// A home with a session of this shell, named after it, and a bot.
fn with_shell(shell: &str, more: &[&str]) -> Home {
    let home = Home::new();
    // zsh would ask a newcomer what it shall do.
    std::fs::write(home.join(".zshrc"), "PS1='z> '\n").unwrap();
    home.ok(&["actor", "new", BOT]);
    home.ok(&[&["new", "-d", "-n", shell, "--env", "GIVEN=1"], more, &["--", shell]].concat());
    home
}

/// Runs a command in the shell as an actor, and lets the next one have the turn.
fn run_as(home: &Home, who: &str, shell: &str, command: &str) {
    let ran = home.run_as(who, &["run", shell, "--", command]);
    assert_eq!(ran.status, 0, "{shell} {command:?}: {ran}");
    home.run_as(who, &["release", shell]);
}

/// What is not as it was: `kind name handle known`, a name that is gone with a `-` before it.
fn changed(home: &Home, shell: &str) -> Vec<String> {
    let answer = home.json(&["env", shell]);
    assert_eq!(answer["integration"], true, "{answer}");
    let line = |entry: &Value| {
        let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let gone = if entry["gone"] == true { "-" } else { "" };
        assert_eq!(entry["hash"].is_null(), entry["gone"] == true, "{entry}");
        let by = &entry["changed"];
        assert!(by["at_ms"].is_u64() && (by["run"].is_string() || by["known"] != "run"), "{entry}");
        let (who, known) = (word(&by["actor"]["handle"]), word(&by["known"]));
        format!("{} {gone}{} {who} {known}", word(&entry["category"]), word(&entry["name"]))
    };
    answer["entries"].as_array().unwrap().iter().map(line).collect()
}

#[track_caller]
fn until_changed(home: &Home, shell: &str, expected: &[&str]) {
    let mut last = Vec::new();
    let came = holdfast_harness::holds_within(holdfast_harness::PATIENCE, || {
        last = changed(home, shell);
        last == expected
    });
    assert!(came, "{shell}: {last:#?} is not {expected:#?}");
}

fn dir_of(home: &Home, session: &str) -> PathBuf {
    let id = home.json(&["info", session])["id"].as_str().unwrap().parse().unwrap();
    holdfast_types::Home::under(home.path()).session(id)
}

/// Files below a directory that have these bytes.
fn files_with(dir: &Path, needle: &str) -> Vec<PathBuf> {
    let has = |bytes: &[u8]| bytes.windows(needle.len()).any(|part| part == needle.as_bytes());
    let mut found = Vec::new();
    for path in std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if std::fs::read(&path).is_ok_and(|bytes| has(&bytes)) {
            found.push(path);
        }
    }
    found
}

#[test]
fn what_each_actor_changed_is_told_by_name_and_what_was_put_back_is_not() {
    for shell in SHELLS {
        let home = with_shell(shell, &[]);
        run_as(&home, BOT, shell, "true");
        until_changed(&home, shell, &[]);
        let (export, unset) = if shell == "fish" { ("set -gx ", "set -e ") } else { ("export ", "unset ") };
        let set = |name: &str, value: &str| {
            let between = if shell == "fish" { " " } else { "=" };
            format!("{export}{name}{between}{value}")
        };
        run_as(&home, BOT, shell, &set("PATH", "/evil:$PATH"));
        until_changed(&home, shell, &["variable PATH agent:bot run", "path /evil agent:bot run"]);
        run_as(&home, TESTER, shell, &format!("{}; cd /usr", set("MINE", "1")));
        run_as(&home, BOT, shell, "alias ls='echo pwned'");
        run_as(&home, TESTER, shell, &format!("{unset}GIVEN"));
        let alias = if shell == "fish" { "function ls agent:bot run" } else { "alias ls agent:bot run" };
        let mut expected = vec![
            "variable -GIVEN human:tester run",
            "variable MINE human:tester run",
            "variable PATH agent:bot run",
            alias,
            "cwd cwd human:tester run",
            "path /evil agent:bot run",
        ];
        until_changed(&home, shell, &expected);
        // Whoever puts it back: it is what it was.
        run_as(
            &home,
            TESTER,
            shell,
            &set("PATH", "/usr/local/bin:/usr/bin:/bin").replace(':', if shell == "fish" { " " } else { ":" }),
        );
        expected.retain(|line| !line.to_uppercase().contains("PATH"));
        until_changed(&home, shell, &expected);
        // Another host knows as much, and what is typed is the writer's.
        kill(home.host_pid());
        until_changed(&home, shell, &expected);
        home.ok(&["send", shell, "--enter", &set("MINE", "2")]);
        home.ok(&["send", shell, "--enter", "cd /"]);
        expected[1] = "variable MINE human:tester time";
        *expected.last_mut().unwrap() = "cwd cwd human:tester time";
        until_changed(&home, shell, &expected);
        home.ok(&["release", shell]);
        run_as(&home, BOT, shell, &set("MINE", "3"));
        expected[1] = "variable MINE agent:bot run";
        until_changed(&home, shell, &expected);

        let told = home.ok(&["env", shell]);
        let line = told.lines().find(|line| line.contains(" ls ")).unwrap();
        assert!(line.contains(BOT) && line.contains("run_"), "{told}");
        assert!(told.lines().any(|line| line.contains("GIVEN") && line.contains("gone")), "{told}");
        let all = home.ok(&["env", shell, "--all"]);
        assert!(all.lines().any(|line| line.contains(" PATH ") && line.contains("since start")), "{all}");
        assert!(!told.contains("PATH") && all.lines().count() > told.lines().count(), "{told}");
    }
}

#[test]
fn what_another_types_while_a_command_runs_is_not_its_change() {
    for shell in SHELLS {
        let home = with_shell(shell, &[]);
        run_as(&home, TESTER, shell, "true");
        let set = if shell == "fish" { "set -gx" } else { "export" };
        let (first, second) = if shell == "fish" { ("A 1", "B 1") } else { ("A=1", "B=1") };
        let wait = format!("echo be''gun; sh -c 'until test -e go; do sleep 0.01; done'; {set} {first}");
        let sent = home.run_as(BOT, &["send", shell, "--enter", &wait]);
        assert_eq!(sent.status, 0, "{sent}");
        home.until_screen_shows(shell, "begun");
        // The bot's command runs; a human goes before.
        home.ok(&["seize", shell, "--reason", "a test"]);
        home.ok(&["send", shell, "--enter", &format!("{set} {second}")]);
        std::fs::write(home.join("go"), "").unwrap();
        until_changed(&home, shell, &["variable A agent:bot time", "variable B human:tester time"]);
    }
}

#[test]
fn functions_and_options_are_told_as_the_journal_has_their_act() {
    let home = with_shell("bash", &[]);
    run_as(&home, TESTER, "bash", "f() { echo 1; }");
    run_as(&home, BOT, "bash", "shopt -s dotglob; f() { echo 2; }");
    until_changed(&home, "bash", &["function f agent:bot run", "option dotglob agent:bot run"]);
    let changed = home.json(&["env", "bash"])["entries"][0]["changed"].clone();
    let journal = home.ok(&["--json", "journal", "bash"]);
    let mut acts = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let act = acts.find(|act| act["seq"] == changed["act"]).unwrap_or_else(|| panic!("{changed} {journal}"));
    assert!(act.to_string().contains("dotglob"), "{act}");
    let runs = home.json(&["run", "ls"]);
    assert!(runs.as_array().unwrap().iter().any(|run| run["id"] == changed["run"]), "{runs}");
    // In a function of its own name a variable of the user's is told as it is.
    run_as(&home, BOT, "bash", "export token=1 state=2 was=3");
    run_as(&home, TESTER, "bash", "shopt -u dotglob; unset -f f; token=4");
    until_changed(
        &home,
        "bash",
        &["variable state agent:bot run", "variable token human:tester run", "variable was agent:bot run"],
    );
}

#[test]
fn a_value_is_in_no_file_of_the_session_and_in_no_answer() {
    for shell in SHELLS {
        let home = with_shell(shell, &["--env", "HANDED=swordfish-one"]);
        std::fs::write(home.join("secret"), "swordfish-two\n").unwrap();
        let export = if shell == "fish" { "set -gx KEPT (cat secret)" } else { "export KEPT=$(cat secret)" };
        run_as(&home, BOT, shell, export);
        until_changed(&home, shell, &["variable KEPT agent:bot run"]);
        let dir = dir_of(&home, shell);
        until("the files to be empty", || files_with(&dir, "swordfish").is_empty());
        let all = home.ok(&["--json", "env", shell, "--all"]);
        assert!(all.contains("HANDED") && !all.contains("swordfish"), "{shell}: {all}");
        // Nor when it ends before its prompt, whatever it has written.
        home.ok(&["send", shell, "--enter", "cat secret > $__holdfast/state.1; exit"]);
        until("the end", || home.json(&["info", shell])["life"] == "ended");
        until("the files to be empty", || files_with(&dir, "swordfish").is_empty());
        until_changed(&home, shell, &["variable KEPT agent:bot run"]);
    }
}

#[test]
fn a_state_that_a_killed_host_had_taken_is_read_by_the_next() {
    let home = with_shell("bash", &[]);
    run_as(&home, BOT, "bash", "true");
    run_as(&home, BOT, "bash", "export LATE=1; __holdfast_dump $SHELLOPTS > ~/saved; unset LATE");
    until_changed(&home, "bash", &[]);
    let taken = dir_of(&home, "bash").join("shell/state.0.taken");
    // One that stops has told all marks that are there: the next one looks for them all the same.
    home.ok(&["host", "stop"]);
    std::fs::rename(home.join("saved"), &taken).unwrap();
    until("it to be read", || home.json(&["ls"]).is_array() && !taken.exists());
    until_changed(&home, "bash", &["variable LATE agent:bot run"]);
}

#[test]
fn a_ledger_with_a_torn_end_goes_on_after_the_host_was_killed() {
    let home = with_shell("bash", &[]);
    run_as(&home, BOT, "bash", "export A=1");
    until_changed(&home, "bash", &["variable A agent:bot run"]);
    let file = dir_of(&home, "bash").join("shell.jsonl");
    kill(home.host_pid());
    let text = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&text, &b"{\"changed\":{\"by\":{\"known\":\"ru"[..]].concat()).unwrap();
    run_as(&home, TESTER, "bash", "export B=1");
    until_changed(&home, "bash", &["variable A agent:bot run", "variable B human:tester run"]);
    // While no host is there the shell goes on.
    home.ok(&["send", "bash", "--enter", "sleep 0.5; export C=1"]);
    kill(home.host_pid());
    until_changed(
        &home,
        "bash",
        &["variable A agent:bot run", "variable B human:tester run", "variable C human:tester time"],
    );
}

#[test]
fn a_huge_environment_is_told_as_far_as_names_are_kept() {
    let home = with_shell("bash", &[]);
    run_as(&home, BOT, "bash", "for i in {1..2000}; do export BIG_$i=$i; done");
    until("all of them", || home.json(&["env", "bash"])["entries"].as_array().unwrap().len() == 2000);
    run_as(&home, TESTER, "bash", "export BIG_7=x");
    let who = |name: &str| {
        let answer = home.json(&["env", "bash"]);
        let entry = answer["entries"].as_array().unwrap().iter().find(|entry| entry["name"] == name).cloned();
        entry.map_or(Value::Null, |entry| entry["changed"]["actor"]["handle"].clone())
    };
    until("the one that is another's", || who("BIG_7") == TESTER);
    assert_eq!(who("BIG_8"), BOT);
    run_as(&home, TESTER, "bash", "for i in {1..2000}; do unset BIG_$i; done");
    until_changed(&home, "bash", &[]);
    assert!(dir_of(&home, "bash").join("shell.jsonl").metadata().unwrap().len() < 512 * 1024, "the past goes");
}

#[test]
fn more_names_than_are_kept_are_said_to_be_and_blamed_on_nobody() {
    // bash takes seconds for so many.
    let home = with_shell("zsh", &[]);
    run_as(&home, BOT, "zsh", "for i in {1..17000}; do export BIG_$i=$i; done");
    until("the answer to say so", || home.json(&["env", "zsh"])["partial"] == true);
    assert!(home.ok(&["env", "zsh"]).ends_with("may be missing\n"));
    // What was not kept before may have been there before.
    run_as(&home, TESTER, "zsh", "unset -m 'BIG_*'; export AFTER=1");
    until("the answer to be whole", || home.json(&["env", "zsh"])["partial"] == false);
    let told = changed(&home, "zsh");
    assert!(told.iter().any(|line| line == "variable AFTER - unknown"), "{told:#?}");
    assert!(!told.iter().any(|line| line.contains("BIG") || line.contains(BOT)), "{told:#?}");
    run_as(&home, BOT, "zsh", "AFTER=2");
    until("the bot's", || changed(&home, "zsh").contains(&"variable AFTER agent:bot run".to_owned()));
}

#[test]
fn a_shell_that_does_not_tell_is_said_to_be_one_and_who_may_not_look_is_refused() {
    let home = with_shell("bash", &["--no-integration"]);
    let told = home.ok(&["env", "bash"]);
    assert!(told.contains("shell integration") && told.contains("holdfast new -- bash"), "{told}");
    let answer = home.json(&["env", "bash"]);
    assert_eq!((&answer["integration"], &answer["entries"]), (&json!(false), &json!([])), "{answer}");
    home.session("plain", "exec cat");
    assert!(home.ok(&["env", "plain"]).contains("does not report changes"));
    home.ok(&["revoke", "bash", "--to", BOT]);
    let refused = home.run_as(BOT, &["--json", "env", "bash"]);
    assert!(refused.status == 1 && refused.err.contains("\"code\":\"denied\""), "{refused}");
}
