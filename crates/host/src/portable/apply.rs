//! What becomes of a branch's files: applied to the real ones, copied elsewhere, or removed with the branch.
//!
//! A real file that changed since the fork is never replaced unless that file is named. Each file is replaced whole, by a new one beside
//! it; no symbolic link on the way to it is followed. A host that is killed meanwhile leaves some files applied: doing it again goes on,
//! since files that are the same are no change.

use super::files::{self, Change};
use super::{Branch, patch};
use crate::off_thread;
use crate::registry::Registry;
use crate::session::Session;
use holdfast_authority::Ask;
use holdfast_types::{Actor, Right, TimeMs, terms_of};
use holdfast_wire::forks::{
    BranchChange, Conflict, ForkDiffAnswer, ForkDiffParams, ForkDiscardParams, ForkKeepAnswer, ForkKeepParams,
    HowChanged,
};
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::params::{Life, SessionView};
use holdfast_wire::{Code, Fault};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The name under which a file is written before it takes another one's place.
const BESIDE: &str = ".holdfast-keep";
/// Files below a directory that is to be deleted that are looked at; a larger one is a conflict.
const BELOW_MAX: usize = 100_000;

/// Choices for single files.
#[derive(Debug, Default)]
struct Choices {
    take: Vec<PathBuf>,
    leave: Vec<PathBuf>,
}

impl Choices {
    fn of(params: &ForkKeepParams) -> Choices {
        let paths = |list: &[String]| list.iter().map(|path| PathBuf::from(path.trim_end_matches('/'))).collect();
        Choices { take: paths(&params.take), leave: paths(&params.leave) }
    }

    /// One that is no changed file is a mistake that must not be passed over.
    fn unknown(&self, changes: &[Change]) -> Option<&Path> {
        let is_known = |path: &Path| changes.iter().any(|change| change.path == path);
        self.take.iter().chain(&self.leave).map(PathBuf::as_path).find(|path| !is_known(path))
    }
}

/// Whether something was changed since then: contents, name or attributes.
fn is_newer(found: &Metadata, since_ms: TimeMs) -> bool {
    let changed_ms = found.ctime().saturating_mul(1000).saturating_add(found.ctime_nsec() / 1_000_000);
    u64::try_from(changed_ms).is_ok_and(|changed| changed >= since_ms)
}

/// Why applying a change would lose what somebody else did.
fn conflict(change: &Change, since_ms: TimeMs) -> Option<&'static str> {
    let real = fs::symlink_metadata(&change.path).ok();
    match (change.how, real) {
        (HowChanged::Created, None) => None,
        (HowChanged::Created, Some(real)) if real.is_dir() && change.is_dir => None,
        (HowChanged::Created, Some(_)) => Some("a file of this name was made since the fork"),
        (_, None) => Some("it was deleted since the fork"),
        (HowChanged::Deleted, Some(real)) if real.is_dir() => {
            is_newer_below(&change.path, since_ms, &mut 0).then_some("something in it was changed since the fork")
        }
        // That something in a directory changed does not concern its mode.
        (HowChanged::Attributes, Some(real)) if real.is_dir() => None,
        (_, Some(real)) => is_newer(&real, since_ms).then_some("it was changed since the fork"),
    }
}

fn is_newer_below(dir: &Path, since_ms: TimeMs, looked: &mut usize) -> bool {
    let Ok(entries) = fs::read_dir(dir) else { return true };
    entries.into_iter().any(|entry| {
        *looked += 1;
        let found = entry.and_then(|entry| Ok((entry.path(), fs::symlink_metadata(entry.path())?)));
        match found {
            Ok(_) if *looked > BELOW_MAX => true,
            Ok((path, found)) if found.is_dir() => {
                is_newer(&found, since_ms) || is_newer_below(&path, since_ms, looked)
            }
            Ok((_, found)) => is_newer(&found, since_ms),
            Err(_) => true,
        }
    })
}

