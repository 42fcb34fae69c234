//! The host: the real picture, history, clients, authority and journal of one session, around a fake clock.
//!
//! Follows `crates/host/src/session`: `mod` how a host begins, `decide` how it decides, `drive` what it does for its keeper,
//! `serve` what it does for clients, `send` how it types for them. It keeps nothing but its files: a crash drops it wherever
//! it sends or saves, and the next one starts from them. What was written to the journal survives, as it does a process.

mod decide;
mod drive;
mod send;
mod serve;

pub(crate) use serve::{Answer, Attached, Incoming, Line, Request};

use crate::cast;
use crate::ctx::Ctx;
use crate::net::Heard;
use holdfast_abi::protocol::{FromKeeper, ToKeeper, Token, VERSION, Welcome};
use holdfast_abi::ring::Ring;
use holdfast_authority::{Authority, Input, State};
use holdfast_host::parts::{Clients, Journal, Opened, Picture};
use holdfast_screen::{Reply, history_text};
use holdfast_types::{Fence, SessionId, Size};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

/// Lines of history kept: few, so that segments change hands.
const HISTORY_LINES: u32 = 2000;

/// The stream of answers to queries, the same for every host of a session.
const REPLY_STREAM: u64 = 0xa;

/// The host died where it stood.
#[derive(Debug)]
pub(crate) struct Crashed;

/// Whether a session is new or was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    New,
    Found,
}

/// When the driver has to do something by itself.
#[derive(Debug, Default)]
struct Timers {
    rearm: Option<u64>,
    drain: Option<u64>,
    rest: Option<u64>,
    rule: Option<u64>,
}

/// A host.
pub(crate) struct Host {
    dir: PathBuf,
    wire: usize,
    greeted: bool,
    /// It has heard who is attached: a host listens to clients after that.
    heard: bool,
    /// It dies at the so-manieth frame, record or file from now.
    pub fuse: Option<u32>,
    ring: Ring,
    picture: Picture,
    size: Size,
    asked_size: Size,
    authority: Authority,
    journal: Journal,
    /// The state behind the last record in the journal: what the next host must come back to.
    recorded: State,
    first_link: Option<Origin>,
    connection: u32,
    clients: Clients,
    log_seen: u64,
    reply_stream: u64,
    reply_seq: u64,
    late_replies: Vec<Reply>,
    timers: Timers,
    tasks: Vec<serve::Task>,
    sends: Vec<send::Sending>,
    probes: VecDeque<(u64, u64)>,
    streams: BTreeMap<u64, u64>,
    /// When it was last at work, for the oracle.
    pub worked_ms: u64,
}

/// The one session of a world.
fn session() -> SessionId {
    SessionId::from_random_bits(7)
}

impl Host {
    /// The host that starts the session, on behalf of the first of the cast.
    pub fn first(ctx: &mut Ctx, dir: &Path, size: Size, secret: Token) -> Host {
        let mut host = Host::start(ctx, dir, size, secret, Origin::New);
        let started = host.handle(ctx, Input::Started { by: cast::Who(0).actor() });
        assert!(started.is_ok_and(|decided| decided.is_ok()), "whoever starts a session may");
        host
    }

    /// What was typed is in the journal, for the last look at it.
    pub fn finish(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.fuse = None;
        self.decide(ctx, Input::Tick).map(|_| ())
    }

    /// A host that starts and knocks at the keeper.
    pub fn start(ctx: &mut Ctx, dir: &Path, size: Size, secret: Token, origin: Origin) -> Host {
        let file = std::fs::File::open(dir.join("ring")).expect("the ring was made at the beginning");
        let ring = Ring::open_lean(file).expect("the ring is sound");
        let Opened { journal, authority, note } = match origin {
            Origin::New => {
                Opened { journal: Journal::new(dir, session()), authority: Authority::new(cast::policy()), note: None }
            }
            Origin::Found => Journal::open(dir, session(), cast::policy()),
        };
        if let Some(note) = note {
            ctx.fail(format!("the journal was not found as it was left: {note}"));
        }
        ctx.judge_replayed(authority.state());
        let wire = ctx.net.connect();
        ctx.net.say(wire, ToKeeper::Hello { version: VERSION, role: 1, token: secret });
        Host {
            dir: dir.to_owned(),
            wire,
            greeted: false,
            heard: false,
            fuse: None,
            ring,
            picture: Picture::new(dir, size, HISTORY_LINES),
            size,
            asked_size: size,
            recorded: authority.state().clone(),
            authority,
            journal,
            first_link: Some(origin),
            connection: 0,
            clients: Clients::default(),
            log_seen: 0,
            reply_stream: REPLY_STREAM,
            reply_seq: 0,
            late_replies: Vec::new(),
            timers: Timers::default(),
            tasks: Vec::new(),
            sends: Vec::new(),
            probes: VecDeque::new(),
            streams: BTreeMap::new(),
            worked_ms: ctx.now,
        }
    }

    /// Whether it serves the session.
    pub fn is_up(&self) -> bool {
        self.greeted && self.heard
    }

    /// It is gone: its wires hang up.
    pub fn die(self, ctx: &mut Ctx) {
        ctx.net.close(self.wire);
        ctx.counts.crashes_with_a_held_turn += u64::from(self.authority.state().turn().hold().is_some());
        ctx.counts.crashes_with_grants += u64::from(self.authority.state().grants().count() > 1);
        ctx.oracle.recorded = Some(self.recorded);
        ctx.lines.iter_mut().for_each(|line| line.host_closed = true);
    }

