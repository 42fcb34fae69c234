//! Claims about real shells in real terminals. They need bash (5.1 or later), zsh, fish and setsid of util-linux; none is ever skipped.

mod pty;
mod starts;

use super::Kind::{self, Bash, Fish, Zsh};
use super::state::{Category, diff};
use super::{before_line_mark, without_line_mark};
use pty::{Live, Setting};

const ALL: [Kind; 3] = [Bash, Zsh, Fish];

#[test]
fn a_run_ends_with_its_command_and_its_status() {
    let everywhere = [
        ("true", 0, ""),
        ("false", 1, ""),
        ("echo one; echo two", 0, "one two"),
        ("sh -c 'exit 7'", 7, ""),
        ("nonexistent-command-x 2>/dev/null", 127, ""),
        ("cd / && pwd", 0, "/"),
        ("echo ä; printf 'no newline'", 0, "ä no newline"),
        ("sh -c 'kill -TERM $$'", 143, ""),
        ("echo one\necho two\nfalse", 1, "one two"),
        ("echo 'one\ntwo'", 0, "one two"),
        ("printf '\\033]133;D;0;hf=\\007\\033]133;A;hf\\007\\033]133;B;hf\\007'; false", 1, ""),
        ("echo tab\there", 0, "tab here"),
        ("echo 'wow!' # http://a?b", 0, "wow!"),
    ];
    let posix = [
        ("(exit 3)", 3, ""),
        ("sleep 100 &", 0, "[1]"),
        ("cat <<X\none\n$((1+1))\nX", 0, "one 2"),
        ("for i in 1 2\ndo echo $i\ndone", 0, "1 2"),
        ("if true; then echo yes", -1, ""),
        ("alias hi='echo hello'\nhi", 0, "hello"),
        ("hi", 0, "hello"),
        ("f() { local x=1; return 4; }; f", 4, ""),
        ("set -- a b; echo $2", 0, "b"),
        ("echo one # two", 0, "one"),
        ("declare -A map=([a]=1)\nexport GIVEN=x", 0, ""),
        ("echo ${map[a]}$GIVEN", 0, "1x"),
    ];
    let fish = [
        ("false; sleep 100 &", 1, ""),
        // It leaves the status of the command before.
        ("sleep 100 &", 0, ""),
        ("alias hi='echo hello'; hi", 0, "hello"),
        ("for i in 1 2\necho $i\nend", 0, "1 2"),
        ("set given x", 0, ""),
        ("echo $given", 0, "x"),
    ];
    for kind in ALL {
        let mut live = Live::start(kind, &Setting::default());
        let own = if kind == Fish { &fish[..] } else { &posix[..] };
        for (command, status, output) in everywhere.iter().chain(own) {
            // An incomplete line is tried below: here only what ends.
            if *status < 0 {
                continue;
            }
            let ran = live.run(command);
            assert_eq!(ran.status, *status, "{kind:?} {command:?}: {ran:?}");
            assert!(ran.words().starts_with(output), "{kind:?} {command:?}: {ran:?}");
        }
    }
}

#[test]
fn a_large_command_is_executed_whole_and_once() {
    for kind in ALL {
        let mut live = Live::start(kind, &Setting::default());
        let long = format!("echo {} | wc -c", "a".repeat(100_000));
        assert_eq!(live.run(&long).words().split(' ').next_back(), Some("100001"), "{kind:?}");
        let lines = format!("{}\necho done", "true\n".repeat(20_000));
        let ran = live.run(&lines);
        assert_eq!((ran.status, ran.words()), (0, "done".to_owned()), "{kind:?}");
    }
}

