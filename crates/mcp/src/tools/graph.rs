//! `graph` and `ports`: what really runs, and who listens where.

use super::{Hints, LOOKS, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_graph::{Binding, Bound, Depth, ProcessNode, SocketKind, SocketNode, SocketState};
use holdfast_wire::graphs::{GraphAnswer, GraphParams, PortView, PortsParams};
use holdfast_wire::operations::op;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Processes in one answer: more than any screen has, and a bounded number of bytes.
const PROCESSES_MAX: usize = 200;
/// Ports and connections in one answer.
const SOCKETS_MAX: usize = 200;
/// Characters of a command line.
const COMMAND_CHARS_MAX: usize = 300;

/// Which session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphIn {
    /// Name or id of the session. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
}

/// What runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GraphOut {
    /// The session.
    pub session: String,
    /// Its processes, parents before their children.
    pub processes: Vec<Process>,
    /// Its listening ports and connections.
    pub sockets: Vec<Socket>,
    /// So many processes more are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<usize>,
    /// Something is there that could not be read: another user's, or too much.
    pub partial: bool,
}

/// A process.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// How deep it is in the tree.
    #[serde(skip)]
    depth: usize,
    /// Its command line.
    pub command: String,
    /// `R` runs, `S` sleeps, `D` is in the kernel, `T` is stopped, `Z` is dead.
    pub state: char,
    /// It is in front: it has the terminal.
    pub foreground: bool,
    /// Its working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Processor time it has used.
    pub cpu_ms: u64,
    /// Memory it has resident.
    pub rss_bytes: u64,
    /// When it started, in milliseconds since the epoch.
    pub started_ms: u64,
    /// Whose act started it, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How that is known: `cgroup`, `lineage`, `time` or `unknown`.
    pub known: String,
}

/// A socket.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Socket {
    /// `listening`, `established`, `connecting`, `closing` or `unconnected`.
    pub state: String,
    /// `tcp` or `udp`.
    pub kind: String,
    /// Our address and port.
    pub local: String,
    /// The other side's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Who holds it.
    pub pids: Vec<u32>,
}

impl Shown for GraphOut {
    fn text(&self) -> String {
        let mut text = String::new();
        for process in &self.processes {
            let (indent, by) = ("  ".repeat(process.depth), process.by.as_deref().unwrap_or("?"));
            text.push_str(&format!("{:>7} {} {indent}{}  [{by}]\n", process.pid, process.state, process.command));
        }
        for socket in &self.sockets {
            let remote = socket.remote.as_ref().map(|remote| format!(" to {remote}")).unwrap_or_default();
            text.push_str(&format!(
                "{} {} {}{remote}, held by {:?}\n",
                socket.state, socket.kind, socket.local, socket.pids
            ));
        }
        if let Some(more) = self.more {
            text.push_str(&format!("and {more} more processes\n"));
        }
        text.trim_end().to_owned()
    }
}

/// A graph as it is answered.
pub fn shown(answer: &GraphAnswer) -> GraphOut {
    let graph = &answer.graph;
    let mut processes: Vec<Process> = Vec::new();
    for node in graph.processes.iter().take(PROCESSES_MAX) {
        let depth = node.parent.and_then(|parent| processes.iter().find(|known| known.pid == parent.pid));
        let depth = depth.map_or(0, |parent| parent.depth + 1);
        processes.push(process(node, depth, &answer.bindings));
    }
    GraphOut {
        session: answer.name.to_string(),
        processes,
        sockets: graph.sockets.iter().filter_map(socket).take(SOCKETS_MAX).collect(),
        more: graph.processes.len().checked_sub(PROCESSES_MAX).filter(|more| *more > 0),
        partial: graph.partial,
    }
}

fn process(node: &ProcessNode, depth: usize, bindings: &[Binding]) -> Process {
    let binding = bindings.iter().find(|binding| binding.of == Bound::Process(node.id));
    Process {
        pid: node.pid,
        parent: node.parent_pid,
        depth,
        command: command(&node.argv, &node.comm),
        state: node.state,
        foreground: node.foreground.unwrap_or(false),
        cwd: node.cwd.clone(),
        cpu_ms: node.cpu_ms,
        rss_bytes: node.rss_bytes,
        started_ms: node.started_ms,
        by: binding.and_then(|binding| binding.actor.as_ref()).map(|actor| actor.handle.to_string()),
        known: binding.map_or("unknown", |binding| binding.by.word()).into(),
    }
}

