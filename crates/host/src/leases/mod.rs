//! Leases: which sessions this host is the home of, by a store that it shares with other hosts.
//!
//! `holdfast_lease::Tenancy` decides; this performs. One task renews the host's lease, hands deadlines to keepers, and takes records anew or
//! ends lives, as it is told. A life of a leased session begins only after its record was claimed. Without a configured store there are no
//! leases, and the lock of the ring is what there is.
//!
//! The host is known to the store by the number of its lease alone, which lies in a file that counts only where it was written: a copy of
//! the state directory, on this machine or another, is another host.

mod kept;
mod passing;
mod store;

pub(crate) use passing::Intent;

use crate::serve::Server;
use crate::session::Session;
use holdfast_lease::{Answer, Change, Effect, Found, Input, LeaseId, Record, Refusal, Standing, Tenancy, Terms};
use holdfast_relay::Cluster;
use holdfast_relay::etcd::{Etcd, EtcdError, Lease};
use holdfast_types::{Home, SessionId};
use holdfast_wire::{Code, Fault};
use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long a start waits for the host's own lease: the host may have come up just now.
const OWN_WAIT: Duration = Duration::from_secs(5);
/// How much of the lease must be left for a life to begin: a keeper takes longer on a busy machine.
const BEGIN_MS_MIN: u64 = 200;

/// How often a claim is tried.
const CLAIMS_MAX: u32 = 3;

/// Where leases are kept, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseConfig {
    /// The etcd cluster that all hosts share.
    pub cluster: Cluster,
    /// How long a lease lives without a renewal.
    pub ttl: Duration,
    /// So much before its end a session is stopped.
    pub margin: Duration,
}

/// The host's side of its leases.
#[derive(Debug)]
pub(crate) struct Leases {
    etcd: Etcd,
    /// What this host is called in records.
    pub host: String,
    state: PathBuf,
    ttl: Duration,
    tenancy: RefCell<Tenancy>,
    out: UnboundedSender<Effect>,
    inbox: RefCell<Option<UnboundedReceiver<Effect>>>,
    nudge: Notify,
    /// Why the store did not answer last.
    why: RefCell<Option<String>>,
    /// How often the lease was renewed.
    pub renewals: Cell<u64>,
}

/// A session that this host may begin a life of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    /// The lease's fence.
    pub fence: u64,
    /// Until when, by [`boottime_ms`].
    pub until_ms: u64,
    /// Which life it is.
    pub incarnation: u32,
}

/// The clock of deadlines: it never goes back, and goes on while the machine sleeps.
pub(crate) fn boottime_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

fn away(why: &EtcdError) -> Fault {
    Fault::new(Code::CannotStart, format!("the store of leases does not answer: {why}"))
        .hint("a leased session begins only once it is certain that it lives nowhere else; check the etcd members under `lease` in config.toml")
}

impl Leases {
    pub fn new(config: &LeaseConfig, home: &Home) -> io::Result<Rc<Leases>> {
        let (out, inbox) = unbounded_channel();
        let host = crate::relays::machine_name();
        let terms = Terms {
            host: host.clone(),
            ttl_ms: config.ttl.as_millis() as u64,
            margin_ms: config.margin.as_millis() as u64,
        };
        Ok(Rc::new(Leases {
            // A member that is silent must not take the time in which another could be asked.
            etcd: Etcd::new(&config.cluster)?
                .within((config.ttl / 8).clamp(Duration::from_millis(400), Duration::from_secs(2))),
            host,
            state: home.state.clone(),
            ttl: config.ttl,
            tenancy: RefCell::new(Tenancy::new(terms, kept::load(&home.state).map(LeaseId))),
            out,
            inbox: RefCell::new(Some(inbox)),
            nudge: Notify::new(),
            why: RefCell::default(),
            renewals: Cell::new(0),
        }))
    }

    /// Something happened.
    pub fn hear(&self, input: Input) {
        for effect in self.tenancy.borrow_mut().handle(input, boottime_ms()) {
            let _ = self.out.send(effect);
        }
        self.nudge.notify_waiters();
        self.nudge.notify_one();
    }

    /// How a session's lease stands.
    pub fn standing(&self, session: SessionId) -> Option<Standing> {
        self.tenancy.borrow().standing(session, boottime_ms())
    }

