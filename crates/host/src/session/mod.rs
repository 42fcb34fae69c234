//! One session as the host holds it: its keeper's connection, its picture, its clients.
//!
//! Nothing here cannot be rebuilt from the session's files and its keeper. State is changed in short synchronous steps;
//! nothing is borrowed across an await.

mod acts;
mod decide;
mod doing;
mod drive;
mod env;
mod graph;
mod looks;
mod place;
mod ports;
mod prompt;
mod questions;
mod ran;
mod runs;
mod sizes;
mod track;
mod turns;
mod typing;
mod waits;
mod watched;

pub use drive::{Missed, connect, drive};
pub use looks::Peer;
pub use typing::{Typing, read_bursts};

pub(crate) use decide::fault;
pub(crate) use graph::ports_of;
pub(crate) use runs::{Entered, begun, started as run_started, take_key, unkept};

use crate::clients::Clients;
use crate::journal::{Journal, Opened};
use crate::link::Link;
use crate::metrics::Metrics;
use crate::notes::{About, Notes};
use crate::picture::Picture;
use crate::proofs::Proofs;
use crate::questions::Questions;
use crate::runs::Tracker;
use crate::store::Spec;
use holdfast_abi::protocol::Welcome;
use holdfast_abi::ring::{Ring, RingError, STATE_ENDED};
use holdfast_abi::start::Started;
use holdfast_authority::{Authority, Input, Policy};
use holdfast_observe::{Freezer, Turns};
use holdfast_types::{Exit, Fence, Offset, SessionId, Size, TimeMs};
use holdfast_wire::params::{Life, SessionView};
use holdfast_wire::{Code, Fault};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::Instant;

/// How long a request waits for the keeper of a session that runs: it was just started, or its connection broke.
const LINK_WAIT: Duration = Duration::from_secs(3);

/// What became of an input frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typed {
    Written(u64),
    Refused(u8),
}

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
    link: RefCell<Option<Rc<Link>>>,
    /// Readers that wait for output.
    pub(crate) watchers: Cell<u32>,
    /// A sync of the journal is on its way.
    syncing: Cell<bool>,
    syncs: Rc<Semaphore>,
    /// One freeze or thaw at a time, in the order they were decided.
    pub(crate) stilling: tokio::sync::Mutex<()>,
    /// One run is entered at a time: from the look at the prompt to the last key.
    entering: tokio::sync::Mutex<()>,
    pub(crate) freezer: Arc<Freezer>,
    turns: Arc<Turns>,
    /// Bytes are handed to the keeper one after the other, behind the move of the shell that each waits for.
    placing: tokio::sync::Mutex<()>,
    pub(crate) metrics: Arc<Metrics>,
    proofs: Rc<RefCell<Proofs>>,
    /// What its shell wrote of itself and nobody has read yet.
    unread: env::Unread,
    /// What it is doing, for whoever watches.
    pub(crate) track: track::Track,
    pub(crate) attention: Rc<crate::attention::Attention>,
    hooks: Rc<crate::hooks::Hooks>,
    this: Weak<Session>,
}

/// Whether a session is new or was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Started by this host.
    New,
    /// Of an earlier host.
    Found,
}

/// What the keeper says of its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Probed {
    pub foreground: u32,
    pub iflag: u32,
    pub oflag: u32,
    pub lflag: u32,
    pub unread: u32,
}

/// What changes.
#[derive(Debug)]
pub(crate) struct State {
    pub spec: Spec,
    pub life: Life,
    /// The offset at which this life began, until the ring tells.
    pub base: Offset,
    pub ring: Option<Ring>,
    pub picture: Picture,
    pub size: Size,
    /// The sizes it had lately.
    pub sizes: sizes::Sizes,
    /// The size the keeper was asked for last: what it will have.
    pub asked_size: Size,
    pub authority: Authority,
    pub journal: Journal,
    /// This host has not had a connection to the keeper yet.
    pub first_link: Option<Origin>,
    /// Our number at the keeper.
    pub connection: u32,
    pub pid: u32,
    pub keeper_pid: u32,
    pub clients: Clients,
    pub typed: HashMap<(u64, u64), oneshot::Sender<Typed>>,
    pub probes: VecDeque<oneshot::Sender<Probed>>,
    /// Streams that typed through this host, with the last number each.
    pub streams: HashMap<u64, u64>,
    /// Answers to queries that came while the session was frozen.
    pub late_replies: Vec<holdfast_screen::Reply>,
    /// Log position up to which everything was looked at.
    pub log_seen: u64,
    /// Our own stream of answers to queries, the same for every host.
    pub reply_stream: u64,
    pub reply_seq: u64,
    pub child: Option<Child>,
    pub timers: Timers,
    pub runs: Tracker,
    pub questions: Questions,
    pub place: place::Place,
    pub notes: Notes,
}

