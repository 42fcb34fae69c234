//! A host that is killed between the record of an act and its deed: the next host does it again, or says that it is lost.

use holdfast_authority::{Act, Ending};
use holdfast_harness::{Operator, World, received, signal, until};
use holdfast_types::{SessionId, Size};
use holdfast_wire::operations::{Operation, op};
use holdfast_wire::params::{EndParams, Life, RenameParams, ResizeParams};
use holdfast_wire::turns::SignalParams;
use rustix::process::Signal;

/// Asks for something, kills the host once that is recorded, and starts another.
fn killed_in_between<O: Operation>(world: &World, operator: &mut Operator, params: &O::Params) -> Operator {
    let recorded = world.pause("deed.recorded");
    operator.link.ask::<O>(params, &[]).unwrap();
    let held = recorded.reached();
    world.kill_host();
    drop((recorded, held));
    world.start_host();
    world.root(operator.session)
}

/// How what was left open ended, by its word, with the number of hosts that were there by then.
fn endings(world: &World, session: SessionId) -> Vec<(String, Ending, usize)> {
    let mut hosts = 1;
    let mut endings = Vec::new();
    for entry in world.journal(session) {
        match entry.record.act {
            Act::Restarted => hosts += 1,
            Act::Did { what, ending, .. } => endings.push((what, ending, hosts)),
            _ => {}
        }
    }
    endings
}

fn ended_once(what: &str, ending: Ending) -> Vec<(String, Ending, usize)> {
    vec![(what.to_owned(), ending, 2)]
}

#[test]
fn a_resize_is_done_by_the_next_host() {
    let world = World::new();
    let session = world.session("sized", "exec cat");
    let mut root = world.root(session);
    let size = Size::clamped(101, 33);
    let params = ResizeParams { session: session.to_string(), size, proof: None };
    let mut root = killed_in_between::<op::Resize>(&world, &mut root, &params);
    until("the size", || root.view().is_ok_and(|view| view.size == size));
    assert_eq!(endings(&world, session), ended_once("resize", Ending::Done));
}

#[test]
fn a_resize_to_the_size_that_a_session_has_is_no_act() {
    let world = World::new();
    let session = world.session("sized", "exec cat");
    let mut root = world.root(session);
    let resize = |columns| ResizeParams { session: session.to_string(), size: Size::clamped(columns, 30), proof: None };
    root.link.call::<op::Resize>(&resize(90)).unwrap();
    let records = world.journal(session).len();
    for _ in 0..3 {
        root.link.call::<op::Resize>(&resize(90)).unwrap();
    }
    assert_eq!(world.journal(session).len(), records);
    root.link.call::<op::Resize>(&resize(91)).unwrap();
    assert!(world.journal(session).len() > records, "another size is one");
}

#[test]
fn a_rename_is_done_by_the_next_host() {
    let world = World::new();
    let session = world.session("before", "exec cat");
    let mut root = world.root(session);
    let params = RenameParams { session: session.to_string(), name: "after".parse().unwrap(), proof: None };
    let mut root = killed_in_between::<op::Rename>(&world, &mut root, &params);
    until("the name", || root.view().is_ok_and(|view| view.name.to_string() == "after"));
    assert_eq!(endings(&world, session), ended_once("rename", Ending::Done));
}

#[test]
fn a_rename_that_is_taken_up_after_another_session_got_the_name_fails() {
    let world = World::new();
    let session = world.session("before", "exec cat");
    let mut root = world.root(session);
    let keeper = root.view().unwrap().keeper_pid;
    let params = RenameParams { session: session.to_string(), name: "after".parse().unwrap(), proof: None };
    let recorded = world.pause("deed.recorded");
    root.link.ask::<op::Rename>(&params, &[]).unwrap();
    let held = recorded.reached();
    world.kill_host();
    drop((recorded, held));
    // The next host comes to it later: its keeper does not answer yet.
    signal(keeper, Signal::STOP);
    world.start_host();
    let other = world.session("after", "exec cat");
    signal(keeper, Signal::CONT);
    until("the rename to be over", || !endings(&world, session).is_empty());
    let why = "another session has the name after now".to_owned();
    assert_eq!(endings(&world, session), ended_once("rename", Ending::Failed { why }));
    let name = |session| world.root(session).view().unwrap().name.to_string();
    assert_eq!((name(session), name(other)), ("before".to_owned(), "after".to_owned()));
}

#[test]
fn an_end_is_brought_by_the_next_host() {
    let world = World::new();
    let session = world.session("ends", "exec cat");
    let mut root = world.root(session);
    let params = EndParams { session: session.to_string(), grace_ms: 10_000, proof: None };
    let mut root = killed_in_between::<op::End>(&world, &mut root, &params);
    until("the end", || root.view().is_ok_and(|view| view.life == Life::Ended));
    assert_eq!(endings(&world, session), ended_once("end", Ending::Done));
}

#[test]
fn a_signal_is_not_sent_by_the_next_host_which_says_that_it_is_lost() {
    let world = World::new();
    let file = world.path("heard");
    let script = format!("trap 'echo heard >> {}' USR1; echo ready; while :; do read -r _; done", file.display());
    let session = world.session("signalled", &script);
    world.shows(session, "ready");
    let mut root = world.root(session);
    let usr1 = 10;
    let params = SignalParams { session: session.to_string(), number: usr1, target: 1, proof: None };
    let mut root = killed_in_between::<op::Signal>(&world, &mut root, &params);
    until("the mark", || endings(&world, session) == ended_once("signal", Ending::Lost));
    assert_eq!(received(&file), b"");
    // Sent again by who asked, it arrives once, and the first one never.
    root.link.call::<op::Signal>(&params).unwrap();
    until("the signal", || !received(&file).is_empty());
    assert_eq!(received(&file), b"heard\n");
}

#[test]
fn what_is_done_at_once_is_marked_at_once() {
    let world = World::new();
    let session = world.session("marked", "exec cat");
    let mut root = world.root(session);
    let size = Size::clamped(90, 30);
    root.link.call::<op::Resize>(&ResizeParams { session: session.to_string(), size, proof: None }).unwrap();
    assert_eq!(endings(&world, session), vec![("resize".to_owned(), Ending::Done, 1)]);
    world.kill_host();
    world.start_host();
    until("the host", || world.root(session).view().is_ok_and(|view| view.life == Life::Running));
    assert_eq!(endings(&world, session).len(), 1, "and not done again");
}
