//! Which act started which process.
//!
//! The kernel tells lineage and birth, the journal tells who wrote when. A process that the session's shell made is bound
//! to the last act that wrote before its birth: known by *time*. So is a job of a shell inside that shell, which has a
//! process group of its own on the session's terminal. Whatever such a process makes is its maker's, however late and
//! whoever has the turn by then: known by *lineage*. A daemon that lost its parent is its session's or its group's
//! leader's, or else known by its birth.
//!
//! Where the host could give each turn a cgroup of its own, the kernel says it again: the session's shell is in the
//! cgroup of whoever writes, and what it makes is born there and stays, whatever becomes of its parents. A child of the
//! shell is bound by time, and known by *cgroup* where that says the same actor: a shell that is moved on in the middle of
//! a line goes on with what the last writer told it. Where they differ, time counts. Only what is in a run's cgroup is the
//! run's whoever wrote meanwhile, since the shell stays there until it says that the run is over. For a daemon that lost
//! its parent and its leaders the cgroup decides alone, and birth only tells which of that turn's acts it was; none where
//! it was born later. What is in no turn's cgroup was started before there was a second writer: it is the starter's.
//!
//! A shell inside the shell was not moved, so its jobs are known by time as ever, and what these make by lineage. A daemon
//! that such a job left behind is in the cgroup of who started the inner shell: as long as one that reads commands is there,
//! and time says another actor, time counts for daemons too. Once the inner shell is gone, nothing tells.
//!
//! By time is not by proof: a job that a shell starts by itself (`at`, a timer in its prompt) counts as the last writer's.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use holdfast_types::{Actor, Fence, TimeMs};

use crate::{Graph, ProcessId, ProcessNode, SocketId};

/// A birth is known to a clock tick, and rounded down: what was born up to this much before an act may be its doing.
pub const TICK_MS: u64 = 10;

/// Keys that a keeper took by itself are recorded up to this much after they were typed: two seconds for a burst, and a
/// moment for a busy host.
pub const RECORD_LAG_MS: u64 = 2_500;

/// An act that can start a process, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritingAct {
    /// Its number in the journal.
    pub seq: u64,
    /// Whose; none: the host could not tell.
    pub actor: Option<Actor>,
    /// It took effect at this time or later.
    pub from_ms: TimeMs,
    /// When it was recorded.
    pub at_ms: TimeMs,
    /// It started the session itself.
    pub is_start: bool,
    /// Under which fence.
    pub fence: Fence,
}

/// Whose a cgroup below the session's own is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spot {
    /// The turn's under this fence, and its holder's later ones until somebody else wrote.
    Turn(Fence),
    /// The run's: the number of its act.
    Run(u64),
}

impl Spot {
    /// By its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Spot> {
        let number = |digits: &str| digits.parse().ok().filter(|number: &u64| number.to_string() == digits);
        match (name.strip_prefix('t'), name.strip_prefix('r')) {
            (Some(digits), _) => number(digits).map(|number| Spot::Turn(Fence(number))),
            (None, Some(digits)) => number(digits).map(Spot::Run),
            (None, None) => None,
        }
    }
}

impl std::fmt::Display for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Spot::Turn(fence) => write!(f, "t{}", fence.0),
            Spot::Run(seq) => write!(f, "r{seq}"),
        }
    }
}

/// The cgroups of a session's turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spots {
    /// The session's own cgroup, as the kernel names it.
    pub path: String,
    /// The cgroup that lies in: the keeper's.
    pub home: String,
    /// Until this act only the session's starter wrote, and everything since has a cgroup; none: that is not known.
    pub since: Option<u64>,
}

impl Spots {
    /// The turn's or run's that a process is in.
    #[must_use]
    pub fn of(&self, process: &ProcessNode) -> Option<Spot> {
        let below = process.cgroup.as_deref()?.strip_prefix(self.path.as_str())?.strip_prefix('/')?;
        Spot::parse(below.split('/').next()?)
    }

    /// It is in no turn's cgroup, nor in one that somebody else made for it.
    fn is_outside(&self, process: &ProcessNode) -> bool {
        process.cgroup.as_ref().is_some_and(|path| *path == self.home || *path == self.path)
    }
}

/// How a binding is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// By the cgroup it was born in, which is one turn's or one run's.
    Cgroup,
    /// By who made it.
    Lineage,
    /// By when it was made.
    Time,
    /// It is not: the journal does not reach back so far, or has no name.
    Unknown,
}

impl Known {
    /// Its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Known::Cgroup => "cgroup",
            Known::Lineage => "lineage",
            Known::Time => "time",
            Known::Unknown => "unknown",
        }
    }
}

