//! Many changes of names, folded into what is different in the end.
//!
//! A file that came and went is no effect, and only counted. One that was written under another name and moved over a name is that
//! name's change: so do editors and compilers save. Whether that name was there before no event tells; in a directory that is new it
//! was not.

use std::collections::BTreeMap;

/// Paths that are remembered of one run: a checkout of a large project fits.
const PATHS_MAX: usize = 50_000;

/// Something happened to a name. Several things may have: the kernel puts together what one process does to one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// It came.
    pub created: bool,
    /// It went.
    pub deleted: bool,
    /// Its content or its attributes are others.
    pub written: bool,
    /// The name.
    pub path: String,
    /// Its new one, where it was moved.
    pub to: Option<String>,
}

/// What is different in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// New.
    pub created: Vec<String>,
    /// Written to, replaced, or with other attributes.
    pub changed: Vec<String>,
    /// Gone.
    pub deleted: Vec<String>,
    /// From, and to.
    pub moved: Vec<(String, String)>,
    /// Came and went.
    pub passing: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Created,
    Changed,
    Deleted,
    /// It was there, under this name.
    Moved(String),
}

/// What is known so far.
#[derive(Debug, Default)]
pub struct Fold {
    paths: BTreeMap<String, State>,
    passing: u64,
    /// There were more paths than are remembered.
    pub is_full: bool,
}

impl Fold {
    /// Takes one more change. `is_there` says whether a path is there now; it is asked seldom.
    pub fn take(&mut self, change: Change, is_there: impl Fn(&str) -> bool) {
        if self.paths.len() >= PATHS_MAX && !self.paths.contains_key(&change.path) {
            self.is_full = true;
            return;
        }
        let Change { created, deleted, written, path, to } = change;
        match (created, deleted) {
            // Put together by the kernel: of one file, which came first and then went, or was linked again.
            (true, true) if is_there(&path) => self.written(&path),
            (true, true) => {
                self.created(&path);
                self.deleted(&path);
            }
            (true, false) => self.created(&path),
            (false, true) => self.deleted(&path),
            (false, false) if written && to.is_none() => self.written(&path),
            (false, false) => {}
        }
        if let Some(to) = to {
            self.moved(&path, &to);
        }
    }

    fn created(&mut self, path: &str) {
        match self.paths.get(path) {
            Some(State::Deleted) => drop(self.paths.insert(path.to_owned(), State::Changed)),
            Some(State::Created | State::Changed | State::Moved(_)) => {}
            None => drop(self.paths.insert(path.to_owned(), State::Created)),
        }
    }

    fn written(&mut self, path: &str) {
        match self.paths.get(path) {
            Some(State::Created | State::Changed | State::Moved(_)) => {}
            Some(State::Deleted) | None => drop(self.paths.insert(path.to_owned(), State::Changed)),
        }
    }

    fn deleted(&mut self, path: &str) {
        match self.paths.remove(path) {
            Some(State::Created) => self.passing += 1,
            Some(State::Moved(from)) => {
                self.gone(&from);
            }
            Some(State::Changed | State::Deleted) | None => self.gone(path),
        }
    }

    /// What was there before is not any more; unless something else took its name since.
    fn gone(&mut self, path: &str) {
        match self.paths.get(path) {
            None => drop(self.paths.insert(path.to_owned(), State::Deleted)),
            Some(State::Created) => drop(self.paths.insert(path.to_owned(), State::Changed)),
            Some(State::Changed | State::Deleted | State::Moved(_)) => {}
        }
    }

    fn moved(&mut self, from: &str, to: &str) {
        self.moved_below(from, to);
        let before = self.paths.get(to).cloned();
        let state = match self.paths.remove(from) {
            Some(State::Created) => match before {
                Some(State::Deleted | State::Changed | State::Moved(_)) => State::Changed,
                Some(State::Created) => State::Created,
                None if self.is_new_directory(parent(to)) => State::Created,
                None => State::Changed,
            },
            // Back where it was: it may have been written to meanwhile.
            Some(State::Moved(origin)) if origin == to => State::Changed,
            Some(State::Moved(origin)) => State::Moved(origin),
            Some(State::Changed | State::Deleted) | None => State::Moved(from.to_owned()),
        };
        self.paths.insert(to.to_owned(), state);
    }

