//! What happened, what to do about it, and what to answer.

use crate::act::{Ask, Burst, Forked, Gate, Leased, Record, Restored};
use crate::authority::State;
use crate::deed::{Deed, DeedId, Ending};
use crate::grants::GrantId;
use crate::refusal::Refusal;
use crate::turn::OperatorId;
use holdfast_types::Proof;
use holdfast_types::{Actor, ActorId, Notice};
use holdfast_types::{Exit, Fence, Offset, TimeMs};

/// By which way typed bytes came to the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From a host, for whomever it let type.
    Host,
    /// From a connection that is no host's: the keeper read a terminal by itself.
    Client(u32),
}

/// When, by the host's clock and by the session's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Now.
    pub time_ms: TimeMs,
    /// The output head.
    pub at: Offset,
}

/// Who speaks, and through which attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who, proven.
    pub actor: Actor,
    /// The operator it is attached as; none: a single request.
    pub operator: Option<OperatorId>,
    /// The token that opened its path; none: its own key did.
    pub token: Option<Token>,
}

/// A token that somebody shows in place of a key. What is given through it ends with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its id, which is no secret.
    pub id: String,
    /// When it ends.
    pub until: TimeMs,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The session was started by this actor.
    Started {
        /// Who gets the first grant.
        by: Actor,
    },
    /// The session was started as a copy of another one.
    Forked {
        /// Who asked for it: it holds here what it holds there.
        by: Actor,
        /// Of what.
        of: Forked,
        /// Of which what was granted and revoked counts here too.
        parent: Box<State>,
    },
    /// The processes of this life came from a checkpoint.
    Restored(Restored),
    /// The lease of its home changed.
    Leased(Leased),
    /// A new life of the session began; nobody is attached to it yet.
    Began {
        /// Its number.
        incarnation: u32,
    },
    /// This host came back to a session that went on without it.
    Restarted {
        /// The newest fence the keeper has.
        keeper_fence: Fence,
        /// The host's number at the keeper.
        connection: u32,
    },
    /// Records of this session are missing, or were altered.
    Damaged {
        /// What, for people.
        what: String,
    },
    /// The host has a connection to the keeper, and everything of its log up to here is in the journal: there was nothing in
    /// it but the host's own.
    Linked {
        /// The host's number there.
        connection: u32,
        /// The position in the log.
        log: u64,
    },
    /// A client of an operator that may write has a connection to the keeper.
    Joined {
        /// Whose client.
        operator: OperatorId,
        /// Its number there.
        connection: u32,
    },
    /// An actor wants to attach.
    Attached {
        /// Who.
        by: Actor,
        /// Its number, from [`Authority::next_operator`](crate::Authority::next_operator).
        operator: OperatorId,
    },
    /// A cut-off operator is back and its connection to the keeper never broke: what it wrote meanwhile counts.
    Resumed {
        /// Who.
        by: Actor,
        /// As whom it was attached.
        operator: OperatorId,
    },
    /// An operator left.
    Left {
        /// Which.
        operator: OperatorId,
    },
    /// An operator's connection broke.
    CutOff {
        /// Which.
        operator: OperatorId,
    },
    /// An actor is about to type through the host. The bytes themselves come back by [`Input::Wrote`], once the keeper has
    /// them.
    Types {
        /// Who.
        by: Caller,
        /// The fence its writer knew; none: it follows no fences.
        fence: Option<Fence>,
    },
    /// A human is about to act, and the session waits for one: a program asks for a password, or a question is open. A
    /// program's turn is lent to the human.
    Awaited {
        /// The human.
        by: Caller,
    },
    /// The session no longer waits for the human to whom a program's turn was lent.
    Unawaited,
    /// The keeper wrote bytes to the terminal, and recorded them first.
    Wrote {
        /// Under which fence.
        fence: Fence,
        /// The bytes.
        burst: Burst,
        /// The keeper's log up to and with them.
        log: u64,
        /// By which way they came.
        from: Source,
    },
    /// An actor asks for something.
    Asked {
        /// Who.
        by: Caller,
        /// What.
        ask: Ask,
        /// Its signature, which the host has verified.
        proof: Option<Proof>,
    },
    /// The same, of something that the gate has judged. The actor's envelope counts first.
    Judged {
        /// Who.
        by: Caller,
        /// What.
        ask: Ask,
        /// Its signature, which the host has verified.
        proof: Option<Proof>,
        /// What the gate said.
        said: Said,
    },
    /// A deed is over.
    Did {
        /// Which.
        deed: DeedId,
        /// How it ended.
        ending: Ending,
    },
    /// The session's command ended, or its keeper is gone.
    Ended {
        /// How.
        exit: Exit,
    },
    /// The host no longer knows this key: what it holds falls, and what stood on it.
    Forgotten {
        /// Which.
        actor: ActorId,
    },
    /// Tokens are good no more: what was given through them falls, and what stood on that.
    TokensEnded {
        /// Which.
        tokens: Vec<String>,
    },
    /// Time passed.
    Tick,
}

/// What the gate says of an act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It may happen.
    Allow(Gate),
    /// It may not.
    Deny {
        /// The rule.
        rule: String,
        /// Its reason.
        why: String,
    },
    /// A human is asked, and the act waits.
    Hold {
        /// The rule.
        rule: String,
        /// What it asks.
        why: String,
        /// The approval's id.
        approval: String,
    },
}

/// Whom to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Every operator.
    All,
    /// One.
    One(OperatorId),
}

/// What to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write this to the journal before anything that follows.
    Record(Box<Record>),
    /// Tell the keeper: this is the newest fence, and this operator writes under it; none: nobody but the host.
    Fence {
        /// The fence.
        fence: Fence,
        /// The writer.
        writer: Option<OperatorId>,
    },
    /// Drop queued input and what the terminal has unread.
    FlushInput {
        /// Under this fence.
        fence: Fence,
    },
    /// Stop the whole tree. The state says so, and each host sees to it.
    Freeze,
    /// Let the tree go on.
    Thaw,
    /// Do what was asked, then say by [`Input::Did`] how it ended.
    Perform {
        /// Its number.
        id: DeedId,
        /// What.
        deed: Deed,
    },
    /// Cut this operator off: it may no longer observe.
    Expel {
        /// Which.
        operator: OperatorId,
    },
    /// Say so.
    Tell {
        /// To whom.
        to: Audience,
        /// What.
        notice: Notice,
    },
}

/// What came of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is so.
    Done,
    /// The caller has the turn.
    Turn {
        /// Under this fence.
        fence: Fence,
    },
    /// The caller waits for the turn.
    Waiting {
        /// How many are before it.
        before: u32,
    },
    /// The grant that was made.
    Granted(GrantId),
    /// The grants that fell.
    Revoked(Vec<GrantId>),
}

/// An answer, and what to do before giving it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What came of it.
    pub reply: Result<Reply, Refusal>,
    /// What to do, in order.
    pub effects: Vec<Effect>,
}
