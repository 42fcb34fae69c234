//! `holdfast ps`, `holdfast ports`: processes and ports of one session or of all, as tables.

use super::{get, starter, starters};
use crate::args::MaybeSessionArg;
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{columns, command_line, now_ms, print, print_json, span, table, visible};
use holdfast_graph::{Depth, Known, ProcessNode, SocketKind};
use holdfast_types::TimeMs;
use holdfast_wire::graphs::{GraphAnswer, PortView, PortsParams};
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, ListParams};

/// `holdfast ps`.
pub fn ps(here: &Here, args: &MaybeSessionArg) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let graphs = match &args.session {
        Some(session) => vec![get(&mut link, session, Depth::Processes)?],
        None => all(&mut link)?,
    };
    if here.json {
        print_json(&graphs)?;
    } else {
        print(processes(&graphs, now_ms(), columns()))?;
    }
    Ok(0)
}

fn all(link: &mut Link<'_>) -> Result<Vec<GraphAnswer>, Failure> {
    let mut sessions = link.call::<op::List>(&ListParams { all: false })?;
    sessions.retain(|session| session.life == Life::Running);
    sessions.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
    let mut graphs = Vec::new();
    for session in sessions {
        match get(link, &session.id.to_string(), Depth::Processes) {
            Ok(graph) => graphs.push(graph),
            // It ended meanwhile.
            Err(failure) if failure.is("ended") => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(graphs)
}

fn processes(graphs: &[GraphAnswer], now: TimeMs, width: Option<usize>) -> String {
    let head =
        ["SESSION", "PID", "PARENT", "S", "CPU", "MEM", "AGE", "BY", "KNOWN", "COMMAND"].map(str::to_owned).to_vec();
    let mut rows = vec![head];
    for answer in graphs {
        let started = starters(&answer.bindings);
        for process in &answer.graph.processes {
            let mark = if process.foreground == Some(true) { "+" } else { "" };
            rows.push(vec![
                visible(answer.name.as_str()),
                process.pid.to_string(),
                process.parent_pid.to_string(),
                format!("{}{mark}", visible(&process.state.to_string())),
                format!("{:.1}s", process.cpu_ms as f64 / 1000.0),
                mebibytes(process.rss_bytes),
                span(now.saturating_sub(process.started_ms)),
                started.get(&process.id).map_or_else(|| "unknown".to_owned(), |binding| starter(binding)),
                started.get(&process.id).map_or(Known::Unknown, |binding| binding.by).word().to_owned(),
                command(process),
            ]);
        }
    }
    lines(&rows, width)
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1}M", bytes as f64 / f64::from(1 << 20))
}

/// A process's words, or its name where there are none: `[name]` as ps(1) writes it.
pub(super) fn command(process: &ProcessNode) -> String {
    if process.argv.is_empty() { format!("[{}]", visible(&process.comm)) } else { command_line(&process.argv) }
}

fn lines(rows: &[Vec<String>], width: Option<usize>) -> String {
    table(rows, width).iter().map(|line| format!("{line}\n")).collect()
}

/// `holdfast ports`.
pub fn ports(here: &Here, args: &MaybeSessionArg) -> Result<u8, Failure> {
    let mut ports = here.link()?.call::<op::Ports>(&PortsParams { session: args.session.clone() })?;
    ports.sort_by(|a, b| {
        (a.port.address.port(), &a.name, a.port.socket).cmp(&(b.port.address.port(), &b.name, b.port.socket))
    });
    if here.json {
        print_json(&ports)?;
    } else if ports.is_empty() {
        print("no listening ports\n")?;
    } else {
        print(open(&ports, now_ms(), columns()))?;
    }
    Ok(0)
}

fn open(ports: &[PortView], now: TimeMs, width: Option<usize>) -> String {
    let head = ["ADDRESS", "KIND", "SESSION", "PID", "SINCE", "BY", "KNOWN", "COMMAND"].map(str::to_owned).to_vec();
    let row = |view: &PortView| {
        vec![
            view.port.address.to_string(),
            kind(view.port.kind).to_owned(),
            visible(view.name.as_str()),
            view.process.map_or_else(|| "-".to_owned(), |process| process.pid.to_string()),
            view.since_ms.map_or_else(|| "-".to_owned(), |since| span(now.saturating_sub(since))),
            view.actor.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string),
            view.by.word().to_owned(),
            command_line(&view.argv),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(ports.iter().map(row)).collect();
    lines(&rows, width)
}

/// As people call it.
pub fn kind(kind: SocketKind) -> &'static str {
    match kind {
        SocketKind::Stream => "tcp",
        SocketKind::Dgram => "udp",
        SocketKind::Seqpacket => "seqpacket",
    }
}
