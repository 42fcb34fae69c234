//! `flow dev`: a flow runs anew whenever its file is saved.

use crate::Kitchen;
use holdfast_harness::{poll, until};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::channel;

#[test]
fn a_file_that_is_saved_runs_anew_and_what_ran_before_is_cancelled() {
    let kitchen = Kitchen::new();
    let file =
        kitchen.file("flow: Dev\nsteps:\n- run: Say\n  command: echo one {{ input }}\n- sleep: 5d\n- signal: go\n");
    let mut dev = kitchen.home.command(&["flow", "dev", &file, "rye", "--skip-timers"]);
    let mut dev = dev.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (tell, lines) = channel();
    let (out, err) = (dev.stdout.take().unwrap(), dev.stderr.take().unwrap());
    let tell_err = tell.clone();
    std::thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
    std::thread::spawn(move || {
        BufReader::new(err).lines().map_while(Result::ok).try_for_each(|line| tell_err.send(line))
    });
    let mut said = Vec::new();
    let mut until_said = |wanted: &str| {
        let found = poll(|| {
            said.extend(lines.try_iter());
            said.iter().any(|line| line.contains(wanted))
        });
        assert!(found.is_some(), "waited in vain for {wanted}: {said:#?}");
    };
    until_said("1. Say → one rye");
    until_said("2. Timer → 5d elapsed");
    until_said("WAITING_FOR(go)");
    kitchen.file("flow: Dev\nsteps:\n- slep: 1s\n");
    until_said("line 3: the step does not say what to do");
    kitchen.until_status("Dev-1", "CANCELLED");
    kitchen.file("flow: Dev\nsteps:\n- run: Say\n  command: echo two\n- signal: go\n");
    until_said("1. Say → two");
    kitchen.home.ok(&["flow", "signal", "Dev-2", "go"]);
    until_said("COMPLETED");
    kitchen.file("flow: Dev\nsteps:\n- signal: never\n");
    until_said("WAITING_FOR(never)");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(dev.id() as i32).unwrap(),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let status = until("the end", || dev.try_wait().unwrap());
    assert!(status.success(), "{status}");
    assert_eq!(kitchen.flow("Dev-3")["status"], "CANCELLED");
}