    /// Something reaches the world outside: here a host may die.
    fn reach(&mut self) -> Result<(), Crashed> {
        match &mut self.fuse {
            Some(0) => Err(Crashed),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn say(&mut self, ctx: &mut Ctx, frame: ToKeeper<'_>) -> Result<(), Crashed> {
        self.reach()?;
        ctx.net.say(self.wire, frame);
        Ok(())
    }

    fn save(&mut self, let_go: bool) -> Result<(), Crashed> {
        self.reach()?;
        self.picture.save(let_go);
        if let Some(note) = self.picture.note() {
            panic!("the files of {} failed: {note}", self.dir.display());
        }
        Ok(())
    }

    /// Waits for the keeper's greeting, then takes over.
    fn greet(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        if let Heard::Frame(bytes) = ctx.net.hear(self.wire) {
            match FromKeeper::decode(&bytes) {
                Ok(FromKeeper::Welcome(welcome)) => {
                    self.connected(ctx, welcome)?;
                    self.greeted = true;
                    self.begin(ctx)?;
                }
                other => ctx.fail(format!("the keeper did not greet the host: {other:?}")),
            }
        }
        Ok(())
    }

    /// As `Session::connected`.
    fn connected(&mut self, ctx: &mut Ctx, welcome: Welcome) -> Result<(), Crashed> {
        self.size = Size::clamped(welcome.cols, welcome.rows);
        if !self.picture.take_sizes(&self.ring) {
            ctx.note(format_args!("host: the log was overwritten, sizes are lost"));
            ctx.oracle.sizes_lost = true;
            self.picture.resized(welcome.head, self.size);
        }
        self.log_seen = 0;
        self.asked_size = self.size;
        if welcome.log_head.saturating_sub(self.authority.state().logged()) > self.ring.log_bytes() {
            ctx.fail("what was typed is neither in the log nor in the journal".into());
        }
        self.clients.unsettle();
        self.connection = welcome.connection;
        self.take_up_turn(ctx, Fence(welcome.fence))
    }

    /// As `Session::take_up_turn`.
    fn take_up_turn(&mut self, ctx: &mut Ctx, keeper_fence: Fence) -> Result<(), Crashed> {
        let (first, connection, logged) = (self.first_link.take(), self.connection, self.authority.state().logged());
        if keeper_fence > self.fence() {
            ctx.fail(format!("the keeper has {keeper_fence:?}, and the journal knows {:?}", self.fence()));
        }
        let decided = if first == Some(Origin::Found) || keeper_fence > self.fence() {
            self.handle(ctx, Input::Restarted { keeper_fence, connection })?
        } else {
            let linked = self.handle(ctx, Input::Linked { connection, log: logged })?;
            self.say_writer(ctx)?;
            if keeper_fence < self.fence() {
                let fence = self.fence().0;
                self.say(ctx, ToKeeper::Flush { fence })?;
            }
            linked
        };
        self.drain_log(ctx, true)?;
        if first == Some(Origin::Found) {
            self.clients.answered_until(self.authority.state().wrote_at());
        }
        self.after_decision(ctx)?;
        if let Ok(decide::Decided { still: Some(freeze), .. }) = decided {
            self.still(ctx, freeze)?;
        }
        Ok(())
    }

    /// Invariant 3: the screen as it is now, and its history, against the truth.
    pub fn compare(&mut self, ctx: &mut Ctx, with_history: bool) {
        if ctx.oracle.sizes_lost {
            return;
        }
        let gap = self.picture.gap();
        let from = gap.map_or(0, |gap| gap.to);
        let history = with_history.then(|| self.picture.history(HISTORY_LINES, None).encoded);
        let screen = self.picture.screen();
        // Not the keyframe: how many lines it still holds depends on when they were drained.
        let (to, is) = (screen.offset(), (screen.rows_ansi(), screen.cursor(), screen.size(), screen.repaint(None)));
        let open = screen.open_history();
        ctx.counts.screens_compared += 1;
        let (reference, lines) = ctx.oracle.screen(from, to);
        let should = (reference.rows_ansi(), reference.cursor(), reference.size(), reference.repaint(None));
        let mut wrong = Vec::new();
        if is.2 != should.2 {
            wrong.push(format!("size {} instead of {}", is.2, should.2));
        }
        if is.1 != should.1 {
            wrong.push(format!("cursor {:?} instead of {:?}", is.1, should.1));
        }
        if let Some(row) = (0..is.0.len().min(should.0.len())).find(|row| is.0[*row] != should.0[*row]) {
            let text = |rows: &[Vec<u8>]| String::from_utf8_lossy(&rows[row]).into_owned();
            wrong.push(format!("row {row} {:?} instead of {:?}", text(&is.0), text(&should.0)));
        }
        if wrong.is_empty() && is.3 != should.3 {
            wrong.push("something that is not shown".to_owned());
        }
        if let (Some(mut history), None) = (history, gap) {
            history.extend_from_slice(&open);
            let mut lines = lines.to_vec();
            lines.extend_from_slice(&reference.open_history());
            let (is, should) = (history_text(&history), history_text(&lines));
            if !should.ends_with(&is) || (is.lines().count() as u32) < HISTORY_LINES.min(should.lines().count() as u32)
            {
                wrong.push(format!(
                    "{} lines of history that do not end the {}",
                    is.lines().count(),
                    should.lines().count()
                ));
            }
        }
        if !wrong.is_empty() {
            ctx.fail(format!("the screen at {to} (gap {gap:?}) is wrong: {}", wrong.join("; ")));
        }
    }

    /// The gap its screen has.
    pub fn gap(&mut self) -> Option<holdfast_wire::params::Gap> {
        self.picture.gap()
    }

    /// Whether everything the keeper said was heard.
    pub fn has_heard_all(&self, ctx: &Ctx) -> bool {
        ctx.net.is_heard(self.wire)
    }
}
