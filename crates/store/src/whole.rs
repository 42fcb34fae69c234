//! Files that are written whole: the one atomic replace.

use crate::envelope::{Content, Format, LINE_BYTES_MAX, Unreadable};
use rustix::fs::OFlags;
use rustix::process::{Pid, test_kill_process};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// For the user alone.
const MODE: u32 = 0o600;
/// How the name of a file that is being written ends. Before it is its writer: `spec.4711-3.new`.
const BESIDE: &str = ".new";

/// What a file that was written is to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survives {
    /// The end of its writer. Nothing is synced: for threads that serve others.
    Crash,
    /// A power cut as well. Takes as long as the disk does: for threads nobody waits for.
    PowerCut,
}

/// What is done, in this order. A crash behind any of them leaves the old file or the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Made,
    Written,
    Synced,
    Named,
    NameSynced,
}

/// How the finished file gets its name.
#[derive(Debug, Clone, Copy)]
enum Naming {
    /// In place of what is there.
    Over,
    /// Only where nothing is there.
    New,
}

/// Makes a directory and its parents for the user alone.
pub fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Replaces a file whole, by plain bytes.
pub fn replace(dir: &Path, name: impl AsRef<OsStr>, bytes: &[u8], survives: Survives) -> io::Result<()> {
    replace_as(MODE, dir, name, bytes, survives)
}

/// Replaces a file whole, with another mode than for the user alone.
pub fn replace_as(mode: u32, dir: &Path, name: impl AsRef<OsStr>, bytes: &[u8], survives: Survives) -> io::Result<()> {
    write(Naming::Over, mode, &dir.join(name.as_ref()), bytes, survives, |_| true)
}

/// Writes a file that is not there yet, whole: [`io::ErrorKind::AlreadyExists`] where somebody was first. It survives a power cut.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(Naming::New, MODE, path, bytes, Survives::PowerCut, |_| true)
}

/// Replaces a sealed file, unless a later version wrote it. One that is there and empty is filled where it is.
pub fn put(format: &Format, dir: &Path, name: &str, content: &[u8], survives: Survives) -> io::Result<()> {
    put_sealed(format, dir, name, &format.seal(content), survives)
}

fn put_sealed(format: &Format, dir: &Path, name: &str, bytes: &[u8], survives: Survives) -> io::Result<()> {
    let is_empty = refuse_newer(format, &dir.join(name))?;
    if is_empty && survives == Survives::Crash && fill(&dir.join(name), bytes)? {
        return Ok(());
    }
    replace(dir, name, bytes, survives)
}

/// Writes a file that was made ahead of need and is empty, where it is: there is nothing in it that a crash could cost, and a file that
/// is made, renamed and replaces another takes three changes of directories. False where there is none, or something is in it.
pub fn fill(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let made = OpenOptions::new().write(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path);
    let Ok(mut file) = made else { return Ok(false) };
    if file.metadata()?.len() > 0 {
        return Ok(false);
    }
    file.write_all(bytes).map(|()| true)
}

/// Makes empty files that are written later, [`fill`].
pub fn make_empty(dir: &Path, names: &[&str]) -> io::Result<()> {
    let make = |name: &&str| OpenOptions::new().create_new(true).write(true).mode(MODE).open(dir.join(name)).map(drop);
    names.iter().try_for_each(make)
}

/// Replaces a sealed file by a value as JSON.
pub fn put_json(format: &Format, dir: &Path, name: &str, value: &impl Serialize, survives: Survives) -> io::Result<()> {
    put_sealed(format, dir, name, &seal_json(format, value)?, survives)
}

/// A sealed file with a value as JSON, for [`create`].
pub fn seal_json(format: &Format, value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(format.seal(&text))
}

/// Reads a sealed file with what decodes its content; none where there is no file.
pub fn get<T>(
    format: &Format,
    path: &Path,
    decode: impl FnOnce(Content<'_>) -> Option<T>,
) -> Result<Option<T>, Unreadable> {
    match std::fs::read(path) {
        Ok(bytes) => decode(format.open(&bytes)?).map(Some).ok_or_else(|| format.damaged()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format.io(error)),
    }
}

/// Reads a value that is kept as JSON; none where there is no file.
pub fn get_json<T: DeserializeOwned>(format: &Format, path: &Path) -> Result<Option<T>, Unreadable> {
    get(format, path, |content| serde_json::from_slice(content.bytes()).ok())
}

/// An error where a later version wrote the file. True where it is there and empty.
fn refuse_newer(format: &Format, path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(LINE_BYTES_MAX as u64).read_to_end(&mut start)?,
        // Whatever is wrong with it is told by writing.
        Err(_) => return Ok(false),
    };
    if format.looks_newer(&start) {
        // Its version may be what is damaged.
        if let Err(newer @ Unreadable::Newer { .. }) = format.open(&std::fs::read(path)?) {
            return Err(newer.into());
        }
    }
    Ok(start.is_empty())
}

