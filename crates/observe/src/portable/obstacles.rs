//! What a checkpoint refuses, and what it cuts, from `/proc`: by process and descriptor, before anything is stopped.
//!
//! What CRIU cannot dump is known by kind. A kind that is not known here is refused too: a dump that succeeds and cannot be restored
//! would be worse.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use holdfast_graph::{
    Family, FdKind, FdNode, Graph, ProcessNode, SocketId, SocketKind, SocketNode, SocketState, Target,
};

/// Something that a checkpoint cannot keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The process.
    pub pid: u32,
    /// Its program.
    pub program: String,
    /// The descriptor, where it is one.
    pub fd: Option<u32>,
    /// What it is.
    pub what: String,
}

/// What a checkpoint would refuse, cut and disturb.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Obstacles {
    /// The session's processes.
    pub processes: usize,
    /// Why there can be none.
    pub refused: Vec<Obstacle>,
    /// Connections that the copy does not have.
    pub cut: Vec<Obstacle>,
    /// What else a person should know.
    pub noted: Vec<Obstacle>,
}

/// Obstacles of one kind that are told: a program with a thousand connections is told once in a while.
const TOLD_MAX: usize = 200;

/// Kinds of anonymous files that CRIU knows.
const KNOWN: [&str; 7] = ["[eventpoll]", "[eventfd]", "[timerfd]", "[signalfd]", "inotify", "[pidfd]", "[fanotify]"];
/// Character devices that hold nothing: null, zero, full, random, urandom, kmsg, `/dev/tty`, ptmx.
const PLAIN_DEVICES: [(u64, u64); 8] = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (1, 11), (5, 0), (5, 2)];
/// Slaves of pseudo-terminals.
const PTS_MAJORS: std::ops::RangeInclusive<u64> = 136..=143;
/// Protocols, as the kernel names them, that CRIU knows.
const PROTOCOLS: [&str; 8] = ["TCP", "TCPv6", "UDP", "UDPv6", "UNIX", "UNIX-STREAM", "NETLINK", "PACKET"];

/// What a checkpoint of this session would meet. `graph` is of full depth; `waits` is the keeper's child, which is not in the copy.
#[must_use]
pub fn obstacles(graph: &Graph, tree: super::Tree) -> Obstacles {
    let inside: Vec<&ProcessNode> = graph.processes.iter().filter(|process| process.pid != tree.waits).collect();
    let sockets: BTreeMap<SocketId, &SocketNode> = graph.sockets.iter().map(|socket| (socket.id, socket)).collect();
    let mut found = Found { all: Obstacles { processes: inside.len(), ..Obstacles::default() }, told: HashSet::new() };
    let own = namespaces(tree.init);
    for process in inside {
        found.process(process, &own);
        let mounts = mounts(process.pid);
        for fd in &process.fds {
            match fd.kind {
                FdKind::Anon => found.anonymous(process, fd),
                FdKind::Device | FdKind::Tty => found.device(process, fd, tree),
                FdKind::File | FdKind::Dir => found.file(process, fd, &mounts),
                FdKind::Socket => {
                    let socket = match fd.target {
                        Some(Target::Socket(id)) => sockets.get(&id),
                        _ => None,
                    };
                    found.socket(process, fd, socket.copied(), &sockets);
                }
                FdKind::Pipe | FdKind::Memfd => {}
                FdKind::Unknown => found.refuse(process, Some(fd.fd), "cannot be looked at".into()),
            }
        }
        if process.unknown || process.more_fds > 0 {
            found.refuse(process, None, "has descriptors that cannot be looked at".into());
        }
        found.memory(process);
    }
    found.all
}

struct Found {
    all: Obstacles,
    /// Sockets that were told: several processes may hold one.
    told: HashSet<SocketId>,
}

impl Found {
    fn refuse(&mut self, process: &ProcessNode, fd: Option<u32>, what: String) {
        tell(&mut self.all.refused, process, fd, what);
    }

