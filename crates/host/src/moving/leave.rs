//! A session leaves this host.
//!
//! One task has the session from the moment it stands still until it goes on or its home is another host. It alone lets the processes go
//! on or ends them, so that a mover that comes twice, late or from two connections changes nothing.

use super::carried::Carried;
use super::home::{self, Moved, Passing};
use super::needs;
use super::{lock_of, sent};
use crate::connection::{ASKER, Asker};
use crate::leases::{Intent, without_store};
use crate::lives::begin::streams_of;
use crate::off_thread;
use crate::portable::make::{Purpose, Ready, line};
use crate::portable::{Standing, criu, kept};
use crate::registry::Registry;
use crate::runs::index::{self, Whose};
use crate::session::Session;
use holdfast_authority::Ask;
use holdfast_session::Decided;
use holdfast_store::{ARRIVAL, Survives, put_json};
use holdfast_types::{Actor, ActorId, Proof, Right, terms_of};
use holdfast_wire::moves::{
    HOST_BYTES_MAX, MoveAnswer, MoveHome, MoveOffer, MoveParams, MoveParcel, MoveStep, MovedView, PIECE_BYTES_MAX,
    SentFile,
};
use holdfast_wire::params::Life;
use holdfast_wire::{Code, Fault};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Copies of what is sent.
const MOVING: &str = "moving";
/// A mover that says nothing for so long is gone, though its connection is not: to look through what arrived takes less.
const SILENT: Duration = Duration::from_secs(600);
/// How often it is looked whether the mover's connection is there.
const LOOK: Duration = Duration::from_millis(200);
/// How long what is on its way to the terminal may take, and how often it is looked at.
const INPUT_WAIT: Duration = Duration::from_secs(2);
const INPUT_LOOK: Duration = Duration::from_millis(2);

/// A move that is on: the session stands still.
#[derive(Debug)]
pub(crate) struct Moving {
    parcel: MoveParcel,
    /// Where each of its files is.
    paths: Vec<PathBuf>,
    by: ActorId,
    heard: Cell<Instant>,
    orders: mpsc::UnboundedSender<Order>,
}

/// What the mover wants.
#[derive(Debug)]
enum Order {
    Commit(oneshot::Sender<Result<MoveAnswer, Fault>>),
    GiveUp(oneshot::Sender<()>),
}

/// What is known of a session's processes before they stand still.
#[derive(Debug)]
struct About {
    init: u32,
    memory: u64,
    processes: u32,
    cut: Vec<String>,
}

impl About {
    fn of(ready: &Ready) -> About {
        About {
            init: ready.init(),
            memory: ready.graph.processes.iter().map(|process| process.rss_bytes).sum(),
            processes: ready.check.processes,
            cut: ready.check.cut.iter().map(line).collect(),
        }
    }
}

/// What is sent of a session that stands still, and what opens it.
#[derive(Debug)]
struct Held {
    parcel: MoveParcel,
    paths: Vec<PathBuf>,
    key: String,
}

fn cannot(error: &io::Error) -> Fault {
    Fault::new(Code::CannotStart, format!("it cannot be moved: {error}")).hint("the session goes on here")
}

impl Registry {
    /// The session, if this actor may move it.
    pub(super) fn may_move(&self, params: &MoveParams, actor: &Actor) -> Result<Rc<Session>, Fault> {
        let wanted = &params.session;
        let session = self.find_moving(wanted, actor)?;
        self.may(&session, wanted, actor, const { terms_of("session.move") }.rights)?;
        if params.step != MoveStep::Offer {
            // It ends its processes here.
            self.may(&session, wanted, actor, Right::End.into())?;
        }
        Ok(session)
    }

    /// What a session needs elsewhere. Nothing is stopped.
    pub(super) async fn move_offer(&self, session: &Rc<Session>) -> Result<MoveAnswer, Fault> {
        if let Some(moved) = session.moved() {
            return Ok(MoveAnswer { moved: Some(Box::new(moved)), ..MoveAnswer::default() });
        }
        session.must_not_be_moving()?;
        session.must_be_settled()?;
        let ready = self.movable(session).await?;
        let offer = self.offer(session, &About::of(&ready)).await?;
        Ok(MoveAnswer { offer: Some(Box::new(offer)), ..MoveAnswer::default() })
    }

