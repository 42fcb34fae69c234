//! Acts and their records: who did what, with what outcome, and what it changed.
//!
//! A [`Record`] says both what happened ([`Act`]) and what that changed ([`Change`]). The state of an authority is nothing
//! but the changes of its records, one behind the other.

use crate::authority::State;
use crate::deed::{DeedId, Ending};
use crate::grants::{Grant, GrantId};
use crate::journal::{Kept, Link};
use crate::refusal::Refusal;
use crate::turn::{Frozen, OperatorId, Turn, Waiting};
use holdfast_types::Proof;
use holdfast_types::{Actor, ActorId};
use holdfast_types::{Exit, Fence, HexError, Offset, SessionId, SessionName, Size, TimeMs};
use holdfast_types::{Right, Rights, Terms, TurnNeed, Who, terms_of};
use serde::{Deserialize, Serialize};

/// Who did it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The host by itself: a time passed, a segment began.
    Host,
    /// An actor.
    Actor(Actor),
    /// Somebody who reached the keeper past the host.
    Unknown,
}

impl By {
    /// The actor, where it was one.
    #[must_use]
    pub fn actor(&self) -> Option<&Actor> {
        match self {
            By::Host | By::Unknown => None,
            By::Actor(actor) => Some(actor),
        }
    }
}

/// Typed bytes; in JSON a text where they are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "KeysText", try_from = "KeysText")]
pub struct Keys(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum KeysText {
    Text(String),
    Raw { hex: String },
}

impl From<Keys> for KeysText {
    fn from(keys: Keys) -> KeysText {
        match String::from_utf8(keys.0) {
            Ok(text) => KeysText::Text(text),
            Err(error) => KeysText::Raw { hex: holdfast_types::hex_text(error.as_bytes()) },
        }
    }
}

impl TryFrom<KeysText> for Keys {
    type Error = HexError;

    fn try_from(text: KeysText) -> Result<Keys, HexError> {
        match text {
            KeysText::Text(text) => Ok(Keys(text.into_bytes())),
            KeysText::Raw { hex } => holdfast_types::hex_bytes(&hex).map(Keys).ok_or(HexError(2)),
        }
    }
}

/// A burst of typing, and where in the output it fell.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Burst {
    /// Output head before its first byte.
    pub from: Offset,
    /// Output head before its last byte.
    pub to: Offset,
    /// How many bytes.
    pub len: u64,
    /// The bytes; none: the screen did not show them, so they are not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Keys>,
}

/// What a revocation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revoke {
    /// One grant.
    Grant(GrantId),
    /// Everything an actor holds: its grants and its class default.
    Actor(ActorId),
}

/// What an actor can ask for: the content it signs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// The turn, if it is free.
    Take,
    /// The turn, when its holder lets go or is idle.
    Request,
    /// Withdraw a request for the turn.
    Withdraw,
    /// Give the turn to another actor.
    Give {
        /// To whom.
        to: Actor,
    },
    /// Release the turn.
    Release,
    /// The turn, now.
    Seize {
        /// And the tree stands still.
        freeze: bool,
        /// Why, for the record and for who loses it.
        reason: String,
    },
    /// A frozen tree goes on.
    Thaw,
    /// Grant rights in a session to an actor.
    Grant {
        /// To whom.
        to: Actor,
        /// What.
        rights: Rights,
        /// Until when; none: as long as the giver holds them.
        until: Option<TimeMs>,
    },
    /// Take rights back.
    Revoke(Revoke),
    /// Run a command.
    Run {
        /// Its key: the same key runs once.
        key: String,
        /// What is typed, as [`crate::recorded`].
        command: String,
    },
    /// Another size of the terminal.
    Resize {
        /// Columns and rows.
        size: Size,
    },
    /// A signal.
    Signal {
        /// Its number.
        number: u8,
        /// 0 the foreground group, 1 the child's group, 2 the tree.
        target: u8,
    },
    /// Another name.
    Rename {
        /// The new one.
        name: SessionName,
    },
    /// Let go of operators; the session goes on.
    Detach {
        /// Which.
        operators: Vec<OperatorId>,
    },
    /// End the tree.
    End {
        /// From HUP to KILL.
        grace_ms: u32,
    },
    /// Another life for a session that was lost.
    Recover {
        /// Its command is run again; otherwise a shell stands in for a command that is none.
        run: bool,
    },
    /// Any other operation of the table.
    Operation {
        /// Its name on the wire.
        name: String,
        /// The right its row names.
        right: Right,
        /// What it needs of the turn.
        turn: TurnNeed,
        /// What tells its parameters from others, for the record.
        detail: String,
    },
}

impl Ask {
    /// One of an operation that has no variant of its own, under the operation's terms.
    #[must_use]
    pub fn other(terms: &Terms, detail: String) -> Ask {
        let right = terms.rights.iter().next().unwrap_or(Right::Observe);
        Ask::Operation { name: terms.name.into(), right, turn: terms.turn, detail }
    }

