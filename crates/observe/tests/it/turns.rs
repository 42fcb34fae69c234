//! A cgroup for each turn: who is in it, that it freezes with the session, and that it goes.

use std::fs;

use holdfast_graph::Spot;
use holdfast_observe::{Entered, How, Turns};
use holdfast_types::Fence;

use crate::harness::{Session, cgroup_dir, eventually, kill, leftover, stands_still};

/// A shell that starts a writer for each word it is given; the keeper is its parent.
const SHELL: &str = "mkfifo words; sh -c 'echo $$ > pid; exec 3<>words; while read name <&3; do
    (echo $name; while :; do echo x; done > written.$name) > started.$name & done' & wait";

const FIRST: Spot = Spot::Turn(Fence(1));
const SECOND: Spot = Spot::Turn(Fence(2));
const RUN: Spot = Spot::Run(7);

fn starts(session: &Session, name: &str) {
    let file = session.dir.join("words");
    eventually("the shell", || file.exists().then_some(()));
    fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(file)
        .and_then(|mut words| {
            use std::io::Write;
            writeln!(words, "{name}")?;
            // Until it was read it is only in the pipe.
            eventually(name, || (session.size(&format!("written.{name}")) > 0).then_some(()));
            Ok(())
        })
        .unwrap();
}

fn members(session: &Session, spot: Spot) -> usize {
    let text = fs::read_to_string(cgroup_dir(&session.label).join(spot.to_string()).join("cgroup.procs"));
    text.map_or(0, |text| text.lines().count())
}

#[test]
fn what_is_started_in_a_turn_stays_in_its_cgroup_through_freezes_and_empty_ones_go() {
    let session = Session::shell(How::Cgroup, SHELL);
    let (shell, keeper, turns) = (session.pid_in("pid"), session.keeper.id(), Turns::new(&session.label));
    starts(&session, "before");
    assert_eq!(turns.spots(keeper), None);
    assert!(turns.is_outside(keeper, shell));
    assert_eq!(turns.enter(keeper, shell, FIRST, Some(3)).unwrap(), Entered::Moved);
    assert!(!turns.is_outside(keeper, shell));
    assert_eq!(turns.enter(keeper, shell, FIRST, Some(4)).unwrap(), Entered::Here);
    starts(&session, "first");
    assert_eq!(turns.enter(keeper, shell, RUN, None).unwrap(), Entered::Moved);
    assert_eq!((members(&session, FIRST), members(&session, RUN)), (1, 1));
    assert_eq!(turns.spots(keeper).unwrap().since, Some(3));

    let frozen = session.freeze();
    assert_eq!(frozen.processes, 3, "the shell and two writers, one of them where the keeper is");
    for name in ["before", "first"] {
        stands_still(name, || session.size(&format!("written.{name}")));
    }
    assert_eq!((members(&session, FIRST), members(&session, RUN)), (1, 1));
    // Into what is frozen, and out again.
    assert_eq!(turns.enter(keeper, shell, SECOND, None).unwrap(), Entered::Moved);
    assert!(!cgroup_dir(&session.label).join(RUN.to_string()).exists(), "nobody was left in it");
    session.thaw();
    for name in ["before", "first"] {
        session.grows(&format!("written.{name}"));
    }
    starts(&session, "second");
    assert_eq!((members(&session, FIRST), members(&session, SECOND)), (1, 2));
    for process in session.tree().iter().filter(|process| process.parent == shell) {
        kill(process.pid);
    }
    eventually("empty ones to go", || {
        turns.enter(keeper, shell, RUN, None).unwrap();
        turns.enter(keeper, shell, SECOND, None).unwrap();
        (!cgroup_dir(&session.label).join(FIRST.to_string()).exists()).then_some(())
    });
    let label = session.label.clone();
    drop(session);
    assert!(!leftover(&label));
}

#[test]
fn a_shell_in_a_cgroup_of_somebody_elses_stays_there_and_a_stranger_is_not_moved() {
    let session = Session::shell(How::Cgroup, SHELL);
    let (shell, keeper, turns) = (session.pid_in("pid"), session.keeper.id(), Turns::new(&session.label));
    let stranger = std::process::id();
    assert_eq!(turns.enter(keeper, stranger, FIRST, None).unwrap(), Entered::Elsewhere, "it is no child of the keeper");
    let elsewhere = cgroup_dir(&session.label).with_file_name(format!("box-{}", session.label));
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("cgroup.procs"), shell.to_string()).unwrap();
    assert_eq!(turns.enter(keeper, shell, FIRST, Some(1)).unwrap(), Entered::Elsewhere);
    assert!(!leftover(&session.label));
    drop(session);
    eventually("the other cgroup to be empty", || fs::remove_dir(&elsewhere).ok());
}