/// Applies a branch's changes to the real files, or says what is in the way. Blocks.
fn apply(dir: &Path, branch: &Branch, choices: &Choices) -> io::Result<ForkKeepAnswer> {
    let found = files::changes(dir, branch)?;
    if found.more {
        return Err(io::Error::other(
            "the branch changed too many files: copy them with --into, or choose with a patch",
        ));
    }
    if let Some(path) = choices.unknown(&found.changes) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no changed file", path.display())));
    }
    let is_left = |path: &Path| choices.leave.iter().any(|left| path.starts_with(left));
    let wanted: Vec<&Change> = found.changes.iter().filter(|change| !is_left(&change.path)).collect();
    let is_taken = |path: &Path| choices.take.iter().any(|taken| path == taken);
    let conflicts: Vec<Conflict> = wanted
        .iter()
        .filter(|change| !is_taken(&change.path))
        .filter_map(|change| {
            let why = conflict(change, branch.since_ms)?;
            Some(Conflict { path: change.view().path, why: why.to_owned() })
        })
        .collect();
    if !conflicts.is_empty() {
        return Ok(ForkKeepAnswer { applied: Vec::new(), conflicts });
    }
    // What is made first, parents before children; what is deleted last, children before parents.
    let (deleted, made): (Vec<&Change>, Vec<&Change>) = wanted.iter().partition(|change| change.at.is_none());
    let mut applied: Vec<BranchChange> = Vec::new();
    for change in made.into_iter().chain(deleted.into_iter().rev()) {
        let view = change.view();
        put(change, &change.path).map_err(|error| {
            let done = applied.len();
            io::Error::new(error.kind(), format!("{}: {error}; {done} files were applied before it", view.path))
        })?;
        applied.push(view);
    }
    applied.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(ForkKeepAnswer { applied, conflicts: Vec::new() })
}

/// Copies what was created and changed below a directory that is empty. Blocks.
fn copy_into(dir: &Path, branch: &Branch, into: &Path) -> io::Result<ForkKeepAnswer> {
    if !into.is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the directory must be an absolute path"));
    }
    fs::create_dir_all(into)?;
    let into = fs::canonicalize(into)?;
    if fs::read_dir(&into)?.next().is_some() {
        return Err(io::Error::other(format!("{} is not empty", into.display())));
    }
    let mut applied = Vec::new();
    for change in files::changes(dir, branch)?.changes.iter().filter(|change| change.at.is_some()) {
        let to = into.join(change.path.strip_prefix("/").unwrap_or(&change.path));
        fs::create_dir_all(to.parent().unwrap_or(&into))?;
        put(change, &to)?;
        applied.push(change.view());
    }
    Ok(ForkKeepAnswer { applied, conflicts: Vec::new() })
}

/// The directory of a path, reached without any symbolic link, and the name in it.
fn parent(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let (dir, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd =
        rustix::fs::openat2(CWD, dir, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)?;
    Ok((fd, name))
}

/// Makes one change at a path.
fn put(change: &Change, path: &Path) -> io::Result<()> {
    let (dir, name) = parent(path)?;
    let Some(at) = &change.at else {
        return if change.is_dir {
            fs::remove_dir_all(path)
        } else {
            Ok(rustix::fs::unlinkat(&dir, name, AtFlags::empty())?)
        };
    };
    let new = fs::symlink_metadata(at)?;
    let mode = Mode::from_raw_mode(new.mode() & 0o7777);
    let owner = Some(rustix::fs::Uid::from_raw(new.uid()));
    let group = Some(rustix::fs::Gid::from_raw(new.gid()));
    let own = |what: &OsStr| rustix::fs::chownat(&dir, what, owner, group, AtFlags::SYMLINK_NOFOLLOW);
    if new.is_dir() {
        if change.how == HowChanged::Changed {
            rustix::fs::unlinkat(&dir, name, AtFlags::empty())?;
        }
        match rustix::fs::mkdirat(&dir, name, mode) {
            Err(rustix::io::Errno::EXIST) => {}
            made => made?,
        }
        own(name)?;
        return Ok(rustix::fs::chmodat(&dir, name, mode, AtFlags::empty())?);
    }
    if fs::symlink_metadata(path).is_ok_and(|old| old.is_dir()) {
        fs::remove_dir_all(path)?;
    }
    let beside = OsStr::new(BESIDE);
    let _ = rustix::fs::unlinkat(&dir, beside, AtFlags::empty());
    let kind = new.file_type();
    if kind.is_symlink() {
        rustix::fs::symlinkat(fs::read_link(at)?, &dir, beside)?;
        own(beside)?;
    } else if kind.is_file() {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&dir, beside, flags, Mode::RUSR | Mode::WUSR)?);
        io::copy(&mut files::open_plain(at)?, &mut file)?;
        own(beside)?;
        rustix::fs::fchmod(&file, mode)?;
        file.sync_data()?;
    } else if kind.is_fifo() {
        rustix::fs::mknodat(&dir, beside, rustix::fs::FileType::Fifo, mode, 0)?;
        own(beside)?;
    } else {
        // A socket without its program, or a device: nothing that a file could stand for.
        return Ok(());
    }
    Ok(rustix::fs::renameat(&dir, beside, &dir, name)?)
}

