//! Portable sessions: what stands around their command, checkpoints of their processes, and how they come back from one.
//!
//! A portable session is started by `holdfast-portable` (`spawn.rs` has it), in namespaces that CRIU can describe. The host runs
//! `criu dump`; `criu restore` is run by the keeper's child, so that the processes come back as its children. Everything else about
//! another life is as `recover` has it: the ring's lock, the count of offsets, the streams.
//!
//! | file of the session | what it has |
//! |---|---|
//! | `portable` | the program that is pid 1 of the session; part of every image, so no upgrade touches it |
//! | `root` | an empty directory, on which the session's root is put together |
//! | `checkpoints/ckp_…/` | a checkpoint: `manifest`, `screen`, `input`, `img/` |
//! | `checkpoints/ckp_….partial/` | one that is being made, or never was: nobody reads it |
//! | `checkpoints/still` | the processes stand still for a checkpoint: the next host lets them go on |
//! | `restore/` | what CRIU says while it restores, and the image's unpacked files until it is done |
//! | `files/` | of a branch: what it changed of the machine's files (`branch.rs`) |
//!
//! A portable session sees its own directory as `own/` in the home's state directory, whichever session it is: a branch is a copy of
//! processes that know their files by these names, and finds its own there.

mod apply;
pub(crate) mod auto;
mod branch;
pub mod criu;
mod files;
pub(crate) mod fork;
pub(crate) mod kept;
pub(crate) mod make;
mod mounts;
mod patch;
pub(crate) mod restore;
pub(crate) mod resume;
mod still;

use crate::birth::Birth;
use crate::session::Session;
use crate::spawn;
use crate::store::{Spec, make_dir};
use holdfast_abi::start::Start;
use holdfast_observe::portable::Tree;
use holdfast_types::Home;
use holdfast_wire::{Code, Fault};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(crate) use branch::Branch;
pub(crate) use still::{Standing, mend, stands};

/// Where a portable session sees its own directory, in the home's state directory.
const OWN: &str = "own";

/// How a session is portable, in its spec.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portable {
    /// Mounts of the machine that it sees, parents first.
    pub mounts: Vec<String>,
    /// Where it sees its own directory; none: where that lies, as in earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
    /// It is a branch of another session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Box<Branch>>,
    /// What is run in it when its processes come from a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_resume: Option<String>,
    /// How often a checkpoint is made, where something happened since the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// The checkpoint for which it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_for: Option<String>,
    /// Its shell stood at a prompt when this life began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_prompt: bool,
    /// The home's own directories, as it sees them and where they are: of a session that came from another host, they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mapped: Vec<(String, String)>,
    /// The keys with which it was moved here, and before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub came_with: Vec<String>,
    /// Where it was moved: from the file that says so (`moving/home.rs`).
    #[serde(skip)]
    pub moved: Option<Box<holdfast_wire::moves::MovedView>>,
    /// What this life began from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Box<holdfast_wire::portable::RestoredView>>,
}

/// The program that is pid 1 of the session.
pub(crate) fn program_of(dir: &Path) -> PathBuf {
    dir.join("portable")
}

/// What a session sees as its own directory.
pub(crate) fn seen_dir(session: &Session, spec: &Spec) -> PathBuf {
    let own = spec.portable.as_ref().and_then(|portable| portable.own.as_ref());
    own.map_or_else(|| session.dir.clone(), PathBuf::from)
}

