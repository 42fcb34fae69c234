//! Pictures of fixed graphs.

use super::*;
use crate::{
    Depth, End, FdKind, FdNode, Graph, Lock, LockKind, PipeEnd, PipeId, PipeNode, ProcessId, ProcessNode, SocketId,
    SocketKind, SocketNode, SocketState, Target,
};

fn process(pid: u32, parent: u32, state: char, argv: &[&str]) -> ProcessNode {
    let id = |pid| ProcessId { pid, start: u64::from(pid) };
    ProcessNode {
        id: id(pid),
        pid,
        parent: (parent != 1).then(|| id(parent)),
        parent_pid: parent,
        group: pid,
        session: 10,
        foreground: Some(pid == 12),
        started_ms: 0,
        state,
        comm: "name\n".to_owned(),
        argv: argv.iter().map(|&word| word.to_owned()).collect(),
        argv_cut: false,
        exe: None,
        cwd: None,
        cpu_ms: u64::from(pid) * 1234,
        rss_bytes: u64::from(pid) << 18,
        threads: 1,
        uid: Some(0),
        cgroup: None,
        fds: Vec::new(),
        more_fds: 0,
        unknown: false,
    }
}

fn fd(number: u32, kind: FdKind, target: Option<Target>) -> FdNode {
    FdNode {
        fd: number,
        kind,
        path: None,
        deleted: false,
        offset: None,
        read: Some(true),
        write: Some(true),
        append: None,
        locks: Vec::new(),
        target,
    }
}

fn socket(inode: u64, state: SocketState, local: &str, remote: Option<&str>, holder: u32) -> SocketNode {
    SocketNode {
        id: SocketId(inode),
        family: None,
        kind: Some(SocketKind::Stream),
        state: Some(state),
        protocol: None,
        local: Some(local.parse().unwrap()),
        remote: remote.map(|remote| remote.parse().unwrap()),
        path: None,
        peer: None,
        holders: vec![ProcessId { pid: holder, start: u64::from(holder) }],
        elsewhere: false,
        unknown: false,
    }
}

fn graph() -> Graph {
    let mut server = process(12, 10, 'S', &["node", "server.js", "--title", "a\x1b[31m<b>&\"'\u{202e}", "日本語"]);
    let listener = Target::Socket(SocketId(5));
    let client = Target::Socket(SocketId(6));
    let pipe = PipeId { inode: 7, device: None };
    server.fds = vec![fd(3, FdKind::Socket, Some(listener)), fd(4, FdKind::Socket, Some(client))];
    server.fds.push(FdNode {
        path: Some("/var/lib/db.lock".to_owned()),
        locks: vec![Lock { kind: LockKind::Flock, exclusive: true, start: 0, end: None }],
        ..fd(5, FdKind::File, None)
    });
    let mut writer = process(13, 12, 'R', &["yes"]);
    writer.fds = vec![fd(1, FdKind::Pipe, Some(Target::Pipe(pipe)))];
    let mut secret = process(15, 10, 'T', &["sudo", "less"]);
    secret.unknown = true;
    let end = |pid, end| PipeEnd { process: ProcessId { pid, start: u64::from(pid) }, fd: 0, end: Some(end) };
    Graph {
        at_ms: 1,
        depth: Depth::Full,
        processes: vec![
            process(10, 1, 'S', &["bash"]),
            process(11, 1, 'S', &["daemon", "--background"]),
            server,
            secret,
            writer,
            process(14, 12, 'Z', &[]),
        ],
        sockets: vec![
            socket(5, SocketState::Listening, "127.0.0.1:8080", None, 12),
            socket(6, SocketState::Established, "127.0.0.1:40000", Some("127.0.0.1:5432"), 12),
        ],
        pipes: vec![PipeNode { id: pipe, ends: vec![end(13, End::Write), end(11, End::Read)] }],
        partial: true,
    }
}

#[test]
fn the_tree_is_readable() {
    insta::assert_snapshot!(tree(&graph(), &Notes::new(), 110, false));
}

#[test]
fn a_note_stands_at_the_end_and_is_as_safe_as_the_rest() {
    let notes = Notes::from([(ProcessId { pid: 12, start: 12 }, "human:ann\x1b<".to_owned())]);
    let text = tree(&graph(), &notes, 200, true);
    let line = text.lines().find(|line| line.contains("server.js")).unwrap();
    assert!(line.ends_with("\x1b[2mhuman:ann\\u{1b}<\x1b[0m"), "{line:?}");
    assert!(svg(&graph(), &notes).contains("human:ann\\u{1b}&lt;"));
}

#[test]
fn the_tree_has_colours_if_asked() {
    insta::assert_snapshot!(tree(&graph(), &Notes::new(), 80, true).replace('\x1b', "ESC"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    use unicode_width::UnicodeWidthStr;
    for width in 0..200 {
        for line in tree(&graph(), &Notes::new(), width, false).lines() {
            assert!(line.width() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn nothing_a_program_calls_itself_reaches_the_terminal_raw() {
    let text = tree(&graph(), &Notes::new(), 500, false);
    assert!(text.contains("a\\u{1b}[31m<b>"), "{text}");
    assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
}

#[test]
fn the_svg_is_a_document_without_scripts() {
    let text = svg(&graph(), &Notes::new());
    assert!(text.contains("a\\u{1b}[31m&lt;b&gt;&amp;&quot;&#39;\\u{202e}"), "{text}");
    assert!(!text.contains("<script") && !text.contains("<b>") && !text.contains("href"));
    insta::assert_snapshot!(text);
}

#[test]
fn a_graph_of_nobody_and_one_of_a_circle_are_drawn() {
    let mut graph = graph();
    graph.processes[0].parent = Some(graph.processes[2].id);
    assert!(svg(&graph, &Notes::new()).ends_with("</svg>\n"));
    assert_eq!(tree(&graph, &Notes::new(), 80, false).lines().count(), 3, "heading, the daemon and that it is partial");
    graph.processes.clear();
    assert!(svg(&graph, &Notes::new()).ends_with("</svg>\n"));
}

#[test]
fn thousands_of_processes_are_cut_and_counted() {
    let mut graph = graph();
    graph.processes = (100..3100).map(|pid| process(pid, 1, 'S', &["x"])).collect();
    assert!(svg(&graph, &Notes::new()).contains("2000 more processes"));
    graph.processes = (100..3100).map(|pid| process(pid, if pid == 100 { 1 } else { pid - 1 }, 'S', &["x"])).collect();
    assert!(tree(&graph, &Notes::new(), 100, false).contains("(2999 deep)"));
}
