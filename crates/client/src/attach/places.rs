//! What a terminal has seen: which sessions were attached to it, and how much of their history is in its scrollback.
//!
//! A file per terminal in the run directory, which goes with the machine's end as terminals do. A terminal is known by its device, and by
//! when that was made: its number goes to another terminal soon. Whatever is in doubt (no terminal device, an unreadable file, another
//! host's counting) means a terminal that has nothing, which gets all lines again.

use holdfast_store::{Survives, TERMINAL, get_json, make_dir, put_json};
use holdfast_types::SessionId;
use holdfast_wire::turns::HistoryPlace;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Sessions remembered for a terminal: more than a person moves between.
const SESSIONS_MAX: usize = 64;
/// Terminals remembered: more than anybody has open, and little to look through.
const TERMINALS_MAX: usize = 64;

/// What this terminal has seen.
#[derive(Debug, Clone)]
pub struct Places {
    dir: PathBuf,
    /// The terminal's; none: it cannot be told from others.
    name: Option<String>,
    seen: Vec<Seen>,
}

/// One session, the latest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    session: SessionId,
    /// How much of its history is in the scrollback, where that is known.
    history: Option<HistoryPlace>,
}

impl Places {
    /// Of the terminal on standard output, kept in this directory.
    #[must_use]
    pub fn of_terminal(dir: &Path) -> Places {
        let name = terminal_name();
        let seen = name.as_ref().and_then(|name| get_json(&TERMINAL, &dir.join(name)).ok().flatten());
        Places { dir: dir.to_owned(), name, seen: seen.unwrap_or_default() }
    }

    /// This session was attached to this terminal before.
    #[must_use]
    pub fn knows(&self, session: SessionId) -> bool {
        self.seen.iter().any(|seen| seen.session == session)
    }

    /// How much of its history the terminal has.
    #[must_use]
    pub fn history(&self, session: SessionId) -> Option<HistoryPlace> {
        self.seen.iter().find(|seen| seen.session == session)?.history
    }

    /// Remembers what the terminal has. Where that cannot be written it is told the same again.
    pub fn remember(&mut self, session: SessionId, history: Option<HistoryPlace>) {
        let Some(name) = &self.name else { return };
        self.seen.retain(|seen| seen.session != session);
        self.seen.push(Seen { session, history });
        let excess = self.seen.len().saturating_sub(SESSIONS_MAX);
        self.seen.drain(..excess);
        if make_dir(&self.dir).is_err() {
            return;
        }
        // What stands there would be wrong from now on.
        if put_json(&TERMINAL, &self.dir, name, &self.seen, Survives::Crash).is_err() {
            let _ = std::fs::remove_file(self.dir.join(name));
        }
        forget_oldest(&self.dir);
    }
}

/// Device and time of making: no two terminals have the same.
fn terminal_name() -> Option<String> {
    let stdout = rustix::stdio::stdout();
    let stat = rustix::termios::isatty(stdout).then(|| rustix::fs::fstat(stdout).ok()).flatten()?;
    Some(format!("{:x}-{:x}-{:x}-{:x}.{:x}", stat.st_dev, stat.st_ino, stat.st_rdev, stat.st_ctime, stat.st_ctime_nsec))
}

/// Keeps the terminals that were used last.
fn forget_oldest(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let dated = |entry: std::fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let mut all: Vec<_> = entries.flatten().filter_map(dated).collect();
    all.sort();
    let excess = all.len().saturating_sub(TERMINALS_MAX);
    for (_, path) in all.drain(..excess) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(dir: &Path, name: &str) -> Places {
        let seen = get_json(&TERMINAL, &dir.join(name)).ok().flatten().unwrap_or_default();
        Places { dir: dir.to_owned(), name: Some(name.into()), seen }
    }

    #[test]
    fn a_terminal_is_remembered_and_another_one_knows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("terminals");
        let (one, two) = (SessionId::from_random_bits(1), SessionId::from_random_bits(2));
        let place = Some(HistoryPlace { count: 7, lines: 9 });
        places(&dir, "a").remember(one, place);
        places(&dir, "a").remember(two, None);
        let a = places(&dir, "a");
        assert_eq!((a.knows(one), a.history(one), a.knows(two), a.history(two)), (true, place, true, None));
        assert!(!places(&dir, "b").knows(one));
        std::fs::write(dir.join("a"), "damaged").unwrap();
        assert!(!places(&dir, "a").knows(one), "in doubt it knows nothing");
    }

    #[test]
    fn neither_sessions_nor_terminals_are_remembered_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut a = places(dir.path(), "a");
        for bits in 0..200 {
            a.remember(SessionId::from_random_bits(bits), None);
        }
        let a = places(dir.path(), "a");
        assert_eq!((a.seen.len(), a.knows(SessionId::from_random_bits(199))), (SESSIONS_MAX, true));
        for number in 0..100 {
            places(dir.path(), &format!("t{number}")).remember(SessionId::from_random_bits(1), None);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), TERMINALS_MAX);
    }
}
