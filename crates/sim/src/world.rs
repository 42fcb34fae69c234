//! One run: who is there, what happens to them, and in which order.

use crate::cast::Who;
use crate::client::{Client, Options};
use crate::ctx::{Counts, Ctx};
use crate::host::{Crashed, Host, Origin};
use crate::keeper::Keeper;
use crate::oracle::SOURCES_MAX;
use crate::others::{Asker, Reader, Runner, Sender};
use crate::program::Program;
use crate::terminal::Terminal;
use holdfast_abi::protocol::{STALL_MS, Token};
use holdfast_abi::ring::{Base, Ring};
use holdfast_types::{RING_BYTES_MIN, Size};

/// Terminals that may be attached at once.
const CLIENTS_MAX: usize = 4;
/// Makes of a seed the one that says whether the program is a shell.
const SHELLS: u64 = 0x5e11;
/// Sizes terminals have.
const SIZES: [(u16, u16); 3] = [(80, 24), (100, 30), (40, 12)];

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// The invariant that does not hold, if one does not.
    pub failure: Option<String>,
    /// Everything that happened.
    pub log: String,
    /// How often what happened.
    pub counts: Counts,
}

/// Runs one world.
///
/// # Panics
/// Where the machine cannot keep the files of a run.
#[must_use]
pub fn run(seed: u64, steps: u32) -> Outcome {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
        if world.ctx.failure.is_some() || world.keeper.is_none() {
            break;
        }
    }
    if world.ctx.failure.is_none() {
        world.settle();
    }
    Outcome { failure: world.ctx.failure, log: world.ctx.log, counts: world.ctx.counts }
}

/// How lively a run is.
#[derive(Debug)]
struct Mood {
    /// Of a thousand steps, so many bring an event.
    events: u32,
    crashes: bool,
    /// Of a hundred chances to ask for the turn, so many are taken.
    asks: u32,
    /// Everybody at a terminal or a script is this one: the turn goes with it from one to the other.
    few: Option<Who>,
    /// Now and then a minute passes in which nothing happens.
    jumps: bool,
    keeper_dies: bool,
    /// Longest pause between two steps.
    pause_ms: u64,
}

pub(crate) struct World {
    pub ctx: Ctx,
    pub keeper: Option<Keeper>,
    pub host: Option<Host>,
    pub host_back_at: u64,
    /// The longest time no host was at work.
    pub host_away_ms: u64,
    pub host_worked_ms: u64,
    pub program: Program,
    pub clients: Vec<Client>,
    pub readers: Vec<Reader>,
    pub senders: Vec<Sender>,
    askers: Vec<Asker>,
    pub runners: Vec<Runner>,
    pub first_size: Size,
    next_source: u8,
    mood: Mood,
    secret: Token,
    pub dir: tempfile::TempDir,
}

impl World {
    fn new(seed: u64) -> World {
        let mut ctx = Ctx::new(seed);
        let dir = tempfile::tempdir().expect("a directory for the run");
        let first_size = Size::clamped(80, 24);
        let file = std::fs::OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .open(dir.path().join("ring"))
            .expect("a file for the ring");
        let ring = Ring::create(&file, RING_BYTES_MIN, Base::default(), 1, ctx.now).expect("room for the ring");
        let secret = ctx.rng.u128(..).to_le_bytes();
        let mood = Mood {
            events: [3, 10, 25, 60][ctx.rng.usize(..4)],
            crashes: ctx.chance(75),
            asks: [0, 10, 30, 80][ctx.rng.usize(..4)],
            few: ctx.chance(30).then(|| Who::any(&mut ctx.rng)),
            jumps: ctx.chance(30),
            keeper_dies: ctx.chance(10),
            pause_ms: [3, 8, 20][ctx.rng.usize(..3)],
        };
        // From a source of its own: what happens without a shell does not depend on it.
        let is_shell = fastrand::Rng::with_seed(seed ^ SHELLS).u32(..100) < 40;
        ctx.oracle.first_size = first_size;
        ctx.note(format_args!("seed {seed} {mood:?} shell {is_shell}"));
        let host = Host::first(&mut ctx, dir.path(), first_size, secret);
        let mut senders = Vec::new();
        // Most runs have no script: one keeps the turn for seconds, which is most of a run.
        for n in 0..ctx.rng.u8(..5).saturating_sub(2) {
            let who = mood.few.unwrap_or_else(|| Who::any(&mut ctx.rng));
            ctx.oracle.typists.push(who);
            senders.push(Sender::new(u64::from(n) + 1, n, who));
        }
        let askers = (0..4).map(|n| Asker::new(Who(n))).collect();
        let readers = (0..ctx.rng.usize(..3)).map(Reader::new).collect();
        let runners = if is_shell { vec![Runner::new(Who(2), 1, 2), Runner::new(Who(0), 2, 2)] } else { Vec::new() };
        let budget = ctx.rng.usize(50_000..1_000_000);
        World {
            keeper: Some(Keeper::new(ring, (first_size.cols(), first_size.rows()), secret)),
            program: Program::new(&mut ctx, budget, is_shell),
            host: Some(host),
            host_back_at: 0,
            host_away_ms: 0,
            host_worked_ms: ctx.now,
            clients: Vec::new(),
            next_source: senders.len() as u8,
            readers,
            senders,
            askers,
            runners,
            first_size,
            mood,
            secret,
            dir,
            ctx,
        }
    }

