//! The tree as it is.

use std::collections::HashSet;
use std::io::Write;

use holdfast_observe::{How, Spared, descendants};

use crate::harness::{Session, eventually};

#[test]
fn parents_come_before_children_however_deep() {
    // Each shell starts the next one, 300 deep.
    let each = "'D=$((D+1)); if [ $D -lt 300 ]; then sh -c \"$0\" \"$0\"; else sleep 9999; fi; :'";
    let script = &format!("export D=0; sh -c {each} {each}; :");
    let session = Session::shell(How::Signals, script);
    let tree = eventually("the deepest one", || Some(session.tree()).filter(|tree| tree.len() == 301));
    let mut seen = HashSet::from([session.keeper.id()]);
    for process in tree {
        assert!(seen.contains(&process.parent), "{process:?}");
        assert!(seen.insert(process.pid), "{process:?}");
        assert!(process.start_time > 0);
    }
}

#[test]
fn more_children_than_fit_a_page_are_all_found() {
    // The kernel gives at most a page at a time: some 600 pids of six digits.
    let session = Session::shell(How::Signals, "i=0; while [ $i -lt 1200 ]; do sleep 9999 & i=$((i+1)); done; wait");
    eventually("all of them", || (session.tree().len() == 1200).then_some(()));
}

#[test]
fn children_of_all_threads_are_found() {
    let python = "import subprocess, threading\n\
                  def work(): subprocess.Popen(['sleep', '9999']).wait()\n\
                  for _ in range(4): threading.Thread(target=work).start()\n";
    let session = Session::start(How::Signals, "python3", &["-c", python]);
    eventually("a child of each thread", || (session.tree().len() == 4).then_some(()));
}

#[test]
fn a_zombie_is_listed_as_one() {
    let mut session = Session::start(How::Signals, "sh", &["-c", "sh -c 'exit 0' & exec cat"]);
    eventually("a zombie", || session.tree().first().filter(|process| process.state == 'Z').map(drop));
    session.keeper.stdin.take().unwrap().flush().unwrap();
    eventually("the end", || descendants(session.keeper.id(), &Spared::default()).ok().filter(Vec::is_empty).map(drop));
}
