//! Forking: copies of a session's processes as sessions of their own.
//!
//! The session stands still for a checkpoint and goes on. Each branch is then a life from that checkpoint under a new identity: with the
//! session's history, grants and shell, and with files and a network of its own. A branch that is being made is marked as one that nobody
//! has (`ahead` in its spec), and one without a spec is none: a host that is killed meanwhile leaves nothing but what its successor
//! removes.

use super::branch::{self, Branch};
use super::make::{Purpose, Ready};
use super::restore::Restore;
use super::{Portable, kept};
use crate::lives::begin::begin_branch;
use crate::off_thread;
use crate::registry::{Registry, new_id};
use crate::session::{Origin, Session};
use crate::store::{Spec, make_dir};
use holdfast_abi::ring::Base;
use holdfast_authority::journal::Link;
use holdfast_authority::{Ask, Forked, Input};
use holdfast_types::{Actor, SessionId, SessionName, TimeMs, terms_of};
use holdfast_wire::forks::{BRANCHES_MAX, ForkAnswer, ForkParams, ForkedView};
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::{Code, Fault};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What a branch takes over of its session's directory: its past, and what its shell and the host share.
const PAST: [&str; 5] = ["keyframe", "shell", "shell.jsonl", "shell.key", "birth"];
/// Where that is kept beside the image.
const PAST_DIR: &str = "past";
/// How long the restore of a branch may take that nobody wants any more: as long as any.
const LEFT_MAX: Duration = Duration::from_secs(130);
/// How often it is looked at.
const LEFT_LOOK: Duration = Duration::from_millis(10);

/// One that is to be made.
#[derive(Debug, Clone)]
struct Wanted {
    id: SessionId,
    name: SessionName,
}

/// Takes copies of what branches take over, while the session stands still. Blocks.
pub(super) fn take_past(dir: &Path, partial: &Path, is_branch: bool) -> io::Result<()> {
    let past = partial.join(PAST_DIR);
    make_dir(&past)?;
    let names = fs::read_dir(dir)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    for name in names.filter(|name| PAST.contains(&name.as_str()) || name.starts_with("history.")) {
        copy_plain(&dir.join(&name), &past.join(&name))?;
    }
    if is_branch { copy_all(&dir.join("files"), &past.join("files")) } else { Ok(()) }
}

/// Copies files and directories, and nothing else.
fn copy_plain(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_file() {
        return fs::copy(from, to).map(drop);
    }
    if kind.is_dir() {
        make_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_plain(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Copies everything as it is: whiteouts and `overlay`'s own attributes are part of what a branch changed.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    let mut command = Command::new("/bin/cp");
    command.args(["-a", "--reflink=auto", "--"]).arg(from).arg(to);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("the branch's files cannot be copied")) }
}

/// Fills a branch's directory; its spec comes last, and from another hand. Blocks.
fn fill(parent: &Path, dir: &Path, past: &Path, branch: &Branch) -> io::Result<()> {
    for entry in fs::read_dir(past)?.flatten().filter(|entry| entry.file_name() != "files") {
        copy_plain(&entry.path(), &dir.join(entry.file_name()))?;
    }
    super::link(&super::program_of(parent), &super::program_of(dir))?;
    make_dir(&dir.join("root"))?;
    if past.join("files").exists() {
        copy_all(&past.join("files"), &dir.join("files"))?;
    }
    branch.make(dir)
}

/// A branch's own checkpoint: the same image under its own name.
fn manifest_of(first: &kept::Manifest, wanted: &Wanted) -> kept::Manifest {
    let mut manifest = first.clone();
    (manifest.view.session, manifest.view.name) = (wanted.id, wanted.name.clone());
    manifest.view.id = kept::new_id();
    manifest
}

