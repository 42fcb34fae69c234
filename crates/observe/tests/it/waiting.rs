//! Real programs at a real terminal: whether they wait for it, and for what.

use std::time::Instant;

use holdfast_observe::waiting::{Doing, Kind};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::eventually;
use crate::pty::Pty;

/// Runs a command in bash until the session does what is expected of it.
#[track_caller]
fn bash(command: &str, is_it: impl Fn(Doing) -> bool) -> Pty {
    let mut pty = Pty::bash();
    pty.types(&format!("{command}\n"));
    pty.becomes(command, is_it);
    pty
}

fn waits(kind: Kind) -> impl Fn(Doing) -> bool {
    move |doing| matches!(doing, Doing::Waiting { kind: found, .. } if found == kind)
}

fn is_full_screen(doing: Doing) -> bool {
    matches!(doing, Doing::FullScreen { .. })
}

fn is_running(doing: Doing) -> bool {
    matches!(doing, Doing::Running { .. })
}

fn is_elsewhere(doing: Doing) -> bool {
    matches!(doing, Doing::BlockedElsewhere { .. })
}

/// The shell's prompt, then a program, then the prompt again.
#[track_caller]
fn shell(program: &[&str]) {
    let is_idle = |doing| matches!(doing, Doing::IdlePrompt { .. });
    let mut pty = Pty::start(program);
    pty.becomes("a prompt", is_idle);
    pty.types("cat\r");
    pty.becomes("cat", waits(Kind::Line));
    pty.types("\x04");
    pty.becomes("the prompt again", is_idle);
    let Doing::IdlePrompt { pid } = pty.doing() else { return };
    assert_eq!(pid, pty.shell.id());
}

#[test]
fn a_bash_prompt_is_idle() {
    shell(&["bash", "--norc", "--noprofile", "-i"]);
}

#[test]
fn a_zsh_prompt_is_idle() {
    shell(&["zsh", "-f", "-i"]);
}

#[test]
fn a_fish_prompt_is_idle() {
    shell(&["fish", "--no-config", "-i"]);
}

#[test]
fn a_line_that_is_read_is_waited_for() {
    let pty = bash("read -p 'Name? ' x", waits(Kind::Line));
    assert_eq!(pty.doing(), Doing::Waiting { pid: pty.shell.id(), kind: Kind::Line });
    bash("cat", waits(Kind::Line));
    bash("cat | grep x", waits(Kind::Line));
    bash("python3 -c 'input(\"Name? \")'", waits(Kind::Line));
    bash("(sleep 9999 & cat)", waits(Kind::Line));
}

#[test]
fn a_password_is_told_from_a_line() {
    bash("read -s -p 'Password: ' x", waits(Kind::Password));
    bash("bash -c 'read -s x'", waits(Kind::Password));
    // It asks at /dev/tty, as ssh and sudo do.
    bash("python3 -c 'import getpass; getpass.getpass()' < /dev/null", waits(Kind::Password));
}

#[test]
fn interpreters_wait_with_their_own_line_editor() {
    bash("python3 -q", waits(Kind::Repl));
    bash("node", waits(Kind::Repl));
    bash("gdb -q -nx", waits(Kind::Repl));
}

#[test]
fn programs_that_take_the_screen_are_told_from_interpreters() {
    bash("vim -u NONE", is_full_screen);
    bash("less /etc/services", is_full_screen);
}

#[test]
fn a_program_that_draws_on_the_main_screen_waits_for_keys() {
    // Debian's top never leaves it: nothing but its picture tells it from an interpreter.
    bash("top -d 100", waits(Kind::Repl));
}

#[test]
fn a_dialog_takes_the_screen() {
    bash("whiptail --yesno sure 8 40", is_full_screen);
}

#[test]
fn a_thread_or_an_epoll_set_that_waits_is_seen() {
    bash(
        "python3 -c 'import threading,sys,signal; threading.Thread(target=sys.stdin.readline).start(); signal.pause()'",
        waits(Kind::Line),
    );
    bash("python3 -c 'import select; e=select.epoll(); e.register(0, select.EPOLLIN); e.poll()'", waits(Kind::Line));
    bash("python3 -c 'import select; p=select.poll(); p.register(0, select.POLLIN); p.poll()'", waits(Kind::Line));
    bash("python3 -c 'import select; select.select([0], [], [])'", waits(Kind::Line));
}

