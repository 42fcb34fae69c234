//! Parameters and answers of the operations.

use crate::attention::{Listener, StateView, Until};
use crate::forks::ForkedView;
use crate::leases::LeaseView;
use crate::lives::LostView;
use crate::moves::MovedView;
pub use crate::new::NewParams;
use crate::portable::RestoredView;
use crate::reaping::ReapView;
use crate::seam::Seam;
pub use crate::status::HostStatus;
use crate::turns::{HistoryPlace, TurnView};
use crate::wall::Wall;
use holdfast_types::{Actor, ClientToken, Exit, Fence, Offset, Proof, SessionId, SessionName, Size, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Neither asks nor answers anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Which sessions.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// Ended ones too.
    #[serde(default)]
    pub all: bool,
}

/// One session by name, id, or the beginning of its id.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionParams {
    /// Name or id.
    pub session: String,
}

/// Whether a session lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// Its command runs.
    Running,
    /// Its command has ended.
    Ended,
    /// Its keeper is gone and with it its processes; `session.recover` gives it another life.
    Lost,
    /// Its keeper speaks a version this host does not know; it is left alone.
    Unknown,
    /// Its files cannot be read; nothing about it is known.
    Damaged,
}

/// A session as clients see it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// Identity.
    pub id: SessionId,
    /// Human name.
    pub name: SessionName,
    /// Whether it lives.
    pub life: Life,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Command and arguments.
    pub command: Vec<String>,
    /// Where it started.
    pub cwd: String,
    /// When it started.
    pub created_ms: TimeMs,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<TimeMs>,
    /// The command's process.
    pub pid: u32,
    /// The keeper's process.
    pub keeper_pid: u32,
    /// The terminal's size.
    pub size: Size,
    /// Offset of the next output byte.
    pub head: Offset,
    /// Oldest offset `read` can still give.
    pub oldest: Offset,
    /// Data bytes of the ring.
    pub ring_bytes: u64,
    /// The title its program set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Who is attached.
    pub clients: Vec<ClientView>,
    /// Who may write.
    pub turn: TurnView,
    /// How many questions wait for an answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub asks: u32,
    /// The user it runs as, where that is not the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The wall around its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<Wall>,
    /// What of its processes is judged before it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Seam>,
    /// Checkpoints of its processes can be kept.
    #[serde(default, skip_serializing_if = "is_false")]
    pub portable: bool,
    /// How often the host makes a checkpoint of it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_every_ms: Option<u64>,
    /// What it is a copy of, where it is a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Box<ForkedView>>,
    /// What this life began from, where that was a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Box<RestoredView>>,
    /// Where it was moved: it lives there, and never here again unless it is moved back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Box<MovedView>>,
    /// Something a person should know (a damaged file, a gap in the screen).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Records of its journal are missing: what, for people. Only humans act in it, and whom they granted something since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
    /// When bytes were typed last that no client of the host sent: a program of the same user reached the keeper by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stranger_ms: Option<TimeMs>,
    /// Which life of the session this is: 1, and one more with each recovery.
    #[serde(default)]
    pub incarnation: u32,
    /// What was lost, where it is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Box<LostView>>,
    /// The shell that runs in place of its command, since a recovery that did not run the command again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<String>,
    /// It gets another life by itself where it is lost.
    #[serde(default, skip_serializing_if = "is_false")]
    pub recovers: bool,
    /// Its command is run again where it fails, at most this many times within ten minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_on_failure: Option<u32>,
    /// When its next life begins by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_life_ms: Option<TimeMs>,
    /// Its lease, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Box<LeaseView>>,
    /// Whether and when it is reaped, or by which policy it was; left out where none concerns it and nobody keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reap: Option<Box<ReapView>>,
}

/// An attached client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientView {
    /// Its number in this session.
    pub id: u32,
    /// Who; none until a client that outlived the last host has reported back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// Its process.
    pub pid: u32,
    /// Its terminal's name.
    pub tty: String,
    /// Its terminal's size.
    pub size: Size,
    /// It cannot write.
    pub read_only: bool,
    /// Since when.
    pub since_ms: TimeMs,
}

/// The variables that a session follows from client to client. The host takes over no others.
pub const FOLLOWED: &[&str] = &[
    "TERM",
    "COLORTERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "SSH_CONNECTION",
    "SSH_AUTH_SOCK",
];

