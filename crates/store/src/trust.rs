//! Whether a path is believed: whether this user alone decides, with root, what lies there.
//!
//! What is run, who may do what, and whose key is whose stands in files. Whoever else can write one of them, or put another in
//! its place by a directory or a link on the way, could decide it. So every step of the way counts: a directory is passed if
//! only its owner can change it, who is this user or root, or if it is sticky, where nobody replaces what is another's. What
//! the path names is this user's or root's, and nobody else writes there.

use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// Links on the way, as the kernel allows.
const LINKS_MAX: usize = 40;
/// Who in a namespace of users stands for all that have no number there, root of the machine included.
const OVERFLOW_UID: u32 = 65_534;
const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Why a path is not believed.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// Another user's.
    #[error("{} belongs to another user (uid {uid})", path.display())]
    Owner {
        /// What does: the path, or something on the way.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// Others can change it.
    #[error("other users can write to {} (mode {mode:o})", path.display())]
    Writable {
        /// What they can change: the path, or a directory on the way.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It cannot be looked at.
    #[error("cannot check who can write to {}", path.display())]
    Unknown {
        /// What.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
}

impl Untrusted {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Untrusted::Owner { path, .. } => {
                let path = path.display();
                format!(
                    "use a directory of your own (--home DIR), or, if all in it is yours: chown {} {path}",
                    geteuid().as_raw()
                )
            }
            Untrusted::Writable { path, .. } => {
                format!("look whether what is there is yours, then: chmod go-w {}", path.display())
            }
            Untrusted::Unknown { .. } => "use a directory of your own: --home DIR".to_owned(),
        }
    }
}

impl From<Untrusted> for io::Error {
    fn from(why: Untrusted) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, format!("{why}; {}", why.remedy()))
    }
}

/// Whom we believe.
#[derive(Debug, Clone, Copy)]
struct Us {
    uid: u32,
    /// Root has no number here: its files look like nobody's.
    root_is_nobody: bool,
}

/// What a path is on the way to what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A directory that is passed.
    Way,
    /// What is named.
    Named,
}

impl Us {
    fn now() -> Us {
        // Written once, before anything runs in a namespace of users.
        static HAS_ROOT: OnceLock<bool> = OnceLock::new();
        let map = || std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        Us { uid: geteuid().as_raw(), root_is_nobody: !*HAS_ROOT.get_or_init(|| has_root(&map())) }
    }

    fn own(self, path: &Path, uid: u32) -> Result<(), Untrusted> {
        let believed = uid == self.uid || uid == 0 || (uid == OVERFLOW_UID && self.root_is_nobody);
        if believed { Ok(()) } else { Err(Untrusted::Owner { path: path.to_owned(), uid }) }
    }

    fn judge(self, path: &Path, place: Place, owner: (u32, u32), mode: u32) -> Result<(), Untrusted> {
        let (uid, gid) = owner;
        self.own(path, uid)?;
        // A group with the number of its user is, by custom, that user's alone.
        let lone_group = gid == uid && mode & OTHERS_WRITE == 0;
        let spared = place == Place::Way && (mode & STICKY != 0 || lone_group);
        if mode & (GROUP_WRITES | OTHERS_WRITE) == 0 || spared {
            return Ok(());
        }
        Err(Untrusted::Writable { path: path.to_owned(), mode: mode & 0o7777 })
    }

    fn judge_found(self, path: &Path, place: Place, found: &Metadata) -> Result<(), Untrusted> {
        self.judge(path, place, (found.uid(), found.gid()), found.mode())
    }
}

/// Whether a map of user numbers has one for the machine's root.
fn has_root(map: &str) -> bool {
    // Where there is no map there are no namespaces.
    map.trim().is_empty() || map.lines().any(|line| line.split_whitespace().nth(1) == Some("0"))
}

/// Fails where anybody else decides what lies at a path, or may put something there. What is not there yet is believed if its
/// place is: look again once it was made.
pub fn must_be_ours(path: &Path) -> Result<(), Untrusted> {
    walk(Us::now(), path)
}

fn walk(us: Us, path: &Path) -> Result<(), Untrusted> {
    let unknown = |path: &Path| {
        let path = path.to_owned();
        |error| Untrusted::Unknown { path, error }
    };
    let whole = std::path::absolute(path).map_err(unknown(path))?;
    let mut at = PathBuf::from("/");
    let mut rest = steps(&whole);
    let mut links = 0;
    us.judge_found(&at, Place::Way, &std::fs::metadata(&at).map_err(unknown(&at))?)?;
    while let Some(step) = rest.pop() {
        if step == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&step);
        let found = match std::fs::symlink_metadata(&next) {
            Ok(found) => found,
            // A file of ours on the way: whoever wants to go through it is told.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(());
            }
            Err(error) => return Err(unknown(&next)(error)),
        };
        if found.is_symlink() {
            links += 1;
            if links > LINKS_MAX {
                return Err(unknown(&next)(rustix::io::Errno::LOOP.into()));
            }
            // Its permissions mean nothing; who made it decided where it leads.
            us.own(&next, found.uid())?;
            let target = std::fs::read_link(&next).map_err(unknown(&next))?;
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            rest.extend(steps(&target));
            continue;
        }
        us.judge_found(&next, if rest.is_empty() { Place::Named } else { Place::Way }, &found)?;
        at = next;
    }
    Ok(())
}