#[test]
fn what_does_not_run_shows_a_prompt_again_without_a_start() {
    // Typed keys, and the marks that follow: `A130` a prompt after status 130, `B` it reads, `C` and `D` of a command. zsh gives
    // 1 or 130 after an interrupt, and the old status after a line that does not parse.
    let cases = [
        (Bash, "\r", "A0 B"),
        (Bash, "# nothing\r", "A0 B"),
        (Bash, "half\x03", "A130 B"),
        (Bash, "half a li\x03", "A130 B"),
        (Bash, "if true\r", ">"),
        (Bash, "half\x03", "A130 B"),
        (Bash, "echo ) \r", "A2 B"),
        (Bash, "true\r", "C D0 A0 B"),
        (Zsh, "\r", "A0 B"),
        (Zsh, "half\x03", "A? B"),
        (Zsh, "if true\r", ">"),
        (Zsh, "half\x03", "A? B"),
        (Zsh, "echo ) \r", "A? B"),
        (Zsh, "true\r", "C D0 A0 B"),
        (Fish, "\r", "A0 B"),
        (Fish, "half\x03", "A0 B"),
        // fish leaves it to be corrected: that is no new prompt.
        (Fish, "echo ) \r\x15true\r", "C D0 A0 B"),
        (Fish, "'half\r\x03", "A0 B"),
    ];
    for kind in ALL {
        let mut live = Live::start(kind, &Setting::default());
        for (_, keys, expected) in cases.iter().filter(|case| case.0 == kind) {
            // An interrupt throws away what the shell has not read yet: it must have echoed it.
            let (text, interrupt) = keys.split_once('\x03').map_or((*keys, ""), |(text, _)| (text, "\x03"));
            live.type_echoed(text, !interrupt.is_empty());
            if !interrupt.is_empty() {
                live.wait_asleep();
            }
            live.write(interrupt.as_bytes());
            let mut log = live.log(expected.split(' ').count());
            if expected.contains("A?") {
                log = log.replace(|c: char| c.is_ascii_digit(), "").replace('A', "A?");
            }
            assert_eq!(log, *expected, "{kind:?} {keys:?}");
        }
        // Nothing came late, and the next run is as good as any.
        assert_eq!(live.run("echo fine").words(), "fine", "{kind:?}");
    }
}

#[test]
fn an_interrupted_run_ends_with_130() {
    for kind in ALL {
        let mut live = Live::start(kind, &Setting::default());
        for command in ["echo started; sleep 1000", "echo started\nsleep 1000\necho not reached"] {
            let token = live.enter(command);
            live.wait_started();
            live.wait_child("sleep");
            live.write(b"\x03");
            let ran = live.ended(&token);
            assert_eq!(ran.status, 130, "{kind:?} {command:?} {ran:?}");
            assert!(!ran.output.contains("not reached"), "{kind:?} {ran:?}");
        }
        assert_eq!(live.run("echo fine").words(), "fine", "{kind:?}");
    }
}

#[test]
fn a_line_that_does_not_parse_never_starts_and_leaves_the_shell_ready() {
    for (kind, status) in [(Bash, 2), (Zsh, 1), (Fish, 0)] {
        let mut live = Live::start(kind, &Setting::default());
        live.enter("echo ) oops");
        assert_eq!(live.log(2), format!("A{status} B"), "{kind:?}");
        std::fs::write(live.dir.join("next"), "").expect("writable");
        assert_eq!(live.run("echo fine").words(), "fine", "{kind:?}");
    }
}

#[test]
fn an_exec_or_an_exit_ends_the_session() {
    for kind in ALL {
        for (command, status) in [("exec sh -c 'exit 5'", 5), ("exit 6", 6)] {
            let mut live = Live::start(kind, &Setting::default());
            live.enter(command);
            assert_eq!(live.exit_status(), status, "{kind:?} {command}");
            // fish tells the end of `exit` before it goes.
            let marked = kind == Fish && command == "exit 6";
            assert_eq!(live.raw().contains("]133;D"), marked, "{kind:?} {command}");
        }
    }
}