    /// What a move needs of the session, or what is in the way.
    async fn movable(&self, session: &Rc<Session>) -> Result<Ready, Fault> {
        session.must_be_home()?;
        let ready = self.ready(session, Purpose::Move).await?;
        let name = session.name();
        let portable = session.portable().unwrap_or_default();
        let why = if portable.branch.is_some() {
            Some((
                "it is a branch, whose files lie over this machine's",
                format!("keep its files first: holdfast fork keep {name}"),
            ))
        } else if portable.own.is_none() {
            Some(("it was started by an earlier version", "start it anew: holdfast new --portable".into()))
        } else if session.state.borrow().spec.gate.is_some() {
            Some(("its programs are judged before they start (--gate)", "moved processes would be without that".into()))
        } else if self.shared.hooks.needs(session.id) {
            Some(("the end of one of its runs is still to be told (--on-exit)", "wait until that run is over".into()))
        } else {
            None
        };
        match why {
            Some((why, hint)) => Err(Fault::new(Code::Busy, format!("{name} cannot be moved: {why}")).hint(hint)),
            None => Ok(ready),
        }
    }

    async fn offer(&self, session: &Rc<Session>, about: &About) -> Result<MoveOffer, Fault> {
        let home = &self.shared.home;
        let portable = session.portable().unwrap_or_default();
        // As its processes see them, which may have come from another host themselves.
        let seen = |path: &Path| {
            let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned();
            portable.mapped.iter().find(|(_, to)| *to == real).map_or(real, |(seen, _)| seen.clone())
        };
        let (state, run) = (seen(&home.state), seen(&home.run));
        let own = portable.own.clone().unwrap_or_default();
        let criu = criu::find(&home.state).ok_or_else(|| cannot(&io::Error::other("CRIU is not installed")))?;
        let (init, sums, of, at) = (about.init, self.sums.clone(), own.clone(), home.state.clone());
        let looked = off_thread(move || {
            let files = needs::files(init, &of, false, &sums)?;
            Ok((files, criu::version(&criu)?, needs::processor(&criu, &at)?))
        });
        let (files, criu, processor) = looked.await.map_err(|error| cannot(&error))?;
        let now = session.state.borrow();
        Ok(MoveOffer {
            session: session.id,
            name: now.spec.name.clone(),
            incarnation: now.core.authority().state().incarnation(),
            machine: machine_name(),
            version: env!("CARGO_PKG_VERSION").into(),
            criu,
            bytes: about.memory,
            processes: about.processes,
            cut: about.cut.clone(),
            mounts: portable.mounts.clone(),
            own,
            state,
            run,
            user: now.spec.user.clone(),
            came_with: portable.came_with.clone(),
            leased: now.spec.lease.is_some(),
            processor,
            files,
        })
    }

    /// Has the session stand still, and makes a list of what is to be sent.
    pub(super) async fn move_hold(
        &self,
        session: &Rc<Session>,
        to: &str,
        home: Option<&MoveHome>,
        actor: &Actor,
        proof: Option<Proof>,
    ) -> Result<MoveAnswer, Fault> {
        let is_odd = |c: char| c.is_control() || c == '/';
        if to.is_empty() || to.len() > HOST_BYTES_MAX || to.contains(is_odd) {
            return Err(Fault::new(Code::BadRequest, format!("a host's name has 1 to {HOST_BYTES_MAX} bytes")));
        }
        session.must_not_be_moving()?;
        session.must_be_settled()?;
        let intent = session.intent(home).await?;
        let (answer, held) = oneshot::channel();
        // Goes on where the mover goes away: somebody must let the processes go on.
        let mover = ASKER.try_with(Rc::clone).map_err(|_| Fault::new(Code::BadRequest, "a move needs a connection"))?;
        let leaving = Leaving { registry: self.clone(), session: Rc::clone(session), to: to.to_owned(), intent, mover };
        tokio::task::spawn_local(leaving.run(actor.clone(), proof, answer));
        held.await.unwrap_or_else(|_| Err(Fault::new(Code::Internal, "the host failed to hold the session")))
    }
}

fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().chars().take(HOST_BYTES_MAX).collect()
}