/// A path's names, the first one last.
fn steps(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// Reads a file that nobody else decides over; none where there is none. What was judged is what is read.
pub fn read_ours(path: &Path) -> Result<Option<String>, Untrusted> {
    let us = Us::now();
    walk(us, path)?;
    let unknown = |error| Untrusted::Unknown { path: path.to_owned(), error };
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unknown(error)),
    };
    us.judge_found(path, Place::Named, &file.metadata().map_err(unknown)?)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unknown)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const ANN: Us = Us { uid: 1000, root_is_nobody: false };

    fn judged(place: Place, uid: u32, gid: u32, mode: u32) -> &'static str {
        match ANN.judge(Path::new("/x"), place, (uid, gid), mode) {
            Ok(()) => "ok",
            Err(Untrusted::Owner { .. }) => "owner",
            Err(Untrusted::Writable { .. }) => "writable",
            Err(Untrusted::Unknown { .. }) => "unknown",
        }
    }

    #[test]
    fn an_owner_and_a_mode_are_judged_by_what_others_could_do_with_them() {
        use Place::{Named, Way};
        for (place, uid, gid, mode, expected) in [
            (Named, 1000, 1000, 0o700, "ok"),
            (Named, 1000, 100, 0o755, "ok"),
            (Named, 0, 0, 0o644, "ok"),
            (Named, 1001, 1000, 0o700, "owner"),
            (Named, 65_534, 65_534, 0o700, "owner"),
            (Named, 1000, 1000, 0o770, "writable"),
            (Named, 1000, 1000, 0o702, "writable"),
            (Named, 1000, 1000, 0o1777, "writable"),
            (Way, 0, 0, 0o1777, "ok"),
            (Way, 0, 998, 0o1775, "ok"),
            (Way, 1000, 1000, 0o775, "ok"),
            (Way, 1000, 100, 0o775, "writable"),
            (Way, 1000, 1000, 0o777, "writable"),
            (Way, 0, 0, 0o777, "writable"),
            (Way, 1001, 1001, 0o755, "owner"),
            (Way, 1001, 1001, 0o1777, "owner"),
        ] {
            assert_eq!(judged(place, uid, gid, mode), expected, "{place:?} {uid}:{gid} {mode:o}");
        }
        let inside = Us { root_is_nobody: true, ..ANN };
        assert!(inside.judge(Path::new("/"), Way, (OVERFLOW_UID, OVERFLOW_UID), 0o755).is_ok(), "a namespace of users");
    }

    #[test]
    fn a_namespace_says_whether_root_has_a_number_in_it() {
        for (map, expected) in [
            ("         0          0 4294967295\n", true),
            ("", true),
            ("      1000       1000          1\n", false),
            ("         0       1000          1\n         1     100000      65536\n", false),
        ] {
            assert_eq!(has_root(map), expected, "{map:?}");
        }
    }

    #[test]
    fn every_step_of_the_way_counts_through_links_and_up_again() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        make("good/inner", 0o700);
        make("open", 0o777);
        make("open/inner", 0o700);
        symlink("open/inner", dir.path().join("to-open")).unwrap();
        symlink("good/inner", dir.path().join("to-good")).unwrap();
        symlink("loop", dir.path().join("loop")).unwrap();
        let ours = |name: &str| must_be_ours(&dir.path().join(name)).map_err(|why| why.to_string());
        assert_eq!(ours("good/inner"), Ok(()));
        assert_eq!(ours("good/inner/../inner/not/there"), Ok(()));
        assert_eq!(ours("to-good"), Ok(()));
        for bad in ["open", "open/inner", "to-open", "to-open/x", "good/../open/x"] {
            let why = ours(bad).unwrap_err();
            assert!(why.contains("open (mode 777)"), "{bad}: {why}");
        }
        assert!(ours("loop").is_err());
        let why = must_be_ours(&dir.path().join("open")).unwrap_err();
        assert!(why.remedy().contains("chmod go-w"), "{}", why.remedy());
        let file = dir.path().join("good/file");
        assert!(read_ours(&file).unwrap().is_none());
        std::fs::write(&file, "text").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read_ours(&file).unwrap().as_deref(), Some("text"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o664)).unwrap();
        assert!(matches!(read_ours(&file), Err(Untrusted::Writable { .. })));
    }
}