    pub fn host_is_up(&self) -> bool {
        self.host.as_ref().is_some_and(Host::is_up)
    }

    /// One thing happens.
    fn step(&mut self) {
        if self.ctx.rng.u32(..1000) < self.mood.events {
            return self.event();
        }
        match self.ctx.rng.u32(..100) {
            0..15 => self.program.turn(&mut self.ctx),
            15..37 => self.keeper_turn(),
            37..60 => self.host_turn(),
            60..78 => self.client_turn(),
            78..80 => self.ask(),
            80..85 => self.type_something(),
            85..88 => self.reader_turn(),
            88..92 => self.sender_turn(),
            92..96 if !self.runners.is_empty() => self.runner_turn(),
            _ => self.pass(),
        }
    }

    pub fn keeper_turn(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.turn(&mut self.ctx);
        }
    }

    fn pass(&mut self) {
        self.ctx.now += self.ctx.rng.u64(1..=self.mood.pause_ms);
    }

    fn host_turn(&mut self) {
        self.start_host();
        let what = self.ctx.rng.u32(..100);
        self.with_host(|host, ctx| match what {
            0..40 => host.receive_turn(ctx),
            40..70 => host.tick(ctx),
            70..97 => host.serve_turn(ctx),
            _ if !host.is_up() => Ok(()),
            _ => {
                host.look(ctx)?;
                if host.has_heard_all(ctx) && ctx.chance(30) {
                    host.compare(ctx, false);
                }
                Ok(())
            }
        });
    }

    /// Lets the host do something, and buries it where it died of it.
    pub fn with_host(&mut self, act: impl FnOnce(&mut Host, &mut Ctx) -> Result<(), Crashed>) {
        let Some(host) = &mut self.host else { return };
        self.host_away_ms = self.host_away_ms.max(self.ctx.now - self.host_worked_ms);
        self.host_worked_ms = self.ctx.now;
        if act(host, &mut self.ctx).is_err() {
            self.ctx.counts.host_crashes_within_a_turn += 1;
            self.crash_host();
        }
    }

    /// A host is started where there is none and it is time.
    pub fn start_host(&mut self) {
        if self.host.is_none() && self.ctx.now >= self.host_back_at {
            self.ctx.note(format_args!("host: starts"));
            self.host = Some(Host::start(&mut self.ctx, self.dir.path(), self.first_size, self.secret, Origin::Found));
        }
    }

    fn crash_host(&mut self) {
        let Some(host) = self.host.take() else { return };
        let ctx = &mut self.ctx;
        host.die(ctx);
        ctx.counts.host_crashes += 1;
        ctx.oracle.disturbed(ctx.now);
        let long = ctx.chance(25);
        let away_ms = if long { ctx.rng.u64(STALL_MS..3 * STALL_MS) } else { ctx.rng.u64(..STALL_MS / 2) };
        ctx.counts.long_absences += u64::from(long);
        ctx.note(format_args!("host: crashes, away for {away_ms} ms"));
        self.host_back_at = ctx.now + away_ms;
        // Until it is back nobody is there to answer.
        ctx.oracle.disturbed(self.host_back_at);
    }

    fn client_turn(&mut self) {
        if self.clients.is_empty() {
            if self.ctx.chance(5) {
                self.attach();
            }
            return;
        }
        let at = self.ctx.rng.usize(..self.clients.len());
        let up = self.host_is_up();
        self.clients[at].turn(&mut self.ctx, up);
        if self.clients[at].over {
            self.remove_client(at, true);
        }
    }

    /// Somebody asks for the turn, or gives it away.
    fn ask(&mut self) {
        if !self.ctx.chance(self.mood.asks) {
            return;
        }
        let at = self.ctx.rng.usize(..self.askers.len() + self.clients.len());
        let up = self.host_is_up();
        match at.checked_sub(self.askers.len()) {
            None => self.askers[at].turn(&mut self.ctx, up),
            Some(at) => self.clients[at].ask(&mut self.ctx),
        }
    }

    /// A client is gone: it left and said so, or was killed.
    pub fn remove_client(&mut self, at: usize, leaves: bool) {
        let client = self.clients.remove(at);
        self.ctx.counts.client_departures += 1;
        self.ctx.oracle.disturbed(self.ctx.now);
        self.ctx.note(format_args!("client {}: gone, says so: {leaves}", client.terminal));
        client.go(&mut self.ctx, leaves);
    }

    fn type_something(&mut self) {
        if self.clients.is_empty() {
            return;
        }
        let client = &self.clients[self.ctx.rng.usize(..self.clients.len())];
        if client.is_attached() {
            let terminal = &mut self.ctx.terminals[client.terminal];
            match self.ctx.rng.u32(..400) {
                // A paste that does not fit into the keeper's log while no host drains it.
                0 => (0..20).for_each(|_| terminal.type_keys(1000)),
                1..16 => terminal.type_keys(self.ctx.rng.u32(200..900)),
                _ => terminal.type_keys(self.ctx.rng.u32(1..4)),
            }
        }
    }

    fn reader_turn(&mut self) {
        if !self.readers.is_empty() {
            let at = self.ctx.rng.usize(..self.readers.len());
            let up = self.host_is_up();
            self.readers[at].turn(&mut self.ctx, up);
        }
    }

    fn runner_turn(&mut self) {
        let at = self.ctx.rng.usize(..self.runners.len());
        let up = self.host_is_up();
        self.runners[at].turn(&mut self.ctx, up, true);
        // Soon after a run was asked for a host dies of one of the steps by which it is entered.
        if self.mood.crashes && self.ctx.chance(10) {
            let left = self.ctx.rng.u32(..16);
            self.host.iter_mut().for_each(|host| host.set_fuse(Some(left)));
        }
    }

    fn sender_turn(&mut self) {
        if !self.senders.is_empty() {
            let at = self.ctx.rng.usize(..self.senders.len());
            let up = self.host_is_up();
            self.senders[at].turn(&mut self.ctx, up, true);
        }
    }

    fn event(&mut self) {
        match self.ctx.rng.u32(..100) {
            0..14 if self.mood.crashes => self.crash_host(),
            14..24 if self.mood.crashes => {
                let left = self.ctx.rng.u32(..12);
                if let Some(host) = &mut self.host {
                    host.set_fuse(Some(left));
                }
            }
            24..50 => self.attach(),
            50..60 if !self.clients.is_empty() => {
                let at = self.ctx.rng.usize(..self.clients.len());
                let leaves = self.ctx.chance(50);
                self.remove_client(at, leaves);
            }
            60..74 if !self.clients.is_empty() => {
                let until = self.ctx.now + self.ctx.rng.u64(100..2000);
                let at = self.ctx.rng.usize(..self.clients.len());
                self.clients[at].stuck_until = until;
                self.ctx.note(format_args!("client {}: stuck until {until}", self.clients[at].terminal));
            }
            74..84 if !self.clients.is_empty() => {
                let at = self.ctx.rng.usize(..self.clients.len());
                let size = self.a_size();
                self.ctx.note(format_args!("client {}: its window is {size}", self.clients[at].terminal));
                self.clients[at].window_has_changed(&mut self.ctx, size);
            }
            84..86 if self.mood.jumps => self.jump(),
            96..97 if self.mood.keeper_dies => {
                self.ctx.note(format_args!("keeper: dies"));
                self.ctx.counts.keeper_deaths += 1;
                self.ctx.net.keeper_dies();
                self.keeper = None;
            }
            _ => self.ctx.now += self.ctx.rng.u64(..100),
        }
    }

    /// Long enough for graces to end.
    fn jump(&mut self) {
        let ctx = &mut self.ctx;
        ctx.oracle.disturbed(ctx.now);
        ctx.now += ctx.rng.u64(20_000..70_000);
        ctx.oracle.disturbed(ctx.now);
        ctx.counts.long_jumps += 1;
        ctx.note(format_args!("a while passes"));
    }

    fn a_size(&mut self) -> Size {
        let (cols, rows) = SIZES[self.ctx.rng.usize(..SIZES.len())];
        Size::clamped(cols, rows)
    }

    fn attach(&mut self) {
        if self.clients.len() >= CLIENTS_MAX || self.next_source >= SOURCES_MAX || !self.host_is_up() {
            return;
        }
        let size = self.a_size();
        let who = self.mood.few.unwrap_or_else(|| Who::any(&mut self.ctx.rng));
        self.ctx.terminals.push(Terminal::new(size, self.next_source));
        self.ctx.oracle.typists.push(who);
        self.next_source += 1;
        let options = Options {
            read_only: self.ctx.chance(20),
            has_path: self.ctx.chance(70),
            history: self.ctx.chance(50),
            holds: self.ctx.chance(80),
        };
        let terminal = self.ctx.terminals.len() - 1;
        self.ctx.note(format_args!("client {terminal}: {} starts, {size}, {options:?}", who.actor().handle));
        self.clients.push(Client::start(&mut self.ctx, self.dir.path(), terminal, who, options));
    }
}
