//! Files of a working tree that will be executed and that others changed: looked for when somebody takes over.

use super::look::written_by_others;
use super::{Background, Stamp};
use holdfast_types::{Actor, Shaper, TimeMs};
use std::os::unix::fs::{DirEntryExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Entries that are looked at: some milliseconds. A larger tree is told in part.
const ENTRIES_MAX: usize = 5_000;
/// How deep.
const DEPTH_MAX: u32 = 4;
/// Files that are told.
const FILES_MAX: usize = 200;

/// Directories that hold what was built, or what git keeps.
const NOT_LOOKED_AT: [&str; 8] = ["target", "node_modules", "objects", "__pycache__", ".venv", "venv", "dist", "logs"];
/// Names and ends of names of files that are read as code whatever their mode.
const CODE_NAMES: [&str; 12] = [
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "package.json",
    "Cargo.toml",
    "build.rs",
    "conftest.py",
    "setup.py",
    ".envrc",
    ".npmrc",
    "config",
];
const CODE_ENDS: [&str; 10] = [".sh", ".bash", ".zsh", ".fish", ".py", ".mk", ".rb", ".pl", ".js", ".so"];

/// What was found, and whether all of the tree was looked at.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub files: Vec<Shaper>,
    pub is_whole: bool,
}

/// Files below a directory that will be executed and that others wrote since a moment. Blocks.
pub(crate) fn changed_files(root: &Path, since_ms: TimeMs, past: &Background, me: &Actor) -> Scanned {
    let mut found: Vec<(PathBuf, Stamp)> = Vec::new();
    let mut next = vec![(root.to_owned(), 0)];
    let (mut looked, mut is_whole) = (0, true);
    while let Some((dir, depth)) = next.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            looked += 1;
            if looked > ENTRIES_MAX || found.len() >= FILES_MAX {
                is_whole = false;
                next.clear();
                break;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() && depth < DEPTH_MAX && !NOT_LOOKED_AT.contains(&name.as_str()) {
                next.push((entry.path(), depth + 1));
            }
            if !kind.is_file() || entry.ino() == 0 {
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            let is_code = CODE_NAMES.contains(&name.as_str()) || CODE_ENDS.iter().any(|end| name.ends_with(end));
            let stamp = Stamp::of(&meta);
            if stamp.changed_ms() > since_ms && (is_code || meta.permissions().mode() & 0o111 != 0) {
                found.push((entry.path(), stamp));
            }
        }
    }
    Scanned { files: written_by_others(found, past, Some(me), false), is_whole }
}
