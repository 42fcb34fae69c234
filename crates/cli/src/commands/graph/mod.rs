//! `holdfast graph`: a session's processes, what they hold, and whose act started each.

mod differ;
mod essence;
mod listed;
mod live;

pub use essence::Essence;
pub use listed::{kind, ports, ps};

use crate::args::GraphArgs;
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{columns, print, print_json, say, styled, visible};
use holdfast_graph::render::{self, Notes};
use holdfast_graph::{Binding, Bound, Depth, ProcessId};
use holdfast_types::doing::{Doing, Kind};
use holdfast_wire::graphs::{GraphAnswer, GraphParams};
use holdfast_wire::operations::op;
use std::collections::HashMap;
use std::path::Path;

/// Columns of a tree that is not shown on a terminal: wide enough for most commands, and no line without end.
const COLUMNS_DEFAULT: usize = 160;

/// `holdfast graph`.
pub fn graph(here: &Here, args: &GraphArgs) -> Result<u8, Failure> {
    if let [before, after] = args.diff.as_slice() {
        return differ::differ(here, before, after);
    }
    let mut link = here.link()?;
    let session = args.session.as_deref().unwrap_or_default();
    if args.watch {
        return live::watch(here, &mut link, session);
    }
    let answer = get(&mut link, session, Depth::Full)?;
    match &args.svg {
        Some(file) => draw(here, &answer, file)?,
        None if here.json => print_json(&answer)?,
        None => print(text(&answer, columns().unwrap_or(COLUMNS_DEFAULT), styled()))?,
    }
    Ok(0)
}

/// A session's graph now.
pub fn get(link: &mut Link<'_>, session: &str, depth: Depth) -> Result<GraphAnswer, Failure> {
    link.call::<op::Graph>(&GraphParams { session: session.to_owned(), depth })
}

fn draw(here: &Here, answer: &GraphAnswer, file: &Path) -> Result<(), Failure> {
    let svg = render::svg(&answer.graph, &notes(answer));
    if file == Path::new("-") {
        return print(svg);
    }
    std::fs::write(file, svg).map_err(|e| Failure::io(format!("cannot write {}", file.display()), e))?;
    if here.json {
        return print_json(&serde_json::json!({ "file": file }));
    }
    let drawn = match answer.graph.processes.len() {
        1 => "1 process is".to_owned(),
        count => format!("{count} processes are"),
    };
    say(&format!("{drawn} drawn in {}", file.display()));
    Ok(())
}

/// The terminal in a line, and the tree.
fn text(answer: &GraphAnswer, width: usize, styled: bool) -> String {
    let head = crate::show::cut(&terminal(answer), width);
    format!("{head}\n{}", render::tree(&answer.graph, &notes(answer), width, styled))
}

fn terminal(answer: &GraphAnswer) -> String {
    let terminal = &answer.terminal;
    let mut text = format!("{}  {}", visible(answer.name.as_str()), terminal.size);
    if let Some(modes) = terminal.modes {
        text.push_str(if modes.canonical { ", by lines" } else { ", by keys" });
        text.push_str(if modes.echo { ", echo" } else { ", no echo" });
    }
    if terminal.alternate_screen {
        text.push_str(", alternate screen");
    }
    text.push_str(&match answer.doing {
        Some(Doing::IdlePrompt { pid }) => format!("; {pid} waits at its prompt"),
        Some(Doing::Waiting { pid, kind: Kind::Password }) => format!("; {pid} waits for a password"),
        Some(Doing::Waiting { pid, .. } | Doing::FullScreen { pid }) => format!("; {pid} waits for input"),
        Some(Doing::Running { pid }) => format!("; {pid} runs"),
        Some(Doing::BlockedElsewhere { pid }) => format!("; {pid} waits for something else"),
        Some(Doing::Stopped { pid }) => format!("; {pid} is stopped"),
        Some(Doing::Unknown { .. }) | None => String::new(),
    });
    text
}

/// Who started each process, for the pictures.
fn notes(answer: &GraphAnswer) -> Notes {
    let who = starters(&answer.bindings);
    who.into_iter().map(|(id, binding)| (id, starter(binding))).collect()
}

fn starters(bindings: &[Binding]) -> HashMap<ProcessId, &Binding> {
    let of = |binding: &Binding| match binding.of {
        Bound::Process(id) => Some(id),
        Bound::Socket(_) => None,
    };
    bindings.iter().filter_map(|binding| Some((of(binding)?, binding))).collect()
}

/// Whose act it was.
fn starter(binding: &Binding) -> String {
    binding.actor.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string)
}
