//! What happens to an attached client, and what it wants done.

use holdfast_abi::protocol::FromKeeper;
use holdfast_authority::Ask;
use holdfast_screen::Screen;
use holdfast_types::{Exit, Hash, SessionId, Size};
use holdfast_wire::Fault;
use holdfast_wire::attention::{RingEvent, StateView};
use holdfast_wire::params::{AnswerEvent, Answers, Resume, SessionView};
use holdfast_wire::questions::{QuestionId, QuestionView};
use holdfast_wire::turns::{
    ActorView, HistoryPlace, Notice, NoticeEvent, SeizeAnswer, TurnAnswer, TurnView, WritesEvent,
};
use serde_json::Value;

/// Something happened.
#[derive(Debug)]
pub enum Input<'a> {
    /// Keys were read from the terminal.
    Typed(&'a [u8]),
    /// The window has this size now.
    Window(Size),
    /// The keeper sent a frame.
    Keeper(FromKeeper<'a>),
    /// The keeper's connection closed.
    KeeperGone {
        /// How the session ended; none: the keeper lives and let this client go.
        exit: Option<Exit>,
        /// Where the ring ends.
        head: u64,
    },
    /// The host answered a request.
    Answered {
        /// The request's.
        tag: Tag,
        /// The answer.
        answer: Result<Answer, Fault>,
    },
    /// The host told something to the client with this number.
    Event {
        /// Whom it told.
        client: u32,
        /// What.
        event: Event,
    },
    /// A request could not be sent, because the host is gone.
    NotSent(Tag),
    /// The connection to the host broke.
    HostGone,
    /// A host was found again.
    HostBack,
    /// Everything that had happened was told; also comes when something is due by [`crate::Attached::due_ms`].
    Settle,
    /// Output may be shown.
    Proceed,
    /// The bytes that [`Effect::Read`] asked for, perhaps fewer; none: there is no more.
    Output(&'a [u8]),
    /// The ring no longer has the bytes that [`Effect::Read`] asked for.
    Lapped,
}

/// Something to do.
#[derive(Debug)]
pub enum Effect {
    /// Send this frame to the keeper.
    Keeper(Vec<u8>),
    /// Send this request to the host; its answer comes back under the tag.
    Ask(Tag, Request),
    /// Write this to the terminal.
    Put(Vec<u8>),
    /// Copy output from the ring, and give it back as [`Input::Output`] or [`Input::Lapped`] before anything else.
    Read {
        /// From this offset on.
        at: u64,
        /// At most so many bytes.
        bytes_max: usize,
    },
    /// Look for a host, if nobody does yet.
    FindHost,
    /// The attachment is over.
    End(AttachEnd),
}

/// How an attachment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachEnd {
    /// The person detached, or somebody detached this client; the session goes on.
    Detached,
    /// The session's command ended.
    Ended(Exit),
    /// The terminal went away.
    HungUp,
    /// The person wants the shell back that started this client, which is stopped meanwhile.
    Suspended,
    /// The person wants to choose another session.
    Switches,
}

/// Which request an answer is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(pub u64);

/// What the host is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// To know this client again.
    Resume {
        /// The window's size.
        size: Size,
        /// Who it was.
        resume: Resume,
    },
    /// For the screen.
    Paint {
        /// The window's size.
        size: Size,
        /// With the lines above the screen.
        history: bool,
        /// The terminal has those before this place.
        behind: Option<HistoryPlace>,
        /// As a keyframe, whatever the size.
        draws: bool,
        /// This client answers queries from the painted offset on.
        answers: Option<u32>,
    },
    /// To note what changed here.
    Update {
        /// This client.
        client: u32,
        /// Its window's size.
        size: Option<Size>,
        /// Whether it answers queries.
        answers: Option<Answers>,
    },
    /// To type.
    Send {
        /// This client.
        client: u32,
        /// The stream of messages.
        stream: u64,
        /// The message's number there.
        seq: u64,
        /// The keys.
        bytes: Vec<u8>,
    },
    /// To do something about the turn, signed.
    Act {
        /// This client.
        client: u32,
        /// What.
        ask: Ask,
    },
    /// For the session as it is.
    View,
    /// For the actors it knows.
    Actors,
    /// For the open questions.
    Questions,
    /// For all sessions.
    Sessions,
    /// For what one of them does.
    State(SessionId),
    /// To take an answer to a question, signed.
    Reply {
        /// The question.
        question: QuestionId,
        /// The hash of what was read.
        seen: Hash,
        /// The answer.
        text: String,
        /// What is signed.
        ask: Ask,
    },
}

