//! Refusals and failures that cross the wire: a stable code, a sentence, and how to recover.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went wrong, for programs. Codes are never renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The message is not JSON-RPC, or its parameters do not fit the operation.
    BadRequest,
    /// There is no such operation.
    UnknownOperation,
    /// No protocol version both sides speak.
    Version,
    /// No session has that name or id.
    NotFound,
    /// An id prefix fits several sessions.
    Ambiguous,
    /// A live session has that name already.
    NameTaken,
    /// The session has ended.
    Ended,
    /// The session was lost; it can be recovered.
    Lost,
    /// The session's keeper speaks a version this host does not know.
    UnknownKeeper,
    /// The host could not start the command, enter its directory, or create the session's files.
    CannotStart,
    /// The offset asked for does not exist yet.
    Ahead,
    /// The terminal takes no more input now.
    Busy,
    /// A file of the session is damaged.
    Damaged,
    /// The connection has not proven who speaks, or the proof does not hold.
    Unidentified,
    /// The process runs inside a session or was started by an agent, and the human has not confirmed that it is theirs.
    Unconfirmed,
    /// A signature over an act does not fit it.
    BadProof,
    /// The host knows no such actor.
    NoSuchActor,
    /// Another actor has the turn.
    TurnHeld,
    /// The turn has changed since this was written.
    FenceStale,
    /// The actor may not do that.
    Denied,
    /// The session is frozen.
    Frozen,
    /// The session is not frozen.
    NotFrozen,
    /// Only the holder of the turn can do that.
    NotHolder,
    /// The client is not attached, or is another actor's.
    NotAttached,
    /// There is no such grant now.
    NoSuchGrant,
    /// A grant wider than its giver's envelope.
    TooWide,
    /// A grant that would outlast its giver's envelope.
    TooLong,
    /// A grant of nothing.
    EmptyGrant,
    /// A bound of the session is reached.
    TooMany,
    /// A secret would be shown: the terminal's echo is on.
    EchoOn,
    /// The session's shell is not at an idle prompt, or the host cannot know.
    ShellBusy,
    /// The key of a run was used for something else.
    KeyConflict,
    /// There is no such run.
    NoSuchRun,
    /// There is no such token.
    NoSuchToken,
    /// There is no such invite.
    NoSuchInvite,
    /// The invite was used, has expired, or was revoked.
    InviteOver,
    /// There is no such device.
    NoSuchDevice,
    /// There is no such relay, or none at all.
    NoSuchRelay,
    /// Too many requests in this time.
    TooFast,
    /// The request is too large.
    TooLarge,
    /// The host is stopping; its sessions keep running.
    Stopping,
    /// There is no such question.
    NoSuchQuestion,
    /// The question was answered, withdrawn, or is over.
    QuestionClosed,
    /// A human must approve this first: it is held under the approval in the details.
    ApprovalNeeded,
    /// There is no such approval.
    NoSuchApproval,
    /// The approval was answered, or is over.
    ApprovalClosed,
    /// There is no such file or directory, or nothing to undo.
    NoSuchFile,
    /// The path leaves the session's working tree, or is Holdfast's own.
    OutsideRoot,
    /// It is not a file that can be read or written so: a directory, a device, a pipe.
    NotAFile,
    /// The file is not as the caller expected it.
    FileChanged,
    /// The host cannot record the act, so it does not perform it.
    Unrecorded,
    /// Unexpected error in the host.
    Internal,
}

/// A refusal or failure as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, JsonSchema)]
#[error("{message}")]
pub struct Fault {
    /// For programs.
    pub code: Code,
    /// For people: lower case, no full stop.
    pub message: String,
    /// What to do about it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// What belongs to the code: who has the turn, which right is missing. Apart, since every refusal that is passed on is this large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<serde_json::Value>>,
}

impl Fault {
    /// A fault without advice.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), hint: String::new(), details: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = hint.into();
        self
    }
}
