//! Who shaped what an actor runs: each channel by which one actor can have a say in what another one runs, with what is recorded of it,
//! what the policy makes of it, and what whoever takes over is told.

use holdfast_harness::{DETACH, Home, Terminal, until};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

const A: &str = "agent:a";
const B: &str = "agent:b";

/// A session `s` in a project of its own, under a policy, with two agents.
fn with(policy: &str, shell: &[&str]) -> Home {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), format!("policy = \"{policy}\"\n")).unwrap();
    for actor in [A, B] {
        home.ok(&["actor", "new", actor]);
    }
    let project = home.join("project");
    std::fs::create_dir(&project).unwrap();
    let cwd = project.to_str().unwrap();
    home.ok(&[&["new", "-d", "-n", "s", "--cwd", cwd, "--"], shell].concat());
    home
}

fn runs(home: &Home, actor: &str, command: &str) {
    let ran = home.run(&["--as", actor, "run", "s", "--", command]);
    assert!(ran.status != 3 && !ran.err.contains("approval"), "{actor}: {command}: {}", ran.err);
    home.ok(&["--as", actor, "release", "s"]);
}

/// Who shaped a record: `alias ls by agent:a`.
fn shaped(record: &Value) -> Vec<String> {
    let one = |shaper: &Value| {
        let word = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
        let name = word(&shaper["name"]);
        let name = name.rsplit("/project/").next().unwrap_or_default();
        format!("{} {name} by {}", word(&shaper["by"]), word(&shaper["actor"]["handle"]))
    };
    record["gate"]["shaped"].as_array().into_iter().flatten().map(one).collect()
}

