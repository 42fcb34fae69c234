//! What a session is doing, what happens in sessions, and waiting for either.
//!
//! A state is what the operating system shows at one moment; nothing is remembered but since when it was seen so. Events are
//! numbered by the host, and their numbers grow across hosts: a reader asks for what came behind the last it has.

use crate::gate::{ApprovalId, ApprovalState};
use crate::questions::{QuestionId, QuestionState};
use crate::reaping::ReapWhy;
use crate::runs::{RunId, RunState};
use holdfast_graph::{Known, SocketId, SocketKind};
pub use holdfast_types::doing::{Blind, Kind};
use holdfast_types::{Exit, Handle, Offset, SessionId, SessionName, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Characters of a prompt that are reported: a wide terminal's row, of which the end says most.
pub const PROMPT_CHARS_MAX: usize = 256;

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Now {
    /// Its shell, or whatever it was started with, waits for a command.
    IdlePrompt,
    /// A process in the foreground works.
    Running,
    /// A program waits for input.
    Waiting {
        /// For what.
        kind: Kind,
        /// What the screen shows before the cursor.
        prompt: String,
    },
    /// A program has the whole screen, and waits for keys.
    FullScreen,
    /// Every process waits for something other than the terminal: time, a child, a network.
    BlockedElsewhere,
    /// The job in the foreground is stopped.
    Stopped,
    /// The whole tree was stopped by an actor.
    Frozen {
        /// By whom.
        by: Handle,
    },
    /// Its command has ended.
    Ended {
        /// How.
        exit: Exit,
    },
    /// No guess.
    Unknown {
        /// Why.
        why: Blind,
    },
}

impl Now {
    /// Its word, as in JSON.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Now::IdlePrompt => "idle_prompt",
            Now::Running => "running",
            Now::Waiting { .. } => "waiting",
            Now::FullScreen => "full_screen",
            Now::BlockedElsewhere => "blocked_elsewhere",
            Now::Stopped => "stopped",
            Now::Frozen { .. } => "frozen",
            Now::Ended { .. } => "ended",
            Now::Unknown { .. } => "unknown",
        }
    }
}

/// What a session is doing, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateView {
    /// Which session.
    pub session: SessionId,
    /// Its name.
    pub name: SessionName,
    /// What it is doing.
    #[serde(flatten)]
    pub now: Now,
    /// The process that says so, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Since when the host has seen it so. It may have been so for longer if no client looked before.
    pub since_ms: TimeMs,
    /// Where its output stood.
    pub at: Offset,
}

/// Which events.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchParams {
    /// Name or id; none: every session the caller may observe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Those behind this number; none: those to come, and first of all what each session is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Wait this long for the first.
    #[serde(default)]
    pub wait_ms: u64,
}

/// Events.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WatchAnswer {
    /// Oldest first.
    pub events: Vec<Event>,
    /// Ask behind this one next.
    pub to: u64,
    /// Number of dropped events, of all sessions: the reader was too slow, or the host restarted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its number.
    pub seq: u64,
    /// When.
    pub at_ms: TimeMs,
    /// Where.
    pub session: SessionId,
    /// Its name then.
    pub name: SessionName,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// A session is new.
    Started {
        /// Who started it.
        by: Handle,
    },
    /// It does something else than before.
    State {
        /// What.
        #[serde(flatten)]
        now: Now,
        /// The process that says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// Since when.
        since_ms: TimeMs,
    },
    /// Its command has ended.
    Exit {
        /// How.
        exit: Exit,
    },
    /// The turn has another holder, or none.
    Turn {
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<Handle>,
    },
    /// An actor requests the turn.
    TurnRequested {
        /// Who.
        by: Handle,
    },
    /// An actor asks the humans a question.
    Asked {
        /// The question.
        question: QuestionId,
        /// Who.
        by: Handle,
        /// What; of a long question the beginning.
        text: String,
        /// What can be answered; none: any text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
    },
    /// A human has answered.
    Answered {
        /// The question.
        question: QuestionId,
        /// Who.
        by: Handle,
        /// What; of a long answer the beginning.
        text: String,
        /// Which option that is, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<u32>,
    },
    /// A question is over without an answer.
    QuestionClosed {
        /// The question.
        question: QuestionId,
        /// `withdrawn` or `expired`.
        state: QuestionState,
        /// Who withdrew it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Handle>,
    },
    /// It was lost, or its command failed, and it has another life.
    Recovered {
        /// Which.
        incarnation: u32,
        /// The checkpoint that its processes came back from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint: Option<String>,
        /// Connections of theirs that were cut.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cut: Vec<String>,
    },
    /// An act is held until a human approves it.
    Held {
        /// The approval.
        approval: ApprovalId,
        /// Who wants it.
        by: Handle,
        /// What; of a long command the beginning.
        command: String,
        /// The rule that asks.
        rule: String,
        /// What that rule asks.
        why: String,
    },
    /// A held act was answered, or is over.
    HeldClosed {
        /// The approval.
        approval: ApprovalId,
        /// `approved`, `done`, `failed`, `denied` or `expired`.
        state: ApprovalState,
        /// Who answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Handle>,
        /// What they said to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It is about to be reaped: nobody uses it.
    ReapSoon {
        /// When, if nobody uses or keeps it until then.
        ends_ms: TimeMs,
        /// Why.
        why: ReapWhy,
    },
    /// It was about to be reaped, and is not: it was used or kept, or there is no reason any more.
    ReapAverted,
    /// It is reaped: the host ends it.
    Reaped {
        /// Why.
        why: ReapWhy,
    },
    /// It has another name, which is the one above.
    Renamed {
        /// Who gave it.
        by: Handle,
        /// The name before.
        from: SessionName,
    },
    /// A run begins.
    RunStarted {
        /// The run.
        run: RunId,
        /// Whose.
        by: Handle,
        /// What; of a long command the beginning.
        command: String,
        /// The act's number in the session's journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        act: Option<u64>,
    },
    /// A run is over, in whatever way.
    RunEnded {
        /// The run.
        run: RunId,
        /// Whose.
        by: Handle,
        /// What; of a long command the beginning.
        command: String,
        /// `ended`, `cancelled` or `lost`.
        state: RunState,
        /// Its status, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The act's number in the session's journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        act: Option<u64>,
    },
    /// Something takes connections, or datagrams, at a port.
    Listen {
        /// Where, and who.
        #[serde(flatten)]
        port: OpenPort,
    },
    /// Nothing does there any more.
    NotListening {
        /// As it was given.
        #[serde(flatten)]
        port: OpenPort,
    },
    /// A client is attached.
    Attached {
        /// Whose.
        by: Handle,
        /// Its number.
        client: u32,
    },
    /// A client is attached no more.
    Detached {
        /// Whose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Handle>,
        /// Its number.
        client: u32,
    },
}

