//! Making a checkpoint.
//!
//! The processes stand still from the dump until everything about them is known: what was typed and not read, and the screen. Then they go
//! on, or the image is sealed and they end. Whatever fails or whoever is killed in between, the session goes on or the image is whole: a
//! file says that they stand still, and the next host lets them go on.

use super::still::{self, Standing};
use super::{Portable, criu, fork, kept};
use crate::registry::Registry;
use crate::session::Session;
use crate::{off_thread, spawn};
use holdfast_authority::Ask;
use holdfast_observe::graph::{Depth, Graph, ProcessId, snapshot};
use holdfast_observe::portable::{self as seen, Obstacles, Tree};
use holdfast_session::Decided;
use holdfast_store::{Survives, replace};
use holdfast_types::{Actor, Offset, Right, Size, terms_of};
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::portable::{
    CheckAnswer, CheckpointListParams, CheckpointParams, CheckpointRemoveParams, CheckpointView, Obstacle,
};
use holdfast_wire::runs::RunState;
use holdfast_wire::{Code, Fault};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Programs named in a checkpoint.
const PROGRAMS_MAX: usize = 64;
/// Left free on the disk beside the image.
const SPARE_BYTES: u64 = 64 * 1024 * 1024;
/// Output of stopped processes is on its way from the terminal to the ring: the ring's head must stand still for so long.
pub(super) const QUIET: Duration = Duration::from_millis(5);
const QUIET_LOOKS: u32 = 40;
/// A shell has the terminal again this long after a command's end; so often it is waited for.
const MOMENT: Duration = Duration::from_millis(30);
const MOMENTS_MAX: u32 = 5;
/// What a dump needs to know.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub dir: PathBuf,
    pub id: String,
    pub criu: PathBuf,
    pub helper: PathBuf,
    pub tree: Tree,
    pub portable: Portable,
    /// Where the image goes, where it is for a branch.
    pub branch: Option<PathBuf>,
    /// What there is of the session beside its processes goes with it.
    pub takes_past: bool,
    /// The host makes it by itself, and may remove it.
    pub automatic: bool,
    /// Its keeper lets the processes go on, where the lease still holds.
    pub leased: bool,
}

/// What a dump is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A checkpoint that an actor asked for.
    Asked,
    /// One that the host makes by itself.
    Automatic,
    /// Branches.
    Fork,
    /// A life on another host.
    Move,
}

/// What a checkpoint can be made of now.
#[derive(Debug)]
pub(crate) struct Ready {
    pub check: CheckAnswer,
    pub graph: Graph,
    pub(super) plan: Plan,
}

impl Ready {
    /// Pid 1 of the session.
    pub(crate) fn init(&self) -> u32 {
        self.plan.tree.init
    }
}

fn told(list: Vec<seen::Obstacle>) -> Vec<Obstacle> {
    list.into_iter().map(|one| Obstacle { pid: one.pid, program: one.program, fd: one.fd, what: one.what }).collect()
}

fn answer(found: Obstacles) -> CheckAnswer {
    CheckAnswer {
        processes: found.processes as u32,
        refused: told(found.refused),
        cut: told(found.cut),
        noted: told(found.noted),
    }
}

/// One obstacle, in a line.
pub(crate) fn line(one: &Obstacle) -> String {
    let fd = one.fd.map_or_else(String::new, |fd| format!(" descriptor {fd}:"));
    format!("{} ({}):{fd} {}", one.program, one.pid, one.what)
}

impl Session {
    /// What a checkpoint would meet now.
    async fn obstacles(&self) -> Result<(CheckAnswer, Tree, Graph), Fault> {
        let tree = self.portable_tree()?;
        let (keeper, spared) = (self.state.borrow().keeper_pid, self.own.spared());
        let looked = off_thread(move || {
            let graph = snapshot(keeper, Depth::Full, None, &spared)?;
            Ok((answer(seen::obstacles(&graph, tree)), tree, graph))
        });
        looked.await.map_err(|error| Fault::new(Code::Busy, format!("cannot look at its processes: {error}")))
    }

    /// Makes a checkpoint, once it is recorded.
    pub(super) async fn dump(self: &Rc<Session>, ready: Ready, stop: bool) -> Result<kept::Manifest, Fault> {
        let (manifest, standing) = self.dump_still(ready, stop).await?;
        if standing.is_some() {
            self.stop_for(&manifest.view.id).await;
        }
        Ok(manifest)
    }