/// The one task that has a session while it is moved.
struct Leaving {
    registry: Registry,
    session: Rc<Session>,
    to: String,
    /// Of a leased session: how its record changes hands.
    intent: Option<Intent>,
    /// Whose connection's end lets the session go on.
    mover: Rc<Asker>,
}

impl Leaving {
    async fn run(self, actor: Actor, proof: Option<Proof>, answer: oneshot::Sender<Result<MoveAnswer, Fault>>) {
        let session = Rc::clone(&self.session);
        let _one = session.reviving.lock().await;
        let _no_run = session.entering.lock().await;
        let (ready, decided) = match self.decide(&actor, proof).await {
            Ok(both) => both,
            Err(fault) => return drop(answer.send(Err(fault))),
        };
        let mut begun = session.begun(&decided);
        holdfast_pause::task_point("move.recorded").await;
        let (held, standing) = match self.hold(ready).await {
            Ok(held) => held,
            Err(fault) => {
                session.takes_input_again();
                begun.over(&Err::<(), _>(&fault.message));
                return drop(answer.send(Err(fault)));
            }
        };
        let Held { parcel, paths, key } = held;
        let checkpoint = parcel.checkpoint.clone();
        let (orders, mut given) = mpsc::unbounded_channel();
        let told = MoveAnswer { parcel: Some(Box::new(parcel.clone())), ..MoveAnswer::default() };
        let moving = Rc::new(Moving { parcel, paths, by: actor.id, heard: Cell::new(Instant::now()), orders });
        *session.moving.borrow_mut() = Some(Rc::clone(&moving));
        holdfast_pause::task_point("move.held").await;
        let _ = answer.send(Ok(told));
        let order = loop {
            match tokio::time::timeout(LOOK, given.recv()).await {
                Ok(order) => break order,
                Err(_) if self.is_over(&moving) => break None,
                Err(_) => {}
            }
        };
        *session.moving.borrow_mut() = None;
        let committed = match &order {
            Some(Order::Commit(_)) => self.commit(key).await,
            Some(Order::GiveUp(_)) => Err(Fault::new(Code::Busy, "its mover gave up")),
            None => Err(Fault::new(Code::Busy, "its mover went away")),
        };
        begun.over(&committed.as_ref().map(|_| ()).map_err(|fault| &fault.message));
        match &committed {
            Ok(_) => session.stop_for(&checkpoint).await,
            Err(_) => self.go_on(&checkpoint, standing).await,
        }
        session.takes_input_again();
        let copies = session.dir.join(MOVING);
        let _ = off_thread(move || std::fs::remove_dir_all(copies)).await;
        match order {
            Some(Order::Commit(reply)) => drop(reply.send(committed)),
            Some(Order::GiveUp(reply)) => drop(reply.send(())),
            None => {}
        }
    }

    async fn decide(&self, actor: &Actor, proof: Option<Proof>) -> Result<(Ready, Decided), Fault> {
        self.session.must_be_home()?;
        let ready = self.registry.movable(&self.session).await?;
        let ask = Ask::other(const { terms_of("session.move") }, MoveParams::detail(&self.to));
        Ok((ready, self.session.ask_move(actor, ask, proof).await?))
    }

    /// The mover is gone, or the session is.
    fn is_over(&self, moving: &Moving) -> bool {
        self.mover.has_left() || moving.heard.get().elapsed() > SILENT || self.session.view_life() != Life::Running
    }

    /// Stops it, and takes what is to be sent.
    async fn hold(&self, ready: Ready) -> Result<(Held, Standing), Fault> {
        let session = &self.session;
        let about = About::of(&ready);
        // Before it stands still: what is known then need not be looked at again.
        let offer = self.registry.offer(session, &about).await?;
        session.takes_no_input().await?;
        let (manifest, standing) = session.dump_still(ready, true).await?;
        let standing = standing.ok_or_else(|| Fault::new(Code::Internal, "it does not stand still"))?;
        holdfast_pause::task_point("move.dumped").await;
        match self.pack(&about, offer, &manifest).await {
            Ok(held) => Ok((held, standing)),
            Err(fault) => {
                self.go_on(&manifest.view.id, standing).await;
                Err(fault)
            }
        }
    }