    /// Who may ask for it, the rights of which it needs one, and what it needs of the turn.
    #[must_use]
    pub fn needs(&self) -> (Who, Rights, TurnNeed) {
        let terms = match self {
            Ask::Take => const { terms_of("turn.take") },
            Ask::Request => const { terms_of("turn.request") },
            Ask::Withdraw => const { terms_of("turn.withdraw") },
            Ask::Give { .. } => const { terms_of("turn.give") },
            Ask::Release => const { terms_of("turn.release") },
            Ask::Seize { .. } => const { terms_of("turn.seize") },
            Ask::Thaw => const { terms_of("turn.thaw") },
            Ask::Grant { .. } => const { terms_of("grant.add") },
            Ask::Revoke(_) => const { terms_of("grant.revoke") },
            Ask::Run { .. } => const { terms_of("run.start") },
            Ask::Resize { .. } => const { terms_of("session.resize") },
            Ask::Signal { .. } => const { terms_of("session.signal") },
            Ask::Rename { .. } => const { terms_of("session.rename") },
            Ask::Detach { .. } => const { terms_of("session.detach") },
            Ask::End { .. } => const { terms_of("session.end") },
            Ask::Recover { .. } => const { terms_of("session.recover") },
            // As it was signed and recorded, perhaps by another version.
            Ask::Operation { right, turn, .. } => return (Who::Holder, (*right).into(), *turn),
        };
        (terms.who, terms.rights, terms.turn)
    }

    /// Its word, for lists and metrics.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Ask::Take => "take",
            Ask::Request => "request",
            Ask::Withdraw => "withdraw",
            Ask::Give { .. } => "give",
            Ask::Release => "release",
            Ask::Seize { .. } => "seize",
            Ask::Thaw => "thaw",
            Ask::Grant { .. } => "grant",
            Ask::Revoke(_) => "revoke",
            Ask::Run { .. } => "run",
            Ask::Resize { .. } => "resize",
            Ask::Signal { .. } => "signal",
            Ask::Rename { .. } => "rename",
            Ask::Detach { .. } => "detach",
            Ask::End { .. } => "end",
            Ask::Recover { .. } => "recover",
            Ask::Operation { name, .. } => name,
        }
    }

    /// It reaches into the session's tree or terminal.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self.needs().2 {
            TurnNeed::Takes | TurnNeed::Respects => true,
            TurnNeed::Ignores | TurnNeed::Holds | TurnNeed::Asks => false,
        }
    }
}

/// What passed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lapse {
    /// The grace of operators that were cut off, or of a holder that is not attached.
    Grace,
    /// An idle holder's turn, to the first in the queue.
    Idle,
    /// The turn was free and somebody waited.
    Next,
    /// Grants whose time was over.
    Grants,
    /// Grants that were given through tokens which ended.
    Tokens,
    /// The holder's right to write.
    Rights,
    /// Operators' right to observe.
    Observers,
    /// Requests of actors that may no longer write or are gone.
    Requests,
    /// A program's turn, to a human for whom the session waited.
    Lent,
}

/// Of what a session is a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// Of which session.
    pub parent: SessionId,
    /// What that was called then.
    pub name: SessionName,
    /// The record in its journal by which the copy was asked for.
    pub record: Link,
    /// The checkpoint it was started from.
    pub checkpoint: String,
    /// Connections that were cut in the copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
}

/// From what the processes of a life came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Which checkpoint.
    pub checkpoint: String,
    /// Connections of theirs that were cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// The command that is run in the session for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// The machine from which the session was moved here for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_from: Option<String>,
}

