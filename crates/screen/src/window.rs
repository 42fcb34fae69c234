//! The last text of an output, and where in the output each byte of it came from: for who searches output as it comes.

use crate::PlainText;
use holdfast_types::Offset;

/// Most text that is kept: a match lies within a few screens, and all of it is searched again with each piece that comes.
const WINDOW_BYTES: usize = 64 * 1024;

/// The last text of an output.
#[derive(Debug, Default)]
pub struct Window {
    plain: PlainText,
    text: Vec<u8>,
    offsets: Vec<Offset>,
    /// What was searched: a match that begins before it was no match yet.
    searched: usize,
}

impl Window {
    /// Takes output that begins at an offset.
    pub fn feed(&mut self, from: Offset, bytes: &[u8]) {
        for (at, byte) in (from..).zip(bytes) {
            self.plain.feed(std::slice::from_ref(byte), &mut self.text);
            self.offsets.resize(self.text.len(), at);
        }
    }

    /// The text, where something is new since it was last asked for.
    pub fn news(&mut self) -> Option<&[u8]> {
        if self.searched == self.text.len() {
            return None;
        }
        self.searched = self.text.len();
        Some(&self.text)
    }

    /// The output byte that a byte of the text came from. An empty match stands behind the last byte, or before any.
    #[must_use]
    pub fn offset(&self, at: usize) -> Offset {
        self.offsets.get(at).or(self.offsets.last()).copied().unwrap_or(0)
    }

    /// Lets go of what no match can begin in any more.
    pub fn forget(&mut self) {
        let old = self.text.len().saturating_sub(WINDOW_BYTES);
        self.text.drain(..old);
        self.offsets.drain(..old);
        self.searched -= old;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_forgotten_but_for_its_end() {
        let mut window = Window::default();
        for n in 0..20 {
            window.feed(n * 65_536, &[b'x'; 65_536]);
            assert!(window.news().is_some_and(|text| !text.contains(&b'n')));
            window.forget();
            assert!(window.text.len() <= WINDOW_BYTES && window.offsets.len() == window.text.len());
        }
        assert!(window.news().is_none());
        window.feed(20 * 65_536, b"needle");
        let at = window.news().unwrap().len() - 6;
        assert_eq!(window.offset(at), 20 * 65_536);
    }
}
