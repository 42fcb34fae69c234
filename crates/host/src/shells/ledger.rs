//! Who changed what of a shell since it started: what it started with, what it is made of now, and the last changer of
//! each name that is not as it was.
//!
//! A name that is what it was again is nobody's change any more, whoever put it back. Pure: states in, lines out, and from
//! those lines the same ledger again. A line that cannot be read costs what it said.

use super::state::{Category, Change, State, diff};
use holdfast_types::TimeMs;
use holdfast_wire::env::{Changed, EnvEntry};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the working directory is called.
pub const CWD: &str = "cwd";

/// Lines are written anew when so many names in them are the past, beside as many as are not: a few hundred prompts.
const PAST_NAMES_MAX: usize = 1024;

type Key = (Category, String);

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What it started with, or what of that was told later.
    Start {
        /// When.
        at_ms: TimeMs,
        /// What the key makes of nothing: hashes of another key say nothing.
        check: u64,
        /// There are more.
        #[serde(default)]
        cut: bool,
        /// Names and hashes.
        names: Vec<(Category, String, u64)>,
    },
    /// What an act changed.
    Changed {
        /// By what.
        by: Changed,
        /// There are more names than are kept.
        #[serde(default)]
        cut: bool,
        /// Names and hashes; no hash: it is gone.
        names: Vec<(Category, String, Option<u64>)>,
    },
}

/// What became of a shell.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    since_ms: Option<TimeMs>,
    check: u64,
    start: BTreeMap<Key, u64>,
    now: State,
    changed: BTreeMap<Key, Arc<Changed>>,
    /// Names in lines of changes, whatever became of them.
    told: usize,
}

/// What is new in a state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct News {
    /// What it started with.
    start: Vec<(Category, String, u64)>,
    /// What the last act changed.
    changes: Vec<Change>,
    /// What somebody changed at some time.
    unknown: Vec<Change>,
    cut: bool,
    /// Something of it is not in the ledger yet.
    is_news: bool,
}

impl News {
    /// There is nothing to be kept.
    pub fn is_empty(&self) -> bool {
        !self.is_news
    }

    /// Somebody changed something.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// As lines; the changes were made by this act.
    pub fn into_lines(self, by: Changed, check: u64) -> Vec<Line> {
        let (at_ms, cut) = (by.at_ms, self.cut);
        let names = |changes: Vec<Change>| changes.into_iter().map(|c| (c.category, c.name, c.hash)).collect();
        let mut lines = Vec::new();
        if !self.start.is_empty() {
            lines.push(Line::Start { at_ms, check, cut, names: self.start });
        }
        if !self.unknown.is_empty() {
            lines.push(Line::Changed { by: Changed::unknown(at_ms), cut, names: names(self.unknown) });
        }
        if !self.changes.is_empty() || lines.is_empty() {
            lines.push(Line::Changed { by, cut, names: names(self.changes) });
        }
        lines
    }
}

impl Ledger {
    /// From the lines of its file; what another key has hashed is nothing.
    pub fn read(lines: impl IntoIterator<Item = Line>, check: u64) -> Ledger {
        let mut ledger = Ledger { check, ..Ledger::default() };
        for line in lines {
            if matches!(line, Line::Start { check: other, .. } if other != check) {
                return Ledger { check, ..Ledger::default() };
            }
            ledger.apply(line);
        }
        ledger
    }

    /// When the shell told first what it is made of.
    pub fn since_ms(&self) -> Option<TimeMs> {
        self.since_ms
    }

    /// It has more names than are kept.
    pub fn is_partial(&self) -> bool {
        self.now.cut
    }

