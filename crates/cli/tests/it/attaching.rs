//! What is refused before a terminal is touched. Attaching itself needs a terminal and is tested through one elsewhere.

use holdfast_harness::{Home, Ran};

#[test]
fn without_a_terminal_a_bare_holdfast_starts_main_and_says_how_to_reach_it() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!("main_started", home.run(&[]));
    insta::assert_snapshot!("main_running", home.run(&[]));
    let view = home.json(&[]);
    assert_eq!((view["name"].as_str(), view["command"][0].as_str()), (Some("main"), Some("/bin/sh")));
    assert_eq!(home.json(&["ls"]).as_array().unwrap().len(), 1);
}

#[test]
fn attach_and_new_need_a_terminal_and_start_nothing_without_one() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!(home.run(&["attach", "main", "-c"]), @r"
    --- stderr
    holdfast: attach needs a terminal on standard input and output
    --- status 1
    ");
    insta::assert_snapshot!(home.run(&["new"]), @r"
    --- stderr
    holdfast: new needs a terminal on standard input and output
      `holdfast new -d` starts a session without attaching to it
    --- status 1
    ");
    assert_eq!(home.processes(), [0u32; 0]);
}

#[test]
fn inside_a_session_attaching_is_refused_with_the_reason() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    let inside = |args: &[&str]| -> Ran {
        let mut command = home.command(args);
        command.env("HOLDFAST_SESSION", "ses_00000000000000000000000007").env("HOLDFAST_SESSION_NAME", "work");
        command.output().unwrap().into()
    };
    insta::assert_snapshot!(inside(&["a", "other"]), @r"
    --- stderr
    holdfast: cannot attach: this terminal is inside session work
      detach first; or start a session without attaching: holdfast new -d
    --- status 1
    ");
    assert!(inside(&["new"]).err.contains("inside session work"));
    assert!(
        inside(&["attach", "other", "--nested"]).err.contains("needs a terminal"),
        "--nested goes past the refusal"
    );
    assert_eq!(inside(&["new", "-d", "-n", "other", "--", "cat"]).out, "other\n");
    assert_eq!(inside(&[]).status, 0, "without a terminal nothing is attached");
}