/// `goes_on` says after each step whether the writer lives; only tests end it.
fn write(
    naming: Naming,
    mode: u32,
    path: &Path,
    bytes: &[u8],
    survives: Survives,
    mut goes_on: impl FnMut(Step) -> bool,
) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}-{count}{BESIDE}", std::process::id()));
    let beside = dir.join(name);
    let mut killed = |step| if goes_on(step) { Ok(()) } else { Err(io::Error::from(io::ErrorKind::Interrupted)) };
    let sync = survives == Survives::PowerCut;
    let mut steps = || -> io::Result<()> {
        let mut file = OpenOptions::new().create_new(true).write(true).mode(mode).open(&beside)?;
        killed(Step::Made)?;
        file.write_all(bytes)?;
        killed(Step::Written)?;
        if sync {
            file.sync_all()?;
            killed(Step::Synced)?;
        }
        match naming {
            Naming::Over => std::fs::rename(&beside, path)?,
            Naming::New => std::fs::hard_link(&beside, path)?,
        }
        killed(Step::Named)
    };
    let written = steps();
    let is_left = written.is_err() || matches!(naming, Naming::New);
    if is_left && !matches!(&written, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
        // A full disk must not also keep half a file.
        let _ = std::fs::remove_file(&beside);
    }
    written?;
    if sync {
        File::open(dir)?.sync_all()?;
        killed(Step::NameSynced)?;
    }
    Ok(())
}

/// Removes what writers that died left beside these files of a directory; no names: beside any.
pub fn sweep(dir: &Path, names: &[&str]) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let file = entry.file_name();
        if file.to_str().is_some_and(|file| is_left(file, names)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn is_left(file: &str, names: &[&str]) -> bool {
    let Some((rest, last)) = file.rsplit_once('.') else { return false };
    let number = |text: &str| text.parse::<u32>().ok();
    let (name, writer) = match (last, rest.rsplit_once('.')) {
        ("new", Some((name, by))) => match by.split_once('-').and_then(|(pid, _)| number(pid)) {
            Some(pid) => (name, Some(pid)),
            None => (rest, None),
        },
        // As they were called before.
        ("new", None) => (rest, None),
        (last, _) => match last.strip_prefix("new").and_then(number) {
            Some(pid) => (rest, Some(pid)),
            None => return false,
        },
    };
    (names.is_empty() || names.contains(&name)) && !writer.is_some_and(is_another_that_lives)
}

/// What has our own number is another's that died: we sweep before we write.
fn is_another_that_lives(number: u32) -> bool {
    let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
    let is_there = |pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH);
    pid.is_some_and(|pid| pid != rustix::process::getpid() && is_there(pid) && !has_ended(number))
}