    async fn pack(&self, about: &About, mut offer: MoveOffer, manifest: &kept::Manifest) -> Result<Held, Fault> {
        let session = &self.session;
        session.drain_log();
        if session.state.borrow().journal.last_on_disk().is_none() {
            return Err(Fault::new(Code::Unrecorded, "its journal is not on disk").hint("is the disk full?"));
        }
        let carried = {
            let state = session.state.borrow();
            let Some(ring) = &state.ring else { return Err(Fault::new(Code::Busy, "it has just ended")) };
            let (output, log) = (ring.head().max(manifest.head), ring.log_head());
            Carried { output, log, streams: streams_of(ring), machine: offer.machine.clone() }
        };
        let state = self.registry.shared.home.state.clone();
        let runs = session.keyed_runs();
        let (dir, manifest, init, sums) =
            (session.dir.clone(), manifest.clone(), about.init, self.registry.sums.clone());
        let packed = off_thread(move || {
            offer.files = needs::files(init, &offer.own, true, &sums)?;
            let to = dir.join(MOVING);
            let _ = std::fs::remove_dir_all(&to);
            holdfast_store::make_dir(&to)?;
            carried.save(&to)?;
            put_json(&ARRIVAL, &to, sent::KEYS, &keys_of(&state, &runs)?, Survives::Crash)?;
            let key = holdfast_types::hex_text(&[crate::random_token(), crate::random_token()].concat());
            let (files, paths) = listed(&dir, &manifest, &to)?;
            let id = format!("mov_{:016x}", crate::random());
            let parcel = MoveParcel { id, offer, checkpoint: manifest.view.id.clone(), lock: lock_of(&key), files };
            Ok(Held { parcel, paths, key })
        });
        packed.await.map_err(|error| cannot(&error))
    }

    /// Makes the other host its home.
    async fn commit(&self, key: String) -> Result<MoveAnswer, Fault> {
        let session = &self.session;
        if session.view_life() != Life::Running {
            return Err(Fault::new(Code::Lost, "its keeper is gone"));
        }
        holdfast_pause::task_point("move.commits").await;
        let view = MovedView { host: self.to.clone(), at_ms: crate::now_ms(), arrived: false };
        let moved = Moved { view: view.clone(), key: key.clone() };
        match &self.intent {
            Some(intent) => self.pass_on(Passing { moved, intent: intent.clone() }).await?,
            None => {
                let dir = session.dir.clone();
                let written = off_thread(move || {
                    let Err(error) = home::commit(&dir, &moved) else { return Ok(()) };
                    // A record that may be there goes again, or it holds.
                    if home::take_back(&dir).is_ok() { Err(error) } else { Ok(()) }
                });
                written.await.map_err(|error| cannot(&error))?;
                session.is_elsewhere(view);
            }
        }
        holdfast_pause::task_point("move.committed").await;
        Ok(MoveAnswer { key: Some(key), moved: session.moved().map(Box::new), ..MoveAnswer::default() })
    }

    /// The commit of a leased session is the store's: its record changes hands in one transaction.
    async fn pass_on(&self, passing: Passing) -> Result<(), Fault> {
        let session = &self.session;
        let leases = session.leases.clone().ok_or_else(|| without_store(session))?;
        let (dir, intent, view) = (session.dir.clone(), passing.intent.clone(), passing.moved.view.clone());
        let moved = passing.moved.clone();
        let intended = off_thread(move || home::intend(&dir, &passing));
        intended.await.map_err(|error| cannot(&error))?;
        holdfast_pause::task_point("move.intended").await;
        let is_passed = leases.pass(session.id, &intent).await;
        holdfast_pause::task_point("move.passed").await;
        session.keep_outcome(is_passed.then_some(moved)).await;
        match is_passed {
            true => {
                session.is_elsewhere(view);
                Ok(())
            }
            false => Err(Fault::new(Code::Busy, "its lease could not be passed on").hint("it goes on here; try again")),
        }
    }

    /// It goes on here; what was made of it goes, unless it is all that is left.
    async fn go_on(&self, checkpoint: &str, standing: Standing) {
        standing.go_on().await;
        if self.session.view_life() == Life::Running {
            let (dir, id) = (self.session.dir.clone(), checkpoint.to_owned());
            let _ = off_thread(move || kept::remove(&dir, &id)).await;
        }
    }
}