impl Registry {
    /// Starts branches of a session.
    pub(crate) async fn fork(
        &self,
        params: &ForkParams,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<ForkAnswer, Fault> {
        let session = self.find_acting(&params.session, actor)?;
        let ask = Ask::other(const { terms_of("session.fork") }, params.detail());
        self.may(&session, &params.session, actor, ask.needs().1)?;
        let count = params.branches();
        if !(1..=BRANCHES_MAX).contains(&count) || (!params.names.is_empty() && params.names.len() as u32 != count) {
            let what = format!("a fork has 1 to {BRANCHES_MAX} branches, and as many names as branches");
            return Err(Fault::new(Code::BadRequest, what));
        }
        crate::room::must_be(crate::room::START_ROOM * count as usize)
            .map_err(|error| Fault::new(Code::CannotStart, format!("the host has no room for branches: {error}")))?;
        // Done also where the actor goes away meanwhile: nothing else is made of the session until it is over.
        let (registry, params, actor) = (self.clone(), params.clone(), actor.clone());
        let forked = tokio::task::spawn_local(async move {
            let _one = session.reviving.lock().await;
            registry.fork_alone(&session, &params, &actor, released, ask).await
        });
        forked.await.unwrap_or_else(|_| Err(Fault::new(Code::Internal, "the host failed to fork the session")))
    }

    /// The same, while no other life or copy of the session is being made.
    async fn fork_alone(
        &self,
        session: &Rc<Session>,
        params: &ForkParams,
        actor: &Actor,
        released: Option<ApprovalId>,
        ask: Ask,
    ) -> Result<ForkAnswer, Fault> {
        if session.portable().is_some_and(|portable| portable.own.is_none()) {
            return Err(Fault::new(Code::BadRequest, "it was started by an earlier version, which could not fork")
                .hint("start it anew: holdfast new --portable"));
        }
        let ready = self.ready(session, Purpose::Fork).await?;
        if let Some(why) = branch::unfit(&session.dir) {
            return Err(Fault::new(Code::CannotStart, format!("a branch's files cannot be kept apart: {why}"))
                .hint("put Holdfast's state on another file system: HOLDFAST_HOME=DIR"));
        }
        let wanted = self.reserve_branches(session, params)?;
        let asked = session.ask_fork(actor, ask, params, released).await;
        let done = match asked {
            Ok(decided) => {
                // The record of this very act.
                let record = session.state.borrow().journal.last();
                holdfast_pause::task_point("fork.recorded").await;
                let made = match record {
                    Some(record) => {
                        let own_network = !params.share_network;
                        let fork =
                            Fork { registry: self, parent: session, record, actor, wanted: &wanted, own_network };
                        fork.make(ready).await
                    }
                    None => Err(Fault::new(Code::Unrecorded, "its journal cannot be written")),
                };
                session.begun(&decided).over(&made.as_ref().map(|_| ()).map_err(|fault| &fault.message));
                made
            }
            Err(fault) => Err(fault),
        };
        wanted.iter().for_each(|one| self.shared.names.started(&one.name));
        done
    }

    /// Names for branches, which nobody else gets meanwhile.
    fn reserve_branches(&self, parent: &Session, params: &ForkParams) -> Result<Vec<Wanted>, Fault> {
        let parent = parent.state.borrow().spec.name.clone();
        let names = match params.names.is_empty() {
            true => branch::names(&parent, params.branches(), |name| self.is_taken(name)),
            false => params.names.clone(),
        };
        let mut wanted: Vec<Wanted> = Vec::new();
        for name in names {
            match self.reserve(Some(name), &[]) {
                Ok(name) => wanted.push(Wanted { id: new_id(), name }),
                Err(fault) => {
                    wanted.iter().for_each(|one| self.shared.names.started(&one.name));
                    return Err(fault);
                }
            }
        }
        Ok(wanted)
    }
}

/// A fork on its way.
struct Fork<'a> {
    registry: &'a Registry,
    parent: &'a Rc<Session>,
    /// By which it was asked for.
    record: Link,
    actor: &'a Actor,
    wanted: &'a [Wanted],
    own_network: bool,
}

/// A branch, and what becomes of its first life.
type Beginning = (Rc<Session>, tokio::task::JoinHandle<Result<(), Fault>>);

