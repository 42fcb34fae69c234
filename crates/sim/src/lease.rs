//! Two hosts, one store of leases, one session: links that break, hosts and keepers that stop, crash and come back, messages that come late
//! or not at all. Both hosts want the session for themselves, each with its own copy of its files.
//!
//! What decides in the product decides here: `holdfast_lease`'s tenancy and changes, the keeper's lease. The store is its `Book`.
//!
//! Promised: at no moment do two lives of the session run, and no life runs once a later one has begun. Not promised, and not done here: a
//! keeper that is stopped beyond its deadline without the hard fence, and a clock that loses more than the margin within one lease.

use fastrand::Rng;
use holdfast_abi::protocol::{HARD_FENCE_MS, LEASE_HARD};
use holdfast_abi::start::StartLease;
use holdfast_keeper::lease::{Lease as KeeperLease, Word};
use holdfast_lease::{Answer, Book, Change, Effect, Found, Input, LeaseId, Record, Tenancy, Terms};
use holdfast_types::SessionId;

const TTL_MS: u64 = 5_000;
const MARGIN_MS: u64 = 1_000;
/// As late as a keeper was seen to stop its tree on a busy machine.
const LATE_MS_MAX: u64 = 700;
/// The slowest clock that is promised for beside that: a twentieth, in thousandths.
const SLOW_MAX: u64 = 50;

/// What happened in a run, to see that it was not empty.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub struct LeaseCounts {
    pub claims: u64,
    pub refused: u64,
    pub stopped: u64,
    pub went_on: u64,
    pub ended: u64,
    pub passed: u64,
    pub crashes: u64,
    pub killed_hard: u64,
}

enum Message {
    Grant { sent_ms: u64 },
    Renew { lease: LeaseId, sent_ms: u64 },
    Look { claims: bool },
    Change { change: Change, why: Why },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Tenancy,
    Claim,
    Pass,
}

enum Reply {
    Granted { lease: LeaseId, sent_ms: u64 },
    Renewed { sent_ms: u64 },
    Over,
    Looked { found: Option<Found>, is_live: bool, claims: bool },
    Changed { change: Change, answer: Answer, why: Why },
    Failed { renewal: bool, claims: bool, why: Option<Why> },
}

/// A keeper and its tree.
struct Life {
    lease: KeeperLease,
    fence: u64,
    is_running: bool,
    /// It is about to stop the tree, and is late.
    stops_ms: Option<u64>,
    paused_until_ms: u64,
    /// How late it is this time.
    late_ms: u64,
    is_alive: bool,
}

struct Host {
    tenancy: Tenancy,
    /// What lies on its disk: the lease's number, the session's fence.
    disk_lease: Option<LeaseId>,
    disk_fence: Option<u64>,
    lives: Vec<Life>,
    is_up: bool,
    /// Which process it is: what another one asked is not answered to it.
    generation: u64,
    wants: bool,
    claiming: bool,
    paused_until_ms: u64,
    cut_until_ms: u64,
    /// Its clock, in thousandths of the true one.
    rate: u64,
    inbox: Vec<(u64, Reply)>,
}

struct World {
    rng: Rng,
    now_ms: u64,
    book: Book,
    hosts: [Host; 2],
    wire: Vec<(u64, usize, u64, Message)>,
    session: SessionId,
    newest: u64,
    counts: LeaseCounts,
    log: Vec<String>,
    is_hard: bool,
}

fn terms(at: usize) -> Terms {
    Terms { host: ["a", "b"][at].into(), ttl_ms: TTL_MS, margin_ms: MARGIN_MS }
}

impl Host {
    fn new(at: usize, rate: u64) -> Host {
        Host {
            tenancy: Tenancy::new(terms(at), None),
            disk_lease: None,
            disk_fence: None,
            lives: Vec::new(),
            is_up: true,
            generation: 0,
            wants: false,
            claiming: false,
            paused_until_ms: 0,
            cut_until_ms: 0,
            rate,
            inbox: Vec::new(),
        }
    }
}

/// One run from a seed: what happened, or what was broken and the log.
///
/// # Errors
///
/// Two lives ran at once.
pub fn run_leases(seed: u64, ms: u64) -> Result<LeaseCounts, String> {
    let mut rng = Rng::with_seed(seed);
    let rates = [1000 - rng.u64(0..=SLOW_MAX), 1000 + rng.u64(0..=20)];
    let is_hard = rng.bool();
    let mut world = World {
        rng,
        now_ms: 0,
        book: Book::default(),
        hosts: [Host::new(0, rates[0]), Host::new(1, rates[1])],
        wire: Vec::new(),
        session: SessionId::from_random_bits(7),
        newest: 0,
        counts: LeaseCounts::default(),
        log: Vec::new(),
        is_hard,
    };
    while world.now_ms < ms {
        world.now_ms += 5;
        world.disturb();
        world.deliver();
        for at in 0..2 {
            world.host(at);
            world.keepers(at);
        }
        world.check().map_err(|why| format!("seed {seed}: {why}\n{}", world.log.join("\n")))?;
    }
    Ok(world.counts)
}

