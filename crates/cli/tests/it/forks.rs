//! Forks: branches of a session go on by themselves, with files and a network of their own, and the session with its. Needs root and CRIU,
//! as portable sessions do.

use crate::portable::{home, info, inits, killed_at, life, lose, shell, start, type_line};
use holdfast_harness::{Home, until};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The steps of a fork at which its host is killed.
const FORKING: [&str; 8] = [
    "fork.recorded",
    "checkpoint.dumped",
    "checkpoint.sealed",
    "fork.dumped",
    "fork.filled",
    "branch.recorded",
    "restore.started",
    "fork.begun",
];

/// Somewhere to work that is not Holdfast's own directory, which no branch has a copy of.
struct Work(tempfile::TempDir);

impl Work {
    fn new() -> Work {
        let work = Work(tempfile::tempdir().unwrap());
        for (name, text) in [("kept", "one\ntwo\n"), ("gone", "old\n"), ("untouched", "old\n")] {
            fs::write(work.file(name), text).unwrap();
        }
        work
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.file(name)).ok()
    }
}

/// Runs a line at a session's prompt.
fn run(home: &Home, name: &str, line: &str) -> String {
    let run = home.json(&["run", name, "--", line]);
    assert_eq!(run["exit_code"], 0, "{line} in {name}: {run}");
    run["output"].as_str().unwrap_or_default().to_owned()
}

fn at(home: &Home, name: &str, work: &Work) {
    shell(home, name);
    run(home, name, &format!("cd {}; V=forty-two", work.0.path().display()));
}

fn changes(home: &Home, words: &[&str], work: &Path) -> Vec<(String, String)> {
    let found = home.json(&[&["fork", "diff"], words].concat());
    let one = |change: &Value| {
        let path = change["path"].as_str().unwrap();
        let name = Path::new(path).strip_prefix(work).map(|name| name.display().to_string()).ok()?;
        Some((change["how"].as_str().unwrap().to_owned(), name))
    };
    found["changes"].as_array().unwrap().iter().filter_map(one).collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(how, name)| ((*how).to_owned(), (*name).to_owned())).collect()
}

#[test]
fn branches_have_the_memory_history_and_files_of_then_and_change_nothing_but_their_own() {
    let Some(home) = home() else { return };
    let work = Work::new();
    at(&home, "work", &work);
    run(&home, "work", "echo from-before-$((40+2))");
    home.ok(&["send", "work", "echo half-typed-"]);
    home.until_screen_shows("work", "echo half-typed-");
    let made = home.json(&["fork", "work", "--as-names", "left,right"]);
    assert_eq!(made["branches"].as_array().unwrap().len(), 2, "{made}");
    // The session goes on, half-typed line and all; and so does each branch.
    for name in ["work", "left", "right"] {
        assert_eq!((life(&home, name).as_str(), inits(&home, name)), ("running", 1), "{name}");
        type_line(&home, name, &format!("$V-in-{name}"));
        home.until_screen_shows(name, &format!("\nhalf-typed-forty-two-in-{name}"));
        assert!(home.ok(&["screen", name, "--history", "100"]).contains("from-before-42"), "{name}");
    }
    let ids: Vec<Value> = ["work", "left", "right"].iter().map(|name| info(&home, name)["id"].clone()).collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    let left = info(&home, "left");
    assert_eq!((&left["forked_from"]["session"], &left["incarnation"]), (&ids[0], &1.into()), "{left}");
    assert!(home.number("left", "oldest") > 0, "output is counted on from the session's");
    assert!(home.ok(&["info", "left"]).contains("forked from"));

    run(&home, "left", "echo 2 >> kept; rm gone; mkdir sub; echo new > sub/made");
    run(&home, "right", "echo right > kept");
    assert_eq!((work.text("kept").as_deref(), work.file("gone").exists()), (Some("one\ntwo\n"), true));
    assert_eq!(run(&home, "left", "cat kept; ls"), "one\ntwo\n2\nkept  sub  untouched\n");
    assert_eq!(run(&home, "right", "cat kept; cat gone"), "right\nold\n");
    let dir = fs::canonicalize(work.0.path()).unwrap();
    let expected = [("deleted", "gone"), ("changed", "kept"), ("created", "sub"), ("created", "sub/made")];
    assert_eq!(changes(&home, &["left"], &dir), pairs(&expected));
    let expected = [("created", "gone"), ("changed", "kept"), ("deleted", "sub"), ("deleted", "sub/made")];
    assert_eq!(changes(&home, &["left", "right"], &dir), pairs(&expected));
    let patch = home.ok(&["fork", "diff", "left", "--patch"]);
    assert!(patch.contains("\n two\n+2\n") && patch.contains("+++ /dev/null\n@@ -1 +0,0 @@\n-old"), "{patch}");
    assert!(home.fails(&["fork", "diff", "work"]).contains("is not a branch"));

    // One is kept: nothing while a file conflicts, and then what was chosen.
    fs::write(work.file("kept"), "mine\n").unwrap();
    let refused = home.run(&["fork", "keep", "left"]);
    assert!(
        refused.status == 1 && refused.out.contains("conflict") && refused.out.contains("--take PATH"),
        "{refused}"
    );
    assert!(work.file("gone").exists() && !work.file("sub").exists());
    let kept = work.file("kept").display().to_string();
    home.ok(&["fork", "keep", "left", "--take", &kept]);
    assert_eq!((work.text("kept").as_deref(), work.file("gone").exists()), (Some("one\ntwo\n2\n"), false));
    assert_eq!(work.text("sub/made").as_deref(), Some("new\n"));
    let copied = work.file("copied").display().to_string();
    home.ok(&["fork", "keep", "right", "--into", &copied]);
    assert_eq!(fs::read_to_string(format!("{copied}{kept}")).unwrap(), "right\n");

    // The other is thrown away, with its processes and files.
    let thrown = home.session_dir("right");
    home.ok(&["fork", "discard", "right"]);
    assert!(!thrown.join("files").exists() && !thrown.join("checkpoints").exists());
    assert_eq!(info(&home, ids[2].as_str().unwrap())["life"], "ended");
    for name in ["work", "left"] {
        home.ok(&["journal", name, "--verify"]);
    }
    let journal = home.ok(&["journal", "work"]);
    assert!(journal.contains("forked the session: 2 branches (left, right)"), "{journal}");
    assert_eq!(run(&home, "work", "echo $V"), "forty-two\n");
}

