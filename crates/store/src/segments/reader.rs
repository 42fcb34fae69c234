//! Reading lines back, off the thread that writes them.

use super::{Lines, first, seq_of, whole_lines};
use std::io;
use std::path::{Path, PathBuf};

/// Reads lines that were written before it was made.
#[derive(Debug)]
pub struct Reader {
    pub(super) newest: u64,
    /// Lines of segments that are gone: a file, how much of it, and its last line's number.
    pub(super) older: Option<(PathBuf, u64, u64)>,
    /// Files and how much of each, the oldest first.
    pub(super) files: Vec<(PathBuf, u64)>,
}

impl Reader {
    /// Reads first what a file has of older segments, which has no line for every number.
    #[must_use]
    pub fn behind(self, path: PathBuf, bytes: u64, last: u64) -> Reader {
        Reader { older: Some((path, bytes, last)), ..self }
    }

    /// Whole lines behind number `after` (0: from the oldest kept), about `max_bytes` of them and at least one.
    pub fn read(&self, after: u64, max_bytes: usize) -> io::Result<Lines> {
        let newest = self.newest;
        let mut lines = Lines { from: newest + 1, to: newest, more: false, bytes: Vec::new() };
        if after >= newest {
            return Ok(lines);
        }
        if let Some((path, bytes, _)) = self.older.as_ref().filter(|(_, _, last)| after < *last) {
            let older = older_lines(path, *bytes, after, max_bytes)?;
            if !older.bytes.is_empty() {
                return Ok(older);
            }
        }
        // The last segment that begins at or before the line asked for; where that is gone, the oldest.
        let begins = |(path, _): &(PathBuf, u64)| first(path).is_some_and(|first| first <= after + 1);
        let start = self.files.iter().rposition(begins).unwrap_or(0);
        for (path, length) in &self.files[start..] {
            let bytes = match whole_lines(path, *length) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                let Some(seq) = seq_of(line).filter(|seq| *seq > after) else { continue };
                let (is_next, fits) = (seq == lines.to + 1, lines.bytes.len() + line.len() <= max_bytes);
                if lines.bytes.is_empty() {
                    lines.from = seq;
                } else if !is_next || !fits {
                    lines.more = true;
                    return Ok(lines);
                }
                lines.to = seq;
                lines.bytes.extend_from_slice(line);
            }
        }
        Ok(lines)
    }
}

/// Lines behind number `after` of a file that has no line for every number.
fn older_lines(path: &Path, length: u64, after: u64, max_bytes: usize) -> io::Result<Lines> {
    let bytes = whole_lines(path, length)?;
    let mut lines = Lines { from: after + 1, to: after, more: true, bytes: Vec::new() };
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(seq) = seq_of(line).filter(|seq| *seq > after) else { continue };
        if lines.bytes.is_empty() {
            lines.from = seq;
        } else if lines.bytes.len() + line.len() > max_bytes {
            break;
        }
        lines.to = seq;
        lines.bytes.extend_from_slice(line);
    }
    Ok(lines)
}
