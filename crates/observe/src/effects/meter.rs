//! The thread that measures: names that change on this machine's file systems, and which process belongs to which run.
//!
//! One for a host, and only while a run is measured: with none there is no group and no subscription, and nobody's work costs more.
//! A process belongs to a run because the process that made it does. A fork is told before its child runs, so whoever takes file
//! events first and forks second has seen the maker of everyone in the first. What is running already when the run begins (a daemon
//! that is asked to do something) belongs to nobody here.

use super::fold::{Change, Files, Fold};
use super::group::{Group, events};
use crate::events::{Event, Watcher};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Processes that are remembered at once: as many as a machine has by default.
const PROCESSES_MAX: usize = 65_536;
/// Changes and forks that are kept while the first process of a run is not known: of the moment in which it starts.
const KEPT_MAX: usize = 20_000;

/// A run that is measured, by a number of its asker's.
pub type Number = u64;

/// A process that is there at the end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its pid.
    pub pid: u32,
    /// Its words.
    pub argv: Vec<String>,
}

/// What was measured of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// What became of files.
    pub files: Files,
    /// Processes that are there still.
    pub left: Vec<Left>,
    /// What may be missing; none: nothing.
    pub missing: Option<String>,
}

type Reply<T> = Box<dyn FnOnce(T) + Send>;

enum Order {
    Begin { number: Number, root: Option<u32>, spared: Vec<String>, reply: Reply<Result<(), String>> },
    Root { number: Number, root: u32 },
    End { number: Number, reply: Reply<Option<Taken>> },
    Drop { number: Number },
}

/// What gives orders to the thread. It is started by the first.
#[derive(Default)]
pub struct Meter {
    thread: Mutex<Option<(Sender<Order>, UnixStream)>>,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meter")
    }
}

impl Meter {
    /// Measures what a process and all that it makes do from now on. Where the process is not there yet, name it by
    /// [`Meter::root`]. What happens in the directories that are spared does not count. The reply comes once everything is watched, or
    /// says why it cannot be.
    pub fn begin(&self, number: Number, root: Option<u32>, spared: Vec<String>, reply: Reply<Result<(), String>>) {
        self.order(Order::Begin { number, root, spared, reply });
    }

    /// Names the first process of a run.
    pub fn root(&self, number: Number, root: u32) {
        self.order(Order::Root { number, root });
    }

    /// Measures no longer, and says what there was; none: nothing was measured.
    pub fn end(&self, number: Number, reply: Reply<Option<Taken>>) {
        self.order(Order::End { number, reply });
    }

    /// Measures no longer.
    pub fn forget(&self, number: Number) {
        self.order(Order::Drop { number });
    }

    fn order(&self, order: Order) {
        let mut thread = self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if thread.is_none() {
            *thread = start().ok();
        }
        let Some((orders, wake)) = thread.as_mut() else {
            return refuse(order, "no thread can be started");
        };
        match orders.send(order) {
            Ok(()) => drop(wake.write(&[0])),
            Err(unsent) => {
                *thread = None;
                refuse(unsent.0, "the thread that measures is gone");
            }
        }
    }
}

fn refuse(order: Order, why: &str) {
    match order {
        Order::Begin { reply, .. } => reply(Err(why.to_owned())),
        Order::End { reply, .. } => reply(None),
        Order::Root { .. } | Order::Drop { .. } => {}
    }
}

fn start() -> io::Result<(Sender<Order>, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    // A wake that finds the other side full is one that is there already.
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let (sender, orders) = channel();
    std::thread::Builder::new().name("holdfast-meter".into()).spawn(move || {
        Measuring { orders, wake: theirs, eyes: None, runs: HashMap::new(), owners: HashMap::new() }.run();
    })?;
    Ok((sender, ours))
}

/// What is seen with.
struct Eyes {
    group: Group,
    /// None: the kernel tells of no forks here.
    forks: Option<Watcher>,
    buffer: Vec<u8>,
}

struct Run {
    root: Option<u32>,
    fold: Fold,
    spared: Vec<String>,
    /// What is kept until its first process is known.
    kept: Vec<(u32, Change)>,
    forks: Vec<(u32, u32)>,
    missing: Option<String>,
}

