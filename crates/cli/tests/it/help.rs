//! Help, versions and usage errors.

use holdfast_harness::{Home, TESTER};

#[test]
fn every_command_explains_itself() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    let top = home.ok(&["-h"]);
    insta::assert_snapshot!("help", top);
    insta::assert_snapshot!("help_long", home.ok(&["help"]));
    for command in [
        "new",
        "attach",
        "ls",
        "info",
        "graph",
        "ps",
        "ports",
        "screen",
        "logs",
        "journal",
        "export",
        "send",
        "run",
        "state",
        "env",
        "watch",
        "wait",
        "ask",
        "questions",
        "answer",
        "resize",
        "rename",
        "keep",
        "detach",
        "recover",
        "checkpoint",
        "checkpoints",
        "restore",
        "signal",
        "end",
        "turn",
        "take",
        "request",
        "withdraw",
        "give",
        "release",
        "seize",
        "thaw",
        "grant",
        "revoke",
        "grants",
        "whoami",
        "actor",
        "token",
        "web",
        "bot",
        "host",
        "upgrade",
        "doctor",
        "completions",
        "man",
        "mcp",
        "skill",
        "relay",
        "invite",
        "invites",
        "accept",
        "devices",
    ] {
        assert!(top.contains(&format!("\n  {command} ")), "{command} is in the list");
        insta::assert_snapshot!(format!("help_{command}"), home.ok(&[command, "--help"]));
    }
    for command in ["run", "start", "stop", "restart", "status", "metrics", "install-unit"] {
        insta::assert_snapshot!(format!("help_host_{command}"), home.ok(&["host", command, "--help"]));
    }
    for command in ["new", "ls", "revoke"] {
        insta::assert_snapshot!(format!("help_token_{command}"), home.ok(&["token", command, "--help"]));
    }
    insta::assert_snapshot!("help_mcp_install", home.ok(&["mcp", "install", "--help"]));
    for command in ["new", "ls", "remove"] {
        insta::assert_snapshot!(format!("help_actor_{command}"), home.ok(&["actor", command, "--help"]));
    }
}

#[test]
fn a_hand_over_explains_itself() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!("help_handover", home.ok(&["handover", "--help"]));
}

#[test]
fn the_version_is_the_packages() {
    let home = Home::new();
    assert_eq!(home.ok(&["-V"]), concat!("holdfast ", env!("CARGO_PKG_VERSION"), "\n"));
    assert_eq!(home.ok(&["--version"]), home.ok(&["-V"]));
}

#[test]
fn a_wrong_call_is_told_with_status_2_and_starts_nothing() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    let calls: &[&[&str]] = &[
        &["attahc"],
        &["new", "a/b"],
        &["resize", "x", "99999x3"],
        &["new", "-n", "a b"],
        &["new", "-n", "ses_x"],
        &["new", "-d", "--env", "NOVALUE"],
        &["new", "-d", "--size", "80"],
        &["new", "-d", "--ring", "1k"],
        &["new", "-d", "--ring", "lots"],
        &["send", "x"],
        &["send", "x", "--key", "Hyper-x"],
        &["send", "x", "--stdin", "text"],
        &["wait", "x", "--timeout", "soon"],
        &["resize", "x", "0x0"],
        &["rename", "x", "a/b"],
        &["detach", "x", "--all", "--client", "1"],
        &["end"],
        &["end", "x", "--all"],
        &["host"],
        &["--as", "ann", "ls"],
        &["actor"],
        &["actor", "new", "robot:x"],
        &["actor", "new", "human:Ann"],
        &["give", "x"],
        &["seize", "x"],
        &["request", "x", "--wait", "soon"],
        &["signal", "x", "FOO"],
        &["signal", "x", "INT", "--tree", "--command"],
        &["grant", "x", "--to", "agent:a"],
        &["grant", "x", "--to", "agent:a", "--can", "observe,fly"],
        &["grant", "x", "--to", "agent:a", "--can", "run", "--for", "a while"],
        &["grant", "x", "--to", "agent:a", "--can", "run", "--until", "tonight"],
        &["grant", "x", "--to", "agent:a", "--can", "run", "--for", "1h", "--until", "17:30"],
        &["revoke", "x"],
        &["revoke", "x", "1", "--to", "agent:a"],
        &["graph"],
        &["graph", "x", "--svg", "f", "--watch"],
        &["graph", "x", "--diff", "a", "b"],
        &["graph", "--diff", "a"],
        &["completions", "tcsh"],
        &["--json", "ls", "--al"],
    ];
    let mut told = String::new();
    for call in calls {
        let ran = home.run(call);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{call:?}");
        told.push_str(&format!("$ holdfast {}\n{}", call.join(" "), ran.err));
    }
    insta::assert_snapshot!(told);
    assert_eq!(home.processes(), [0u32; 0], "no host was started");
}

#[test]
fn completions_and_the_manual_page_are_printed_for_every_shell() {
    let home = Home::new();
    for (shell, names) in
        [("bash", "complete -F _holdfast_named"), ("zsh", ":_holdfast_names"), ("fish", "(holdfast __names")]
    {
        let text = home.ok(&["completions", shell]);
        assert!(text.contains(names), "{shell} completes names of sessions");
        assert!(text.contains("holdfast __actors"), "{shell} completes handles of actors");
        assert!(!text.contains("spawn"), "{shell} does not offer what is not for people");
    }
    let page = home.ok(&["man"]);
    for part in
        [".TH holdfast 1", ".SH COMMANDS", ".SS \"holdfast new\"", ".SS \"holdfast host run\"", ".SH EXIT STATUS"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("__names"), "{page}");
}

#[test]
fn bash_completes_commands_and_names_of_sessions() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "work", "--", "cat"]);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_holdfast"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let complete = |words: &str| {
        let script = format!(
            "source <(holdfast completions bash); COMP_WORDS=({words} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); \
             _holdfast_named holdfast '' ''; echo ${{COMPREPLY[@]}}"
        );
        let mut bash = std::process::Command::new("bash");
        bash.args(["--norc", "-c", &script]).env("HOLDFAST_HOME", home.path()).env("PATH", &path);
        bash.env("HOLDFAST_ACTOR", TESTER);
        String::from_utf8(bash.output().unwrap().stdout).unwrap()
    };
    assert_eq!(complete("holdfast attach"), "work\n");
    home.ok(&["actor", "new", "agent:claude"]);
    assert_eq!(complete("holdfast give work --to"), "human:tester agent:claude\n");
    assert_eq!(complete("holdfast give work --to agent :"), "claude\n", "bash splits words at colons");
    assert_eq!(complete("holdfast seize"), "work\n");
    assert_eq!(complete("holdfast run"), "ls status wait output cancel work\n");
    assert_eq!(complete("holdfast wait work --for"), "exit idle waiting text: port: quiet:\n");
    assert!(complete("holdfast grant work --can").starts_with("observe type run"));
    assert!(complete("holdfast").contains(" attach "), "{}", complete("holdfast"));
    assert!(complete("holdfast host").contains(" restart "), "{}", complete("holdfast host"));
}