/// What the host answered.
#[derive(Debug)]
pub enum Answer {
    /// To [`Request::Resume`].
    Resumed {
        /// The number this client has from now on.
        client: u32,
        /// It writes.
        writes: bool,
        /// The newest fence.
        fence: u64,
        /// Whose turn it is.
        turn: Box<TurnView>,
    },
    /// To [`Request::Paint`].
    Painted(Box<Paint>),
    /// To [`Request::Update`]: the session's size.
    Updated(Size),
    /// To [`Request::Send`]: the fence the keys were typed under.
    Sent(u64),
    /// To [`Request::Act`], a seizure excepted.
    Turn(Box<TurnAnswer>),
    /// To a seizure.
    Seized(Box<SeizeAnswer>),
    /// To [`Request::View`].
    View(Box<SessionView>),
    /// To [`Request::Actors`].
    Actors(Vec<ActorView>),
    /// To [`Request::Questions`].
    Questions(Vec<QuestionView>),
    /// To [`Request::Sessions`].
    Sessions(Vec<SessionView>),
    /// To [`Request::State`].
    State(Box<StateView>),
    /// To [`Request::Reply`].
    Replied(Box<QuestionView>),
    /// The host did it; its answer could not be read.
    Unreadable,
}

/// A screen from the host.
#[derive(Debug)]
pub struct Paint {
    /// Output goes on from here.
    pub offset: u64,
    /// The session's size there.
    pub size: Size,
    /// What to show.
    pub picture: Picture,
}

/// How a screen is shown.
pub enum Picture {
    /// For a terminal of the session's size: bytes that paint it.
    Repaint(Vec<u8>),
    /// For any other one: the screen, to be drawn here.
    Keyframe {
        /// Lines above the screen, for the terminal.
        history: Vec<u8>,
        /// The screen.
        screen: Box<Screen>,
    },
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Picture::Repaint(_) => "Repaint",
            Picture::Keyframe { .. } => "Keyframe",
        })
    }
}

/// What a host tells a client unasked.
#[derive(Debug, Clone)]
pub enum Event {
    /// It is no longer attached.
    Detached,
    /// It shall answer queries from this offset on.
    Answer {
        /// The offset.
        from: u64,
    },
    /// Whether it writes, under which fence.
    Writes {
        /// It does.
        writes: bool,
        /// The newest fence.
        fence: u64,
    },
    /// Something for the person.
    Notice(Notice),
    /// Something for the person that rings the terminal.
    Ring(String),
}

impl Event {
    /// Reads an event and for which client it is; none: a newer host tells more than this client knows.
    #[must_use]
    pub fn read(method: &str, params: Value) -> Option<(u32, Event)> {
        let client = params.get("client")?.as_u64()?.try_into().ok()?;
        let event = match method {
            "detached" => Event::Detached,
            "answer" => Event::Answer { from: serde_json::from_value::<AnswerEvent>(params).ok()?.from },
            "notice" => Event::Notice(serde_json::from_value::<NoticeEvent>(params).ok()?.notice),
            "ring" => Event::Ring(serde_json::from_value::<RingEvent>(params).ok()?.text),
            "writes" => {
                let event: WritesEvent = serde_json::from_value(params).ok()?;
                Event::Writes { writes: event.writes, fence: event.fence.0 }
            }
            _ => return None,
        };
        Some((client, event))
    }
}
