//! Freezing a session: none of its processes runs until it is thawed.
//!
//! With cgroup v2 the session gets a cgroup of its own, inside its keeper's, at its first freeze. It is frozen first
//! and entered then, parents before children; walks are repeated until one that was made while all stood still finds
//! nobody outside. Processes stay in it after the thaw, so the next freeze is one write; those in a turn's cgroup below it
//! ([`crate::Turns`]) stop and stay there. Only those that are where the
//! keeper is are moved: a process that somebody put into another cgroup (a container, a systemd scope) stays there,
//! with its limits, and is stopped by signals in addition. Without a cgroup all are stopped by signals, see
//! [`signals`].
//!
//! The keeper is never stopped: it holds the terminal. Nor are the host and the keepers that the caller names
//! ([`Spared`]), nor the caller, with all they started; those born into the session's cgroup stand still for the moment
//! until they are moved out of it, unless they left it themselves ([`leave_sessions`]).
//!
//! Does not know whether the terminal is written to meanwhile (the line discipline would echo and queue), nor who may
//! ask for this. The keeper's pid must be the keeper's: the caller makes sure that it lives.

use std::collections::HashSet;
use std::io;

use crate::cgroup::{Cgroup, Place, leave_sessions};
use crate::signals::{self, ROUNDS_MAX, Stopped};
use crate::tree::{self, Process, Spared, descendants};

/// By what a session was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Its cgroup is frozen.
    Cgroup,
    /// Each process got a SIGSTOP.
    Signals,
}

impl How {
    /// As it stands in answers and records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            How::Cgroup => "cgroup",
            How::Signals => "signals",
        }
    }
}

/// A session that stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// By what; with [`How::Cgroup`], processes in cgroups of others got signals.
    pub how: How,
    /// The session's live processes, the refused ones included.
    pub processes: usize,
    /// Those that still run: other users' programs that we may not signal, or who did not stop in time.
    pub refused: Vec<u32>,
}

/// Freezes and thaws one session. It holds nothing but the name: any other with the same label does as well.
#[derive(Clone, Debug)]
pub struct Freezer {
    label: String,
    may_use_cgroup: bool,
}

impl Freezer {
    /// For the session with this id, by the best means there are.
    #[must_use]
    pub fn new(label: &str) -> Freezer {
        Freezer { label: label.to_owned(), may_use_cgroup: true }
    }

    /// As if there were no cgroups: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn by_signals(label: &str) -> Freezer {
        Freezer { label: label.to_owned(), may_use_cgroup: false }
    }

    /// Stops every descendant of the keeper. Those already stopped stay so.
    ///
    /// # Errors
    ///
    /// The keeper is gone, or its processes multiply faster than they can be stopped. Nothing is frozen then.
    pub fn freeze(&self, keeper: u32, spared: &Spared) -> io::Result<Frozen> {
        // Without the right to make it, or without cgroup v2 in full, signals are left.
        if let Some(cgroup) = self.cgroup_of(keeper).filter(|cgroup| cgroup.make().is_ok()) {
            match freeze_by_cgroup(&cgroup, keeper, spared) {
                Ok(frozen) => return Ok(frozen),
                Err(_) => drop(self.thaw(keeper, spared)),
            }
        }
        let stopped = signals::stop(keeper, spared, |_| true).inspect_err(|_| drop(self.thaw(keeper, spared)))?;
        Ok(Frozen { how: How::Signals, processes: stopped.processes, refused: stopped.refused })
    }

    /// Resumes everything, however it was frozen. Harmless if nothing is frozen.
    ///
    /// # Errors
    ///
    /// The kernel refuses, or a process is still not running after a while. Asking again is safe.
    pub fn thaw(&self, keeper: u32, spared: &Spared) -> io::Result<()> {
        // It is with its keeper, which never moves; with us, perhaps, if the keeper is gone.
        let cgroup = self.cgroup_of(keeper).or_else(|| self.cgroup_of(std::process::id()));
        let Some(cgroup) = cgroup.filter(Cgroup::is_set_frozen) else {
            return without_keeper_nobody(signals::go_on(keeper, spared, HashSet::new(), |_| true));
        };
        // First those stopped by signals: their parents must not run yet.
        let is_elsewhere = |process: &Process| cgroup.place(process.pid) == Place::Elsewhere;
        let gone_on = signals::go_on(keeper, spared, cgroup.members().unwrap_or_default(), is_elsewhere);
        cgroup.set_frozen(false)?;
        if !cgroup.settles(false)? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the session's cgroup does not thaw"));
        }
        without_keeper_nobody(gone_on)
    }

    /// The directory of the cgroup that a freeze of this session uses, made where it was missing; none where there is none to be had.
    /// A process in the keeper's cgroup can stop the session there without us.
    #[must_use]
    pub fn directory(&self, keeper: u32) -> Option<std::path::PathBuf> {
        self.cgroup_of(keeper).filter(|cgroup| cgroup.make().is_ok()).map(|cgroup| cgroup.dir().to_owned())
    }

    /// Removes the session's cgroup once the session is over. One that still has processes stays; so does one in a
    /// keeper's cgroup that is not ours, which goes with that.
    pub fn forget(&self) {
        if let Some(cgroup) = self.cgroup_of(std::process::id()) {
            let _ = cgroup.remove();
        }
    }

    /// The session's cgroup if its keeper is where this process is.
    fn cgroup_of(&self, pid: u32) -> Option<Cgroup> {
        if self.may_use_cgroup { Cgroup::in_the_one_of(pid, &self.label) } else { None }
    }
}

fn freeze_by_cgroup(cgroup: &Cgroup, keeper: u32, spared: &Spared) -> io::Result<Frozen> {
    // A host that was started in this session, after a first freeze, would freeze itself.
    leave_sessions()?;
    cgroup.set_frozen(true)?;
    // A process whose first thread is dead never shows as moved.
    let mut moved = HashSet::new();
    for _ in 0..ROUNDS_MAX {
        let is_settled = cgroup.settles(true)?;
        let tree = descendants(keeper, spared)?;
        let members = cgroup.members()?;
        let mut is_stable = true;
        let mut elsewhere = false;
        for process in tree.iter().filter(|process| !process.is_over() && !members.contains(&process.pid)) {
            match cgroup.place(process.pid) {
                Place::Home if moved.insert((process.pid, process.start_time)) => {
                    cgroup.admit(process.pid)?;
                    is_stable = false;
                }
                Place::Elsewhere => elsewhere = true,
                Place::Home | Place::Inside | Place::Gone => {}
            }
        }
        if !is_stable {
            continue;
        }
        let listed: HashSet<u32> = tree.iter().map(|process| process.pid).collect();
        for &pid in members.difference(&listed).filter(|pid| tree::is_below_spared(**pid, keeper, spared)) {
            cgroup.release(pid)?;
        }
        let mut stopped =
            Stopped { processes: tree.iter().filter(|process| !process.is_over()).count(), refused: vec![] };
        if elsewhere {
            stopped = signals::stop(keeper, spared, |process| cgroup.place(process.pid) == Place::Elsewhere)?;
        }
        if !is_settled {
            let runs = tree.iter().filter(|process| members.contains(&process.pid) && process.state == 'R');
            stopped.refused.extend(runs.map(|process| process.pid));
        }
        return Ok(Frozen { how: How::Cgroup, processes: stopped.processes, refused: stopped.refused });
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the session's processes multiply faster than they can be moved"))
}

/// A keeper that is gone has no processes that could be asked to go on.
fn without_keeper_nobody(gone_on: io::Result<()>) -> io::Result<()> {
    gone_on.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
