//! What changed below a directory, by looking at it before and after: for whoever may not ask the kernel to tell.
//!
//! Sees what anybody did there, and nothing elsewhere; so it is never complete. Bounded in entries: a tree that is larger is looked at in
//! part, and that is said.

use super::fold::Files;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Entries that are looked at: a tenth of a second.
const ENTRIES_MAX: usize = 20_000;
/// Directories deep.
const DEPTH_MAX: usize = 32;

/// An entry as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: (u32, u32),
    inode: u64,
    ctime: (i64, u32),
    is_dir: bool,
}

/// A directory as it was.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    entries: BTreeMap<String, Mark>,
    /// There was more than was looked at.
    pub is_cut: bool,
}

impl Scan {
    /// Looks. Blocks.
    #[must_use]
    pub fn of(dir: &str) -> Scan {
        let mut scan = Scan::default();
        scan.add(Path::new(dir), 0);
        scan
    }

    fn add(&mut self, dir: &Path, depth: usize) {
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        for entry in entries.flatten() {
            if self.entries.len() >= ENTRIES_MAX || depth >= DEPTH_MAX {
                self.is_cut = true;
                return;
            }
            let path = entry.path();
            let wanted = StatxFlags::BASIC_STATS;
            let Ok(stat) = statx(CWD, &path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC, wanted) else {
                continue;
            };
            let is_dir = u32::from(stat.stx_mode) & libc::S_IFMT == libc::S_IFDIR;
            let mark = Mark {
                device: (stat.stx_dev_major, stat.stx_dev_minor),
                inode: stat.stx_ino,
                ctime: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
                is_dir,
            };
            self.entries.insert(path.to_string_lossy().into_owned(), mark);
            if is_dir {
                self.add(&path, depth + 1);
            }
        }
    }

    /// What is different later.
    #[must_use]
    pub fn until(&self, later: &Scan) -> Files {
        let mut files = Files::default();
        let gone = self.entries.iter().filter(|(path, _)| !later.entries.contains_key(*path));
        let mut by_inode: HashMap<((u32, u32), u64), &String> =
            gone.clone().map(|(path, mark)| ((mark.device, mark.inode), path)).collect();
        let mut moved_from: Vec<&String> = Vec::new();
        for (path, mark) in &later.entries {
            match self.entries.get(path) {
                // A directory changes with its entries, which are told themselves.
                Some(before) if before == mark || (before.is_dir && mark.is_dir) => {}
                Some(_) => files.changed.push(path.clone()),
                None => match by_inode.remove(&(mark.device, mark.inode)) {
                    Some(from) => {
                        moved_from.push(from);
                        files.moved.push((from.clone(), path.clone()));
                    }
                    None => files.created.push(path.clone()),
                },
            }
        }
        files.deleted.extend(gone.map(|(path, _)| path).filter(|path| !moved_from.contains(path)).cloned());
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_went_moved_and_changed_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        for name in ["same", "written", "gone", "d/moved"] {
            std::fs::write(at(name), name).unwrap();
        }
        let text = dir.path().to_str().unwrap();
        let before = Scan::of(text);
        std::fs::write(at("new"), "").unwrap();
        std::fs::write(at("written"), "more").unwrap();
        std::fs::remove_file(at("gone")).unwrap();
        std::fs::rename(at("d/moved"), at("here")).unwrap();
        let files = before.until(&Scan::of(text));
        let shown = |name: &str| at(name).to_str().unwrap().to_owned();
        assert_eq!(files.created, [shown("new")]);
        assert_eq!(files.changed, [shown("written")]);
        assert_eq!(files.deleted, [shown("gone")]);
        assert_eq!(files.moved, [(shown("d/moved"), shown("here"))]);
    }
}
