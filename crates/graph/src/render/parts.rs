//! What both pictures are made of: words for amounts, badges for what a process holds, and who is below whom.

use std::collections::{HashMap, HashSet};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{
    End, FdKind, FdNode, Graph, PipeId, PipeNode, ProcessId, ProcessNode, SocketId, SocketKind, SocketNode,
    SocketState, Target,
};

/// Badges on one process: what is more is counted. A browser has hundreds of connections.
const BADGES_MAX: usize = 6;

/// Control characters, and those that turn the writing direction or take no room, as escapes that can be seen.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let hides = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || hides => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// A process's words, or its name where there are none: `[name]` as ps(1) writes it.
pub(super) fn command(process: &ProcessNode) -> String {
    if process.argv.is_empty() {
        return format!("[{}]", visible(&process.comm));
    }
    let mut text = visible(&process.argv.join(" "));
    if process.argv_cut {
        text.push('…');
    }
    text
}

/// The first columns of a text, with an ellipsis where something was cut.
pub(super) fn cut(text: &str, cols: usize) -> String {
    if text.width() <= cols {
        return text.to_owned();
    }
    let Some(room) = cols.checked_sub(1) else { return String::new() };
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= room
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// Three digits or so: `0.2s`, `59s`, `12m`, `3h`, `4d`.
pub(super) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..=9 => format!("{}.{}s", seconds, ms % 1000 / 100),
        10..=99 => format!("{seconds}s"),
        100..=5999 => format!("{}m", seconds / 60),
        6000..=359_999 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Three digits or so: `900K`, `4.2M`, `210M`, `1.5G`.
pub(super) fn size(bytes: u64) -> String {
    let mut value = bytes as f64 / 1024.0;
    for unit in ["K", "M", "G"] {
        if value < 1000.0 {
            return if value < 10.0 && unit != "K" { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1}T")
}

/// What a badge is about, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadgeKind {
    /// An open port or a listening unix socket.
    Listens,
    /// A connection or a pipe.
    Connects,
    /// A lock, or a file without a name.
    Holds,
    /// Something is not known.
    Unknown,
    /// What the caller says of it.
    Note,
}

/// One thing a process holds that is worth a word; its text is safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Badge {
    pub(super) kind: BadgeKind,
    pub(super) text: String,
}

/// What the caller has to say of processes: who started each.
pub type Notes = HashMap<ProcessId, String>;

/// The graph with what the pictures look up in it.
pub(super) struct Picture<'a> {
    pub(super) graph: &'a Graph,
    notes: &'a Notes,
    sockets: HashMap<SocketId, &'a SocketNode>,
    pipes: HashMap<PipeId, &'a PipeNode>,
    below: HashMap<Option<ProcessId>, Vec<&'a ProcessNode>>,
}