/// What is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Bound {
    /// A process.
    Process(ProcessId),
    /// A socket: its oldest holder's act.
    Socket(SocketId),
}

/// A process or socket, and the act that started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    /// What.
    pub of: Bound,
    /// How that is known.
    pub by: Known,
    /// The act's number in the session's journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// When it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<TimeMs>,
}

/// What was found of one process.
#[derive(Clone, Copy)]
struct Found<'a> {
    act: Option<&'a WritingAct>,
    /// Known without the act, too: by the turn.
    actor: Option<&'a Actor>,
    by: Known,
}

impl<'a> Found<'a> {
    fn of(act: Option<&'a WritingAct>, by: Known) -> Found<'a> {
        Found { act, actor: act.and_then(|act| act.actor.as_ref()), by }
    }
}

/// Binds every process and every socket of a graph, in its order; `root` is the pid of the session's command, and the
/// acts are in the journal's order. Without `spots` turns had no cgroups.
#[must_use]
pub fn bind(graph: &Graph, root: u32, acts: &[WritingAct], spots: Option<&Spots>) -> Vec<Binding> {
    let by_pid: HashMap<u32, &ProcessNode> = graph.processes.iter().map(|process| (process.pid, process)).collect();
    let inner = graph.processes.iter().filter(|process| process.pid != root && reads_commands(process)).collect();
    let lineage = Lineage { root, by_pid, inner };
    let mut known: HashMap<ProcessId, Found<'_>> = HashMap::new();
    for process in &graph.processes {
        let mut path = vec![process];
        // A graph that says of two processes that each is below the other ends with the second.
        while let Some(maker) = path.last().and_then(|last| lineage.maker(last)) {
            if known.contains_key(&maker.id) || path.iter().any(|other| other.id == maker.id) {
                break;
            }
            path.push(maker);
        }
        while let Some(process) = path.pop() {
            let maker = lineage.maker(process);
            let inherited = maker.and_then(|maker| Some((maker, known.get(&maker.id)?)));
            let found = match inherited {
                Some((_, found)) if found.actor.is_none() => Found { by: Known::Unknown, ..*found },
                Some((maker, found)) if found.by == Known::Cgroup && process.cgroup == maker.cgroup => *found,
                Some((_, found)) => Found { by: Known::Lineage, ..*found },
                None => by_itself(process, &lineage, acts, spots),
            };
            known.insert(process.id, found);
        }
    }
    let binding = |of: Bound, id: Option<ProcessId>| {
        let nothing = Found::of(None, Known::Unknown);
        let found = id.and_then(|id| known.get(&id).copied()).unwrap_or(nothing);
        let by = if found.actor.is_none() { Known::Unknown } else { found.by };
        let (act, at_ms) = (found.act.map(|act| act.seq), found.act.map(|act| act.at_ms));
        Binding { of, by, act, actor: found.actor.cloned(), at_ms }
    };
    let processes = graph.processes.iter().map(|process| binding(Bound::Process(process.id), Some(process.id)));
    let oldest = |holders: &[ProcessId]| holders.iter().copied().min_by_key(|holder| (holder.start, holder.pid));
    let sockets = graph.sockets.iter().map(|socket| binding(Bound::Socket(socket.id), oldest(&socket.holders)));
    processes.chain(sockets).collect()
}

struct Lineage<'a> {
    root: u32,
    by_pid: HashMap<u32, &'a ProcessNode>,
    /// Shells inside the shell.
    inner: Vec<&'a ProcessNode>,
}

/// A shell with options at most: a script or a command would follow them.
fn reads_commands(process: &ProcessNode) -> bool {
    const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "busybox"];
    let is_bare = |options: &[String]| options.iter().all(|word| word.starts_with('-'));
    SHELLS.contains(&process.comm.as_str()) && process.argv.get(1..).is_some_and(is_bare)
}

impl<'a> Lineage<'a> {
    /// Its parent, if that is listed and no other process by now.
    fn parent(&self, process: &ProcessNode) -> Option<&'a ProcessNode> {
        let parent = process.parent?;
        self.by_pid.get(&parent.pid).copied().filter(|found| found.id == parent)
    }

    /// Whose act it shares; none: its birth tells.
    fn maker(&self, process: &ProcessNode) -> Option<&'a ProcessNode> {
        if process.pid == self.root {
            return None;
        }
        let listed = |pid: u32| self.by_pid.get(&pid).copied();
        // The command leads the kernel session of the session's terminal.
        let is_at_terminal = process.session == self.root;
        match self.parent(process) {
            Some(parent) => {
                let is_job = is_at_terminal && process.group != parent.group;
                Some(parent).filter(|_| parent.pid != self.root && !is_job)
            }
            None => {
                let leads = |pid: u32| {
                    let leader = listed(pid).filter(|leader| leader.id != process.id && leader.pid != self.root)?;
                    // Else the pid is somebody else's by now.
                    Some(leader).filter(|leader| leader.id.start <= process.id.start)
                };
                let of_session = if is_at_terminal { None } else { leads(process.session) };
                of_session.or_else(|| leads(process.group))
            }
        }
    }
}