    /// What lies in a directory goes with it.
    fn moved_below(&mut self, from: &str, to: &str) {
        let prefix = format!("{from}/");
        let below: Vec<String> = self
            .paths
            .range(prefix.clone()..)
            .map(|(path, _)| path)
            .take_while(|path| path.starts_with(&prefix))
            .cloned()
            .collect();
        for path in below {
            if let Some(state) = self.paths.remove(&path) {
                self.paths.insert(format!("{to}/{}", &path[prefix.len()..]), state);
            }
        }
    }

    fn is_new_directory(&self, path: &str) -> bool {
        let mut dir = path;
        while !dir.is_empty() {
            if self.paths.get(dir) == Some(&State::Created) {
                return true;
            }
            dir = parent(dir);
        }
        false
    }

    /// What is different in the end.
    #[must_use]
    pub fn files(self) -> Files {
        let mut files = Files { passing: self.passing, ..Files::default() };
        for (path, state) in self.paths {
            match state {
                State::Created => files.created.push(path),
                State::Changed => files.changed.push(path),
                State::Deleted => files.deleted.push(path),
                State::Moved(from) => files.moved.push((from, path)),
            }
        }
        files
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `+a` comes, `-a` goes, `~a` is written, `a>b` is moved, `±a` is both and not there.
    fn folded(script: &str) -> String {
        let mut fold = Fold::default();
        for step in script.split_whitespace() {
            let path = |text: &str| format!("/{text}");
            let change = match (step.split_at(step.chars().next().unwrap().len_utf8()), step.split_once('>')) {
                (_, Some((from, to))) => Change { path: path(from), to: Some(path(to)), ..Change::default() },
                (("+", name), _) => Change { created: true, path: path(name), ..Change::default() },
                (("-", name), _) => Change { deleted: true, path: path(name), ..Change::default() },
                (("~", name), _) => Change { written: true, path: path(name), ..Change::default() },
                ((_, name), _) => Change { created: true, deleted: true, path: path(name), ..Change::default() },
            };
            fold.take(change, |_| false);
        }
        let files = fold.files();
        let mut out: Vec<String> = Vec::new();
        out.extend(files.created.iter().map(|path| format!("+{path}")));
        out.extend(files.changed.iter().map(|path| format!("~{path}")));
        out.extend(files.deleted.iter().map(|path| format!("-{path}")));
        out.extend(files.moved.iter().map(|(from, to)| format!("{from}>{to}")));
        if files.passing > 0 {
            out.push(format!("{} passed", files.passing));
        }
        out.join(" ")
    }

    #[test]
    fn changes_are_folded_into_what_is_different_in_the_end() {
        for (script, expected) in [
            ("+a ~a", "+/a"),
            ("~a ~a", "~/a"),
            ("-a", "-/a"),
            ("+a -a", "1 passed"),
            ("±a", "1 passed"),
            ("-a +a ~a", "~/a"),
            ("a>b", "/a>/b"),
            ("a>b b>c", "/a>/c"),
            ("a>b b>a", "~/a"),
            ("a>b -b", "-/a"),
            ("a>b -b +a", "~/a"),
            // As editors save: over what was there.
            ("+t ~t t>a", "~/a"),
            ("+d +d/t ~d/t d/t>d/a", "+/d +/d/a"),
            ("-a +t t>a", "~/a"),
            // A directory takes what lies in it along.
            ("+d +d/x ~y d>e", "~/e ~/y +/e/x"),
            ("d/x>d/y d>e", "/d>/e /d/x>/e/y"),
            ("~a -a", "-/a"),
        ] {
            let mut found: Vec<_> = folded(script).split(' ').map(str::to_owned).collect();
            let mut wanted: Vec<_> = expected.split(' ').map(str::to_owned).collect();
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted, "{script}");
        }
    }

    #[test]
    fn there_is_an_end_to_what_is_remembered() {
        let mut fold = Fold::default();
        for number in 0..=PATHS_MAX {
            fold.take(Change { created: true, path: format!("/{number}"), ..Change::default() }, |_| true);
        }
        assert!(fold.is_full);
        assert_eq!(fold.files().created.len(), PATHS_MAX);
    }
}
