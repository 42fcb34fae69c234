//! Snapshots of real processes.

use holdfast_observe::graph::{
    Depth, End, Family, FdKind, FdNode, Graph, LockKind, ProcessNode, SocketKind, SocketNode, SocketState, Target,
    diff, ports, snapshot,
};
use holdfast_observe::{How, Spared};

use crate::harness::{Session, eventually, kill};
use crate::pty::Pty;

/// A session whose python has run this, said so, and lives on.
fn python(script: &str) -> (Session, Graph) {
    let script =
        format!("import os, socket, sys, fcntl, signal\n{script}\nopen('ready', 'w').write('x')\nsignal.pause()\n");
    let session = Session::start(How::Signals, "sh", &["-c", "python3 -c \"$0\"; :", &script]);
    let graph = eventually("the script", || {
        (session.size("ready") > 0)
            .then(|| snapshot(session.keeper.id(), Depth::Full, None, &Spared::default()).unwrap())
    });
    (session, graph)
}

fn fd(process: &ProcessNode, is_it: impl Fn(&FdNode) -> bool) -> &FdNode {
    process.fds.iter().find(|fd| is_it(fd)).unwrap_or_else(|| panic!("{process:#?}"))
}

/// The python itself, below whatever wrapper starts it.
fn last(graph: &Graph) -> &ProcessNode {
    graph.processes.last().unwrap()
}

fn sockets(graph: &Graph, is_it: impl Fn(&SocketNode) -> bool) -> Vec<&SocketNode> {
    graph.sockets.iter().filter(|socket| is_it(socket)).collect()
}

#[test]
fn a_process_is_read_whole() {
    let (session, graph) = python("import time\nwhile time.process_time() < 0.1: pass");
    let process = last(&graph);
    assert_eq!(process.argv[1], "-c");
    assert!(process.exe.as_deref().unwrap().contains("python"), "{process:?}");
    assert_eq!(process.cwd.as_deref(), session.dir.canonicalize().unwrap().to_str());
    assert!(process.rss_bytes > 1 << 20 && process.cpu_ms >= 90 && process.threads == 1, "{process:?}");
    assert!(process.cgroup.as_deref().unwrap().starts_with('/'), "{process:?}");
    assert_eq!(process.uid, Some(rustix::process::geteuid().as_raw()));
    assert!(graph.at_ms.abs_diff(process.started_ms) < 60_000, "{} {}", graph.at_ms, process.started_ms);
    assert!(!graph.partial);
    assert_eq!(serde_json::from_str::<Graph>(&serde_json::to_string(&graph).unwrap()).unwrap(), graph);
}

#[test]
fn files_have_positions_modes_and_locks() {
    let (_session, graph) = python(
        "f = open('data', 'wb', 0); f.write(b'12345'); fcntl.flock(f, fcntl.LOCK_EX)\n\
         g = open('log', 'ab', 0); d = os.open('.', os.O_RDONLY)\n\
         gone = open('gone', 'w'); os.unlink('gone'); m = os.memfd_create('mem')\n\
         os.mkfifo('fifo'); p = os.open('fifo', os.O_RDWR); e = __import__('select').epoll(); n = open('/dev/null')",
    );
    let process = last(&graph);
    let ends_with = |end: &'static str| move |fd: &FdNode| fd.path.as_deref().is_some_and(|path| path.ends_with(end));
    let data = fd(process, ends_with("/data"));
    assert_eq!((data.kind, data.offset, data.read, data.write), (FdKind::File, Some(5), Some(false), Some(true)));
    assert_eq!(
        data.locks.iter().map(|lock| (lock.kind, lock.exclusive)).collect::<Vec<_>>(),
        [(LockKind::Flock, true)]
    );
    let log = fd(process, ends_with("/log"));
    assert_eq!((log.append, data.append), (Some(true), Some(false)));
    let gone = fd(process, ends_with("/gone"));
    assert!(gone.deleted && !data.deleted);
    assert_eq!(fd(process, ends_with("/fifo")).kind, FdKind::Pipe);
    fd(process, |fd| fd.kind == FdKind::Dir && fd.read == Some(true) && fd.write == Some(false));
    fd(process, |fd| fd.kind == FdKind::Memfd);
    fd(process, |fd| fd.kind == FdKind::Anon && fd.path.as_deref() == Some("anon_inode:[eventpoll]"));
    fd(process, |fd| fd.kind == FdKind::Device && fd.path.as_deref() == Some("/dev/null"));
}

