//! Frames: one sealed message each, with a kind and a body.
//!
//! A frame is one Noise transport message: the kind (one byte) and the body, sealed under the sender's key and the frame's number,
//! which is not sent. Both sides count.

use crate::ChannelError;
use snow::{HandshakeState, TransportState};

/// Longest message, by Noise.
pub const MESSAGE_BYTES_MAX: usize = 65_535;
/// Longest body: a message without its seal and its kind.
pub const DATA_BYTES_MAX: usize = MESSAGE_BYTES_MAX - SEAL_BYTES - 1;
/// Frames under one key: AES-GCM is good for many times more.
pub const REKEY_FRAMES: u64 = 1 << 20;
/// Bytes under one key.
pub const REKEY_BYTES: u64 = 1 << 30;
/// How long a key is used by a sender that has something to send: whoever takes a key from a machine's memory reads ten minutes back.
pub const REKEY_MS: u64 = 10 * 60 * 1000;

const SEAL_BYTES: usize = 16;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes of the protocol inside; at least one.
    Data = 0,
    /// The sender is there; has no body.
    Alive = 1,
    /// The sender's next frame is under the next key; has no body.
    Rekey = 2,
    /// The sender sends nothing more; has no body. A stream that breaks off without it was cut.
    End = 3,
}

/// How long one direction has used its key.
#[derive(Debug, Default)]
struct Use {
    frames: u64,
    bytes: u64,
    since_ms: Option<u64>,
}

impl Use {
    fn one(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

/// A channel whose handshake is done.
#[derive(Debug)]
pub struct Channel {
    /// None once it is over.
    state: Option<TransportState>,
    binding: [u8; 32],
    sent: Use,
    received: Use,
    /// We sent our end, and got theirs.
    ended: (bool, bool),
}

impl Channel {
    pub(crate) fn new(state: HandshakeState) -> Result<Channel, ChannelError> {
        let binding = state.get_handshake_hash().try_into().map_err(|_| ChannelError::Handshake)?;
        let state = state.into_transport_mode().map_err(|_| ChannelError::Handshake)?;
        Ok(Channel {
            state: Some(state),
            binding,
            sent: Use::default(),
            received: Use::default(),
            ended: (false, false),
        })
    }

    /// What only the two ends of this channel have: the hash of the whole handshake, with both keys in it. No secret.
    #[must_use]
    pub fn binding(&self) -> [u8; 32] {
        self.binding
    }

    /// Seals a frame into as many messages as it takes: one, with one before it where the key is due.
    pub fn seal(&mut self, kind: Kind, body: &[u8], now_ms: u64) -> Result<Vec<Vec<u8>>, ChannelError> {
        if body.len() > DATA_BYTES_MAX || (kind == Kind::Data) == body.is_empty() {
            return Err(ChannelError::Long);
        }
        if self.ended.0 {
            return Err(ChannelError::Dead);
        }
        let since = *self.sent.since_ms.get_or_insert(now_ms);
        let is_due = self.sent.frames >= REKEY_FRAMES
            || self.sent.bytes >= REKEY_BYTES
            || now_ms.saturating_sub(since) >= REKEY_MS;
        let mut messages = Vec::with_capacity(1 + usize::from(is_due));
        if is_due && kind != Kind::Rekey {
            messages.push(self.seal_one(Kind::Rekey, &[], now_ms)?);
        }
        messages.push(self.seal_one(kind, body, now_ms)?);
        Ok(messages)
    }

    fn seal_one(&mut self, kind: Kind, body: &[u8], now_ms: u64) -> Result<Vec<u8>, ChannelError> {
        let state = self.state.as_mut().ok_or(ChannelError::Dead)?;
        let mut plain = Vec::with_capacity(1 + body.len());
        plain.push(kind as u8);
        plain.extend_from_slice(body);
        let mut message = vec![0; plain.len() + SEAL_BYTES];
        if state.write_message(&plain, &mut message).is_err() {
            self.state = None;
            return Err(ChannelError::Dead);
        }
        self.sent.one(message.len());
        match kind {
            Kind::Rekey => {
                state.rekey_outgoing();
                self.sent = Use { since_ms: Some(now_ms), ..Use::default() };
            }
            Kind::End => self.ended.0 = true,
            Kind::Data | Kind::Alive => {}
        }
        Ok(message)
    }

    /// Opens a message: gives its kind and its body. After an error the channel is dead.
    pub fn open(&mut self, message: &[u8]) -> Result<(Kind, Vec<u8>), ChannelError> {
        let opened = self.open_alive(message);
        if opened.is_err() {
            self.state = None;
        }
        opened
    }

    fn open_alive(&mut self, message: &[u8]) -> Result<(Kind, Vec<u8>), ChannelError> {
        let state = self.state.as_mut().ok_or(ChannelError::Dead)?;
        if self.ended.1 {
            return Err(ChannelError::Dead);
        }
        let mut plain = vec![0; message.len()];
        let length = state.read_message(message, &mut plain).map_err(|_| ChannelError::Frame)?;
        plain.truncate(length);
        self.received.one(message.len());
        // Twice: what is under way when a key is due is under the old one.
        if self.received.frames > 2 * REKEY_FRAMES || self.received.bytes > 2 * REKEY_BYTES {
            return Err(ChannelError::Stale);
        }
        let kind = match (plain.first(), plain.len()) {
            (Some(0), 2..) => Kind::Data,
            (Some(1), 1) => Kind::Alive,
            (Some(2), 1) => Kind::Rekey,
            (Some(3), 1) => Kind::End,
            _ => return Err(ChannelError::Frame),
        };
        match kind {
            Kind::Rekey => {
                state.rekey_incoming();
                self.received = Use::default();
            }
            Kind::End => self.ended.1 = true,
            Kind::Data | Kind::Alive => {}
        }
        plain.remove(0);
        Ok((kind, plain))
    }
}