impl<'a> Picture<'a> {
    pub(super) fn new(graph: &'a Graph, notes: &'a Notes) -> Picture<'a> {
        let known: HashSet<ProcessId> = graph.processes.iter().map(|process| process.id).collect();
        let mut below: HashMap<Option<ProcessId>, Vec<&ProcessNode>> = HashMap::new();
        for process in &graph.processes {
            below.entry(process.parent.filter(|parent| known.contains(parent))).or_default().push(process);
        }
        Picture {
            graph,
            notes,
            sockets: graph.sockets.iter().map(|socket| (socket.id, socket)).collect(),
            pipes: graph.pipes.iter().map(|pipe| (pipe.id, pipe)).collect(),
            below,
        }
    }

    /// Every process with its depth and, for each level down to it, whether it is the last child there. Parents first;
    /// a graph that says of two processes that each is below the other has neither.
    pub(super) fn walk(&self) -> Vec<(&'a ProcessNode, Vec<bool>)> {
        let mut out = Vec::with_capacity(self.graph.processes.len());
        let mut stack: Vec<(&ProcessNode, Vec<bool>)> = Vec::new();
        let push = |stack: &mut Vec<_>, of: Option<ProcessId>, path: &[bool]| {
            for (at, child) in self.children(of).iter().rev().enumerate() {
                stack.push((*child, [path, &[at == 0]].concat()));
            }
        };
        push(&mut stack, None, &[]);
        while let Some((process, path)) = stack.pop() {
            push(&mut stack, Some(process.id), &path);
            out.push((process, path));
        }
        out
    }

    pub(super) fn children(&self, of: Option<ProcessId>) -> &[&'a ProcessNode] {
        self.below.get(&of).map_or(&[], Vec::as_slice)
    }

    /// What a process holds that is worth a word, the first few.
    pub(super) fn badges(&self, process: &ProcessNode) -> Vec<Badge> {
        let mut badges: Vec<Badge> = Vec::new();
        for badge in process.fds.iter().filter_map(|fd| self.badge(process, fd)) {
            if !badges.contains(&badge) {
                badges.push(badge);
            }
        }
        badges.sort_by_key(|badge| badge.kind as u8);
        if badges.len() > BADGES_MAX {
            let more = badges.len() - (BADGES_MAX - 1);
            badges.truncate(BADGES_MAX - 1);
            badges.push(Badge { kind: BadgeKind::Connects, text: format!("+{more}") });
        }
        if process.unknown {
            badges.push(Badge { kind: BadgeKind::Unknown, text: "descriptors unknown".to_owned() });
        }
        badges.extend(self.notes.get(&process.id).map(|note| Badge { kind: BadgeKind::Note, text: visible(note) }));
        badges
    }

    fn badge(&self, process: &ProcessNode, fd: &FdNode) -> Option<Badge> {
        if !fd.locks.is_empty() {
            return Some(Badge { kind: BadgeKind::Holds, text: format!("lock {}", file_name(fd)) });
        }
        if fd.deleted && fd.kind == FdKind::File {
            return Some(Badge { kind: BadgeKind::Holds, text: format!("deleted {}", file_name(fd)) });
        }
        match fd.target? {
            Target::Socket(id) => self.sockets.get(&id).and_then(|socket| self.socket(process, socket)),
            Target::Pipe(id) => {
                let pipe = self.pipes.get(&id).filter(|_| fd.write == Some(true))?;
                let reads = |end: Option<End>| matches!(end, Some(End::Read | End::Both));
                let to = pipe.ends.iter().find(|end| reads(end.end) && end.process != process.id)?;
                Some(Badge { kind: BadgeKind::Connects, text: format!("| {}", to.process.pid) })
            }
        }
    }

    fn socket(&self, process: &ProcessNode, socket: &SocketNode) -> Option<Badge> {
        let kind = match socket.kind {
            Some(SocketKind::Dgram) => "udp",
            Some(SocketKind::Stream | SocketKind::Seqpacket) | None => "tcp",
        };
        let listens = |text| Some(Badge { kind: BadgeKind::Listens, text });
        match (socket.state, socket.local, socket.remote) {
            (Some(SocketState::Listening), Some(local), _) => listens(format!("{kind} {local}")),
            (Some(SocketState::Unconnected), Some(local), _) if kind == "udp" && local.port() != 0 => {
                listens(format!("{kind} {local}"))
            }
            (Some(SocketState::Listening), None, _) => listens(format!("unix {}", visible(socket.path.as_deref()?))),
            (_, _, Some(remote)) => Some(Badge { kind: BadgeKind::Connects, text: format!("-> {remote}") }),
            (Some(SocketState::Established), None, None) => {
                let peer = self.sockets.get(&socket.peer?)?;
                let other = peer.holders.iter().find(|holder| **holder != process.id)?;
                Some(Badge { kind: BadgeKind::Connects, text: format!("-> {}", other.pid) })
            }
            _ if socket.elsewhere => {
                Some(Badge { kind: BadgeKind::Unknown, text: "sockets of another network".to_owned() })
            }
            (_, _, _) => None,
        }
    }
}

fn file_name(fd: &FdNode) -> String {
    visible(fd.path.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or_default())
}