#[test]
fn a_pipe_joins_who_writes_and_who_reads() {
    let session = Session::shell(How::Signals, "sleep 9998 | sleep 9999; :");
    let graph = eventually("both ends", || {
        let graph = snapshot(session.keeper.id(), Depth::Full, None, &Spared::default()).unwrap();
        let is_sleep = |process: &&ProcessNode| process.argv.first().is_some_and(|word| word == "sleep");
        (graph.processes.iter().filter(is_sleep).count() == 2).then_some(graph)
    });
    let pid = |word: &str| graph.processes.iter().find(|process| process.argv[1] == word).unwrap().pid;
    let ends =
        graph.pipes.iter().map(|pipe| pipe.ends.iter().map(|it| (it.process.pid, it.fd, it.end)).collect::<Vec<_>>());
    let mut joined = vec![(pid("9998"), 1, Some(End::Write)), (pid("9999"), 0, Some(End::Read))];
    joined.sort_unstable_by_key(|end| end.0);
    assert!(
        ends.into_iter().any(|mut ends| {
            ends.sort_unstable_by_key(|end| end.0);
            ends == joined
        }),
        "{graph:#?}"
    );
}

#[test]
fn sockets_are_told_by_the_kernel() {
    let (_session, graph) = python(
        "a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()\n\
         b = socket.create_connection(a.getsockname()); c = a.accept()[0]\n\
         u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))\n\
         v = socket.socket(socket.AF_INET6); v.bind(('::1', 0)); v.listen()\n\
         p, q = socket.socketpair(); x = socket.socket(socket.AF_UNIX); x.bind('sock'); x.listen()\n\
         lonely = socket.socket()",
    );
    let tcp = sockets(&graph, |socket| socket.family == Some(Family::Inet) && socket.kind == Some(SocketKind::Stream));
    // Numbers do not grow with time: each processor hands out its own.
    let (listening, connected): (Vec<_>, Vec<_>) =
        tcp.into_iter().partition(|socket| socket.state == Some(SocketState::Listening));
    let ([listener], [one, other]) = (&listening[..], &connected[..]) else { panic!("{graph:#?}") };
    assert_eq!(listener.remote, None);
    assert_eq!((one.state, one.remote, one.peer), (Some(SocketState::Established), other.local, Some(other.id)));
    let open = ports(&graph);
    assert_eq!(open.len(), 3, "{open:?}");
    assert!(open.iter().all(|port| port.holders.contains(&last(&graph).id)));
    assert!(open.iter().any(|port| port.address.is_ipv6()) && open.iter().any(|port| port.kind == SocketKind::Dgram));
    let unix = sockets(&graph, |socket| socket.family == Some(Family::Unix));
    assert!(
        unix.iter()
            .any(|socket| socket.path.as_deref() == Some("sock") && socket.state == Some(SocketState::Listening))
    );
    let pair: Vec<_> = unix.iter().filter(|socket| socket.state == Some(SocketState::Established)).collect();
    assert_eq!((pair.len(), pair[0].peer, pair[1].peer), (2, Some(pair[1].id), Some(pair[0].id)));
    let lonely = sockets(&graph, |socket| socket.unknown);
    assert_eq!(
        lonely.iter().map(|socket| (socket.protocol.as_deref(), socket.elsewhere)).collect::<Vec<_>>(),
        [(Some("TCP"), false)]
    );
    fd(last(&graph), |fd| fd.target == Some(Target::Socket(listener.id)));
}

/// As root: it makes a network namespace.
#[test]
fn sockets_of_another_network_are_said_to_be_elsewhere() {
    let script = "import socket, signal\na = socket.socket(); a.bind(('', 0)); a.listen()\n\
                  open('ready', 'w').write('x')\nsignal.pause()\n";
    let session = Session::start(How::Signals, "sh", &["-c", "unshare --net python3 -c \"$0\"; :", script]);
    eventually("the script", || (session.size("ready") > 0).then_some(()));
    let graph = snapshot(session.keeper.id(), Depth::Sockets, None, &Spared::default()).unwrap();
    let [socket] = &graph.sockets[..] else { panic!("{graph:#?}") };
    assert!(socket.elsewhere && socket.unknown && socket.state.is_none() && socket.protocol.as_deref() == Some("TCP"));
    assert_eq!(ports(&graph), []);
}

#[test]
fn shallow_snapshots_read_less() {
    let (session, full) = python("a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()");
    let processes = snapshot(session.keeper.id(), Depth::Processes, None, &Spared::default()).unwrap();
    assert!(processes.processes.iter().all(|process| process.fds.is_empty()) && processes.sockets.is_empty());
    let sockets = snapshot(session.keeper.id(), Depth::Sockets, None, &Spared::default()).unwrap();
    assert_eq!((ports(&sockets), sockets.pipes.len()), (ports(&full), 0));
    assert!(last(&sockets).fds.iter().all(|fd| fd.kind == FdKind::Socket));
}

