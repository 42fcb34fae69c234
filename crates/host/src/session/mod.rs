//! One session as the host holds it: its keeper's connection, its picture, its clients.
//!
//! Nothing here cannot be rebuilt from the session's files and its keeper. State is changed in short synchronous steps;
//! nothing is borrowed across an await.

mod acts;
mod attaching;
mod decide;
mod detect;
mod doing;
mod drive;
mod env;
mod followed;
mod found;
mod gated;
mod graph;
mod handover;
mod held;
mod leasing;
mod lives;
mod over;
mod place;
mod ports;
mod prompt;
mod questions;
mod ran;
mod runs;
mod shrink;
mod sizes;
mod track;
mod turns;
mod waits;

pub use attaching::Peer;
pub use drive::{Missed, connect, drive};
pub use sizes::read_sizes;

pub(crate) use decide::{counted, event, fault};
pub(crate) use graph::{Did, Owned, ports_of};
pub(crate) use held::Held;
pub use leasing::SpecLease;
pub(crate) use questions::beginning;
pub(crate) use runs::{Entered, begun, started as run_started, take_key, unkept};

use crate::link::Link;
use crate::metrics::Metrics;
use crate::notes::{About, Notes};
use crate::own::Own;
use crate::picture::Picture;
use crate::proofs::Proofs;
use crate::store::Spec;
use found::Found;
use holdfast_abi::protocol::{FEATURE_SPARE, Welcome};
use holdfast_abi::ring::{Ring, RingError};
use holdfast_abi::start::Started;
use holdfast_authority::Input;
use holdfast_observe::{Freezer, Turns};
pub use holdfast_session::Origin;
pub(crate) use holdfast_session::Probed;
use holdfast_session::{Core, Now};
use holdfast_types::{Exit, SessionId, Size, TimeMs};
use holdfast_wire::params::{Life, SessionView};
use holdfast_wire::{Code, Fault};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// How long a request waits for the keeper of a session that runs: it was just started, or its connection broke.
const LINK_WAIT: Duration = Duration::from_secs(3);

/// What a person should know when bytes were typed that no client of the host sent.
const STRANGER: &str = "a program of this user typed here past the host: see UNKNOWN in `holdfast journal`";

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Its identity.
    pub id: SessionId,
    /// Its directory.
    pub dir: PathBuf,
    /// The keeper's socket.
    pub socket: PathBuf,
    /// The link that follows the latest client's ssh agent.
    pub agent_link: PathBuf,
    pub(crate) state: RefCell<State>,
    /// Something a waiter may wait for has happened.
    pub(crate) changed: Notify,
    /// The driver should look at its deadlines again.
    pub(crate) nudge: Notify,
    /// Readers that wait for output.
    pub(crate) watchers: Rc<Cell<u32>>,
    /// A sync of the journal is on its way.
    syncing: Cell<bool>,
    pub(crate) syncs: Rc<Semaphore>,
    /// One session at a time is looked at; nothing else waits for that.
    pub(crate) looks: Rc<Semaphore>,
    /// One freeze or thaw at a time, in the order they were decided.
    pub(crate) stilling: tokio::sync::Mutex<()>,
    /// One run is entered at a time: from the look at the prompt to the last key.
    pub(crate) entering: tokio::sync::Mutex<()>,
    /// The move that is on.
    pub(crate) moving: RefCell<Option<Rc<crate::moving::Moving>>>,
    pub(crate) freezer: Arc<Freezer>,
    turns: Arc<Turns>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) own: Arc<Own>,
    proofs: Rc<RefCell<Proofs>>,
    /// What its shell wrote of itself and nobody has read yet.
    unread: env::Unread,
    /// What it is doing, for whoever watches.
    pub(crate) track: track::Track,
    pub(crate) attention: Rc<crate::attention::Attention>,
    hooks: Rc<crate::hooks::Hooks>,
    /// When its processes are looked at.
    pub(crate) looking: crate::lives::Looking,
    /// One life begins at a time.
    pub(crate) reviving: tokio::sync::Mutex<()>,
    lives: Rc<crate::lives::Lives>,
    /// Who renews its lease, where there is a store of leases.
    pub(crate) leases: Option<Rc<crate::leases::Leases>>,
    /// Its life is over, and it is being decided whether it gets another one by itself, or that one begins.
    pub(crate) returning: Cell<bool>,
    pub(crate) gate: gated::Gated,
    /// What its runs promise, and did.
    pub(crate) contracts: crate::contracts::Book,
    /// Where its programs are judged.
    pub(crate) seam: crate::seam::Seamed,
    /// Whether nobody uses it.
    pub(crate) watch: crate::reap::Watch,
    pub(crate) reaper: Rc<crate::reap::Reaper>,
    /// When the host makes a checkpoint of it by itself.
    pub(crate) due: crate::portable::auto::Due,
    pub(crate) this: Weak<Session>,
}

