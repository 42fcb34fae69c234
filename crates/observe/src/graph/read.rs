//! Taking a snapshot: one walk over the processes, then one question per kind of socket.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::sockets::Sockets;
use super::{
    ARGV_BYTES_MAX, Depth, End, FdKind, Graph, PROCESSES_MAX, PipeEnd, PipeId, PipeNode, ProcessId, ProcessNode, Target,
};
use crate::proc::{self, Proc, Stat};
use crate::tree::{Spared, walk};
use crate::waiting::TerminalFacts;

/// What the keeper's descendants are and hold.
///
/// Who goes meanwhile is left out; who may not be read is there with what is known. Holdfast's own processes are spared
/// as in [`crate::descendants`].
///
/// # Errors
///
/// The keeper is gone, or `/proc` cannot be read.
pub fn snapshot(keeper: u32, depth: Depth, terminal: Option<&TerminalFacts>, spared: &Spared) -> io::Result<Graph> {
    let mut reader = Reader::new(depth, terminal.map(|facts| facts.foreground))?;
    let walked = walk(keeper, PROCESSES_MAX, |pid, below| reader.process(pid, below, spared))?;
    let mut processes = walked.found;
    link_parents(&mut processes);
    let is_told = reader.sockets.resolve();
    Ok(Graph {
        at_ms: reader.clock.now_ms,
        depth,
        partial: walked.is_cut || !is_told || processes.iter().any(|process| process.unknown || process.more_fds > 0),
        processes,
        sockets: reader.sockets.into_nodes(),
        pipes: reader.pipes.into_iter().map(|(id, ends)| PipeNode { id, ends }).collect(),
    })
}

/// Parents are read before their children, so a parent that is listed is the one.
fn link_parents(processes: &mut [ProcessNode]) {
    let ids: HashMap<u32, ProcessId> = processes.iter().map(|process| (process.pid, process.id)).collect();
    for process in processes {
        process.parent = ids.get(&process.parent_pid).copied();
    }
}

/// The kernel's units, and what time it is.
struct Clock {
    now_ms: u64,
    boot_ms: u64,
    tick_hz: u64,
    page_bytes: u64,
}

impl Clock {
    fn now() -> Clock {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let up = clock_gettime(ClockId::Boottime);
        let up_ms = up.tv_sec.unsigned_abs() * 1000 + up.tv_nsec.unsigned_abs() / 1_000_000;
        Clock {
            now_ms,
            boot_ms: now_ms.saturating_sub(up_ms),
            tick_hz: rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
        }
    }

    fn ticks_ms(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(1000) / self.tick_hz
    }
}

/// Reads processes, and collects the sockets and pipes they hold.
pub(super) struct Reader {
    pub(super) proc: Proc,
    pub(super) depth: Depth,
    pub(super) sockets: Sockets,
    pub(super) numbers: Vec<u32>,
    clock: Clock,
    foreground: Option<u32>,
    pipes: BTreeMap<PipeId, Vec<PipeEnd>>,
}

impl Reader {
    fn new(depth: Depth, foreground: Option<u32>) -> io::Result<Reader> {
        let mut proc = Proc::open()?;
        Ok(Reader {
            sockets: Sockets::new(&mut proc),
            proc,
            depth,
            numbers: Vec::new(),
            clock: Clock::now(),
            foreground,
            pipes: BTreeMap::new(),
        })
    }

    fn process(&mut self, pid: u32, below: &mut VecDeque<u32>, spared: &Spared) -> Option<ProcessNode> {
        let dir = self.proc.process(pid).ok()?;
        let dir = dir.as_fd();
        let mut node = node(self.proc.read(dir, "stat").ok()?, &self.clock, self.foreground, spared)?;
        self.proc.children(dir, pid, node.threads, &mut self.numbers);
        below.extend(&self.numbers);
        node.uid = proc::owner(dir);
        (node.argv, node.argv_cut) = self.argv(dir).ok()?;
        node.exe = self.link(dir, "exe");
        node.cwd = self.link(dir, "cwd");
        node.cgroup = self.cgroup(dir);
        if self.depth > Depth::Processes && node.state != 'Z' {
            self.fds(dir, &mut node);
            self.hold(dir, &node);
        }
        Some(node)
    }