/// A terminal that wants to be attached.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachParams {
    /// Name or id.
    pub session: String,
    /// The terminal's size.
    pub size: Size,
    /// It will not write.
    #[serde(default)]
    pub read_only: bool,
    /// The terminal's name.
    #[serde(default)]
    pub tty: String,
    /// The client's process.
    #[serde(default)]
    pub pid: u32,
    /// Variables of the client that a session follows (`TERM`, `SSH_AUTH_SOCK`, …), `K=V` each. The host takes over those it
    /// names itself, and only from a human who may type, at a terminal of this machine that writes.
    #[serde(default)]
    pub env: Vec<String>,
    /// What this client still has, after its host went away.
    #[serde(default)]
    pub resume: Option<Resume>,
    /// It types and reads through the host alone (`session.send`, `session.read`), shows the session in the session's own size,
    /// and leaves terminal queries to the host. Clients over a network do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub remote: bool,
    /// With `remote`: it is a person's terminal, and its window gives the session its size as a local one's does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sizes: bool,
    /// It draws the session from a keyframe, whatever its size, and leaves terminal queries to the host.
    #[serde(default, skip_serializing_if = "is_false")]
    pub draws: bool,
}

/// What a client that goes on without its host still has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// Its number in the session.
    pub client: u32,
    /// The token it got when it attached: it alone has it.
    pub token: ClientToken,
    /// It answers the session's queries.
    pub answers: bool,
}

/// How the bytes of an answer describe the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Escape sequences for a cleared terminal of the session's size.
    Repaint,
    /// A keyframe: for a client that draws the session's screen on a terminal of another size.
    Keyframe,
}

/// What was painted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Painted {
    /// Output goes on from here.
    pub offset: Offset,
    /// The session's size there.
    pub size: Size,
    /// What the bytes are.
    pub form: Form,
    /// With a keyframe: how many of the bytes, at their front, are history lines for the terminal instead.
    #[serde(default)]
    pub history_bytes: usize,
}

/// Everything an attached terminal needs to go on by itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttachAnswer {
    /// The session.
    pub session: SessionView,
    /// The client's number there.
    pub client: u32,
    /// What the bytes are.
    pub painted: Painted,
    /// The ring file.
    pub ring: String,
    /// The keeper's socket.
    pub keeper: String,
    /// The client's token, hexadecimal: it opens the keeper's door once, and a later host knows the client by it.
    pub token: String,
    /// The newest fence.
    pub fence: Fence,
    /// This client has the turn and writes under that fence, directly to the keeper.
    pub writes: bool,
    /// This terminal answers the session's queries; the others filter them out.
    pub answers: bool,
    /// There are lines above the screen: ask for them by `session.paint`.
    pub has_history: bool,
}

/// Asks for the screen again.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaintParams {
    /// Name or id.
    pub session: String,
    /// The terminal's size; decides the form.
    pub size: Size,
    /// History too.
    #[serde(default)]
    pub history: bool,
    /// The client with this number answers the session's queries from the painted offset, if no client does yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<u32>,
    /// Paint for a terminal of the session's size, whatever `size` is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub remote: bool,
    /// Give a keyframe, whatever `size` is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub draws: bool,
    /// With `history`: the terminal has the lines before this place. Where the host does not know it, all lines come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<HistoryPlace>,
}

/// What changed at an attached terminal.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateParams {
    /// Name or id.
    pub session: String,
    /// The client's number. It attached by this connection.
    pub client: u32,
    /// Its terminal's new size.
    #[serde(default)]
    pub size: Option<Size>,
    /// From this offset on it answers queries (true) or no longer does (false).
    #[serde(default)]
    pub answers: Option<Answers>,
}

/// What a terminal should know after its update.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UpdateAnswer {
    /// The session's size now.
    pub size: Size,
}

/// From where on a terminal answers queries, or no longer does. What lies between the two offsets it never saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// It does, or goes on to after a paint.
    pub on: bool,
    /// Everything before this offset it has seen.
    pub left: Offset,
    /// It answers from this offset on.
    pub from: Offset,
}

/// Which view of the screen.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScreenParams {
    /// Name or id.
    pub session: String,
    /// With colours and attributes as escape sequences.
    #[serde(default)]
    pub ansi: bool,
    /// This many lines of history before it.
    #[serde(default)]
    pub history: u32,
}