/// What changes: the core, and what it reaches.
#[derive(Debug)]
pub(crate) struct State {
    pub core: Core,
    pub held: Held,
}

impl std::ops::Deref for State {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
}

impl std::ops::DerefMut for State {
    fn deref_mut(&mut self) -> &mut Held {
        &mut self.held
    }
}

impl State {
    /// What an actor holds now.
    pub(crate) fn rights(&self, actor: &holdfast_types::Actor) -> holdfast_types::Rights {
        self.core.authority().rights(actor, crate::now_ms())
    }

    /// The client that writes now.
    pub(crate) fn writer(&self) -> Option<u32> {
        self.core.writer(&self.held)
    }
}

impl Session {
    /// A session from its files, not yet connected.
    pub fn new(spec: Spec, shared: &Shared, origin: Origin) -> Rc<Session> {
        let (home, dir, watchers) = (&shared.home, shared.home.session(spec.id), Rc::new(Cell::new(0)));
        let Found { journal, note, damage, core, questions } = Found::of(origin, &dir, &spec, shared);
        Rc::new_cyclic(|this| Session {
            this: this.clone(),
            syncing: Cell::new(false),
            syncs: Rc::clone(&shared.syncs),
            looks: Rc::clone(&shared.looks),
            stilling: tokio::sync::Mutex::new(()),
            entering: tokio::sync::Mutex::new(()),
            moving: RefCell::new(None),
            freezer: Arc::new(Freezer::new(&spec.id.to_string())),
            turns: Arc::new(Turns::new(&spec.id.to_string())),
            metrics: Arc::clone(&shared.metrics),
            own: Arc::clone(&shared.own),
            proofs: Rc::clone(&shared.proofs),
            unread: env::Unread::default(),
            track: track::Track::default(),
            attention: Rc::clone(&shared.attention),
            hooks: Rc::clone(&shared.hooks),
            looking: crate::lives::Looking::default(),
            reviving: tokio::sync::Mutex::new(()),
            lives: Rc::clone(&shared.lives),
            leases: shared.leases.clone(),
            returning: Cell::new(false),
            gate: gated::Gated::new(&shared.gate),
            contracts: crate::contracts::Book::new(&dir),
            seam: crate::seam::Seamed::new(home.warden_socket(spec.id)),
            watch: crate::reap::resume(origin, &dir),
            reaper: Rc::clone(&shared.reaper),
            due: crate::portable::auto::Due::new(&shared.alarm),
            id: spec.id,
            socket: home.keeper_socket(spec.id),
            agent_link: home.agent_link(spec.id),
            changed: Notify::new(),
            nudge: Notify::new(),
            watchers: Rc::clone(&watchers),
            state: RefCell::new(State {
                core,
                held: Held {
                    picture: Picture::new(&dir, spec.size, shared.config.history_lines),
                    sizes: sizes::Sizes::new(spec.size),
                    dir: dir.clone(),
                    state_dir: home.state.clone(),
                    to_tree: Vec::new(),
                    names: shared.names.clone(),
                    life: spec.life(),
                    base: 0,
                    ring: None,
                    journal,
                    pid: 0,
                    waits: 0,
                    keeper_pid: 0,
                    knows_spare: false,
                    final_bounds: std::cell::OnceCell::new(),
                    child: None,
                    timers: held::Timers::default(),
                    lease: leasing::HeldLease::default(),
                    questions,
                    place: place::Place::default(),
                    notes: Notes::of_past(note),
                    damage,
                    link: None,
                    link_error: None,
                    peers: HashMap::new(),
                    sent: HashMap::new(),
                    last_ticket: 0,
                    probes: VecDeque::new(),
                    watchers,
                    listens: false,
                    metrics: Arc::clone(&shared.metrics),
                    after: held::After::default(),
                    next_life_ms: None,
                    idle_kept: origin == Origin::Found,
                    spec,
                },
            }),
            dir,
        })
    }