    fn argv(&mut self, dir: BorrowedFd<'_>) -> Result<(Vec<String>, bool), Errno> {
        let bytes = match self.proc.read_at_most(dir, "cmdline", ARGV_BYTES_MAX + 1) {
            // A process that is over has none; one that is gone has no process.
            Err(Errno::SRCH) => return Err(Errno::SRCH),
            Err(_) => return Ok((Vec::new(), false)),
            Ok(bytes) => bytes,
        };
        let is_cut = bytes.len() > ARGV_BYTES_MAX;
        Ok((words(&bytes[..bytes.len().min(ARGV_BYTES_MAX)]), is_cut))
    }

    fn link(&mut self, dir: BorrowedFd<'_>, name: &str) -> Option<String> {
        self.proc.link(dir, name).ok().map(|target| String::from_utf8_lossy(target).into_owned())
    }

    fn cgroup(&mut self, dir: BorrowedFd<'_>) -> Option<String> {
        let text = self.proc.read(dir, "cgroup").ok()?;
        let path = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
        Some(String::from_utf8_lossy(path).into_owned())
    }

    /// Notes which sockets and pipes a process holds.
    fn hold(&mut self, dir: BorrowedFd<'_>, node: &ProcessNode) {
        let mut is_here = None;
        for fd in &node.fds {
            match fd.target {
                Some(Target::Socket(socket)) => {
                    let is_here = *is_here.get_or_insert_with(|| self.sockets.is_our_network(&mut self.proc, dir));
                    self.sockets.held(socket, node.id, fd.fd, is_here);
                }
                Some(Target::Pipe(pipe)) => {
                    let end = match (fd.read, fd.write) {
                        (Some(true), Some(true)) => Some(End::Both),
                        (Some(true), _) => Some(End::Read),
                        (_, Some(true)) => Some(End::Write),
                        (_, _) => None,
                    };
                    debug_assert_eq!(fd.kind, FdKind::Pipe);
                    self.pipes.entry(pipe).or_default().push(PipeEnd { process: node.id, fd: fd.fd, end });
                }
                None => {}
            }
        }
    }
}

/// What the `stat` line says; none for one of Holdfast's own.
fn node(line: &[u8], clock: &Clock, foreground: Option<u32>, spared: &Spared) -> Option<ProcessNode> {
    let stat = Stat::parse(line)?;
    let id = ProcessId { pid: stat.pid, start: stat.number(22)? };
    if spared.is(id.pid, id.start) {
        return None;
    }
    let group = stat.number(5)?;
    Some(ProcessNode {
        id,
        pid: stat.pid,
        parent: None,
        parent_pid: stat.number(4)?,
        group,
        session: stat.number(6)?,
        foreground: foreground.map(|foreground| foreground == group),
        started_ms: clock.boot_ms + clock.ticks_ms(id.start),
        state: stat.state()?,
        comm: String::from_utf8_lossy(stat.name).into_owned(),
        argv: Vec::new(),
        argv_cut: false,
        exe: None,
        cwd: None,
        cpu_ms: clock.ticks_ms(stat.number::<u64>(14)?.saturating_add(stat.number(15)?)),
        rss_bytes: stat.number::<u64>(24)?.saturating_mul(clock.page_bytes),
        threads: stat.number(20)?,
        uid: None,
        cgroup: None,
        fds: Vec::new(),
        more_fds: 0,
        unknown: false,
    })
}

/// The words of a command line, as `/proc/<pid>/cmdline` has them.
pub fn words(cmdline: &[u8]) -> Vec<String> {
    let cmdline = cmdline.strip_suffix(&[0]).unwrap_or(cmdline);
    if cmdline.is_empty() {
        return Vec::new();
    }
    cmdline.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}
