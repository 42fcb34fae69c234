//! Parameters and answers of what concerns actors: identity, the turn, grants, the journal.
//!
//! Everything discrete may carry a [`Proof`]: the actor's signature over the ask as the authority spells it, which goes into
//! the journal. A client that has the actor's key signs; one that speaks for an actor by other means cannot.

pub use holdfast_types::Notice;
use holdfast_types::{
    Actor, ActorId, Fence, Handle, Hash, Offset, Proof, Rights, SessionId, SessionName, Signature, TimeMs,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest reason or other free text in an act: a line or two, for people.
pub const TEXT_BYTES_MAX: usize = 1024;

/// Who speaks on this connection, proven.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdentifyParams {
    /// Key and handle.
    pub actor: Actor,
    /// Over the connection's challenge.
    pub signature: Signature,
    /// Inside a session: ask the human to confirm it, and answer when they have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

/// For whom the host takes the connection.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct IdentifyAnswer {
    /// Key and handle.
    pub actor: Actor,
    /// The host knows this key under this handle; otherwise it holds what unknown actors hold.
    pub known: bool,
}

/// Who has the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HolderView {
    /// Who.
    pub actor: Actor,
    /// Through which attached client; none: by single requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u32>,
    /// Since when.
    pub since_ms: TimeMs,
    /// When it last wrote.
    pub active_ms: TimeMs,
    /// When it will be free by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_ms: Option<TimeMs>,
    /// `wrote`, `asked`, `given` or `seized`.
    pub how: String,
}

/// A frozen session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrozenView {
    /// By whom.
    pub by: Actor,
    /// Since when.
    pub since_ms: TimeMs,
}

/// Who may write now, and who waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnView {
    /// Who has it; none: it is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<HolderView>,
    /// The newest fence.
    pub fence: Fence,
    /// Who waits, first in first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<Handle>,
    /// The tree stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<FrozenView>,
}

/// Something an actor does about the turn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnParams {
    /// Name or id.
    pub session: String,
    /// The attached client through which it will write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u32>,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TurnAnswer {
    /// The caller has the turn, under this fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// The caller waits behind so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u32>,
    /// How it stands now.
    pub turn: TurnView,
    /// What others changed since the caller wrote last, in a line; `session.handover` tells all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<String>,
}

/// Hands the turn over.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GiveParams {
    /// Name or id.
    pub session: String,
    /// The giver's attached client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u32>,
    /// To whom.
    pub to: Actor,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// Takes the turn whatever its holder does.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeizeParams {
    /// Name or id.
    pub session: String,
    /// The attached client through which it will write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u32>,
    /// The whole tree stands still.
    #[serde(default)]
    pub freeze: bool,
    /// The reason, for the journal and for the holder that loses the turn.
    pub reason: String,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// What a seizure did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SeizeAnswer {
    /// The fence under which the caller has the turn.
    pub fence: Fence,
    /// Microseconds from the request until nothing more of the old holder could reach the terminal.
    pub cut_us: u64,
    /// What froze, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub froze: Option<FrozeView>,
    /// How it stands now.
    pub turn: TurnView,
}

/// A tree that was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrozeView {
    /// `cgroup` or `signals`.
    pub how: String,
    /// So many processes.
    pub processes: u32,
    /// These refused to be stopped: they run with other rights than the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<u32>,
    /// Microseconds from the request.
    pub us: u64,
}

/// Passes rights on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantParams {
    /// Name or id.
    pub session: String,
    /// To whom.
    pub to: Actor,
    /// What.
    pub rights: Rights,
    /// Until when; none: as long as the giver holds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<TimeMs>,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// A live grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantView {
    /// Its number in the session.
    pub id: u32,
    /// To whom.
    pub to: Actor,
    /// By whom; none: made when the session started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// What.
    pub rights: Rights,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<TimeMs>,
    /// When it was made.
    pub at_ms: TimeMs,
}

/// What was granted, and what classes hold by themselves.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GrantsAnswer {
    /// Live grants, oldest first.
    pub grants: Vec<GrantView>,
    /// Actors that no longer have the rights of their class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub barred: Vec<ActorId>,
    /// What each class holds here without a grant.
    pub defaults: holdfast_types::Defaults,
    /// Who asked.
    pub you: Actor,
    /// What it may do now.
    pub yours: Rights,
}

/// Takes rights back: one grant, or everything an actor holds.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeParams {
    /// Name or id.
    pub session: String,
    /// One grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<u32>,
    /// Everything this actor holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorId>,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// What fell.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RevokeAnswer {
    /// The grants that are no more, what was passed on too.
    pub grants: Vec<u32>,
}

/// Sends a signal.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalParams {
    /// Name or id.
    pub session: String,
    /// Its number.
    pub number: u8,
    /// 0 the foreground group, 1 the command's group, 2 the whole tree.
    #[serde(default)]
    pub target: u8,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// An operator that lets go by itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaveParams {
    /// Name or id.
    pub session: String,
    /// The client's number.
    pub client: u32,
    /// Everything before this offset is on its terminal: the answer says how much of the history that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Offset>,
}

/// What a client that left may want to remember.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaveAnswer {
    /// How much of the history its terminal has, for the next `session.paint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryPlace>,
}

/// A place in a session's history. It means something to the host that named it, and nothing to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryPlace {
    /// Whose counting it is.
    pub count: u64,
    /// Lines before this place.
    pub lines: u64,
}

/// Which part of a journal.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JournalParams {
    /// Name or id.
    pub session: String,
    /// Records behind this number; 0: from the oldest kept.
    #[serde(default)]
    pub after: u64,
    /// Only so many of the newest records behind `after`, counted when it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// Wait this long for the first.
    #[serde(default)]
    pub wait_ms: u64,
}

/// The answer's bytes are whole lines of the journal, as they lie on disk; this says which.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct JournalAnswer {
    /// Number of the first record given; none given: the next to come.
    pub from: u64,
    /// Ask behind this one next.
    pub to: u64,
    /// There is more now.
    pub more: bool,
    /// The session has ended and everything was given.
    pub end: bool,
    /// Number of the last record, as the host wrote it; none while more waits for the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<u64>,
    /// Its hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_hash: Option<Hash>,
}

/// What an actor is doing in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doing {
    /// Which session.
    pub session: SessionId,
    /// Its name.
    pub name: SessionName,
    /// For people: `run: make`, `waits for port 80`.
    pub text: String,
    /// Since when.
    pub since_ms: TimeMs,
}

/// A connection of an actor's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connected {
    /// The program and its version, as it says itself; may be empty.
    pub program: String,
    /// Since when.
    pub since_ms: TimeMs,
}

/// An actor the host knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActorView {
    /// Key and handle.
    pub actor: Actor,
    /// Sessions it is attached to now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Its runs that are on and what its open requests wait for, in sessions the caller may observe; oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doing: Vec<Doing>,
    /// Its connections to the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connected: Vec<Connected>,
}

/// An actor by its handle.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActorParams {
    /// Class and name.
    pub handle: Handle,
}

/// The host's counters.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MetricsAnswer {
    /// In the Prometheus text format.
    pub text: String,
}

/// Event `writes`: whether an attached client is the one that writes now, and under which fence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WritesEvent {
    /// The client's number.
    pub client: u32,
    /// It writes: it may speak to the keeper directly.
    pub writes: bool,
    /// The newest fence.
    pub fence: Fence,
}

/// Event `notice`: news for an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeEvent {
    /// The client's number.
    pub client: u32,
    /// What.
    pub notice: Notice,
}
