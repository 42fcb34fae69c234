//! A run is entered where the shell's line is empty, whatever was typed before: the shell itself says so.

use holdfast_harness::{Home, until};
use serde_json::Value;

/// A home with a session of each shell, named after it.
fn with_shells() -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.join(".config/fish")).unwrap();
    std::fs::write(home.join(".bashrc"), "PS1='two lines\\nb> '\n").unwrap();
    std::fs::write(home.join(".zshrc"), "PS1='z> '; RPROMPT='right'\n").unwrap();
    std::fs::write(home.join(".config/fish/config.fish"), "function fish_prompt; echo 'f> '; end\n").unwrap();
    for shell in SHELLS {
        home.ok(&["new", "-d", "-n", shell, "--", shell]);
    }
    home
}

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

fn error_of(home: &Home, args: &[&str]) -> Value {
    let ran = home.run(&[&["run", "--json"], args].concat());
    serde_json::from_str::<Value>(&ran.err).unwrap_or_else(|_| panic!("{args:?}: {ran}"))["error"].clone()
}

#[test]
fn a_line_that_was_typed_and_erased_keeps_no_run_out() {
    let home = with_shells();
    let status = [("bash", "$?"), ("zsh", "$?"), ("fish", "$status")];
    for (shell, status) in status {
        home.run(&["run", shell, "--", "false"]);
        for keys in ["ls\u{15}", "\u{1b}[A\u{1b}[B", "\u{1b}[I\u{1b}[O", "x\u{7f}"] {
            home.ok(&["send", shell, keys]);
            let ran = home.run(&["run", shell, "--", &format!("echo status {status}; false")]);
            assert_eq!(ran.out, "status 1\n", "{shell} after {keys:?}: {ran}");
        }
        // Several lines come in a file, and are shown in place of the line that reads it.
        home.ok(&["send", shell, "ls\u{15}"]);
        home.ok(&["run", shell, "--", "echo one\necho two!"]);
        let shown = home.ok(&["screen", shell]);
        assert!(!shown.contains("holdfast"), "{shell}: {shown}");
    }
}

#[test]
fn what_stands_at_the_prompt_is_left_alone_and_the_hint_names_a_way_out() {
    let home = with_shells();
    for shell in SHELLS {
        home.ok(&["run", shell, "--", "true"]);
        home.ok(&["send", shell, "echo ha\u{1b}[D\u{1b}[D"]);
        home.until_screen_shows(shell, "echo ha");
        let error = error_of(&home, &[shell, "--", "echo no"]);
        assert_eq!(error["code"], "shell_busy", "{error}");
        assert!(error["hint"].as_str().unwrap().contains(&format!("holdfast send {shell} --key C-c")), "{error}");
        // It is as it was, the cursor too.
        home.ok(&["send", shell, "lf \r"]);
        home.until_screen_shows(shell, "\nlf ha");
        home.ok(&["send", shell, "half"]);
        home.until_screen_shows(shell, "half");
        home.ok(&["send", shell, "--key", "C-c"]);
        until("the hint's remedy", || home.run(&["run", shell, "--", "true"]).status == 0);
    }
}

#[test]
fn the_hint_at_a_shell_in_the_shell_works() {
    let home = with_shells();
    home.ok(&["send", "bash", "--enter", "PS1='inner> ' bash --norc"]);
    home.until_screen_shows("bash", "inner>");
    let error = error_of(&home, &["bash", "--", "echo no"]);
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("--detect"), "{error}");
    let ran = home.run(&["run", "bash", "--detect", "quiet:500ms", "--", "echo inside"]);
    assert!(ran.out.contains("inside"), "{ran}");
}