impl Fork<'_> {
    fn dirs(&self) -> Vec<PathBuf> {
        self.wanted.iter().map(|one| self.registry.shared.home.session(one.id)).collect()
    }

    /// Makes all branches, or none.
    async fn make(&self, ready: Ready) -> Result<ForkAnswer, Fault> {
        let made = self.try_make(ready).await;
        if made.is_err() {
            let (dirs, home) = (self.dirs(), &self.registry.shared.home);
            for one in self.wanted {
                let _ = fs::remove_file(home.keeper_socket(one.id));
                let _ = fs::remove_file(home.agent_link(one.id));
            }
            let removed = off_thread(move || {
                dirs.iter().for_each(|dir| clear(dir));
                Ok(())
            });
            let _ = removed.await;
        }
        made
    }

    async fn try_make(&self, mut ready: Ready) -> Result<ForkAnswer, Fault> {
        let since_ms = crate::now_ms();
        let (portable, criu) = (ready.plan.portable.clone(), ready.plan.criu.clone());
        let dirs = self.dirs();
        make_dir(&dirs[0]).map_err(|error| failed(&error))?;
        ready.plan.branch = Some(dirs[0].clone());
        let manifest = self.parent.dump(ready, false).await?;
        holdfast_pause::task_point("fork.dumped").await;
        let branch = self.branch(&portable, &manifest, since_ms);
        let manifests: Vec<_> = self.wanted.iter().map(|one| manifest_of(&manifest, one)).collect();
        let (parent, first) = (self.parent.dir.clone(), manifest.view.id.clone());
        let (over, theirs) = (branch.clone(), manifests.clone());
        let filled = off_thread(move || fill_all(&parent, &dirs, &first, &over, &theirs)).await;
        filled.map_err(|error| failed(&error))?;
        holdfast_pause::task_point("fork.filled").await;
        let begun = self.begin(&manifest, manifests, &branch, &criu);
        let sessions = all_begun(begun).await?;
        let branches = sessions.into_iter().map(|session| self.registry.show(session, self.actor)).collect();
        Ok(ForkAnswer { branches, cut: manifest.view.cut, still_ms: manifest.view.still_ms })
    }

    /// How they are branches.
    fn branch(&self, portable: &Portable, manifest: &kept::Manifest, since_ms: TimeMs) -> Branch {
        let of = ForkedView {
            session: self.parent.id,
            name: manifest.view.name.clone(),
            at_ms: crate::now_ms(),
            seq: self.record.seq,
            hash: self.record.hash,
            cut: manifest.view.cut.clone(),
            own_network: self.own_network,
        };
        match &portable.branch {
            // What it has of its own was the other branch's, whose files lie over the same real ones.
            Some(branch) => Branch { of, ..(**branch).clone() },
            None => {
                let home = &self.registry.shared.home;
                let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
                Branch::first(of, portable, &[&real(&home.state), &real(&home.run)], since_ms)
            }
        }
    }

    /// Begins all of them at once.
    fn begin(
        &self,
        manifest: &kept::Manifest,
        manifests: Vec<kept::Manifest>,
        branch: &Branch,
        criu: &Path,
    ) -> Vec<Beginning> {
        let shared = &self.registry.shared;
        let (spec, state) = {
            let state = self.parent.state.borrow();
            (state.spec.clone(), state.core.authority().state().clone())
        };
        let base = Base { output: manifest.head, log: 0 };
        let begin = |(one, manifest): (&Wanted, kept::Manifest)| {
            let dir = shared.home.session(one.id);
            let screen = kept::small(&dir, &manifest.view.id, "screen");
            let of = Forked {
                parent: self.parent.id,
                name: spec.name.clone(),
                record: self.record,
                checkpoint: manifest.view.id.clone(),
                cut: manifest.view.cut.clone(),
            };
            let restore = Restore { manifest, criu: criu.to_owned(), screen };
            let input = Input::Forked { by: self.actor.clone(), of, parent: Box::new(state.clone()) };
            let session = Session::new(spec_of(&spec, one, &restore, branch.clone()), shared, Origin::New);
            let first = begin_branch(Rc::clone(shared), Rc::clone(&session), restore, base, input);
            (session, tokio::task::spawn_local(first))
        };
        self.wanted.iter().zip(manifests).map(begin).collect()
    }
}