    /// Records that its journal was found damaged: from now on only humans act in it. Before anything else is decided.
    pub fn record_damage(&self) {
        let Some(what) = self.state.borrow_mut().damage.take() else { return };
        tracing::error!(session = %self.id, "{what}");
        self.with_core(|core, held, now| {
            // Where it cannot be recorded it counts all the same, and the next host finds it again.
            let _ = core.handle(held, now, Input::Damaged { what });
        });
    }

    /// Opens the ring file.
    pub fn open_ring(&self) -> Result<Ring, RingError> {
        Ring::open_lean(std::fs::File::open(self.dir.join("ring")).map_err(RingError::Io)?)
    }

    /// Its keeper was just started.
    pub fn started(&self, child: Child, started: Started) {
        let mut state = self.state.borrow_mut();
        state.child = Some(child);
        state.pid = started.child_pid;
        state.waits = started.child_pid;
        state.keeper_pid = started.keeper_pid;
        self.own.keeps(self.id, started.keeper_pid);
    }

    /// Takes over a keeper's connection: what was typed and resized since the last host looked is caught up with first.
    pub fn connected(&self, link: Link, welcome: Welcome, waits: u32, ring: Ring) {
        self.remember_who_is_here();
        {
            let mut state = self.state.borrow_mut();
            if !state.picture.take_sizes(&ring) {
                // Whatever the log could not tell, the size at the head is known.
                state.picture.resized(welcome.head, Size::clamped(welcome.cols, welcome.rows));
            }
            state.pid = welcome.child_pid;
            state.waits = waits;
            // The kernel's word: the ring is a file, and says what somebody wrote there.
            state.keeper_pid = link.keeper_pid().unwrap_or(ring.header().keeper_pid);
            state.knows_spare = welcome.features & FEATURE_SPARE != 0;
            state.ring = Some(ring);
            state.link = Some(Rc::new(link));
            state.link_error = None;
            state.notes.wrote(About::Life, "", &Ok::<(), String>(()));
        }
        let connected = self.with_core(|core, held, now| core.connected(held, now, &welcome));
        if connected.lost_typing {
            let note = "earlier input is missing in the journal, which was lost or damaged";
            self.state.borrow_mut().notes.add(About::Past, note);
        }
        if connected.is_found {
            self.metrics.survived();
            self.was_not_reaped();
        }
        if let Some(this) = self.this.upgrade() {
            tokio::task::spawn_local(async move {
                if this.portable().is_some() {
                    crate::portable::mend(Rc::clone(&this)).await;
                }
                if let Some(freeze) = connected.still {
                    let _ = this.still(freeze).await;
                }
            });
        }
        if let Some(this) = self.this.upgrade() {
            tokio::task::spawn_local(async move { this.reach_trees().await });
        }
        self.take_up_runs();
        self.take_up_contracts();
        self.take_up_shell();
        self.take_up_questions();
        self.keep_keeper();
        self.state.borrow_mut().lease.stands = crate::portable::stands(self);
        self.lease_connected();
        self.take_up_seam();
        self.begin_watch();
        self.begin_checkpoints();
        self.changed.notify_waiters();
    }

    /// Lets the core act, and does afterwards what it left to do.
    pub(crate) fn with_core<T>(&self, act: impl FnOnce(&mut Core, &mut Held, Now) -> T) -> T {
        let (result, after) = {
            let mut state = self.state.borrow_mut();
            let State { core, held } = &mut *state;
            let result = act(core, held, crate::now());
            (result, std::mem::take(&mut held.after))
        };
        after.changes.iter().for_each(|change| self.news_of_change(change));
        if after.fed {
            self.save_runs();
        }
        if after.moves {
            self.move_soon();
        }
        if after.typed {
            self.stirred();
        }
        if after.decided {
            self.sync_soon();
        }
        if after.used {
            self.used();
        } else if after.decided {
            self.may_be_idle();
        }
        if after.decided || after.typed {
            self.nudge.notify_one();
            self.changed.notify_waiters();
        }
        result
    }

    /// The keeper's connection, while there is one.
    pub(crate) fn link(&self) -> Option<Rc<Link>> {
        self.state.borrow().link.clone()
    }

    /// The keeper's connection is gone: whoever waits for it to say something waits in vain.
    pub(crate) fn unlinked(&self) {
        {
            let mut state = self.state.borrow_mut();
            state.link = None;
            state.probes.clear();
            state.timers = held::Timers::default();
        }
        self.with_core(|core, held, _| core.unlinked(held));
    }

