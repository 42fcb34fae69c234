//! The host: the real core of a session, with its real picture and journal, around a fake clock and a fake keeper.
//!
//! `files` is what the core reaches here; `serve` is what it does for clients, in what order it hears them, and what they
//! wait for. It keeps nothing but its files: a crash drops it wherever it sends or saves, and the next one starts from them.
//! What was written to the journal survives, as it does a process.

mod files;
mod runs;
mod serve;

pub(crate) use runs::Disk;
pub(crate) use serve::{Answer, Attached, Incoming, Line, Request};

use crate::cast;
use crate::ctx::Ctx;
use crate::net::Heard;
use files::{Files, Outer};
use holdfast_abi::protocol::{FromKeeper, ToKeeper, Token, VERSION, Welcome};
use holdfast_abi::ring::Ring;
use holdfast_authority::{Ask, Authority, Caller, Input};
use holdfast_host::parts::{Journal, Opened, Picture};
use holdfast_screen::history_text;
use holdfast_session::{Core, Decided, Now, Origin as CoreOrigin, Undecided};
use holdfast_types::{SessionId, Size};
use std::path::Path;

/// Lines of history kept: few, so that segments change hands.
const HISTORY_LINES: u32 = 2000;

/// The stream of answers to queries, the same for every host of a session.
const REPLY_STREAM: u64 = 0xa;

/// Frames heard before others have their turn.
const FRAMES_AT_ONCE: u32 = 64;

/// The host died where it stood.
#[derive(Debug)]
pub(crate) struct Crashed;

/// Whether a session is new or was found.
pub(crate) type Origin = CoreOrigin;

/// A host.
pub(crate) struct Host {
    core: Core,
    files: Files,
    greeted: bool,
    /// It has heard who is attached: a host listens to clients after that.
    heard: bool,
    tasks: Vec<serve::Task>,
    jobs: runs::Jobs,
    /// When it was last at work, for the oracle.
    pub worked_ms: u64,
}

/// The one session of a world.
fn session() -> SessionId {
    SessionId::from_random_bits(7)
}

fn now(ctx: &Ctx) -> Now {
    Now { time_ms: ctx.now, clock_ms: ctx.now }
}

impl Host {
    /// The host that starts the session, on behalf of the first of the cast.
    pub fn first(ctx: &mut Ctx, dir: &Path, size: Size, secret: Token) -> Host {
        let mut host = Host::start(ctx, dir, size, secret, Origin::New);
        let started = host.decide(ctx, Input::Started { by: cast::Who(0).actor() });
        assert!(started.is_ok_and(|decided| decided.is_ok()), "whoever starts a session may");
        host
    }

    /// What was typed is in the journal, for the last look at it.
    pub fn finish(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.set_fuse(None);
        self.decide(ctx, Input::Tick).map(|_| ())
    }

    /// A host that starts and knocks at the keeper.
    pub fn start(ctx: &mut Ctx, dir: &Path, size: Size, secret: Token, origin: Origin) -> Host {
        let file = std::fs::File::open(dir.join("ring")).expect("the ring was made at the beginning");
        let ring = Ring::open_lean(file).expect("the ring is sound");
        let Opened { journal, authority, note, .. } = match origin {
            Origin::New => {
                let journal = Journal::new(dir, session());
                Opened { journal, authority: Authority::new(cast::policy()), note: None, damage: None }
            }
            Origin::Found => Journal::open(dir, session(), cast::policy()),
        };
        if let Some(note) = note {
            ctx.fail(format!("the journal was not found as it was left: {note}"));
        }
        ctx.judge_replayed(authority.state());
        let wire = ctx.net.connect();
        ctx.net.say(wire, ToKeeper::Hello { version: VERSION, role: 1, token: secret });
        let recorded = authority.state().clone();
        Host {
            core: Core::new(session(), authority, size, origin, REPLY_STREAM, ctx.disk.tracker()),
            files: Files::new(dir, wire, ring, Picture::new(dir, size, HISTORY_LINES), journal, recorded),
            greeted: false,
            heard: false,
            tasks: Vec::new(),
            jobs: runs::Jobs::default(),
            worked_ms: ctx.now,
        }
    }