/// When the driver has to do something by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timers {
    /// Tell the keeper to wake us again.
    pub rearm: Option<Instant>,
    /// Look at the log.
    pub drain: Option<Instant>,
    /// Save the screen and let it go.
    pub rest: Option<Instant>,
    /// Something passes by itself: a grace, a grant.
    pub rule: Option<Instant>,
    /// Look at what it is doing.
    pub track: Option<Instant>,
    /// Look whether its shell is at its prompt again.
    pub shell: Option<Instant>,
}

impl Timers {
    pub fn next(&self) -> Option<Instant> {
        [self.rearm, self.drain, self.rest, self.rule, self.track, self.shell].into_iter().flatten().min()
    }
}

impl Session {
    /// A session from its files, not yet connected.
    pub fn new(spec: Spec, shared: &Shared, origin: Origin) -> Rc<Session> {
        let home = &shared.home;
        let dir = home.session(spec.id);
        let life = if spec.exit.is_some() { Life::Ended } else { Life::Running };
        let policy = shared.policy();
        let (kept, questions) = match origin {
            Origin::New => (Vec::new(), Questions::default()),
            Origin::Found => (crate::runs::kept::load(&dir), crate::questions::kept::load(&dir)),
        };
        let Opened { journal, authority, note } = match origin {
            Origin::New => {
                Opened { journal: Journal::new(&dir, spec.id), authority: Authority::new(policy), note: None }
            }
            Origin::Found => Journal::open(&dir, spec.id, policy),
        };
        Rc::new_cyclic(|this| Session {
            this: this.clone(),
            syncing: Cell::new(false),
            syncs: Rc::clone(&shared.syncs),
            stilling: tokio::sync::Mutex::new(()),
            entering: tokio::sync::Mutex::new(()),
            freezer: Arc::new(Freezer::new(&spec.id.to_string())),
            turns: Arc::new(Turns::new(&spec.id.to_string())),
            placing: tokio::sync::Mutex::new(()),
            metrics: Arc::clone(&shared.metrics),
            proofs: Rc::clone(&shared.proofs),
            unread: env::Unread::default(),
            track: track::Track::default(),
            attention: Rc::clone(&shared.attention),
            hooks: Rc::clone(&shared.hooks),
            id: spec.id,
            socket: home.keeper_socket(spec.id),
            agent_link: home.agent_link(spec.id),
            changed: Notify::new(),
            nudge: Notify::new(),
            link: RefCell::new(None),
            watchers: Cell::new(0),
            state: RefCell::new(State {
                picture: Picture::new(&dir, spec.size, shared.config.history_lines),
                size: spec.size,
                sizes: sizes::Sizes::new(spec.size),
                asked_size: spec.size,
                life,
                base: 0,
                ring: None,
                authority,
                journal,
                first_link: Some(origin),
                connection: 0,
                pid: 0,
                keeper_pid: 0,
                clients: Clients::default(),
                typed: HashMap::new(),
                probes: VecDeque::new(),
                streams: HashMap::new(),
                late_replies: Vec::new(),
                log_seen: 0,
                reply_stream: crate::store::checksum(spec.secret.as_bytes()),
                reply_seq: 0,
                child: None,
                timers: Timers::default(),
                runs: Tracker::resume(kept),
                questions,
                place: place::Place::default(),
                notes: Notes::of_past(note),
                spec,
            }),
            dir,
        })
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
        state.keeper_pid = started.keeper_pid;
    }

    /// Takes over a keeper's connection: what was typed and resized since the last host looked is caught up with first.
    pub fn connected(&self, link: Link, welcome: Welcome, ring: Ring) {
        let mut state = self.state.borrow_mut();
        state.size = Size::clamped(welcome.cols, welcome.rows);
        state.asked_size = state.size;
        if !state.picture.take_sizes(&ring) {
            // Whatever the log could not tell, the size at the head is known.
            let size = state.size;
            state.picture.resized(welcome.head, size);
        }
        state.log_seen = 0;
        let logged = state.authority.state().logged().max(ring.base().log);
        if welcome.log_head.saturating_sub(logged) > ring.log_bytes() {
            // Only without its journal: what was typed and drained is known no more.
            state.log_seen = welcome.log_head;
            state.notes.add(About::Past, "earlier input is missing in the journal, which was lost or damaged");
        }
        state.connection = welcome.connection;
        state.clients.unsettle();
        state.pid = welcome.child_pid;
        state.keeper_pid = ring.header().keeper_pid;
        state.ring = Some(ring);
        *self.link.borrow_mut() = Some(Rc::new(link));
        drop(state);
        self.take_up_turn(Fence(welcome.fence));
        self.take_up_runs();
        self.take_up_shell();
        self.take_up_questions();
        self.changed.notify_waiters();
    }

