//! Which files a branch changed, as its upper directories have them.
//!
//! `overlay` leaves there a file that was written to, a directory that was made or on the way to one, and for what was deleted a whiteout:
//! a character device with the number 0. A directory that took the place of another is marked as opaque. All of it is read as what a
//! hostile program may have made: nothing is followed, and nothing but plain files is opened.

use super::branch::Branch;
use holdfast_wire::forks::{BranchChange, HowChanged};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Changes that are listed: more than anybody reads, in an answer of a few megabytes.
pub(super) const CHANGES_MAX: usize = 10_000;
/// Entries that are looked at for them.
const ENTRIES_MAX: usize = 1_000_000;
/// Read at once to compare.
const CHUNK_BYTES: usize = 256 * 1024;

/// One change.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// The file's path, as the branch and the machine name it.
    pub path: PathBuf,
    pub how: HowChanged,
    pub is_dir: bool,
    /// Where the new one lies; none: it was deleted.
    pub at: Option<PathBuf>,
}

impl Change {
    /// As users see it.
    pub fn view(&self) -> BranchChange {
        let slash = if self.is_dir { "/" } else { "" };
        let found = self.at.as_ref().and_then(|at| fs::symlink_metadata(at).ok()).filter(Metadata::is_file);
        let bytes = found.map_or(0, |found| found.len());
        BranchChange { path: format!("{}{slash}", self.path.display()), how: self.how, bytes }
    }
}

/// What was found; whether there is more.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub changes: Vec<Change>,
    pub more: bool,
    looked: usize,
}

impl Found {
    fn add(&mut self, path: &Path, how: HowChanged, is_dir: bool, at: Option<&Path>) {
        if self.changes.len() >= CHANGES_MAX {
            self.more = true;
            return;
        }
        self.changes.push(Change { path: path.to_owned(), how, is_dir, at: at.map(Path::to_owned) });
    }
}

fn is_whiteout(found: &Metadata) -> bool {
    found.file_type().is_char_device() && found.rdev() == 0
}

/// Whether a directory hides what lies below it.
fn is_opaque(dir: &Path) -> bool {
    let Ok(path) = CString::new(dir.as_os_str().as_bytes()) else { return false };
    let mut value = [0u8; 4];
    rustix::fs::lgetxattr(&path, c"trusted.overlay.opaque", &mut value).is_ok_and(|length| &value[..length] == b"y")
}

/// What the branch in this directory changed, sorted by path: a directory before what is in it. Blocks.
pub(super) fn changes(dir: &Path, branch: &Branch) -> io::Result<Found> {
    let mut found = Found::default();
    for (number, over) in branch.over.iter().enumerate() {
        walk(&Branch::upper(dir, number), Path::new(over), true, &mut found)?;
    }
    found.changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Below one directory. Where the real one is hidden, all that is here is new.
fn walk(upper: &Path, real: &Path, has_real: bool, found: &mut Found) -> io::Result<()> {
    let mut here = Vec::new();
    for entry in fs::read_dir(upper)? {
        let entry = entry?;
        found.looked += 1;
        if found.looked > ENTRIES_MAX {
            found.more = true;
            return Ok(());
        }
        here.push(entry.file_name());
        let (at, path) = (entry.path(), real.join(entry.file_name()));
        let new = fs::symlink_metadata(&at)?;
        let old = fs::symlink_metadata(&path).ok().filter(|_| has_real);
        if is_whiteout(&new) {
            if let Some(old) = old {
                found.add(&path, HowChanged::Deleted, old.is_dir(), None);
            }
            continue;
        }
        if !new.is_dir() {
            if let Some(how) = differs(old.as_ref(), &path, &new, &at) {
                found.add(&path, how, false, Some(&at));
            }
            continue;
        }
        let was_dir = old.as_ref().is_some_and(Metadata::is_dir);
        if let Some(how) = dir_differs(old.as_ref(), &new) {
            found.add(&path, how, true, Some(&at));
        }
        let hides = !was_dir || is_opaque(&at);
        walk(&at, &path, !hides, found)?;
        if was_dir && hides {
            hidden(&path, &at, found)?;
        }
    }
    Ok(())
}

/// What an opaque directory hides, and does not have itself.
fn hidden(real: &Path, upper: &Path, found: &mut Found) -> io::Result<()> {
    for entry in fs::read_dir(real)? {
        let entry = entry?;
        if fs::symlink_metadata(upper.join(entry.file_name())).is_err() {
            found.add(&entry.path(), HowChanged::Deleted, entry.file_type()?.is_dir(), None);
        }
    }
    Ok(())
}

fn dir_differs(old: Option<&Metadata>, new: &Metadata) -> Option<HowChanged> {
    match old {
        None => Some(HowChanged::Created),
        Some(old) if !old.is_dir() => Some(HowChanged::Changed),
        Some(old) => has_other_attributes(old, new).then_some(HowChanged::Attributes),
    }
}

fn has_other_attributes(old: &Metadata, new: &Metadata) -> bool {
    (old.mode(), old.uid(), old.gid()) != (new.mode(), new.uid(), new.gid())
}

/// How one that is no directory differs from another that may be there.
pub(super) fn differs(old: Option<&Metadata>, old_at: &Path, new: &Metadata, new_at: &Path) -> Option<HowChanged> {
    let Some(old) = old else { return Some(HowChanged::Created) };
    let (was, is) = (old.file_type(), new.file_type());
    let is_same = if was.is_file() && is.is_file() {
        old.len() == new.len() && is_same_content(old_at, new_at)
    } else if was.is_symlink() && is.is_symlink() {
        fs::read_link(old_at).ok() == fs::read_link(new_at).ok()
    } else {
        was == is && old.rdev() == new.rdev()
    };
    match is_same {
        false => Some(HowChanged::Changed),
        true if was.is_symlink() => None,
        true => has_other_attributes(old, new).then_some(HowChanged::Attributes),
    }
}

/// Opens a plain file, and nothing that a path leads to.
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Two that cannot be read are not the same.
fn is_same_content(one: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (open_plain(one), open_plain(other)) else { return false };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        let read = |file: &File, into: &mut Vec<u8>| file.take(CHUNK_BYTES as u64).read_to_end(into);
        let (Ok(count), Ok(_)) = (read(&one, &mut left), read(&other, &mut right)) else { return false };
        if left != right {
            return false;
        }
        if count == 0 {
            return true;
        }
    }
}

