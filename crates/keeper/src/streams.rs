//! What each input stream has had: so that input sent again after a break is written once.
//!
//! A refused frame was never taken, and those the sender had already put behind it must not overtake it: they are refused
//! as full too, until the refused one comes again.
//!
//! Pure.

/// Streams remembered: one per client process; the least recently used gives way.
pub const STREAMS_MAX: usize = 128;

/// What to do with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Not seen before.
    New,
    /// Taken before: not to be written again.
    Had,
    /// Behind one of the same stream that was refused as full.
    Overtakes,
}

#[derive(Debug)]
struct Stream {
    id: u64,
    last: u64,
    refused: Option<u64>,
}

/// The streams, most recently used last.
#[derive(Debug, Default)]
pub struct Streams {
    streams: Vec<Stream>,
}

impl Streams {
    /// What the streams of the life before had, the least recently used first: each a number and the last that was taken.
    #[must_use]
    pub fn of_before(had: &[(u64, u64)]) -> Streams {
        let mut streams = Streams::default();
        had.iter().for_each(|(id, seq)| streams.took(*id, *seq));
        streams
    }

    /// What to do with this frame. Remembers nothing.
    #[must_use]
    pub fn judge(&self, id: u64, seq: u64) -> Verdict {
        match self.streams.iter().find(|stream| stream.id == id) {
            Some(stream) if seq <= stream.last => Verdict::Had,
            Some(Stream { refused: Some(refused), .. }) if seq > *refused => Verdict::Overtakes,
            Some(_) | None => Verdict::New,
        }
    }

    /// The frame was taken.
    pub fn took(&mut self, id: u64, seq: u64) {
        let stream = self.touch(id);
        stream.last = stream.last.max(seq);
        stream.refused = stream.refused.filter(|refused| seq < *refused);
    }

    /// The frame was refused as full.
    pub fn refused(&mut self, id: u64, seq: u64) {
        self.touch(id).refused = Some(seq);
    }

    /// The frame was taken and then dropped before a byte of it was written: it may come again.
    pub fn dropped(&mut self, id: u64, seq: u64) {
        let stream = self.touch(id);
        stream.last = stream.last.min(seq.saturating_sub(1));
    }

    fn touch(&mut self, id: u64) -> &mut Stream {
        match self.streams.iter().position(|stream| stream.id == id) {
            Some(at) => self.streams[at..].rotate_left(1),
            None => {
                if self.streams.len() == STREAMS_MAX {
                    self.streams.remove(0);
                }
                self.streams.push(Stream { id, last: 0, refused: None });
            }
        }
        let newest = self.streams.len() - 1;
        &mut self.streams[newest]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_new_once() {
        let mut streams = Streams::default();
        assert_eq!(streams.judge(7, 1), Verdict::New);
        streams.took(7, 1);
        streams.took(7, 5);
        for (seq, verdict) in [(1, Verdict::Had), (4, Verdict::Had), (5, Verdict::Had), (6, Verdict::New)] {
            assert_eq!(streams.judge(7, seq), verdict, "{seq}");
        }
        assert_eq!(streams.judge(8, 1), Verdict::New);
    }

    #[test]
    fn what_a_stream_had_in_the_life_before_is_not_written_again() {
        let streams = Streams::of_before(&[(7, 3), (8, 1)]);
        assert_eq!((streams.judge(7, 3), streams.judge(7, 4)), (Verdict::Had, Verdict::New));
        assert_eq!((streams.judge(8, 1), streams.judge(9, 1)), (Verdict::Had, Verdict::New));
    }

    #[test]
    fn nothing_overtakes_a_refused_frame() {
        let mut streams = Streams::default();
        streams.took(7, 4);
        streams.refused(7, 5);
        assert_eq!(streams.judge(7, 6), Verdict::Overtakes);
        assert_eq!(streams.judge(7, 5), Verdict::New);
        streams.took(7, 5);
        assert_eq!(streams.judge(7, 6), Verdict::New);
    }

    #[test]
    fn a_dropped_frame_may_come_again() {
        let mut streams = Streams::default();
        streams.took(7, 5);
        streams.took(7, 6);
        streams.dropped(7, 5);
        streams.dropped(7, 6);
        assert_eq!((streams.judge(7, 4), streams.judge(7, 5)), (Verdict::Had, Verdict::New));
    }

    #[test]
    fn the_least_recently_used_stream_gives_way() {
        let mut streams = Streams::default();
        for id in 0..STREAMS_MAX as u64 {
            streams.took(id, 9);
        }
        streams.took(0, 10);
        streams.took(1000, 1);
        assert_eq!((streams.judge(0, 10), streams.judge(1, 9)), (Verdict::Had, Verdict::New));
    }
}