    /// The keeper has its connection: what either of the two does not know of the other is settled.
    fn take_up_turn(&self, keeper_fence: Fence) {
        self.remember_who_is_here();
        let (first, connection, logged) = {
            let mut state = self.state.borrow_mut();
            (state.first_link.take(), state.connection, state.authority.state().logged())
        };
        // Not by `decide`: what was typed meanwhile counts after the news that there is a host again.
        let decided = if first == Some(Origin::Found) || keeper_fence > self.fence() {
            self.handle(Input::Restarted { keeper_fence, connection })
        } else {
            let linked = self.handle(Input::Linked { connection, log: logged });
            self.say_writer();
            if keeper_fence < self.fence() {
                self.flush_input();
            }
            linked
        };
        if first == Some(Origin::Found) {
            self.metrics.survived();
        }
        // A connection that breaks right now is taken up again.
        let _ = self.drain_log(self.link().as_deref(), true);
        if first == Some(Origin::Found) {
            // Queries before that were answered by whoever typed there, or by the last host.
            let mut state = self.state.borrow_mut();
            let until = state.authority.state().wrote_at();
            state.clients.answered_until(until);
        }
        self.after_decision();
        if let (Ok(decided), Some(this)) = (decided, self.this.upgrade())
            && let Some(freeze) = decided.still
        {
            tokio::task::spawn_local(async move { this.still(freeze).await });
        }
    }

    /// The keeper's connection, while there is one.
    pub(crate) fn link(&self) -> Option<Rc<Link>> {
        self.link.borrow().clone()
    }

    /// The keeper's connection is gone: whoever waits for it to say something waits in vain.
    pub(crate) fn unlinked(&self) {
        *self.link.borrow_mut() = None;
        let mut state = self.state.borrow_mut();
        state.typed.clear();
        state.probes.clear();
        state.timers = Timers::default();
        state.clients.unlinked();
    }

    /// The human name.
    pub fn name(&self) -> String {
        self.state.borrow().spec.name.to_string()
    }

    /// Whether it lives (an unknown keeper's session does too).
    pub fn is_live(&self) -> bool {
        matches!(self.state.borrow().life, Life::Running | Life::Unknown)
    }

    /// Whether no other session may have its name: it lives, or nothing is known of its end.
    pub fn holds_its_name(&self) -> bool {
        self.view_life() != Life::Ended
    }

    /// It was made for one run, and that is over.
    pub fn has_passed(&self) -> bool {
        self.state.borrow().spec.passing && !self.is_live()
    }

