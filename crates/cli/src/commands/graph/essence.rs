//! What `holdfast info` says of a session's processes.

use super::get;
use super::listed::command;
use crate::here::Link;
use crate::show::command_line;
use holdfast_graph::{Depth, Graph, Port, ports};
use serde::Serialize;

/// The essentials of a graph.
#[derive(Debug, Clone, Serialize)]
pub struct Essence {
    /// How many processes there are.
    pub processes: usize,
    /// Ports that are open.
    pub ports: Vec<Port>,
    /// Who has the terminal; the first of its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground: Option<Foreground>,
}

/// A process that has the terminal.
#[derive(Debug, Clone, Serialize)]
pub struct Foreground {
    /// Its pid.
    pub pid: u32,
    /// Its words.
    pub argv: Vec<String>,
    #[serde(skip)]
    shown: String,
}

impl Essence {
    /// Of a session that runs; none where it cannot be seen.
    pub fn of(link: &mut Link<'_>, session: &str) -> Option<Essence> {
        Some(Essence::from(&get(link, session, Depth::Sockets).ok()?.graph))
    }

    /// Names and values.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("processes", self.processes.to_string())];
        if let Some(foreground) = &self.foreground {
            rows.push(("foreground", format!("{}, process {}", foreground.shown, foreground.pid)));
        }
        let listens = |port: &Port| format!("{} {}", super::listed::kind(port.kind), port.address);
        if !self.ports.is_empty() {
            rows.push(("listening", self.ports.iter().map(listens).collect::<Vec<_>>().join(", ")));
        }
        rows
    }
}

impl From<&Graph> for Essence {
    fn from(graph: &Graph) -> Essence {
        let first = graph.processes.iter().find(|process| process.foreground == Some(true));
        let foreground = first.map(|process| Foreground {
            pid: process.pid,
            argv: process.argv.clone(),
            shown: if process.argv.is_empty() { command(process) } else { command_line(&process.argv) },
        });
        Essence { processes: graph.processes.len(), ports: ports(graph), foreground }
    }
}
