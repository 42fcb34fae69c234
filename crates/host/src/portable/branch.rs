//! What a branch has for itself: its files, in directories that lie over the real ones, and its network.
//!
//! | directory of the session | what it has |
//! |---|---|
//! | `files/N/upper` | what the branch changed of one file system: `overlay`'s own form, with whiteouts for what it deleted |
//! | `files/N/work`, `files/N/all` | what `overlay` needs; where it is mounted in the keeper's namespace |
//!
//! Holdfast's own directories, `/dev`, `/sys` and `/run` are the real ones: sockets and devices are no files that could be copied.

use super::Portable;
use holdfast_types::{SessionName, TimeMs};
use holdfast_wire::forks::ForkedView;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Directories of the machine that are real in a branch.
const REAL: [&str; 3] = ["/dev", "/sys", "/run"];
/// `overlay` itself: it takes no upper directory that lies on one.
const OVERLAY_MAGIC: i64 = 0x794c_7630;

/// How a session is a branch, in its spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Of what.
    pub of: ForkedView,
    /// File systems whose files it has for itself, `/` first: the place in this list is the number of their directory.
    pub over: Vec<String>,
    /// Real files that changed since then may differ from what the branch began with.
    pub since_ms: TimeMs,
}

impl Branch {
    /// One whose files have never been anybody's.
    pub fn first(of: ForkedView, portable: &Portable, home: &[&Path], since_ms: TimeMs) -> Branch {
        let is_real = |mount: &&String| {
            let path = Path::new(mount.as_str());
            REAL.iter().any(|real| path.starts_with(real))
                || portable.mapped.iter().any(|(seen, _)| seen == *mount)
                || home.contains(&path)
                || portable.own.as_deref() == Some(path.to_string_lossy().as_ref())
        };
        let others = portable.mounts.iter().filter(|mount| !is_real(mount)).cloned();
        Branch { of, over: std::iter::once("/".to_owned()).chain(others).collect(), since_ms }
    }

    /// What it changed of the file system with this number.
    pub fn upper(dir: &Path, number: usize) -> PathBuf {
        layer(dir, number).join("upper")
    }

    /// Makes its directories.
    pub fn make(&self, dir: &Path) -> io::Result<()> {
        holdfast_store::make_dir(&dir.join("files"))?;
        for (number, over) in self.over.iter().enumerate() {
            holdfast_store::make_dir(&layer(dir, number))?;
            for name in ["upper", "work", "all"] {
                let made = layer(dir, number).join(name);
                if !made.is_dir() {
                    std::fs::create_dir(&made)?;
                }
            }
            like(Path::new(over), &Branch::upper(dir, number))?;
        }
        Ok(())
    }

    /// The file system that a path is on, and the path below it.
    pub fn place_of<'a>(&self, path: &'a Path) -> (usize, &'a Path) {
        let fits = |(number, over): (usize, &'_ String)| Some((number, path.strip_prefix(over).ok()?, over.len()));
        let found = self.over.iter().enumerate().filter_map(fits).max_by_key(|(_, _, length)| *length);
        found.map_or((0, path), |(number, below, _)| (number, below))
    }
}

fn layer(dir: &Path, number: usize) -> PathBuf {
    dir.join("files").join(number.to_string())
}

/// The root of a layer is as the directory it lies over.
fn like(real: &Path, made: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let found = std::fs::metadata(real)?;
    chown(made, Some(found.uid()), Some(found.gid()))?;
    std::fs::set_permissions(made, std::fs::Permissions::from_mode(found.mode() & 0o7777))
}

impl Portable {
    /// Where one of its mounts is taken from, in the keeper's namespace.
    pub fn source(&self, dir: &Path, mount: &str) -> PathBuf {
        if self.own.as_deref() == Some(mount) {
            return dir.to_owned();
        }
        if let Some((_, real)) = self.mapped.iter().find(|(seen, _)| seen == mount) {
            return PathBuf::from(real);
        }
        let number = self.branch.as_ref().and_then(|branch| branch.over.iter().position(|over| over == mount));
        number.map_or_else(|| PathBuf::from(mount), |number| layer(dir, number).join("all"))
    }

