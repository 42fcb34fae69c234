//! What a graph is made of: processes, their descriptors, pipes, sockets and open ports.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PipeId, ProcessId, SocketId, Target};

/// How much a snapshot reads; each includes the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// The processes: what `ps` shows.
    Processes,
    /// Their sockets too: what `ss -p` shows. Other descriptors are not listed.
    Sockets,
    /// All descriptors, with positions and locks: what `lsof` shows.
    Full,
}

/// A session at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Graph {
    /// When it was taken, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// How much was read.
    pub depth: Depth,
    /// Parents before their children.
    pub processes: Vec<ProcessNode>,
    /// By inode.
    pub sockets: Vec<SocketNode>,
    /// By inode.
    pub pipes: Vec<PipeNode>,
    /// Something is missing that is there: a limit cut it, or we may not read it. Its node says which.
    pub partial: bool,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessNode {
    /// Who it is.
    pub id: ProcessId,
    /// Its pid, as in the id.
    pub pid: u32,
    /// Its parent, unless that is the keeper.
    pub parent: Option<ProcessId>,
    /// The pid of its parent, the keeper's too.
    pub parent_pid: u32,
    /// Its process group.
    pub group: u32,
    /// Its kernel session.
    pub session: u32,
    /// Whether its group has the terminal; `None` if unknown.
    pub foreground: Option<bool>,
    /// When it started, in milliseconds since the Unix epoch, to a clock tick.
    pub started_ms: u64,
    /// `R` runs, `S` sleeps, `D` is in the kernel, `T` is stopped, `t` is traced, `Z` is dead.
    pub state: char,
    /// Its name: 15 bytes that it may change.
    pub comm: String,
    /// Its words, lossily decoded; empty for a zombie. A program may overwrite them.
    pub argv: Vec<String>,
    /// `argv` is only the first [`ARGV_BYTES_MAX`] bytes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub argv_cut: bool,
    /// Its program. The kernel appends ` (deleted)` to one that was replaced.
    pub exe: Option<String>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Processor time it has used, in the kernel and out of it.
    pub cpu_ms: u64,
    /// Memory it has resident; what is shared counts for each.
    pub rss_bytes: u64,
    /// Its threads.
    pub threads: u32,
    /// Its effective user.
    pub uid: Option<u32>,
    /// Its cgroup in the unified hierarchy.
    pub cgroup: Option<String>,
    /// Its descriptors in ascending order, as far as [`Depth`] goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fds: Vec<FdNode>,
    /// Descriptors there are beyond [`FDS_MAX`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_fds: u32,
    /// We may not see its descriptors.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unknown: bool,
}

/// What a descriptor is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FdKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A pipe, named or not.
    Pipe,
    /// A socket.
    Socket,
    /// A terminal.
    Tty,
    /// A file in memory without a name.
    Memfd,
    /// Something of the kernel's: epoll, eventfd, pidfd.
    Anon,
    /// A device that is no terminal.
    Device,
    /// We may not know.
    Unknown,
}

/// One open descriptor of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FdNode {
    /// Its number.
    pub fd: u32,
    /// What it is of.
    pub kind: FdKind,
    /// Its path, or the kernel's name for what has none; nothing for sockets and unnamed pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The file has no name any more; its space goes when the last descriptor does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deleted: bool,
    /// Where in a regular file it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Open for reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<bool>,
    /// Open for writing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<bool>,
    /// Writes go to the end; read for regular files only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<bool>,
    /// Locks held through it, the first [`LOCKS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Lock>,
    /// The socket or pipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
}

/// A lock on a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Which kind.
    pub kind: LockKind,
    /// Exclusive: a write lock.
    pub exclusive: bool,
    /// First byte.
    pub start: u64,
    /// Last byte; `None` is the end of the file, wherever that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
}

/// Who made a lock, and what it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// By flock(2).
    Flock,
    /// By fcntl(2), of the process.
    Posix,
    /// By fcntl(2), of the open file.
    Ofd,
    /// A lease, or what else the kernel lists.
    Other,
}