/// What the keys of its runs stand for. Blocks.
fn keys_of(state: &Path, runs: &[holdfast_session::Run]) -> io::Result<Vec<index::Entry>> {
    let find = |run: &holdfast_session::Run| {
        let key = run.key.as_ref()?;
        index::find(state, Whose::of(&run.actor, run.shared), key).transpose()
    };
    runs.iter().filter_map(find).collect()
}

/// Everything that is sent, and where it is. Blocks.
fn listed(dir: &Path, manifest: &kept::Manifest, to: &Path) -> io::Result<(Vec<SentFile>, Vec<PathBuf>)> {
    let (mut files, mut paths) = (Vec::new(), Vec::new());
    for (path, at) in sent::take(dir, &manifest.view.id, to)? {
        let file = File::open(&at)?;
        let known = path.split_once("/img/").and_then(|(_, name)| {
            manifest.files.iter().find(|(known, ..)| known == name).map(|(_, bytes, sum)| (*bytes, *sum))
        });
        let (bytes, sum) = known.map_or_else(|| kept::summed(&file), Ok)?;
        let mode = std::fs::metadata(dir.join(&path)).unwrap_or(file.metadata()?).mode() & 0o777;
        files.push(SentFile { path, mode, bytes, sum: needs::sum_text(sum) });
        paths.push(at);
    }
    Ok((files, paths))
}

impl Session {
    /// From here on nothing more is typed into it: what is on its way arrives first.
    async fn takes_no_input(&self) -> Result<(), Fault> {
        let set = |is_moving: bool| {
            self.with_core(|core, held, now| {
                core.is_moving = is_moving;
                core.say_writer(held);
                core.after_decision(held, now);
            });
        };
        set(true);
        let deadline = Instant::now() + INPUT_WAIT;
        while self.state.borrow().core.has_sends() && Instant::now() < deadline {
            tokio::time::sleep(INPUT_LOOK).await;
        }
        // The keeper answers behind everything that it was told before.
        let probed = self.probe().await;
        if self.state.borrow().core.has_sends() || !matches!(probed, Ok(Some(_))) {
            set(false);
            return Err(Fault::new(Code::Busy, format!("{} does not read what was typed", self.name()))
                .hint("try again once its program reads its input"));
        }
        self.drain_log();
        Ok(())
    }

    fn takes_input_again(&self) {
        let is_linked = self.state.borrow().link.is_some();
        self.with_core(|core, held, now| {
            core.is_moving = false;
            if is_linked {
                core.say_writer(held);
                core.after_decision(held, now);
            }
        });
    }

    /// Whether it is known where its home is.
    fn must_be_settled(&self) -> Result<(), Fault> {
        match home::intended(&self.dir) {
            Ok(None) => Ok(()),
            Ok(Some(_)) | Err(_) => Err(Fault::new(
                Code::Busy,
                format!("whether {} was moved is not known yet: the store of leases does not answer", self.name()),
            )
            .hint("it stands still until that is known; try again then")),
        }
    }

    /// How the record of a leased session is passed on to this home.
    async fn intent(&self, home: Option<&MoveHome>) -> Result<Option<Intent>, Fault> {
        if self.state.borrow().spec.lease.is_none() {
            return Ok(None);
        }
        let leases = self.leases.as_ref().ok_or_else(|| without_store(self))?;
        let home = home.ok_or_else(|| {
            Fault::new(Code::Busy, format!("{} is leased, and the other host has no lease for it", self.name()))
                .hint("is Holdfast there of this version, with `lease` in its config.toml?")
        })?;
        leases.intent(self.id, self.incarnation(), home).await.map(Some)
    }

    /// The store's answer is known, and kept: moved, or not.
    async fn keep_outcome(&self, moved: Option<Moved>) {
        let dir = self.dir.clone();
        let kept = off_thread(move || {
            if let Some(moved) = moved {
                home::commit(&dir, &moved)?;
            }
            home::known(&dir)
        });
        if let Err(error) = kept.await {
            // The next host asks the store again, and hears the same.
            tracing::warn!(session = %self.id, "what came of its move cannot be kept: {error}");
        }
    }