impl World {
    /// A host's own clock. It began at another time than the other's.
    fn clock(&self, at: usize) -> u64 {
        self.now_ms * self.hosts[at].rate / 1000 + 1_000_000 * at as u64
    }

    fn note(&mut self, text: String) {
        self.log.push(format!("{:7} {text}", self.now_ms));
    }

    fn disturb(&mut self) {
        let at = self.rng.usize(0..2);
        let now = self.now_ms;
        match self.rng.u32(0..4000) {
            0..10 => {
                self.hosts[at].cut_until_ms = now + self.rng.u64(200..12_000);
                self.note(format!("{at}: cut off"));
            }
            10..16 => {
                self.hosts[at].paused_until_ms = now + self.rng.u64(100..9_000);
                self.note(format!("{at}: host stopped"));
            }
            16..22 => self.crash(at),
            22..26 if self.is_hard => {
                let until = now + self.rng.u64(100..9_000);
                self.hosts[at].lives.iter_mut().for_each(|life| life.paused_until_ms = until);
                self.hosts[at].paused_until_ms = until;
                self.note(format!("{at}: host and keeper stopped"));
            }
            26..60 => self.hosts[at].wants = true,
            60..66 => self.pass(at),
            66..68 => {
                for life in self.hosts[at].lives.iter_mut().filter(|life| life.is_alive) {
                    (life.is_alive, life.is_running) = (false, false);
                }
                self.note(format!("{at}: keeper killed"));
            }
            _ => {}
        }
    }

    fn crash(&mut self, at: usize) {
        self.counts.crashes += 1;
        self.note(format!("{at}: host killed and started"));
        let host = &mut self.hosts[at];
        host.tenancy = Tenancy::new(terms(at), host.disk_lease);
        host.inbox.clear();
        host.generation += 1;
        (host.claiming, host.wants) = (false, false);
        host.paused_until_ms = self.now_ms + self.rng.u64(5..4_000);
        host.is_up = false;
    }

    fn send(&mut self, at: usize, message: Message) {
        let comes = self.now_ms + self.rng.u64(1..60);
        self.wire.push((comes, at, self.hosts[at].generation, message));
    }

    /// The store answers; what does not come through fails, though it may have happened.
    fn deliver(&mut self) {
        let now = self.now_ms;
        let due: Vec<_> = self.wire.extract_if(.., |(comes, ..)| *comes <= now).collect();
        for (_, at, generation, message) in due {
            let is_cut = now < self.hosts[at].cut_until_ms;
            let renewal = matches!(message, Message::Grant { .. } | Message::Renew { .. });
            let claims = matches!(message, Message::Look { claims: true });
            let why = if let Message::Change { why, .. } = &message { Some(*why) } else { None };
            // Half of what is cut off is lost on the way back.
            let reply = if is_cut && self.rng.bool() { None } else { Some(self.store(message)) };
            let reply = reply.filter(|_| !is_cut).unwrap_or(Reply::Failed { renewal, claims, why });
            if generation != self.hosts[at].generation {
                continue;
            }
            let comes = now + if is_cut { 600 } else { self.rng.u64(1..60) };
            self.hosts[at].inbox.push((comes, reply));
        }
    }

    fn store(&mut self, message: Message) -> Reply {
        let now = self.now_ms;
        match message {
            Message::Grant { sent_ms } => Reply::Granted { lease: self.book.grant(TTL_MS, now), sent_ms },
            Message::Renew { lease, sent_ms } => {
                if self.book.renew(lease, now) {
                    Reply::Renewed { sent_ms }
                } else {
                    Reply::Over
                }
            }
            Message::Look { claims } => {
                let found = self.book.look(self.session);
                let is_live = found.as_ref().is_some_and(|found| self.book.is_live(found.record.lease, now));
                Reply::Looked { found, is_live, claims }
            }
            Message::Change { change, why } => {
                let answer = self.book.change(&change, now);
                Reply::Changed { change, answer, why }
            }
        }
    }