#[test]
fn a_wait_for_something_else_is_not_for_the_terminal() {
    bash("sleep 9999", is_elsewhere);
    bash("tail -f /etc/passwd", is_elsewhere);
    // It could read the terminal, and watches it for being writable only.
    bash("python3 -c 'import select; p=select.poll(); p.register(0, select.POLLPRI); p.poll()'", is_elsewhere);
    let pty = bash("sleep 9999 | sleep 9998", is_elsewhere);
    assert_ne!(pty.doing(), Doing::BlockedElsewhere { pid: pty.shell.id() });
}

#[test]
fn another_terminal_is_not_ours() {
    // It waits for a terminal that it made itself.
    bash("python3 -c 'import os, pty; m, s = pty.openpty(); os.read(s, 1)'", is_elsewhere);
}

#[test]
fn who_works_runs() {
    bash("while :; do :; done", is_running);
    bash("sh -c 'while :; do :; done'", is_running);
    let mut pty = Pty::bash();
    // As in a build, children come and go, and one of them runs.
    pty.types("while :; do seq 100000 | sort -R > /dev/null; done\n");
    eventually("ten looks at work", {
        let mut seen = 0;
        move || {
            seen += u32::from(is_running(pty.doing()));
            (seen >= 10).then_some(())
        }
    });
}

#[test]
fn a_job_in_the_background_leaves_the_prompt_idle() {
    let mut pty = Pty::bash();
    pty.types("sleep 9999 & yes > /dev/null & echo star\"\"ted\n");
    pty.shows("started");
    pty.becomes("the prompt", |doing| matches!(doing, Doing::IdlePrompt { .. }));
}

#[test]
fn a_job_whose_leader_is_gone_is_still_found() {
    bash("true | cat /dev/tty", waits(Kind::Line));
}

/// Runs a command and stops it, and the shell first: bash would take the terminal back. Gives the command's pid.
#[track_caller]
fn stopped(command: &str, is_it: impl Fn(Doing) -> Option<u32>) -> (Pty, u32) {
    let mut pty = Pty::bash();
    pty.types(&format!("{command}\n"));
    let shell = pty.shell.id();
    let of_job = |doing| is_it(doing).filter(|pid| *pid != shell);
    let pid = of_job(pty.becomes(command, |doing| of_job(doing).is_some())).unwrap();
    signal(shell, Signal::STOP);
    signal(pid, Signal::STOP);
    pty.becomes("a stopped job", |doing| doing == Doing::Stopped { pid });
    (pty, pid)
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

#[test]
fn a_job_that_was_stopped_goes_on_waiting_for_the_same() {
    // The kernel restarts these calls under another number.
    let elsewhere = |doing| if let Doing::BlockedElsewhere { pid } = doing { Some(pid) } else { None };
    let (pty, pid) = stopped("sleep 9999", elsewhere);
    signal(pid, Signal::CONT);
    pty.becomes("sleep again", |doing| doing == Doing::BlockedElsewhere { pid });
    let waits = |doing| if let Doing::Waiting { pid, kind: Kind::Line } = doing { Some(pid) } else { None };
    let (pty, pid) =
        stopped("python3 -c 'import select; p=select.poll(); p.register(0, select.POLLIN); p.poll()'", waits);
    signal(pid, Signal::CONT);
    pty.becomes("poll again", |doing| doing == Doing::Waiting { pid, kind: Kind::Line });
}

#[test]
fn a_terminal_without_processes_is_unknown() {
    let mut pty = Pty::start(&["true"]);
    pty.shell.wait().unwrap();
    assert!(matches!(pty.doing(), Doing::Unknown { pid: None, .. }));
}

#[test]
fn a_look_takes_less_than_a_millisecond() {
    let pty = bash("sleep 9999 | cat | cat /dev/tty", waits(Kind::Line));
    let facts = pty.facts();
    let took = (0..200).map(|_| {
        let started = Instant::now();
        holdfast_observe::waiting::state(std::process::id(), pty.shell.id(), &facts);
        started.elapsed()
    });
    // The best of many: the machine is busy, and this one is unoptimised.
    let best = took.min().unwrap();
    assert!(best.as_micros() < 1000, "{best:?}");
}