#[test]
fn a_branch_has_a_network_of_its_own_and_outside_connections_are_cut_and_named() {
    let Some(home) = home() else { return };
    let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let serves = format!(
        "import socket,time\n\
         c=socket.create_connection(('127.0.0.1',{port}))\n\
         s=socket.create_server(('127.0.0.1',0)); print('serves',s.getsockname()[1],flush=True)\n\
         while True:\n\
        \x20   k,_=s.accept(); n=open('/proc/sys/kernel/ns_last_pid').read(); k.sendall(b'hello\\n'); k.close()\n"
    );
    start(&home, "server", &["python3", "-c", &serves]);
    let _kept = outside.accept().unwrap();
    home.until_screen_shows("server", "serves");
    let screen = home.ok(&["screen", "server"]);
    let own: u16 = screen.split_whitespace().skip_while(|word| *word != "serves").nth(1).unwrap().parse().unwrap();
    let made = home.json(&["fork", "server", "-n", "1"]);
    let named = format!("127.0.0.1:{port}");
    assert!(made["cut"].to_string().contains(&named), "{made}");
    assert!(info(&home, "server-1")["forked_from"]["cut"].to_string().contains(&named));
    assert!(home.ok(&["journal", "server-1"]).contains(&named));
    // Both serve on the same port, each in its own network.
    let pid = home.number("server-1", "pid");
    let asked = |inside: bool| {
        let script = format!("import socket;print(socket.create_connection(('127.0.0.1',{own}),5).recv(9))");
        let mut command = std::process::Command::new(if inside { "nsenter" } else { "python3" });
        if inside {
            command.args(["-n", "-t", &pid.to_string(), "python3"]);
        }
        String::from_utf8(command.args(["-c", &script]).output().unwrap().stdout).unwrap()
    };
    assert!(asked(false).contains("hello"));
    assert!(asked(true).contains("hello"));
    let network = |pid: u64| fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    assert_ne!(network(pid), network(home.number("server", "pid")));
    // With the machine's network the port is taken, and nothing half-made is left.
    let refused = home.fails(&["fork", "server", "-n", "1", "--share-network"]);
    assert!(refused.contains("cannot be restored"), "{refused}");
    assert_eq!(home.json(&["ls", "--all"]).as_array().unwrap().len(), 2);
    assert_eq!(fs::read_dir(home.join("sessions")).unwrap().count(), 2);
    assert_eq!(life(&home, "server"), "running");
}

