//! What processes do to files, as the kernel tells it. As root.

use holdfast_observe::effects::{Left, Meter, Taken};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

fn begin(meter: &Meter, number: u64, root: Option<u32>) {
    let (reply, began) = channel();
    meter.begin(number, root, Vec::new(), Box::new(move |said| reply.send(said).unwrap()));
    began.recv().unwrap().unwrap();
}

fn end(meter: &Meter, number: u64) -> Taken {
    let (reply, taken) = channel();
    meter.end(number, Box::new(move |taken| reply.send(taken).unwrap()));
    taken.recv().unwrap().expect("it was measured")
}

/// A shell that waits for a line before it does anything.
fn shell(dir: &Path, script: &str) -> Child {
    let script = format!("read go; {script}");
    Command::new("bash").args(["-c", &script]).current_dir(dir).stdin(Stdio::piped()).spawn().unwrap()
}

fn go(child: &mut Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn every_file_of_a_tree_of_processes_is_seen_and_none_of_another() {
    const FILES: usize = 300;
    let dir = tempfile::tempdir().unwrap();
    let meter = Meter::default();
    // Each file is made by a process of its own, which is gone at once.
    let script = |name: &str| {
        format!("for i in $(seq {FILES}); do bash -c 'echo > {name}.'$i; done; rm {name}.1; mv {name}.2 {name}.two")
    };
    let (mut one, mut two) = (shell(dir.path(), &script("a")), shell(dir.path(), &script("b")));
    begin(&meter, 1, Some(one.id()));
    // The first process of the second is named later.
    begin(&meter, 2, None);
    meter.root(2, two.id());
    std::thread::scope(|scope| {
        scope.spawn(|| go(&mut one));
        scope.spawn(|| go(&mut two));
    });
    for (number, name) in [(1, "a"), (2, "b")] {
        let taken = end(&meter, number);
        assert_eq!(taken.missing, None);
        assert_eq!(taken.left, []);
        let files = &taken.files;
        // One was deleted again; one was moved, to a name that may have been there.
        assert_eq!((files.created.len(), files.changed.len(), files.passing), (FILES - 2, 1, 1), "{name}: {files:?}");
        assert!(files.deleted.is_empty() && files.moved.is_empty(), "{files:?}");
        let is_its = |path: &String| path.rsplit('/').next().is_some_and(|file| file.starts_with(&format!("{name}.")));
        assert!(files.created.iter().chain(&files.changed).all(is_its), "{files:?}");
    }
}

#[test]
fn directories_that_go_at_once_leaves_and_daemons_are_known() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("old")).unwrap();
    std::fs::write(dir.path().join("old/x"), "").unwrap();
    let meter = Meter::default();
    let script = "mkdir -p d/e && touch d/e/f && rm -r d && mv old new && echo 1 >> new/x && (setsid sleep 1000 >/dev/null 2>&1 &)";
    let mut one = shell(dir.path(), script);
    begin(&meter, 7, Some(one.id()));
    go(&mut one);
    let taken = end(&meter, 7);
    let real = dir.path().canonicalize().unwrap();
    let at = |name: &str| real.join(name).to_str().unwrap().to_owned();
    assert_eq!(taken.files.moved, [(at("old"), at("new"))], "{taken:?}");
    assert_eq!(taken.files.changed, [at("new/x")], "{taken:?}");
    assert_eq!((taken.files.created.len(), taken.files.deleted.len(), taken.files.passing), (0, 0, 3), "{taken:?}");
    assert_eq!(taken.left.len(), 1, "{taken:?}");
    // It may just be becoming that program.
    let left = taken.left[0].pid;
    let is_it = |left: &Left| left.argv == ["sleep", "1000"];
    crate::harness::eventually("sleep", || Left::of(left).filter(is_it));
    crate::harness::kill(left);
    // Nobody is measured any more.
    let (reply, taken) = channel();
    meter.end(7, Box::new(move |taken| reply.send(taken).unwrap()));
    assert_eq!(taken.recv().unwrap(), None);
}
