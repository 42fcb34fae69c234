//! A connection to the host in one actor's name, on a thread of its own: runs are started under their keys and waited for.
//!
//! A broken connection is never an outcome: everything that was open is asked again, under the same keys. The host is started where
//! it does not run, but only while something is asked of it.

use crate::job::{Job, Next};
use holdfast_client::{CallError, Connection, Identity, Incoming, connect_or_start_as};
use holdfast_types::{Handle, Home};
use holdfast_wire::Fault;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Questions that are open on one connection: the host takes 64, and an interruption must find room.
pub const OPEN_MAX: usize = 56;
/// Pause after a connection broke; it doubles up to the other.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// What the host's log calls us.
const SAID: &str = concat!("holdfast flows ", env!("CARGO_PKG_VERSION"));

/// How an actor's link is reached.
#[derive(Debug)]
pub struct Link {
    jobs: Sender<Job>,
    wake: Arc<OwnedFd>,
    /// Jobs that are not over.
    load: Arc<AtomicUsize>,
}

/// What a link needs to know.
#[derive(Debug, Clone)]
pub struct Place {
    /// The home.
    pub home: Home,
    /// The program that starts the host.
    pub program: PathBuf,
}

impl Link {
    /// Starts the thread of an actor.
    pub fn start(place: Place, actor: Handle) -> std::io::Result<Link> {
        let (jobs, taken) = channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let woken = Arc::clone(&wake);
        let load = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&load);
        std::thread::Builder::new().name("host-link".into()).spawn(move || {
            Linked { place, actor, taken, woken, left, ..Linked::empty() }.run();
        })?;
        Ok(Link { jobs, wake, load })
    }

    /// How many jobs it has.
    pub fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Asks for something; what comes of it is said by the job itself.
    pub fn ask(&self, job: Job) {
        self.load.fetch_add(1, Ordering::Relaxed);
        if self.jobs.send(job).is_ok() {
            let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        }
    }
}

/// A job that waits for its time; the number keeps their order.
struct Later(Instant, u64, Job);

impl PartialEq for Later {
    fn eq(&self, other: &Later) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Later {}
impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Later) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Later {
    fn cmp(&self, other: &Later) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

struct Linked {
    place: Place,
    actor: Handle,
    taken: Receiver<Job>,
    woken: Arc<OwnedFd>,
    left: Arc<AtomicUsize>,
    connection: Option<(Connection, Identity)>,
    open: HashMap<u64, Job>,
    ready: VecDeque<Job>,
    later: BinaryHeap<Reverse<Later>>,
    count: u64,
    /// Not before then is a connection tried again.
    not_before: Option<Instant>,
    pause: Duration,
}

impl Linked {
    fn empty() -> Linked {
        let (_, taken) = channel();
        let woken = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).expect("the kernel has descriptors"));
        Linked {
            place: Place { home: Home::under("/".as_ref()), program: PathBuf::new() },
            actor: Handle::near(holdfast_types::ActorClass::Agent, "nobody"),
            taken,
            woken,
            left: Arc::default(),
            connection: None,
            open: HashMap::new(),
            ready: VecDeque::new(),
            later: BinaryHeap::new(),
            count: 0,
            not_before: None,
            pause: PAUSE_MIN,
        }
    }

    fn run(mut self) {
        loop {
            loop {
                match self.taken.try_recv() {
                    Ok(job) => self.ready.push_back(job),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            while self.later.peek().is_some_and(|Reverse(later)| later.0 <= Instant::now()) {
                let due = self.later.pop();
                self.ready.extend(due.map(|Reverse(later)| later.2));
            }
            self.send();
            if self.wait() {
                self.receive();
            }
        }
    }

    /// Asks what is ready, as far as there is a connection and room on it.
    fn send(&mut self) {
        while !self.ready.is_empty() && self.open.len() < OPEN_MAX && self.connected() {
            let Some(mut job) = self.ready.pop_front() else { return };
            let Some((connection, who)) = &mut self.connection else { return };
            holdfast_pause::point("flows.ask");
            match job.ask(connection, who) {
                Ok(asked) => {
                    self.open.insert(asked, job);
                }
                Err(_) => {
                    self.ready.push_front(job);
                    self.broke();
                }
            }
        }
    }

    fn connected(&mut self) -> bool {
        if self.connection.is_some() {
            return true;
        }
        if self.not_before.is_some_and(|at| Instant::now() < at) {
            return false;
        }
        let Place { home, program } = &self.place;
        let who = match Identity::load(home, &self.actor) {
            Ok(who) => who,
            Err(error) => {
                let why = format!("{error}; make the actor again, then: holdfast flow retry");
                self.left.fetch_sub(self.ready.len(), Ordering::Relaxed);
                self.ready.drain(..).for_each(|job| job.denied(&why));
                return false;
            }
        };
        match connect_or_start_as(home, program, &who, SAID) {
            Ok(connection) => {
                self.connection = Some((connection, who));
                true
            }
            Err(error) => {
                for job in &self.ready {
                    job.held_up(&error.to_string());
                }
                self.broke();
                false
            }
        }
    }

    /// Everything that was open is asked again.
    fn broke(&mut self) {
        self.connection = None;
        let mut again: Vec<(u64, Job)> = self.open.drain().collect();
        again.sort_by_key(|(id, _)| *id);
        again.into_iter().rev().for_each(|(_, job)| self.ready.push_front(job));
        self.not_before = Instant::now().checked_add(self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// Waits for an answer, a new job, or a moment; whether an answer may be there.
    fn wait(&self) -> bool {
        let reconnect = self.not_before.filter(|_| self.connection.is_none() && !self.ready.is_empty());
        let later = self.later.peek().map(|Reverse(later)| later.0);
        let until = [reconnect, later].into_iter().flatten().min();
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ });
        let mut waits = vec![PollFd::new(&*self.woken, PollFlags::IN)];
        let descriptor = self.connection.as_ref().map(|(connection, _)| connection.descriptor());
        if let Some(descriptor) = &descriptor {
            waits.push(PollFd::new(descriptor, PollFlags::IN));
        }
        let _ = poll(&mut waits, left.as_ref());
        let is_woken = !waits[0].revents().is_empty();
        let is_answered = waits.get(1).is_some_and(|wait| !wait.revents().is_empty());
        if is_woken {
            let _ = rustix::io::read(&*self.woken, &mut [0; 8]);
        }
        is_answered
    }

    fn receive(&mut self) {
        let Some((connection, _)) = &mut self.connection else { return };
        let incoming = match connection.receive_ready() {
            Ok(incoming) => incoming,
            Err(_) => return self.broke(),
        };
        self.pause = PAUSE_MIN;
        for one in incoming {
            if let Incoming::Answer { id, result, .. } = one
                && let Some(job) = self.open.remove(&id)
            {
                self.answered(job, result);
            }
        }
    }

    fn answered(&mut self, mut job: Job, result: Result<Value, Fault>) {
        holdfast_pause::point("flows.answered");
        match job.answered(result) {
            Next::Over => {
                self.left.fetch_sub(1, Ordering::Relaxed);
            }
            Next::Ask => self.ready.push_back(job),
            Next::Later(pause) => {
                self.count += 1;
                let at = Instant::now() + pause;
                self.later.push(Reverse(Later(at, self.count, job)));
            }
        }
    }
}

/// Sends one question.
pub fn ask<O: holdfast_wire::Operation>(connection: &mut Connection, params: &O::Params) -> Result<u64, CallError> {
    connection.ask::<O>(params, &[])
}
