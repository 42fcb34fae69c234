//! The turn: the exclusive right to write into a session now.
//!
//! At most one actor holds it, by at most one operator. Each change of it mints a larger fence, and the keeper drops writes
//! under any fence but the newest: a delayed keystroke of a past holder is harmless.

use holdfast_types::Actor;
use holdfast_types::{Fence, TimeMs};
use serde::{Deserialize, Serialize};

/// A holder that was cut off keeps the turn this long: enough for a train tunnel, short enough that a closed laptop does not
/// block the night.
pub const TURN_GRACE_MS: TimeMs = 30_000;
/// A holder that wrote nothing for this long is replaced when somebody asks: long enough to read a screen of output.
pub const TURN_IDLE_MS: TimeMs = 30_000;
/// Whoever typed without being attached keeps the turn this long after: a script's next line finds it, a person waits a
/// breath.
pub const TURN_PASSING_MS: TimeMs = 3_000;
/// A human to whom a program's turn was lent keeps it this long after each key while the session waits for more: time to look up a
/// password. A program must not type into the half of it that is there.
pub const TURN_LENT_MS: TimeMs = 30_000;
/// Once the session waits no more, a lent turn goes back this long after the last key: enough for the next key, and short because
/// a key that comes later is lent the turn again at once.
pub const TURN_LENT_REST_MS: TimeMs = 1_000;

/// An attached actor's number in its session; never used twice there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperatorId(pub u32);

/// How the holder came by the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It wrote while the turn was free.
    Wrote,
    /// It asked: took it free, or its request's time came.
    Asked,
    /// The holder before gave it.
    Given,
    /// It seized it.
    Seized,
    /// The session waited for a human, and a program's turn was lent to it.
    Lent,
}

/// A held turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hold {
    /// Who.
    pub by: Actor,
    /// By which attached operator it writes; none: by single requests.
    pub operator: Option<OperatorId>,
    /// Under which fence.
    pub fence: Fence,
    /// Since when.
    pub since: TimeMs,
    /// When it last wrote.
    pub active: TimeMs,
    /// When it is free again unless something happens: the holder is cut off, or was never attached.
    pub ends: Option<TimeMs>,
    /// How it was come by.
    pub how: How,
}

impl Hold {
    /// When a request would replace the holder for idleness; one that has an end anyway is left that long.
    #[must_use]
    pub fn idle_at(&self) -> Option<TimeMs> {
        self.ends.is_none().then(|| self.active.saturating_add(TURN_IDLE_MS))
    }

    /// When a lent turn may go back, if the session waits for its human no more.
    #[must_use]
    pub fn lent_rests_at(&self) -> TimeMs {
        self.active.saturating_add(TURN_LENT_REST_MS)
    }

    /// How long an act without an operator keeps the turn.
    #[must_use]
    pub fn keeps_ms(how: How) -> TimeMs {
        match how {
            How::Wrote => TURN_PASSING_MS,
            How::Asked | How::Given | How::Seized => TURN_GRACE_MS,
            How::Lent => TURN_LENT_MS,
        }
    }

    /// How long it lasts from a moment on, where its operator is attached; none: until something happens.
    pub(crate) fn attached_until(how: How, now: TimeMs) -> Option<TimeMs> {
        match how {
            How::Wrote | How::Asked | How::Given | How::Seized => None,
            How::Lent => Some(now.saturating_add(TURN_LENT_MS)),
        }
    }

    /// How long it lasts from a moment on at which its operator was cut off.
    pub(crate) fn grace(&self, now: TimeMs) -> Option<TimeMs> {
        Hold::attached_until(self.how, now).or(Some(now.saturating_add(TURN_GRACE_MS)))
    }
}

/// Who may write now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// Whoever writes next takes it.
    #[default]
    Free,
    /// One actor.
    Held(Hold),
}

impl Turn {
    /// The hold, where there is one.
    #[must_use]
    pub fn hold(&self) -> Option<&Hold> {
        match self {
            Turn::Free => None,
            Turn::Held(hold) => Some(hold),
        }
    }
}

/// A request for the turn that waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Waiting {
    /// Who.
    pub by: Actor,
    /// By which operator it will write.
    pub operator: Option<OperatorId>,
}

/// A frozen session: its tree stands still and takes no input.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frozen {
    /// Who froze it.
    pub by: Actor,
    /// When.
    pub since: TimeMs,
}