/// Where a branch finds a path; none: it finds nothing there.
pub(super) fn place(dir: &Path, branch: &Branch, path: &Path) -> Option<PathBuf> {
    let (number, below) = branch.place_of(path);
    let mut at = Branch::upper(dir, number);
    let mut is_hidden = false;
    for part in below.components() {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(found) if is_whiteout(&found) => return None,
            Ok(found) => is_hidden |= found.is_dir() && is_opaque(&at),
            Err(_) if is_hidden => return None,
            Err(_) => return fs::symlink_metadata(path).is_ok().then(|| path.to_owned()),
        }
    }
    Some(at)
}

/// What differs between two branches: what the second has of the first one's files. Blocks.
pub(super) fn between(one: (&Path, &Branch), other: (&Path, &Branch)) -> io::Result<Found> {
    let (first, second) = (changes(one.0, one.1)?, changes(other.0, other.1)?);
    let mut found = Found { more: first.more || second.more, ..Found::default() };
    let paths: BTreeMap<PathBuf, ()> =
        [&first, &second].iter().flat_map(|all| all.changes.iter()).map(|change| (change.path.clone(), ())).collect();
    for path in paths.into_keys() {
        let (was, is) = (place(one.0, one.1, &path), place(other.0, other.1, &path));
        let meta = |at: &Option<PathBuf>| at.as_ref().and_then(|at| fs::symlink_metadata(at).ok());
        match (meta(&was), meta(&is)) {
            (None, None) => {}
            (Some(was), None) => found.add(&path, HowChanged::Deleted, was.is_dir(), None),
            (old, Some(new)) => {
                let at = is.unwrap_or_default();
                let how = match new.is_dir() {
                    true => dir_differs(old.as_ref(), &new),
                    false => differs(old.as_ref(), &was.unwrap_or_default(), &new, &at),
                };
                if let Some(how) = how {
                    found.add(&path, how, new.is_dir(), Some(&at));
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use holdfast_wire::forks::ForkedView;

    /// A branch whose files lie over those of one directory.
    pub fn branch(over: &Path) -> Branch {
        let of = ForkedView {
            session: holdfast_types::SessionId::from_random_bits(7),
            name: "work".parse().unwrap(),
            at_ms: 1,
            seq: 1,
            hash: holdfast_types::Hash([0; 32]),
            cut: Vec::new(),
            own_network: true,
        };
        Branch { of, over: vec![over.display().to_string()], since_ms: crate::now_ms() }
    }

    fn told(found: &Found, real: &Path) -> Vec<String> {
        let name = |change: &Change| change.path.strip_prefix(real).unwrap().display().to_string();
        found.changes.iter().map(|change| format!("{:?} {}", change.how, name(change))).collect()
    }

    #[test]
    fn files_are_told_as_created_changed_or_deleted_and_what_is_the_same_is_not_told() {
        let home = tempfile::tempdir().unwrap();
        let (real, dir) = (home.path().join("real"), home.path().join("branch"));
        fs::create_dir_all(real.join("sub")).unwrap();
        for (name, text) in [("same", "a"), ("other", "a"), ("gone", "a"), ("sub/deep", "a")] {
            fs::write(real.join(name), text).unwrap();
        }
        let branch = branch(&real);
        branch.make(&dir).unwrap();
        let upper = Branch::upper(&dir, 0);
        fs::create_dir(upper.join("sub")).unwrap();
        fs::create_dir(upper.join("new")).unwrap();
        for (name, text) in [("same", "a"), ("other", "b"), ("made", "x"), ("new/in", "y")] {
            fs::write(upper.join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", upper.join("link")).unwrap();
        let found = changes(&dir, &branch).unwrap();
        let expected = ["Created link", "Created made", "Created new", "Created new/in", "Changed other"];
        assert_eq!(told(&found, &real), expected);
        assert_eq!(place(&dir, &branch, &real.join("sub/deep")), Some(real.join("sub/deep")));
        assert_eq!(place(&dir, &branch, &real.join("other")), Some(upper.join("other")));
        assert_eq!(place(&dir, &branch, &real.join("nowhere")), None);
        // Another branch that did one of these things differs in the rest.
        let second = home.path().join("second");
        branch.make(&second).unwrap();
        fs::write(Branch::upper(&second, 0).join("other"), "b").unwrap();
        let between = between((&second, &branch), (&dir, &branch)).unwrap();
        assert_eq!(told(&between, &real), ["Created link", "Created made", "Created new", "Created new/in"]);
    }
}
