//! The repository's texts, by path from its root.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

/// What is made, not written: directories, and the file `.git` of a worktree.
const MADE: &[&str] = &[".git", "target", "node_modules", "__pycache__", "dist"];
/// The same, where the name alone does not say so.
const MADE_PATHS: &[&str] = &["fuzz/corpus", "fuzz/artifacts", "fuzz/coverage", "web/build"];

/// Every file that is UTF-8; others (recordings, pictures) are nobody's prose.
pub struct Tree(BTreeMap<String, String>);

impl Tree {
    /// Reads the tree.
    pub fn read(root: &Path) -> Result<Tree> {
        let mut files = BTreeMap::new();
        walk(root, "", &mut files)?;
        Ok(Tree(files))
    }

    /// A tree of samples.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        Tree(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    /// One file's text.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// All files, path and text, in order.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files whose names end so.
    pub fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files().filter(move |(path, _)| path.ends_with(ending))
    }
}

fn walk(dir: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if MADE.contains(&name.as_str()) || MADE_PATHS.contains(&path.as_str()) {
            continue;
        }
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file()
            && let Ok(text) = std::fs::read_to_string(entry.path())
        {
            files.insert(path, text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_not_read_and_hidden_files_are() {
        let dir = std::env::temp_dir().join(format!("xtask-tree-{}", std::process::id()));
        for sub in ["a/target", "node_modules/x", ".ci"] {
            std::fs::create_dir_all(dir.join(sub)).unwrap();
        }
        for (file, bytes) in [
            ("a/b.rs", &b"fn"[..]),
            ("a/target/c.rs", b"fn"),
            ("node_modules/x/d.js", b"x"),
            (".ci/run", b"x"),
            (".git", b"gitdir: elsewhere"),
            ("e", b"\xff"),
        ] {
            std::fs::write(dir.join(file), bytes).unwrap();
        }
        let tree = Tree::read(&dir).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(tree.files().map(|(path, _)| path).collect::<Vec<_>>(), [".ci/run", "a/b.rs"]);
    }
}
