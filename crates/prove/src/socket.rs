//! The host's own socket, spoken to by hand: a stranger who wrote a client from `spec/protocol.md`.

use crate::place::Place;
use crate::trial::{Stop, broken};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// An answer of a host is far shorter.
const FRAME_BYTES_MAX: usize = 1 << 20;

/// A connection that says what it likes.
pub struct Stranger {
    stream: UnixStream,
    next: u64,
}

impl Stranger {
    /// Connects to the host's socket.
    pub fn connect(place: &Place) -> Result<Stranger, Stop> {
        let status = place.json(&["host", "status"])?;
        let path = status["socket"].as_str().unwrap_or_default();
        let stream = UnixStream::connect(path).map_err(|error| broken("the host's socket", error))?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).map_err(|error| broken("the host's socket", error))?;
        Ok(Stranger { stream, next: 0 })
    }

    /// Asks something; the message that answers it.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Stop> {
        self.next += 1;
        let text = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }).to_string();
        let length = u32::try_from(text.len() + 1).map_err(|error| broken(method, error))?;
        let mut frame = length.to_le_bytes().to_vec();
        frame.push(1);
        frame.extend_from_slice(text.as_bytes());
        self.stream.write_all(&frame).map_err(|error| broken(method, error))?;
        loop {
            let message = self.read().map_err(|error| broken(method, error))?;
            if message["id"] == self.next {
                return Ok(message);
            }
        }
    }

    fn read(&mut self) -> std::io::Result<Value> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if !(1..=FRAME_BYTES_MAX).contains(&length) {
            return Err(std::io::Error::other("a frame of a wrong length"));
        }
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame)?;
        Ok(serde_json::from_slice(&frame[1..]).unwrap_or_default())
    }
}