/// The session's records.
fn records(home: &Home) -> Vec<Value> {
    let journal = home.ok(&["journal", "s", "--json"]);
    journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Who shaped the last run of an actor.
fn last_run(home: &Home, actor: &str) -> Vec<String> {
    let is_run = |record: &&Value| {
        record["by"].to_string().contains(&format!("\"{actor}\"")) && record["act"]["asked"].get("run").is_some()
    };
    shaped(records(home).iter().rfind(is_run).expect("it ran something"))
}

/// What A does, what B runs, what is on record of it, and what A does to undo it.
type Case = (&'static str, &'static str, &'static str, &'static str);

fn each_channel(home: &Home, cases: &[Case]) {
    for (does, runs_then, expected, undoes) in cases {
        runs(home, A, does);
        runs(home, B, runs_then);
        let found = last_run(home, B);
        assert!(found.iter().any(|one| one == &format!("{expected} by {A}")), "{does}: {runs_then}: {found:?}");
        runs(home, A, undoes);
        runs(home, B, runs_then);
        assert_eq!(last_run(home, B), [""; 0], "{undoes}: what is as it was is nobody's");
    }
}

#[test]
fn each_channel_of_bash_is_bound_to_who_set_it_and_cleared_by_who_puts_it_back() {
    let home = with("solo", &["bash", "--norc"]);
    std::fs::create_dir(home.join("project/evil")).unwrap();
    let evil = home.join("project/evil/date");
    std::fs::write(&evil, "#!/bin/sh\necho evil\n").unwrap();
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    runs(&home, A, "OLD=$PATH; touch evil/date");
    each_channel(
        &home,
        &[
            ("alias ls='echo pwned'", "ls", "alias ls", "unalias ls"),
            ("git() { echo fake; }", "git status", "function git", "unset -f git"),
            ("PATH=$PWD/evil:$PATH", "date", "path evil", "PATH=$OLD"),
            ("export LD_PRELOAD=", "true", "variable LD_PRELOAD", "unset LD_PRELOAD"),
            ("export GIT_SSH_COMMAND=x", "git --version", "variable GIT_SSH_COMMAND", "unset GIT_SSH_COMMAND"),
            ("export BASH_ENV=/dev/null", "bash -c true", "variable BASH_ENV", "unset BASH_ENV"),
            ("export DIR=/x", "echo \"$DIR\"", "variable DIR", "unset DIR"),
            ("trap 'X=1' DEBUG", "true", "trap DEBUG", "trap - DEBUG"),
            ("trap 'X=1' ERR", "true", "trap ERR", "trap - ERR"),
            ("PROMPT_COMMAND='X=1'", "true", "variable PROMPT_COMMAND", "unset PROMPT_COMMAND[0]"),
            ("PS1='$(true)> '", "true", "variable PS1", "PS1='> '"),
            ("hash -p /tmp/none/tac tac", "tac /dev/null", "hash tac", "hash -d tac"),
            ("bind -x '\"\\C-xq\": true'", "true", "binding \\C-xq", "bind -r '\\C-xq'"),
            ("bind '\"\\C-xz\": \"x\"'", "true", "binding \\C-xz", "bind -r '\\C-xz'"),
            ("enable -n printf", "printf x", "builtin printf", "enable printf"),
            ("umask 077", "true", "setting umask", "umask 022"),
            ("IFS=/", "true", "variable IFS", "IFS=$' \\t\\n'"),
        ],
    );
    // Who runs what it set itself is nobody's deputy, and a path of its own passes an alias.
    runs(&home, A, "alias tac=true");
    runs(&home, A, "tac");
    assert_eq!(last_run(&home, A), [""; 0]);
    runs(&home, B, "/usr/bin/tac /dev/null");
    assert_eq!(last_run(&home, B), [""; 0]);
    runs(&home, B, "tac");
    let told = home.ok(&["journal", "s"]);
    assert!(told.contains(&format!("· shaped by {A} (alias tac, act ")), "{told}");
}

#[test]
fn each_channel_of_zsh_and_fish_is_bound_to_who_set_it() {
    let zsh = with("solo", &["zsh", "-f"]);
    each_channel(
        &zsh,
        &[
            ("alias ls='echo pwned'", "ls", "alias ls", "unalias ls"),
            ("git() { echo fake; }", "git status", "function git", "unfunction git"),
            ("trap 'X=1' DEBUG", "true", "trap DEBUG", "trap - DEBUG"),
            ("export GIT_PAGER=x", "git --version", "variable GIT_PAGER", "unset GIT_PAGER"),
            ("umask 077", "true", "setting umask", "umask 022"),
            ("precmd_functions+=(true)", "true", "variable precmd_functions", "shift -p precmd_functions"),
        ],
    );
    let fish = with("solo", &["fish", "--no-config"]);
    each_channel(
        &fish,
        &[
            ("function git; echo fake; end", "git status", "function git", "functions -e git"),
            ("set -gx GIT_PAGER x", "git --version", "variable GIT_PAGER", "set -e GIT_PAGER"),
            ("umask 077", "true", "setting umask", "umask 022"),
        ],
    );
}

#[test]
fn files_that_a_line_executes_are_bound_to_who_wrote_them() {
    let home = with("solo", &["bash", "--norc"]);
    runs(&home, A, "git init -q . && git config user.email a@b && git config user.name a");
    for (does, runs_then, expected) in [
        ("printf 'echo x\\n' > x.sh; chmod +x x.sh", "./x.sh", "file x.sh"),
        ("printf 'echo x\\n' > lib.sh", "sh lib.sh", "file lib.sh"),
        ("printf 'all:\\n\\techo x\\n' > Makefile", "make", "file Makefile"),
        ("printf 'X = 1\\n' > helper.py; printf 'import helper\\n' > main.py", "python3 main.py", "file helper.py"),
        (
            "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
            "git commit -q --allow-empty -m x",
            "file .git/hooks/pre-commit",
        ),
    ] {
        runs(&home, A, does);
        runs(&home, B, runs_then);
        let found = last_run(&home, B);
        assert!(found.iter().any(|one| one.ends_with(&format!("{expected} by {A}"))), "{does}: {runs_then}: {found:?}");
    }
    // The name is another, the file is not; what B writes itself is B's; the next host knows it too.
    runs(&home, B, "mv x.sh y.sh");
    home.kill_host();
    runs(&home, B, "./y.sh");
    assert!(last_run(&home, B).iter().any(|one| one == &format!("file y.sh by {A}")), "{:?}", last_run(&home, B));
    runs(&home, B, "printf 'echo y\\n' > y.sh");
    runs(&home, B, "./y.sh");
    assert_eq!(last_run(&home, B), [""; 0]);
}

#[test]
fn careful_asks_an_agent_once_for_a_handover_and_never_a_human() {
    let home = with("careful", &["bash", "--norc"]);
    home.ok(&["run", "s", "--", "alias ls='echo pwned'; greet() { echo hi; }"]);
    home.ok(&["release", "s"]);
    let asked = |command: &str| {
        let ran = home.run(&["--as", B, "--json", "run", "s", "--", command]);
        serde_json::from_str::<Value>(&ran.out).or_else(|_| serde_json::from_str(&ran.err)).unwrap_or_default()
    };
    let held = asked("ls");
    assert_eq!(held["error"]["details"]["rule"], "careful.shaped", "{held}");
    let approvals = home.json(&["approvals", "ls"]);
    let id = approvals[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(approvals[0]["shapers"][0]["name"], "ls", "{approvals}");
    assert!(home.ok(&["approvals", "show", &id]).contains("shaped by  human:"), "the approval says who");
    home.ok(&["approvals", "approve", &id]);
    until("it to be done", || (home.json(&["approvals", "ls", "--all"])[0]["state"] == "done").then_some(()));
    let is_b = |record: &Value| record["by"].to_string().contains(B) && record["act"]["asked"].get("run").is_some();
    until("the run to be over", || records(&home).iter().any(is_b).then_some(()));
    until("the next to be free", || asked("greet")["error"].is_null().then_some(()));
    let last = records(&home).into_iter().rfind(is_b).unwrap();
    assert!(shaped(&last)[0].starts_with("function greet by human:"), "{last}");
    home.ok(&["--as", B, "release", "s"]);
    // What changes later is another hand-over.
    home.ok(&["run", "s", "--", "alias ls='echo again'"]);
    home.ok(&["release", "s"]);
    assert_eq!(asked("ls")["error"]["details"]["rule"], "careful.shaped");
    // A human is told, and not asked.
    home.ok(&["--as", A, "run", "s", "--", "true"]);
    home.ok(&["--as", A, "release", "s"]);
    assert_eq!(home.run(&["run", "s", "--", "ls"]).status, 0);
}

#[test]
fn whoever_takes_over_sees_what_others_changed_and_what_goes_on() {
    let home = with("solo", &["bash", "--norc"]);
    home.ok(&["run", "s", "--", "PS1='> '"]);
    home.ok(&["release", "s"]);
    runs(&home, A, "alias ls='echo pwned'; printf 'echo x\\n' > x.sh; cd /tmp; cd - >/dev/null; sleep 1000 &");
    home.ok(&["--as", A, "send", "s", "rm -rf "]);
    home.ok(&["--as", A, "release", "s"]);
    let answer = home.json(&["handover", "s"]);
    let has = |by: &str, name: &str| {
        answer["changed"].as_array().unwrap().iter().any(|change| {
            change["by"] == by && change["name"].as_str().unwrap().contains(name) && change["actor"]["handle"] == A
        })
    };
    for (by, name) in [("alias", "ls"), ("file", "x.sh"), ("job", "sleep 1000"), ("line", "text at the prompt")] {
        assert!(has(by, name), "{by} {name}: {answer}");
    }
    let diff = home.ok(&["handover", "s", "--diff"]);
    assert!(diff.contains("+ alias ls  (agent:a, act "), "{diff}");
    // Over the turn's answer, and in a terminal that is attached.
    let taken = home.ok(&["--as", B, "take", "s"]);
    assert!(taken.contains("changed by agent:a: ") && taken.contains("1 job"), "{taken}");
    home.ok(&["--as", B, "send", "s", "--key", "C-c"]);
    home.ok(&["--as", B, "release", "s"]);
    let (terminal, mut client) = Terminal::attached(&home, "s", "120x24");
    terminal.types("\r");
    terminal
        .wait_for("what changed", |seen| seen.screen.rows_text().iter().any(|row| row.contains("changed by agent:a:")));
    // A line that a person types is told of too, and nobody stops them.
    terminal.types("ls; echo en''tered\r");
    terminal.wait_text("entered");
    until("the line to be on record", || {
        let is_line = |record: &&Value| record["act"]["asked"]["operation"]["name"] == "session.line";
        records(&home).iter().find(is_line).map(shaped).filter(|found| found.contains(&format!("alias ls by {A}")))
    });
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    home.ok(&["end", "s"]);
}

#[test]
fn an_agent_that_ends_another_ones_line_is_told_apart_from_one_that_typed_it_all() {
    let home = with("careful", &["bash", "--norc"]);
    home.ok(&["--as", A, "send", "s", "echo "]);
    home.ok(&["--as", A, "release", "s"]);
    let refused = home.run(&["--as", B, "send", "s", "--enter", "x"]);
    assert!(refused.status != 0 && refused.err.contains("another actor shaped"), "{}", refused.err);
    let refusal = records(&home).into_iter().rfind(|record| record["outcome"].to_string().contains("careful.shaped"));
    assert!(refusal.is_some());
    home.ok(&["--as", B, "send", "s", "--key", "C-c"]);
    until("an own line", || (home.run(&["--as", B, "send", "s", "--enter", "echo mine"]).status == 0).then_some(()));
}
