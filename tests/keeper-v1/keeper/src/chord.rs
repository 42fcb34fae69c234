//! Finding the client's chord in its keys.
//!
//! A chord may come in pieces. A piece of two bytes or more at the end of what was read is kept back for a moment; a single
//! byte is not, since that is most likely an Esc somebody pressed, and waiting would be felt.
//!
//! Pure.

/// How long a piece of a chord is kept back: longer than a terminal takes to send the rest, too short to be felt.
pub const PIECE_MS: u64 = 30;

/// Where keys are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// No chord: all of it is for the child.
    None,
    /// From here on it is the client's.
    Chord(usize),
    /// From here on it may become a chord.
    Piece(usize),
}

/// Looks for the first chord.
#[must_use]
pub fn find<P: AsRef<[u8]>>(keys: &[u8], patterns: &[P]) -> Cut {
    for at in 0..keys.len() {
        let rest = &keys[at..];
        let mut patterns = patterns.iter().map(AsRef::as_ref).filter(|pattern| !pattern.is_empty());
        if patterns.clone().any(|pattern| rest.starts_with(pattern)) {
            return Cut::Chord(at);
        }
        if rest.len() >= 2 && patterns.any(|pattern| pattern.starts_with(rest)) {
            return Cut::Piece(at);
        }
    }
    Cut::None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chords_are_found_and_pieces_are_kept_back() {
        let patterns: [&[u8]; 3] = [b"\x1c", b"\x1b[92;5u", b""];
        for (keys, cut) in [
            (&b""[..], Cut::None),
            (b"ls\n", Cut::None),
            (b"ls\x1cd", Cut::Chord(2)),
            (b"\x1b[92;5u", Cut::Chord(0)),
            (b"a\x1b[92;5ud", Cut::Chord(1)),
            (b"a\x1b[92", Cut::Piece(1)),
            (b"\x1b", Cut::None),
            (b"\x1b[A", Cut::None),
            (b"\x1b[92\x1c", Cut::Chord(4)),
        ] {
            assert_eq!(find(keys, &patterns), cut, "{keys:?}");
        }
    }
}