    fn host(&mut self, at: usize) {
        if self.now_ms < self.hosts[at].paused_until_ms {
            return;
        }
        if !self.hosts[at].is_up {
            self.hosts[at].is_up = true;
            // What lives here is taken up.
            if let Some(fence) = self.hosts[at].disk_fence.filter(|_| self.hosts[at].lives.iter().any(|l| l.is_alive)) {
                let session = self.session;
                self.hear(at, Input::TakenUp { session, fence, incarnation: 1 });
            }
        }
        let now = self.now_ms;
        let due: Vec<_> = self.hosts[at].inbox.extract_if(.., |(comes, _)| *comes <= now).collect();
        for (_, reply) in due {
            self.reply(at, reply);
        }
        let clock = self.clock(at);
        if self.hosts[at].tenancy.wakes_ms().is_some_and(|wakes| wakes <= clock) {
            self.hear(at, Input::Tick);
        }
        let host = &self.hosts[at];
        let is_free = !host.lives.iter().any(|life| life.is_alive);
        if host.wants && !host.claiming && is_free && host.tenancy.lease(clock + 200).is_some() {
            self.hosts[at].claiming = true;
            self.send(at, Message::Look { claims: true });
        }
    }

    fn reply(&mut self, at: usize, reply: Reply) {
        let session = self.session;
        match reply {
            Reply::Granted { lease, sent_ms } => {
                self.hosts[at].disk_lease = Some(lease);
                self.hear(at, Input::Granted { lease, sent_ms, ttl_ms: TTL_MS });
            }
            Reply::Renewed { sent_ms } => self.hear(at, Input::Renewed { sent_ms, ttl_ms: TTL_MS }),
            Reply::Over => self.hear(at, Input::Over),
            Reply::Looked { found, is_live, claims: true } => self.claim(at, found, is_live),
            Reply::Looked { found, .. } => self.hear(at, Input::Looked { session, found }),
            Reply::Changed { change, answer, why: Why::Claim } => self.claimed(at, &change, answer),
            Reply::Changed { answer, why: Why::Pass, .. } => {
                if matches!(answer, Answer::Done { .. }) {
                    self.hear(at, Input::Passed { session });
                    self.end(at);
                    (self.counts.passed, self.hosts[1 - at].wants) = (self.counts.passed + 1, true);
                } else {
                    self.hear(at, Input::Changed { session, answer });
                }
            }
            Reply::Changed { answer, why: Why::Tenancy, .. } => self.hear(at, Input::Changed { session, answer }),
            Reply::Failed { renewal: true, .. } => self.hear(at, Input::Failed),
            Reply::Failed { why: Some(Why::Claim), .. } => self.hosts[at].claiming = false,
            // Not known: it stands still, and a look tells, of this host or of the next one.
            Reply::Failed { why: Some(Why::Pass), .. } if self.rng.bool() => self.crash(at),
            Reply::Failed { claims: true, .. } => self.hosts[at].claiming = false,
            Reply::Failed { .. } => self.hear(at, Input::Changed { session, answer: Answer::Failed }),
        }
    }

    fn claim(&mut self, at: usize, found: Option<Found>, is_live: bool) {
        let clock = self.clock(at);
        let Some(own) = self.hosts[at].tenancy.lease(clock + 200) else {
            self.hosts[at].claiming = false;
            return;
        };
        match Change::claim(self.session, own, ["a", "b"][at], 1, found, is_live) {
            Ok(change) => self.send(at, Message::Change { change, why: Why::Claim }),
            Err(_) => {
                self.counts.refused += 1;
                (self.hosts[at].claiming, self.hosts[at].wants) = (false, false);
            }
        }
    }

    fn claimed(&mut self, at: usize, change: &Change, answer: Answer) {
        let clock = self.clock(at);
        self.hosts[at].claiming = false;
        let Answer::Done { fence } = answer else { return };
        if self.hosts[at].lives.iter().any(|life| life.is_alive) {
            // Its ring is locked.
            return;
        }
        self.hear(at, Input::Claimed { session: self.session, fence, incarnation: 1 });
        let host = &mut self.hosts[at];
        if host.tenancy.lease(clock + 200) != change.live.first().copied() {
            return;
        }
        let until_ms = host.tenancy.until_ms();
        let flags = if self.is_hard { LEASE_HARD } else { 0 };
        host.disk_fence = Some(fence);
        host.wants = false;
        host.lives.retain(|life| life.is_alive);
        host.lives.push(Life {
            lease: KeeperLease::of(Some(StartLease { fence, until_ms, flags, cgroup: Vec::new() })),
            fence,
            is_running: true,
            stops_ms: None,
            paused_until_ms: 0,
            late_ms: 0,
            is_alive: true,
        });
        self.counts.claims += 1;
        self.newest = self.newest.max(fence);
        self.note(format!("{at}: a life begins under {fence}, until {until_ms} of {clock}"));
    }