/// What became of the lease that makes this host the session's home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leased {
    /// It was not renewed in time: the keeper stopped the tree by itself.
    Stopped {
        /// So long after the lease was over.
        late_ms: u32,
        /// Processes that could not be stopped.
        #[serde(default, skip_serializing_if = "is_zero")]
        left: u32,
        /// Where the output stood when the lease was renewed last: what came since, until the stop, came in the window.
        renewed_at: Offset,
    },
    /// It was renewed, and nobody had claimed it: the tree goes on.
    WentOn {
        /// The lease's fence.
        fence: u64,
    },
    /// Another host claimed the session: the life here is ended.
    Claimed {
        /// Which host; empty where the record of it is gone.
        by: String,
        /// Its fence.
        fence: u64,
        /// The fence of this life.
        ours: u64,
        /// Where the output stood when our lease was renewed last, and at the end: what lies between came in the window.
        renewed_at: Offset,
        /// As above.
        at: Offset,
    },
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// A segment of the journal begins.
    Header {
        /// Whose journal it is.
        session: SessionId,
        /// The end of the segment before.
        previous: Option<Link>,
        /// The state at its end, so that older segments can go.
        state: Option<Box<State>>,
        /// The oldest record that is kept: what is missing from there on was not dropped by the host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        oldest: Option<u64>,
        /// What is kept of older segments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Kept>,
    },
    /// The host found that records are missing or were altered. Whatever they said is not known: from here on only humans act,
    /// and whom they grant something anew.
    Damaged {
        /// What is missing, for people.
        what: String,
    },
    /// The session was started.
    Started,
    /// The session was started as a copy of another one, with what was granted and revoked there.
    Forked(Forked),
    /// A new life of the session began.
    Began,
    /// The processes of this life came from a checkpoint.
    Restored(Restored),
    /// The lease of its home changed.
    Leased(Leased),
    /// A host came back to a session that went on without it.
    Restarted,
    /// The host has a connection to the keeper and knows its log so far.
    Linked,
    /// An operator's client has a connection to the keeper, which reads its terminal's keys.
    Joined(OperatorId),
    /// The session's command ended.
    Ended(Exit),
    /// An actor attached.
    Attached(OperatorId),
    /// A cut-off operator is back, by the same stream.
    Resumed(OperatorId),
    /// An operator left.
    Left(OperatorId),
    /// An operator's connection broke.
    CutOff(OperatorId),
    /// An actor took the turn by typing. What it typed follows, from the keeper's log.
    Took,
    /// Bytes were typed.
    Typed(Burst),
    /// The host no longer knows an actor.
    Forgotten(ActorId),
    /// Something was asked for.
    Asked(Ask),
    /// What was asked for is over.
    Did {
        /// The number of its deed, which the record of the act gave it.
        deed: DeedId,
        /// What it was, in a word.
        what: String,
        /// How it ended.
        ending: Ending,
    },
    /// Something passed by itself.
    Lapsed(Lapse),
    /// The actor was refused so many times more within a minute: those were not recorded one by one.
    RefusedMore {
        /// How many.
        count: u64,
    },
}

impl Act {
    /// It reaches into the session's tree or terminal: output after it may be its doing.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Act::Typed(_) => true,
            Act::Asked(ask) => ask.writes(),
            Act::Header { .. } | Act::Started | Act::Began | Act::Restarted | Act::Linked | Act::Damaged { .. } => {
                false
            }
            Act::Forked(_) | Act::Restored(_) | Act::Leased(_) => false,
            Act::Ended(_) | Act::Forgotten(_) | Act::Lapsed(_) | Act::Took | Act::Did { .. } => false,
            Act::RefusedMore { .. } => false,
            Act::Attached(_) | Act::Resumed(_) | Act::Joined(_) | Act::Left(_) | Act::CutOff(_) => false,
        }
    }
}

/// What an act came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was allowed.
    Done,
    /// It was not.
    Refused(Refusal),
}

/// One change of the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The turn is now this; a new fence is the record's.
    Turn(Turn),
    /// A request waits.
    Waits(Waiting),
    /// An actor's request no longer waits.
    WaitsNoMore(ActorId),
    /// The tree stands still, or goes on.
    Freeze(Option<Frozen>),
    /// An operator is attached.
    Here(OperatorId, Actor),
    /// An operator was cut off.
    Away(OperatorId),
    /// An operator is no more.
    Gone(OperatorId),
    /// Rights were passed on.
    Granted(Grant),
    /// A grant is no more.
    Dropped(GrantId),
    /// An actor's class default counts no longer.
    Barred(ActorId),
    /// No class default counts any longer but that of humans.
    HumansOnly,
    /// The deed of this act is to be done.
    Opened(DeedId),
    /// A deed is over.
    Closed(DeedId),
    /// Another life.
    Incarnation(u32),
    /// This connection to the keeper is a host's: what it typed is in the journal already.
    Link(u32),
    /// This connection to the keeper is that of a client of this actor.
    Joined(u32, ActorId),
    /// Everything before this position of the keeper's log is in the journal. With typing: the keeper read it from a terminal
    /// by itself.
    Logged(u64),
    /// The same, with typing that came through a host.
    Forwarded(u64),
}

/// By what the gate allowed an act.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gate {
    /// The rule of the policy that permitted it, or that asked.
    pub rule: String,
    /// The approval under which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// Who else shaped what was run, and by what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shaped: Vec<holdfast_types::Shaper>,
}

/// One act with everything the journal keeps of it, but for its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When.
    pub time_ms: TimeMs,
    /// Output head at that moment.
    pub at: Offset,
    /// Who.
    pub by: By,
    /// What.
    pub act: Act,
    /// The fence it was done under; for a change of turn the new one.
    pub fence: Fence,
    /// In which life of the session.
    pub incarnation: u32,
    /// What it came to.
    pub outcome: Outcome,
    /// What it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The actor's signature over what it asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// What the gate allowed it by. What the gate did not allow is in the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
}
