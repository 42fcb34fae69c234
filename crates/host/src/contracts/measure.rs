//! Measuring one run: by the kernel where the host may ask it, by looking at the working directory otherwise.

use crate::gate::Gate;
use crate::session::{Did, Session};
use holdfast_observe::effects::{Files, Left, Meter, Number, Scan, Taken};
use holdfast_observe::network::Opens;
use holdfast_wire::contracts::{Contract, Effects, FileEffects, LeftProcess, Measure, Moved};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the kernel or a directory is waited for before a run begins, and after it has ended.
const WAIT: Duration = Duration::from_secs(5);
/// A process that is there when its run has ended may be about to go.
const LEAVING: Duration = Duration::from_millis(150);
/// Ports and connections that are remembered.
const SEEN_MAX: usize = 256;
/// Between two looks at the counts of connections; and the part of the time that looks at sockets take.
const PAUSE: Duration = Duration::from_millis(100);
const COST_PART: u32 = 20;

/// What measures for all sessions.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    meter: Meter,
    last: Cell<Number>,
}

/// A run that is being measured. Where it is dropped nothing more is.
#[derive(Debug)]
pub(crate) struct Measuring {
    gate: Rc<Gate>,
    way: Way,
    opens: Option<Opens>,
    seen: RefCell<Seen>,
    /// The contract's patterns of files, absolute and without links.
    pub patterns: Vec<String>,
}

#[derive(Debug)]
enum Way {
    Kernel(Number),
    /// The directory as it was, and why the kernel cannot be asked.
    Scan(String, Scan, String),
    /// Nothing; why.
    None(String),
}

/// Sockets that were seen while it ran.
#[derive(Debug, Default)]
struct Seen {
    ports: BTreeSet<u16>,
    connections: BTreeSet<String>,
}

impl Seen {
    fn add(&mut self, did: &Did) {
        let room = |set: usize| SEEN_MAX.saturating_sub(set);
        self.ports.extend(did.ports.iter().copied().take(room(self.ports.len())));
        self.connections.extend(did.connections.iter().take(room(self.connections.len())).cloned());
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        if let Way::Kernel(number) = self.way {
            self.gate.meter.meter.forget(number);
        }
    }
}

impl Measuring {
    /// Nothing is measured: its beginning was not seen.
    pub fn none(gate: &Rc<Gate>, why: &str) -> Measuring {
        let (way, opens, seen) = (Way::None(why.to_owned()), None, RefCell::default());
        Measuring { gate: Rc::clone(gate), way, opens, seen, patterns: Vec::new() }
    }

    /// Begins to measure what a process does and all that it makes; without one, name it by [`Measuring::root`].
    pub async fn begin(
        gate: &Rc<Gate>,
        root: Option<u32>,
        cwd: String,
        contract: &Contract,
        spared: Vec<String>,
    ) -> Measuring {
        let (cwd, patterns) = resolved(cwd, contract).await;
        let number = gate.meter.last.get() + 1;
        gate.meter.last.set(number);
        let opens = Opens::read().ok();
        let measuring = |way| {
            let (gate, patterns) = (Rc::clone(gate), patterns.clone());
            Measuring { gate, way, opens, seen: RefCell::default(), patterns }
        };
        let (reply, began) = oneshot::channel();
        gate.meter.meter.begin(number, root, spared, Box::new(move |said| drop(reply.send(said))));
        // From here on it is forgotten where its asker goes away.
        let kernel = measuring(Way::Kernel(number));
        let why = match tokio::time::timeout(WAIT, began).await {
            Ok(Ok(Ok(()))) => return kernel,
            Ok(Ok(Err(why))) => why,
            Ok(Err(_)) | Err(_) => "the kernel does not answer".to_owned(),
        };
        drop(kernel);
        let dir = cwd.clone();
        let scanned = tokio::time::timeout(WAIT, crate::off_thread(move || Ok(Scan::of(&dir)))).await;
        match scanned {
            Ok(Ok(scan)) => measuring(Way::Scan(cwd, scan, why)),
            Ok(Err(_)) | Err(_) => measuring(Way::None(format!("{why}; the working directory does not answer"))),
        }
    }

    /// Names its first process.
    pub fn root(&self, pid: u32) {
        if let Way::Kernel(number) = self.way {
            self.gate.meter.meter.root(number, pid);
        }
    }