    /// The same; where they are not to go on, the processes stand still afterwards.
    pub(crate) async fn dump_still(
        self: &Rc<Session>,
        ready: Ready,
        stays: bool,
    ) -> Result<(kept::Manifest, Option<Standing>), Fault> {
        let Ready { check, graph, plan } = ready;
        let failed = |error: io::Error| {
            Fault::new(Code::Busy, format!("no checkpoint was made: {error}"))
                .hint("the session goes on; `holdfast checkpoint --check` shows what is in the way")
        };
        let began = Instant::now();
        let (standing, terminal) = self.dump_in_a_good_moment(&plan).await.map_err(failed)?;
        let mut standing = Some(standing);
        let (screen, size, head) = self.still_screen().await;
        let prompt = self.is_at_known_prompt();
        if plan.takes_past {
            self.state.borrow_mut().picture.save(false);
        }
        let taking = plan.clone();
        let canonical = off_thread(move || take_input(&taking, &screen)).await;
        if (canonical.is_err() || !stays)
            && let Some(standing) = standing.take()
        {
            standing.go_on().await;
        }
        let canonical = canonical.map_err(failed)?;
        let still_ms = began.elapsed().as_millis() as u64;
        let manifest = kept::Manifest {
            view: self.checkpoint_view(&plan, &graph, &check, size, still_ms),
            // Its end will be shown under its token, whichever life it is.
            run: self.run_on().filter(|run| run.state == RunState::Running && !run.token.is_empty()).map(|run| run.id),
            head,
            terminal: terminal.key,
            tty: terminal.tty_key,
            leaders: terminal.leaders,
            canonical,
            prompt,
            files: Vec::new(),
            packed: Vec::new(),
        };
        let (dir, criu, branch) = (plan.dir.clone(), plan.criu.clone(), plan.branch.clone());
        let sealed = off_thread(move || {
            let img = kept::partial(&dir, &manifest.view.id).join("img");
            criu::note_processor(&criu, &img)?;
            let mut manifest = manifest;
            manifest.view.criu = criu::version(&criu)?;
            kept::seal(&dir, branch.as_deref().unwrap_or(&dir), manifest)
        });
        let sealed = sealed.await;
        holdfast_pause::task_point("checkpoint.named").await;
        match sealed {
            Ok(manifest) => Ok((manifest, standing)),
            Err(error) => {
                if let Some(standing) = standing {
                    standing.go_on().await;
                }
                kept::sweep(&plan.dir);
                Err(failed(error))
            }
        }
    }

    /// Has the processes stand still, with an image of them. In a moment in which nobody has the terminal they go on, and it is tried again.
    async fn dump_in_a_good_moment(self: &Rc<Session>, plan: &Plan) -> io::Result<(Standing, seen::Terminal)> {
        for _ in 0..MOMENTS_MAX {
            let (dumping, said) = (plan.clone(), self.lease_said());
            let dumped = off_thread(move || dump_blocking(&dumping)).await;
            // From here on they stand still, also for a keeper that has its lease again. CRIU itself could not work on what a keeper has frozen.
            self.lease_stands(true);
            let (before, terminal) = dumped.inspect_err(|_| _ = self.lease_stands(false))?;
            holdfast_pause::task_point("checkpoint.dumped").await;
            let standing = Standing::new(Rc::clone(self), plan.clone(), before);
            let is_held = said == self.lease_said();
            if is_held && seen::has_foreground(plan.tree.init) {
                return Ok((standing, terminal));
            }
            standing.go_on().await;
            kept::sweep(&plan.dir);
            if !is_held {
                return Err(io::Error::other("its lease could not be renewed in time"));
            }
            tokio::time::sleep(MOMENT).await;
        }
        Err(io::Error::other(
            "nobody has its terminal: the foreground job has ended, and no shell has taken the terminal back",
        ))
    }

    /// The screen once everything that was printed is on it, its size, and where the output stands.
    async fn still_screen(&self) -> (Vec<u8>, Size, Offset) {
        let head = || self.state.borrow().ring.as_ref().map_or(0, holdfast_abi::ring::Ring::head);
        let mut last = head();
        for _ in 0..QUIET_LOOKS {
            tokio::time::sleep(QUIET).await;
            if std::mem::replace(&mut last, head()) == head() {
                break;
            }
        }
        let (screen, size) = self.painted().await;
        (screen, size, self.state.borrow_mut().picture.seen())
    }

    fn checkpoint_view(
        &self,
        plan: &Plan,
        graph: &Graph,
        check: &CheckAnswer,
        size: Size,
        still_ms: u64,
    ) -> CheckpointView {
        let state = self.state.borrow();
        let inside =
            graph.processes.iter().filter(|process| process.pid != plan.tree.waits && process.pid != plan.tree.init);
        CheckpointView {
            id: plan.id.clone(),
            session: self.id,
            name: state.spec.name.clone(),
            at_ms: crate::now_ms(),
            incarnation: state.core.authority().state().incarnation(),
            size,
            bytes: 0,
            still_ms,
            programs: inside.take(PROGRAMS_MAX).map(|process| process.comm.clone()).collect(),
            cut: check.cut.iter().map(line).collect(),
            mounts: plan.portable.mounts.clone(),
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            criu: String::new(),
            automatic: plan.automatic,
            damaged: None,
        }
    }

