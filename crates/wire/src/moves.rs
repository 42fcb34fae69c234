//! A portable session's way to another host. Who moves it is connected to both, and carries what one says to the other: see
//! `docs/decisions/0052-*.md`.
//!
//! | step at the host that has it (`session.move`) | step at the other (`session.arrive`) |
//! |---|---|
//! | `offer`: what it needs | `check`: what is missing |
//! | `hold`: it stands still, and a list of files is made | `begin`: room for them |
//! | `read`: bytes of one | `write` |
//! | | `whole`: all of it is there and as it was |
//! | `commit`: its home is the other host now, and here is the key | `finish`: with the key, it goes on |
//! | `done`: its image can go | |

use crate::params::SessionView;
use holdfast_types::{Proof, SessionId, SessionName, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a file in one step.
pub const PIECE_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// Longest name of the other host.
pub const HOST_BYTES_MAX: usize = 64;

/// Where a session was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MovedView {
    /// The other host, as who moved it calls it.
    pub host: String,
    /// When that became its home.
    pub at_ms: TimeMs,
    /// It is known to live there.
    #[serde(default)]
    pub arrived: bool,
}

/// A file or directory that the processes have open or mapped, and must find.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeededFile {
    /// As they see it.
    pub path: String,
    /// Its mode, with its type.
    pub mode: u32,
    /// Of a regular file.
    #[serde(default)]
    pub bytes: u64,
    /// Of a regular file: a checksum.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sum: String,
}

/// What a session needs to go on elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MoveOffer {
    /// Which session.
    pub session: SessionId,
    /// Its name.
    pub name: SessionName,
    /// Its life until now.
    pub incarnation: u32,
    /// The machine it comes from.
    pub machine: String,
    /// Holdfast there.
    pub version: String,
    /// CRIU there.
    pub criu: String,
    /// How much room it takes at most.
    pub bytes: u64,
    /// How many processes.
    pub processes: u32,
    /// Connections that will be cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// Mounts that it sees.
    pub mounts: Vec<String>,
    /// Where it sees its own directory.
    pub own: String,
    /// Where it sees Holdfast's state directory.
    pub state: String,
    /// Where it sees Holdfast's sockets.
    pub run: String,
    /// The user it runs as, where that is not root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Keys with which it was moved before: who has one may have it back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub came_with: Vec<String>,
    /// Its home is a lease, which is passed on with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leased: bool,
    /// The processor, as CRIU describes it: `cpuinfo.img` in hexadecimal.
    pub processor: String,
    /// Files that it needs.
    pub files: Vec<NeededFile>,
}

/// The lease of a host, to which a leased session can be passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MoveHome {
    /// What the host is called in records of leases.
    pub host: String,
    /// The lease's number, in hexadecimal.
    pub lease: String,
}

/// A file that is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SentFile {
    /// Its path below the session's directory.
    pub path: String,
    /// Permissions.
    pub mode: u32,
    /// How long it is.
    pub bytes: u64,
    /// Its checksum.
    pub sum: String,
}

/// A session that stands still, and what is sent of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MoveParcel {
    /// The move.
    pub id: String,
    /// What it needs, as of now.
    pub offer: MoveOffer,
    /// The checkpoint that is sent.
    pub checkpoint: String,
    /// SHA-256 of the key without which nobody begins its next life, in hexadecimal.
    pub lock: String,
    /// What is sent.
    pub files: Vec<SentFile>,
}

/// What the host that has a session is to do for its move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MoveStep {
    /// Say what it needs. Nothing is stopped.
    Offer,
    /// Stop it, and keep a copy. It goes on where the connection breaks before `commit`.
    Hold {
        /// The other host, as who moves it calls it.
        to: String,
        /// That host's lease, for a session that is leased.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        home: Option<MoveHome>,
    },
    /// Bytes of a file.
    Read {
        /// Its place in the list.
        file: u32,
        /// From where.
        from: u64,
    },
    /// Its home is the other host: it never lives here again.
    Commit,
    /// It lives there.
    Done,
    /// It goes on here.
    GiveUp,
}

/// A step of a move, at the host that has the session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveParams {
    /// Name or id.
    pub session: String,
    /// What to do.
    pub step: MoveStep,
    /// The actor's signature, for `hold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl MoveParams {
    /// As it is signed and recorded.
    #[must_use]
    pub fn detail(to: &str) -> String {
        format!("to {to}")
    }
}

/// What came of a step.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct MoveAnswer {
    /// `offer`: what it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Box<MoveOffer>>,
    /// `hold`: what is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parcel: Option<Box<MoveParcel>>,
    /// `commit`: the key for `finish`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it was moved, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Box<MovedView>>,
}

/// What the host to which a session is moved is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArriveStep {
    /// Say what would be in the way.
    Check {
        /// What it needs.
        offer: Box<MoveOffer>,
    },
    /// Make room for it.
    Begin {
        /// What will be sent.
        parcel: Box<MoveParcel>,
    },
    /// Bytes of a file, which come with the message.
    Write {
        /// The session.
        session: SessionId,
        /// The file's place in the list.
        file: u32,
        /// From where.
        from: u64,
    },
    /// Look whether all of it is there, and as it was.
    Whole {
        /// The session.
        session: SessionId,
    },
    /// It lives here now.
    Finish {
        /// The session.
        session: SessionId,
        /// The key.
        key: String,
    },
    /// Nothing comes of it.
    GiveUp {
        /// The session.
        session: SessionId,
    },
}

/// A step of a move, at the host to which a session is moved.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArriveParams {
    /// What to do.
    pub step: ArriveStep,
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArriveAnswer {
    /// `check`, `whole`: what is in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// `check`: the lease of this host, for a session that is leased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<MoveHome>,
    /// `finish`: the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<SessionView>>,
    /// `finish`: connections that were cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
}