    /// Looks at its sockets from time to time, where some were opened on this machine. Never returns.
    pub async fn sample(&self, session: &Session, act: Option<u64>) {
        let mut last = self.opens;
        loop {
            let mut pause = PAUSE;
            let now = Opens::read().ok();
            if now != last {
                last = now;
                let began = tokio::time::Instant::now();
                if let Some(did) = session.did(act).await {
                    self.seen.borrow_mut().add(&did);
                }
                pause = pause.max(began.elapsed() * COST_PART);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// What it did, now that it is over. `own`: it was its session's own command, and the session is over too.
    pub async fn end(mut self, session: &Session, act: Option<u64>, own: bool) -> Effects {
        let last = if own { None } else { session.did(act).await };
        let mut effects = Effects::default();
        self.network(&mut effects, last.as_ref(), own);
        match std::mem::replace(&mut self.way, Way::None(String::new())) {
            Way::Kernel(number) => {
                let (reply, taken) = oneshot::channel();
                self.gate.meter.meter.end(number, Box::new(move |taken| drop(reply.send(taken))));
                let taken = tokio::time::timeout(WAIT, taken).await.ok().and_then(Result::ok).flatten();
                by_kernel(&mut effects, taken).await;
            }
            Way::Scan(cwd, before, why) => {
                let dir = cwd.clone();
                let after = tokio::time::timeout(WAIT, crate::off_thread(move || Ok(Scan::of(&dir)))).await;
                let after = after.ok().and_then(Result::ok);
                by_scan(&mut effects, &cwd, &before, after.as_ref(), &why);
                by_graph(&mut effects, last.as_ref(), own).await;
            }
            Way::None(why) => {
                effects.files_measured = part("none", &why);
                by_graph(&mut effects, last.as_ref(), own).await;
            }
        }
        if own && effects.processes_measured.complete && effects.processes.is_empty() {
            // Nobody is left who could listen.
            effects.ports_measured = whole("lineage");
        }
        effects
    }

    fn network(&self, effects: &mut Effects, last: Option<&Did>, own: bool) {
        let mut seen = self.seen.borrow_mut();
        if let Some(did) = last {
            seen.add(did);
        }
        effects.ports = seen.ports.iter().copied().collect();
        effects.connections = seen.connections.iter().cloned().collect();
        effects.ports_measured = match last {
            Some(did) if !did.partial => whole("graph"),
            Some(_) => part("graph", "some descriptors cannot be read"),
            None if own => part("samples", "its session is over: only ports that were seen while it ran"),
            None => part("none", "its processes cannot be read"),
        };
        let is_quiet = self.opens.is_some() && Opens::read().ok() == self.opens;
        effects.network_measured = match is_quiet {
            // Nothing on this machine connected or sent anything.
            true => whole("counters"),
            false => part("samples", "connections shorter than a tenth of a second may be missing"),
        };
    }
}

/// The directory without links, and what a contract means there.
async fn resolved(cwd: String, contract: &Contract) -> (String, Vec<String>) {
    let (dir, contract) = (cwd.clone(), contract.clone());
    let work = crate::off_thread(move || {
        let dir = crate::gate::real_text(&dir);
        let patterns = super::patterns(&contract, &dir);
        Ok((dir, patterns))
    });
    // A file system that does not answer: nothing there is allowed.
    tokio::time::timeout(WAIT, work).await.ok().and_then(Result::ok).unwrap_or((cwd, Vec::new()))
}

fn whole(by: &str) -> Measure {
    Measure { complete: true, by: by.to_owned(), why: None }
}

fn part(by: &str, why: &str) -> Measure {
    Measure { complete: false, by: by.to_owned(), why: Some(why.to_owned()) }
}

async fn by_kernel(effects: &mut Effects, taken: Option<Taken>) {
    let Some(taken) = taken else {
        effects.files_measured = part("none", "what measures does not answer");
        effects.processes_measured = part("none", "what measures does not answer");
        return;
    };
    let (files, processes) = match &taken.missing {
        None => (whole("fanotify"), whole("lineage")),
        Some(why) => (part("fanotify", why), part("lineage", why)),
    };
    (effects.files, effects.files_measured, effects.processes_measured) = (told(taken.files), files, processes);
    let left = taken.left.into_iter().map(|left| LeftProcess { pid: left.pid, argv: left.argv }).collect();
    effects.processes = staying(left).await;
}

fn by_scan(effects: &mut Effects, cwd: &str, before: &Scan, after: Option<&Scan>, why: &str) {
    let Some(after) = after else {
        effects.files_measured = part("none", "the working directory does not answer");
        return;
    };
    effects.files = told(before.until(after));
    let cut = if before.is_cut || after.is_cut { ", and only a part of it" } else { "" };
    let why = format!("only {cwd} was looked at{cut}; what others changed there counts too ({why})");
    effects.files_measured = part("ctime", &why);
}

async fn by_graph(effects: &mut Effects, last: Option<&Did>, own: bool) {
    match last {
        Some(did) => {
            effects.processes = staying(did.processes.clone()).await;
            effects.processes_measured =
                if did.partial { part("graph", "some processes cannot be read") } else { whole("graph") };
        }
        None if own => effects.processes_measured = part("none", "its session is over"),
        None => effects.processes_measured = part("none", "its processes cannot be read"),
    }
}

/// Those that are there a moment later too.
async fn staying(left: Vec<LeftProcess>) -> Vec<LeftProcess> {
    if left.is_empty() {
        return left;
    }
    tokio::time::sleep(LEAVING).await;
    // It may have become another program meanwhile.
    let again = left.into_iter().filter_map(|left| Left::of(left.pid));
    again.map(|left| LeftProcess { pid: left.pid, argv: left.argv }).collect()
}

fn told(files: Files) -> FileEffects {
    let Files { created, changed, deleted, moved, passing } = files;
    let moved: Vec<Moved> = moved.into_iter().map(|(from, to)| Moved { from, to }).collect();
    let count = (created.len() + changed.len() + deleted.len() + moved.len()) as u64;
    FileEffects { created, changed, deleted, moved, count, passing }
}