/// The actor of a process that shares no act: by its cgroup, or by its start.
fn by_itself<'a>(
    process: &ProcessNode,
    lineage: &Lineage<'_>,
    acts: &'a [WritingAct],
    spots: Option<&Spots>,
) -> Found<'a> {
    let timed = by_birth(process, lineage.root, acts);
    let Some(spots) = spots.filter(|_| process.pid != lineage.root) else { return timed };
    let found_at = |spot| by_spot(spot, acts, process);
    match (lineage.parent(process), spots.of(process)) {
        // The shell's own child: a run's, or the last writer's.
        (Some(parent), Some(spot @ Spot::Run(_))) if parent.pid == lineage.root => found_at(spot).unwrap_or(timed),
        (Some(parent), Some(spot)) if parent.pid == lineage.root => {
            let agrees = found_at(spot).is_some_and(|found| found.actor.is_some() && found.actor == timed.actor);
            Found { by: if agrees { Known::Cgroup } else { timed.by }, ..timed }
        }
        // A job of a shell inside the shell; or a child of the shell, before turns had cgroups.
        (Some(_), _) => timed,
        (None, spot) => {
            let is_beside = |other: &&ProcessNode| match spot {
                Some(spot) => spots.of(other) == Some(spot),
                None => spots.is_outside(other),
            };
            let found = match spot {
                Some(spot) => found_at(spot),
                None => outside(spots, acts, process).filter(|_| spots.is_outside(process)),
            };
            let is_doubtful = |found: &Found<'_>| found.actor != timed.actor && lineage.inner.iter().any(is_beside);
            found.filter(|found| !is_doubtful(found)).unwrap_or(timed)
        }
    }
}

/// By the cgroup alone; none where the journal does not tell whose that was.
fn by_spot<'a>(spot: Spot, acts: &'a [WritingAct], process: &ProcessNode) -> Option<Found<'a>> {
    let from = match spot {
        Spot::Run(seq) => {
            let run = acts.iter().find(|act| act.seq == seq)?;
            return Some(Found::of(Some(run), Known::Cgroup));
        }
        Spot::Turn(fence) => acts.iter().position(|act| act.fence >= fence && !act.is_start)?,
    };
    let actor = acts[from].actor.as_ref()?;
    let until = acts[from..].iter().position(|act| act.actor.as_ref() != Some(actor)).map(|count| from + count);
    let turn = &acts[from..until.unwrap_or(acts.len())];
    let found = one_of(turn, until.map(|next| &acts[next]), actor, process);
    // Whenever it was born.
    let only = turn.first().filter(|_| turn.len() == 1);
    Some(Found { act: found.act.or(only), ..found })
}

/// By elimination: everything that somebody else started has a cgroup.
fn outside<'a>(spots: &Spots, acts: &'a [WritingAct], process: &ProcessNode) -> Option<Found<'a>> {
    let since = spots.since?;
    let actor = acts.iter().find(|act| act.is_start)?.actor.as_ref()?;
    let until = acts.partition_point(|act| act.seq <= since);
    Some(one_of(&acts[..until], acts.get(until), actor, process))
}

/// Which of one actor's acts in a row it was: the last before its birth, unless the next one was before that, too.
fn one_of<'a>(of: &'a [WritingAct], next: Option<&WritingAct>, actor: &'a Actor, process: &ProcessNode) -> Found<'a> {
    let born = process.started_ms.saturating_add(TICK_MS);
    let is_later = next.is_some_and(|next| next.from_ms <= born);
    let act = of.iter().rev().find(|act| act.from_ms <= born).filter(|_| !is_later);
    Found { act, actor: Some(actor), by: Known::Cgroup }
}

fn by_birth<'a>(process: &ProcessNode, root: u32, acts: &'a [WritingAct]) -> Found<'a> {
    if process.pid == root {
        return Found::of(acts.iter().find(|act| act.is_start), Known::Lineage);
    }
    let born = process.started_ms.saturating_add(TICK_MS);
    match acts.iter().rev().find(|act| act.from_ms <= born) {
        // No actor had typed yet: the one that started the session started all of it.
        Some(act) if act.is_start => Found::of(Some(act), Known::Lineage),
        Some(act) => Found::of(Some(act), Known::Time),
        None => Found::of(None, Known::Unknown),
    }
}

#[cfg(test)]
mod tests;