    /// Why it is not renewed.
    pub fn why(&self) -> Option<String> {
        self.why.borrow().clone()
    }

    /// Whether this host holds a session's record, and since which fence.
    pub fn held(&self, session: SessionId) -> Option<(u64, u64)> {
        let tenancy = self.tenancy.borrow();
        tenancy.fence(session).map(|fence| (fence, tenancy.until_ms()))
    }

    /// The lease this host has now; waits a moment for it.
    pub(crate) async fn own(&self) -> Result<LeaseId, Fault> {
        let deadline = tokio::time::Instant::now() + OWN_WAIT;
        loop {
            let now = boottime_ms();
            if let Some(own) = self.tenancy.borrow().lease(now + BEGIN_MS_MIN) {
                return Ok(own);
            }
            if tokio::time::timeout_at(deadline, self.nudge.notified()).await.is_err() {
                let why = self.why().unwrap_or_else(|| "it was not asked yet".into());
                return Err(away(&EtcdError::Failed(why)));
            }
        }
    }

    /// Takes a session's record for the next life, which begins here. Refused while another host has it.
    pub async fn claim(&self, session: SessionId, incarnation: u32) -> Result<Claim, Fault> {
        // The record of a life that has just ended may go between the look and the claim.
        for _ in 0..CLAIMS_MAX {
            if let Some(claim) = self.try_claim(session, incarnation).await? {
                return Ok(claim);
            }
        }
        Err(away(&EtcdError::LeaseOver))
    }

    async fn try_claim(&self, session: SessionId, incarnation: u32) -> Result<Option<Claim>, Fault> {
        let own = self.own().await?;
        let found = store::look(&self.etcd, session).await.map_err(|why| away(&why))?;
        let holder = found.as_ref().map(|found| found.record.lease).filter(|lease| *lease != own);
        let is_live = match holder {
            Some(lease) => store::is_live(&self.etcd, lease).await.map_err(|why| away(&why))?,
            None => false,
        };
        // A copy of the session that is older than its last life counts on from that one.
        let incarnation = found.as_ref().map_or(incarnation, |found| incarnation.max(found.record.incarnation + 1));
        let change = match Change::claim(session, own, &self.host, incarnation, found, is_live) {
            Ok(change) => change,
            Err(Refusal::Held { by }) => return Err(self.held_elsewhere(&by).await),
            Err(Refusal::NoLease) => return Err(away(&EtcdError::LeaseOver)),
        };
        holdfast_pause::task_point("lease.claim").await;
        let fence = match store::change(&self.etcd, &change).await {
            Answer::Done { fence } => fence,
            Answer::Differs(Some(found)) if found.record.lease == own => found.fence,
            Answer::Differs(Some(by)) => return Err(self.held_elsewhere(&by).await),
            Answer::Differs(None) => return Ok(None),
            // It may have happened: then the record is ours, and says this life.
            Answer::Failed => match store::look(&self.etcd, session).await {
                Ok(Some(Found { record, fence })) if Some(&record) == change.put.as_ref() => fence,
                Ok(_) => return Err(away(&EtcdError::Failed("the claim was not taken".into()))),
                Err(why) => return Err(away(&why)),
            },
        };
        self.hear(Input::Claimed { session, fence, incarnation });
        let tenancy = self.tenancy.borrow();
        match tenancy.lease(boottime_ms() + BEGIN_MS_MIN) {
            Some(lease) if lease == own => Ok(Some(Claim { fence, until_ms: tenancy.until_ms(), incarnation })),
            Some(_) | None => Err(away(&EtcdError::LeaseOver)),
        }
    }

    async fn held_elsewhere(&self, by: &Found) -> Fault {
        let Record { host, lease, incarnation } = &by.record;
        let host = if *host == self.host { format!("another Holdfast on {host}") } else { host.clone() };
        let until = match self.etcd.left(Lease(lease.0)).await {
            Ok(Some(left)) => format!("for another {} s, unless it is renewed", left.as_secs()),
            Ok(None) => "until just now".to_owned(),
            Err(_) => "and it is not known until when".to_owned(),
        };
        Fault::new(Code::Busy, format!("{host} has its lease {until} (life {incarnation}, fence {})", by.fence)).hint(
            format!("a session has one life at a time: end it on {host}, or wait until that host's lease is over"),
        )
    }

