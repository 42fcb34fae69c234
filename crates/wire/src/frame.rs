//! Frames: a kind and a payload. The written spec is `spec/protocol.md`.
//!
//! On a byte stream a frame is preceded by its length (u32, little-endian, kind included). Carriers that keep message
//! boundaries send kind and payload alone.

/// A JSON text.
pub const KIND_JSON: u8 = 1;
/// u32 length of a JSON text, the text, then raw bytes that belong to it.
pub const KIND_JSON_BYTES: u8 = 2;

/// Largest frame either side accepts: a repaint with a hundred thousand lines of history.
pub const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest frame a host accepts from a client: a command with its whole environment, or a large paste.
pub const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Why bytes are no frame. The stream cannot be trusted after it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than the reader accepts.
    #[error("a frame of {bytes} bytes is over the limit of {max}")]
    TooLong {
        /// What was announced.
        bytes: usize,
        /// What is accepted.
        max: usize,
    },
    /// A kind this build does not know.
    #[error("unknown frame kind {0}")]
    Unknown(u8),
    /// Fields that contradict the frame's length.
    #[error("malformed frame")]
    Malformed,
}

/// A frame's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The JSON text.
    pub json: &'a [u8],
    /// Raw bytes behind it, empty for [`KIND_JSON`].
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Appends the frame as it goes over a byte stream.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let with_bytes = !self.bytes.is_empty();
        let length = 1 + if with_bytes { 4 } else { 0 } + self.json.len() + self.bytes.len();
        out.reserve(4 + length);
        out.extend_from_slice(&(length as u32).to_le_bytes());
        if with_bytes {
            out.push(KIND_JSON_BYTES);
            out.extend_from_slice(&(self.json.len() as u32).to_le_bytes());
        } else {
            out.push(KIND_JSON);
        }
        out.extend_from_slice(self.json);
        out.extend_from_slice(self.bytes);
    }

    /// The frame at the front of a stream's bytes and how many it took; `None` until it is whole.
    pub fn decode(stream: &'a [u8], max: usize) -> Result<Option<(Frame<'a>, usize)>, FrameError> {
        let Some((length, rest)) = stream.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > max {
            return Err(FrameError::TooLong { bytes: length, max });
        }
        // The kind is judged as soon as it is there: garbage is noticed before its "length" has arrived.
        match rest.first() {
            _ if length == 0 => return Err(FrameError::Malformed),
            Some(&kind) if kind != KIND_JSON && kind != KIND_JSON_BYTES => return Err(FrameError::Unknown(kind)),
            Some(_) | None => {}
        }
        let Some(content) = rest.get(..length) else { return Ok(None) };
        Ok(Some((Frame::decode_content(content)?, 4 + length)))
    }

    /// A frame without its length, as carriers have it that keep message boundaries.
    pub fn decode_content(content: &'a [u8]) -> Result<Frame<'a>, FrameError> {
        match content.split_first().ok_or(FrameError::Malformed)? {
            (&KIND_JSON, json) => Ok(Frame { json, bytes: &[] }),
            (&KIND_JSON_BYTES, payload) => {
                let (count, payload) = payload.split_first_chunk::<4>().ok_or(FrameError::Malformed)?;
                let count = u32::from_le_bytes(*count) as usize;
                let (json, bytes) = payload.split_at_checked(count).ok_or(FrameError::Malformed)?;
                Ok(Frame { json, bytes })
            }
            (&kind, _) => Err(FrameError::Unknown(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of each kind, as in `spec/protocol.md`.
    #[test]
    fn the_bytes_of_each_kind_are_as_written_down() {
        let mut out = vec![];
        Frame { json: b"{}", bytes: b"" }.encode(&mut out);
        assert_eq!(out, b"\x03\0\0\0\x01{}");
        out.clear();
        Frame { json: b"{}", bytes: b"\xff\0" }.encode(&mut out);
        assert_eq!(out, b"\x09\0\0\0\x02\x02\0\0\0{}\xff\0");
    }

    #[test]
    fn a_frame_is_read_once_it_is_whole_and_leaves_the_rest() {
        let frame = Frame { json: b"{\"a\":1}", bytes: b"xyz" };
        let mut out = vec![];
        frame.encode(&mut out);
        let whole = out.len();
        for cut in 0..whole {
            assert_eq!(Frame::decode(&out[..cut], 1000), Ok(None), "cut at {cut}");
        }
        out.extend_from_slice(b"next");
        assert_eq!(Frame::decode(&out, 1000), Ok(Some((frame, whole))));
    }

    #[test]
    fn what_is_no_frame_is_named() {
        let long = FrameError::TooLong { bytes: 0x2050_5447, max: 1000 };
        assert_eq!(Frame::decode(b"GTP HTTP/1.1", 1000), Err(long));
        assert_eq!(Frame::decode(b"\x02\0\0\0\x09", 1000), Err(FrameError::Unknown(9)));
        assert_eq!(Frame::decode(b"\0\0\0\0", 1000), Err(FrameError::Malformed));
        assert_eq!(Frame::decode(b"\x05\0\0\0\x02\xff\0\0\0", 1000), Err(FrameError::Malformed));
    }

    #[test]
    fn random_bytes_never_panic() {
        let seed = 0x2545_f491_4f6c_dd1du64;
        let mut state = seed;
        let mut frames = 0;
        for _ in 0..100_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let mut bytes = state.to_le_bytes().repeat(4);
            bytes[0] %= 28;
            bytes[1..4].fill(0);
            bytes[4] %= 4;
            frames += usize::from(matches!(Frame::decode(&bytes, 64), Ok(Some(_))));
        }
        assert!(frames > 1000, "seed {seed:#x}: only {frames} were frames");
    }
}