    /// What is new in a state, and the working directory's hash if that is known.
    pub fn news(&self, mut state: State, cwd: Option<u64>) -> News {
        let here = (Category::Cwd, CWD.to_owned());
        if let Some(hash) = cwd.or_else(|| self.now.names.get(&here).copied()) {
            state.names.insert(here.clone(), hash);
        }
        let named = |(category, name): &Key, hash: u64| (*category, name.clone(), hash);
        let mut news = News { cut: state.cut, ..News::default() };
        if self.since_ms.is_none() {
            news.start = state.names.iter().map(|(key, hash)| named(key, *hash)).collect();
            news.is_news = true;
            return news;
        }
        if let (Some(hash), false) = (state.names.get(&here).copied(), self.now.names.contains_key(&here)) {
            // The first state came before the first word of where it is.
            state.names.remove(&here);
            news.start.push(named(&here, hash));
        }
        if self.now.cut && !state.cut {
            let new = state.names.iter().filter(|(key, _)| !self.now.names.contains_key(*key));
            let change = |((category, name), hash): (&Key, &u64)| Change {
                category: *category,
                name: name.clone(),
                hash: Some(*hash),
            };
            news.unknown = new.map(change).collect();
        }
        news.changes = diff(&self.now, &state);
        news.is_news =
            !news.start.is_empty() || !news.unknown.is_empty() || !news.changes.is_empty() || self.now.cut != state.cut;
        news
    }

    /// Takes a line in.
    pub fn apply(&mut self, line: Line) {
        match line {
            Line::Start { at_ms, cut, names, .. } => {
                self.since_ms.get_or_insert(at_ms);
                self.now.cut = cut;
                for (category, name, hash) in names {
                    self.start.insert((category, name.clone()), hash);
                    self.now.names.insert((category, name), hash);
                }
            }
            // What it is a change of is not known.
            Line::Changed { .. } if self.since_ms.is_none() => {}
            Line::Changed { by, cut, names } => {
                self.now.cut = cut;
                self.told += names.len();
                let by = Arc::new(by);
                for (category, name, hash) in names {
                    let key = (category, name);
                    if self.start.get(&key).copied() == hash {
                        self.changed.remove(&key);
                    } else {
                        self.changed.insert(key.clone(), Arc::clone(&by));
                    }
                    match hash {
                        Some(hash) => self.now.names.insert(key, hash),
                        None => self.now.names.remove(&key),
                    };
                }
            }
        }
    }

    /// Most of its lines are the past.
    pub fn is_stale(&self) -> bool {
        self.told > PAST_NAMES_MAX + 2 * self.changed.len()
    }

    /// As few lines as say the same.
    pub fn lines(&self) -> Vec<Line> {
        let Some(at_ms) = self.since_ms else { return Vec::new() };
        let names = self.start.iter().map(|((category, name), hash)| (*category, name.clone(), *hash)).collect();
        let mut lines = vec![Line::Start { at_ms, check: self.check, cut: self.now.cut, names }];
        let mut by_act: BTreeMap<(TimeMs, *const Changed), Vec<&Key>> = BTreeMap::new();
        for (key, by) in &self.changed {
            by_act.entry((by.at_ms, Arc::as_ptr(by))).or_default().push(key);
        }
        let now = |key: &Key| (key.0, key.1.clone(), self.now.names.get(key).copied());
        lines.extend(by_act.into_values().map(|keys| Line::Changed {
            by: Changed::clone(&self.changed[keys[0]]),
            cut: self.now.cut,
            names: keys.into_iter().map(now).collect(),
        }));
        lines
    }

    /// What is not as it was, or everything, by kind and name.
    pub fn entries(&self, all: bool) -> Vec<EnvEntry> {
        let entry = |key: &Key| {
            let (now, start) = (self.now.names.get(key), self.start.get(key));
            EnvEntry {
                category: key.0,
                name: key.1.clone(),
                hash: now.map(|hash| format!("{hash:016x}")),
                gone: now.is_none() && start.is_some(),
                changed: self.changed.get(key).map(|by| Changed::clone(by)),
            }
        };
        if all {
            let keys: BTreeSet<&Key> = self.start.keys().chain(self.now.names.keys()).collect();
            return keys.into_iter().map(entry).collect();
        }
        self.changed.keys().map(entry).collect()
    }
}

#[cfg(test)]
mod tests;
