//! A connection that says what it likes: nothing of who speaks, somebody else's signature, any operation by its name.

use crate::world::World;
use holdfast_client::Identity;
use holdfast_types::{Actor, Challenge, Signature};
use holdfast_wire::frame::{FRAME_BYTES_MAX, Frame};
use holdfast_wire::{Body, Fault, Message};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// A connection that has said hello and nothing else.
pub struct Raw {
    stream: UnixStream,
    received: Vec<u8>,
    last: u64,
    /// What the host wants signed.
    pub challenge: Challenge,
}

impl Raw {
    /// Connects and says hello.
    pub fn open(world: &World) -> Raw {
        let stream = UnixStream::connect(world.home().host_socket()).unwrap();
        stream.set_read_timeout(Some(crate::wait::PATIENCE)).unwrap();
        let mut raw = Raw { stream, received: Vec::new(), last: 0, challenge: Challenge([0; 32]) };
        let hello = raw.call("hello", &json!({"versions": [1]}), &[]).unwrap();
        raw.challenge = serde_json::from_value(hello["challenge"].clone()).unwrap();
        raw
    }

    /// A connection that has proven who speaks.
    pub fn of(world: &World, who: &Identity) -> Raw {
        let mut raw = Raw::open(world);
        let signature = who.answer(&raw.challenge);
        raw.identify(who.actor(), &signature).unwrap();
        raw
    }

    /// Says who speaks.
    pub fn identify(&mut self, actor: &Actor, signature: &Signature) -> Result<Value, Fault> {
        self.call("identify", &json!({"actor": actor, "signature": signature}), &[])
    }

    /// Asks and waits for the answer; events are passed over.
    pub fn call(&mut self, method: &str, params: &Value, bytes: &[u8]) -> Result<Value, Fault> {
        let asked = self.ask(method, params, bytes);
        self.answered(asked)
    }

    /// Asks, and does not wait.
    pub fn ask(&mut self, method: &str, params: &Value, bytes: &[u8]) -> u64 {
        self.last += 1;
        let asked = self.last;
        let body = Body::Request { id: asked, method: method.into(), params: params.clone() };
        let mut out = Vec::new();
        Message { body, bytes: bytes.to_vec() }.encode(&mut out);
        self.stream.write_all(&out).unwrap();
        asked
    }

    /// Waits for the answer to what was asked.
    pub fn answered(&mut self, asked: u64) -> Result<Value, Fault> {
        loop {
            if let Body::Answer { id, result } = self.receive()
                && id == asked
            {
                return result;
            }
        }
    }

    /// Waits for so many answers, whichever come first.
    pub fn answers(&mut self, count: usize) -> Vec<Result<Value, Fault>> {
        let mut answers = Vec::new();
        while answers.len() < count {
            if let Body::Answer { result, .. } = self.receive() {
                answers.push(result);
            }
        }
        answers
    }

    fn receive(&mut self) -> Body {
        loop {
            if let Some((frame, taken)) = Frame::decode(&self.received, FRAME_BYTES_MAX).unwrap() {
                let message = Message::decode(frame).unwrap();
                self.received.drain(..taken);
                return message.body;
            }
            let mut more = [0; 64 * 1024];
            let count = self.stream.read(&mut more).unwrap();
            assert!(count > 0, "the host closed the connection");
            self.received.extend_from_slice(&more[..count]);
        }
    }
}
