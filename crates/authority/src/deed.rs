//! Deeds: what an act that was allowed does, as a value.
//!
//! A deed is recorded with its act before it is begun, and marked once it is over. In between it is open, and part of the
//! state: it can outlive the actor that asked for it and the host that was about to do it.

use crate::act::Ask;
use crate::turn::OperatorId;
use holdfast_types::{Actor, SessionName, Size, TimeMs};
use serde::{Deserialize, Serialize};

/// The number of a deed in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeedId(pub u64);

/// Everything that is needed to do it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Give the terminal another size.
    Resize {
        /// Columns and rows.
        size: Size,
    },
    /// Send a signal.
    Signal {
        /// Its number.
        number: u8,
        /// 0 the foreground group, 1 the child's group, 2 the tree.
        target: u8,
    },
    /// Give the session another name.
    Rename {
        /// The new one.
        name: SessionName,
    },
    /// Have operators let go.
    Detach {
        /// Which.
        operators: Vec<OperatorId>,
    },
    /// End the tree.
    End {
        /// From HUP to KILL.
        grace_ms: u32,
    },
    /// Give a lost session another life.
    Recover {
        /// Run its command again.
        run: bool,
    },
    /// Begin a run: over once its own record is on disk, which comes before the first byte of it is typed.
    Run {
        /// Its key.
        key: String,
        /// Its command.
        command: String,
    },
    /// What any other operation of the table does.
    Operation {
        /// Its name on the wire.
        name: String,
        /// What tells its parameters from others.
        detail: String,
    },
}

/// What a new host does about a deed that its predecessor left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterKill {
    /// Does it: twice is the same as once.
    Again,
    /// Reports it as lost: twice is not the same, and whether it was done cannot be known.
    Lost,
}

impl Deed {
    /// What an actor asked for, where it is more than a change of the state.
    #[must_use]
    pub fn of(ask: &Ask) -> Option<Deed> {
        Some(match ask {
            Ask::Resize { size } => Deed::Resize { size: *size },
            Ask::Signal { number, target } => Deed::Signal { number: *number, target: *target },
            Ask::Rename { name } => Deed::Rename { name: name.clone() },
            Ask::Detach { operators } => Deed::Detach { operators: operators.clone() },
            Ask::End { grace_ms } => Deed::End { grace_ms: *grace_ms },
            Ask::Recover { run } => Deed::Recover { run: *run },
            Ask::Run { key, command } => Deed::Run { key: key.clone(), command: command.clone() },
            Ask::Operation { name, detail, .. } => Deed::Operation { name: name.clone(), detail: detail.clone() },
            // The state says whether the tree stands still, and every host sees to it.
            Ask::Seize { .. } | Ask::Thaw => return None,
            Ask::Take | Ask::Request | Ask::Withdraw | Ask::Give { .. } | Ask::Release => return None,
            Ask::Grant { .. } | Ask::Revoke(_) => return None,
        })
    }

    /// What a new host does about one that its predecessor left open.
    #[must_use]
    pub fn after_a_kill(&self) -> AfterKill {
        match self {
            Deed::Resize { .. } | Deed::Rename { .. } | Deed::Detach { .. } | Deed::End { .. } => AfterKill::Again,
            // A life that its host died over has begun, or its ring's lock is free for another one.
            Deed::Recover { .. } => AfterKill::Again,
            // A run that was not recorded was not typed either: what is lost can be asked for again under the same key.
            Deed::Signal { .. } | Deed::Run { .. } | Deed::Operation { .. } => AfterKill::Lost,
        }
    }

    /// Its word, for lists.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Deed::Resize { .. } => "resize",
            Deed::Signal { .. } => "signal",
            Deed::Rename { .. } => "rename",
            Deed::Detach { .. } => "detach",
            Deed::End { .. } => "end",
            Deed::Recover { .. } => "recover",
            Deed::Run { .. } => "run",
            Deed::Operation { name, .. } => name,
        }
    }
}

/// A deed that was recorded and is not over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Open {
    /// What is to be done.
    pub deed: Deed,
    /// For whom.
    pub by: Actor,
    /// Since when.
    pub since: TimeMs,
}

impl Open {
    /// What a new host does about it: the rule of its deed. But what was idle for a host that is dead may be in use by now, so an
    /// end by the reaper is not done again; the new host looks for itself.
    #[must_use]
    pub fn after_a_kill(&self) -> AfterKill {
        if self.by == Actor::reaper() { AfterKill::Lost } else { self.deed.after_a_kill() }
    }
}

/// How a deed ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It was done.
    Done,
    /// It could not be done.
    Failed {
        /// Why.
        why: String,
    },
    /// Its host was gone before it said: perhaps it was done.
    Lost,
}