/// A pipe and who of the session holds its ends. Others may hold it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipeNode {
    /// Which one.
    pub id: PipeId,
    /// Its ends, in the order of processes.
    pub ends: Vec<PipeEnd>,
}

/// One descriptor on a pipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipeEnd {
    /// Whose.
    pub process: ProcessId,
    /// Which of its descriptors.
    pub fd: u32,
    /// Which end; `None` if we may not know.
    pub end: Option<End>,
}

/// An end of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// What is written comes out here.
    Read,
    /// What is written goes in here.
    Write,
    /// A named pipe that was opened for both.
    Both,
}

/// A socket's address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    Inet,
    /// IPv6, which may take IPv4 too.
    Inet6,
    /// On this machine.
    Unix,
}

/// How a socket carries bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SocketKind {
    /// TCP, or a unix stream.
    Stream,
    /// UDP, or unix datagrams.
    Dgram,
    /// Unix packets over a connection.
    Seqpacket,
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SocketState {
    /// Takes connections.
    Listening,
    /// Connected; a UDP socket with a fixed peer too.
    Established,
    /// Asked for a connection.
    Connecting,
    /// One side has closed, or both and the last packets are on their way.
    Closing,
    /// Neither: a UDP socket that takes from anyone, or a stream that is not connected.
    Unconnected,
}

/// One socket and who of the session holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketNode {
    /// Which one.
    pub id: SocketId,
    /// Its family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<SocketKind>,
    /// Its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SocketState>,
    /// The kernel's name for its protocol (`TCP`, `NETLINK`), known even where its state is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Our address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<SocketAddr>,
    /// The other side's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<SocketAddr>,
    /// The path of a unix socket; an abstract one starts with `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The other side, where it is a socket of this machine that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<SocketId>,
    /// Who holds it, in the order of processes, each once.
    pub holders: Vec<ProcessId>,
    /// It is in another network namespace, which we do not ask about.
    #[serde(default, skip_serializing_if = "is_false")]
    pub elsewhere: bool,
    /// The kernel did not tell its state: it is elsewhere, neither bound nor connected, or of a family that we do not
    /// ask about.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unknown: bool,
}

/// A port that somebody takes connections or datagrams at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Port {
    /// The socket.
    pub socket: SocketId,
    /// `stream` is TCP, `dgram` is UDP.
    pub kind: SocketKind,
    /// Address and port.
    #[serde(alias = "local")]
    pub address: SocketAddr,
    /// Who holds the socket.
    pub holders: Vec<ProcessId>,
}

/// Processes listed at most. A session with more is a fork bomb, and its picture is useless.
pub const PROCESSES_MAX: usize = 20_000;

/// Descriptors listed for one process at most: four times the usual limit of 1024. A proxy with a million connections
/// is not a list to read.
pub const FDS_MAX: usize = 4096;

/// Bytes of `argv` kept: a page, which is all that ps(1) once showed. Some build tools pass 100 KiB to each child.
pub const ARGV_BYTES_MAX: usize = 4096;

/// Locks kept for one descriptor: databases hold a handful, and people read no more.
pub const LOCKS_MAX: usize = 16;

/// The TCP and UDP ports that are open, by port.
///
/// A UDP socket counts if it is bound and takes from anyone. Sockets in other network namespaces are not known.
pub fn ports(graph: &Graph) -> Vec<Port> {
    let mut ports: Vec<Port> = graph.sockets.iter().filter_map(port).collect();
    ports.sort_by_key(|port| (port.address.port(), port.address.ip(), port.socket));
    ports
}

fn port(socket: &SocketNode) -> Option<Port> {
    let local = socket.local.filter(|local| local.port() != 0)?;
    let kind = socket.kind?;
    let is_open = match (kind, socket.state?) {
        (SocketKind::Stream, SocketState::Listening) | (SocketKind::Dgram, SocketState::Unconnected) => true,
        (SocketKind::Stream | SocketKind::Dgram | SocketKind::Seqpacket, _) => false,
    };
    is_open.then(|| Port { socket: socket.id, kind, address: local, holders: socket.holders.clone() })
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}
