//! What host and warden say to each other: a length of four bytes, and JSON.
//!
//! A host says [`HOST`] and the session's secret; from then on the warden tells it what waits, and it answers. What becomes the session's
//! command says [`GATE`] and hands over the listener. A warden outlives hosts: words are added, never changed.

use serde::{Deserialize, Serialize};
use std::io;

/// A host comes; its secret follows.
pub(super) const HOST: u8 = b'h';
/// The listener comes; the address of [`MARK`] in the memory of who sends it follows.
pub(super) const GATE: u8 = b'g';
/// What the warden reads there: then it can read what it will be asked about.
pub(super) static MARK: [u8; 16] = *b"holdfast's seam.";
/// The warden is ready; and, to who handed over the listener: it stands.
pub(super) const READY: u8 = b'r';
/// It cannot read the memory of processes here.
pub(super) const BLIND: u8 = b'b';
/// Bytes of a hello: what it is, and up to sixteen more.
pub(super) const HELLO_BYTES: usize = 17;

/// Longest message: all words of a command, in JSON's longest spelling, and a path or two.
pub(super) const MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A process that waits to become another program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exec {
    /// The kernel's number for it.
    pub id: u64,
    /// Its thread.
    pub pid: u32,
    /// The path it gave.
    pub path: String,
    /// The file that is, without links.
    pub program: String,
    /// Its words.
    pub words: Vec<String>,
    /// Its directory.
    pub cwd: String,
    /// All of this could be read.
    pub is_whole: bool,
}

/// What the warden says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// It waits for an answer.
    Exec(Box<Exec>),
    /// Its process is gone.
    Gone(u64),
}

/// What the host says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub id: u64,
    pub allow: bool,
    /// The same of any process of the session is allowed for a moment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// A line for the terminal of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

/// A message with its length.
pub(super) fn encode(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    // Texts and numbers always serialise; a message without a body is dropped by who reads it.
    let _ = serde_json::to_writer(&mut bytes, message);
    let length = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Takes the next whole message from what was read so far.
pub(super) fn decode<T: for<'a> Deserialize<'a>>(bytes: &mut Vec<u8>) -> io::Result<Option<T>> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MESSAGE_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    let message = serde_json::from_slice(body)?;
    bytes.drain(..4 + length);
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_one_by_one_and_too_long_ones_refused() {
        let answer = |id| Answer { id, allow: true, again: false, line: None };
        let mut bytes = [encode(&answer(1)), encode(&answer(u64::MAX))].concat();
        let last = bytes.pop().unwrap();
        assert_eq!(decode::<Answer>(&mut bytes).unwrap(), Some(answer(1)));
        assert_eq!(decode::<Answer>(&mut bytes).unwrap(), None);
        bytes.push(last);
        assert_eq!(decode::<Answer>(&mut bytes).unwrap(), Some(answer(u64::MAX)));
        assert!(bytes.is_empty());
        assert!(decode::<Answer>(&mut vec![255; 8]).is_err());
    }
}
