//! One connection to a host: requests out, answers and events in.

use crate::identity::Identity;
use holdfast_relay::RelayUrl;
use holdfast_types::{Challenge, Signature};
use holdfast_wire::devices::{InviteAcceptAnswer, InviteAcceptParams};
use holdfast_wire::frame::{FRAME_BYTES_MAX, Frame, FrameError};
use holdfast_wire::hello::{HelloAnswer, HelloParams, Inside};
use holdfast_wire::message::VERSIONS;
use holdfast_wire::operations::op;
use holdfast_wire::turns::IdentifyParams;
use holdfast_wire::{Body, Fault, Message, Operation};
use serde_json::Value;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// What we are, for the host's log.
pub const PROGRAM: &str = concat!("holdfast ", env!("CARGO_PKG_VERSION"));

/// What is read at once of an answer, and of one that turned out to be long.
const FILL_BYTES: usize = 8 * 1024;
const FILL_BYTES_MAX: usize = 64 * 1024;

/// A connection that has said hello.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    next_id: u64,
    hello: Box<HelloAnswer>,
    /// The `identify` request: no caller waits for its answer.
    identified: Option<u64>,
    /// Where it goes through, if not here or by ssh.
    through: Option<RelayUrl>,
}

/// What a host sent of itself or as an answer.
#[derive(Debug)]
pub enum Incoming {
    /// The answer to a request that was sent with [`Connection::ask`].
    Answer {
        /// The request's id.
        id: u64,
        /// What came of it.
        result: Result<Value, Fault>,
        /// Bytes that belong to it.
        bytes: Vec<u8>,
    },
    /// Something the host wants us to know.
    Event {
        /// What happened.
        method: String,
        /// The details.
        params: Value,
        /// Bytes that belong to it.
        bytes: Vec<u8>,
    },
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The host refused or failed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The connection broke: the host went away, or was never there.
    #[error("the connection to the host broke")]
    Broken(#[source] io::Error),
    /// The host said something that is not the protocol.
    #[error("cannot read the host's answer: {0}")]
    Nonsense(String),
}

impl From<FrameError> for CallError {
    fn from(error: FrameError) -> CallError {
        CallError::Nonsense(error.to_string())
    }
}

/// A connection that has said hello, and not yet who speaks.
#[derive(Debug)]
pub struct Greeted(Connection, Option<[u8; 32]>);

impl Greeted {
    /// Says hello on a fresh stream, as this program.
    pub fn on(stream: UnixStream, program: &str) -> Result<Greeted, CallError> {
        let hello = HelloAnswer {
            version: 0,
            program: String::new(),
            challenge: Challenge([0; 32]),
            inside: None,
            direct: Vec::new(),
        };
        let hello = Box::new(hello);
        let mut connection =
            Connection { stream, received: Vec::new(), next_id: 1, hello, identified: None, through: None };
        let params = HelloParams { versions: VERSIONS.to_vec(), program: program.to_owned() };
        *connection.hello = connection.call::<op::Hello>(&params)?;
        Ok(Greeted(connection, None))
    }

    /// On a sealed channel: an actor signs its binding.
    #[must_use]
    pub fn bound(self, binding: [u8; 32]) -> Greeted {
        Greeted(self.0, Some(binding))
    }

    /// Accepts the invite by which this connection came, as this actor: enrols its key.
    pub fn accept(mut self, who: &Identity) -> Result<InviteAcceptAnswer, CallError> {
        let params = InviteAcceptParams { actor: who.actor().clone(), signature: self.signature(who) };
        self.0.call::<op::InviteAccept>(&params)
    }

    /// Where the host found this process, if that is no place of a person.
    #[must_use]
    pub fn inside(&self) -> Option<&Inside> {
        self.0.hello.inside.as_ref()
    }

    /// Where the host listens itself, as it says.
    pub(crate) fn direct(&self) -> &[String] {
        &self.0.hello.direct
    }

    /// Says who speaks.
    pub fn identify(mut self, who: &Identity) -> Result<Connection, CallError> {
        let params = self.params(who, false);
        // Not waited for: the host refuses what follows if it does not hold.
        let asked = self.0.ask::<op::Identify>(&params, &[])?;
        self.0.identified = Some(asked);
        self.ready()
    }

    /// Says who speaks, and has the host ask that person whether it is so.
    pub fn confirm(mut self, who: &Identity) -> Result<Connection, CallError> {
        let params = self.params(who, true);
        self.0.stream.set_read_timeout(None).map_err(CallError::Broken)?;
        self.0.call::<op::Identify>(&params)?;
        self.ready()
    }

    fn params(&self, who: &Identity, confirm: bool) -> IdentifyParams {
        IdentifyParams { actor: who.actor().clone(), signature: self.signature(who), confirm }
    }

    fn signature(&self, who: &Identity) -> Signature {
        let challenge = &self.0.hello.challenge;
        self.1.map_or_else(|| who.answer(challenge), |binding| who.answer_bound(challenge, &binding))
    }