    /// A host was killed while the session was passed on: what came of it is asked for. True: it lives elsewhere.
    pub(crate) async fn settle_passing(&self) -> Result<bool, Fault> {
        let damaged = |error: &io::Error| {
            Fault::new(Code::Damaged, format!("how {} was moved cannot be read: {error}", self.name()))
                .hint("it may live elsewhere: it does not run here")
        };
        let Some(Passing { moved, intent }) = home::intended(&self.dir).map_err(|error| damaged(&error))? else {
            return Ok(self.moved().is_some());
        };
        let leases = self.leases.clone().ok_or_else(|| without_store(self))?;
        let is_passed = leases.settle_pass(self.id, &intent).await;
        let view = moved.view.clone();
        self.keep_outcome(is_passed.then_some(moved)).await;
        if is_passed {
            self.is_elsewhere(view);
        }
        Ok(is_passed)
    }

    fn is_elsewhere(&self, view: MovedView) {
        if let Some(portable) = &mut self.state.borrow_mut().spec.portable {
            portable.moved = Some(Box::new(view));
        }
        self.changed.notify_waiters();
    }

    fn move_on(&self, actor: &Actor) -> Result<Rc<Moving>, Fault> {
        let moving = self.moving.borrow().clone().filter(|moving| moving.by == actor.id);
        let moving = moving.ok_or_else(|| {
            Fault::new(Code::NotFound, format!("{} is not being moved by {actor}", self.name()))
                .hint("it goes on here; begin again: holdfast move")
        })?;
        moving.heard.set(Instant::now());
        Ok(moving)
    }

    /// Bytes of a file that is sent.
    pub(super) async fn move_read(&self, actor: &Actor, file: u32, from: u64) -> Result<(MoveAnswer, Vec<u8>), Fault> {
        let moving = self.move_on(actor)?;
        let at = file as usize;
        let (Some(path), Some(sent)) = (moving.paths.get(at).cloned(), moving.parcel.files.get(at)) else {
            return Err(Fault::new(Code::BadRequest, format!("there is no file {file}")));
        };
        let length = sent.bytes.saturating_sub(from).min(PIECE_BYTES_MAX) as usize;
        let read = off_thread(move || {
            let mut bytes = vec![0; length];
            File::open(path)?.read_exact_at(&mut bytes, from)?;
            Ok(bytes)
        });
        let bytes = read.await.map_err(|error| cannot(&error))?;
        Ok((MoveAnswer::default(), bytes))
    }

    /// The commit; asked again, the same answer.
    pub(super) async fn move_commit(&self, actor: &Actor) -> Result<MoveAnswer, Fault> {
        if self.moved().is_some() && self.moving.borrow().is_none() {
            let dir = self.dir.clone();
            let found = off_thread(move || Ok(home::load(&dir))).await.ok().flatten();
            let Some(found) = found.filter(|found| !found.key.is_empty()) else {
                return Err(Fault::new(Code::Damaged, "the record of its move cannot be read"));
            };
            return Ok(MoveAnswer { key: Some(found.key), moved: Some(Box::new(found.view)), ..MoveAnswer::default() });
        }
        let (reply, done) = oneshot::channel();
        let _ = self.move_on(actor)?.orders.send(Order::Commit(reply));
        done.await.unwrap_or_else(|_| Err(Fault::new(Code::Busy, "the session went on here")))
    }

    /// It lives there: its images here can go.
    pub(super) async fn move_done(&self) -> Result<MoveAnswer, Fault> {
        if self.moved().is_none() {
            return Err(Fault::new(Code::BadRequest, format!("{} was not moved", self.name())));
        }
        let dir = self.dir.clone();
        let noted = off_thread(move || {
            let Some(mut moved) = home::load(&dir) else { return Err(io::ErrorKind::NotFound.into()) };
            moved.view.arrived = true;
            home::commit(&dir, &moved)?;
            let _ = std::fs::remove_dir_all(kept::place(&dir));
            Ok(moved.view)
        });
        let view = noted.await.map_err(|error| Fault::new(Code::Internal, error.to_string()))?;
        self.is_elsewhere(view.clone());
        Ok(MoveAnswer { moved: Some(Box::new(view)), ..MoveAnswer::default() })
    }

    /// It goes on here.
    pub(super) async fn move_give_up(&self, actor: &Actor) -> Result<MoveAnswer, Fault> {
        let (reply, done) = oneshot::channel();
        let _ = self.move_on(actor)?.orders.send(Order::GiveUp(reply));
        let _ = done.await;
        Ok(MoveAnswer::default())
    }
}