#[test]
fn whatever_the_users_files_do_runs_have_an_end() {
    let slow = "read -t 2 < <(:) || :; sleep 2\n";
    let cases: &[(Kind, &str, &str)] = &[
        (Bash, "set -e", ""),
        (Bash, "set -u", ""),
        (Bash, "set -o posix", ""),
        (Bash, "set -a", ""),
        (Bash, "set -o noclobber; set -f; IFS=:/", ""),
        (Bash, "shopt -s extdebug", ""),
        (Bash, "trap 'seen=$BASH_COMMAND' DEBUG", ""),
        (Bash, "shopt -s extdebug; trap 'seen=$BASH_COMMAND' DEBUG", ""),
        (Bash, "trap 'echo ERR' ERR; set -E", ""),
        (Bash, "PROMPT_COMMAND='PS1=\"[\\u] $((n+=1))> \"; false'", ""),
        (Bash, "PROMPT_COMMAND=(false 'PS1=\"> \"')", ""),
        (Bash, "PS0='starting '", ""),
        (Bash, "export PS1='> ' PS2='.. '", ""),
        (Bash, "shopt -u promptvars", ""),
        (Bash, "if then fi ((", "syntax error"),
        (Bash, "alias printf=false read=false set=false local=false '[['=false", ""),
        (Bash, "printf() { echo no; }; unset -f printf", ""),
        (Bash, slow, ""),
        (Bash, "return 3", ""),
        (Zsh, "setopt err_return no_unset", ""),
        (Zsh, "setopt ksh_arrays sh_word_split", ""),
        (Zsh, "setopt all_export no_clobber warn_create_global", ""),
        (Zsh, "emulate sh", ""),
        (Zsh, "setopt prompt_subst; precmd() { PS1=\"$((n+=1))> \" }", ""),
        (Zsh, "precmd_functions=(false); p() { PROMPT='> ' }; precmd_functions+=(p)", ""),
        (Zsh, "unsetopt prompt_percent", ""),
        (Zsh, "trap 'seen=1' DEBUG", ""),
        (Zsh, "if then fi ((", "parse error"),
        (Zsh, "alias -g print=false; alias local=false", ""),
        (Zsh, "sleep 2", ""),
        (Zsh, "return 3", ""),
        (Fish, "function fish_prompt; echo -n '> '; end", ""),
        (Fish, "function fish_prompt; false; end", ""),
        (Fish, "function p --on-event fish_prompt; false; end", ""),
        (Fish, "if true", "Missing end"),
        (Fish, "sleep 2", ""),
        (Fish, "alias printf=false", ""),
        (Fish, "fish_vi_key_bindings", ""),
    ];
    for (kind, rc, shown) in cases {
        eprintln!("{kind:?} {rc:?}");
        let mut live = Live::start(*kind, &Setting { rc, ..Setting::default() });
        assert!(live.raw().contains(shown), "{kind:?} {rc:?}: {}", live.raw());
        for (command, status, output) in [("echo one", 0, "one"), ("echo two\necho three", 0, "two three")] {
            let ran = live.run(command);
            // Without promptvars a typed command's start is not told.
            let whole = ran.words() == output || (rc.contains("promptvars") && ran.words().ends_with(output));
            assert!(ran.status == status && whole, "{kind:?} {rc:?} {command:?} {ran:?}");
        }
        // With errexit a failing command ends the shell, as it should.
        if *rc != "set -e" && !rc.contains("ERR") {
            assert_eq!(live.run("sh -c 'exit 9'").status, 9, "{kind:?} {rc:?}");
        }
        let told = live.run("env | grep -ci holdfast || true").words();
        assert_eq!(told.split(' ').next_back(), Some("0"), "{kind:?} {rc:?} {told}");
    }
}

#[test]
fn a_shell_that_the_rc_becomes_is_left_alone() {
    for (kind, rc, then) in [(Bash, "exec zsh -f", Zsh), (Zsh, "exec fish -N", Fish), (Bash, "exec fish -N", Fish)] {
        let mut live = Live::begin(kind, &Setting { rc, ..Setting::default() });
        live.wait_foreground(if then == Zsh { "zsh" } else { "fish" });
        live.write(b"env | grep -ci -e holdfast -e zdotdir; echo no''mark\r");
        live.wait_text("nomark\r\n");
        assert!(live.raw().contains("0\r\nnomark"), "{kind:?} {}", live.raw());
        assert!(!live.raw().contains(";hf"), "{kind:?} {rc}");
    }
}

#[test]
fn what_commands_leave_behind_is_theirs() {
    let cases = [
        (Bash, "(exit 3)", "echo $?", "3"),
        (Bash, "false | true | (exit 4)", "echo ${PIPESTATUS[@]}", "1 0 4"),
        (Bash, "echo a lastword", "echo $_", "lastword"),
        (Bash, "trap 'echo bye' EXIT; trap 'x=1' DEBUG", "trap -p", "trap -- 'echo bye' EXIT trap -- 'x=1' DEBUG"),
        (Bash, "set -o posix", "echo $-", "himBHs"),
        (Bash, "set +o posix; shopt -q login_shell", "echo $?", "1"),
        (Bash, "IFS=x", "printf '%q' \"$IFS\"", "x"),
        (Zsh, "(exit 3)", "echo $?", "3"),
        (Zsh, "false | true | (exit 4)", "echo $pipestatus", "1 0 4"),
        (Zsh, "echo a lastword", "echo $_", "lastword"),
        (Zsh, "PS1='me> '", "print -r -- $PS1", "me>"),
        (Zsh, "trap 'echo hup' HUP", "trap", "trap -- 'echo hup' HUP"),
        (Fish, "sh -c 'exit 3'", "echo $status", "3"),
        (Fish, "false | true | sh -c 'exit 4'", "echo $pipestatus", "1 0 4"),
    ];
    for kind in ALL {
        let mut live = Live::start(kind, &Setting::default());
        for (_, first, second, expected) in cases.iter().filter(|case| case.0 == kind) {
            live.run(first);
            assert_eq!(live.run(second).words(), *expected, "{kind:?} {first:?} {second:?}");
        }
    }
}