/// How a session that is to be portable will be, or why it cannot.
pub(crate) fn checked(home: &Home, birth: &Birth) -> Result<Portable, Fault> {
    let refused = |message: &str, hint: &str| Err(Fault::new(Code::CannotStart, message).hint(hint));
    if !rustix::process::getuid().is_root() {
        return refused(
            "a portable session needs a host that runs as root",
            "without root a lost session comes back with its history and directory, but without its processes: see holdfast recover",
        );
    }
    if birth.other.is_some() && birth.on_resume.is_some() {
        return refused("a command for --on-resume runs as root: it does not go with --user", "leave out one of them");
    }
    if birth.wall.is_some() {
        return refused(
            "a session cannot be portable and have a wall: a restored process would be without it",
            "leave out --portable or --wall",
        );
    }
    if criu::find(&home.state).is_none() {
        return refused("a portable session needs CRIU, which is not installed", "get it with: holdfast doctor --fix");
    }
    let cannot = |error: io::Error| Fault::new(Code::CannotStart, format!("cannot read the machine's mounts: {error}"));
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let [state, run, cwd] = [real(&home.state), real(&home.run), real(Path::new(&birth.cwd))];
    let own = state.join(OWN);
    make_dir(&own).map_err(cannot)?;
    let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").map_err(cannot)?;
    let mut mounts = mounts::kept(&mountinfo, &[&state, &run, &cwd]);
    // Each by itself: in a branch they are the real ones, below files that are not.
    let text = |path: &Path| path.to_string_lossy().into_owned();
    mounts.extend([text(&state), text(&run), text(&own)]);
    mounts.sort();
    mounts.dedup();
    let (on_resume, every_ms) = (birth.on_resume.clone(), birth.checkpoint_every_ms);
    Ok(Portable { mounts, own: Some(text(&own)), on_resume, every_ms, ..Portable::default() })
}

/// Puts the session's init and namespaces around its command, if it is portable.
pub(crate) fn dress(home: &Home, session: &Session, spec: &Spec, start: &mut Start) -> Result<(), Fault> {
    let Some(portable) = &spec.portable else { return Ok(()) };
    let cannot = |error: io::Error| Fault::new(Code::CannotStart, format!("cannot make it portable: {error}"));
    let program = spawn::install(&home.state, spawn::PORTABLE).map_err(cannot)?;
    let (init, root) = (program_of(&session.dir), session.dir.join("root"));
    make_dir(&session.dir).and_then(|()| make_dir(&root)).map_err(cannot)?;
    link(&program, &init).map_err(cannot)?;
    if let Some(branch) = &portable.branch {
        branch.make(&session.dir).map_err(cannot)?;
    }
    let bytes = |path: PathBuf| path.into_os_string().into_vec();
    let mut words = vec![bytes(program)];
    words.extend(portable.within(&session.dir, &session.dir.join("said")));
    let from = portable.source(&session.dir, "/");
    words.extend([b"begin".to_vec(), bytes(program_of(&seen_dir(session, spec))), bytes(root), bytes(from)]);
    words.push(portable.mounts.len().to_string().into_bytes());
    for mount in &portable.mounts {
        words.extend([bytes(portable.source(&session.dir, mount)), mount.clone().into_bytes()]);
    }
    words.push(std::mem::take(&mut start.argv0));
    start.argv.splice(0..0, words);
    Ok(())
}

/// How a session's keeper is started: one of a portable session in a mount namespace of its own.
pub(crate) fn apart(home: &Home, spec: &Spec) -> io::Result<Option<PathBuf>> {
    spec.portable.as_ref().map(|_| spawn::install(&home.state, spawn::PORTABLE)).transpose()
}

/// The program as the session's own file, if it is not there.
pub(super) fn link(program: &Path, init: &Path) -> io::Result<()> {
    if init.exists() {
        return Ok(());
    }
    std::fs::hard_link(program, init).or_else(|_| std::fs::copy(program, init).map(drop))
}

/// Whether a process of the session's last life is left: its init, which has the session's program as its name, and the session's directory
/// as its own.
pub(crate) fn is_left(dir: &Path, seen: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let program = program_of(seen);
    let identity = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let own = identity(dir);
    let is_its = |pid: &str| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_init = line.split(|byte| *byte == 0).next() == Some(program.as_os_str().as_bytes());
        is_init && identity(Path::new(&format!("/proc/{pid}/root{}", seen.display()))) == own
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().into_string().ok())
        .any(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && is_its(&name))
}

impl Session {
    /// How it is portable.
    pub(crate) fn portable(&self) -> Option<Portable> {
        self.state.borrow().spec.portable.clone()
    }

    /// The processes around the command of a portable session that runs.
    pub(crate) fn portable_tree(&self) -> Result<Tree, Fault> {
        let name = self.name();
        if self.state.borrow().spec.portable.is_none() {
            return Err(Fault::new(Code::BadRequest, format!("session {name} is not portable"))
                .hint("only a session that was started with `holdfast new --portable` can have checkpoints"));
        }
        let waits = self.state.borrow().waits;
        holdfast_observe::portable::tree(waits).ok_or_else(|| {
            Fault::new(Code::Busy, format!("session {name} is just starting or ending")).hint("try again")
        })
    }
}