/// Get the screen as text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ScreenAnswer {
    /// Everything before this offset is in it.
    pub offset: Offset,
    /// Columns and rows.
    pub size: Size,
    /// The rows, top first.
    pub rows: Vec<String>,
    /// History lines asked for, oldest first.
    pub history: Vec<String>,
    /// Column and row of the cursor, from 0.
    pub cursor: (u16, u16),
    /// A full-screen program is on.
    pub alternate: bool,
    /// The program wants cursor keys in their application form.
    #[serde(default)]
    pub application_cursor: bool,
    /// The title.
    pub title: String,
    /// Output the screen never saw: it was overwritten before a host could look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
}

/// Output that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// First offset lost.
    pub from: Offset,
    /// First offset there is again.
    pub to: Offset,
}

/// Which output.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadParams {
    /// Name or id.
    pub session: String,
    /// First offset wanted; none: the oldest there is.
    #[serde(default)]
    pub from: Option<Offset>,
    /// At most this many bytes.
    #[serde(default)]
    pub max: Option<u32>,
    /// Wait this long for the first byte.
    #[serde(default)]
    pub wait_ms: u64,
}

/// The answer's bytes are output; this says where they stand.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReadAnswer {
    /// What was asked for and is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// Offset of the first byte given.
    pub from: Offset,
    /// Offset behind the last byte given: ask from here next.
    pub to: Offset,
    /// Offset of the next byte to come.
    pub head: Offset,
    /// The session has ended and everything was given.
    pub end: bool,
    /// The session's size when they were written: bytes behind a change of it are given by the next answer. Where none are given,
    /// its size now; a change ends a wait.
    #[serde(default)]
    pub size: Size,
}

/// Where the message's bytes are typed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendParams {
    /// Name or id.
    pub session: String,
    /// A random number of the sender's.
    pub stream: u64,
    /// Grows by one with each message of the stream, from 1; a repeated message is not typed twice. A message of more than
    /// 4096 bytes takes one number for each 4096 begun.
    pub seq: u64,
    /// The attached client that types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u32>,
    /// The fence the writer believes in: under another one nothing is typed. None: whatever it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// They are a secret: typed only while the terminal does not show what is typed, and recorded as a length.
    #[serde(default, skip_serializing_if = "is_false")]
    pub secret: bool,
    /// Type the secret although the terminal may show it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,
    /// Refuse it where a message before it in the stream was refused on this connection: for who has several under way.
    #[serde(default, skip_serializing_if = "is_false")]
    pub in_order: bool,
}

/// What became of the bytes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SendAnswer {
    /// Output offset at that moment.
    pub at: Offset,
    /// They have reached the terminal; otherwise they are queued, because the program does not read now.
    pub written: bool,
    /// The fence they were typed under; for a repeat the newest.
    pub fence: Fence,
}

/// How long to wait.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitParams {
    /// Name or id.
    pub session: String,
    /// Give up after this long.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// What to wait for; the command's end by default.
    #[serde(default)]
    pub until: Until,
}

/// What waiting gave.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WaitAnswer {
    /// How the command ended; none: it still runs.
    pub exit: Option<Exit>,
    /// The state that was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateView>,
    /// Who takes connections at the port that was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<Listener>,
}

/// Another size.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResizeParams {
    /// Name or id.
    pub session: String,
    /// Columns and rows.
    pub size: Size,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// Another name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameParams {
    /// Name or id.
    pub session: String,
    /// The new name.
    pub name: SessionName,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// Whom to detach.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetachParams {
    /// Name or id.
    pub session: String,
    /// Clients by their numbers.
    pub clients: Vec<u32>,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// Who was detached.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DetachAnswer {
    /// Their numbers.
    pub clients: Vec<u32>,
}

/// How to end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndParams {
    /// Name or id.
    pub session: String,
    /// Time from SIGHUP to SIGKILL, 5 seconds by default; a frozen session is killed at once.
    #[serde(default = "end_grace_ms")]
    pub grace_ms: u32,
    /// The actor's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// Event `detached`: the host asks a client to leave its terminal.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DetachedEvent {
    /// The client's number.
    pub client: u32,
}

/// Event `answer`: this terminal shall answer the session's queries from an offset on. What it has already drawn beyond it,
/// it leaves to the host: it reports where it really begins (`session.update`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AnswerEvent {
    /// The client's number.
    pub client: u32,
    /// Queries before this offset are the host's.
    pub from: Offset,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Enough to save a file, short enough to wait for.
fn end_grace_ms() -> u32 {
    5_000
}