#[test]
fn the_prompt_on_the_screen_is_the_users() {
    let cases = [
        (Bash, "PS1='<\\u \\w> '", "<root ~> echo x"),
        (Bash, "PS1='a\\nb$ '; PROMPT_COMMAND='PS1=\"${PS1}\"'", "b$ echo x"),
        (Zsh, "PROMPT='<%n %~> '", "<root ~> echo x"),
        (Zsh, "setopt prompt_subst; PROMPT='$(echo hm)> '", "hm> echo x"),
        (Fish, "function fish_prompt; echo -n '<me> '; end", "<me> echo x"),
    ];
    for (kind, rc, line) in cases {
        let mut live = Live::start(kind, &Setting { rc, ..Setting::default() });
        live.run("echo x");
        let rows = live.rows();
        let user = std::env::var("USER").unwrap_or_else(|_| "root".into());
        assert!(rows.iter().any(|row| row.trim_end() == line.replace("root", &user)), "{kind:?} {rows:#?}");
    }
}

#[test]
fn a_command_read_from_a_file_is_shown_and_remembered_in_its_own_words() {
    for (kind, history) in [(Bash, "history"), (Zsh, "fc -l -20")] {
        let rc = if kind == Bash { "PS1='> '" } else { "PS1='> '; HISTSIZE=100" };
        let mut live = Live::start(kind, &Setting { rc, ..Setting::default() });
        live.run("echo one");
        live.run("echo two\necho three");
        let rows = live.rows();
        assert_eq!(
            rows[2..6].iter().map(|r| r.trim_end()).collect::<Vec<_>>(),
            ["> echo two", "echo three", "two", "three"],
            "{kind:?}"
        );
        let shown = live.run(history).words();
        assert!(
            shown.contains("echo one") && shown.contains("echo two") && shown.contains("echo three"),
            "{kind:?} {shown}"
        );
        assert!(!shown.contains("holdfast"), "{kind:?} {shown}");
    }
}

#[test]
fn the_directory_is_told_at_each_prompt() {
    for kind in ALL {
        let mut live = Live::start(kind, &Setting::default());
        for name in ["plain", "with space", "ä%41;b\\c"] {
            let quoted = format!("'{}'", if kind == Fish { name.replace('\\', "\\\\") } else { name.to_owned() });
            assert_eq!(live.run(&format!("mkdir -p ~/{quoted}; cd ~/{quoted}")).status, 0, "{kind:?} {name}");
            let home = live.home().display().to_string();
            assert_eq!(live.cwd(), format!("{home}/{name}"), "{kind:?}");
        }
    }
}

