//! Looking at a session's processes now and then, so that something is known of them when they are gone.
//!
//! A session that does something is looked at two seconds later, and again with growing pauses while that shows something new.
//! One that does nothing is not looked at: there is no timer. The host looks at one session at a time, off its thread.

use super::kept::{KeptLife, KeptProcess};
use crate::session::Session;
use holdfast_graph::{Depth, Family, Graph, ProcessNode, SocketKind, SocketNode, SocketState};
use holdfast_observe::graph::snapshot;
use holdfast_observe::{Spared, process_id};
use holdfast_types::TimeMs;
use std::cell::{Cell, RefCell};
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// From the first stir to the look: a command that was typed has started by then what it starts.
const FIRST: Duration = Duration::from_secs(2);
/// Between two looks, whatever happens: a few file reads per process are nothing at this pace.
const PAUSE: Duration = Duration::from_secs(10);
/// Looks in a row that show nothing new before no more are made until something stirs.
const QUIET_LOOKS: u32 = 2;
/// Processes that are kept: a person reads no more.
const PROCESSES_MAX: usize = 64;
/// Addresses that are kept, of either kind.
const ADDRESSES_MAX: usize = 32;
/// Longest name of a program.
const PROGRAM_CHARS_MAX: usize = 64;

/// When a session is looked at.
#[derive(Debug, Default)]
pub(crate) struct Looking {
    /// A look is due, or under way.
    due: Cell<bool>,
    /// Something stirred since.
    stirred: Cell<bool>,
    last: RefCell<Option<KeptLife>>,
    /// Somebody came or went: when that was is kept.
    pub came: Cell<bool>,
}

impl Session {
    /// Something happened here: it is looked at soon.
    pub(crate) fn look_soon(&self) {
        self.looking.stirred.set(true);
        let Some(this) = self.this.upgrade().filter(|_| !self.looking.due.replace(true)) else { return };
        tokio::task::spawn_local(async move {
            let mut quiet = 0;
            tokio::time::sleep(FIRST).await;
            while this.link().is_some() && quiet < QUIET_LOOKS {
                let stirred = this.looking.stirred.replace(false);
                let news = this.keep_life().await;
                quiet = if stirred || news { 0 } else { quiet + 1 };
                if quiet < QUIET_LOOKS {
                    tokio::time::sleep(PAUSE).await;
                }
            }
            this.looking.due.set(false);
        });
    }

    /// Looks, and keeps what is new. True where something is.
    async fn keep_life(&self) -> bool {
        let (keeper, root, spared) = {
            let state = self.state.borrow();
            (state.keeper_pid, state.pid, self.own.spared())
        };
        let (dir, last, (attached_ms, looked_ms)) = (self.dir.clone(), self.looking.last.take(), self.last_used());
        let came = self.looking.came.replace(false);
        let _turn = self.looks.acquire().await;
        if self.link().is_none() {
            return false;
        }
        // The spec says whose files these are: a session that has ended keeps what was seen last.
        let kept = crate::off_thread(move || {
            let life = KeptLife { attached_ms, looked_ms, ..seen(keeper, root, &spared)? };
            let is_news = last.is_none_or(|last| !last.is_same(&life));
            if is_news || came {
                life.save(&dir)?;
            }
            Ok((life, is_news))
        });
        match kept.await {
            Ok((life, is_news)) => {
                self.looking.last.replace(Some(life));
                is_news
            }
            // It is just ending, or the disk is full: other notes say so.
            Err(_) => false,
        }
    }

    /// Its keeper was just reached: what it takes to know later why it is gone is written at once.
    pub(crate) fn keep_keeper(&self) {
        let keeper = self.state.borrow().keeper_pid;
        let dir = self.dir.clone();
        self.looking.last.take();
        let Some(this) = self.this.upgrade() else { return };
        tokio::task::spawn_local(async move {
            let turn = this.looks.acquire().await;
            let known = crate::off_thread(move || {
                let known =
                    KeptLife::load(&dir).filter(|life| life.keeper.is_some() && life.keeper == process_id(keeper));
                if known.is_none() {
                    of_keeper(keeper).save(&dir)?;
                }
                // Left where a host was killed just when this life began.
                let _ = std::fs::remove_file(dir.join(super::RING_BEFORE));
                Ok(known)
            })
            .await;
            if let Ok(Some(known)) = known {
                let later = |ours: &Cell<Option<TimeMs>>, kept: Option<TimeMs>| ours.set(ours.get().max(kept));
                later(&this.watch.attached_ms, known.attached_ms);
                later(&this.watch.looked_ms, known.looked_ms);
            }
            drop(turn);
            this.look_soon();
        });
    }
}