/// Waits for all of them, and ends those that run where one does not.
async fn all_begun(begun: Vec<Beginning>) -> Result<Vec<Rc<Session>>, Fault> {
    let mut all = Ok(());
    let mut sessions = Vec::new();
    for (session, task) in begun {
        match task.await.unwrap_or_else(|_| Err(Fault::new(Code::Internal, "the host failed to begin it"))) {
            Ok(()) => sessions.push(session),
            // Its keeper has ended by then, and all that was made.
            Err(fault) => all = all.and(Err(fault)),
        }
    }
    holdfast_pause::task_point("fork.begun").await;
    let wanted = |session: &Rc<Session>| session.is_wanted().map_err(|error| failed(&error));
    match all.and_then(|()| sessions.iter().try_for_each(wanted)) {
        Ok(()) => Ok(sessions),
        Err(fault) => {
            for session in &sessions {
                session.cut_down().await;
            }
            Err(fault)
        }
    }
}

fn failed(error: &io::Error) -> Fault {
    Fault::new(Code::CannotStart, format!("no branch was made: {error}")).hint("the session goes on; is the disk full?")
}

/// Removes a branch that an earlier host was making: nobody was told of it. Its restore is not cut off, which would leave what is half-made;
/// then its keeper is killed, and everything in it ends with that.
pub(crate) async fn remove_left(shared: &crate::session::Shared, id: SessionId) {
    let dir = shared.home.session(id);
    let files = [shared.home.keeper_socket(id), shared.home.agent_link(id)];
    let removed = off_thread(move || {
        let deadline = Instant::now() + LEFT_MAX;
        while let Some(keeper) = crate::lives::keeper_of(id)?.filter(|_| Instant::now() < deadline) {
            if super::restore::is_done(&dir)
                && let Some(pid) = rustix::process::Pid::from_raw(keeper as i32)
            {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            std::thread::sleep(LEFT_LOOK);
        }
        clear(&dir);
        files.iter().for_each(|file| drop(fs::remove_file(file)));
        Ok(())
    });
    if let Err(error) = removed.await {
        tracing::warn!(session = %id, "a branch that was being made cannot be removed: {error}");
    }
}

/// Removes a branch's directory. One with a spec goes by its name first: what is half-removed is none.
pub(super) fn clear(dir: &Path) {
    let _ = fs::remove_file(dir.join("spec"));
    let _ = fs::remove_file(dir.join("ring"));
    let _ = fs::remove_dir_all(dir);
}

/// Fills all directories, and gives each branch its own checkpoint. Blocks.
fn fill_all(
    parent: &Path,
    dirs: &[PathBuf],
    first: &str,
    branch: &Branch,
    manifests: &[kept::Manifest],
) -> io::Result<()> {
    let image = kept::place(&dirs[0]).join(first);
    for (dir, manifest) in dirs.iter().zip(manifests) {
        make_dir(dir)?;
        fill(parent, dir, &image.join(PAST_DIR), branch)?;
        kept::share(&dirs[0], first, dir, manifest)?;
    }
    fs::remove_dir_all(image)
}

/// What a branch is: as its session, under its own name.
fn spec_of(parent: &Spec, wanted: &Wanted, restore: &Restore, branch: Branch) -> Spec {
    let portable = restore.portable(parent.portable.clone());
    let now = crate::now_ms();
    Spec {
        id: wanted.id,
        name: wanted.name.clone(),
        secret: String::new(),
        created_ms: now,
        begun_ms: None,
        size: restore.size(),
        portable: Some(Portable { branch: Some(Box::new(branch)), ..portable }),
        ahead: true,
        passing: false,
        kept: None,
        reaped: None,
        tries: Vec::new(),
        restart_on_failure: None,
        recover: None,
        end_asked: false,
        ..parent.clone()
    }
}

impl Session {
    /// A branch that runs is one like any other session from now on.
    fn is_wanted(&self) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        state.spec.ahead = false;
        state.spec.save(&self.dir)
    }
}