    /// Makes a checkpoint that was decided about, and records how that ended.
    pub(super) async fn checkpoint(
        self: &Rc<Session>,
        decided: &Decided,
        ready: Ready,
        stop: bool,
    ) -> Result<CheckpointView, Fault> {
        let mut begun = self.begun(decided);
        holdfast_pause::task_point("checkpoint.recorded").await;
        let made = self.dump(ready, stop).await.map(|manifest| manifest.view);
        begun.over(&made.as_ref().map(|_| ()).map_err(|fault| &fault.message));
        made
    }
}

/// Runs the dump. Whoever was stopped before is noted first: they stay so.
fn dump_blocking(plan: &Plan) -> io::Result<(Vec<ProcessId>, seen::Terminal)> {
    let Plan { dir, id, criu, tree, portable, .. } = plan;
    let partial = kept::begin(dir, id)?;
    let before = seen::stopped(tree.init);
    let terminal = seen::terminal(tree.init)?;
    let start = holdfast_observe::process_id(tree.init).ok_or(io::ErrorKind::NotFound)?.start;
    still::note(dir, tree.init, start, &before)?;
    let helper = portable.has_own_network().then_some(plan.helper.as_path());
    let dumped = criu::dump(criu, helper, tree.init, &partial.join("img"), &terminal, &portable.mounts);
    if let Err(error) = dumped {
        if !plan.leased {
            seen::go_on(tree.init, &before);
        }
        let _ = still::no_more(dir);
        kept::sweep(dir);
        return Err(error);
    }
    Ok((before, terminal))
}

/// Takes what was typed and not read out of the terminal; true where lines are edited there.
fn take_input(plan: &Plan, screen: &[u8]) -> io::Result<bool> {
    let partial = kept::partial(&plan.dir, &plan.id);
    replace(&partial, "screen", screen, Survives::Crash)?;
    replace(&partial, "input", b"", Survives::Crash)?;
    if plan.branch.is_some() {
        fork::take_past(&plan.dir, &partial, plan.portable.branch.is_some())?;
    }
    match still::input(plan, "take").status()?.code() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(io::Error::other("what was typed and not read cannot be kept")),
    }
}

impl Registry {
    /// What a checkpoint of a session would refuse and cut.
    pub(crate) async fn checkpoint_check(&self, wanted: &str, actor: &Actor) -> Result<CheckAnswer, Fault> {
        let session = self.find_for(wanted, actor, Right::Observe)?;
        session.running().await?;
        if session.portable().is_none() {
            let (pid, program) = {
                let state = session.state.borrow();
                (state.pid, state.spec.command.first().cloned().unwrap_or_default())
            };
            let what = "the session is not portable: only one that was started with `new --portable` can be".to_owned();
            return Ok(CheckAnswer {
                refused: vec![Obstacle { pid, program, fd: None, what }],
                ..CheckAnswer::default()
            });
        }
        session.obstacles().await.map(|(check, ..)| check)
    }

