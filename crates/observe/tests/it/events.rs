//! The kernel's process events. As root, not in a container.

use std::process::Command;

use holdfast_observe::events::{Ended, Event, Watcher};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::harness::eventually;

#[test]
fn a_fork_an_exec_and_an_exit_are_told_in_order() {
    let mut watcher = Watcher::new().expect("the tests run as root, not in a container");
    let mut child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
    let pid = child.id();
    let mut events = Vec::new();
    child.wait().unwrap();
    eventually("the exit", || {
        events.extend(watcher.drain().unwrap().events);
        events.iter().any(|event| matches!(event, Event::Exit { pid: of, .. } if *of == pid)).then_some(())
    });
    let us = std::process::id();
    let ours = events.iter().filter_map(|event| match *event {
        Event::Fork { parent, child, .. } if child == pid => Some(format!("fork by us: {}", parent == us)),
        Event::Exec { pid: of, .. } if of == pid => Some("exec".to_owned()),
        Event::Exit { pid: of, end, .. } if of == pid => Some(format!("{end:?}")),
        Event::Fork { .. } | Event::Exec { .. } | Event::Exit { .. } => None,
    });
    assert_eq!(ours.collect::<Vec<_>>(), ["fork by us: true", "exec", &format!("{:?}", Ended::Code(7))]);
}

#[test]
fn the_descriptor_becomes_readable() {
    let mut watcher = Watcher::new().expect("the tests run as root, not in a container");
    watcher.drain().unwrap();
    Command::new("true").status().unwrap();
    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&watcher, PollFlags::IN)], Some(&limit)).unwrap(), 1);
}

#[test]
fn who_is_killed_by_a_signal_is_told_so() {
    let mut watcher = Watcher::new().expect("the tests run as root, not in a container");
    let mut child = Command::new("sleep").arg("9999").spawn().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("its end", || {
        let is_it =
            |event: &Event| matches!(event, Event::Exit { pid, end: Ended::Signal(9), .. } if *pid == child.id());
        watcher.drain().unwrap().events.iter().any(is_it).then_some(())
    });
}