    fn pass(&mut self, at: usize) {
        let clock = self.clock(at);
        let Some((own, fence)) = self.hosts[at].tenancy.lease(clock).zip(self.hosts[at].tenancy.fence(self.session))
        else {
            return;
        };
        let other = self.clock(1 - at);
        let Some(lease) = self.hosts[1 - at].tenancy.lease(other) else { return };
        if self.now_ms < self.hosts[at].paused_until_ms || self.hosts[1 - at].lives.iter().any(|life| life.is_alive) {
            return;
        }
        // It is stopped first: a life that is passed on does not run here.
        for life in self.hosts[at].lives.iter_mut().filter(|life| life.is_alive) {
            life.lease.hear(life.fence, 0, 0, b"", clock);
            life.lease.fenced();
            life.is_running = false;
        }
        let to = Record { host: ["a", "b"][1 - at].into(), lease, incarnation: 2 };
        let change = Change::pass(self.session, own, fence, to);
        self.note(format!("{at}: passes it on"));
        self.hear(at, Input::Passing { session: self.session });
        self.send(at, Message::Change { change, why: Why::Pass });
    }

    fn hear(&mut self, at: usize, input: Input) {
        let clock = self.clock(at);
        for effect in self.hosts[at].tenancy.handle(input, clock) {
            match effect {
                Effect::Grant => self.send(at, Message::Grant { sent_ms: clock }),
                Effect::Renew(lease) => self.send(at, Message::Renew { lease, sent_ms: clock }),
                Effect::Look(_) => self.send(at, Message::Look { claims: false }),
                Effect::Change(change) => self.send(at, Message::Change { change, why: Why::Tenancy }),
                Effect::Deadline { fence, until_ms, .. } => self.deadline(at, fence, until_ms),
                Effect::End { .. } => {
                    self.counts.ended += 1;
                    self.end(at);
                }
            }
        }
    }

    fn end(&mut self, at: usize) {
        for life in &mut self.hosts[at].lives {
            (life.is_alive, life.is_running) = (false, false);
        }
    }

    fn deadline(&mut self, at: usize, fence: u64, until_ms: u64) {
        let (clock, now, is_hard) = (self.clock(at), self.now_ms, self.is_hard);
        self.hosts[at].disk_fence = Some(fence);
        self.newest = self.newest.max(fence);
        let flags = if is_hard { LEASE_HARD } else { 0 };
        let mut went_on = 0;
        // One that is stopped reads it when it goes on: then the moment may have passed, which it sees.
        for life in self.hosts[at].lives.iter_mut().filter(|life| life.is_alive && now >= life.paused_until_ms) {
            life.fence = life.fence.max(fence);
            if life.lease.hear(fence, until_ms, flags, b"", clock) == Word::GoOn {
                (life.is_running, life.stops_ms) = (true, None);
                went_on += 1;
            }
        }
        self.counts.went_on += went_on;
    }

    fn keepers(&mut self, at: usize) {
        let (clock, now) = (self.clock(at), self.now_ms);
        let late = self.rng.u64(0..LATE_MS_MAX);
        for life in self.hosts[at].lives.iter_mut().filter(|life| life.is_alive) {
            // The kernel's timer needs no process that runs.
            if life.lease.hard_ms().is_some_and(|at| clock >= at) && !life.lease.is_fenced() {
                (life.is_alive, life.is_running) = (false, false);
                self.counts.killed_hard += 1;
                continue;
            }
            if now < life.paused_until_ms {
                continue;
            }
            if life.lease.is_due(|| clock) && life.stops_ms.is_none() {
                life.late_ms = late.min(if self.is_hard { HARD_FENCE_MS } else { u64::MAX });
                life.stops_ms = Some(now + life.late_ms);
            }
            if life.stops_ms.is_some_and(|stops| now >= stops) {
                life.stops_ms = None;
                if life.lease.is_due(|| clock) {
                    life.lease.fenced();
                    life.is_running = false;
                    self.counts.stopped += 1;
                }
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let running =
            || self.hosts.iter().flat_map(|host| host.lives.iter()).filter(|life| life.is_alive && life.is_running);
        if running().count() > 1 {
            return Err(format!(
                "{}: two lives run, under {:?}",
                self.now_ms,
                running().map(|l| l.fence).collect::<Vec<_>>()
            ));
        }
        let Some(found) = self.book.look(self.session) else { return Ok(()) };
        // A life's own fence may be older than the record for the moment in which its host takes it anew; another host's may not.
        let strangers = self.hosts.iter().filter(|host| {
            host.disk_lease != Some(found.record.lease) && {
                let claims = found.fence;
                host.lives.iter().any(|life| life.is_alive && life.is_running && life.fence < claims)
            }
        });
        match strangers.count() {
            0 => Ok(()),
            _ => Err(format!("{}: a life runs while another lease has the record", self.now_ms)),
        }
    }
}