/// What is seen of a session's processes. Blocks.
fn seen(keeper: u32, root: u32, spared: &Arc<Spared>) -> io::Result<KeptLife> {
    let graph = snapshot(keeper, Depth::Sockets, None, spared)?;
    let cwd = graph.processes.iter().find(|process| process.pid == root).and_then(|process| process.cwd.clone());
    let processes = graph.processes.iter().take(PROCESSES_MAX);
    Ok(KeptLife {
        cwd: cwd.filter(|cwd| !cwd.ends_with(" (deleted)")),
        processes: processes.map(|process| KeptProcess { id: process.id, program: program(process) }).collect(),
        listened: addresses(&graph, listened),
        connected: addresses(&graph, connected),
        seen_ms: graph.at_ms as TimeMs,
        ..of_keeper(keeper)
    })
}

/// What is known of a keeper without its processes. Blocks.
fn of_keeper(keeper: u32) -> KeptLife {
    let cgroup = std::fs::read_to_string(format!("/proc/{keeper}/cgroup")).ok();
    let cgroup = cgroup.and_then(|text| text.lines().find_map(|line| line.strip_prefix("0::").map(str::to_owned)));
    KeptLife {
        boot: boot_id().to_owned(),
        keeper: process_id(keeper),
        cgroup_oom: cgroup.as_deref().and_then(cgroup_oom),
        cgroup,
        oom: oom(),
        seen_ms: crate::now_ms(),
        ..KeptLife::default()
    }
}

/// Its file's name, and of an interpreter's arguments the script: no other argument, which may be a secret.
fn program(process: &ProcessNode) -> String {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let first = process.argv.first().map(|word| name(word)).filter(|word| !word.is_empty());
    let mut text = first.unwrap_or_else(|| process.comm.clone());
    let is_file = |word: &&String| {
        word.starts_with('/') || word.ends_with(".js") || word.ends_with(".py") || word.ends_with(".sh")
    };
    if let Some(script) = process.argv.get(1).filter(is_file) {
        text = format!("{text} {}", name(script));
    }
    text.chars().filter(|c| !c.is_control()).take(PROGRAM_CHARS_MAX).collect()
}

fn addresses(graph: &Graph, of: impl Fn(&SocketNode) -> Option<String>) -> Vec<String> {
    let mut all: Vec<String> = graph.sockets.iter().filter_map(of).collect();
    all.sort();
    all.dedup();
    all.truncate(ADDRESSES_MAX);
    all
}

fn protocol(socket: &SocketNode) -> Option<&'static str> {
    match (socket.family?, socket.kind?) {
        (Family::Inet | Family::Inet6, SocketKind::Stream) => Some("tcp"),
        (Family::Inet | Family::Inet6, SocketKind::Dgram) => Some("udp"),
        _ => None,
    }
}

fn listened(socket: &SocketNode) -> Option<String> {
    let is_listening = socket.state == Some(SocketState::Listening);
    let text = format!("{} {}", protocol(socket)?, socket.local?);
    is_listening.then_some(text)
}

fn connected(socket: &SocketNode) -> Option<String> {
    let is_connected = socket.state == Some(SocketState::Established);
    let text = format!("{} {}", protocol(socket)?, socket.remote?);
    is_connected.then_some(text)
}

/// Which run of the machine this is; empty where nothing tells.
pub(crate) fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let read = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        read.map(|text| text.trim().to_owned()).unwrap_or_default()
    })
}

/// How many processes the kernel has killed for memory on this machine.
pub(super) fn oom() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// And in a cgroup.
pub(super) fn cgroup_oom(cgroup: &str) -> Option<u64> {
    let path = Path::new("/sys/fs/cgroup").join(cgroup.trim_start_matches('/')).join("memory.events");
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}