fn command(argv: &[String], name: &str) -> String {
    let words = argv.join(" ");
    let text = if words.is_empty() { format!("[{name}]") } else { words };
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(COMMAND_CHARS_MAX).collect()
}

fn kind(kind: SocketKind) -> &'static str {
    match kind {
        SocketKind::Stream => "tcp",
        SocketKind::Dgram => "udp",
        SocketKind::Seqpacket => "seqpacket",
    }
}

fn socket(node: &SocketNode) -> Option<Socket> {
    let state = match node.state? {
        SocketState::Listening => "listening",
        SocketState::Established => "established",
        SocketState::Connecting => "connecting",
        SocketState::Closing => "closing",
        SocketState::Unconnected => "unconnected",
    };
    Some(Socket {
        state: state.into(),
        kind: kind(node.kind?).into(),
        local: node.local?.to_string(),
        remote: node.remote.map(|remote| remote.to_string()),
        pids: node.holders.iter().map(|holder| holder.pid).collect(),
    })
}

/// The tool.
pub struct Graph;

impl Operate for Graph {
    const NAME: &'static str = "graph";
    const TITLE: &'static str = "Show a session's processes";
    const DESCRIPTION: &'static str = "Shows what runs in a session now, according to the operating system: every \
        process of its tree with command, state, directory and the act that started it, and its listening ports and \
        connections. Use this instead of relying on memory of what you started.";
    const HINTS: Hints = LOOKS;
    type In = GraphIn;
    type Out = GraphOut;

    async fn call<H: Host>(desk: &Desk<H>, input: GraphIn) -> Result<GraphOut, Trouble> {
        let session = desk.find_or_there(input.session.as_deref()).await?;
        let params = GraphParams { session: session.id.to_string(), depth: Depth::Sockets };
        Ok(shown(&desk.ask::<op::Graph>(params).await?))
    }
}

/// Whose ports.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortsIn {
    /// Name or id of the session. Omitted: all you may observe.
    #[serde(default)]
    session: Option<String>,
}

/// Ports.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PortsOut {
    /// Listening ports.
    ports: Vec<PortOut>,
}

/// A port.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PortOut {
    /// The port.
    port: u16,
    /// Address and port.
    address: String,
    /// `tcp` or `udp`.
    kind: String,
    /// In which session.
    session: String,
    /// The process that listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// Its command line.
    command: String,
    /// Whose act started it, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

impl From<&PortView> for PortOut {
    fn from(view: &PortView) -> PortOut {
        PortOut {
            port: view.port.address.port(),
            address: view.port.address.to_string(),
            kind: kind(view.port.kind).into(),
            session: view.name.to_string(),
            pid: view.process.map(|process| process.pid),
            command: command(&view.argv, "?"),
            by: view.actor.as_ref().map(|actor| actor.handle.to_string()),
        }
    }
}

impl Shown for PortsOut {
    fn text(&self) -> String {
        let line = |port: &PortOut| {
            let by = port.by.as_deref().unwrap_or("?");
            format!("{} {} in {}: {}  [{by}]", port.kind, port.address, port.session, port.command)
        };
        match self.ports.as_slice() {
            [] => "no listening ports".into(),
            ports => ports.iter().map(line).collect::<Vec<_>>().join("\n"),
        }
    }
}

/// The tool.
pub struct Ports;

impl Operate for Ports {
    const NAME: &'static str = "ports";
    const TITLE: &'static str = "Show listening ports";
    const DESCRIPTION: &'static str = "Shows listening ports, with their session, process and the act that started \
        each, in one session or in all. To wait for a server use `wait_for` {until: \"port:N\"}.";
    const HINTS: Hints = LOOKS;
    type In = PortsIn;
    type Out = PortsOut;

    async fn call<H: Host>(desk: &Desk<H>, input: PortsIn) -> Result<PortsOut, Trouble> {
        let views = desk.ask::<op::Ports>(PortsParams { session: input.session }).await?;
        Ok(PortsOut { ports: views.iter().take(SOCKETS_MAX).map(PortOut::from).collect() })
    }
}