#[test]
fn a_branch_begins_with_a_record_of_its_parent_and_gives_nobody_more_than_that_did() {
    let Some(home) = home() else { return };
    shell(&home, "work");
    home.ok(&["actor", "new", "agent:bot"]);
    home.ok(&["actor", "new", "agent:other"]);
    home.ok(&["grant", "work", "--to", "agent:bot", "--can", "observe,fork"]);
    home.ok(&["revoke", "work", "--to", "agent:other"]);
    let refused = home.run_as("agent:other", &["fork", "work"]);
    assert!(refused.status != 0, "{refused}");
    home.ok(&["take", "work"]);
    let made = home.run_as("agent:bot", &["--json", "fork", "work", "-n", "1", "--as-names", "copy"]);
    assert_eq!(made.status, 0, "{made}");
    let lines = home.ok(&["--json", "journal", "copy"]);
    let lines: Vec<Value> = match serde_json::from_str(&lines) {
        Ok(Value::Array(all)) => all,
        _ => lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
    };
    let forked = lines.iter().find_map(|line| line["act"].get("forked")).unwrap();
    let parent = info(&home, "work");
    assert_eq!(forked["parent"], parent["id"], "{forked}");
    let journal = fs::read_dir(home.session_dir("work")).unwrap().flatten();
    let journal = journal.filter(|entry| entry.file_name().to_string_lossy().starts_with("journal."));
    let text: String = journal.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect();
    let named = text.lines().find(|line| line.contains(forked["record"]["hash"].as_str().unwrap())).unwrap();
    assert!(
        named.contains("session.fork") && named.contains(&format!("\"seq\":{}", forked["record"]["seq"])),
        "{named}"
    );
    // What was granted there counts here; what was revoked there is revoked here; the turn is free.
    assert!(home.run_as("agent:bot", &["fork", "diff", "copy"]).status == 0);
    for words in [&["send", "copy", "x"][..], &["end", "copy"], &["fork", "keep", "copy"], &["fork", "discard", "copy"]]
    {
        let refused = home.run_as("agent:other", words);
        assert!(refused.status != 0, "{words:?}: {refused}");
    }
    let refused = home.run_as("agent:bot", &["fork", "discard", "copy"]);
    assert!(refused.err.contains("may not"), "{refused}");
    let refused = home.run_as("agent:bot", &["fork", "keep", "copy"]);
    assert!(refused.status != 0 && refused.err.contains("only a human"), "{refused}");
    assert_eq!(home.json(&["turn", "copy"])["holder"], Value::Null);
    assert_ne!(home.json(&["turn", "work"])["holder"], Value::Null);
    // Who may only observe sees which files differ, and not what is in them.
    home.ok(&["actor", "new", "agent:eye"]);
    home.ok(&["revoke", "copy", "--to", "agent:eye"]);
    home.ok(&["grant", "copy", "--to", "agent:eye", "--can", "observe"]);
    assert_eq!(home.run_as("agent:eye", &["fork", "diff", "copy"]).status, 0);
    assert!(home.run_as("agent:eye", &["fork", "diff", "copy", "--patch"]).err.contains("may not"));
}

#[test]
fn each_life_tells_its_processes_its_own_fence_and_runs_their_command_for_it() {
    let Some(home) = home() else { return };
    let work = Work::new();
    let told = work.file("told").display().to_string();
    let hook = format!("echo $HOLDFAST_RESUMED $HOLDFAST_INCARNATION $(pwd) $$ >> {told}");
    let cwd = work.0.path().display().to_string();
    let shell = ["--", "/bin/bash", "--norc", "--noprofile"];
    let new = ["new", "-d", "-n", "work", "--portable", "--on-resume", &hook, "--cwd", &cwd];
    home.ok(&[&new[..], &shell].concat());
    let life_of = |name: &str| -> Value {
        let text = run(&home, name, "cat $HOLDFAST_LIFE");
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    };
    let first = life_of("work");
    assert_eq!((&first["began"], &first["incarnation"]), (&json!("started"), &json!(1)));
    assert_eq!(first["session"], info(&home, "work")["id"]);
    let prefix = first["key_prefix"].clone();
    home.ok(&["checkpoint", "work"]);
    home.ok(&["restore", "work"]);
    let second = life_of("work");
    assert_eq!((&second["began"], &second["incarnation"]), (&json!("restored"), &json!(2)));
    assert!(second["fence"].as_u64() > first["fence"].as_u64(), "{second}");
    assert_ne!(second["key_prefix"], prefix);
    until("its command ran", || work.text("told").filter(|text| text.starts_with(&format!("restore 2 {cwd} "))));
    home.ok(&["fork", "work", "-n", "1"]);
    let branch = life_of("work-1");
    assert_eq!((&branch["began"], &branch["incarnation"]), (&json!("forked"), &json!(1)));
    assert_eq!(branch["session"], info(&home, "work-1")["id"]);
    assert_eq!(branch["forked_from"]["session"], info(&home, "work")["id"]);
    assert_eq!(life_of("work"), second);
    // The branch's command wrote to the branch's file.
    until("its command ran", || run(&home, "work-1", "cat told").contains("\nfork 1 ").then_some(()));
    assert!(!work.text("told").unwrap().contains("fork"));
    let journal = home.ok(&["journal", "work"]);
    assert!(journal.contains("the processes came from ckp_") && journal.contains("; runs echo"), "{journal}");
    // A program in a branch that names no session means its own.
    home.ok(&["actor", "new", "agent:bot"]);
    home.fails(&["new", "-d", "--on-resume", "true"]);
    let refused = home.run_as("agent:bot", &["new", "-d", "--portable", "--on-resume", "true"]);
    assert!(refused.err.contains("only a human"), "{refused}");
}