impl Run {
    fn take(&mut self, change: Change) {
        let is_below = |dir: &String| {
            change.path.strip_prefix(dir.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !self.spared.iter().any(is_below) {
            self.fold.take(change, is_there);
        }
    }

    fn misses(&mut self, what: &str) {
        self.missing.get_or_insert_with(|| what.to_owned());
    }
}

struct Measuring {
    orders: Receiver<Order>,
    wake: UnixStream,
    eyes: Option<Eyes>,
    runs: HashMap<Number, Run>,
    owners: HashMap<u32, Number>,
}

impl Measuring {
    fn run(mut self) {
        loop {
            if self.runs.is_empty() {
                // Nobody is watched: the kernel makes no events for us, and we wait for an order alone.
                self.eyes = None;
                self.owners = HashMap::new();
                match self.orders.recv() {
                    Ok(order) => self.obey(order),
                    Err(_) => return,
                }
                continue;
            }
            self.wait();
            self.look();
            loop {
                match self.orders.try_recv() {
                    Ok(order) => self.obey(order),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
        }
    }

    fn wait(&mut self) {
        let Some(eyes) = &self.eyes else { return };
        let mut fds = vec![PollFd::new(&eyes.group, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
        // Its buffer is emptied before it is full, also where no file changes.
        fds.extend(eyes.forks.as_ref().map(|forks| PollFd::new(forks, PollFlags::IN)));
        let _ = poll(&mut fds, None);
        let mut bytes = [0; 64];
        let _ = (&self.wake).read(&mut bytes);
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Begin { number, root, spared, reply } => reply(self.begin(number, root, spared)),
            Order::Root { number, root } => self.root(number, root),
            Order::End { number, reply } => {
                // Everything it did is in the queue by now.
                self.look();
                reply(self.end(number));
            }
            Order::Drop { number } => drop(self.end(number)),
        }
    }

    fn begin(&mut self, number: Number, root: Option<u32>, spared: Vec<String>) -> Result<(), String> {
        if self.eyes.is_none() {
            let group = Group::new().map_err(|error| format!("fanotify: {error}"))?;
            self.eyes = Some(Eyes { group, forks: Watcher::new().ok(), buffer: Vec::new() });
        } else {
            self.look();
        }
        let eyes = self.eyes.as_ref().expect("it was just made");
        let mut missing = None;
        if eyes.forks.is_none() {
            missing = Some("the kernel tells of no new processes here".to_owned());
        } else if !eyes.group.unwatched.is_empty() {
            missing = Some(format!("not watched: {}", eyes.group.unwatched.join("; ")));
        }
        let run = Run { root, fold: Fold::default(), spared, kept: Vec::new(), forks: Vec::new(), missing };
        self.runs.insert(number, run);
        if let Some(root) = root {
            self.owners.insert(root, number);
        }
        Ok(())
    }

    fn root(&mut self, number: Number, root: u32) {
        self.look();
        let Some(run) = self.runs.get_mut(&number).filter(|run| run.root.is_none()) else { return };
        run.root = Some(root);
        self.owners.insert(root, number);
        for (parent, child) in std::mem::take(&mut run.forks) {
            if self.owners.get(&parent) == Some(&number) {
                self.owners.insert(child, number);
            }
        }
        for (pid, change) in std::mem::take(&mut run.kept) {
            if self.owners.get(&pid) == Some(&number) {
                run.take(change);
            }
        }
    }

    fn end(&mut self, number: Number) -> Option<Taken> {
        let mut run = self.runs.remove(&number)?;
        let pids: Vec<u32> = self
            .owners
            .iter()
            .filter(|(pid, owner)| **owner == number && Some(**pid) != run.root)
            .map(|(pid, _)| *pid)
            .collect();
        self.owners.retain(|_, owner| *owner != number);
        let mut left: Vec<Left> = pids.into_iter().filter_map(Left::of).collect();
        left.sort_by_key(|left| left.pid);
        if run.root.is_none() {
            run.misses("its first process is not known");
        }
        if run.fold.is_full {
            run.misses("it changed more files than are remembered");
        }
        Some(Taken { files: run.fold.files(), left, missing: run.missing })
    }

    /// Takes all that has come: files first, then forks, which are at least as new.
    fn look(&mut self) {
        let Some(mut eyes) = self.eyes.take() else { return };
        let mut buffer = std::mem::take(&mut eyes.buffer);
        loop {
            let batch = match eyes.group.read(&mut buffer) {
                Ok(batch) => batch,
                Err(error) => {
                    self.all_miss(&format!("fanotify: {error}"));
                    None
                }
            };
            self.take_forks(&mut eyes);
            let Some(batch) = batch else { break };
            for raw in events(batch) {
                if raw.is_overflow() {
                    self.all_miss("more happened to files than the kernel keeps (fs.fanotify.max_queued_events)");
                    continue;
                }
                if raw.moves_directory() {
                    eyes.group.forget();
                }
                let owner = self.owner(raw.pid, eyes.forks.is_some());
                let waits = self.runs.values().any(|run| run.root.is_none());
                if owner.is_none() && !waits {
                    continue;
                }
                match eyes.group.change(&raw) {
                    Some(change) => self.took(raw.pid, owner, change),
                    // A directory that was gone before anybody could ask where it lay.
                    None if owner.is_some()
                        && raw.mask & (libc::FAN_CREATE | libc::FAN_DELETE | libc::FAN_RENAME) != 0 =>
                    {
                        if let Some(run) = owner.and_then(|owner| self.runs.get_mut(&owner)) {
                            run.misses("a directory went before its path was known");
                        }
                    }
                    None => {}
                }
            }
        }
        eyes.buffer = buffer;
        self.eyes = Some(eyes);
    }

    fn took(&mut self, pid: u32, owner: Option<Number>, change: Change) {
        if let Some(run) = owner.and_then(|owner| self.runs.get_mut(&owner)) {
            return run.take(change);
        }
        for run in self.runs.values_mut().filter(|run| run.root.is_none()) {
            if run.kept.len() < KEPT_MAX {
                run.kept.push((pid, change.clone()));
            } else {
                run.misses("too much happened while it started");
            }
        }
    }

    fn take_forks(&mut self, eyes: &mut Eyes) {
        let Some(watcher) = &mut eyes.forks else { return };
        loop {
            let Ok(drained) = watcher.drain() else {
                self.all_miss("the kernel tells of new processes no longer");
                return;
            };
            if drained.lost {
                self.all_miss("more processes were made than the kernel tells of");
            }
            for event in drained.events {
                let Event::Fork { parent, child, .. } = event else { continue };
                match self.owners.get(&parent).copied() {
                    Some(owner) if self.owners.len() < PROCESSES_MAX => drop(self.owners.insert(child, owner)),
                    Some(owner) => {
                        if let Some(run) = self.runs.get_mut(&owner) {
                            run.misses("it made more processes than are remembered");
                        }
                    }
                    // The pid may have been one of ours.
                    None => drop(self.owners.remove(&child)),
                }
                for run in self.runs.values_mut().filter(|run| run.root.is_none()) {
                    if run.forks.len() < KEPT_MAX {
                        run.forks.push((parent, child));
                    }
                }
            }
            if !drained.more {
                return;
            }
        }
    }

    /// Whose a process is. Where no forks are told, by its parents as they are now.
    fn owner(&mut self, pid: u32, by_forks: bool) -> Option<Number> {
        if let Some(owner) = self.owners.get(&pid) {
            return Some(*owner);
        }
        if by_forks {
            return None;
        }
        let mut at = pid;
        for _ in 0..64 {
            at = crate::tree::parent(at)?;
            if let Some(owner) = self.owners.get(&at).copied() {
                self.owners.insert(pid, owner);
                return Some(owner);
            }
        }
        None
    }

    fn all_miss(&mut self, what: &str) {
        self.runs.values_mut().for_each(|run| run.misses(what));
    }
}

fn is_there(path: &str) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

impl Left {
    /// A process that is there, and has not ended. Its words may be empty in the moment in which it becomes another program.
    #[must_use]
    pub fn of(pid: u32) -> Option<Left> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        if matches!(state, 'Z' | 'X') {
            return None;
        }
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = words.split(|byte| *byte == 0).filter(|word| !word.is_empty()).take(32);
        let argv = words.map(|word| String::from_utf8_lossy(word).chars().take(200).collect()).collect();
        Some(Left { pid, argv })
    }
}