    /// It has a network of its own.
    pub fn has_own_network(&self) -> bool {
        self.branch.as_ref().is_some_and(|branch| branch.of.own_network)
    }

    /// What stands before the words of the keeper's child, where it is a branch.
    pub fn within(&self, dir: &Path, log: &Path) -> Vec<Vec<u8>> {
        let Some(branch) = &self.branch else { return Vec::new() };
        let bytes = |path: PathBuf| path.as_os_str().as_bytes().to_vec();
        let network: &[u8] = if branch.of.own_network { b"own" } else { b"shared" };
        let mut words = vec![b"within".to_vec(), bytes(log.to_owned()), network.to_vec()];
        words.push(branch.over.len().to_string().into_bytes());
        for (number, over) in branch.over.iter().enumerate() {
            words.push(over.clone().into_bytes());
            words.extend(["upper", "work", "all"].map(|name| bytes(layer(dir, number).join(name))));
        }
        words
    }
}

/// Why no branch's files can lie in this directory.
pub(super) fn unfit(dir: &Path) -> Option<String> {
    if dir.as_os_str().as_bytes().iter().any(|byte| b",:\\".contains(byte)) {
        return Some(format!("{} has a comma, colon or backslash in its name", dir.display()));
    }
    let kind = rustix::fs::statfs(dir).map_or(0, |found| found.f_type);
    (kind == OVERLAY_MAGIC)
        .then(|| format!("{} is on an overlay file system, which cannot hold another", dir.display()))
}

/// Names for branches of a session that nobody has.
pub(super) fn names(parent: &SessionName, count: u32, is_taken: impl Fn(&SessionName) -> bool) -> Vec<SessionName> {
    let stem: String = parent.as_str().chars().take(56).collect();
    let all = (1u32..10_000).filter_map(|number| format!("{stem}-{number}").parse().ok());
    all.filter(|name| !is_taken(name)).take(count as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> ForkedView {
        ForkedView {
            session: holdfast_types::SessionId::from_random_bits(7),
            name: "work".parse().unwrap(),
            at_ms: 1,
            seq: 1,
            hash: holdfast_types::Hash([0; 32]),
            cut: Vec::new(),
            own_network: true,
        }
    }

    #[test]
    fn a_branch_has_storage_for_itself_and_sockets_devices_and_holdfasts_own_files_are_real() {
        let mounts = ["/dev", "/home", "/run", "/run/user/0", "/state", "/state/own", "/sys", "/tmp"];
        let portable = Portable {
            mounts: mounts.map(str::to_owned).to_vec(),
            own: Some("/state/own".into()),
            ..Portable::default()
        };
        let branch = Branch::first(view(), &portable, &[Path::new("/state")], 1);
        assert_eq!(branch.over, ["/", "/home", "/tmp"]);
        assert_eq!(branch.place_of(Path::new("/home/ann/x")), (1, Path::new("ann/x")));
        assert_eq!(branch.place_of(Path::new("/homework")), (0, Path::new("homework")));
        let portable = Portable { branch: Some(Box::new(branch)), ..portable };
        let dir = Path::new("/state/sessions/b");
        assert_eq!(portable.source(dir, "/tmp"), Path::new("/state/sessions/b/files/2/all"));
        assert_eq!(portable.source(dir, "/state/own"), dir);
        assert_eq!(portable.source(dir, "/run"), Path::new("/run"));
        let words = portable.within(dir, Path::new("/log"));
        assert_eq!((words.len(), &words[2][..], &words[3][..]), (4 + 3 * 4, &b"own"[..], &b"3"[..]));
    }

    #[test]
    fn branches_are_called_as_their_session_with_a_number_that_is_free() {
        let parent: SessionName = "work".parse().unwrap();
        let made = names(&parent, 2, |name| name.as_str() == "work-1");
        assert_eq!(made.iter().map(SessionName::as_str).collect::<Vec<_>>(), ["work-2", "work-3"]);
        let long: SessionName = "x".repeat(64).parse().unwrap();
        assert_eq!(names(&long, 1, |_| false).len(), 1);
    }
}