    /// Whether it serves the session.
    pub fn is_up(&self) -> bool {
        self.greeted && self.heard
    }

    /// It dies at the so-manieth frame, record or file from now.
    pub fn set_fuse(&mut self, fuse: Option<u32>) {
        self.files.fuse = fuse;
    }

    /// It is gone: its wires hang up.
    pub fn die(self, ctx: &mut Ctx) {
        ctx.net.close(self.files.wire);
        let state = &self.files.recorded;
        ctx.counts.crashes_with_a_held_turn += u64::from(state.turn().hold().is_some());
        ctx.counts.crashes_with_grants += u64::from(state.grants().count() > 1);
        ctx.oracle.recorded = Some(self.files.recorded);
        ctx.lines.iter_mut().for_each(|line| line.host_closed = true);
    }

    /// Lets the core act; the host may die of what that reaches.
    fn core<T>(&mut self, ctx: &mut Ctx, act: impl FnOnce(&mut Core, &mut Outer<'_>, Now) -> T) -> Result<T, Crashed> {
        let now = now(ctx);
        let result = act(&mut self.core, &mut Outer { files: &mut self.files, ctx: &mut *ctx }, now);
        if self.files.is_dead {
            return Err(Crashed);
        }
        self.give_probes();
        self.answer_sends(ctx)?;
        self.save_runs(ctx)?;
        Ok(result)
    }

    /// Writes what became of runs.
    fn save_runs(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        let saved = self.core.save_runs(&mut Outer { files: &mut self.files, ctx: &mut *ctx });
        if self.files.is_dead {
            return Err(Crashed);
        }
        saved.over.iter().for_each(|run| ctx.run_is_over(run));
        Ok(())
    }

    fn decide(&mut self, ctx: &mut Ctx, input: Input) -> Result<Result<Decided, Undecided>, Crashed> {
        let decided = self.core(ctx, |core, out, now| core.decide(out, now, input))?;
        if let Err(Undecided::Refused(refusal)) = &decided {
            ctx.note(format_args!("host: refuses, {refusal}"));
            ctx.refused_by_host(refusal);
        }
        Ok(decided)
    }

    /// Waits for the keeper's greeting, then takes over.
    fn greet(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        if let Heard::Frame(bytes) = ctx.net.hear(self.files.wire) {
            match FromKeeper::decode(&bytes) {
                Ok(FromKeeper::Welcome(welcome)) => {
                    self.connected(ctx, &welcome)?;
                    self.greeted = true;
                    self.take_up_runs(ctx)?;
                    self.core(ctx, |core, out, now| core.begin(out, now))?;
                }
                other => ctx.fail(format!("the keeper did not greet the host: {other:?}")),
            }
        }
        Ok(())
    }

    fn connected(&mut self, ctx: &mut Ctx, welcome: &Welcome) -> Result<(), Crashed> {
        let Files { picture, ring, .. } = &mut self.files;
        if !picture.take_sizes(ring) {
            ctx.note(format_args!("host: the log was overwritten, sizes are lost"));
            ctx.oracle.sizes_lost = true;
            picture.resized(welcome.head, Size::clamped(welcome.cols, welcome.rows));
        }
        if welcome.fence > self.core.fence().0 {
            ctx.fail(format!("the keeper has fence {}, and the journal knows {:?}", welcome.fence, self.core.fence()));
        }
        let connected = self.core(ctx, |core, out, now| core.connected(out, now, welcome))?;
        if connected.lost_typing {
            ctx.fail("what was typed is neither in the log nor in the journal".into());
        }
        match connected.still {
            Some(freeze) => self.still(ctx, freeze),
            None => Ok(()),
        }
    }

    /// The tree is the program.
    fn still(&mut self, ctx: &mut Ctx, freeze: bool) -> Result<(), Crashed> {
        if self.core.is_frozen() != freeze {
            return Ok(());
        }
        if freeze != ctx.frozen {
            ctx.note(format_args!("host: the program {}", if freeze { "stands still" } else { "goes on" }));
            ctx.counts.freezes += u64::from(freeze);
        }
        ctx.frozen = freeze;
        if freeze { Ok(()) } else { self.core(ctx, |core, out, _| core.thawed(out)) }
    }

    /// Hears the keeper.
    pub fn receive_turn(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.worked_ms = ctx.now;
        if !self.greeted {
            return self.greet(ctx);
        }
        self.heard = true;
        for _ in 0..FRAMES_AT_ONCE {
            match ctx.net.hear(self.files.wire) {
                Heard::Frame(bytes) => match FromKeeper::decode(&bytes) {
                    Ok(frame) => self.frame(ctx, frame)?,
                    Err(error) => ctx.fail(format!("a frame that is none reached the host: {error}")),
                },
                Heard::Nothing | Heard::Closed => break,
            }
        }
        Ok(())
    }

    fn frame(&mut self, ctx: &mut Ctx, frame: FromKeeper<'_>) -> Result<(), Crashed> {
        let answered = match frame {
            FromKeeper::Left { connection, acked } => {
                let known = self.core.clients.by_connection(connection).map(|c| (c.id, c.is_doubtful()));
                known.filter(|(id, doubtful)| *doubtful || self.core.clients.answers(*id)).map(|_| acked)
            }
            _ => None,
        };
        self.core(ctx, |core, out, now| core.frame(out, now, frame))?;
        if let Some(acked) = answered {
            ctx.withheld(acked.max(self.core.authority().state().wrote_at()), self.files.picture.seen());
        }
        Ok(())
    }

    /// Does what is due, and sets when to be back.
    pub fn tick(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.worked_ms = ctx.now;
        if !self.greeted {
            return Ok(());
        }
        self.core(ctx, |core, out, now| core.tick(out, now))
    }

    /// Brings the screen up to the head.
    pub fn look(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.core(ctx, |core, out, now| core.look(out, now))
    }

    /// Takes, requests, withdraws, gives, releases, seizes, thaws, grants or revokes.
    fn act(&mut self, ctx: &mut Ctx, who: cast::Who, client: Option<u32>, ask: Ask) -> Result<Answer, Crashed> {
        let by = Caller { actor: who.actor(), operator: client.map(holdfast_authority::OperatorId), token: None };
        let thawed = ask == Ask::Thaw;
        match self.decide(ctx, Input::Asked { by, ask, proof: None })? {
            Ok(decided) => {
                ctx.counts.acts += 1;
                ctx.counts.thaws += u64::from(thawed);
                if let Some(freeze) = decided.still {
                    self.still(ctx, freeze)?;
                    self.core(ctx, |core, out, _| core.say_writer(out))?;
                }
                Ok(Answer::Acted)
            }
            Err(undecided) => Ok(serve::refused(&undecided)),
        }
    }

    /// Somebody lets a frozen session go on, so that a run can end.
    pub fn thaw(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        if self.core.is_frozen() {
            self.act(ctx, cast::Who(0), None, Ask::Thaw)?;
        }
        Ok(())
    }

    /// The client that writes.
    pub fn writer(&self) -> Option<u32> {
        self.core.writes_next()
    }

    /// Invariant 3: the screen as it is now, and its history, against the truth.
    pub fn compare(&mut self, ctx: &mut Ctx, with_history: bool) {
        if ctx.oracle.sizes_lost {
            return;
        }
        let gap = self.files.picture.gap();
        let from = gap.map_or(0, |gap| gap.to);
        let history = with_history.then(|| self.files.picture.history(HISTORY_LINES, None).encoded);
        let screen = self.files.picture.screen();
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
        self.files.picture.gap()
    }

    /// Whether everything the keeper said was heard.
    pub fn has_heard_all(&self, ctx: &Ctx) -> bool {
        ctx.net.is_heard(self.files.wire)
    }
}
