//! Histories as JSON lines: one event a line, with the flow, the history's number under its id, and the event's number.
//!
//! What ended long ago is written to files like that before it is removed, where a directory for them is configured.

use crate::store::Old;
use holdfast_flow::{Flow, Recorded};
use holdfast_store::Survives;
use holdfast_types::TimeMs;
use serde::Serialize;
use std::io;
use std::path::Path;

/// One event as a line.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// The flow.
    pub flow: &'a str,
    /// Which history under its id, from 1.
    pub generation: u32,
    /// Which event of it, from 0.
    pub seq: u64,
    /// What happened, and when.
    #[serde(flatten)]
    pub recorded: &'a Recorded,
}

/// A history as lines.
pub fn lines(flow: &str, generation: u32, history: &[Recorded]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    for (seq, recorded) in (0..).zip(history) {
        serde_json::to_writer(&mut out, &Line { flow, generation, seq, recorded })?;
        out.push(b'\n');
    }
    Ok(out)
}

/// The lines of a flow's row: an older history has its number behind the id.
pub fn lines_of(old: &Old, history: &[Recorded]) -> io::Result<Vec<u8>> {
    match old.id.split_once('@').and_then(|(id, number)| Some((id, number.parse().ok()?))) {
        Some((id, generation)) => lines(id, generation, history),
        None => lines(&old.id, Flow::replay(&old.id, history).generation, history),
    }
}

/// Writes a file of the archive, which is there whole or not at all.
pub fn write(dir: &Path, now_ms: TimeMs, number: u32, lines: &[u8]) -> io::Result<()> {
    holdfast_store::make_dir(dir)?;
    holdfast_store::replace(dir, format!("flows-{now_ms}-{number}.jsonl"), lines, Survives::PowerCut)
}
