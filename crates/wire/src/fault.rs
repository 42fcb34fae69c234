//! Refusals and failures that cross the wire: a stable code, a sentence, and how to recover.

use serde::{Deserialize, Serialize};

/// What went wrong, for programs. Codes are never renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The message is not JSON-RPC, or its parameters do not fit the operation.
    BadRequest,
    /// There is no such operation.
    UnknownOperation,
    /// No protocol version both sides speak.
    Version,
    /// No session answers to that name or id.
    NotFound,
    /// An id prefix fits several sessions.
    Ambiguous,
    /// A live session has that name already.
    NameTaken,
    /// The session has ended.
    Ended,
    /// The session's keeper speaks a version this host does not know.
    UnknownKeeper,
    /// The command, its directory or the session's files could not be had.
    CannotStart,
    /// The offset asked for does not exist yet.
    Ahead,
    /// The terminal takes no more input now.
    Busy,
    /// A file of the session is damaged.
    Damaged,
    /// The host ran into something it did not expect.
    Internal,
}

/// A refusal or failure as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// For programs.
    pub code: Code,
    /// For people: lower case, no full stop.
    pub message: String,
    /// What to do about it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

impl Fault {
    /// A fault without advice.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), hint: String::new() }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = hint.into();
        self
    }
}