    /// From here on an answer may take as long as what was asked for.
    fn ready(self) -> Result<Connection, CallError> {
        self.0.stream.set_read_timeout(None).map_err(CallError::Broken)?;
        Ok(self.0)
    }
}

impl Connection {
    /// Says hello on a fresh stream, and who speaks.
    pub fn open(stream: UnixStream, who: &Identity) -> Result<Connection, CallError> {
        Greeted::on(stream, PROGRAM)?.identify(who)
    }

    /// It goes through this relay, or to this address of the host's own.
    pub(crate) fn through(mut self, at: RelayUrl) -> Connection {
        self.through = Some(at);
        self
    }

    /// The relay it goes through, or the host's own address; none here and by ssh.
    #[must_use]
    pub fn way(&self) -> Option<&RelayUrl> {
        self.through.as_ref()
    }

    /// What the host said of itself.
    #[must_use]
    pub fn hello(&self) -> &HelloAnswer {
        &self.hello
    }

    /// Asks and waits for the answer. Events that come first are dropped: who wants them uses [`Connection::ask`].
    pub fn call<O: Operation>(&mut self, params: &O::Params) -> Result<O::Answer, CallError> {
        self.call_with_bytes::<O>(params, &[]).map(|(answer, _)| answer)
    }

    /// Asks with bytes, and gives the answer with its bytes.
    pub fn call_with_bytes<O: Operation>(
        &mut self,
        params: &O::Params,
        bytes: &[u8],
    ) -> Result<(O::Answer, Vec<u8>), CallError> {
        let asked = self.ask::<O>(params, bytes)?;
        loop {
            if let Incoming::Answer { id, result, bytes } = self.receive()?
                && id == asked
            {
                let answer = serde_json::from_value(result?).map_err(|e| CallError::Nonsense(e.to_string()))?;
                return Ok((answer, bytes));
            }
        }
    }

    /// Sends a request and gives its id; the answer comes with [`Connection::receive`].
    pub fn ask<O: Operation>(&mut self, params: &O::Params, bytes: &[u8]) -> Result<u64, CallError> {
        let id = self.next_id;
        self.next_id += 1;
        let params = serde_json::to_value(params).map_err(|e| CallError::Nonsense(e.to_string()))?;
        let body = Body::Request { id, method: O::ROW.name.into(), params };
        let mut out = Vec::new();
        Message { body, bytes: bytes.to_vec() }.encode(&mut out);
        self.stream.write_all(&out).map_err(CallError::Broken)?;
        Ok(id)
    }

    /// Waits for the next answer or event.
    pub fn receive(&mut self) -> Result<Incoming, CallError> {
        loop {
            if let Some(incoming) = self.take()? {
                return Ok(incoming);
            }
            self.fill()?;
        }
    }

    /// The next answer or event if it has arrived; reads once from the stream, which must have something to read.
    pub fn receive_ready(&mut self) -> Result<Vec<Incoming>, CallError> {
        self.fill()?;
        let mut all = Vec::new();
        while let Some(incoming) = self.take()? {
            all.push(incoming);
        }
        Ok(all)
    }

    /// The stream, what was read from it and not yet taken, and the next request's id: for who goes on by other means.
    #[must_use]
    pub fn into_parts(self) -> (UnixStream, Vec<u8>, u64) {
        (self.stream, self.received, self.next_id)
    }

    /// How long an answer may take from here on; none: as long as what was asked for.
    pub fn set_patience(&self, patience: Option<std::time::Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(patience)
    }

    /// Where to poll for input.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn fill(&mut self) -> Result<(), CallError> {
        let start = self.received.len();
        // Most answers are short, and each page that is made ready for one costs more than reading it.
        let room = if start < FILL_BYTES { FILL_BYTES } else { FILL_BYTES_MAX };
        self.received.resize(start + room, 0);
        let count = loop {
            match self.stream.read(&mut self.received[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.received.truncate(start + *count.as_ref().unwrap_or(&0));
        match count.map_err(CallError::Broken)? {
            0 => Err(CallError::Broken(io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(()),
        }
    }

    fn take(&mut self) -> Result<Option<Incoming>, CallError> {
        let message = loop {
            let Some((frame, taken)) = Frame::decode(&self.received, FRAME_BYTES_MAX)? else { return Ok(None) };
            let message = Message::decode(frame).map_err(|fault| CallError::Nonsense(fault.message))?;
            self.received.drain(..taken);
            match message.body {
                Body::Answer { id, .. } if self.identified == Some(id) => self.identified = None,
                _ => break message,
            }
        };
        let incoming = match message.body {
            Body::Answer { id, result } => Incoming::Answer { id, result, bytes: message.bytes },
            Body::Event { method, params } => Incoming::Event { method, params, bytes: message.bytes },
            Body::Request { method, .. } => {
                return Err(CallError::Nonsense(format!("a request from the host: {method}")));
            }
        };
        Ok(Some(incoming))
    }
}
