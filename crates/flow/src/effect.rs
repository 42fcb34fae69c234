//! What the caller has to do once the events are written.

use crate::{Run, WaitFor};
use holdfast_types::TimeMs;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// When a timer is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Due {
    /// So much elapsed time after a moment. Setting the clock does not change it.
    After {
        /// When it was asked for.
        since_ms: TimeMs,
        /// How long.
        ms: u64,
    },
    /// At a moment of the wall clock.
    At(TimeMs),
}

/// What a timer is for. It is given back when the timer fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fires {
    /// The command has waited long enough.
    Over,
    /// The pause before an attempt is over.
    Attempt(u32),
    /// An attempt takes too long.
    Timeout(u32),
}

/// Something to do. Each is derived from recorded events, so that a restart derives it again.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start a run, or find it under its key.
    Start {
        /// Which command.
        n: u32,
        /// Which attempt.
        attempt: u32,
        /// The same key runs once.
        key: String,
        /// When the attempt was decided: a key that is older than the host keeps keys proves nothing.
        since_ms: TimeMs,
        /// What.
        run: Run,
    },
    /// Interrupt a run.
    Stop {
        /// Which command.
        n: u32,
        /// Its key.
        key: String,
    },
    /// Say when something has come in a session. Asked again after a restart: it is there then, or still to come.
    Watch {
        /// Which command.
        n: u32,
        /// The session's name or id.
        session: String,
        /// For what.
        until: WaitFor,
    },
    /// Start a flow, or find it under its id.
    Child {
        /// Which command.
        n: u32,
        /// The same id is the same flow.
        id: String,
        /// What kind of flow it is.
        flow: String,
        /// What it is given.
        input: Value,
    },
    /// Cancel a flow that a step started.
    StopChild {
        /// Which command.
        n: u32,
        /// The flow.
        id: String,
    },
    /// Say when it is time.
    Timer {
        /// For which command.
        n: u32,
        /// What for.
        fires: Fires,
        /// When.
        due: Due,
    },
    /// Offer the flow to its decider.
    Decide,
    /// Nothing more will happen.
    Over,
}
