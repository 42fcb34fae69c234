//! `holdfast graph --diff`: what changed between two graphs that were saved.

use super::listed::{command, kind};
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{command_line, print, print_json, span, visible};
use holdfast_graph::{Graph, GraphDiff, Port, ProcessId, SocketId, diff};
use holdfast_wire::graphs::GraphAnswer;
use std::path::Path;

/// Largest file that is read: what a host sends at most.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(super) fn differ(here: &Here, before: &Path, after: &Path) -> Result<u8, Failure> {
    let (before, after) = (load(before)?, load(after)?);
    if before.session != after.session {
        let message = format!("these graphs are from different sessions: {} and {}", before.session, after.session);
        return Err(Failure::new("other_session", visible(&message)));
    }
    let changes = diff(&before.graph, &after.graph);
    if here.json {
        print_json(&changes)?;
    } else {
        print(text(&changes, &before.graph, &after.graph))?;
    }
    Ok(0)
}

fn load(path: &Path) -> Result<GraphAnswer, Failure> {
    let failed = |error: std::io::Error| Failure::io(format!("cannot read {}", path.display()), error);
    if std::fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(no_graph(path, "it is too large"));
    }
    let text = std::fs::read(path).map_err(failed)?;
    serde_json::from_slice(&text).map_err(|error| no_graph(path, &error.to_string()))
}

fn no_graph(path: &Path, why: &str) -> Failure {
    Failure::new("no_graph", format!("{} is not a graph: {why}", path.display()))
        .hint("save one with: holdfast graph NAME --json > FILE")
}

fn text(changes: &GraphDiff, before: &Graph, after: &Graph) -> String {
    let mut lines = Vec::new();
    let process = |graph: &Graph, id: ProcessId| {
        let node = graph.processes.iter().find(|node| node.id == id);
        format!("{} {}", id.pid, node.map(command).unwrap_or_default())
    };
    lines.extend(changes.started.iter().map(|id| format!("+ process {}", process(after, *id))));
    lines.extend(changes.ended.iter().map(|id| format!("- process {}", process(before, *id))));
    lines.extend(changes.changed.iter().map(|exec| {
        format!("~ process {} {} -> {}", exec.process.pid, command_line(&exec.before), command_line(&exec.after))
    }));
    let port = |port: &Port| format!("port {} {}", kind(port.kind), port.address);
    lines.extend(changes.listening.iter().map(|open| format!("+ {}", port(open))));
    lines.extend(changes.no_longer_listening.iter().map(|open| format!("- {}", port(open))));
    lines.extend(changes.opened.iter().filter_map(|id| Some(format!("+ {}", connection(after, *id)?))));
    lines.extend(changes.closed.iter().filter_map(|id| Some(format!("- {}", connection(before, *id)?))));
    if lines.is_empty() {
        lines.push("nothing changed".to_owned());
    }
    if changes.partial {
        lines.push("one of the graphs is incomplete: a difference may only be missing data".to_owned());
    }
    let over = span(changes.to_ms.saturating_sub(changes.from_ms));
    format!("within {over}:\n{}\n", lines.join("\n"))
}

/// A socket that is connected.
fn connection(graph: &Graph, id: SocketId) -> Option<String> {
    let socket = graph.sockets.iter().find(|socket| socket.id == id)?;
    let holder = socket.holders.first().map_or_else(String::new, |holder| format!(" of {}", holder.pid));
    Some(format!("connection {} -> {}{holder}", socket.local?, socket.remote?))
}
