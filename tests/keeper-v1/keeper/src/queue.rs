//! Input on its way into the terminal: accepted, recorded, and not yet taken by it.
//!
//! Pure.

use std::collections::VecDeque;

/// Bytes that may wait. A child that reads nothing must not make its keeper grow; more than any line editor needs.
pub const QUEUE_BYTES_MAX: usize = 64 * 1024;
/// Room kept when the queue runs empty; a large paste gives its memory back.
const KEPT_BYTES: usize = 4096;

/// A frame in the queue: who is told when its last byte is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The connection it came by.
    pub connection: u32,
    /// Its stream.
    pub stream: u64,
    /// Its number there.
    pub seq: u64,
    from: u64,
    to: u64,
}

/// The queue.
#[derive(Debug, Default)]
pub struct Queue {
    bytes: VecDeque<u8>,
    frames: VecDeque<Waiting>,
    written: u64,
}

impl Queue {
    /// Whether everything is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether `count` more bytes may wait.
    #[must_use]
    pub fn has_room(&self, count: usize) -> bool {
        self.bytes.len() + count <= QUEUE_BYTES_MAX
    }

    /// Keys, of which nobody wants to hear again.
    pub fn push_keys(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// A frame.
    pub fn push_frame(&mut self, connection: u32, stream: u64, seq: u64, bytes: &[u8]) {
        let from = self.written + self.bytes.len() as u64;
        self.bytes.extend(bytes);
        self.frames.push_back(Waiting { connection, stream, seq, from, to: from + bytes.len() as u64 });
    }

    /// A frame that still waits was sent again by another connection: that one is told. False where it does not wait.
    pub fn readdress(&mut self, connection: u32, stream: u64, seq: u64) -> bool {
        let waiting = self.frames.iter_mut().find(|frame| frame.stream == stream && frame.seq == seq);
        waiting.map(|frame| frame.connection = connection).is_some()
    }

    /// The next bytes to write.
    #[must_use]
    pub fn front(&self) -> &[u8] {
        self.bytes.as_slices().0
    }

    /// So many bytes were written.
    pub fn wrote(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.written += count as u64;
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes.shrink_to(KEPT_BYTES);
        }
    }

    /// The next frame of which the last byte is written.
    pub fn next_written(&mut self) -> Option<Waiting> {
        self.frames.pop_front_if(|frame| frame.to <= self.written)
    }

    /// Drops everything that waits: the frames, each with whether it is wholly unwritten.
    pub fn clear(&mut self) -> Vec<(Waiting, bool)> {
        let written = self.written;
        self.written += self.bytes.len() as u64;
        self.bytes.clear();
        self.frames.drain(..).map(|frame| (frame, frame.from >= written)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seqs(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.next_written()).map(|frame| frame.seq).collect()
    }

    #[test]
    fn a_frame_is_written_when_its_last_byte_is() {
        let mut queue = Queue::default();
        queue.push_frame(1, 1, 1, b"ab");
        queue.push_keys(b"k");
        queue.push_frame(1, 1, 2, b"c");
        queue.push_frame(1, 1, 3, b"");
        queue.wrote(1);
        assert_eq!(seqs(&mut queue), []);
        queue.wrote(2);
        assert_eq!(seqs(&mut queue), [1]);
        queue.wrote(1);
        assert_eq!(seqs(&mut queue), [2, 3]);
        assert!(queue.is_empty());
    }

    #[test]
    fn what_is_dropped_tells_whether_any_of_it_was_written() {
        let mut queue = Queue::default();
        queue.push_frame(1, 1, 1, b"ab");
        queue.push_frame(1, 1, 2, b"cd");
        queue.wrote(1);
        let dropped: Vec<_> = queue.clear().into_iter().map(|(frame, unwritten)| (frame.seq, unwritten)).collect();
        assert_eq!(dropped, [(1, false), (2, true)]);
        queue.push_frame(1, 1, 3, b"e");
        queue.wrote(1);
        assert_eq!(seqs(&mut queue), [3]);
    }

    #[test]
    fn a_frame_sent_again_answers_to_its_new_connection() {
        let mut queue = Queue::default();
        queue.push_frame(1, 7, 1, b"ab");
        assert!(queue.readdress(2, 7, 1) && !queue.readdress(2, 7, 2));
        queue.wrote(2);
        assert_eq!(queue.next_written().map(|frame| frame.connection), Some(2));
    }

    #[test]
    fn it_takes_no_more_than_its_limit() {
        let mut queue = Queue::default();
        assert!(queue.has_room(QUEUE_BYTES_MAX));
        queue.push_keys(b"x");
        assert!(!queue.has_room(QUEUE_BYTES_MAX));
    }
}
