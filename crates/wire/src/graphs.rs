//! Parameters and answers about a session's live graph: its processes, what they hold, and what happens to them.

use holdfast_graph::{Binding, Depth, Graph, Known, Port, ProcessId, SocketKind};
use holdfast_types::doing::Doing;
use holdfast_types::{Actor, SessionId, SessionName, Size, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Which session's graph, and how much of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphParams {
    /// Name or id.
    pub session: String,
    /// How much is read; all of it where nothing is said.
    #[serde(default = "full")]
    pub depth: Depth,
}

fn full() -> Depth {
    Depth::Full
}

/// A session's graph, its terminal, and whose act started what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphAnswer {
    /// Whose.
    pub session: SessionId,
    /// Its name.
    pub name: SessionName,
    /// Its terminal.
    pub terminal: TerminalView,
    /// What the session is doing, and which process says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<Doing>,
    /// Processes, sockets, pipes.
    #[serde(flatten)]
    pub graph: Graph,
    /// The act that started each process and each socket, in the graph's order.
    pub bindings: Vec<Binding>,
}

/// A session's terminal. What only its keeper knows is not there where that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalView {
    /// Columns and rows.
    pub size: Size,
    /// The programs' output switched to the alternate screen.
    pub alternate_screen: bool,
    /// The process group that has the terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground: Option<u32>,
    /// Its modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<ModesView>,
}

/// A terminal's modes: termios(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModesView {
    /// Input comes by lines (`ICANON`).
    pub canonical: bool,
    /// What is typed shows (`ECHO`).
    pub echo: bool,
    /// `c_iflag`.
    pub iflag: u32,
    /// `c_oflag`.
    pub oflag: u32,
    /// `c_lflag`.
    pub lflag: u32,
    /// Bytes of input that no program has taken.
    pub unread: u32,
}

/// Whose ports.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortsParams {
    /// Name or id; none: those of every live session the caller may observe.
    #[serde(default)]
    pub session: Option<String>,
}

/// A listening port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortView {
    /// In which session.
    pub session: SessionId,
    /// Its name.
    pub name: SessionName,
    /// Socket, address, holders.
    #[serde(flatten)]
    pub port: Port,
    /// The oldest process that holds it.
    pub process: Option<ProcessId>,
    /// That one's words.
    pub argv: Vec<String>,
    /// Since when that process is there: the port is open since then or later, which the kernel does not tell.
    pub since_ms: Option<TimeMs>,
    /// Whose act started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// The act's number in the session's journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    /// How that is known.
    pub by: Known,
}

/// What happens to a session's processes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchGraphParams {
    /// Name or id.
    pub session: String,
    /// The `to` of the answer before; none: from now on, which is answered at once.
    #[serde(default)]
    pub after: Option<u64>,
    /// How long to wait for an event, at most.
    #[serde(default)]
    pub wait_ms: u64,
}

/// What happened since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchGraphAnswer {
    /// Oldest first.
    pub events: Vec<GraphEvent>,
    /// Ask after this one next.
    pub to: u64,
    /// Some events between the two are missing: the reader or the host was too slow, or no client watched. Take a new graph.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// How they are come by.
    pub how: HowWatched,
    /// The session has ended: nothing follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end: bool,
}

/// How events are come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HowWatched {
    /// The kernel tells of forks, execs and exits as they happen; sockets are looked for from time to time.
    Connector,
    /// Everything is looked for from time to time, more rarely while nothing happens: short lives are missed.
    Polling,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphEvent {
    /// Its number; grows, over hosts too.
    pub seq: u64,
    /// When the host learnt of it.
    pub at_ms: TimeMs,
    /// What.
    #[serde(flatten)]
    pub what: GraphNews,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum GraphNews {
    /// A process was made.
    Fork {
        /// The new one.
        pid: u32,
        /// Who made it.
        parent: u32,
    },
    /// A process became another program.
    Exec {
        /// Who.
        pid: u32,
        /// Its words now; empty where it was gone before they could be read.
        argv: Vec<String>,
    },
    /// A process ended.
    Exit {
        /// Who.
        pid: u32,
        /// Its status; none if the shell did not report it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<u8>,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<u8>,
    },
    /// A port is open.
    Listen {
        /// Which.
        #[serde(flatten)]
        port: Port,
    },
    /// A connection is there.
    Connect {
        /// Which.
        #[serde(flatten)]
        connection: ConnectionView,
    },
    /// A port is not open any more.
    NotListening {
        /// Which.
        #[serde(flatten)]
        port: Port,
    },
    /// A connection is over.
    Closed {
        /// Which.
        #[serde(flatten)]
        connection: ConnectionView,
    },
}

/// A connection of the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionView {
    /// `stream` is TCP, `dgram` is UDP.
    pub kind: SocketKind,
    /// Our address.
    pub local: SocketAddr,
    /// The other side's.
    pub remote: SocketAddr,
    /// Who holds the socket.
    pub holders: Vec<ProcessId>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_graph::SocketId;

    #[test]
    fn events_are_flat_and_come_back() {
        let port = Port {
            socket: SocketId(7),
            kind: SocketKind::Stream,
            address: "127.0.0.1:80".parse().unwrap(),
            holders: vec![ProcessId { pid: 9, start: 3 }],
        };
        let events = [
            GraphEvent { seq: 5, at_ms: 6, what: GraphNews::Listen { port } },
            GraphEvent { seq: 6, at_ms: 6, what: GraphNews::Exit { pid: 9, code: Some(1), signal: None } },
        ];
        let text = serde_json::to_string(&events).unwrap();
        assert_eq!(
            text,
            r#"[{"seq":5,"at_ms":6,"event":"listen","socket":"s7","kind":"stream","address":"127.0.0.1:80","holders":["p9-3"]},{"seq":6,"at_ms":6,"event":"exit","pid":9,"code":1}]"#
        );
        assert_eq!(serde_json::from_str::<Vec<GraphEvent>>(&text).unwrap(), events);
    }

    #[test]
    fn a_depth_that_is_not_known_is_refused() {
        let read = |text: &str| serde_json::from_str::<GraphParams>(text);
        assert_eq!(read(r#"{"session":"x"}"#).unwrap().depth, Depth::Full);
        assert_eq!(read(r#"{"session":"x","depth":"sockets"}"#).unwrap().depth, Depth::Sockets);
        assert!(read(r#"{"session":"x","depth":"abyss"}"#).unwrap_err().to_string().contains("abyss"));
    }
}