#[test]
fn two_snapshots_tell_what_happened_between() {
    let (session, before) = python(
        "def run(*_):\n    global s; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n\
         \x20   os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '9999'); open('ran', 'w').write('x')\n\
         signal.signal(signal.SIGUSR1, run)\n\
         signal.signal(signal.SIGUSR2, lambda *_: os.execlp('sleep', 'sleep', '9998'))\n\
         pause = signal.pause\ndef forever():\n    while True: pause()\nsignal.pause = forever",
    );
    let python = last(&before).id;
    let signal = |signal| {
        rustix::process::kill_process(rustix::process::Pid::from_raw(python.pid as i32).unwrap(), signal).unwrap();
    };
    assert_eq!(diff(&before, &before).started, []);
    signal(rustix::process::Signal::USR1);
    eventually("the listener", || (session.size("ran") > 0).then_some(()));
    let middle = snapshot(session.keeper.id(), Depth::Full, None, &Spared::default()).unwrap();
    let first = diff(&before, &middle);
    assert_eq!(
        (first.started.len(), first.ended.len(), first.opened.len(), first.listening.len()),
        (1, 0, 1, 1),
        "{first:?}"
    );
    kill(first.started[0].pid);
    signal(rustix::process::Signal::USR2);
    let after = eventually("the exec", || {
        let graph = snapshot(session.keeper.id(), Depth::Full, None, &Spared::default()).unwrap();
        let second = diff(&middle, &graph);
        // In the middle of an exec a process has no arguments.
        let told = second.changed.len() == 1 && !second.changed[0].after.is_empty();
        (told && second.ended.len() == 1).then_some(graph)
    });
    let second = diff(&middle, &after);
    assert_eq!(
        (second.changed[0].process, second.changed[0].after.as_slice()),
        (python, &["sleep".to_owned(), "9998".to_owned()][..])
    );
    assert_eq!((second.ended, second.closed.len(), second.no_longer_listening.len()), (first.started, 1, 1));
}

#[test]
fn what_is_too_much_is_counted() {
    let (_session, graph) = python(
        "then = \"open('ready', 'w').write('x'); import signal; signal.pause()\"\n\
         os.execv(sys.executable, ['python3', '-c', then, 'y' * 10000])",
    );
    let long = last(&graph);
    assert!(long.argv_cut && long.argv.concat().len() <= 4096, "{:?}", long.argv);
    let (_session, graph) = python(
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (6000, 6000))\nfor _ in range(5000): os.dup(1)",
    );
    let many = last(&graph);
    assert_eq!(many.fds.len(), 4096);
    assert!(many.more_fds > 900 && graph.partial, "{}", many.more_fds);
}

#[test]
fn the_foreground_is_marked() {
    let mut pty = Pty::bash();
    pty.types("sleep 9999\n");
    let graph = eventually("the job", || {
        let graph = snapshot(std::process::id(), Depth::Processes, Some(&pty.facts()), &Spared::default()).unwrap();
        graph
            .processes
            .iter()
            .any(|process| process.foreground == Some(true) && process.comm == "sleep")
            .then_some(graph)
    });
    let shell = graph.processes.iter().find(|process| process.pid == pty.shell.id()).unwrap();
    assert_eq!((shell.foreground, shell.parent), (Some(false), None));
}

/// A look as another user has it, who may not know what these processes hold. As root: it becomes nobody, in a thread.
fn as_nobody<T: Send>(look: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let looked = scope.spawn(|| {
            let nobody = rustix::process::Uid::from_raw(65_534);
            // Of this thread alone: the others go on as root.
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            look()
        });
        looked.join().unwrap()
    })
}

#[test]
fn what_may_not_be_read_is_said_to_be_unknown_and_never_guessed() {
    let (session, seen) = python("a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()");
    let keeper = session.keeper.id();
    let graph = as_nobody(|| snapshot(keeper, Depth::Full, None, &Spared::default())).unwrap();
    assert_eq!(
        graph.processes.iter().map(|process| process.id).collect::<Vec<_>>(),
        seen.processes.iter().map(|process| process.id).collect::<Vec<_>>()
    );
    let (theirs, ours) = (last(&graph), last(&seen));
    assert!(theirs.unknown && graph.partial && !ours.unknown);
    assert_eq!((theirs.exe.as_ref(), theirs.cwd.as_ref(), theirs.fds.len()), (None, None, 0));
    assert_eq!((&theirs.argv, theirs.started_ms / 1000), (&ours.argv, ours.started_ms / 1000), "these anyone may read");
    assert_eq!((ports(&graph).len(), ports(&seen).len()), (0, 1));
}

#[test]
fn who_vanishes_while_it_is_read_spoils_nothing() {
    let session = Session::shell(How::Signals, "sleep 9999 & while :; do (:) & (:); done");
    let mut comings = std::collections::HashSet::new();
    // As long as it takes until enough have come and gone: on a busy machine the shell is seldom on.
    let mut looks = 0;
    eventually("they come and go", || {
        looks += 1;
        let graph = snapshot(session.keeper.id(), Depth::Full, None, &Spared::default()).unwrap();
        comings.extend(graph.processes.iter().map(|process| process.id));
        for process in &graph.processes {
            assert!(process.started_ms <= graph.at_ms + 1000 && process.id.pid == process.pid, "{process:?}");
        }
        (looks >= 200 && comings.len() > 20).then_some(())
    });
}
