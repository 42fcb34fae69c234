//! Which size the session had when a byte was written, as far back as readers ask: the latest changes, from the keeper's log.

use holdfast_abi::ring::Ring;
use holdfast_types::{Offset, Size};
use std::collections::VecDeque;

/// Changes remembered: a person who drags a window's edge makes dozens, and readers are a moment behind.
const CHANGES_MAX: usize = 256;

/// The latest changes of size.
#[derive(Debug)]
pub(crate) struct Sizes {
    /// Before the first of them.
    before: Size,
    changes: VecDeque<(Offset, Size)>,
    /// Log position up to which they were taken; none: from the log's end on.
    taken: Option<u64>,
}

impl Sizes {
    /// A session of this size.
    pub fn new(size: Size) -> Sizes {
        Sizes { before: size, changes: VecDeque::new(), taken: None }
    }

    /// Takes what came since the last look. `now` is the session's size, for what the log no longer has.
    pub fn take(&mut self, ring: &Ring, now: Size) {
        let to = ring.log_head();
        match self.taken.replace(to) {
            Some(from) if to.saturating_sub(from) <= ring.log_bytes() => {
                for (_, at, size) in read_sizes(ring, from, to) {
                    self.push(at, size);
                }
            }
            Some(_) => self.push(ring.head(), now),
            None => self.before = now,
        }
    }

    fn push(&mut self, at: Offset, size: Size) {
        if self.changes.len() == CHANGES_MAX {
            self.before = self.changes.pop_front().map_or(self.before, |(_, size)| size);
        }
        self.changes.push_back((at, size));
    }

    /// The size when the byte at an offset was written, and where the next change came.
    pub fn at(&self, offset: Offset) -> (Size, Option<Offset>) {
        let size = self.changes.iter().rev().find(|(at, _)| *at <= offset).map_or(self.before, |(_, size)| *size);
        (size, self.changes.iter().map(|(at, _)| *at).find(|at| *at > offset))
    }
}

/// The sizes in the log from `from` to `to`: where they are there, the output offsets at which they came, and the sizes.
pub fn read_sizes(ring: &Ring, from: u64, to: u64) -> Vec<(u64, u64, Size)> {
    use holdfast_abi::log::{Kind, Record};
    let mut sizes = Vec::new();
    let Ok(length) = usize::try_from(to.saturating_sub(from)) else { return sizes };
    let mut bytes = vec![0; length.min(ring.log_bytes() as usize)];
    ring.copy_log(from, &mut bytes);
    let mut rest = bytes.as_slice();
    while let Some((record, length)) = Record::decode(rest) {
        if record.kind == Kind::Resize {
            let logged = to - rest.len() as u64;
            sizes.push((logged, record.at, Size::clamped(record.stream as u16, record.seq as u16)));
        }
        rest = &rest[length..];
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_has_the_size_of_its_moment() {
        let size = |cols| Size::clamped(cols, 10);
        let mut sizes = Sizes::new(size(80));
        sizes.push(100, size(90));
        sizes.push(200, size(100));
        assert_eq!(sizes.at(0), (size(80), Some(100)));
        assert_eq!(sizes.at(100), (size(90), Some(200)));
        assert_eq!(sizes.at(250), (size(100), None));
        for n in 0..CHANGES_MAX as u64 {
            sizes.push(1000 + n, size(50));
        }
        assert_eq!(sizes.at(0).0, size(100), "what is forgotten has the size before what is known");
    }
}
