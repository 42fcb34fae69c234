//! Paths as this machine's file system resolves them, within bounds: what takes too long to say is not said.

use holdfast_gate::{Lexical, Places};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Names a pattern may stand for; more is told by its directory.
const NAMES_MAX: usize = 500;
/// Entries that are looked at for all patterns of a line: a directory of so many is a few milliseconds.
const LOOKS_MAX: u32 = 20_000;

/// Files of the process that looks: here they would be the host's own.
const OF_THE_PROCESS: [&str; 6] =
    ["/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"];

/// The live file system. Blocks: for another thread.
#[derive(Debug, Default)]
pub(super) struct Live {
    looked: Cell<u32>,
}

impl Places for Live {
    fn resolve(&self, path: &str, follows: bool) -> String {
        let lexical = Lexical.resolve(path, follows);
        if OF_THE_PROCESS
            .iter()
            .any(|own| lexical.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
        {
            return lexical.replacen("/proc/self/fd", "/dev/fd", 1).replacen("/proc/thread-self/fd", "/dev/fd", 1);
        }
        let trimmed = path.trim_end_matches('/');
        let whole = Path::new(if trimmed.is_empty() { "/" } else { trimmed });
        if follows {
            return text(&real(whole)).unwrap_or_else(|| Lexical.resolve(path, follows));
        }
        // The last part is kept as it is, unless it is a dot.
        let resolved = match (whole.parent(), whole.file_name()) {
            (Some(parent), Some(name)) => real(parent).join(name),
            _ => real(whole),
        };
        text(&resolved).unwrap_or_else(|| Lexical.resolve(path, follows))
    }

    fn expand(&self, pattern: &str) -> Option<Vec<String>> {
        let mut found = vec![PathBuf::from("/")];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            if part == "**" {
                return None;
            }
            let mut next = Vec::new();
            for dir in &found {
                if !is_pattern(part) {
                    let path = dir.join(plain(part));
                    if path.symlink_metadata().is_ok() {
                        next.push(path);
                    }
                    continue;
                }
                for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                    self.looked.set(self.looked.get() + 1);
                    if self.looked.get() > LOOKS_MAX || next.len() > NAMES_MAX {
                        return None;
                    }
                    let name = entry.file_name();
                    let is_hidden = name.as_encoded_bytes().starts_with(b".") && !part.starts_with('.');
                    if !is_hidden && fits(part, &name.to_string_lossy()) {
                        next.push(entry.path());
                    }
                }
            }
            found = next;
        }
        found.iter().map(|path| path.to_str().map(str::to_owned)).collect()
    }
}

fn text(path: &Path) -> Option<String> {
    path.to_str().map(str::to_owned)
}

/// Without links, as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut dir = path;
    loop {
        if let Ok(real) = dir.canonicalize() {
            let mut whole = real;
            for part in rest.iter().rev() {
                match part {
                    std::path::Component::ParentDir => {
                        whole.pop();
                    }
                    part => whole.push(part),
                }
            }
            return whole;
        }
        let (Some(parent), Some(last)) = (dir.parent(), dir.components().next_back()) else { return path.to_owned() };
        rest.push(last);
        dir = parent;
    }
}

fn is_pattern(part: &str) -> bool {
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

fn plain(part: &str) -> String {
    let mut out = String::new();
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    out
}

/// Whether a name fits a pattern of one directory.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                back = Some((p, n));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('\\') => pattern.get(p + 1).filter(|c| **c == name[n]).map(|_| p + 2),
            Some('[') => class(&pattern[p..], name[n]).and_then(|(fits, length)| fits.then_some(p + length)),
            Some(c) if *c == name[n] => Some(p + 1),
            Some(_) | None => None,
        };
        match (step, back) {
            (Some(next), _) => {
                p = next;
                n += 1;
            }
            (None, Some((star, at))) => {
                back = Some((star, at + 1));
                p = star + 1;
                n = at + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether a character is in a class `[…]`, and how long that is.
fn class(pattern: &[char], c: char) -> Option<(bool, usize)> {
    let is_not = matches!(pattern.get(1), Some('!' | '^'));
    let from = 1 + usize::from(is_not);
    let end = (from + 1..pattern.len()).find(|at| pattern[*at] == ']')?;
    let inside = &pattern[from..end];
    let mut fits = false;
    let mut at = 0;
    while at < inside.len() {
        if at + 2 < inside.len() && inside[at + 1] == '-' {
            fits |= (inside[at]..=inside[at + 2]).contains(&c);
            at += 3;
        } else {
            // A class by name is taken to fit: more is looked at rather than less.
            fits |= inside[at] == c || inside[at] == '[';
            at += 1;
        }
    }
    Some((fits != is_not, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*.o", "a.o", true),
            ("*.o", "a.c", false),
            ("a?c", "abc", true),
            ("[ab]*", "bx", true),
            ("[!ab]*", "bx", false),
            ("[a-c]", "b", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("**x", "aax", true),
            ("a*b*c", "aXbYc", true),
            ("", "x", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn links_dots_and_patterns_are_resolved_against_the_live_directory() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |path: &str| format!("{}/{path}", root.display());
        std::fs::create_dir_all(root.join("project/logs")).unwrap();
        std::fs::create_dir(root.join("other")).unwrap();
        std::os::unix::fs::symlink(root.join("other"), root.join("project/link")).unwrap();
        std::os::unix::fs::symlink("/", root.join("project/slash")).unwrap();
        for name in ["a.o", "b.o", ".hidden.o", "c.c"] {
            std::fs::write(root.join("project").join(name), b"").unwrap();
        }
        let live = Live::default();
        for (path, follows, expected) in [
            ("project/logs", false, at("project/logs")),
            ("project/logs/../../other", false, at("other")),
            ("project/link", false, at("project/link")),
            ("project/link/", true, at("other")),
            ("project/link/x", false, at("other/x")),
            ("project/slash/etc", false, "/etc".to_owned()),
            ("project/new/x", true, at("project/new/x")),
            ("project/new/../y", true, at("project/y")),
        ] {
            assert_eq!(live.resolve(&at(path), follows), expected, "{path}");
        }
        for (path, expected) in [
            ("/dev/stderr", "/dev/stderr"),
            ("/dev/../dev/stdout", "/dev/stdout"),
            ("/proc/self/fd/2", "/dev/fd/2"),
            ("/proc/self/root/etc/passwd", "/etc/passwd"),
        ] {
            assert_eq!(live.resolve(path, true), expected, "not the host's own descriptors");
        }
        let mut found = live.expand(&at("project/*.o")).unwrap();
        found.sort();
        assert_eq!(found, [at("project/a.o"), at("project/b.o")]);
        assert_eq!(live.expand(&at("project/*.none")).unwrap(), Vec::<String>::new());
        assert_eq!(live.expand(&at("project/**")), None);
        let many = root.join("many");
        std::fs::create_dir(&many).unwrap();
        (0..NAMES_MAX + 10).for_each(|n| std::fs::write(many.join(n.to_string()), b"").unwrap());
        assert_eq!(live.expand(&at("many/*")), None, "too many to say");
    }
}
