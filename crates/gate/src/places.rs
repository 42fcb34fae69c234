//! Paths, as the live directory resolves them. The caller has the file system; [`Lexical`] is for what has none.

/// How words become paths.
pub trait Places {
    /// An absolute path without links, dots and double slashes. Its last part is followed only where `follows`: `rm link` removes the
    /// link, `rm link/` goes through it. What does not exist keeps its name.
    fn resolve(&self, path: &str, follows: bool) -> String;

    /// What an absolute pattern stands for now; none where that is too much to say. An empty list: nothing fits.
    fn expand(&self, pattern: &str) -> Option<Vec<String>>;
}

/// Paths by their text alone, in a file system of which nothing is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lexical;

impl Places for Lexical {
    fn resolve(&self, path: &str, _follows: bool) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        format!("/{}", parts.join("/"))
    }

    fn expand(&self, _pattern: &str) -> Option<Vec<String>> {
        None
    }
}

/// Whether a resolved path is this directory, or in it.
#[must_use]
pub fn is_below(path: &str, dir: &str) -> bool {
    dir == "/" || path == dir || path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

/// A path from a directory on.
pub(crate) fn join(dir: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", dir.trim_end_matches('/')) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_taken_out_and_prefixes_are_whole_names() {
        assert_eq!(Lexical.resolve("/a/./b//../c/", true), "/a/c");
        assert_eq!(Lexical.resolve("/../..", true), "/");
        assert!(is_below("/a/b", "/a") && is_below("/a", "/a") && is_below("/x", "/"));
        assert!(!is_below("/ab", "/a"));
        assert_eq!(join("/a/", "b"), "/a/b");
        assert_eq!(join("/", "b"), "/b");
        assert_eq!(join("/a", "/b"), "/b");
    }
}