    /// The human name.
    pub fn name(&self) -> String {
        self.state.borrow().spec.name.to_string()
    }

    /// Whether it lives (an unknown keeper's session does too).
    pub fn is_live(&self) -> bool {
        matches!(self.state.borrow().life, Life::Running | Life::Unknown)
    }

    /// Whether no other session may have its name: it lives, may live again, or nothing is known of its end.
    pub fn holds_its_name(&self) -> bool {
        let state = self.state.borrow();
        state.life != Life::Ended || state.next_life_ms.is_some()
    }

    /// It was made for one run, and that is over.
    pub fn has_passed(&self) -> bool {
        self.state.borrow().spec.passing && !self.is_live()
    }

    /// How long ago this life of it was started.
    pub(crate) fn age_ms(&self) -> u64 {
        let spec = &self.state.borrow().spec;
        crate::now_ms().saturating_sub(spec.begun_ms.unwrap_or(spec.created_ms))
    }

    /// When it ended.
    pub fn ended_ms(&self) -> Option<TimeMs> {
        self.state.borrow().spec.ended_ms
    }

    /// Marks it as one this host cannot serve, with the reason.
    pub fn set_aside(&self, life: Life, note: String) {
        let mut state = self.state.borrow_mut();
        state.life = life;
        state.notes.add(About::Life, note);
    }

    /// The keeper's connection of a session that runs; waits for one that is about to be there. Refuses what a session that
    /// does not run cannot do.
    pub(crate) async fn running(&self) -> Result<Rc<Link>, Fault> {
        // One that is about to have another life is waited for too: a client that comes back after a reboot goes on.
        let is_over = || self.view_life() != Life::Running && !self.returning.get();
        self.until(Some(LINK_WAIT), || (self.link().is_some() || is_over()).then_some(())).await;
        let state = self.state.borrow();
        let name = &state.spec.name;
        match (state.life, state.link.clone()) {
            (Life::Running, Some(link)) => Ok(link),
            (Life::Running, None) => {
                Err(Fault::new(Code::Busy, format!("the keeper of session {name} does not answer"))
                    .hint("its process may be stopped; the host keeps trying"))
            }
            (Life::Ended, _) => {
                let how = state.spec.exit.unwrap_or(Exit::Lost);
                Err(Fault::new(Code::Ended, format!("session {name} has ended: {how}"))
                    .hint(format!("to see its last screen: holdfast screen {name}")))
            }
            (Life::Lost, _) if state.spec.portable.as_ref().is_some_and(|portable| portable.moved.is_some()) => {
                drop(state);
                Err(self.must_be_home().err().unwrap_or_else(|| Fault::new(Code::Lost, "it was moved")))
            }
            (Life::Lost, _) => {
                let why = state.spec.lost.as_ref().map_or("its keeper is gone", |lost| lost.why.as_str());
                Err(Fault::new(Code::Lost, format!("session {name} was lost: {why}")).hint(
                    match state.spec.lost.as_ref().and_then(|lost| lost.checkpoint.as_ref()) {
                        Some(_) => format!("to bring its processes back: holdfast restore {name}"),
                        None => format!("to give it another life: holdfast recover {name}"),
                    },
                ))
            }
            (Life::Unknown, _) => Err(Fault::new(
                Code::UnknownKeeper,
                format!("session {name} has a keeper of a version that this host does not support"),
            )
            .hint("the session keeps running; use the version of holdfast that started it")),
            (Life::Damaged, _) => Err(Fault::new(Code::Damaged, format!("cannot read the files of session {name}"))
                .hint(state.notes.first().unwrap_or_default())),
        }
    }