    /// How long ago it was started.
    pub(crate) fn age_ms(&self) -> u64 {
        crate::now_ms().saturating_sub(self.state.borrow().spec.created_ms)
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
        self.until(Some(LINK_WAIT), || (self.link().is_some() || self.view_life() != Life::Running).then_some(()))
            .await;
        let state = self.state.borrow();
        let name = &state.spec.name;
        match (state.life, self.link()) {
            (Life::Running, Some(link)) => Ok(link),
            (Life::Running, None) => {
                Err(Fault::new(Code::Busy, format!("the keeper of session {name} does not answer"))
                    .hint("its process may be stopped; the host keeps trying"))
            }
            (Life::Ended, _) => {
                let how = state.spec.exit.unwrap_or(Exit::Lost);
                Err(Fault::new(Code::Ended, format!("session {name} has ended: {how}"))
                    .hint(format!("to see to see to see its last screen: holdfast screen {name}")))
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
        let ended_ring = if ended { self.open_ring().ok() } else { None };
        let ring = state.ring.as_ref().or(ended_ring.as_ref());
        let note = state.notes.first().or(state.picture.note());
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
            size: state.size,
            head: ring.map_or(0, Ring::head),
            oldest: ring.map_or(0, Ring::oldest),
            ring_bytes: state.spec.ring_bytes,
            title: String::new(),
            clients: state.clients.views(state.size),
            turn: state.turn_view(),
            asks: state.questions.open() as u32,
            note: note.map(str::to_owned),
        }
    }

    /// As clients see it, with the title its program set; costs a look at the screen.
    pub fn view_with_title(&self) -> SessionView {
        let mut view = self.view();
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

    /// How many clients are attached.
    pub fn client_count(&self) -> u32 {
        self.state.borrow().clients.count() as u32
    }

    /// The keeper is gone: what is left is the ring, and in its header how the command ended, if the keeper could say.
    pub fn ended(&self, now_ms: TimeMs) {
        self.unlinked();
        if self.state.borrow().spec.exit.is_some() {
            return;
        }
        let (exit, ended_ms) = self.how_it_ended(now_ms);
        // The last keys, then the end.
        let _ = self.drain_log(None, true);
        let _ = self.handle(Input::Ended { exit });
        let mut state = self.state.borrow_mut();
        if let Some(ring) = state.ring.take() {
            state.pid = ring.header().child_pid.load(Ordering::Relaxed);
            let mut buffer = Vec::new();
            loop {
                let step = state.picture.step(&ring, &mut buffer);
                state.runs_told(&step.marks);
                if !step.more {
                    break;
                }
            }
            state.runs.session_ended(exit, ring.head(), ended_ms);
            state.picture.save(true);
        }
        state.life = Life::Ended;
        state.spec.exit = Some(exit);
        state.spec.ended_ms = Some(ended_ms);
        state.clients = Clients::default();
        let saved = state.spec.save(&self.dir);
        state.notes.wrote(About::Spec, "the end of the session could not be recorded", &saved);
        if let Some(child) = state.child.take() {
            crate::spawn::reap(child);
        }
        drop(state);
        self.end_runs();
        self.save_runs();
        self.lapse_questions();
        self.shell_ended();
        self.sync_soon();
        // A keeper that was killed leaves its socket behind.
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(&self.agent_link);
        self.freezer.forget();
        self.tell_watchers(holdfast_wire::attention::What::Exit { exit });
        self.changed.notify_waiters();
    }

    /// From the ring's header, which the keeper filled in if it could.
    fn how_it_ended(&self, now_ms: TimeMs) -> (Exit, TimeMs) {
        let mut state = self.state.borrow_mut();
        if state.ring.is_none() {
            state.ring = self.open_ring().ok();
        }
        let Some(header) = state.ring.as_ref().map(Ring::header) else { return (Exit::Lost, now_ms) };
        match header.state.load(Ordering::Acquire) {
            STATE_ENDED => {
                let status = header.status.load(Ordering::Relaxed) as i32;
                (Exit::from_wait_status(status), header.ended_ms.load(Ordering::Relaxed))
            }
            _ => (Exit::Lost, now_ms),
        }
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
    /// The signatures that were used lately.
    pub proofs: Rc<RefCell<Proofs>>,
    /// Syncs of journals that may be under way at once.
    pub syncs: Rc<Semaphore>,
    /// Who is told of runs' ends.
    pub hooks: Rc<crate::hooks::Hooks>,
    /// What happens, and who watches.
    pub attention: Rc<crate::attention::Attention>,
}

impl Shared {
    /// What the host says of actors now.
    pub fn policy(&self) -> Policy {
        Policy { defaults: self.config.defaults.clone(), vouched: self.actors.borrow().vouched().clone() }
    }
}

/// The sizes in the log from `from` to `to`: where they are there, the output offsets at which they came, and the sizes.
pub fn read_sizes(ring: &Ring, from: u64, to: u64) -> Vec<(u64, u64, Size)> {
    use holdfast_abi::log::{Kind, Record};
    let mut sizes = Vec::new();
    let Ok(length) = usize::try_from(to.saturating_sub(from)) else { return sizes };
    let mut bytes = vec![0; length.min(ring.log_bytes() as usize)];
    ring.copy_log(from, &mut bytes);
    let mut rest = bytes.as_slice();
    while let Some((record, length)) = Record::decode(rest) {
        if record.kind == Kind::Resize {
            let logged = to - rest.len() as u64;
            sizes.push((logged, record.at, Size::clamped(record.stream as u16, record.seq as u16)));
        }
        rest = &rest[length..];
    }
    sizes
}

/// Whether a directory name is a session's.
pub fn id_of(dir: &Path) -> Option<SessionId> {
    dir.file_name()?.to_str()?.parse().ok()
}