    fn perform(self: &Rc<Leases>, effect: Effect, server: &Rc<Server>) {
        let this = Rc::clone(self);
        let find = |session: SessionId| server.registry.find(&session.to_string()).ok();
        match effect {
            Effect::Grant => drop(tokio::task::spawn_local(async move { this.grant().await })),
            Effect::Renew(lease) => drop(tokio::task::spawn_local(async move { this.renew(lease).await })),
            Effect::Look(session) => {
                tokio::task::spawn_local(async move {
                    match store::look(&this.etcd, session).await {
                        Ok(found) => this.hear(Input::Looked { session, found }),
                        Err(_) => this.hear(Input::Changed { session, answer: Answer::Failed }),
                    }
                });
            }
            Effect::Change(change) => {
                tokio::task::spawn_local(async move {
                    let answer = store::change(&this.etcd, &change).await;
                    this.hear(Input::Changed { session: change.session, answer });
                });
            }
            Effect::Deadline { session, fence, until_ms } => {
                if let Some(session) = find(session) {
                    session.lease_until(fence, until_ms);
                }
            }
            Effect::End { session, by } => {
                if let Some(session) = find(session) {
                    tokio::task::spawn_local(async move { session.claimed_elsewhere(by).await });
                }
            }
        }
    }

    async fn grant(&self) {
        let sent_ms = boottime_ms();
        let granted = async {
            let (lease, ttl) = self.etcd.grant(self.ttl).await?;
            // First the file: a host that is killed now comes back as the same.
            kept::save(&self.state, lease.0).map_err(|error| EtcdError::Failed(error.to_string()))?;
            store::be_live(&self.etcd, lease, &self.host).await?;
            Ok((lease, ttl))
        };
        match granted.await {
            Ok((lease, ttl)) => {
                self.why.take();
                tracing::info!("has lease {:x} of {} s in etcd", lease.0, ttl.as_secs());
                self.hear(Input::Granted { lease: LeaseId(lease.0), sent_ms, ttl_ms: ttl.as_millis() as u64 });
            }
            Err(why) => self.failed(&why),
        }
    }

    async fn renew(&self, lease: LeaseId) {
        let sent_ms = boottime_ms();
        match self.etcd.renew(Lease(lease.0)).await {
            Ok(ttl) => {
                self.why.take();
                self.renewals.set(self.renewals.get() + 1);
                self.hear(Input::Renewed { sent_ms, ttl_ms: ttl.as_millis() as u64 });
            }
            Err(EtcdError::LeaseOver) => {
                tracing::warn!(
                    "lease {:x} is over: each leased session is taken anew, where nobody else has it",
                    lease.0
                );
                self.hear(Input::Over);
            }
            Err(why) => self.failed(&why),
        }
    }

    fn failed(&self, why: &EtcdError) {
        let text = why.to_string();
        if self.why.replace(Some(text)).is_none() {
            tracing::warn!("the store of leases is out of reach: {why}");
        }
        self.hear(Input::Failed);
    }
}

/// Keeps the host's lease for as long as the host runs.
pub(crate) async fn follow(server: Rc<Server>) {
    let Some(leases) = server.registry.shared.leases.clone() else { return };
    let Some(mut inbox) = leases.inbox.take() else { return };
    leases.hear(Input::Tick);
    loop {
        let wakes = leases.tenancy.borrow().wakes_ms();
        let wait = wakes.map(|at| Duration::from_millis(at.saturating_sub(boottime_ms())));
        let timer = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            effect = inbox.recv() => match effect {
                Some(effect) => leases.perform(effect, &server),
                None => return,
            },
            () = timer => leases.hear(Input::Tick),
            () = leases.nudge.notified() => {}
        }
    }
}

/// What every leased session is asked for when this host has no store.
pub(crate) fn without_store(session: &Session) -> Fault {
    Fault::new(Code::CannotStart, format!("{} is leased, and this host has no store of leases", session.name()))
        .hint("set `lease = \"etcd=…\"` in config.toml, and run: holdfast host restart")
}