#[test]
fn what_a_command_changed_is_told_by_name() {
    use Category::{Alias, Binding, Builtin, Function, Hash, Option, Path, Trap, Variable};
    let cases = [
        (Bash, "export NEW='a\nb'", vec![(Variable, "NEW", true)]),
        (Bash, "NEW=c", vec![(Variable, "NEW", true)]),
        (Bash, "unset NEW; alias x='y z'", vec![(Variable, "NEW", false), (Alias, "x", true)]),
        (Bash, "f() { echo 1; }; g() { :; }", vec![(Function, "f", true), (Function, "g", true)]),
        (Bash, "f() { echo 2; }", vec![(Function, "f", true)]),
        (
            Bash,
            "unset -f g; unalias x; shopt -s dotglob; set -f",
            vec![(Alias, "x", false), (Function, "g", false), (Option, "dotglob", true), (Option, "noglob", true)],
        ),
        (Bash, "cd /; true", vec![]),
        (
            Bash,
            "trap 'a
b' DEBUG; trap : USR1",
            vec![(Trap, "DEBUG", true), (Trap, "SIGUSR1", true)],
        ),
        (
            Bash,
            "trap - DEBUG USR1; umask 077",
            vec![(Trap, "DEBUG", false), (Trap, "SIGUSR1", false), (Category::Setting, "umask", true)],
        ),
        (Bash, "ls >/dev/null; hash -p /no/such/ls ls", vec![(Hash, "ls", true)]),
        (Bash, "enable -n echo; bind -x '\"\\C-xq\": true'", vec![(Binding, "\\C-xq", true), (Builtin, "echo", true)]),
        (Bash, "PS1='> '", vec![]),
        (Bash, "PS1='$(true)> '; PROMPT_COMMAND=:", vec![(Variable, "PROMPT_COMMAND", true), (Variable, "PS1", true)]),
        (Bash, "PATH=$PATH:/no/such", vec![(Variable, "PATH", true), (Path, "/no/such", true), (Hash, "ls", false)]),
        (Zsh, "export NEW='a\nb'", vec![(Variable, "NEW", true)]),
        (
            Zsh,
            "unset NEW; alias x='y z'; alias -g G='| grep'",
            vec![(Variable, "NEW", false), (Alias, "G", true), (Alias, "x", true)],
        ),
        (Zsh, "f() { echo 1; }", vec![(Function, "f", true)]),
        (Zsh, "f() { echo 2; }; setopt extended_glob", vec![(Function, "f", true), (Option, "extendedglob", true)]),
        (Zsh, "cd /; true", vec![]),
        (Zsh, "trap : DEBUG; umask 077", vec![(Trap, "DEBUG", true), (Category::Setting, "umask", true)]),
        (Zsh, "bindkey -s '^Xq' text", vec![(Binding, "bindkey -s \"^Xq\"", true)]),
        (
            Zsh,
            "path+=(/no/such); disable echo",
            vec![(Variable, "PATH", true), (Path, "/no/such", true), (Builtin, "echo", true)],
        ),
        (Fish, "set -gx NEW 'a\nb'", vec![(Variable, "NEW", true)]),
        (Fish, "set -e NEW; abbr -a x 'y z'", vec![(Variable, "NEW", false), (Alias, "x", true)]),
        (Fish, "function f; echo 1; end", vec![(Function, "f", true)]),
        (Fish, "function f; echo 2; end", vec![(Function, "f", true)]),
        (Fish, "cd /; true", vec![]),
        (Fish, "umask 077; bind \\cg true", vec![(Binding, "bind \\cg", true), (Category::Setting, "umask", true)]),
        (Fish, "set -gx PATH $PATH /no/such", vec![(Variable, "PATH", true), (Path, "/no/such", true)]),
    ];
    for kind in ALL {
        let mut live = Live::start(kind, &Setting::default());
        live.run("true");
        let mut before = live.state();
        assert!(before.names.contains_key(&(Variable, "HOME".into())), "{kind:?}");
        for (_, command, expected) in cases.iter().filter(|case| case.0 == kind) {
            assert_eq!(live.run(command).status, 0, "{kind:?} {command}");
            let after = live.state();
            let told = diff(&before, &after);
            let told: Vec<_> = told.iter().map(|c| (c.category, c.name.as_str(), c.hash.is_some())).collect();
            assert_eq!(told, *expected, "{kind:?} {command}");
            before = after;
        }
    }
}

#[test]
fn a_run_ends_even_after_the_hooks_were_swept_away() {
    let mut live = Live::start(Bash, &Setting::default());
    for command in ["PROMPT_COMMAND=()", "false", "unset PROMPT_COMMAND PS0", "true"] {
        let status = i32::from(command == "false");
        // Without PS0 the start is not seen, and the end only once.
        if command == "true" {
            break;
        }
        assert_eq!(live.run(command).status, status, "{command}");
    }
}

#[test]
fn what_zsh_prints_behind_a_command_is_held_back_from_its_first_byte_on() {
    for sign in ["%", "#"] {
        let mark = format!("\x1b[1m\x1b[7m{sign}\x1b[27m\x1b[1m\x1b[0m{}\r \r", " ".repeat(79));
        for length in 0..=mark.len() {
            let output = format!("out{}", &mark[..length]);
            assert_eq!(before_line_mark(output.as_bytes()), b"out", "{length}");
        }
        assert_eq!(without_line_mark(format!("out{mark}").as_bytes()), b"out");
    }
    for output in ["", "100%", "out\r\n", "out \r", "\x1b[31mred"] {
        assert_eq!(before_line_mark(output.as_bytes()), output.as_bytes(), "{output:?}");
    }
}
