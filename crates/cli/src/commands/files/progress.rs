//! How far a transfer is, on a person's terminal: nothing for short ones, and nothing where nobody looks.

use crate::show::{bytes, columns, cut, visible};
use rustix::termios::isatty;
use std::io::Write;
use std::time::{Duration, Instant};

/// Transfers that are over sooner are not worth a line.
const QUIET: Duration = Duration::from_millis(700);
/// Between two lines.
const EVERY: Duration = Duration::from_millis(100);
const BAR_COLUMNS: u64 = 24;

/// A transfer.
#[derive(Debug)]
pub struct Progress {
    name: String,
    size: u64,
    from: u64,
    began: Instant,
    shown: Option<Instant>,
    is_watched: bool,
}

impl Progress {
    /// One that goes on from `from`.
    pub fn new(name: &str, size: u64, from: u64, json: bool) -> Progress {
        let is_watched = !json && isatty(rustix::stdio::stderr());
        Progress { name: visible(name), size, from, began: Instant::now(), shown: None, is_watched }
    }

    /// So much is there.
    pub fn at(&mut self, done: u64) {
        let is_due = self.shown.map_or(self.began.elapsed() >= QUIET, |shown| shown.elapsed() >= EVERY);
        if !self.is_watched || !is_due {
            return;
        }
        self.shown = Some(Instant::now());
        let line = line(&self.name, self.size, done, done.saturating_sub(self.from), self.began.elapsed());
        let line = cut(&line, columns().unwrap_or(80).saturating_sub(1));
        let _ = write!(std::io::stderr(), "\r{line}\u{1b}[K");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

fn line(name: &str, size: u64, done: u64, moved: u64, took: Duration) -> String {
    let share = |of: u64| done.min(size).saturating_mul(of).checked_div(size).unwrap_or(of);
    let full = share(BAR_COLUMNS) as usize;
    let bar = "#".repeat(full) + &"-".repeat(BAR_COLUMNS as usize - full);
    let speed = (moved as f64 / took.as_secs_f64().max(0.001)) as u64;
    format!("{:>3}% [{bar}] {} of {}, {}/s  {name}", share(100), bytes(done), bytes(size), bytes(speed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is_and_how_fast() {
        let text = line("a.bin", 2048, 1024, 512, Duration::from_secs(1));
        assert!(text.starts_with(" 50% [############------------] ") && text.ends_with("a.bin"), "{text}");
        assert!(line("empty", 0, 0, 0, Duration::ZERO).starts_with("100%"));
    }
}
