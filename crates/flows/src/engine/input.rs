//! What reaches the engine: questions of clients, what the host said of runs, and time.

use crate::job::Whose;
use crate::protocol::{Request, Trouble};
use holdfast_flow::Outcome;
use holdfast_types::Actor;
use serde_json::Value;
use std::sync::mpsc::Sender;

/// Where the answer to a request goes.
pub type Reply = Sender<(u64, Result<Value, Trouble>)>;

/// As what a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It has proven its key.
    Own,
    /// The host speaks for it: it may be far away.
    Vouched,
    /// A worker that the service started with the file of this digest.
    Hosted(String),
}

/// Something that arrived.
#[derive(Debug)]
pub enum Input {
    /// A client asks.
    Asked {
        /// Its connection.
        connection: u64,
        /// Who.
        by: Actor,
        /// As what.
        standing: Standing,
        /// The question's number.
        id: u64,
        /// What. Boxed: it is larger than everything else that arrives.
        request: Box<Request>,
        /// Where the answer goes.
        reply: Reply,
    },
    /// A client came.
    Came,
    /// A client is gone.
    Gone(u64),
    /// A run is over.
    Over {
        /// Which.
        whose: Whose,
        /// How.
        outcome: Outcome,
    },
    /// A run is on, in this session.
    Runs {
        /// Which.
        whose: Whose,
        /// Where.
        session: String,
    },
    /// A run cannot start for now, or can again.
    HeldUp {
        /// Which.
        whose: Whose,
        /// Why.
        why: Option<String>,
    },
    /// What was waited for in a session has come or never will; or nothing came so far.
    Watched {
        /// Which.
        whose: Whose,
        /// Whether it came, and what is known.
        came: Option<(bool, Value)>,
    },
    /// The host refuses.
    Denied {
        /// Which flow.
        flow: String,
        /// What.
        why: String,
    },
    /// A timer may be due.
    Tick,
}