/// A process that has ended keeps its number until its parent looks: that may be long, and it writes nothing more.
fn has_ended(number: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    // The name before it may have parentheses.
    stat.rsplit_once(')').is_some_and(|(_, rest)| matches!(rest.trim_start().as_bytes().first(), Some(b'Z' | b'X')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const NOTE: Format = Format { kind: "note", version: 2 };
    const STEPS: [Step; 5] = [Step::Made, Step::Written, Step::Synced, Step::Named, Step::NameSynced];

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn write_until(dir: &Path, naming: Naming, bytes: &[u8], last: Step) {
        let ended = write(naming, MODE, &dir.join("note"), bytes, Survives::PowerCut, |step| step != last);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn killed_behind_any_step_it_is_the_old_file_or_the_new_one_and_the_rest_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note");
        for last in STEPS {
            replace(dir.path(), "note", b"old", Survives::Crash).unwrap();
            write_until(dir.path(), Naming::Over, b"newer", last);
            let expected: &[u8] = if last < Step::Named { b"old" } else { b"newer" };
            assert_eq!(std::fs::read(&path).unwrap(), expected, "{last:?}");
            sweep(dir.path(), &[]);
            assert_eq!(names(dir.path()), ["note"], "{last:?}");
            replace(dir.path(), "note", b"next", Survives::PowerCut).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"next");
        }
    }

    #[test]
    fn a_file_that_was_made_ahead_is_filled_where_it_is_and_never_one_with_something_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note");
        let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
        assert!(!fill(&path, b"nothing is there").unwrap());
        make_empty(dir.path(), &["note"]).unwrap();
        let ahead = inode();
        put(&NOTE, dir.path(), "note", b"first", Survives::Crash).unwrap();
        assert_eq!((inode(), names(dir.path())), (ahead, vec!["note".to_owned()]));
        assert!(!fill(&path, b"there is something").unwrap());
        put(&NOTE, dir.path(), "note", b"second", Survives::Crash).unwrap();
        assert_ne!(inode(), ahead, "replaced whole");
        assert_eq!(std::fs::read(&path).unwrap(), NOTE.seal(b"second"));
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        std::fs::write(&path, b"").unwrap();
        assert!(!fill(&dir.path().join("link"), b"through a link").unwrap());
    }

    #[test]
    fn a_file_that_is_made_once_is_there_whole_or_not_at_all_and_the_first_stays() {
        for last in STEPS {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("note");
            write_until(dir.path(), Naming::New, b"first", last);
            if last < Step::Named {
                assert!(!path.exists(), "{last:?}");
                create(&path, b"first").unwrap();
            }
            assert_eq!(create(&path, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            sweep(dir.path(), &[]);
            assert_eq!((names(dir.path()), std::fs::read(&path).unwrap()), (vec!["note".into()], b"first".to_vec()));
        }
    }

    #[test]
    fn a_file_is_for_its_user_alone_unless_said_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        replace(dir.path(), "note", b"x", Survives::Crash).unwrap();
        replace_as(0o700, dir.path(), "program", b"x", Survives::Crash).unwrap();
        let mode = |name| std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("note"), mode("program")), (0o600, 0o700));
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file_and_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("note")).unwrap();
        assert!(replace(dir.path(), "note", b"x", Survives::Crash).is_err());
        assert_eq!(names(dir.path()), ["note"]);
        assert!(replace(&dir.path().join("nowhere"), "note", b"x", Survives::Crash).is_err());
    }

    #[test]
    fn only_what_a_dead_writer_left_is_swept() {
        let lives = std::os::unix::process::parent_id();
        let own = std::process::id();
        for (file, left) in [
            (format!("spec.{own}-7.new"), true),
            (format!("spec.{lives}-7.new"), false),
            ("spec.2147483647-0.new".into(), true),
            ("tokens.json.new".into(), true),
            ("spec.new".into(), true),
            ("human.ann.new2147483647".into(), true),
            (format!("human.ann.new{lives}"), false),
            ("human.new.pub".into(), false),
            ("spec".into(), false),
            ("news".into(), false),
        ] {
            assert_eq!(is_left(&file, &[]), left, "{file}");
        }
        assert!(
            is_left("tokens.json.new", &["tokens.json"]) && is_left("tokens.json.2147483647-1.new", &["tokens.json"])
        );
        assert!(!is_left("mine.new", &["tokens.json"]) && !is_left("mine.2147483647-1.new", &["tokens.json"]));
    }

    #[test]
    fn a_writer_that_has_ended_is_dead_before_its_parent_looks() {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let file = format!("life.{}-3.new", child.id());
        let pid = Pid::from_child(&child);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(is_left(&file, &[]), "it is a zombie");
        child.wait().unwrap();
    }

    #[test]
    fn a_later_versions_file_is_told_and_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note");
        let newer = Format { version: 3, ..NOTE };
        put_json(&newer, dir.path(), "note", &7, Survives::Crash).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(get_json::<u32>(&NOTE, &path), Err(Unreadable::Newer { found: 3, known: 2, .. })));
        let refused = put_json(&NOTE, dir.path(), "note", &8, Survives::Crash).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        // Where it is the version that is damaged, nobody will ever know the file: it is replaced.
        std::fs::write(&path, [&before[..before.len() - 1], b" "].concat()).unwrap();
        put_json(&NOTE, dir.path(), "note", &8, Survives::Crash).unwrap();
        assert_eq!(get_json(&NOTE, &path).unwrap(), Some(8));
    }

    #[test]
    fn a_value_reads_back_and_so_does_one_of_the_version_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note");
        assert_eq!(get_json::<u32>(&NOTE, &path).unwrap(), None);
        std::fs::write(&path, " 7 ").unwrap();
        assert_eq!(get_json(&NOTE, &path).unwrap(), Some(7));
        std::fs::write(&path, "seven").unwrap();
        assert!(matches!(get_json::<u32>(&NOTE, &path), Err(Unreadable::Damaged { .. })));
        put_json(&NOTE, dir.path(), "note", &9, Survives::PowerCut).unwrap();
        assert_eq!(get_json(&NOTE, &path).unwrap(), Some(9));
        assert!(matches!(get_json::<u32>(&NOTE, dir.path()), Err(Unreadable::Io { .. })));
    }
}