impl Session {
    /// How it is a branch.
    pub(super) fn branch(&self) -> Result<Branch, Fault> {
        let branch = self.portable().and_then(|portable| portable.branch);
        branch.map(|branch| *branch).ok_or_else(|| {
            Fault::new(Code::BadRequest, format!("session {} is not a branch", self.name()))
                .hint(format!("branches are made by: holdfast fork {}", self.name()))
        })
    }
}

/// Files that cannot be read or written.
fn failed(error: &io::Error) -> Fault {
    let code = if error.kind() == io::ErrorKind::InvalidInput { Code::BadRequest } else { Code::Internal };
    Fault::new(code, error.to_string())
}

impl Registry {
    /// Which files a branch changed, or in which two branches differ.
    pub(crate) async fn fork_diff(&self, params: &ForkDiffParams, actor: &Actor) -> Result<ForkDiffAnswer, Fault> {
        let side = |wanted: &str| -> Result<patch::Side, Fault> {
            let session = self.find_for(wanted, actor, Right::Observe)?;
            if params.patch {
                // What is in files is more than a terminal shows.
                self.may(&session, wanted, actor, Right::Fork.into())?;
            }
            Ok((session.dir.clone(), session.branch()?))
        };
        let one = side(&params.session)?;
        let other = params.with.as_deref().map(side).transpose()?;
        let wants_patch = params.patch;
        let looked = crate::shares::aside(move || patch::answer(&one, other.as_ref(), wants_patch)).await;
        looked.map_err(|error| failed(&error))
    }