#[test]
fn a_branch_can_be_checkpointed_restored_and_forked_again_and_its_files_stay_its_own() {
    let Some(home) = home() else { return };
    let work = Work::new();
    at(&home, "work", &work);
    home.ok(&["fork", "work", "-n", "1", "--as-names", "first"]);
    run(&home, "first", "W=7; echo first > kept; rm gone");
    home.ok(&["checkpoint", "first"]);
    home.ok(&["restore", "first"]);
    assert_eq!(run(&home, "first", "echo $V $W; cat kept"), "forty-two 7\nfirst\n");
    home.ok(&["fork", "first", "-n", "1", "--as-names", "second"]);
    run(&home, "first", "echo later > untouched");
    run(&home, "second", "echo second >> kept");
    assert_eq!(
        run(&home, "second", "echo $V $W; cat kept untouched; ls"),
        "forty-two 7\nfirst\nsecond\nold\nkept  untouched\n"
    );
    assert_eq!(run(&home, "first", "cat kept"), "first\n");
    assert_eq!(info(&home, "second")["forked_from"]["session"], info(&home, "first")["id"]);
    let dir = fs::canonicalize(work.0.path()).unwrap();
    assert_eq!(changes(&home, &["second"], &dir), pairs(&[("deleted", "gone"), ("changed", "kept")]));
    // A branch that lost its processes and gets a shell in their place keeps its files.
    lose(&home, "second");
    home.ok(&["recover", "second"]);
    assert_eq!(run(&home, "second", &format!("cd {}; cat kept", work.0.path().display())), "first\nsecond\n");
    assert_eq!(work.text("kept").as_deref(), Some("one\ntwo\n"));
    lose(&home, "first");
    home.ok(&["restore", "first"]);
    assert_eq!(run(&home, "first", "cat untouched"), "later\n");
}

#[test]
fn a_host_that_is_killed_at_any_step_of_a_fork_leaves_whole_branches_or_none() {
    let Some(home) = home() else { return };
    shell(&home, "work");
    run(&home, "work", "V=1");
    for step in FORKING {
        killed_at(&home, step, &["fork", "work", "--as-names", "a,b"]);
        // Its client asks the next host again, which may do it.
        until("a host", || (life(&home, "work") == "running").then_some(()));
        until("nothing half-made is left", || {
            let known = home.json(&["ls", "--all"]);
            let known: Vec<String> =
                known.as_array()?.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
            let dirs = fs::read_dir(home.join("sessions")).ok()?.flatten();
            let dirs: Vec<String> = dirs.map(|entry| entry.file_name().into_string().unwrap()).collect();
            let partial = fs::read_dir(home.session_dir("work").join("checkpoints")).into_iter().flatten().flatten();
            let is_clean = partial.count() == 0;
            (is_clean && dirs.iter().all(|dir| known.contains(dir))).then_some(())
        });
        assert_eq!((run(&home, "work", "echo $V"), inits(&home, "work")), ("1\n".into(), 1), "{step}");
        for branch in ["a", "b"] {
            let listed = home.json(&["ls"]);
            if listed.as_array().unwrap().iter().any(|one| one["name"] == branch) {
                assert_eq!((run(&home, branch, "echo $V"), inits(&home, branch)), ("1\n".into(), 1), "{step}");
                home.ok(&["journal", branch, "--verify"]);
                home.ok(&["fork", "discard", branch]);
            }
        }
        home.ok(&["fork", "work", "-n", "1", "--as-names", "a"]);
        home.ok(&["fork", "discard", "a"]);
        home.ok(&["journal", "work", "--verify"]);
    }
}