/// A port that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenPort {
    /// The socket.
    pub socket: SocketId,
    /// `stream` is TCP, `dgram` is UDP.
    pub kind: SocketKind,
    /// Address and port.
    pub address: SocketAddr,
    /// The port alone.
    pub port: u16,
    /// The oldest process that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// That one's words.
    pub argv: Vec<String>,
    /// Whose act started it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Handle>,
    /// The act's number in the session's journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    /// How that is known.
    pub known: Known,
}

/// What to wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// The command's end.
    #[default]
    Exit,
    /// The shell waits for a command.
    Idle,
    /// A program waits for input.
    Waiting,
    /// Something in the session's tree takes connections at this port.
    Port(u16),
}

/// Who takes connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    /// Its process.
    pub pid: u32,
    /// Where.
    pub address: SocketAddr,
}

/// Event `ring`: an attached terminal shall catch its person's attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingEvent {
    /// The client's number.
    pub client: u32,
    /// What to say.
    pub text: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_events_are_flat_in_json() {
        let state = StateView {
            session: SessionId::from_random_bits(1),
            name: "work".parse().unwrap(),
            now: Now::Waiting { kind: Kind::Password, prompt: "Password:".into() },
            pid: Some(7),
            since_ms: 5,
            at: 9,
        };
        let json = serde_json::to_value(&state).unwrap();
        assert_eq!((&json["state"], &json["kind"]), (&"waiting".into(), &"password".into()));
        assert_eq!(serde_json::from_value::<StateView>(json).unwrap(), state);
        let what = What::State { now: Now::Ended { exit: Exit::Code(3) }, pid: None, since_ms: 5 };
        let event = Event { seq: 1, at_ms: 2, session: state.session, name: state.name, what };
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(
            (&json["event"], &json["state"], &json["exit"]["code"]),
            (&"state".into(), &"ended".into(), &3.into())
        );
        assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
        let port = OpenPort {
            socket: SocketId(7),
            kind: SocketKind::Stream,
            address: "[::1]:80".parse().unwrap(),
            port: 80,
            pid: Some(9),
            argv: vec!["nc".into(), "-l".into()],
            by: Some("agent:bot".parse().unwrap()),
            act: Some(4),
            known: Known::Time,
        };
        let event = Event { what: What::Listen { port }, ..event };
        let text = serde_json::to_string(&event).unwrap();
        let expected = r#""event":"listen","socket":"s7","kind":"stream","address":"[::1]:80","port":80,"pid":9,"argv":["nc","-l"],"by":"agent:bot","act":4,"known":"time"}"#;
        assert!(text.ends_with(expected), "{text}");
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }

    #[test]
    fn the_word_of_a_state_is_the_one_in_json() {
        let by: Handle = "human:ann".parse().unwrap();
        for now in [
            Now::IdlePrompt,
            Now::Running,
            Now::Waiting { kind: Kind::Line, prompt: String::new() },
            Now::FullScreen,
            Now::BlockedElsewhere,
            Now::Stopped,
            Now::Frozen { by },
            Now::Ended { exit: Exit::Lost },
            Now::Unknown { why: Blind::Nobody },
        ] {
            assert_eq!(serde_json::to_value(&now).unwrap()["state"], now.word());
        }
    }
}