    /// As clients see it.
    pub fn view(&self) -> SessionView {
        let state = self.state.borrow();
        // One that is being started has nothing to tell of yet.
        let ended = state.ring.is_none() && state.life != Life::Running;
        let bounds = || self.open_ring().map_or((0, 0), |ring| (ring.head(), ring.oldest()));
        let (head, oldest) = match &state.ring {
            Some(ring) => (ring.head(), ring.oldest()),
            // Its ring is final: opened once, since all sessions that ended are listed together.
            None if matches!(state.life, Life::Ended | Life::Lost) => *state.final_bounds.get_or_init(bounds),
            None if ended => bounds(),
            None => (0, 0),
        };
        let stranger_ms = state.core.authority().state().stranger_ms();
        let note = stranger_ms.map(|_| STRANGER).or(state.notes.first()).or(state.picture.note());
        SessionView {
            id: self.id,
            name: state.spec.name.clone(),
            life: state.life,
            exit: state.spec.exit,
            command: state.spec.command.clone(),
            cwd: state.spec.cwd.clone(),
            created_ms: state.spec.created_ms,
            ended_ms: state.spec.ended_ms,
            pid: state.pid,
            keeper_pid: state.keeper_pid,
            size: state.core.size,
            head,
            oldest,
            ring_bytes: state.spec.ring_bytes,
            title: String::new(),
            clients: state.core.clients.views(state.core.size),
            turn: state.turn_view(),
            asks: state.questions.open() as u32,
            user: state.spec.user.clone(),
            note: note.map(str::to_owned),
            damaged: state.core.authority().state().damaged().map(str::to_owned),
            stranger_ms,
            incarnation: state.core.authority().state().incarnation(),
            lost: state.spec.lost.clone(),
            stand_in: state.spec.stand_in.clone(),
            recovers: state.spec.recover == Some(holdfast_wire::lives::Recovery::Auto),
            wall: state.spec.wall.clone(),
            gate: state.spec.gate,
            portable: state.spec.portable.is_some(),
            checkpoint_every_ms: state.spec.portable.as_ref().and_then(|portable| portable.every_ms),
            forked_from: state.spec.forked_from(),
            restored: state.spec.portable.as_ref().and_then(|portable| portable.restored.clone()),
            moved: state.spec.portable.as_ref().and_then(|portable| portable.moved.clone()),
            restart_on_failure: state.spec.restart_on_failure,
            next_life_ms: state.next_life_ms,
            lease: self.lease_view(crate::now_ms()),
            reap: self.reap_view(),
        }
    }

    /// As clients see it, with the title its program set; costs a look at the screen.
    pub fn view_with_title(&self) -> SessionView {
        let mut view = self.view();
        if let Some(lost) = &mut view.lost {
            crate::lives::survivors(&self.dir, lost);
        }
        if view.life != Life::Damaged && view.life != Life::Unknown {
            view.title = self
                .screen_behind(
                    &holdfast_wire::params::ScreenParams { session: String::new(), ansi: false, history: 0 },
                    None,
                )
                .title;
        }
        view
    }

    /// Whether it lives, as clients see it.
    pub fn view_life(&self) -> Life {
        self.state.borrow().life
    }

    /// Whose terminals are attached, each actor once.
    pub fn attached(&self) -> std::collections::BTreeSet<holdfast_types::ActorId> {
        let state = self.state.borrow();
        state.core.clients.iter().filter_map(|client| client.actor.as_ref().map(|actor| actor.id)).collect()
    }

    /// How many clients are attached.
    pub fn client_count(&self) -> u32 {
        self.state.borrow().core.clients.count() as u32
    }
}

/// What all sessions of a host have in common.
#[derive(Debug)]
pub struct Shared {
    /// Where everything lies.
    pub home: holdfast_types::Home,
    /// What the host was told.
    pub config: crate::HostConfig,
    /// Whom it knows.
    pub actors: RefCell<crate::actors::Actors>,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// Which processes are no part of a session, wherever they run.
    pub(crate) own: Arc<Own>,
    /// The signatures that were used lately.
    pub proofs: Rc<RefCell<Proofs>>,
    /// Syncs of journals that may be under way at once.
    pub syncs: Rc<Semaphore>,
    /// Held by the one look at a session's processes.
    pub looks: Rc<Semaphore>,
    /// Who is told of runs' ends.
    pub hooks: Rc<crate::hooks::Hooks>,
    /// Sessions whose life is over.
    pub(crate) lives: Rc<crate::lives::Lives>,
    /// Who keeps this host's lease.
    pub(crate) leases: Option<Rc<crate::leases::Leases>>,
    /// Who ends what nobody uses.
    pub(crate) reaper: Rc<crate::reap::Reaper>,
    /// Wakes who makes checkpoints that are due.
    pub(crate) alarm: Rc<tokio::sync::Notify>,
    /// What the policy says, and which acts wait.
    pub(crate) gate: Rc<crate::gate::Gate>,
    /// What happens, and who watches.
    pub attention: Rc<crate::attention::Attention>,
    /// Which names are taken.
    pub(crate) names: crate::names::Names,
}

/// Whether a directory name is a session's.
pub fn id_of(dir: &Path) -> Option<SessionId> {
    dir.file_name()?.to_str()?.parse().ok()
}
