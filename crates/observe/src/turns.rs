//! A cgroup for each turn, and for a run in others' turns: what the session's shell starts is born there, and no fork, `setsid` or empty
//! environment takes it out again.
//!
//! They lie in the session's own cgroup, the one it is frozen by. Only the shell is ever moved, and only where it is in a
//! cgroup of ours or its keeper's: its jobs stay with who started them, and one that somebody put into a container stays
//! there. A cgroup goes once nobody is left in it and the shell is elsewhere. An empty one named `a<n>` says since which
//! act there is one for each; it is there as long as the session is, whichever host made it.
//!
//! A move takes the kernel some milliseconds, since it waits until every processor has seen it: never on a thread that
//! others wait for. Knows neither acts nor actors.

use std::io;

use holdfast_graph::{Spot, Spots};

use crate::cgroup::{Cgroup, Place};
use crate::tree;

/// Where the session's shell was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// It is in the cgroup that was asked for.
    Here,
    /// It was moved there.
    Moved,
    /// It is in somebody else's cgroup and stays there, or it is no more.
    Elsewhere,
}

/// The cgroups of one session's turns. It holds nothing but the name: any other with the same label does as well.
#[derive(Clone, Debug)]
pub struct Turns {
    label: String,
}

impl Turns {
    /// For the session with this id.
    #[must_use]
    pub fn new(label: &str) -> Turns {
        Turns { label: label.to_owned() }
    }

    /// Whether the shell is where its keeper is, in no turn's cgroup.
    #[must_use]
    pub fn is_outside(&self, keeper: u32, shell: u32) -> bool {
        let cgroup = Cgroup::in_the_one_of(keeper, &self.label);
        cgroup.is_some_and(|cgroup| match cgroup.place(shell) {
            Place::Home => true,
            Place::Inside => cgroup.below_of(shell).is_none(),
            Place::Elsewhere | Place::Gone => false,
        })
    }

    /// Moves the shell, a child of the keeper, into a turn's or a run's cgroup, and removes those that are empty. With
    /// `since`, notes that everything since this act has a cgroup.
    ///
    /// # Errors
    ///
    /// There is no cgroup v2, or we may not use it. The shell is where it was.
    pub fn enter(&self, keeper: u32, shell: u32, spot: Spot, since: Option<u64>) -> io::Result<Entered> {
        let cgroup = Cgroup::in_the_one_of(keeper, &self.label).ok_or(io::ErrorKind::Unsupported)?;
        let name = spot.to_string();
        // The pid may be another process's by now.
        let is_shell = || tree::parent(shell) == Some(keeper);
        match cgroup.place(shell) {
            Place::Home | Place::Inside if is_shell() => {}
            Place::Home | Place::Inside | Place::Elsewhere | Place::Gone => return Ok(Entered::Elsewhere),
        }
        if cgroup.below_of(shell).as_ref() == Some(&name) {
            return Ok(Entered::Here);
        }
        cgroup.make()?;
        let made = cgroup.make_below(&name).and_then(|()| match since {
            Some(since) => cgroup.make_below(&format!("a{since}")),
            None => Ok(()),
        });
        let moved = made.and_then(|()| cgroup.admit_below(&name, shell));
        for other in cgroup.below().into_iter().filter(|other| Spot::parse(other).is_some()) {
            // The new one too, if no process could be moved into it.
            if other != name || moved.is_err() {
                let _ = cgroup.remove_below(&other);
            }
        }
        moved.map(|()| Entered::Moved)
    }

    /// Where to look up whose a process is, if turns of this session ever had cgroups.
    #[must_use]
    pub fn spots(&self, keeper: u32) -> Option<Spots> {
        let cgroup = Cgroup::in_the_one_of(keeper, &self.label)?;
        let below = cgroup.below();
        let since = below.iter().filter_map(|name| name.strip_prefix('a')?.parse().ok()).min();
        if below.is_empty() {
            return None;
        }
        let (path, home) = cgroup.paths();
        Some(Spots { path: path.to_owned(), home: home.to_owned(), since })
    }
}
