//! A session's runs on disk: the file `runs`, a line of JSON for each change of one; the last line of a run is what holds.
//!
//! A line that cannot be read costs that change. The file is written anew when most of it is the past.

use super::{RUNS_MAX, Run};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const NAME: &str = "runs";
/// Length from which it is looked at whether most is the past: what the runs that are remembered need at most.
const FILE_BYTES_MAX: u64 = (RUNS_MAX * 3 * (super::COMMAND_SHOWN_BYTES_MAX + 1024)) as u64;

/// The runs of a session, oldest first.
pub fn load(dir: &Path) -> Vec<Run> {
    let text = std::fs::read(dir.join(NAME)).unwrap_or_default();
    let mut runs: Vec<Run> = Vec::new();
    for run in text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Run>(line).ok()) {
        match runs.iter_mut().find(|known| known.id == run.id) {
            Some(known) => *known = run,
            None => runs.push(run),
        }
    }
    while runs.len() > RUNS_MAX {
        // As it is forgotten in memory.
        let oldest = runs.iter().position(|run| run.key.is_none()).unwrap_or(0);
        runs.remove(oldest);
    }
    runs
}

/// Writes what changed.
pub fn append(dir: &Path, changed: &[Run]) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(dir.join(NAME))?;
    // After a write that failed halfway the line begins anew.
    let mut lines = if file.metadata()?.len() > 0 { b"\n".to_vec() } else { Vec::new() };
    for run in changed {
        serde_json::to_writer(&mut lines, run)?;
        lines.push(b'\n');
    }
    file.write_all(&lines)?;
    if file.metadata()?.len() > FILE_BYTES_MAX {
        let mut text = Vec::new();
        for run in load(dir) {
            serde_json::to_writer(&mut text, &run)?;
            text.push(b'\n');
        }
        crate::store::replace(dir, NAME, &text)?;
    }
    Ok(())
}