    /// Applies a branch's files to the real ones, or copies them.
    pub(crate) async fn fork_keep(&self, params: &ForkKeepParams, actor: &Actor) -> Result<ForkKeepAnswer, Fault> {
        let session = self.find_acting(&params.session, actor)?;
        let ask = Ask::other(const { terms_of("fork.keep") }, params.detail());
        self.may(&session, &params.session, actor, ask.needs().1)?;
        if !session.is_human(actor) {
            return Err(Fault::new(Code::Denied, "only a human applies a branch's files to others"));
        }
        let branch = session.branch()?;
        let decided = session.ask(actor, None, ask, params.proof)?;
        let mut begun = session.begun(&decided);
        holdfast_pause::task_point("fork.keeps").await;
        let (dir, choices) = (session.dir.clone(), Choices::of(params));
        let into = params.into.as_ref().map(PathBuf::from);
        let done = off_thread(move || match into {
            Some(into) => copy_into(&dir, &branch, &into),
            None => apply(&dir, &branch, &choices),
        });
        let done = done.await;
        let outcome = match &done {
            Ok(answer) if !answer.conflicts.is_empty() => Err(format!("{} files conflict", answer.conflicts.len())),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        begun.over(&outcome);
        done.map_err(|error| failed(&error))
    }

    /// Ends a branch, and removes its files and checkpoints. What it did stays on record.
    pub(crate) async fn fork_discard(
        &self,
        params: &ForkDiscardParams,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<SessionView, Fault> {
        let session = self.find_acting(&params.session, actor)?;
        let ask = Ask::other(const { terms_of("fork.discard") }, String::new());
        self.may(&session, &params.session, actor, ask.needs().1)?;
        session.branch()?;
        let _one = session.reviving.lock().await;
        let decided = session.ask_discard(actor, ask, params, released).await?;
        session.cut_down().await;
        let gone = match session.view_life() {
            Life::Running => Err(Fault::new(Code::Busy, format!("some processes of {} do not end", session.name()))),
            _ => session.remove_branch().await.map_err(|error| failed(&error)),
        };
        session.begun(&decided).over(&gone.as_ref().copied().map_err(|fault| &fault.message));
        gone.map(|()| session.view())
    }
}

impl Session {
    /// Ends its processes at once: nothing of what they do is wanted.
    pub(super) async fn cut_down(&self) {
        match self.view_life() {
            Life::Running => {
                self.is_to_end();
                self.kill_keeper().await;
            }
            Life::Lost => self.dismiss(),
            Life::Ended | Life::Unknown | Life::Damaged => {}
        }
    }

    /// Removes what a branch changed, and its checkpoints.
    async fn remove_branch(self: &Rc<Self>) -> io::Result<()> {
        let dir = self.dir.clone();
        off_thread(move || {
            for name in ["files", "checkpoints", "restore"] {
                match fs::remove_dir_all(dir.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            Ok(())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A branch over some real files, in which the fork was a while ago.
    fn made(home: &Path) -> (PathBuf, PathBuf, Branch) {
        let (real, dir) = (home.join("real"), home.join("branch"));
        fs::create_dir(&real).unwrap();
        fs::write(real.join("text"), "old").unwrap();
        fs::write(real.join("other"), "old").unwrap();
        let branch = Branch { since_ms: crate::now_ms() + 1, ..files::tests::branch(&real) };
        // Whatever is done from here on is later.
        while crate::now_ms() <= branch.since_ms + 10 {
            std::thread::yield_now();
        }
        branch.make(&dir).unwrap();
        fs::write(Branch::upper(&dir, 0).join("text"), "new").unwrap();
        fs::write(Branch::upper(&dir, 0).join("made"), "new").unwrap();
        (real, dir, branch)
    }

    #[test]
    fn changed_files_are_applied_and_none_of_them_while_one_conflicts() {
        let home = tempfile::tempdir().unwrap();
        let (real, dir, branch) = made(home.path());
        fs::write(real.join("text"), "mine").unwrap();
        let refused = apply(&dir, &branch, &Choices::default()).unwrap();
        assert!(refused.applied.is_empty());
        assert_eq!(refused.conflicts.len(), 1, "{refused:?}");
        assert!(refused.conflicts[0].path.ends_with("/text") && !real.join("made").exists());
        let leave = Choices { leave: vec![real.join("text")], ..Choices::default() };
        assert_eq!(apply(&dir, &branch, &leave).unwrap().applied.len(), 1);
        assert_eq!(fs::read_to_string(real.join("text")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(real.join("made")).unwrap(), "new");
        let take = Choices { take: vec![real.join("text")], ..Choices::default() };
        apply(&dir, &branch, &take).unwrap();
        assert_eq!(fs::read_to_string(real.join("text")).unwrap(), "new");
        assert_eq!(apply(&dir, &branch, &Choices::default()).unwrap(), ForkKeepAnswer::default());
        let odd = Choices { take: vec![real.join("other")], ..Choices::default() };
        assert!(apply(&dir, &branch, &odd).unwrap_err().to_string().contains("is no changed file"));
    }

    #[test]
    fn a_directory_that_became_a_link_meanwhile_leads_nowhere() {
        let home = tempfile::tempdir().unwrap();
        let (real, dir, _) = made(home.path());
        fs::create_dir(Branch::upper(&dir, 0).join("sub")).unwrap();
        fs::write(Branch::upper(&dir, 0).join("sub/in"), "new").unwrap();
        let elsewhere = home.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, real.join("sub")).unwrap();
        let change = Change {
            path: real.join("sub/in"),
            how: HowChanged::Created,
            is_dir: false,
            at: Some(Branch::upper(&dir, 0).join("sub/in")),
        };
        assert!(put(&change, &change.path).is_err());
        assert!(!elsewhere.join("in").exists());
    }

    #[test]
    fn files_are_copied_elsewhere_only_into_an_empty_directory() {
        let home = tempfile::tempdir().unwrap();
        let (real, dir, branch) = made(home.path());
        let into = home.path().join("into");
        assert_eq!(copy_into(&dir, &branch, &into).unwrap().applied.len(), 2);
        let copied = into.join(real.strip_prefix("/").unwrap()).join("text");
        assert_eq!(fs::read_to_string(copied).unwrap(), "new");
        assert!(copy_into(&dir, &branch, &into).unwrap_err().to_string().contains("not empty"));
        assert_eq!(fs::read_to_string(real.join("text")).unwrap(), "old");
    }
}