    fn process(&mut self, process: &ProcessNode, own: &[(String, u64)]) {
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).map_or("0", str::trim);
        if tracer != "0" {
            self.refuse(process, None, format!("is traced by process {tracer}"));
        }
        for (kind, namespace) in namespaces(process.pid) {
            let is_own = own.iter().any(|(other, number)| *other == kind && *number == namespace);
            match kind.as_str() {
                _ if is_own => {}
                "mnt" => tell(&mut self.all.noted, process, None, "has mounts of its own".into()),
                kind => self.refuse(process, None, format!("is in a {kind} namespace of its own")),
            }
        }
        if process.state == 'D' {
            tell(&mut self.all.noted, process, None, "sleeps in the kernel, and may not stop in time".into());
        }
    }

    fn anonymous(&mut self, process: &ProcessNode, fd: &FdNode) {
        let path = fd.path.as_deref().unwrap_or_default();
        let kind = path.strip_prefix("anon_inode:").unwrap_or(path);
        let is_known = KNOWN.contains(&kind) || ["pidfd:", "pipe:", "net:", "mnt:"].iter().any(|k| path.starts_with(k));
        if !is_known {
            self.refuse(process, Some(fd.fd), kind.trim_matches(['[', ']']).to_owned());
        }
    }

    fn device(&mut self, process: &ProcessNode, fd: &FdNode, tree: super::Tree) {
        let Ok(file) = fs::metadata(format!("/proc/{}/fd/{}", process.pid, fd.fd)) else { return };
        let (major, minor) = (u64::from(rustix::fs::major(file.rdev())), u64::from(rustix::fs::minor(file.rdev())));
        let path = fd.path.as_deref().unwrap_or("a device");
        if file.file_type().is_block_device() {
            self.refuse(process, Some(fd.fd), format!("block device {path}"));
        } else if (major, minor) == (5, 0) && !has_first_terminal(process.pid) {
            self.refuse(process, Some(fd.fd), "/dev/tty of a terminal inside the session".into());
        } else if PTS_MAJORS.contains(&major) && !is_own_terminal(file.dev(), tree.init) {
            self.refuse(process, Some(fd.fd), format!("terminal {path} of somebody else"));
        } else if !PLAIN_DEVICES.contains(&(major, minor)) && !PTS_MAJORS.contains(&major) {
            self.refuse(process, Some(fd.fd), format!("device {path}"));
        }
    }

    fn file(&mut self, process: &ProcessNode, fd: &FdNode, mounts: &BTreeMap<u64, String>) {
        let info = fs::read_to_string(format!("/proc/{}/fdinfo/{}", process.pid, fd.fd)).unwrap_or_default();
        let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
        let path = fd.path.as_deref().unwrap_or_default();
        match id.map(|id: u64| mounts.get(&id)) {
            Some(None) if !fd.deleted => {
                self.refuse(process, Some(fd.fd), format!("{path} is on a mount that the session does not see"));
            }
            Some(Some(kind)) if kind.starts_with("fuse") || kind == "mqueue" => {
                self.refuse(process, Some(fd.fd), format!("{path} is on a {kind} file system"));
            }
            Some(_) | None => {}
        }
    }

    fn socket(
        &mut self,
        process: &ProcessNode,
        fd: &FdNode,
        socket: Option<&SocketNode>,
        all: &BTreeMap<SocketId, &SocketNode>,
    ) {
        let Some(socket) = socket.filter(|socket| self.told.insert(socket.id)) else { return };
        let peer = socket.peer.and_then(|peer| all.get(&peer));
        match (socket.kind, socket.state) {
            _ if socket.unknown || socket.elsewhere => {
                let protocol = socket.protocol.as_deref().unwrap_or("unknown");
                if !PROTOCOLS.contains(&protocol) {
                    self.refuse(process, Some(fd.fd), format!("{protocol} socket"));
                }
            }
            // A unix socket with both ends inside is kept.
            (_, Some(SocketState::Established | SocketState::Connecting))
                if socket.family == Some(Family::Unix) && peer.is_none_or(|peer| peer.holders.is_empty()) =>
            {
                let name = socket.path.as_deref().map_or_else(String::new, |name| format!(" ({name})"));
                self.refuse(process, Some(fd.fd), format!("unix socket to a process outside{name}"));
            }
            (_, _) if socket.family == Some(Family::Unix) => {}
            (
                Some(SocketKind::Stream),
                Some(SocketState::Established | SocketState::Connecting | SocketState::Closing),
            ) => {
                let address = |address: Option<std::net::SocketAddr>| {
                    address.map_or_else(|| "?".to_owned(), |address| address.to_string())
                };
                let within = if peer.is_some() { ", within the session" } else { "" };
                let what = format!("tcp {} to {}{within}", address(socket.local), address(socket.remote));
                tell(&mut self.all.cut, process, Some(fd.fd), what);
            }
            _ => {}
        }
    }

    /// Memory that is a device's, or sealed.
    fn memory(&mut self, process: &ProcessNode) {
        let maps = fs::read_to_string(format!("/proc/{}/smaps", process.pid)).unwrap_or_default();
        let mut mapping = "";
        for line in maps.lines() {
            let Some(flags) = line.strip_prefix("VmFlags:") else {
                let is_head = line.split_once('-').is_some_and(|(from, _)| u64::from_str_radix(from, 16).is_ok());
                mapping = if is_head { line.split_whitespace().nth(5).unwrap_or_default() } else { mapping };
                continue;
            };
            let is_kernels = ["[vvar", "[vdso", "[vsyscall"].iter().any(|own| mapping.starts_with(own));
            let has = |flag: &str| flags.split_whitespace().any(|one| one == flag);
            if !is_kernels && (has("io") || has("pf") || has("sl")) {
                self.refuse(process, None, format!("special memory: {mapping}"));
            }
        }
    }
}

fn tell(list: &mut Vec<Obstacle>, process: &ProcessNode, fd: Option<u32>, what: String) {
    if list.len() < TOLD_MAX {
        list.push(Obstacle { pid: process.pid, program: process.comm.clone(), fd, what });
    }
}

/// Kinds and numbers of a process's namespaces. Where its children would be is not asked: nobody is there.
fn namespaces(pid: u32) -> Vec<(String, u64)> {
    ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"]
        .into_iter()
        .filter_map(|kind| Some((kind.to_owned(), fs::metadata(format!("/proc/{pid}/ns/{kind}")).ok()?.ino())))
        .collect()
}

/// Whether a process's terminal is the session's.
fn has_first_terminal(pid: u32) -> bool {
    crate::waiting::terminal_of(pid) == Some((136, 0))
}

/// Whether a file lies on the session's own devpts.
fn is_own_terminal(device: u64, init: u32) -> bool {
    fs::metadata(format!("/proc/{init}/root/dev/pts")).is_ok_and(|own| own.dev() == device)
}

/// What a process has mounted: the number of each mount, and its kind of file system.
fn mounts(pid: u32) -> BTreeMap<u64, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let one = |line: &str| {
        let id = line.split(' ').next()?.parse().ok()?;
        Some((id, line.split(" - ").nth(1)?.split(' ').next()?.to_owned()))
    };
    text.lines().filter_map(one).collect()
}
