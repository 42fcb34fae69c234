//! Another program's connection to a host behind a relay, in the name of the actor that opened the way.
//!
//! The program speaks the protocol as on a unix socket. It cannot sign what the sealed channel is bound to, so its `identify` is replaced by one
//! of the actor's; everything else passes as it is.

use crate::connection::CallError;
use crate::identity::Identity;
use holdfast_types::Challenge;
use holdfast_wire::frame::{FRAME_BYTES_MAX, Frame};
use holdfast_wire::operations::op;
use holdfast_wire::turns::IdentifyParams;
use holdfast_wire::{Body, Message, Operation};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long the host's first answer may take.
const HELLO: Duration = Duration::from_secs(15);

/// Joins the two until one ends.
pub fn bridge(program: UnixStream, host: UnixStream, binding: [u8; 32], who: &Identity) -> Result<(), CallError> {
    let (sender, challenge) = channel();
    let (from, to) = (clone(&host)?, clone(&program)?);
    let back = std::thread::spawn(move || {
        let _ = answers(from, &to, &sender);
        let _ = to.shutdown(Shutdown::Both);
    });
    let said = questions(clone(&program)?, &host, &challenge, &binding, who);
    let _ = host.shutdown(Shutdown::Write);
    let _ = back.join();
    said.map_err(CallError::Broken)
}

fn clone(stream: &UnixStream) -> Result<UnixStream, CallError> {
    stream.try_clone().map_err(CallError::Broken)
}

fn bad(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// Reads one message more into a buffer of frames; none at the end.
fn next(from: &mut UnixStream, received: &mut Vec<u8>) -> io::Result<Option<(Message, Vec<u8>)>> {
    loop {
        if let Some((frame, taken)) = Frame::decode(received, FRAME_BYTES_MAX).map_err(bad)? {
            let message = Message::decode(frame).map_err(bad)?;
            let whole = received.drain(..taken).collect();
            return Ok(Some((message, whole)));
        }
        let mut buffer = [0; 4096];
        match from.read(&mut buffer)? {
            0 => return Ok(None),
            count => received.extend_from_slice(&buffer[..count]),
        }
    }
}

/// What the host says; its challenge is noticed on the way.
fn answers(mut from: UnixStream, mut to: &UnixStream, challenge: &Sender<Challenge>) -> io::Result<()> {
    let mut received = Vec::new();
    while let Some((message, whole)) = next(&mut from, &mut received)? {
        let found = match &message.body {
            Body::Answer { result: Ok(value), .. } => value["challenge"].as_str().and_then(|text| text.parse().ok()),
            _ => None,
        };
        // Before it is passed on: the program's next word may be its proof.
        let is_found = found.is_some_and(|found| challenge.send(found).is_ok());
        to.write_all(&whole)?;
        if is_found {
            break;
        }
    }
    to.write_all(&received)?;
    io::copy(&mut from, &mut to).map(|_| ())
}

/// What the program says, with its proof replaced.
fn questions(
    mut from: UnixStream,
    mut to: &UnixStream,
    challenge: &Receiver<Challenge>,
    binding: &[u8],
    who: &Identity,
) -> io::Result<()> {
    let mut received = Vec::new();
    while let Some((message, whole)) = next(&mut from, &mut received)? {
        match message.body {
            Body::Request { id, method, .. } if method == op::Identify::ROW.name => {
                let challenge = challenge.recv_timeout(HELLO).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
                let signature = who.answer_bound(&challenge, binding);
                let params = IdentifyParams { actor: who.actor().clone(), signature, confirm: false };
                let params = serde_json::to_value(params).map_err(bad)?;
                let mut out = Vec::new();
                Message { body: Body::Request { id, method, params }, bytes: Vec::new() }.encode(&mut out);
                to.write_all(&out)?;
                break;
            }
            _ => to.write_all(&whole)?,
        }
    }
    to.write_all(&received)?;
    io::copy(&mut from, &mut to).map(|_| ())
}