    /// Makes a checkpoint.
    pub(crate) async fn checkpoint_make(
        &self,
        params: &CheckpointParams,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<CheckpointView, Fault> {
        let session = self.find_acting(&params.session, actor)?;
        let ask = Ask::other(const { terms_of("checkpoint.make") }, params.detail());
        self.may(&session, &params.session, actor, ask.needs().1)?;
        let stop = !params.keep_running;
        if stop {
            // It ends its processes.
            self.may(&session, &params.session, actor, Right::End.into())?;
        }
        // Done also where the actor goes away meanwhile: nothing else is made of the session until it is over.
        let (registry, params, actor) = (self.clone(), params.clone(), actor.clone());
        let made = tokio::task::spawn_local(async move {
            let _one = session.reviving.lock().await;
            let ready = registry.ready(&session, Purpose::Asked).await?;
            let decided = match stop {
                true => session.ask_checkpoint(&actor, ask, &params, released).await?,
                false => session.ask(&actor, None, ask, params.proof)?,
            };
            session.checkpoint(&decided, ready, stop).await
        });
        made.await.unwrap_or_else(|_| Err(Fault::new(Code::Internal, "the host failed to make a checkpoint")))
    }

    /// What a checkpoint can be made of, or what is in the way.
    pub(crate) async fn ready(&self, session: &Session, purpose: Purpose) -> Result<Ready, Fault> {
        session.running().await?;
        let name = session.name();
        if session.state.borrow().core.is_frozen() {
            return Err(Fault::new(Code::Frozen, format!("session {name} is frozen"))
                .hint(format!("resume it first: holdfast thaw {name}")));
        }
        session.lease_must_hold()?;
        let (check, tree, graph) = session.obstacles().await?;
        if let Some(first) = check.refused.first() {
            let more = check.refused.len() - 1;
            let others = if more > 0 { format!(", and {more} more") } else { String::new() };
            let verb = match purpose {
                Purpose::Fork => "forked",
                Purpose::Move => "moved",
                Purpose::Asked | Purpose::Automatic => "checkpointed",
            };
            let mut fault = Fault::new(Code::Busy, format!("{name} cannot be {verb} now: {}{others}", line(first)))
                .hint(format!("see all of it: holdfast checkpoint --check {name}"));
            fault.details = serde_json::to_value(&check).ok().map(Box::new);
            return Err(fault);
        }
        let plan = self.plan(session, tree, &graph, purpose)?;
        Ok(Ready { check, graph, plan })
    }

    /// What is needed for a checkpoint, and whether there is room for it.
    fn plan(&self, session: &Session, tree: Tree, graph: &Graph, purpose: Purpose) -> Result<Plan, Fault> {
        let state = &self.shared.home.state;
        let cannot = |what: String, hint: &str| Fault::new(Code::CannotStart, what).hint(hint);
        let criu = criu::find(state)
            .ok_or_else(|| cannot("CRIU is not installed".into(), "get it with: holdfast doctor --fix"))?;
        let helper = spawn::install(state, spawn::PORTABLE)
            .map_err(|error| cannot(format!("cannot make a checkpoint: {error}"), "is the disk full?"))?;
        let spec = session.state.borrow().spec.clone();
        let had = kept::list(&session.dir, session.id, &spec.name).iter().filter(|view| !view.automatic).count();
        if had >= kept::CHECKPOINTS_MAX && purpose == Purpose::Asked {
            return Err(Fault::new(Code::TooMany, format!("{} has {had} checkpoints already", spec.name))
                .hint("remove one: holdfast checkpoints rm ID"));
        }
        let needed = graph.processes.iter().map(|process| process.rss_bytes).sum::<u64>() + SPARE_BYTES;
        if let Ok(disk) = rustix::fs::statvfs(&session.dir)
            && disk.f_bavail.saturating_mul(disk.f_frsize) < needed
        {
            return Err(cannot(
                format!("there is no room for a checkpoint: it may take {} MiB", needed >> 20),
                "remove older checkpoints: holdfast checkpoints ls",
            ));
        }
        let portable = spec.portable.unwrap_or_default();
        let (dir, automatic) = (session.dir.clone(), matches!(purpose, Purpose::Automatic | Purpose::Move));
        let takes_past = matches!(purpose, Purpose::Fork | Purpose::Move);
        let leased = session.state.borrow().spec.lease.is_some();
        Ok(Plan { dir, id: kept::new_id(), criu, helper, tree, portable, branch: None, takes_past, automatic, leased })
    }

    /// Checkpoints of a session, or of all that an actor may observe.
    pub(crate) async fn checkpoint_list(
        &self,
        params: &CheckpointListParams,
        actor: &Actor,
    ) -> Result<Vec<CheckpointView>, Fault> {
        let sessions = match &params.session {
            Some(wanted) => vec![self.find_for(wanted, actor, Right::Observe)?],
            None => self.all().into_iter().filter(|session| session.rights(actor).has(Right::Observe)).collect(),
        };
        let portable = sessions.iter().filter(|session| session.portable().is_some());
        let places: Vec<_> = portable
            .map(|session| (session.dir.clone(), session.id, session.state.borrow().spec.name.clone()))
            .collect();
        let listed =
            off_thread(move || Ok(places.iter().flat_map(|(dir, id, name)| kept::list(dir, *id, name)).collect()));
        listed.await.map_err(|error| Fault::new(Code::Internal, error.to_string()))
    }

    /// Removes a checkpoint.
    pub(crate) async fn checkpoint_remove(&self, params: &CheckpointRemoveParams, actor: &Actor) -> Result<(), Fault> {
        let session = self.find_acting(&params.session, actor)?;
        let _one = session.reviving.lock().await;
        let id = params.checkpoint.clone();
        let ask = Ask::other(const { terms_of("checkpoint.remove") }, id.clone());
        self.may(&session, &params.session, actor, ask.needs().1)?;
        if !kept::is_id(&id) || !kept::place(&session.dir).join(&id).exists() {
            return Err(Fault::new(Code::NotFound, format!("{} has no checkpoint {id:?}", session.name()))
                .hint("list them: holdfast checkpoints ls"));
        }
        let decided = session.ask(actor, None, ask, params.proof)?;
        let mut begun = session.begun(&decided);
        let dir = session.dir.clone();
        let removed = off_thread(move || kept::remove(&dir, &id)).await;
        begun.over(&removed);
        removed.map_err(|error| Fault::new(Code::Internal, format!("the checkpoint cannot be removed: {error}")))
    }
}
